//! What a model thought is heard, and kept for its provider in the order of the turn.

use serde_json::{Value, json};
use tooltape::wire::{Api, decode};

use super::recordings::fed;

/// What is heard of the thoughts of a stream, and the parts of it that are kept.
fn kept(api: Api, payloads: &[Value]) -> (String, Value) {
    let stream: String = payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect();
    let (turn, _, heard) = fed(api, [stream.as_bytes()]).unwrap();
    let parts = turn.verbatim.map(|it| serde_json::to_value(it.parts()).unwrap());
    (heard.reasoning, opened(parts.unwrap_or_default()))
}

/// The parts, with what only the provider can read as JSON.
fn opened(mut parts: Value) -> Value {
    for part in parts.as_array_mut().into_iter().flatten() {
        for kind in ["opaque", "call"] {
            if let Some(json) = part[kind].as_str().map(str::to_owned) {
                part[kind] = serde_json::from_str(&json).unwrap();
            } else if part[kind].is_null() {
                part.as_object_mut().unwrap().remove(kind);
            }
        }
    }
    parts
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "delta": delta }] })
}

fn stop() -> Value {
    json!({ "choices": [{ "delta": { "content": "Yes" }, "finish_reason": "stop" }] })
}

#[test]
fn compatible_servers_have_thoughts_in_fields_of_their_own() {
    let plain = [
        delta(json!({ "reasoning_content": "Hm" })),
        delta(json!({ "reasoning_content": "m.", "content": null })),
        stop(),
    ];
    let parts = json!([{ "opaque": { "reasoning_content": "Hmm." } }, { "text": 3 }]);
    assert_eq!(kept(Api::Compatible, &plain), ("Hmm.".to_owned(), parts));
    let text = |text: &str| json!([{ "type": "reasoning.text", "text": text, "index": 0 }]);
    let signed = json!({ "type": "reasoning.text", "signature": "s", "index": 0 });
    let encrypted = json!({ "type": "reasoning.encrypted", "data": "d", "index": 1 });
    let detailed = [
        delta(json!({ "reasoning": "Hm", "reasoning_details": text("Hm") })),
        delta(json!({ "reasoning": "m", "reasoning_details": text("m") })),
        delta(json!({ "reasoning_details": [signed, encrypted] })),
        stop(),
    ];
    let (heard, parts) = kept(Api::Compatible, &detailed);
    assert_eq!(heard, "Hmm");
    let details = &parts[0]["opaque"]["reasoning_details"];
    assert_eq!((&details[0]["text"], &details[0]["signature"]), (&json!("Hmm"), &json!("s")));
    assert_eq!((&details[1]["data"], details.as_array().unwrap().len()), (&json!("d"), 2));
}

#[test]
fn mistral_has_thoughts_among_what_it_says() {
    let thought = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm" }] }]);
    let said = json!([{ "type": "text", "text": "Yes" }]);
    let end = json!({ "choices": [{ "delta": { "content": said }, "finish_reason": "stop" }] });
    let parts = json!([{ "opaque": { "thinking": "Hm" } }, { "text": 3 }]);
    let kept = kept(Api::Mistral, &[delta(json!({ "content": thought })), end]);
    assert_eq!(kept, ("Hm".to_owned(), parts));
}

#[test]
fn gemini_signs_what_it_says_and_proposes() {
    let parts = json!([
        { "text": "Hm", "thought": true },
        { "text": "Yes", "thoughtSignature": "s" },
        { "functionCall": { "name": "a" }, "thoughtSignature": "t" },
    ]);
    let body = json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP" }] });
    let expected = json!([
        { "opaque": { "text": "Hm", "thought": true } },
        { "text": 3 },
        { "opaque": { "thoughtSignature": "s" } },
        { "call": { "thoughtSignature": "t" } },
    ]);
    assert_eq!(kept(Api::Gemini, std::slice::from_ref(&body)), ("Hm".to_owned(), expected));
    let turn = decode(Api::Gemini, body.to_string().as_bytes()).unwrap();
    assert_eq!(&**turn.proposals[0].text(), "{}");
}

#[test]
fn anthropic_signs_its_thoughts_and_shows_what_its_server_did() {
    let start = |at: u64, block: Value| {
        let kind = "content_block_start";
        json!({ "type": kind, "index": at, "content_block": block })
    };
    let more = |at: u64, delta: Value| {
        let kind = "content_block_delta";
        json!({ "type": kind, "index": at, "delta": delta })
    };
    let shut = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let searched = json!({ "type": "server_tool_use", "id": "s", "name": "search", "input": {} });
    let events = [
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        more(0, json!({ "type": "thinking_delta", "thinking": "Hm" })),
        more(0, json!({ "type": "thinking_delta", "thinking": "m" })),
        more(0, json!({ "type": "signature_delta", "signature": "sig" })),
        shut(0),
        start(1, json!({ "type": "redacted_thinking", "data": "xyz" })),
        shut(1),
        start(2, searched),
        more(2, json!({ "type": "input_json_delta", "partial_json": "{\"q\":" })),
        more(2, json!({ "type": "input_json_delta", "partial_json": "1}" })),
        shut(2),
        start(3, json!({ "type": "tool_use", "id": "c", "name": "f", "input": {} })),
        shut(3),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let used = json!({ "type": "server_tool_use", "id": "s", "name": "search", "input": {"q": 1} });
    let expected = json!([
        { "opaque": { "type": "thinking", "thinking": "Hmm", "signature": "sig" } },
        { "opaque": { "type": "redacted_thinking", "data": "xyz" } },
        { "opaque": used },
        {},
    ]);
    assert_eq!(kept(Api::Anthropic, &events), ("Hmm".to_owned(), expected));
}

#[test]
fn responses_keep_encrypted_thoughts_and_no_others() {
    let thought = |encrypted: Value| {
        let summary = json!([{ "type": "summary_text", "text": "Hm" }]);
        json!({ "type": "reasoning", "summary": summary, "encrypted_content": encrypted })
    };
    let said = json!({
        "type": "message",
        "phase": "final_answer",
        "content": [{ "type": "output_text", "text": "Yes" }],
    });
    let body = json!({
        "status": "completed",
        "output": [thought(json!("xyz")), thought(Value::Null), said],
    });
    let event = json!({ "type": "response.completed", "response": body });
    let expected = json!([
        { "opaque": thought(json!("xyz")) },
        { "opaque": { "type": "message", "phase": "final_answer" } },
        { "text": 3 },
    ]);
    assert_eq!(kept(Api::Responses, &[event]), ("HmHm".to_owned(), expected));
}
