//! A run as a waterfall: when each call waited, was asked about, and ran.

use std::collections::BTreeMap;

use comfy_table::Table;
use tooltape::{CallNo, Event};

use super::header;
use crate::escape;
use crate::out::{BAD, FAINT, GOOD, paint};
use crate::reel::Reel;
use crate::tell::elapsed;

/// The columns of the drawing where no terminal says otherwise.
const COLUMNS_DEFAULT: usize = 100;
/// The fewest columns of the bars.
const BAR_MIN: usize = 20;
/// The columns of a call's name.
const NAME_COLUMNS: usize = 22;
/// The columns that stand beside the name and the bars.
const BESIDE_COLUMNS: usize = 24;

/// When what became of a call, in microseconds.
#[derive(Default)]
struct Row {
    name: String,
    proposed: u64,
    /// When somebody answered.
    answered: Option<u64>,
    /// When each attempt started.
    started: Vec<u64>,
    /// When each attempt but the last failed.
    failed: Vec<u64>,
    settled: Option<(u64, bool)>,
}

/// Draws the run.
pub(super) fn draw(reel: &Reel) -> String {
    let mut lines = header(reel);
    let legend = "░ waits  ▒ somebody is asked  █ runs  ╌ not settled";
    lines.push(paint(FAINT, legend));
    lines.extend(waterfall(reel, 0));
    lines.join("\n")
}

fn waterfall(reel: &Reel, indent: usize) -> Vec<String> {
    let first = reel.records.first().map_or(0, |record| record.at_us);
    let last = reel.records.last().map_or(0, |record| record.at_us);
    let columns = Table::new().width().map_or(COLUMNS_DEFAULT, usize::from);
    let width = columns.saturating_sub(NAME_COLUMNS + BESIDE_COLUMNS + indent).max(BAR_MIN);
    let scale = Scale { first, span: last.saturating_sub(first).max(1), width };
    let mut lines = vec![paint(
        FAINT,
        format!("{:indent$}{:>7} {:NAME_COLUMNS$} 0{:>width$}", "", "", "", elapsed(scale.span)),
    )];
    for (call, row) in rows(reel) {
        let (time, mark) = match row.settled {
            Some((at, false)) => (elapsed(at - row.proposed), paint(GOOD, "✓")),
            Some((at, true)) => (elapsed(at - row.proposed), paint(BAD, "✗")),
            None => ("not settled".to_owned(), "…".to_owned()),
        };
        let attempts = match row.started.len() {
            0 | 1 => String::new(),
            many => format!(" ×{many}"),
        };
        let name = escape::clipped(&row.name, NAME_COLUMNS);
        let (no, bar) = (call.to_string(), scale.bar(&row, last));
        lines.push(format!(
            "{:indent$}{mark} {no:>5} {name:NAME_COLUMNS$} {bar} {time}{attempts}",
            ""
        ));
        for nested in reel.nested_in(call) {
            lines.extend(waterfall(nested, indent + 2));
        }
    }
    lines
}

/// What part of a bar shows what.
struct Scale {
    first: u64,
    span: u64,
    width: usize,
}

impl Scale {
    fn column(&self, at: u64) -> usize {
        let at = u128::from(at.saturating_sub(self.first)) * self.width as u128;
        usize::try_from(at / u128::from(self.span)).unwrap_or(self.width).min(self.width - 1)
    }

    fn bar(&self, row: &Row, last: u64) -> String {
        let mut cells = vec![' '; self.width];
        let mut fill = |from: u64, to: u64, cell: char| {
            cells[self.column(from)..=self.column(to)].fill(cell);
        };
        let end = row.settled.map_or(last, |(at, _)| at);
        fill(row.proposed, row.started.first().copied().unwrap_or(end), '░');
        if let Some(answered) = row.answered {
            fill(row.proposed, answered, '▒');
        }
        let ran = if row.settled.is_some() { '█' } else { '╌' };
        for (at, started) in row.started.iter().enumerate() {
            fill(*started, row.failed.get(at).copied().unwrap_or(end), ran);
        }
        for (failed, next) in row.failed.iter().zip(row.started.iter().skip(1)) {
            fill(*failed, *next, '░');
        }
        cells.into_iter().collect()
    }
}

fn rows(reel: &Reel) -> BTreeMap<CallNo, Row> {
    let mut rows: BTreeMap<CallNo, Row> = BTreeMap::new();
    for record in &reel.records {
        let Some(call) = record.event.call() else { continue };
        let (row, at) = (rows.entry(call).or_default(), record.at_us);
        match &record.event {
            Event::Proposed(facts) => {
                (row.name, row.proposed) = (facts.name.to_string(), at);
            }
            Event::CallAsked(question) if question.attempt.is_none() => row.answered = None,
            Event::Answered { .. } => row.answered = Some(at),
            Event::Started { .. } => row.started.push(at),
            Event::Retried { .. } => row.failed.push(at),
            Event::Settled(reply) => row.settled = Some((at, reply.is_error)),
            _ => {}
        }
    }
    rows
}
