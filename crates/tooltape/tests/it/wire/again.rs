//! Each recorded turn, in a conversation, is shown to every API as that API asks.

use std::fs::File;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};
use tooltape::testing::Entry;
use tooltape::wire::{Api, Encoder, decode};
use tooltape::{Message, Proposal, Request, Turn};

use super::reader::read;
use super::recordings::{fed, replies, streams};
use super::stage::Stage;
use crate::data;

/// The arguments of a call as an API is shown them.
fn shown(api: Api, proposal: &Proposal) -> Value {
    let parsed: Option<Value> = serde_json::from_str(proposal.text()).ok();
    match api {
        Api::OpenAi | Api::Responses => {
            parsed.unwrap_or_else(|| proposal.text().to_string().into())
        }
        Api::Anthropic | Api::Gemini | Api::Mistral | Api::Compatible => {
            let object = parsed.filter(Value::is_object);
            object.unwrap_or_else(|| json!({ "_unparsed": &**proposal.text() }))
        }
    }
}

/// Shows a turn to every API, and checks what each would see.
async fn check(turn: Turn, named: &str) {
    let stage = Stage::new(turn.proposals.iter().map(|it| &*it.name));
    let messages = stage.around(turn).await;
    for api in Api::ALL {
        let encoder = Encoder::new(api, "some-model");
        let request = Request::new(&messages, &stage.offer).instructed(Some("Be brief."));
        let body = encoder.encode(&request, true).unwrap();
        assert_eq!(encoder.encode(&request, true).unwrap(), body, "{named}");
        let read = read(api, &body).unwrap_or_else(|err| panic!("{named} at {api}: {err}"));
        let proposals = messages.iter().filter_map(|message| match message {
            Message::Model(turn) => Some(&turn.proposals),
            Message::User(_) | Message::Replies(_) => None,
        });
        let expected: Vec<Value> = proposals.flatten().map(|it| shown(api, it)).collect();
        assert_eq!(read.arguments, expected, "{named} at {api}");
        let failures = read.entries.iter().filter_map(|entry| match entry {
            Entry::Replies(replies) => Some(replies.iter().filter(|it| it.is_error).count()),
            Entry::User | Entry::Model { .. } => None,
        });
        assert!(failures.sum::<usize>() >= 3, "{named} at {api}");
        assert_eq!(images(&body), 1, "{named} at {api}");
    }
}

fn images(body: &[u8]) -> usize {
    let text = String::from_utf8(body.to_vec()).unwrap();
    text.matches("iVBORw0KGgo=").count()
}

#[tokio::test]
async fn every_recorded_stream_can_be_shown_to_every_api() {
    let Some(streams) = streams() else { return };
    for stream in &streams {
        if let Ok((turn, ..)) = fed(stream.api(), [stream.response.as_bytes()]) {
            check(turn, &stream.named()).await;
        }
    }
}

#[tokio::test]
async fn every_recorded_reply_can_be_shown_to_every_api() {
    let Some(replies) = replies() else { return };
    for reply in replies.iter().filter(|reply| reply.status == 200) {
        check(decode(reply.api(), reply.response.as_bytes()).unwrap(), &reply.named()).await;
    }
}

/// The content of a message of the model in a request, for the turn that a body holds.
async fn shown_again(api: Api, body: &Value) -> Option<Value> {
    let turn = decode(api, body.to_string().as_bytes()).unwrap();
    let stage = Stage::new(turn.proposals.iter().map(|it| &*it.name));
    let replies = stage.replies(&turn.proposals).await;
    let messages = [Message::User("Go.".into()), Message::Model(turn), Message::Replies(replies)];
    let encoder = Encoder::new(api, "some-model");
    let asked = encoder.encode(&Request::new(&messages, &stage.offer), false).unwrap();
    let mut asked: Value = serde_json::from_slice(&asked).unwrap();
    match api {
        Api::Anthropic => Some(asked["messages"][1]["content"].take()),
        Api::Gemini => Some(asked["contents"][1]["parts"].take()),
        _ => None,
    }
}

#[tokio::test]
async fn a_turn_goes_back_to_its_provider_as_it_came() {
    let Some(replies) = replies() else { return };
    let (mut same, mut opaque) = (0, 0);
    for reply in replies.iter().filter(|reply| reply.status == 200) {
        let mut body: Value = serde_json::from_str(&reply.response).unwrap();
        let Some(again) = shown_again(reply.api(), &body).await else { continue };
        let came = match reply.api() {
            Api::Anthropic => body["content"].take(),
            _ => body["candidates"][0]["content"]["parts"].take(),
        };
        let came = came.as_array().cloned().unwrap_or_default();
        let came: Vec<Value> = came.into_iter().filter_map(plain).collect();
        let again: Vec<Value> =
            again.as_array().unwrap().iter().cloned().filter_map(plain).collect();
        let is_cut = decode(reply.api(), reply.response.as_bytes()).unwrap().stop.word() == "cut";
        if !is_cut {
            assert_eq!(joined(again), joined(came.clone()), "{}", reply.named());
            same += 1;
        }
        let kinds = ["thinking", "server_tool_use"];
        opaque +=
            came.iter().filter(|it| kinds.contains(&it["type"].as_str().unwrap_or(""))).count();
    }
    assert!(same > 350 && opaque > 5, "{same} turns, {opaque} blocks");
}

/// A block or part without what is not sent back: citations, who called, and blank texts. A call
/// of Gemini without arguments has none.
fn plain(mut block: Value) -> Option<Value> {
    let fields = block.as_object_mut().unwrap();
    fields.remove("citations");
    if fields.get("caller").is_some_and(|caller| caller["type"] == "direct") {
        fields.remove("caller");
    }
    // What we did not get a signature for is not signed by Gemini either.
    if fields.get("thoughtSignature").is_some_and(|it| *it == "skip_thought_signature_validator") {
        fields.remove("thoughtSignature");
    }
    if let Some(Value::Object(call)) = fields.get_mut("functionCall") {
        call.entry("args").or_insert(json!({}));
    }
    let text = fields.get("text").and_then(Value::as_str);
    let is_blank = text.is_some_and(|text| text.trim().is_empty());
    (!is_blank || fields.contains_key("thoughtSignature")).then_some(block)
}

/// Texts that follow one another are one text.
fn joined(blocks: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for block in blocks {
        let is_plain = |it: &Value| it["text"].is_string() && it["thought"] != true;
        match joined.last_mut() {
            Some(last)
                if is_plain(last) && is_plain(&block) && last.get("thoughtSignature").is_none() =>
            {
                let text = format!(
                    "{}{}",
                    last["text"].as_str().unwrap(),
                    block["text"].as_str().unwrap()
                );
                *last = block;
                last["text"] = text.into();
            }
            _ => joined.push(block),
        }
    }
    joined
}

#[derive(Deserialize)]
struct Trajectory {
    traj: Vec<Value>,
}

/// A recorded conversation, with replies of our own to the calls of it.
async fn conversation(stage: &Stage, recorded: &[Value]) -> Vec<Message> {
    let mut messages = Vec::new();
    for said in recorded {
        let text = said["content"].as_str();
        match said["role"].as_str().unwrap() {
            "user" => messages.push(Message::User(text.unwrap().into())),
            "assistant" => {
                let calls = said["tool_calls"].as_array().into_iter().flatten();
                let calls = calls.map(|call| {
                    let field =
                        |path: &str| call.pointer(path).unwrap().as_str().unwrap().to_owned();
                    Proposal::new(
                        field("/id"),
                        field("/function/name"),
                        field("/function/arguments"),
                    )
                });
                let mut turn = Turn::calls(calls);
                turn.text = text.map(Into::into);
                let replies = stage.replies(&turn.proposals).await;
                messages.push(Message::Model(turn));
                if !replies.is_empty() {
                    messages.push(Message::Replies(replies));
                }
            }
            _ => {}
        }
    }
    messages
}

#[tokio::test]
async fn whole_conversations_can_be_shown_to_every_api_and_what_was_shown_stays() {
    let Some(folder) = data::folder(200) else { return };
    let file = File::open(folder.join("tau-bench/gpt-4o-airline.json.gz")).unwrap();
    let recorded: Vec<Trajectory> = serde_json::from_reader(GzDecoder::new(file)).unwrap();
    assert_eq!(recorded.len(), 200);
    let mut calls = 0;
    for Trajectory { traj } in &recorded {
        let names = traj.iter().filter_map(|it| it["tool_calls"].as_array()).flatten();
        let stage = Stage::new(names.map(|call| call["function"]["name"].as_str().unwrap()));
        let messages = conversation(&stage, traj).await;
        for api in Api::ALL {
            let encoder = Encoder::new(api, "some-model");
            let encode = |messages: &[Message]| {
                encoder.encode(&Request::new(messages, &stage.offer), true).unwrap()
            };
            let whole = encode(&messages);
            calls += read(api, &whole).unwrap().arguments.len();
            let is_asked = |it: &Message| matches!(it, Message::User(_) | Message::Replies(_));
            let half = messages[..=messages.len() / 2].iter().rposition(is_asked);
            let half = encode(&messages[..=half.unwrap()]);
            assert!(begins(api, &half, &whole), "{api}");
        }
    }
    assert_eq!(calls, 6 * 1_164);
}

/// Whether all that was shown before is shown again, so that the provider's cache stays warm.
fn begins(api: Api, half: &[u8], whole: &[u8]) -> bool {
    let shown = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).unwrap();
        let key = match api {
            Api::Gemini => "contents",
            Api::Responses => "input",
            Api::OpenAi | Api::Anthropic | Api::Mistral | Api::Compatible => "messages",
        };
        let shown = body[key].as_array().unwrap().iter().map(ToString::to_string);
        // A mark for the cache moves on, and is no part of what is shown.
        let mark = r#""cache_control":{"type":"ephemeral"},"#;
        let shown: Vec<String> = shown.map(|it| it.replace(mark, "")).collect();
        (shown, body["tools"].clone())
    };
    let (half, whole) = (shown(half), shown(whole));
    whole.0.starts_with(&half.0) && whole.1 == half.1
}
