//! Responses, as OpenAI publishes them.

use std::borrow::Cow;

use serde_json::{Value, json};
use tooltape::dialect::Dialect;
use tooltape::testing::{CallEntry, Entry, ReplyEntry};

use super::play::{End, Part, Said};
use super::{Asked, MODEL, Refusal, demand, list, named, only, pieces, signature, text};
use super::{tools, transcript};

const FIELDS: [&str; 10] = [
    "model",
    "instructions",
    "input",
    "tools",
    "tool_choice",
    "text",
    "max_output_tokens",
    "store",
    "include",
    "stream",
];

pub(super) fn check(asked: &Asked<'_>) -> Result<(), Refusal> {
    let body = &asked.seen.body;
    demand(asked.path == "/v1/responses", format!("no such path: {}", asked.path))?;
    asked.has_key("authorization", &format!("Bearer {}", asked.key), "invalid_request_error")?;
    if body["model"] != MODEL {
        let told = format!("The model {} does not exist", body["model"]);
        return Err(Refusal { status: 404, kind: "invalid_request_error", told });
    }
    only(body, &FIELDS)?;
    let tokens = &body["max_output_tokens"];
    demand(tokens.is_null() || tokens.as_u64() >= Some(16), "max_output_tokens: minimum is 16")?;
    if body.get("tools").is_some() {
        let offered: Result<Vec<Value>, Refusal> =
            list(body, "tools")?.iter().map(nested).collect();
        tools(Dialect::OpenAi, &offered?)?;
    }
    let input = list(body, "input")?;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (at, item) in input.iter().enumerate() {
        take(&mut entries, item, input.get(at + 1))?;
    }
    transcript("OpenAI Responses", &entries)?;
    asked.shows_thoughts()
}

/// A tool as Chat Completions has it, so that one set of rules holds for both.
fn nested(tool: &Value) -> Result<Value, Refusal> {
    only(tool, &["type", "name", "description", "parameters", "strict"])?;
    demand(tool["strict"].is_boolean(), "strict: expected a boolean")?;
    let mut function = tool.clone();
    for field in ["type", "strict"] {
        function.as_object_mut().map(|fields| fields.remove(field));
    }
    Ok(json!({ "type": tool["type"], "function": function }))
}

fn take<'v>(
    entries: &mut Vec<Entry<'v>>,
    item: &'v Value,
    next: Option<&Value>,
) -> Result<(), Refusal> {
    match text(item, "type")? {
        "message" => {
            only(item, &["type", "role", "content", "phase"])?;
            demand(!item["content"].is_null(), "a message says nothing")?;
            match text(item, "role")? {
                "user" => entries.push(Entry::User),
                "assistant" => match entries.last_mut() {
                    Some(Entry::Model { speaks, .. }) => *speaks = true,
                    _ => entries.push(Entry::Model { speaks: true, calls: Vec::new() }),
                },
                role => return Err(Refusal::broken(format!("unknown role `{role}`"))),
            }
        }
        "function_call" => {
            only(item, &["type", "call_id", "name", "arguments"])?;
            demand(item["arguments"].is_string(), "arguments are text")?;
            let (id, name) = (text(item, "call_id")?, text(item, "name")?);
            demand(id.len() <= 64, "call_id: string too long")?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            demand(name.chars().all(is_word), "no name of a function")?;
            let call = CallEntry { id: id.into(), name: name.into() };
            match entries.last_mut() {
                Some(Entry::Model { calls, .. }) => calls.push(call),
                _ => entries.push(Entry::Model { speaks: false, calls: vec![call] }),
            }
        }
        "function_call_output" => {
            only(item, &["type", "call_id", "output"])?;
            let reply = ReplyEntry {
                id: text(item, "call_id")?.into(),
                name: Cow::Borrowed(""),
                is_error: false,
                text: item["output"].as_str().unwrap_or_default().into(),
            };
            match entries.last_mut() {
                Some(Entry::Replies(replies)) => replies.push(reply),
                _ => entries.push(Entry::Replies(vec![reply])),
            }
        }
        "reasoning" => {
            only(item, &["type", "id", "summary", "encrypted_content"])?;
            list(item, "summary")?;
            text(item, "encrypted_content")?;
            let is_followed = next.is_some_and(|it| it["type"] == "function_call");
            let is_followed = is_followed || next.is_some_and(|it| it["role"] == "assistant");
            demand(is_followed, "reasoning was provided without its required following item")?;
        }
        kind => return Err(Refusal::broken(format!("no item: `{kind}`"))),
    }
    Ok(())
}

fn item(index: usize, part: &Part) -> Value {
    match part {
        Part::Thought(thought) => json!({
            "type": "reasoning", "id": format!("rs_{index}"),
            "summary": [{ "type": "summary_text", "text": thought }],
            "encrypted_content": signature(thought),
        }),
        Part::Text(text) => json!({
            "type": "message", "id": format!("msg_{index}"), "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Part::Call(id, name, arguments) => {
            let mut item = json!({
                "type": "function_call", "id": format!("fc_{index}"), "status": "completed",
                "arguments": arguments,
            });
            for (field, value) in [("call_id", id), ("name", name)] {
                if !value.is_empty() {
                    item[field] = value.as_str().into();
                }
            }
            item
        }
    }
}

fn response(said: &Said, status: &str) -> Value {
    let is_begun = status == "in_progress";
    let items: Vec<Value> = said.parts.iter().enumerate().map(|(at, it)| item(at, it)).collect();
    let reason = match said.end {
        End::Done => None,
        End::TooLong => Some(json!({ "reason": "max_output_tokens" })),
        End::Odd => Some(json!({ "reason": "bored" })),
    };
    let usage = json!({
        "input_tokens": 20, "input_tokens_details": { "cached_tokens": 4 },
        "output_tokens": 7, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 27,
    });
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "status": status,
        "error": null, "incomplete_details": reason.filter(|_| !is_begun),
        "output": if is_begun { Vec::new() } else { items },
        "usage": if is_begun { Value::Null } else { usage },
    })
}

fn status(said: &Said) -> &'static str {
    if said.end == End::Done { "completed" } else { "incomplete" }
}

pub(super) fn whole(said: &Said) -> Value {
    response(said, status(said))
}

pub(super) fn events(said: &Said) -> Vec<String> {
    let begun = response(said, "in_progress");
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    for (index, part) in said.parts.iter().enumerate() {
        let whole = item(index, part);
        let mut begun = whole.clone();
        let id = whole["id"].clone();
        let (field, kind, text, more) = match part {
            Part::Thought(text) => {
                let more = json!({ "summary_index": 0 });
                ("summary", "response.reasoning_summary_text", text, more)
            }
            Part::Text(text) => {
                ("content", "response.output_text", text, json!({ "content_index": 0 }))
            }
            Part::Call(_, _, text) => {
                ("arguments", "response.function_call_arguments", text, json!({}))
            }
        };
        begun[field] = if field == "arguments" { "".into() } else { json!([]) };
        begun.as_object_mut().map(|fields| fields.remove("encrypted_content"));
        let kind_of_item = "response.output_item.added";
        events.push(json!({ "type": kind_of_item, "output_index": index, "item": begun }));
        let event = |kind: String, field: &str, text: &str| {
            let mut event = json!({ "type": kind, "item_id": id, "output_index": index });
            event[field] = text.into();
            let fields = more.as_object().into_iter().flatten();
            fields.for_each(|(name, value)| event[name] = value.clone());
            event
        };
        let deltas = pieces(text);
        events.extend(deltas.iter().map(|it| event(format!("{kind}.delta"), "delta", it)));
        let field = if field == "arguments" { "arguments" } else { "text" };
        events.push(event(format!("{kind}.done"), field, text));
        let kind_of_item = "response.output_item.done";
        events.push(json!({ "type": kind_of_item, "output_index": index, "item": whole }));
    }
    let kind = format!("response.{}", status(said));
    events.push(json!({ "type": kind, "response": response(said, status(said)) }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events.iter().map(named).collect()
}
