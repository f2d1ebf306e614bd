//! What a model is asked through OpenAI's Responses.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Choice;
use crate::reply::Reply;
use crate::wire::Api;
use crate::wire::conversation::{Entry, Piece, Spoken};
use crate::wire::encode::{ANSWER, Asked, bytes, picture, raw, text, words};

/// The fewest tokens that a model may be allowed.
const OUTPUT_TOKENS_MIN: u64 = 16;
/// Items that want an answer which nobody gave, so that they cannot be shown again.
const UNANSWERED: [&str; 7] = [
    "custom_tool_call",
    "apply_patch_call",
    "local_shell_call",
    "shell_call",
    "computer_call",
    "mcp_approval_request",
    "tool_search_call",
];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    /// The provider keeps nothing, so thoughts come back to it with the conversation.
    store: bool,
    include: [&'static str; 1],
    stream: bool,
}

/// The body of a request.
pub(in crate::wire) fn body(asked: &Asked<'_>, entries: &[Entry<'_>]) -> Vec<u8> {
    let request = asked.request;
    let mut input = Vec::new();
    for entry in entries {
        match entry {
            Entry::User(text) => input.push(raw(&said("user", text, None))),
            Entry::Model(spoken) => model(&mut input, spoken),
            Entry::Replies(replies) => input.extend(replies.iter().map(|answered| {
                let output = output(answered.reply);
                let id = &*answered.call.id;
                raw(&json!({ "type": "function_call_output", "call_id": id, "output": output }))
            })),
        }
    }
    let tools = asked.tools();
    bytes(&Body {
        model: asked.model,
        instructions: request.instructions,
        input,
        tool_choice: choice(asked.choice).filter(|_| !tools.is_empty()),
        tools,
        text: asked.answer.as_ref().map(|answer| {
            json!({ "format": {
                "type": "json_schema",
                "name": ANSWER,
                "schema": answer.compiled.schema(),
                "strict": answer.is_strict,
            } })
        }),
        max_output_tokens: request.output_tokens_max.map(|tokens| tokens.max(OUTPUT_TOKENS_MIN)),
        store: false,
        include: ["reasoning.encrypted_content"],
        stream: asked.streaming,
    })
}

/// A tool of Chat Completions as this API has it, which makes it strict unless told otherwise.
pub(in crate::wire) fn tool(mut tool: Value) -> Value {
    let mut function = tool["function"].take();
    function["type"] = "function".into();
    function["strict"] = false.into();
    function
}

fn said(role: &str, text: &str, phase: Option<Value>) -> Value {
    let mut message = json!({ "type": "message", "role": role, "content": text });
    if let Some(phase) = phase {
        message["phase"] = phase;
    }
    message
}

fn model(input: &mut Vec<Box<RawValue>>, spoken: &Spoken<'_>) {
    let mut phase = None;
    for piece in spoken.pieces() {
        match piece {
            Piece::Text(text) => input.push(raw(&said("assistant", text, phase.take()))),
            Piece::Call(call, _) => input.push(raw(&json!({
                "type": "function_call",
                "call_id": &*call.id,
                "name": call.name,
                "arguments": call.arguments,
            }))),
            Piece::Opaque(json) => {
                let fields: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
                match fields.get("type").and_then(Value::as_str) {
                    // How the next text is meant.
                    Some("message") => phase = fields.get("phase").cloned(),
                    Some(kind) if UNANSWERED.contains(&kind) => {}
                    Some(_) | None => input.extend(RawValue::from_string(json.to_owned())),
                }
            }
        }
    }
}

/// A result: its text, or a list where it has images.
fn output(reply: &Reply) -> Value {
    let (api, shown) = (Api::Responses, reply.shown());
    if !shown.iter().any(|block| picture(api, block).is_some()) {
        return words(api, reply).into();
    }
    let blocks = shown.iter().map(|block| match picture(api, block) {
        Some((media_type, data)) => {
            let url = format!("data:{media_type};base64,{data}");
            json!({ "type": "input_image", "image_url": url })
        }
        None => json!({ "type": "input_text", "text": text(api, block) }),
    });
    blocks.collect()
}

fn choice(choice: Choice<'_>) -> Option<Value> {
    Some(match choice {
        Choice::Auto => return None,
        Choice::Required => "required".into(),
        Choice::Tool(name) => json!({ "type": "function", "name": name }),
        Choice::None => "none".into(),
    })
}
