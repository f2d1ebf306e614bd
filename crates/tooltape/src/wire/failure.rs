//! What went wrong at a provider, in words that are safe to show.

use std::fmt;

use serde_json::Value;

use super::{Api, SseError};
use crate::fault::clip;
use crate::model::ModelError;
use crate::visible;

/// The bytes that are looked at of what a server says instead of an answer.
pub const REFUSAL_BYTES_MAX: usize = 256 << 10;

/// The bytes that are shown of what a server said.
const SAID_BYTES_MAX: usize = 1_024;
/// The bytes that are shown of what is no JSON of its API.
const STRANGE_BYTES_MAX: usize = 200;
/// What keys begin with.
const KEY_PREFIXES: [&str; 10] =
    ["sk-", "sk_", "AIza", "gsk_", "xai-", "pplx-", "hf_", "key-", "ya29.", "eyJ"];
/// What Gemini calls a key that is none, in a request that it calls invalid.
const BAD_KEY: &str = "\"API_KEY_INVALID\"";
/// The characters from which on a word could be a key, where a key was refused.
const KEY_CHARS_MIN: usize = 20;

impl From<SseError> for ModelError {
    fn from(err: SseError) -> ModelError {
        ModelError::Garbled(err.to_string())
    }
}

/// Why a server refused to answer, by the status and the body of what it sent instead.
///
/// A server wants another key (401, 403, or what Gemini says of one that is none), is busy or
/// broken (408, 409, 429 and from 500 on), or refuses the request. No more than
/// [`REFUSAL_BYTES_MAX`] of the body are looked at, and what is shown of it is short, on one line,
/// and without what looks like a key.
///
/// ```
/// use tooltape::ModelError;
/// use tooltape::wire::{Api, refusal};
///
/// let body = br#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
/// let busy = ModelError::Busy { status: 529, told: "Overloaded".into() };
/// assert_eq!(refusal(Api::Anthropic, 529, body), busy);
/// ```
pub fn refusal(api: Api, status: u16, body: &[u8]) -> ModelError {
    let body = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_BYTES_MAX)]);
    let status = if body.contains(BAD_KEY) { 401 } else { status };
    let said = serde_json::from_str::<Value>(&body).ok().and_then(|value| message(&value));
    let told = match said {
        Some(said) => shown(&said, status),
        None if body.trim().is_empty() => "it said nothing about it".to_owned(),
        None => {
            let shown = shown(&clip(body.trim().to_owned(), STRANGE_BYTES_MAX), status);
            format!("no JSON of `{api}`: `{shown}`")
        }
    };
    by_status(status, told)
}

/// An error that a provider tells in the midst of what it says.
pub(super) fn told(error: &str) -> ModelError {
    let error = &error[..error.floor_char_boundary(REFUSAL_BYTES_MAX)];
    let value: Value = serde_json::from_str(error).unwrap_or(Value::Null);
    let Some(status) = status(&value) else {
        let said = message(&value).unwrap_or_else(|| clip(error.to_owned(), STRANGE_BYTES_MAX));
        return ModelError::Failed(shown(&said, 0));
    };
    let said = message(&value).unwrap_or_else(|| "it said nothing about it".to_owned());
    by_status(status, shown(&said, status))
}

/// What came is not what this API says.
pub(super) fn garbled(why: &dyn fmt::Display, said: &str) -> ModelError {
    let said = &said[..said.floor_char_boundary(REFUSAL_BYTES_MAX)];
    let said = visible::line(&clip(said.to_owned(), STRANGE_BYTES_MAX)).into_owned();
    ModelError::Garbled(format!("{why} in `{}`", keyless(&said, 0)))
}

fn by_status(status: u16, told: String) -> ModelError {
    match status {
        401 | 403 => ModelError::Unauthorised(told),
        408 | 409 | 429 | 500.. => ModelError::Busy { status, told },
        _ => ModelError::Rejected { status, told },
    }
}

/// What a body says in words.
fn message(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => values.iter().find_map(message),
        Value::Object(fields) => {
            let said = ["error", "message", "detail", "errors", "msg", "error_msg"];
            said.iter().filter_map(|name| fields.get(*name)).find_map(message)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The status that an error in a stream would have had as an answer, where it says so.
fn status(value: &Value) -> Option<u16> {
    let error = value.get("error").filter(|error| error.is_object()).unwrap_or(value);
    let numbers = ["status_code", "code", "raw_status_code"];
    let numbers = numbers.iter().filter_map(|name| error.get(*name)?.as_u64());
    let number = numbers.filter_map(|number| u16::try_from(number).ok()).find(|it| *it >= 400);
    number.or_else(|| {
        let words = ["type", "code", "status"];
        words.iter().find_map(|name| by_word(error.get(*name)?.as_str()?))
    })
}

fn by_word(word: &str) -> Option<u16> {
    Some(match word {
        "invalid_request_error" | "invalid_prompt" | "INVALID_ARGUMENT" => 400,
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "RESOURCE_EXHAUSTED" => 429,
        "api_error" | "server_error" | "internal_server_error" | "INTERNAL" => 500,
        "UNAVAILABLE" => 503,
        "timeout_error" | "DEADLINE_EXCEEDED" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

fn shown(said: &str, status: u16) -> String {
    let said = visible::line(said.trim()).into_owned();
    clip(keyless(&said, status), SAID_BYTES_MAX)
}

/// The text without what looks like a key. Where a key was refused, any long word does.
fn keyless(said: &str, status: u16) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_.*+/=~".contains(c);
    let mut rest = said;
    let mut kept = String::with_capacity(said.len());
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_of_word(c) != is_of_word(first)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        kept.push_str(if is_of_word(first) && is_key(word, status) { "[key]" } else { word });
        rest = tail;
    }
    kept
}

fn is_key(word: &str, status: u16) -> bool {
    let is_long = word.len() >= KEY_CHARS_MIN && word.contains(|c: char| c.is_ascii_digit());
    let is_named = KEY_PREFIXES.iter().any(|it| word.len() > it.len() + 4 && word.starts_with(it));
    is_named || (matches!(status, 401 | 403) && is_long && !word.contains("//"))
}
