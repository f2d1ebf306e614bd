//! What a model is asked through Anthropic's Messages.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Choice;
use crate::wire::Api;
use crate::wire::conversation::{Answered, Entry, Piece, Spoken};
use crate::wire::encode::{Asked, OUTPUT_TOKENS_DEFAULT, bytes, picture, raw, text};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Value>,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    stream: bool,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
struct Call<'a> {
    r#type: &'static str,
    id: &'a str,
    name: &'a str,
    input: &'a RawValue,
    #[serde(flatten)]
    beside: Map<String, Value>,
}

/// The body of a request.
///
/// What does not change from turn to turn is marked for the provider's cache: the tools, the
/// instructions, and the conversation so far.
pub(in crate::wire) fn body(asked: &Asked<'_>, entries: &[Entry<'_>]) -> Vec<u8> {
    let request = asked.request;
    let mut messages: Vec<Message> = Vec::new();
    for entry in entries {
        match entry {
            Entry::User(text) => user(&mut messages, [raw(&said(text))]),
            Entry::Model(spoken) => {
                messages.push(Message { role: "assistant", content: model(spoken) });
            }
            Entry::Replies(replies) => user(&mut messages, replies.iter().map(answer)),
        }
    }
    if let Some(last) = messages.last_mut().filter(|message| message.role == "user") {
        last.content.last_mut().into_iter().for_each(mark);
    }
    let mut tools: Vec<_> = asked.tools().into_iter().map(RawValue::to_owned).collect();
    tools.last_mut().into_iter().for_each(mark);
    bytes(&Body {
        model: asked.model,
        max_tokens: request.output_tokens_max.unwrap_or(OUTPUT_TOKENS_DEFAULT),
        system: request.instructions.filter(|text| !text.trim().is_empty()).map(|text| {
            let mut block = said(text);
            block["cache_control"] = cached();
            json!([block])
        }),
        messages,
        tool_choice: choice(asked.choice).filter(|_| !tools.is_empty()),
        tools,
        output_config: asked.answer.as_ref().map(|answer| {
            let schema = answer.compiled.schema();
            json!({ "format": { "type": "json_schema", "schema": schema } })
        }),
        stream: asked.streaming,
    })
}

/// Replies and what the user says behind them are one message.
fn user(messages: &mut Vec<Message>, blocks: impl IntoIterator<Item = Box<RawValue>>) {
    match messages.last_mut() {
        Some(message) if message.role == "user" => message.content.extend(blocks),
        _ => messages.push(Message { role: "user", content: blocks.into_iter().collect() }),
    }
}

fn said(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn cached() -> Value {
    json!({ "type": "ephemeral" })
}

/// Marks a block, so that everything up to it is cached.
fn mark(block: &mut Box<RawValue>) {
    let end = block.get().strip_suffix('}').expect("a block is an object");
    let marked = format!("{end},\"cache_control\":{}}}", cached());
    *block = RawValue::from_string(marked).expect("an object with one more key is one");
}

fn model(spoken: &Spoken<'_>) -> Vec<Box<RawValue>> {
    let pieces = spoken.pieces().into_iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(raw(&said(text))),
        Piece::Call(call, beside) => Some(raw(&Call {
            r#type: "tool_use",
            id: &call.id,
            name: &call.name,
            input: &call.object(),
            beside: beside.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default(),
        })),
        Piece::Opaque(json) => RawValue::from_string(json.to_owned()).ok(),
    });
    pieces.collect()
}

fn answer(answered: &Answered<'_>) -> Box<RawValue> {
    let Answered { call, reply } = answered;
    let blocks = reply.shown();
    let blocks = blocks.iter().map(|block| match picture(Api::Anthropic, block) {
        Some((media_type, data)) => {
            let source = json!({ "type": "base64", "media_type": media_type, "data": data });
            json!({ "type": "image", "source": source })
        }
        None => said(&text(Api::Anthropic, block)),
    });
    // A block of no text is refused, no block at all is not.
    let blocks =
        blocks.filter(|block| block["text"].as_str().is_none_or(|it| !it.trim().is_empty()));
    let content: Vec<Value> = blocks.collect();
    raw(&json!({
        "type": "tool_result",
        "tool_use_id": &*call.id,
        "content": content,
        "is_error": reply.is_error,
    }))
}

fn choice(choice: Choice<'_>) -> Option<Value> {
    Some(match choice {
        Choice::Auto => return None,
        Choice::Required => json!({ "type": "any" }),
        Choice::Tool(name) => json!({ "type": "tool", "name": name }),
        Choice::None => json!({ "type": "none" }),
    })
}
