//! `now`: the time.

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Clock, Empty, ToolError, tool};

const DAY_SECONDS: u64 = 86_400;
/// The days of 400 years, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;
/// The days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;
/// Days of the week, from that of 1 January 1970 on.
const WEEKDAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// What `now` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Now {
    /// The time in UTC, such as `2026-11-16T15:04:05Z`.
    utc: String,
    /// The day of the week, in UTC.
    weekday: String,
    /// Milliseconds since the beginning of 1970.
    unix_ms: u64,
}

/// Returns the current time, in UTC.
#[tool(Pure, determinism = Bounded, version = "0.1.0", output = Now)]
pub(super) async fn now(_: Empty, clock: Clock) -> Result<Now, ToolError> {
    let unix_ms = clock.unix_us() / 1_000;
    let seconds = unix_ms / 1_000;
    let (days, second) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let utc = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    let weekday = usize::try_from(days % 7).map_or("", |at| WEEKDAYS[at]);
    Ok(Now { utc, weekday: weekday.to_owned(), unix_ms })
}

/// The date of a day since 1970, counted in years that begin in March: so leap days come last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH_DAYS;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}
