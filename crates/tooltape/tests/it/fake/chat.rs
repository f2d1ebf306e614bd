//! Chat Completions, as OpenAI publishes them, and as Mistral and many others differ from it.

use std::borrow::Cow;

use serde_json::{Value, json};
use tooltape::dialect::Dialect;
use tooltape::testing::{CallEntry, Entry, ReplyEntry};
use tooltape::wire::Api;

use super::play::{End, Part, Said};
use super::{Asked, MODEL, Refusal, demand, list, only, pieces, text, tools, transcript};
use super::{sealed, unnamed};

/// What a request may say to any of them.
const FIELDS: [&str; 6] =
    ["model", "messages", "tools", "tool_choice", "response_format", "stream"];

pub(super) fn check(api: Api, asked: &Asked<'_>) -> Result<(), Refusal> {
    let body = &asked.seen.body;
    demand(asked.path == "/v1/chat/completions", format!("no such path: {}", asked.path))?;
    asked.has_key("authorization", &format!("Bearer {}", asked.key), "invalid_request_error")?;
    if body["model"] != MODEL {
        let told = format!("The model {} does not exist", body["model"]);
        return Err(Refusal { status: 404, kind: "invalid_request_error", told });
    }
    let more: &[&str] = match api {
        Api::OpenAi => &["max_completion_tokens", "stream_options"],
        Api::Mistral => &["max_tokens"],
        _ => &["max_tokens", "stream_options"],
    };
    only(body, &[&FIELDS, more].concat())?;
    let has_options = body.get("stream_options").is_none() || body["stream"] == true;
    demand(has_options, "`stream_options` is only allowed when `stream` is enabled")?;
    if body.get("tools").is_some() {
        let offered = list(body, "tools")?;
        demand(!offered.is_empty(), "`tools` is empty")?;
        tools(Dialect::OpenAi, offered)?;
    }
    let messages = list(body, "messages")?;
    let entries = entries(api, messages)?;
    let provider = if api == Api::Mistral { "Mistral" } else { "OpenAI Chat" };
    transcript(provider, &entries)?;
    demand(!matches!(entries.last(), Some(Entry::Model { .. })), "the last role is assistant")?;
    if api == Api::Mistral {
        let mut pairs = messages.windows(2);
        let is_broken = pairs.any(|it| it[0]["role"] == "tool" && it[1]["role"] == "user");
        demand(!is_broken, "Unexpected role 'user' after role 'tool'")?;
    }
    asked.shows_thoughts()
}

/// The transcript, each message of which is well-formed.
fn entries(api: Api, messages: &[Value]) -> Result<Vec<Entry<'_>>, Refusal> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match text(message, "role")? {
            "system" => {
                only(message, &["role", "content"])?;
                demand(at == 0, "the system speaks first, or not at all")?;
                text(message, "content")?;
            }
            "user" => {
                only(message, &["role", "content"])?;
                demand(!message["content"].is_null(), "a user says nothing")?;
                entries.push(Entry::User);
            }
            "assistant" => entries.push(spoken(api, message)?),
            "tool" => {
                let name: &[&str] = if api == Api::OpenAi { &[] } else { &["name"] };
                only(message, &[&["role", "content", "tool_call_id"], name].concat())?;
                demand(message["content"].is_string(), "a tool says text")?;
                let reply = ReplyEntry {
                    id: text(message, "tool_call_id")?.into(),
                    name: Cow::Borrowed(""),
                    is_error: false,
                    text: message["content"].as_str().unwrap_or_default().into(),
                };
                match entries.last_mut() {
                    Some(Entry::Replies(replies)) => replies.push(reply),
                    _ => entries.push(Entry::Replies(vec![reply])),
                }
            }
            role => return Err(Refusal::broken(format!("unknown role `{role}`"))),
        }
    }
    Ok(entries)
}

fn spoken(api: Api, message: &Value) -> Result<Entry<'_>, Refusal> {
    let thoughts: &[&str] = if api == Api::Compatible { &["reasoning_content"] } else { &[] };
    only(message, &[&["role", "content", "tool_calls"], thoughts].concat())?;
    let mut calls = Vec::new();
    if message.get("tool_calls").is_some() {
        for call in list(message, "tool_calls")? {
            only(call, &["id", "type", "function"])?;
            only(&call["function"], &["name", "arguments"])?;
            demand(call["type"] == "function", "a call is of a function")?;
            let (id, name) = (text(call, "id")?, text(&call["function"], "name")?);
            demand(id.len() <= 40, "an id has at most 40 characters")?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            demand(name.len() <= 64 && name.chars().all(is_word), "no name of a function")?;
            let arguments = call["function"]["arguments"].as_str();
            demand(arguments.is_some(), "arguments are text")?;
            // The others put them into a prompt as JSON.
            let parses = arguments.is_some_and(|it| serde_json::from_str::<Value>(it).is_ok());
            demand(api == Api::OpenAi || parses, "arguments are text of JSON")?;
            calls.push(CallEntry { id: id.into(), name: name.into() });
        }
        demand(!calls.is_empty(), "`tool_calls` is empty")?;
    }
    let speaks = match &message["content"] {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => false,
    };
    Ok(Entry::Model { speaks, calls })
}

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let Refusal { kind, told, .. } = refusal;
    json!({ "error": { "message": told, "type": kind, "param": null, "code": null } })
}

pub(super) fn refusal_of_mistral(refusal: &Refusal) -> Value {
    let Refusal { kind, told, .. } = refusal;
    json!({ "object": "error", "message": told, "type": kind, "param": null, "code": "3280" })
}

fn usage() -> Value {
    let cached = json!({ "cached_tokens": 4 });
    json!({
        "prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27,
        "prompt_tokens_details": cached,
    })
}

fn reason(said: &Said) -> &'static str {
    match (said.end, said.calls()) {
        (End::TooLong, _) => "length",
        (End::Odd, _) => "bored",
        (End::Done, true) => "tool_calls",
        (End::Done, false) => "stop",
    }
}

/// A thought where this API has it.
fn thinking(api: Api, thought: &str) -> Option<(&'static str, Value)> {
    sealed(api, thought)?;
    Some(match api {
        Api::Mistral => {
            let thinking = json!([{ "type": "text", "text": thought }]);
            ("content", json!([{ "type": "thinking", "thinking": thinking }]))
        }
        _ => ("reasoning_content", thought.into()),
    })
}

pub(super) fn whole(api: Api, said: &Said) -> Value {
    let mut message = json!({ "role": "assistant", "content": null });
    let mut calls = Vec::new();
    for part in &said.parts {
        match part {
            Part::Thought(thought) => {
                if let Some((field, value)) = thinking(api, thought) {
                    message[field] = value;
                }
            }
            Part::Text(text) => match &mut message["content"] {
                Value::Array(parts) => parts.push(json!({ "type": "text", "text": text })),
                content => *content = text.as_str().into(),
            },
            Part::Call(id, name, arguments) => calls.push(called(id, name, arguments)),
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL,
        "choices": [{ "index": 0, "message": message, "finish_reason": reason(said) }],
        "usage": usage(),
    })
}

/// A call. What a server lacks, it leaves out.
fn called(id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({ "type": "function", "function": { "arguments": arguments } });
    if !id.is_empty() {
        call["id"] = id.into();
    }
    if !name.is_empty() {
        call["function"]["name"] = name.into();
    }
    call
}

pub(super) fn events(api: Api, said: &Said) -> Vec<String> {
    let chunk = |delta: Value, reason: Option<&str>| {
        unnamed(&json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        }))
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
    let mut index = 0;
    for part in &said.parts {
        match part {
            Part::Thought(thought) => {
                for piece in pieces(thought) {
                    let thinking = thinking(api, &piece);
                    events.extend(
                        thinking.map(|(field, value)| chunk(json!({ field: value }), None)),
                    );
                }
            }
            Part::Text(text) => {
                let texts = pieces(text);
                events.extend(texts.iter().map(|it| chunk(json!({ "content": it }), None)));
            }
            Part::Call(id, name, arguments) => {
                let mut begun = called(id, name, "");
                begun["index"] = index.into();
                events.push(chunk(json!({ "tool_calls": [begun] }), None));
                for piece in pieces(arguments) {
                    let more = json!({ "index": index, "function": { "arguments": piece } });
                    events.push(chunk(json!({ "tool_calls": [more] }), None));
                }
                index += 1;
            }
        }
    }
    events.push(chunk(json!({}), Some(reason(said))));
    let usage = json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage() });
    events.push(unnamed(&usage));
    events.push("data: [DONE]\n\n".to_owned());
    events
}
