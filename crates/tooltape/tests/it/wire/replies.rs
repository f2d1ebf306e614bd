//! Each recorded reply that came whole, each fixture and each answer of a local server is read.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};
use tooltape::wire::{Api, Decoder, decode, refusal};
use tooltape::{ModelError, Turn, TurnStop, Usage};

use super::recordings::{Recording, fed, replies};
use crate::data;

/// What a body says, by another reader: its text, its calls, and how much was read and written.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    text: String,
    calls: Vec<(String, String, Value)>,
    usage: Usage,
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Arguments as JSON, or as the text where they are none.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn seen(api: Api, body: &Value) -> Seen {
    let count = |path: &str| body.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let sums = |paths: &[&str]| paths.iter().map(|path| count(path)).sum::<u64>();
    let mut seen = Seen::default();
    match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => {
            let message = &body["choices"][0]["message"];
            seen.text = string(&message["content"]) + &string(&message["refusal"]);
            seen.calls.extend(list(&message["tool_calls"]).map(|call| {
                let function = &call["function"];
                let arguments = parsed(&string(&function["arguments"]));
                (string(&call["id"]), string(&function["name"]), arguments)
            }));
            seen.usage.input_tokens = count("/usage/prompt_tokens");
            seen.usage.output_tokens = count("/usage/completion_tokens");
        }
        Api::Responses => {
            for item in list(&body["output"]) {
                let texts = list(&item["content"]).map(|content| string(&content["text"]));
                if item["type"] == "message" {
                    seen.text.extend(texts);
                } else if item["type"] == "function_call" {
                    let arguments = parsed(&string(&item["arguments"]));
                    seen.calls.push((string(&item["call_id"]), string(&item["name"]), arguments));
                }
            }
            seen.usage.input_tokens = count("/usage/input_tokens");
            seen.usage.output_tokens = count("/usage/output_tokens");
        }
        Api::Anthropic => {
            for block in list(&body["content"]) {
                if block["type"] == "tool_use" {
                    let call =
                        (string(&block["id"]), string(&block["name"]), block["input"].clone());
                    seen.calls.push(call);
                } else if block["type"] == "text" {
                    seen.text += &string(&block["text"]);
                }
            }
            seen.usage.input_tokens = sums(&[
                "/usage/input_tokens",
                "/usage/cache_creation_input_tokens",
                "/usage/cache_read_input_tokens",
            ]);
            seen.usage.output_tokens = count("/usage/output_tokens");
        }
        Api::Gemini => {
            for part in list(&body["candidates"][0]["content"]["parts"]) {
                if let Some(call) = part.get("functionCall") {
                    let args = call.get("args").cloned().unwrap_or_else(|| json!({}));
                    seen.calls.push((string(&call["id"]), string(&call["name"]), args));
                } else if part["thought"] != true {
                    seen.text += &string(&part["text"]);
                }
            }
            let read =
                ["/usageMetadata/promptTokenCount", "/usageMetadata/toolUsePromptTokenCount"];
            seen.usage.input_tokens = sums(&read);
            let written =
                ["/usageMetadata/candidatesTokenCount", "/usageMetadata/thoughtsTokenCount"];
            seen.usage.output_tokens = sums(&written);
        }
    }
    seen
}

fn of(turn: &Turn) -> Seen {
    let calls = turn.proposals.iter();
    let calls = calls.map(|it| (it.id.to_string(), it.name.to_string(), parsed(it.text())));
    Seen {
        text: turn.text.as_deref().unwrap_or_default().to_owned(),
        calls: calls.collect(),
        usage: Usage { cached_tokens: 0, ..turn.usage },
    }
}

fn check_whole(recording: &Recording) -> TurnStop {
    let (api, named) = (recording.api(), recording.named());
    let turn = decode(api, recording.response.as_bytes());
    let turn = turn.unwrap_or_else(|err| panic!("{named}: {err}"));
    let body: Value = serde_json::from_str(&recording.response).unwrap();
    assert_eq!(of(&turn), seen(api, &body), "{named}");
    turn.stop
}

#[test]
fn every_recorded_reply_is_read_as_it_stands() {
    let Some(replies) = replies() else { return };
    let (mut stops, mut refused) = (BTreeMap::new(), 0);
    for reply in &replies {
        if reply.status == 200 {
            *stops.entry(check_whole(reply).word()).or_insert(0) += 1;
        } else {
            check_refusal(reply);
            refused += 1;
        }
    }
    // Cut: Gemini's `UNEXPECTED_TOOL_CALL`.
    assert_eq!(stops, BTreeMap::from([("cut", 3), ("done", 767), ("length", 23)]));
    assert_eq!(refused, 74);
}

fn check_refusal(reply: &Recording) {
    let (status, body) = (reply.status, reply.response.as_bytes());
    let err = refusal(reply.api(), status, body);
    let told = match &err {
        ModelError::Unauthorised(told) => {
            // Gemini calls a request with a key that is none invalid.
            let is_bad_key = status == 400 && reply.response.contains("API_KEY_INVALID");
            assert!(matches!(status, 401 | 403) || is_bad_key, "{}", reply.named());
            told
        }
        ModelError::Rejected { status: 400 | 404, told } => told,
        ModelError::Busy { status: 500, told } => told,
        err => panic!("{}: {err}", reply.named()),
    };
    // The words of the server, and no JSON around them.
    let said: Value = serde_json::from_str(&reply.response).unwrap();
    let places = ["/error/message", "/error", "/message", "/detail"];
    let said = places.iter().find_map(|place| said.pointer(place)?.as_str()).unwrap();
    let first = said.split(|c: char| !c.is_alphanumeric()).next().unwrap();
    assert!(told.starts_with(first) && !told.contains("sk-inval"), "{told}");
    assert_eq!(decode(reply.api(), body).map_err(drop), Err(()), "{}", reply.named());
}

/// Fixtures that are no streams of their API, and why.
const UNREADABLE: [(&str, &str); 2] = [
    ("openai__responses__openai-error.1", "You exceeded your current quota"),
    // Its first event lacks a bracket.
    ("openai__responses__parallel-tool-call-wrapper.1", "EOF while parsing an object"),
];

#[test]
fn every_fixture_is_read_to_its_end() {
    let Some(folder) = data::folder(73) else { return };
    let mut stops = BTreeMap::new();
    for entry in fs::read_dir(folder.join("vercel-ai-fixtures")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(name) = name.strip_suffix(".chunks.txt") else { continue };
        let api = match name.split("__").collect::<Vec<_>>()[..] {
            ["anthropic", ..] => Api::Anthropic,
            ["google", ..] => Api::Gemini,
            ["openai", "responses", ..] => Api::Responses,
            ["openai", "chat", ..] => Api::OpenAi,
            _ => Api::Compatible,
        };
        let lines = fs::read_to_string(&path).unwrap();
        let lines = lines.lines().filter(|line| !line.trim().is_empty());
        let stream: String = lines.map(|line| format!("data: {line}\n\n")).collect();
        let known = UNREADABLE.iter().find(|(unreadable, _)| *unreadable == name);
        match (fed(api, [stream.as_bytes()]), known) {
            (Ok((turn, _, heard)), None) => {
                assert!(heard.is_of(&turn), "{name}: {heard:?} {turn:?}");
                assert_eq!(fed(api, stream.as_bytes().chunks(7)).unwrap().0, turn);
                for call in &turn.proposals {
                    assert!(parsed(call.text()).is_object(), "{name}: {call:?}");
                }
                *stops.entry(turn.stop.word()).or_insert(0) += 1;
            }
            (Err(err), Some((_, why))) => assert!(err.to_string().contains(why), "{err}"),
            (decoded, _) => panic!("{name}: {decoded:?}"),
        }
    }
    assert_eq!(stops, BTreeMap::from([("done", 70), ("refused", 1)]));
}

fn fixture(name: &str, api: Api) -> Option<Turn> {
    let path = data::folder(1)?.join(format!("vercel-ai-fixtures/{name}.chunks.txt"));
    let lines = fs::read_to_string(path).unwrap();
    let mut decoder = Decoder::new(api);
    for line in lines.lines() {
        decoder.feed(format!("data: {line}\n\n").as_bytes(), &mut |_| {}).unwrap();
    }
    Some(decoder.finish().unwrap())
}

#[test]
fn a_message_that_begins_anew_was_cut_off_before() {
    let Some(turn) = fixture("anthropic__spliced-message-start", Api::Anthropic) else { return };
    assert_eq!(turn.proposals.len(), 1);
    assert_eq!(&*turn.proposals[0].id, "toolu_second");
    assert_eq!(&**turn.proposals[0].text(), r#"{"value":"Sparkle Day"}"#);
    let kept = turn.verbatim.unwrap();
    assert!(kept.opaque().all(|json| json.contains("sig-second")), "{kept:?}");
    let turn = fixture("anthropic__duplicate-message-start", Api::Anthropic).unwrap();
    assert_eq!(turn.text.as_deref(), Some("Hello, World!"));
}

#[test]
fn arguments_that_gemini_tells_in_pieces_are_put_together() {
    let arguments = |name: &str| {
        let turn = fixture(name, Api::Gemini)?;
        Some(turn.proposals.iter().map(|it| parsed(it.text())).collect::<Vec<_>>())
    };
    let Some(places) = arguments("google__google-stream-tool-call-arguments") else { return };
    assert_eq!(places, [json!({ "location": "Boston" }), json!({ "location": "San Francisco" })]);
    let read = arguments("google__google-stream-no-args-tool-call").unwrap();
    assert_eq!(read, [json!({}), json!({"id": "A"}), json!({"id": "B"}), json!({"id": "C"})]);
    let name = "google__google-vertex-stream-tool-call-arguments-nested.1";
    let recipe = &arguments(name).unwrap()[0]["recipe"];
    assert_eq!(recipe["name"], "Lasagna");
    assert_eq!(
        recipe["steps"][1],
        "Cook lasagna noodles according to package directions, drain and set aside."
    );
    let name = "google__google-stream-tool-call-array-arguments-missing-terminal-function-call";
    let items = &arguments(name).unwrap()[0]["operations"];
    assert_eq!(items[0]["price"].as_f64(), Some(0.5));
}

#[derive(Deserialize)]
struct Local {
    case: String,
    path: String,
    status: u16,
    ctype: String,
    response: String,
}

#[test]
fn every_answer_of_a_local_server_is_read_streamed_or_whole() {
    let Some(folder) = data::folder(52) else { return };
    let mut cases: BTreeMap<String, Vec<TurnStop>> = BTreeMap::new();
    let mut refused = 0;
    for name in ["qwen2.5-coder-1.5b", "smollm2-135m"] {
        let lines = folder.join(format!("llm-recordings/{name}_llamacpp-b7710.jsonl"));
        for line in fs::read_to_string(lines).unwrap().lines() {
            let local: Local = serde_json::from_str(line).unwrap();
            let api =
                if local.path.ends_with("messages") { Api::Anthropic } else { Api::Compatible };
            let body = local.response.as_bytes();
            let turn = match (local.status, local.ctype.starts_with("text/event-stream")) {
                (200, true) => match fed(api, [body]) {
                    Ok((turn, ..)) => turn,
                    // The server failed to read what its model wrote, and said so in its stream.
                    Err(err) => {
                        let failed = "could not answer (500): Invalid diff: now finding less tool";
                        assert!(err.to_string().contains(failed), "{err}");
                        refused += 1;
                        continue;
                    }
                },
                (200, false) => {
                    let turn = decode(api, body).unwrap();
                    assert_eq!(
                        of(&turn),
                        seen(api, &serde_json::from_str(&local.response).unwrap())
                    );
                    turn
                }
                (status, _) => {
                    assert!(matches!(refusal(api, status, body), ModelError::Rejected { .. }));
                    refused += 1;
                    continue;
                }
            };
            assert!(turn.usage.output_tokens > 0, "{}", local.case);
            cases.entry(local.case).or_default().push(turn.stop);
        }
    }
    assert_eq!((refused, cases.values().map(Vec::len).sum::<usize>()), (10, 42));
    assert!(cases["trunc"].iter().all(|stop| *stop == TurnStop::Length), "{cases:?}");
}
