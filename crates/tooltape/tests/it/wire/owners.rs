//! What only the model that wrote it can read is shown to that model and to no other.

use serde_json::{Value, json};
use tooltape::wire::{Api, Encoder, decode};
use tooltape::{Message, Part, Request, Turn, Verbatim};

use super::stage::Stage;

/// A turn that calls `succeed`, with a thought that each API has in its own way.
fn body(api: Api) -> Value {
    let function = json!({ "name": "succeed", "arguments": "{}" });
    let call = json!([{ "id": "a", "function": function }]);
    let chat = |thought: Value| {
        let message = json!({ "content": thought, "tool_calls": call });
        json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] })
    };
    match api {
        Api::OpenAi | Api::Compatible => {
            let mut body = chat(Value::Null);
            body["choices"][0]["message"]["reasoning_content"] = "a secret".into();
            body
        }
        Api::Mistral => chat(json!([{ "type": "thinking", "thinking": "a secret" }])),
        Api::Responses => {
            let (kind, name) = ("function_call", "succeed");
            let call = json!({ "type": kind, "call_id": "a", "name": name, "arguments": "{}" });
            let thought = json!({ "type": "reasoning", "encrypted_content": "a secret" });
            json!({ "status": "completed", "output": [thought, call] })
        }
        Api::Anthropic => {
            let thought = json!({ "type": "thinking", "thinking": "a secret", "signature": "s" });
            let call = json!({ "type": "tool_use", "id": "a", "name": "succeed", "input": {} });
            json!({ "content": [thought, call], "stop_reason": "tool_use" })
        }
        Api::Gemini => {
            let thought = json!({ "text": "a secret", "thought": true });
            let call = json!({ "functionCall": { "name": "succeed", "args": {} } });
            let content = json!({ "parts": [thought, call] });
            json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] })
        }
    }
}

/// The turn of that body, as a model wrote it.
fn written(stage: &Stage, api: Api, model: &str) -> Turn {
    let turn = decode(api, body(api).to_string().as_bytes()).unwrap();
    let messages = [Message::User("Go.".into())];
    Encoder::new(api, model).restore(&Request::new(&messages, &stage.offer), turn)
}

/// What a model is asked behind that turn.
async fn shown(stage: &Stage, turn: &Turn, api: Api, model: &str) -> String {
    let replies = stage.replies(&turn.proposals).await;
    let (user, turn) = (Message::User("Go.".into()), Message::Model(turn.clone()));
    let messages = [user, turn, Message::Replies(replies)];
    let request = Request::new(&messages, &stage.offer);
    String::from_utf8(Encoder::new(api, model).encode(&request, true).unwrap()).unwrap()
}

#[tokio::test]
async fn a_thought_goes_back_to_the_model_that_had_it_and_to_no_other() {
    let stage = Stage::new([]);
    for writer in Api::ALL {
        let turn = written(&stage, writer, "thinker");
        assert_eq!(turn.verbatim.as_ref().unwrap().model(), Some("thinker"));
        for reader in Api::ALL {
            let own = shown(&stage, &turn, reader, "thinker").await;
            assert_eq!(own.contains("a secret"), reader == writer, "{writer} {reader}: {own}");
            let other = shown(&stage, &turn, reader, "another").await;
            assert!(!other.contains("a secret"), "{writer} {reader}: {other}");
        }
        // A tape of old does not say which model it was.
        let old = decode(writer, body(writer).to_string().as_bytes()).unwrap();
        assert!(shown(&stage, &old, writer, "another").await.contains("a secret"), "{writer}");
    }
}

#[tokio::test]
async fn a_call_that_gemini_did_not_sign_has_what_stands_for_a_signature() {
    let (stage, unsigned) = (Stage::new([]), "skip_thought_signature_validator");
    let turns = [
        written(&stage, Api::Gemini, "gemini-2.5-pro"),
        written(&stage, Api::Gemini, "gemini-3-pro"),
        decode(Api::Gemini, body(Api::Gemini).to_string().as_bytes()).unwrap(),
    ];
    for turn in turns {
        let asked = shown(&stage, &turn, Api::Gemini, "gemini-3-pro").await;
        assert_eq!(asked.matches(unsigned).count(), 1, "{asked}");
        let asked = shown(&stage, &turn, Api::Gemini, "gemini-2.5-pro").await;
        assert_eq!(asked.matches(unsigned).count(), 0, "{asked}");
    }
    for (signature, count) in [("", 1), ("signed", 0)] {
        let mut body = body(Api::Gemini);
        let call = &mut body["candidates"][0]["content"]["parts"][1];
        call["thoughtSignature"] = signature.into();
        let turn = decode(Api::Gemini, body.to_string().as_bytes()).unwrap();
        let asked = shown(&stage, &turn, Api::Gemini, "gemini-3-pro").await;
        assert_eq!(asked.matches(unsigned).count(), count, "{asked}");
        assert_eq!(asked.matches("signed\"").count(), 1 - count, "{asked}");
    }
}

#[test]
fn what_is_kept_says_how_much_and_whose_it_is_on_every_tape() {
    let parts = vec![Part::Opaque("{}".into()), Part::Text(5), Part::Call(Some("[1]".into()))];
    let kept = Verbatim::new("gemini", parts).unwrap();
    assert_eq!((kept.bytes(), kept.model()), (5, None));
    let old = r#"{"api":"gemini","parts":[{"opaque":"{}"},{"text":5},{"call":"[1]"}]}"#;
    assert_eq!(serde_json::to_string(&kept).unwrap(), old);
    assert_eq!(serde_json::from_str::<Verbatim>(old).unwrap(), kept);
    assert!(kept.is_of("gemini", "any"));
    let kept = kept.written_by("gemini-3-pro");
    let new = serde_json::to_string(&kept).unwrap();
    assert!(new.contains(r#""model":"gemini-3-pro""#), "{new}");
    assert_eq!(serde_json::from_str::<Verbatim>(&new).unwrap(), kept);
    assert!(kept.is_of("gemini", "gemini-3-pro"));
    assert!(!kept.is_of("gemini", "any") && !kept.is_of("openai", "gemini-3-pro"));
}
