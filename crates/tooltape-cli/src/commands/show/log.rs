//! A run as a log: one line for each event, searchable.

use tooltape::{Event, Record};

use crate::escape;
use crate::out::{FAINT, paint};
use crate::reel::Reel;
use crate::tell::elapsed;

/// How many characters of what an event says a line shows.
const SAID_CHARS: usize = 160;
/// What a line says in columns of its own.
const KNOWN: [&str; 6] = ["at_us", "call", "run", "seq", "type", "v"];

/// The lines of the run, and behind them those of the runs that it started.
pub(super) fn lines(reel: &Reel) -> Vec<String> {
    let start_us = reel.records.first().map_or(0, |record| record.at_us);
    let mut lines: Vec<String> = reel.records.iter().map(|record| line(record, start_us)).collect();
    for nested in &reel.nested {
        lines.push(paint(FAINT, format!("run {}", nested.id)));
        lines.extend(self::lines(nested));
    }
    lines
}

/// One event: its place, when it happened, what it is, and what it says.
pub(crate) fn line(record: &Record, start_us: u64) -> String {
    let call = record.event.call().map_or(String::new(), |call| call.to_string());
    let after = elapsed(record.at_us.saturating_sub(start_us));
    let stamp = paint(FAINT, format!("{:>5} +{after:<9}", record.seq));
    let said = escape::clipped(&said(record), SAID_CHARS);
    format!("{stamp} {:<14} {call:>4} {said}", record.event.kind()).trim_end().to_owned()
}

fn said(record: &Record) -> String {
    if let Event::Settled(reply) = &record.event {
        let how = if reply.is_error { "error" } else { "ok" };
        return format!("{} {how} {}", reply.name, reply.text());
    }
    let Ok(serde_json::Value::Object(mut said)) = serde_json::to_value(record) else {
        return String::new();
    };
    said.retain(|name, value| !KNOWN.contains(&name.as_str()) && !value.is_null());
    let parts = said.iter().map(|(name, value)| format!("{name}={value}"));
    parts.collect::<Vec<_>>().join(" ")
}
