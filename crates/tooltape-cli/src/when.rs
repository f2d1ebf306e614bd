//! Moments as people write and read them, in UTC.

use std::time::Duration;

const DAY_SECS: u64 = 24 * 60 * 60;
/// Days from the first of March of the year 0 to the Unix epoch.
const EPOCH_DAYS: u64 = 719_468;
/// Days of four hundred years, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;
/// The last moment that has a year of four digits, in seconds.
const LAST_SECS: u64 = 253_402_300_799;
/// How long a saved answer holds unless told.
pub(crate) const LIFETIME_DEFAULT: Duration = Duration::from_secs(30 * DAY_SECS);
/// How long a saved answer holds at most.
pub(crate) const LIFETIME_MAX: Duration = Duration::from_secs(365 * DAY_SECS);

/// A moment of so many microseconds since the Unix epoch, such as `2026-11-16T01:47:11Z`.
pub(crate) fn rfc3339(us: u64) -> String {
    let (day, clock) = parts(us);
    format!("{day}T{clock}Z")
}

/// The same for a table: `2026-11-16 01:47:11`.
pub(crate) fn plain(us: u64) -> String {
    let (day, clock) = parts(us);
    format!("{day} {clock}")
}

fn parts(us: u64) -> (String, String) {
    let secs = (us / 1_000_000).min(LAST_SECS);
    let (days, secs) = (secs / DAY_SECS, secs % DAY_SECS);
    // Years are counted from March, so that the day that comes and goes is the last of its year.
    let days = days + EPOCH_DAYS;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turned) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = 400 * era + year + turned;
    let (hour, minute, second) = (secs / 3_600, secs / 60 % 60, secs % 60);
    (format!("{year:04}-{month:02}-{day:02}"), format!("{hour:02}:{minute:02}:{second:02}"))
}

/// A moment as somebody types it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// So long ago.
    Ago(Duration),
    /// In microseconds since the Unix epoch.
    At(u64),
}

impl Moment {
    /// Reads `2026-11-16` or `2026-11-16T01:47:11Z`.
    pub(crate) fn read(text: &str) -> Option<Moment> {
        let (day, clock) = match text.trim_end_matches('Z').split_once(['T', ' ']) {
            Some((day, clock)) => (day, Some(clock)),
            None => (text, None),
        };
        let numbers = |text: &str, by: char| -> Option<[u64; 3]> {
            let parts: Option<Vec<u64>> = text.split(by).map(|part| part.parse().ok()).collect();
            parts?.try_into().ok()
        };
        let [year, month, day] = numbers(day, '-')?;
        let [hour, minute, second] = clock.map_or(Some([0; 3]), |clock| numbers(clock, ':'))?;
        let is_possible = (1970..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !is_possible {
            return None;
        }
        let (month, year) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
        let of_year = (153 * month + 2) / 5 + day - 1;
        let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year - EPOCH_DAYS;
        let secs = days * DAY_SECS + hour * 3_600 + minute * 60 + second;
        Some(Moment::At(secs * 1_000_000))
    }

    /// In microseconds since the Unix epoch.
    pub(crate) fn unix_us(self, now_us: u64) -> u64 {
        match self {
            Moment::At(us) => us,
            Moment::Ago(ago) => {
                now_us.saturating_sub(u64::try_from(ago.as_micros()).unwrap_or(u64::MAX))
            }
        }
    }
}

/// Reads how long an answer holds.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    let days = LIFETIME_MAX.as_secs() / DAY_SECS;
    let expected = format!("expected how long, such as `30m`, `8h` or `7d`, up to `{days}d`");
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let unit_secs = match unit {
        "m" => 60,
        "h" => 60 * 60,
        "d" => DAY_SECS,
        _ => return Err(expected),
    };
    let number: u64 = number.parse().map_err(|_| expected.clone())?;
    let lifetime = Duration::from_secs(number.saturating_mul(unit_secs));
    let is_some = lifetime > Duration::ZERO && lifetime <= LIFETIME_MAX;
    if is_some { Ok(lifetime) } else { Err(expected) }
}
