//! A difference between what was recorded and what happens now, as people and programs read it.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::causes::Cause;
use crate::fault::clip;
use crate::id::CallNo;

/// The characters of one of the two columns.
const COLUMN_CHARS: usize = 38;
/// The most lines of one of the two columns.
const COLUMN_LINES_MAX: usize = 24;

/// Which stage of the path comes to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// How the run begins.
    Run,
    /// The conversation with the model.
    Model,
    /// Finding the tool and reading its arguments.
    Resolve,
    /// The policy.
    Policy,
    /// The tool itself, or how its result is finished.
    Tool,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stage::Run => "run",
            Stage::Model => "model",
            Stage::Resolve => "resolve",
            Stage::Policy => "policy",
            Stage::Tool => "tool",
        })
    }
}

/// The place where a replay differs from its recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Divergence {
    /// The record that differs.
    pub seq: u64,
    /// What kind of event it is.
    pub event: String,
    /// The call, where it is one's.
    pub call: Option<CallNo>,
    /// The tool of the call, by name and version as recorded, or by name alone.
    pub tool: Option<String>,
    /// The stage that comes to something else.
    pub source: Stage,
    /// Where in the event, as a JSON pointer.
    pub pointer: String,
    /// What is recorded there.
    pub recorded: Option<Value>,
    /// What is there now.
    pub now: Option<Value>,
    /// What may have led to it, most likely first.
    pub causes: Vec<Cause>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} `{}`", self.seq, self.event)?;
        if let Some(call) = self.call {
            write!(f, " of call {call}")?;
        }
        if let Some(tool) = &self.tool {
            write!(f, " to `{tool}`")?;
        }
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        writeln!(f, " differs at `{pointer}` (source: {})", self.source)?;
        let (recorded, now) = (column(&self.recorded), column(&self.now));
        writeln!(f, "  {:COLUMN_CHARS$} | now", "recorded")?;
        writeln!(f, "  {:-<COLUMN_CHARS$}-+-{:-<COLUMN_CHARS$}", "", "")?;
        for at in 0..recorded.len().max(now.len()) {
            let line = |column: &[String]| column.get(at).cloned().unwrap_or_default();
            let row = format!("  {:COLUMN_CHARS$} | {}", line(&recorded), line(&now));
            writeln!(f, "{}", row.trim_end())?;
        }
        f.write_str("  likely causes:")?;
        for (at, cause) in self.causes.iter().enumerate() {
            write!(f, "\n    {}. {cause}", at + 1)?;
        }
        Ok(())
    }
}

/// A value as the lines of a column.
fn column(value: &Option<Value>) -> Vec<String> {
    let Some(value) = value else { return vec!["(nothing)".to_owned()] };
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let text = clip(text, COLUMN_CHARS * COLUMN_LINES_MAX);
    let lines = text.lines().flat_map(|line| {
        let chars: Vec<char> = line.chars().collect();
        let parts = chars.chunks(COLUMN_CHARS).map(|part| part.iter().collect::<String>());
        parts.collect::<Vec<_>>()
    });
    let mut lines: Vec<String> = lines.collect();
    if lines.len() > COLUMN_LINES_MAX {
        lines.truncate(COLUMN_LINES_MAX - 1);
        lines.push("…".to_owned());
    }
    lines
}
