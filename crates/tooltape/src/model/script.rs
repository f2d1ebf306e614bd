//! A model that plays a file: one turn a line.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::{Model, ModelError, Request, Turn, TurnStop, again};
use crate::proposal::Proposal;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::tape::{Event, Record};
use crate::tool::BoxFuture;

/// A model that takes the turns it is given, in their order. For examples, tests and demos.
///
/// A script file has one JSON object a line; `docs/script-format.md` specifies it.
///
/// ```
/// use tooltape::Script;
///
/// let script = Script::parse(r#"
///     {"ask": "What is the hash of nothing?"}
///     {"say": "Let me see.", "calls": [{"tool": "hash", "args": {"text": ""}}]}
///     {"say": "af1349b9…"}
/// "#).unwrap();
/// assert_eq!(script.question(), Some("What is the hash of nothing?"));
/// assert_eq!(script.turns().len(), 2);
///
/// let err = Script::parse(r#"{"sya": "hello"}"#).unwrap_err();
/// assert_eq!((err.line, err.column), (1, 6));
/// ```
#[derive(Debug)]
pub struct Script {
    question: Option<Arc<str>>,
    turns: Vec<Turn>,
    taken: AtomicUsize,
}

impl Script {
    /// A script of these turns.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Script {
        Script { question: None, turns: turns.into_iter().collect(), taken: AtomicUsize::new(0) }
    }

    /// Reads a script file. Nothing is guessed: an unknown key is an error with its place.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let mut script = Script::new([]);
        let mut calls = 0;
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let parsed: Line = serde_json::from_str(line).map_err(|err| ScriptError {
                line: at + 1,
                column: err.column(),
                message: plain(&err),
            })?;
            let err = |message: &str| {
                Err(ScriptError { line: at + 1, column: 1, message: message.into() })
            };
            match parsed {
                Line { ask: Some(_), say: None, calls: None, stop: None }
                    if script.question.is_some() || !script.turns.is_empty() =>
                {
                    return err("`ask` stands only in the first line");
                }
                Line { ask: Some(ask), say: None, calls: None, stop: None } => {
                    script.question = Some(ask.into());
                }
                Line { ask: Some(_), .. } => return err("`ask` stands alone in its line"),
                Line { ask: None, say: None, calls: None, .. } => {
                    return err("expected `ask`, `say` or `calls`");
                }
                Line { ask: None, say, calls: proposed, stop } => {
                    script.turns.push(turn(say, proposed.unwrap_or_default(), stop, &mut calls));
                }
            }
        }
        Ok(script)
    }

    /// The script of a recorded run: what was asked first, and all turns that its model took.
    ///
    /// [Displayed](fmt::Display), it is the file that plays the run again without its model.
    pub fn recorded(records: &[Record]) -> Script {
        let mut script = Script::new([]);
        for record in records {
            match &record.event {
                Event::Asked { text } if script.turns.is_empty() => {
                    script.question.get_or_insert_with(|| text.clone());
                }
                Event::Turn(turn) => script.turns.push(again(turn)),
                _ => {}
            }
        }
        script
    }

    /// What the script's first line asks, if it asks.
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }

    /// The turns, in their order.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }
}

fn turn(say: Option<String>, calls: Vec<CallLine>, stop: Option<StopWord>, no: &mut usize) -> Turn {
    let proposals = calls.into_iter().map(|call| {
        *no += 1;
        let id = call.id.unwrap_or_else(|| format!("call_{no}"));
        Proposal::new(id, call.tool, call.arguments.text())
    });
    let mut turn = Turn::calls(proposals);
    turn.text = say.map(Into::into);
    turn.stopped(match stop {
        None => TurnStop::Done,
        Some(StopWord::Length) => TurnStop::Length,
        Some(StopWord::Refused) => TurnStop::Refused,
        Some(StopWord::Cut) => TurnStop::Cut,
    })
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(question) = &self.question {
            writeln!(f, "{}", json!({ "ask": question }))?;
        }
        for turn in &self.turns {
            writeln!(f, "{}", serde_json::to_string(&Written(turn)).map_err(|_| fmt::Error)?)?;
        }
        Ok(())
    }
}

/// A turn as a line of a script.
struct Written<'a>(&'a Turn);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Written(turn) = self;
        let mut line = serializer.serialize_map(None)?;
        // A line says something or proposes something, even where its turn did neither.
        if turn.text.is_some() || turn.proposals.is_empty() {
            line.serialize_entry("say", turn.text.as_deref().unwrap_or_default())?;
        }
        if !turn.proposals.is_empty() {
            let calls: Vec<_> = turn.proposals.iter().map(WrittenCall::new).collect();
            line.serialize_entry("calls", &calls)?;
        }
        match turn.stop {
            TurnStop::Done => {}
            stop => line.serialize_entry("stop", stop.word())?,
        }
        line.end()
    }
}

/// A call as a script writes it: arguments that are JSON keep their spelling.
#[derive(Serialize)]
struct WrittenCall<'a> {
    id: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

impl<'a> WrittenCall<'a> {
    fn new(proposal: &'a Proposal) -> WrittenCall<'a> {
        let text = &**proposal.text();
        // A line break would end the line of the script.
        let args: Option<&RawValue> = serde_json::from_str(text).ok();
        let args = args.filter(|args| args.get() == text && !text.contains(['\n', '\r']));
        let text = args.is_none().then_some(text);
        WrittenCall { id: &proposal.id, tool: &proposal.name, args, text }
    }
}

impl Model for Script {
    fn turn<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        Box::pin(async move { next(&self.turns, &self.taken) })
    }
}

/// The next of some turns, each taken once.
pub(super) fn next(turns: &[Turn], taken: &AtomicUsize) -> Result<Turn, ModelError> {
    let at = taken.fetch_add(1, Ordering::SeqCst);
    turns.get(at).cloned().ok_or(ModelError::Over { turn: at + 1, turns: turns.len() })
}

/// Where a script is wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ScriptError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// The message without the place, which is said already.
fn plain(err: &serde_json::Error) -> String {
    let text = err.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    ask: Option<String>,
    say: Option<String>,
    calls: Option<Vec<CallLine>>,
    stop: Option<StopWord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopWord {
    Length,
    Refused,
    Cut,
}

struct CallLine {
    id: Option<String>,
    tool: String,
    arguments: Spelled,
}

/// Arguments, as JSON that keeps its spelling or as any text at all.
enum Spelled {
    Json(Box<RawValue>),
    Text(String),
}

impl Spelled {
    fn text(self) -> String {
        match self {
            Spelled::Json(json) => json.get().to_owned(),
            Spelled::Text(text) => text,
        }
    }
}

impl<'de> Deserialize<'de> for CallLine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<CallLine, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Keys {
            id: Option<String>,
            tool: String,
            args: Option<Box<RawValue>>,
            text: Option<String>,
        }
        let Keys { id, tool, args, text } = Keys::deserialize(deserializer)?;
        let arguments = match (args, text) {
            (Some(args), None) => Spelled::Json(args),
            (None, Some(text)) => Spelled::Text(text),
            (None, None) => Spelled::Text(String::new()),
            (Some(_), Some(_)) => {
                let message = "expected one of `args` and `text`, found both";
                return Err(serde::de::Error::custom(message));
            }
        };
        Ok(CallLine { id, tool, arguments })
    }
}
