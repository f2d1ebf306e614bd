//! What a model is asked through Gemini's `generateContent`.

use std::mem;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Choice;
use crate::wire::Api;
use crate::wire::conversation::{Answered, Called, Entry, Piece, Spoken};
use crate::wire::encode::{Asked, bytes, picture, raw, text, words};

/// What stands for the signature of a call that this API did not sign, which newer models want.
const UNSIGNED: &str = "skip_thought_signature_validator";
/// How the models begin that want no signature.
const SIGNS_NOTHING: [&str; 2] = ["gemini-1", "gemini-2"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    contents: Vec<Content>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    generation_config: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct Content {
    role: &'static str,
    parts: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    function_call: Function<'a>,
    #[serde(flatten)]
    beside: Map<String, Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: &'a RawValue,
}

/// The body of a request. The model is named by the address that it is sent to.
///
/// A schema of the answer is told where no tool is offered: most models refuse both at once.
pub(in crate::wire) fn body(asked: &Asked<'_>, entries: &[Entry<'_>]) -> Vec<u8> {
    let request = asked.request;
    let name = asked.model.rsplit('/').next().unwrap_or_default();
    let is_signed = !SIGNS_NOTHING.iter().any(|old| name.starts_with(old));
    let mut contents: Vec<Content> = Vec::new();
    for entry in entries {
        match entry {
            Entry::User(text) => user(&mut contents, [said(text)]),
            Entry::Model(spoken) => {
                contents.push(Content { role: "model", parts: model(spoken, is_signed) });
            }
            Entry::Replies(replies) => user(&mut contents, answers(replies)),
        }
    }
    let functions = asked.tools();
    let mut generation_config = Map::new();
    if let Some(tokens) = request.output_tokens_max {
        generation_config.insert("maxOutputTokens".into(), tokens.into());
    }
    if let Some(answer) = asked.answer.as_ref().filter(|_| functions.is_empty()) {
        generation_config.insert("responseMimeType".into(), "application/json".into());
        generation_config.insert("responseSchema".into(), answer.compiled.schema().clone());
    }
    let tool_config = choice(asked.choice).filter(|_| !functions.is_empty());
    let tools = match functions.is_empty() {
        true => Vec::new(),
        false => vec![Tools { function_declarations: functions }],
    };
    let instructions = request.instructions.filter(|text| !text.trim().is_empty());
    let system_instruction = instructions.map(|text| json!({ "parts": [{ "text": text }] }));
    bytes(&Body { system_instruction, contents, tools, tool_config, generation_config })
}

/// Replies and what the user says behind them are one content.
fn user(contents: &mut Vec<Content>, parts: impl IntoIterator<Item = Box<RawValue>>) {
    match contents.last_mut() {
        Some(content) if content.role == "user" => content.parts.extend(parts),
        _ => contents.push(Content { role: "user", parts: parts.into_iter().collect() }),
    }
}

fn said(text: &str) -> Box<RawValue> {
    raw(&json!({ "text": text }))
}

/// The turn. A signature stands in the part before it, and the first call has one.
fn model(spoken: &Spoken<'_>, is_signed: bool) -> Vec<Box<RawValue>> {
    let mut parts: Vec<Box<RawValue>> = Vec::new();
    let mut is_first = true;
    let mut before = None;
    for piece in spoken.pieces() {
        let text = before.take();
        match piece {
            Piece::Text(text) => {
                parts.push(said(text));
                before = Some(text);
            }
            Piece::Call(called, beside) => {
                let beside = beside.and_then(|json| serde_json::from_str(json).ok());
                let mut beside: Map<String, Value> = beside.unwrap_or_default();
                let signature = beside.get("thoughtSignature").and_then(Value::as_str);
                let lacks_one = signature.unwrap_or_default().is_empty();
                if mem::take(&mut is_first) && is_signed && lacks_one {
                    beside.insert("thoughtSignature".into(), UNSIGNED.into());
                }
                parts.push(call(called, beside));
            }
            Piece::Opaque(json) => match signature(json) {
                // One that belongs to no text stands with an empty one, as it came.
                Some(signature) => {
                    parts.truncate(parts.len() - usize::from(text.is_some()));
                    let text = text.unwrap_or_default();
                    parts.push(raw(&json!({ "text": text, "thoughtSignature": signature })));
                }
                None => parts.extend(RawValue::from_string(json.to_owned())),
            },
        }
    }
    parts
}

/// The signature that is all there is.
fn signature(json: &str) -> Option<Value> {
    let mut fields: Map<String, Value> = serde_json::from_str(json).ok()?;
    let signature = fields.remove("thoughtSignature")?;
    fields.is_empty().then_some(signature)
}

fn id<'c>(called: &'c Called<'_>) -> Option<&'c str> {
    called.had_id.then_some(&*called.id)
}

fn call(called: &Called<'_>, beside: Map<String, Value>) -> Box<RawValue> {
    let (name, args) = (&*called.name, &*called.object());
    raw(&Call { function_call: Function { id: id(called), name, args }, beside })
}

/// The replies, and behind all of them the images.
fn answers(replies: &[Answered<'_>]) -> Vec<Box<RawValue>> {
    let (api, mut parts, mut images) = (Api::Gemini, Vec::new(), Vec::new());
    for Answered { call, reply } in replies {
        let outcome = if reply.is_error { "error" } else { "output" };
        let output = words(api, reply);
        let mut response = json!({ "name": call.name, "response": { outcome: output } });
        if let Some(id) = id(call) {
            response["id"] = id.into();
        }
        parts.push(raw(&json!({ "functionResponse": response })));
        for block in reply.shown() {
            if let Some((media_type, data)) = picture(api, &block) {
                let data = json!({ "mimeType": media_type, "data": data });
                images.push(said(&format!("{} of `{}`:", text(api, &block), call.name)));
                images.push(raw(&json!({ "inlineData": data })));
            }
        }
    }
    parts.extend(images);
    parts
}

fn choice(choice: Choice<'_>) -> Option<Value> {
    let config = match choice {
        Choice::Auto => return None,
        Choice::Required => json!({ "mode": "ANY" }),
        Choice::Tool(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
        Choice::None => json!({ "mode": "NONE" }),
    };
    Some(json!({ "functionCallingConfig": config }))
}
