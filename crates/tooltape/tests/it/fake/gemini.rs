//! Gemini's `generateContent` and `streamGenerateContent`, as Google publishes them.

use std::borrow::Cow;

use serde_json::{Value, json};
use tooltape::dialect::Dialect;
use tooltape::testing::{CallEntry, Entry, ReplyEntry};

use super::play::{End, Part, Said};
use super::{Asked, MODEL, Refusal, demand, list, only, pieces, signature, text, tools};
use super::{transcript, unnamed};

const FIELDS: [&str; 5] =
    ["systemInstruction", "contents", "tools", "toolConfig", "generationConfig"];

pub(super) fn check(asked: &Asked<'_>) -> Result<(), Refusal> {
    let body = &asked.seen.body;
    match asked.seen.header("x-goog-api-key") {
        Some(found) if found == asked.key => {}
        // This vendor has a status of its own for a wrong key, and another for none.
        Some(found) => {
            let told = format!("API key not valid. Please pass a valid API key. {found}");
            return Err(Refusal { status: 400, kind: "API_KEY_INVALID", told });
        }
        None => {
            let told = "Method doesn't allow unregistered callers".to_owned();
            return Err(Refusal { status: 403, kind: "PERMISSION_DENIED", told });
        }
    }
    let methods = [":generateContent", ":streamGenerateContent?alt=sse"];
    let model = methods.iter().find_map(|method| asked.path.strip_suffix(method));
    if model != Some(&*format!("/v1beta/models/{MODEL}")) {
        let told = format!("{} is not found for API version v1beta", asked.path);
        return Err(Refusal { status: 404, kind: "NOT_FOUND", told });
    }
    only(body, &FIELDS)?;
    if body.get("tools").is_some() {
        for tool in list(body, "tools")? {
            only(tool, &["functionDeclarations"])?;
            tools(Dialect::Gemini, list(tool, "functionDeclarations")?)?;
        }
    }
    let mut entries = Vec::new();
    for content in list(body, "contents")? {
        only(content, &["role", "parts"])?;
        let parts = list(content, "parts")?;
        demand(!parts.is_empty(), "parts must not be empty")?;
        match text(content, "role")? {
            "user" => user(&mut entries, parts)?,
            "model" => entries.push(spoken(parts)?),
            role => return Err(Refusal::broken(format!("Please use a valid role: {role}"))),
        }
    }
    transcript("Gemini", &entries)?;
    asked.shows_thoughts()
}

fn user<'v>(entries: &mut Vec<Entry<'v>>, parts: &'v [Value]) -> Result<(), Refusal> {
    let mut replies = Vec::new();
    let mut has_spoken = false;
    for part in parts {
        only(part, &["text", "functionResponse", "inlineData"])?;
        let Some(response) = part.get("functionResponse") else {
            has_spoken = true;
            continue;
        };
        only(response, &["id", "name", "response"])?;
        demand(response["response"].is_object(), "a response is an object")?;
        let outcome = &response["response"];
        replies.push(ReplyEntry {
            id: response["id"].as_str().unwrap_or_default().into(),
            name: text(response, "name")?.into(),
            is_error: outcome.get("error").is_some(),
            text: Cow::Borrowed(outcome["error"].as_str().unwrap_or_default()),
        });
    }
    if !replies.is_empty() {
        entries.push(Entry::Replies(replies));
    }
    if has_spoken {
        entries.push(Entry::User);
    }
    Ok(())
}

fn spoken(parts: &[Value]) -> Result<Entry<'_>, Refusal> {
    let (mut calls, mut speaks) = (Vec::new(), false);
    for part in parts {
        only(part, &["text", "thought", "thoughtSignature", "functionCall"])?;
        let Some(call) = part.get("functionCall") else {
            speaks = true;
            continue;
        };
        only(call, &["id", "name", "args"])?;
        demand(call["args"].is_object(), "args: expected an object")?;
        let is_signed = !calls.is_empty() || part.get("thoughtSignature").is_some();
        demand(is_signed, "Function call is missing a thought_signature in functionCall parts")?;
        let name = text(call, "name")?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
        demand(name.chars().all(is_word), "Invalid function name")?;
        let id = call["id"].as_str().unwrap_or_default();
        calls.push(CallEntry { id: id.into(), name: name.into() });
    }
    Ok(Entry::Model { speaks, calls })
}

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let Refusal { status, kind, told } = refusal;
    let word = match *kind {
        "API_KEY_INVALID" | "invalid_request_error" => "INVALID_ARGUMENT",
        kind => kind,
    };
    let info = json!({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": kind });
    json!({ "error": { "code": status, "message": told, "status": word, "details": [info] } })
}

/// The parts: what a thought signs is the first call behind it.
fn parts(said: &Said) -> Vec<Value> {
    let mut seal = None;
    let parts = said.parts.iter().map(|part| match part {
        Part::Thought(thought) => {
            seal = Some(signature(thought));
            json!({ "text": thought, "thought": true })
        }
        Part::Text(text) => json!({ "text": text }),
        Part::Call(id, name, arguments) => {
            let mut call = json!({ "args": serde_json::from_str::<Value>(arguments).unwrap() });
            for (field, value) in [("id", id), ("name", name)] {
                if !value.is_empty() {
                    call[field] = value.as_str().into();
                }
            }
            let mut part = json!({ "functionCall": call });
            if let Some(seal) = seal.take() {
                part["thoughtSignature"] = seal.into();
            }
            part
        }
    });
    parts.collect()
}

fn chunk(parts: Vec<Value>, reason: Option<&str>) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    let usage = json!({
        "promptTokenCount": 20, "cachedContentTokenCount": 4, "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2, "totalTokenCount": 27,
    });
    json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL })
}

fn reason(said: &Said) -> &'static str {
    match said.end {
        End::Done => "STOP",
        End::TooLong => "MAX_TOKENS",
        End::Odd => "BORED",
    }
}

pub(super) fn whole(said: &Said) -> Value {
    chunk(parts(said), Some(reason(said)))
}

pub(super) fn events(said: &Said) -> Vec<String> {
    let mut events = Vec::new();
    for part in parts(said) {
        // Thoughts and texts come in pieces, calls do not.
        match part["text"].as_str().map(pieces) {
            Some(texts) => events.extend(texts.into_iter().map(|text| {
                let mut piece = part.clone();
                piece["text"] = text.into();
                chunk(vec![piece], None)
            })),
            None => events.push(chunk(vec![part], None)),
        }
    }
    events.push(chunk(vec![json!({ "text": "" })], Some(reason(said))));
    events.iter().map(unnamed).collect()
}
