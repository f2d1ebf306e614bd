//! Messages, as Anthropic publishes them.

use std::borrow::Cow;

use serde_json::{Value, json};
use tooltape::dialect::Dialect;
use tooltape::testing::{CallEntry, Entry, ReplyEntry};

use super::play::{End, Part, Said};
use super::{Asked, MODEL, Refusal, demand, list, named, only, pieces, signature, text};
use super::{tools, transcript};

const FIELDS: [&str; 8] = [
    "model",
    "max_tokens",
    "system",
    "messages",
    "tools",
    "tool_choice",
    "output_config",
    "stream",
];

pub(super) fn check(asked: &Asked<'_>) -> Result<(), Refusal> {
    let body = &asked.seen.body;
    demand(asked.path == "/v1/messages", format!("no such path: {}", asked.path))?;
    asked.has_key("x-api-key", asked.key, "authentication_error")?;
    let version = asked.seen.header("anthropic-version");
    demand(version == Some("2023-06-01"), "anthropic-version: header is required")?;
    if body["model"] != MODEL {
        let told = format!("model: {}", body["model"]);
        return Err(Refusal { status: 404, kind: "not_found_error", told });
    }
    only(body, &FIELDS)?;
    demand(body["max_tokens"].as_u64().is_some_and(|it| it >= 1), "max_tokens: Field required")?;
    if body.get("tools").is_some() {
        let offered: Vec<Value> = list(body, "tools")?.iter().map(plain).collect();
        tools(Dialect::Anthropic, &offered)?;
    }
    demand(marks(body) <= 4, "a maximum of 4 blocks with cache_control may be provided")?;
    let mut entries = Vec::new();
    for message in list(body, "messages")? {
        only(message, &["role", "content"])?;
        let blocks = list(message, "content")?;
        demand(!blocks.is_empty(), "content is empty")?;
        match text(message, "role")? {
            "user" => user(&mut entries, blocks)?,
            "assistant" => entries.push(spoken(blocks)?),
            role => return Err(Refusal::broken(format!("unknown role `{role}`"))),
        }
    }
    transcript("Anthropic", &entries)?;
    let has_calls = entries.iter().any(|entry| matches!(entry, Entry::Replies(_)));
    demand(!has_calls || body.get("tools").is_some(), "tool_use blocks without `tools`")?;
    asked.shows_thoughts()
}

/// How many places are marked for the cache.
fn marks(body: &Value) -> usize {
    body.to_string().matches(r#""cache_control""#).count()
}

/// A tool without its mark.
fn plain(tool: &Value) -> Value {
    let mut tool = tool.clone();
    tool.as_object_mut().map(|fields| fields.remove("cache_control"));
    tool
}

fn user<'v>(entries: &mut Vec<Entry<'v>>, blocks: &'v [Value]) -> Result<(), Refusal> {
    let mut replies = Vec::new();
    let mut has_spoken = false;
    for block in blocks {
        match text(block, "type")? {
            "text" => {
                only(block, &["type", "text", "cache_control"])?;
                said(block)?;
                has_spoken = true;
            }
            "tool_result" => {
                let known = ["type", "tool_use_id", "content", "is_error", "cache_control"];
                only(block, &known)?;
                demand(!has_spoken, "tool_result blocks come first")?;
                let content = list(block, "content")?;
                content.iter().try_for_each(said)?;
                let told = content.iter().filter_map(|it| it["text"].as_str()).collect();
                replies.push(ReplyEntry {
                    id: text(block, "tool_use_id")?.into(),
                    name: Cow::Borrowed(""),
                    is_error: block["is_error"] == true,
                    text: Cow::Owned(told),
                });
            }
            kind => return Err(Refusal::broken(format!("no block of a user: `{kind}`"))),
        }
    }
    if !replies.is_empty() {
        entries.push(Entry::Replies(replies));
    }
    if has_spoken {
        entries.push(Entry::User);
    }
    Ok(())
}

fn said(block: &Value) -> Result<(), Refusal> {
    let is_blank = block["text"].as_str().is_none_or(|text| text.trim().is_empty());
    demand(!is_blank, "text content blocks must be non-empty")
}

fn spoken(blocks: &[Value]) -> Result<Entry<'_>, Refusal> {
    let (mut calls, mut speaks) = (Vec::new(), false);
    for (at, block) in blocks.iter().enumerate() {
        match text(block, "type")? {
            "text" => {
                only(block, &["type", "text"])?;
                said(block)?;
                speaks = true;
            }
            "thinking" => {
                only(block, &["type", "thinking", "signature"])?;
                demand(at == 0, "a thought comes first")?;
                let expected = signature(text(block, "thinking")?);
                demand(block["signature"] == *expected, "Invalid signature in thinking block")?;
            }
            "tool_use" => {
                only(block, &["type", "id", "name", "input"])?;
                demand(block["input"].is_object(), "input: Input should be a valid dictionary")?;
                let (id, name) = (text(block, "id")?, text(block, "name")?);
                let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                demand(id.chars().all(is_word), "id: String should match '^[a-zA-Z0-9_-]+$'")?;
                demand(name.len() <= 128 && name.chars().all(is_word), "no name of a tool")?;
                calls.push(CallEntry { id: id.into(), name: name.into() });
            }
            kind => return Err(Refusal::broken(format!("no block of a model: `{kind}`"))),
        }
    }
    Ok(Entry::Model { speaks, calls })
}

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let Refusal { kind, told, .. } = refusal;
    json!({ "type": "error", "error": { "type": kind, "message": told }, "request_id": "req_1" })
}

fn reason(said: &Said) -> &'static str {
    match (said.end, said.calls()) {
        (End::TooLong, _) => "max_tokens",
        (End::Odd, _) => "bored",
        (End::Done, true) => "tool_use",
        (End::Done, false) => "end_turn",
    }
}

/// A block, with the input of a call as its arguments say, if they say any.
fn block(part: &Part) -> Value {
    match part {
        Part::Thought(thought) => {
            let signature = signature(thought);
            json!({ "type": "thinking", "thinking": thought, "signature": signature })
        }
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Call(id, name, arguments) => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            let mut block = json!({ "type": "tool_use", "input": input });
            for (field, value) in [("id", id), ("name", name)] {
                if !value.is_empty() {
                    block[field] = value.as_str().into();
                }
            }
            block
        }
    }
}

fn usage() -> Value {
    json!({
        "input_tokens": 16, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0,
        "output_tokens": 7,
    })
}

fn message(content: &[Value], reason: Option<&str>) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL,
        "content": content, "stop_reason": reason, "stop_sequence": null, "usage": usage(),
    })
}

pub(super) fn whole(said: &Said) -> Value {
    let blocks: Vec<Value> = said.parts.iter().map(block).collect();
    message(&blocks, Some(reason(said)))
}

pub(super) fn events(said: &Said) -> Vec<String> {
    let mut events = vec![json!({ "type": "message_start", "message": message(&[], None) })];
    events.push(json!({ "type": "ping" }));
    for (index, part) in said.parts.iter().enumerate() {
        let mut begun = block(part);
        let deltas: Vec<Value> = match part {
            Part::Thought(thought) => {
                (begun["thinking"], begun["signature"]) = ("".into(), "".into());
                let thinking = pieces(thought).into_iter();
                let thinking =
                    thinking.map(|it| json!({ "type": "thinking_delta", "thinking": it }));
                let seal = json!({ "type": "signature_delta", "signature": signature(thought) });
                thinking.chain([seal]).collect()
            }
            Part::Text(text) => {
                begun["text"] = "".into();
                let texts = pieces(text).into_iter();
                texts.map(|it| json!({ "type": "text_delta", "text": it })).collect()
            }
            Part::Call(_, _, arguments) => {
                begun["input"] = json!({});
                let texts = [String::new()].into_iter().chain(pieces(arguments));
                let texts =
                    texts.map(|it| json!({ "type": "input_json_delta", "partial_json": it }));
                texts.collect()
            }
        };
        let kind = "content_block_start";
        events.push(json!({ "type": kind, "index": index, "content_block": begun }));
        let kind = "content_block_delta";
        let deltas = deltas.into_iter();
        events.extend(deltas.map(|it| json!({ "type": kind, "index": index, "delta": it })));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": reason(said), "stop_sequence": null });
    let usage = json!({ "output_tokens": 7 });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(named).collect()
}
