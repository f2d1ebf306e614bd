//! One conversation as each API is asked, word for word.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::wire::{Api, Encoder};
use tooltape::{Message, Part, Proposal, Request, Turn, Verbatim};

use super::stage::Stage;

/// The conversation, with a thought that the API itself wrote.
async fn check(api: Api, thought: Value, expected: Expect) {
    let stage = Stage::new([]);
    let thought = Part::Opaque(thought.to_string().into());
    let parts = vec![thought, Part::Text(3), Part::Call(None), Part::Call(None)];
    let calls =
        [Proposal::new("call_1", "fail", r#"{"b":1,"a":2.50}"#), Proposal::new("", "paint", "{")];
    let turn = Turn::calls(calls).saying("Hm.");
    let turn = turn.verbatim(Verbatim::new(api.name(), parts).unwrap());
    // The reply to a call that no API would have made.
    let answered = [turn.proposals[0].clone(), Proposal::new("", "paint", "{}")];
    let replies = Message::Replies(stage.replies(&answered).await);
    let messages = [Message::User("Go.".into()), Message::Model(turn), replies];
    let request = Request::new(&messages, &stage.offer).instructed(Some("Be brief."));
    let body = Encoder::new(api, "m-1").encode(&request, true).unwrap();
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    body.as_object_mut().unwrap().remove("tools");
    let mut page = String::new();
    for (key, value) in body.as_object().unwrap() {
        match value.as_array().filter(|list| list.iter().all(Value::is_object)) {
            Some(list) => list.iter().for_each(|it| writeln!(page, "{key}: {it}").unwrap()),
            None => writeln!(page, "{key}: {value}").unwrap(),
        }
    }
    expected.assert_eq(&page);
}

#[tokio::test]
async fn openai() {
    check(Api::OpenAi, json!({}), expect![[r#"
        messages: {"content":"Be brief.","role":"system"}
        messages: {"content":"Go.","role":"user"}
        messages: {"content":"Hm.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"b\":1,\"a\":2.50}","name":"fail"},"id":"call_1","type":"function"},{"function":{"arguments":"{","name":"paint"},"id":"call_sI6RuNAjY32Pfw0WitarOdrR","type":"function"}]}
        messages: {"content":"failed: no luck today","role":"tool","tool_call_id":"call_1"}
        messages: {"content":"Here:\n[image: image/png]","role":"tool","tool_call_id":"call_sI6RuNAjY32Pfw0WitarOdrR"}
        messages: {"content":[{"text":"What `paint` returned for call `call_sI6RuNAjY32Pfw0WitarOdrR`:","type":"text"},{"image_url":{"url":"data:image/png;base64,iVBORw0KGgo="},"type":"image_url"}],"role":"user"}
        model: "m-1"
        stream: true
        stream_options: {"include_usage":true}
    "#]]).await;
}

#[tokio::test]
async fn responses() {
    let thought = json!({ "type": "reasoning", "summary": [], "encrypted_content": "xyz" });
    check(Api::Responses, thought, expect![[r#"
        include: ["reasoning.encrypted_content"]
        input: {"content":"Go.","role":"user","type":"message"}
        input: {"encrypted_content":"xyz","summary":[],"type":"reasoning"}
        input: {"content":"Hm.","role":"assistant","type":"message"}
        input: {"arguments":"{\"b\":1,\"a\":2.50}","call_id":"call_1","name":"fail","type":"function_call"}
        input: {"arguments":"{","call_id":"call_sI6RuNAjY32Pfw0WitarOdrR","name":"paint","type":"function_call"}
        input: {"call_id":"call_1","output":"failed: no luck today","type":"function_call_output"}
        input: {"call_id":"call_sI6RuNAjY32Pfw0WitarOdrR","output":[{"text":"Here:","type":"input_text"},{"image_url":"data:image/png;base64,iVBORw0KGgo=","type":"input_image"}],"type":"function_call_output"}
        instructions: "Be brief."
        model: "m-1"
        store: false
        stream: true
    "#]]).await;
}

#[tokio::test]
async fn anthropic() {
    let thought = json!({ "type": "thinking", "thinking": "Hm", "signature": "xyz" });
    check(Api::Anthropic, thought, expect![[r#"
        max_tokens: 16384
        messages: {"content":[{"text":"Go.","type":"text"}],"role":"user"}
        messages: {"content":[{"signature":"xyz","thinking":"Hm","type":"thinking"},{"text":"Hm.","type":"text"},{"id":"call_1","input":{"a":2.5,"b":1},"name":"fail","type":"tool_use"},{"id":"call_sI6RuNAjY32Pfw0WitarOdrR","input":{"_unparsed":"{"},"name":"paint","type":"tool_use"}],"role":"assistant"}
        messages: {"content":[{"content":[{"text":"failed: no luck today","type":"text"}],"is_error":true,"tool_use_id":"call_1","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"content":[{"text":"Here:","type":"text"},{"source":{"data":"iVBORw0KGgo=","media_type":"image/png","type":"base64"},"type":"image"}],"is_error":false,"tool_use_id":"call_sI6RuNAjY32Pfw0WitarOdrR","type":"tool_result"}],"role":"user"}
        model: "m-1"
        stream: true
        system: {"cache_control":{"type":"ephemeral"},"text":"Be brief.","type":"text"}
    "#]]).await;
}

#[tokio::test]
async fn gemini() {
    check(Api::Gemini, json!({ "text": "Hm", "thought": true }), expect![[r#"
        contents: {"parts":[{"text":"Go."}],"role":"user"}
        contents: {"parts":[{"text":"Hm","thought":true},{"text":"Hm."},{"functionCall":{"args":{"a":2.5,"b":1},"id":"call_1","name":"fail"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"args":{"_unparsed":"{"},"name":"paint"}}],"role":"model"}
        contents: {"parts":[{"functionResponse":{"id":"call_1","name":"fail","response":{"error":"failed: no luck today"}}},{"functionResponse":{"name":"paint","response":{"output":"Here:\n[image: image/png]"}}},{"text":"[image: image/png] of `paint`:"},{"inlineData":{"data":"iVBORw0KGgo=","mimeType":"image/png"}}],"role":"user"}
        systemInstruction: {"parts":[{"text":"Be brief."}]}
    "#]]).await;
}

#[tokio::test]
async fn mistral() {
    check(Api::Mistral, json!({ "thinking": "Hm" }), expect![[r#"
        messages: {"content":"Be brief.","role":"system"}
        messages: {"content":"Go.","role":"user"}
        messages: {"content":[{"thinking":[{"text":"Hm","type":"text"}],"type":"thinking"},{"text":"Hm.","type":"text"}],"role":"assistant","tool_calls":[{"function":{"arguments":"{\"b\":1,\"a\":2.50}","name":"fail"},"id":"Ff0lwq0PN","type":"function"},{"function":{"arguments":"{\"_unparsed\":\"{\"}","name":"paint"},"id":"sI6RuNAjY","type":"function"}]}
        messages: {"content":"failed: no luck today","name":"fail","role":"tool","tool_call_id":"Ff0lwq0PN"}
        messages: {"content":[{"text":"Here:\n[image: image/png]","type":"text"},{"image_url":"data:image/png;base64,iVBORw0KGgo=","type":"image_url"}],"name":"paint","role":"tool","tool_call_id":"sI6RuNAjY"}
        model: "m-1"
        stream: true
    "#]]).await;
}

#[tokio::test]
async fn compatible() {
    check(Api::Compatible, json!({ "reasoning_content": "Hm" }), expect![[r#"
        messages: {"content":"Be brief.","role":"system"}
        messages: {"content":"Go.","role":"user"}
        messages: {"content":"Hm.","reasoning_content":"Hm","role":"assistant","tool_calls":[{"function":{"arguments":"{\"b\":1,\"a\":2.50}","name":"fail"},"id":"call_1","type":"function"},{"function":{"arguments":"{\"_unparsed\":\"{\"}","name":"paint"},"id":"call_sI6RuNAjY32Pfw0WitarOdrR","type":"function"}]}
        messages: {"content":"failed: no luck today","name":"fail","role":"tool","tool_call_id":"call_1"}
        messages: {"content":"Here:\n[image: image/png]","name":"paint","role":"tool","tool_call_id":"call_sI6RuNAjY32Pfw0WitarOdrR"}
        messages: {"content":[{"text":"What `paint` returned for call `call_sI6RuNAjY32Pfw0WitarOdrR`:","type":"text"},{"image_url":{"url":"data:image/png;base64,iVBORw0KGgo="},"type":"image_url"}],"role":"user"}
        model: "m-1"
        stream: true
        stream_options: {"include_usage":true}
    "#]]).await;
}
