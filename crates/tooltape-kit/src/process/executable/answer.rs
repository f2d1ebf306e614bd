//! What a program answers: one JSON document, or lines of progress and then a result or an error.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tooltape::{Output, Progress, ToolError};

use crate::workspace::shown;

/// The most bytes of a line that is looked at while the program runs.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The most bytes of what is no answer that a message shows.
const SHOWN_BYTES_MAX: usize = 120;
/// The longest pause that a program may ask for.
const RETRY_MAX: Duration = Duration::from_secs(3_600);

/// Tells of progress while a program writes.
#[derive(Default)]
pub(super) struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// Reads what was written, and says what each whole line of progress says.
    pub(super) fn read(&mut self, bytes: &[u8], progress: &Progress) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() <= LINE_BYTES_MAX {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                if let Ok(Some(Said::Progress(told))) = said(&self.line) {
                    progress.say(told);
                }
                self.line.clear();
            }
        }
    }
}

/// What one document says.
enum Said {
    Progress(String),
    Result(Value),
    Error(Failure),
}

/// Why a program could not do it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a `message`")]
struct Failure {
    /// What the model reads.
    message: String,
    /// A stable code for programs.
    code: Option<String>,
    /// After how many seconds it may be tried again.
    retry: Option<f64>,
    /// Whether nothing was done.
    #[serde(default)]
    not_done: bool,
    /// What only the host reads.
    details: Option<Value>,
}

/// Reads a document with one key that is known; another is nothing that was said.
fn said(bytes: &[u8]) -> Result<Option<Said>, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|err| err.to_string())?;
    let only = value.as_object().filter(|object| object.len() == 1);
    let Some((key, value)) = only.and_then(|object| object.iter().next()) else {
        return Ok(None);
    };
    Ok(match key.as_str() {
        "progress" => {
            let told = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Some(Said::Progress(told))
        }
        "result" => Some(Said::Result(value.clone())),
        "error" => {
            let failure = Failure::deserialize(value).map_err(|err| format!("`error`: {err}"))?;
            Some(Said::Error(failure))
        }
        _ => None,
    })
}

/// The result of a program that succeeded, by all that it wrote.
pub(super) fn result(bytes: &[u8]) -> Result<Output, ToolError> {
    match all_said(bytes)? {
        Said::Result(value) => Output::value(&value),
        Said::Error(failure) => Err(failed(failure)),
        Said::Progress(_) => Err(unanswered("it told of progress and of no result", "no_result")),
    }
}

/// Why a program failed, if it said so.
pub(super) fn reason(bytes: &[u8]) -> Option<ToolError> {
    match all_said(bytes) {
        Ok(Said::Error(failure)) => Some(failed(failure)),
        Ok(Said::Result(_) | Said::Progress(_)) | Err(_) => None,
    }
}

/// The last that a program said, and nothing else may follow an answer.
fn all_said(bytes: &[u8]) -> Result<Said, ToolError> {
    let bytes = bytes.trim_ascii();
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        let said = said(bytes).map_err(|why| unanswered(&why, "bad_output"))?;
        return Ok(said.unwrap_or(Said::Result(value)));
    }
    let mut last = None;
    for (at, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(Said::Result(_) | Said::Error(_)) = last {
            let why = format!("line {at} comes after its answer, expected nothing");
            return Err(unanswered(&why, "bad_output"));
        }
        let found = said(line).ok().flatten().ok_or_else(|| {
            let line = shown(&String::from_utf8_lossy(line), SHOWN_BYTES_MAX);
            let expected = "expected one JSON document, or lines of `progress` and a `result`";
            unanswered(&format!("line {at} is `{line}`, {expected}"), "bad_output")
        })?;
        last = Some(found);
    }
    last.ok_or_else(|| unanswered("it wrote nothing", "no_result"))
}

fn failed(failure: Failure) -> ToolError {
    let Failure { message, code, retry, not_done, details } = failure;
    let err = match retry {
        Some(seconds) => {
            let wait = Duration::try_from_secs_f64(seconds).unwrap_or(RETRY_MAX);
            ToolError::retry_after(wait.min(RETRY_MAX), message)
        }
        None if not_done => ToolError::not_done(message),
        None => ToolError::tell(message),
    };
    let err = err.code(code.unwrap_or_else(|| "program_failed".to_owned()));
    details.into_iter().fold(err, ToolError::details)
}

/// Says that a program gave no answer, though it ran.
fn unanswered(why: &str, code: &str) -> ToolError {
    ToolError::tell(format!("the program gave no answer: {why}")).code(code)
}
