//! Compares two runs, call by call.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::compare::{Place, read};
use crate::fault::clip;
use crate::id::{CallNo, RunId};
use crate::tape::{Event, Record};

/// The most calls of a run that are aligned by what they are; beyond, by their place.
pub const DIFF_CALLS_MAX: usize = 4_000;
/// The most differences of one call that are told.
pub const DIFF_CHANGES_MAX: usize = 100;
/// The most bytes of a value that is told in words.
const SHOWN_BYTES_MAX: usize = 200;

/// How two runs differ, aligned by their calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// The two runs.
    pub runs: (RunId, RunId),
    /// Their calls, side by side.
    pub calls: Vec<CallDiff>,
    /// How their ends differ.
    pub end: Vec<Change>,
}

/// A call of one run, and the call of the other that it goes with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallDiff {
    /// The tool's name.
    pub tool: String,
    /// The call of the left run.
    pub left: Option<CallNo>,
    /// The call of the right run.
    pub right: Option<CallNo>,
    /// What differs, where there are both.
    pub changes: Vec<Change>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What is there in the left run.
    pub left: Option<Value>,
    /// What is there in the right run.
    pub right: Option<Value>,
}

impl Diff {
    /// Compares two runs by their records. `None` where one has none.
    pub fn of(left: &[Record], right: &[Record]) -> Option<Diff> {
        let runs = (left.first()?.run, right.first()?.run);
        let end = changes(&end(left), &end(right));
        let (left, right) = (calls(left), calls(right));
        let (left_calls, right_calls): (Vec<_>, Vec<_>) =
            (left.iter().collect(), right.iter().collect());
        let calls = aligned(&left_calls, &right_calls).into_iter().map(|pair| {
            let (left, right) = (pair.0.map(|at| left_calls[at]), pair.1.map(|at| right_calls[at]));
            let tool = left.or(right).map(|(_, call)| call.name.clone()).unwrap_or_default();
            let changed = left.zip(right).map(|(left, right)| changes(&left.1.told, &right.1.told));
            CallDiff {
                tool,
                left: left.map(|(no, _)| *no),
                right: right.map(|(no, _)| *no),
                changes: changed.unwrap_or_default(),
            }
        });
        Some(Diff { runs, calls: calls.collect(), end })
    }

    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.end.is_empty() && self.calls.iter().all(CallDiff::is_same)
    }
}

impl CallDiff {
    /// Whether both runs have the call, and it is the same.
    pub fn is_same(&self) -> bool {
        self.left.is_some() && self.right.is_some() && self.changes.is_empty()
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "left  {}\nright {}", self.runs.0, self.runs.1)?;
        for call in &self.calls {
            let number = |no: Option<CallNo>| no.map_or("–".to_owned(), |no| no.to_string());
            let mark = match (call.left, call.right) {
                (Some(_), Some(_)) if call.is_same() => ' ',
                (Some(_), Some(_)) => '~',
                (Some(_), None) => '-',
                (None, Some(_) | None) => '+',
            };
            let (left, right) = (number(call.left), number(call.right));
            writeln!(f, "{mark} {left:>5} {right:>5}  {}", call.tool)?;
            call.changes.iter().try_for_each(|change| writeln!(f, "{change}"))?;
        }
        self.end.iter().try_for_each(|change| writeln!(f, "{change}"))?;
        let differ = self.calls.iter().filter(|call| !call.is_same()).count();
        match (differ, self.end.is_empty()) {
            (0, true) => f.write_str("no difference"),
            (0, false) => f.write_str("every call is the same; the ends differ"),
            (differ, _) => write!(f, "{differ} of {} calls differ", self.calls.len()),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| match value {
            None => "(nothing)".to_owned(),
            Some(value) => clip(value.to_string(), SHOWN_BYTES_MAX),
        };
        writeln!(f, "      {}", self.pointer)?;
        writeln!(f, "        left  {}", shown(&self.left))?;
        write!(f, "        right {}", shown(&self.right))
    }
}

/// A call, as a reader of two runs compares it.
#[derive(Default)]
struct Told {
    name: String,
    arguments: Value,
    told: Value,
}

fn calls(records: &[Record]) -> BTreeMap<CallNo, Told> {
    let mut calls: BTreeMap<CallNo, Told> = BTreeMap::new();
    for record in records {
        let Some(no) = record.event.call() else { continue };
        let call = calls.entry(no).or_default();
        match &record.event {
            Event::Proposed(facts) => {
                call.name = facts.name.to_string();
                let text = || Value::String(facts.arguments.to_string());
                call.arguments = serde_json::from_str(&facts.arguments).unwrap_or_else(|_| text());
                call.told = json!({ "arguments": call.arguments, "attempts": 0 });
            }
            Event::Judged { verdict, rule, .. } => {
                call.told["verdict"] = (*verdict).into();
                call.told["rule"] = rule.to_string().into();
            }
            Event::Answered { yes, .. } => call.told["answered"] = (*yes).into(),
            Event::Started { attempt, .. } => call.told["attempts"] = (*attempt).into(),
            Event::Settled(reply) => {
                let mut settled = read(&record.event);
                let members = ["executed", "fault", "value", "content", "stop", "tool_id"];
                members.iter().for_each(|it| call.told[*it] = settled[*it].take());
                if reply.value.is_some() {
                    // What a model reads follows from the value.
                    call.told["content"] = Value::Null;
                }
            }
            _ => {}
        }
    }
    calls
}

/// How a run ended.
fn end(records: &[Record]) -> Value {
    let ended = records.iter().rev().find(|it| matches!(it.event, Event::RunEnded { .. }));
    ended.map_or(Value::Null, |record| read(&record.event))
}

/// All places where two values differ.
fn changes(left: &Value, right: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    Place::all(left, right, DIFF_CHANGES_MAX, |Place { pointer, recorded, now }| {
        changes.push(Change { pointer, left: recorded, right: now });
    });
    changes
}

type Numbered<'c> = (&'c CallNo, &'c Told);

/// Which calls go together: those that are alike, in their order; between them, those of one tool.
fn aligned(left: &[Numbered<'_>], right: &[Numbered<'_>]) -> Vec<(Option<usize>, Option<usize>)> {
    let alike = |at: usize, to: usize| {
        let (left, right) = (left[at].1, right[to].1);
        left.name == right.name && left.arguments == right.arguments
    };
    let anchors = match left.len().max(right.len()) <= DIFF_CALLS_MAX {
        true => longest(left.len(), right.len(), alike),
        false => Vec::new(),
    };
    let (mut pairs, mut at, mut to) = (Vec::new(), 0, 0);
    for (next_at, next_to) in anchors.into_iter().chain([(left.len(), right.len())]) {
        while at < next_at || to < next_to {
            let same_tool = at < next_at && to < next_to && left[at].1.name == right[to].1.name;
            let pair = match (same_tool, at < next_at) {
                (true, _) => (Some(at), Some(to)),
                (false, true) => (Some(at), None),
                (false, false) => (None, Some(to)),
            };
            (at, to) = (at + usize::from(pair.0.is_some()), to + usize::from(pair.1.is_some()));
            pairs.push(pair);
        }
        if next_at < left.len() {
            pairs.push((Some(next_at), Some(next_to)));
            (at, to) = (next_at + 1, next_to + 1);
        }
    }
    pairs
}

/// The longest common sequence of two, as pairs of places.
fn longest(left: usize, right: usize, alike: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    // Most runs that are compared begin and end alike, and only the middle costs its square.
    let head = (0..left.min(right)).take_while(|at| alike(*at, *at)).count();
    let (left_rest, right_rest) = (left - head, right - head);
    let tail = (1..=left_rest.min(right_rest)).take_while(|it| alike(left - it, right - it));
    let tail = tail.count();
    let (rows, columns) = (left_rest - tail, right_rest - tail);
    let mut lengths = vec![0u16; (rows + 1) * (columns + 1)];
    let place = |row: usize, column: usize| row * (columns + 1) + column;
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            lengths[place(row, column)] = match alike(head + row, head + column) {
                true => lengths[place(row + 1, column + 1)] + 1,
                false => lengths[place(row + 1, column)].max(lengths[place(row, column + 1)]),
            };
        }
    }
    let (mut pairs, mut row, mut column) = ((0..head).map(|at| (at, at)).collect::<Vec<_>>(), 0, 0);
    while row < rows && column < columns {
        if alike(head + row, head + column) {
            pairs.push((head + row, head + column));
            (row, column) = (row + 1, column + 1);
        } else if lengths[place(row + 1, column)] >= lengths[place(row, column + 1)] {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs.extend((0..tail).rev().map(|it| (left - 1 - it, right - 1 - it)));
    pairs
}
