//! What else a model is asked: which tool, how much, and for what answer.

use serde_json::{Value, json};
use tooltape::wire::{Api, EncodeError, Encoder};
use tooltape::{Choice, Message, Proposal, Request, Toolbox, Turn, TurnStop, builtin};

use super::stage::Stage;

fn asked(api: Api, change: impl for<'r> FnOnce(Request<'r>) -> Request<'r>) -> Value {
    let stage = Stage::new([]);
    let messages = [Message::User("Go.".into())];
    let request = change(Request::new(&messages, &stage.offer));
    serde_json::from_slice(&Encoder::new(api, "m").encode(&request, false).unwrap()).unwrap()
}

#[test]
fn a_call_may_be_required_or_forbidden() {
    let choices = |choice: Choice<'static>| {
        let choice = |api: Api| {
            let body = asked(api, |request| request.choosing(choice));
            let place = if api == Api::Gemini { "toolConfig" } else { "tool_choice" };
            body.get(place).map(ToString::to_string).unwrap_or_default()
        };
        Api::ALL.map(choice)
    };
    assert_eq!(choices(Choice::Auto), [""; 6]);
    let required = [
        r#""required""#,
        r#""required""#,
        r#"{"type":"any"}"#,
        r#"{"functionCallingConfig":{"mode":"ANY"}}"#,
        r#""any""#,
        r#""required""#,
    ];
    assert_eq!(choices(Choice::Required), required);
    let function = r#"{"function":{"name":"fail"},"type":"function"}"#;
    let tool = [
        function,
        r#"{"name":"fail","type":"function"}"#,
        r#"{"name":"fail","type":"tool"}"#,
        r#"{"functionCallingConfig":{"allowedFunctionNames":["fail"],"mode":"ANY"}}"#,
        function,
        function,
    ];
    assert_eq!(choices(Choice::Tool("fail")), tool);
    let none = [
        r#""none""#,
        r#""none""#,
        r#"{"type":"none"}"#,
        r#"{"functionCallingConfig":{"mode":"NONE"}}"#,
        r#""none""#,
        r#""none""#,
    ];
    assert_eq!(choices(Choice::None), none);
}

#[test]
fn what_cannot_be_asked_is_an_error() {
    let stage = Stage::new([]);
    let encode = |messages: &[Message], choice: Choice<'_>| {
        let request = Request::new(messages, &stage.offer).choosing(choice);
        Encoder::new(Api::OpenAi, "m").encode(&request, true).map(drop)
    };
    let user = Message::User("Go.".into());
    let asked = encode(std::slice::from_ref(&user), Choice::Tool("nobody"));
    assert_eq!(asked, Err(EncodeError::NotOffered("nobody".into())));
    assert_eq!(encode(&[], Choice::Auto), Err(EncodeError::NobodyAsks));
    let turn = Message::Model(Turn::calls([Proposal::new("a", "fail", "{}")]));
    let unanswered = EncodeError::Unanswered { at: 1, calls: 1, replies: 0 };
    assert_eq!(encode(&[user.clone(), turn], Choice::Auto), Err(unanswered.clone()));
    assert_eq!(unanswered.to_string(), "message 1 has 1 calls and 0 replies");
    let lost = EncodeError::Unanswered { at: 1, calls: 0, replies: 0 };
    assert_eq!(encode(&[user, Message::Replies(Vec::new())], Choice::Auto), Err(lost));
}

#[test]
fn how_much_is_written_has_a_limit() {
    let limit = |api: Api, tokens: Option<u64>, place: &str| {
        let body = asked(api, |request| request.writing_at_most(tokens));
        body.pointer(place).and_then(Value::as_u64)
    };
    let places = [
        (Api::OpenAi, "/max_completion_tokens"),
        (Api::Responses, "/max_output_tokens"),
        (Api::Gemini, "/generationConfig/maxOutputTokens"),
        (Api::Mistral, "/max_tokens"),
        (Api::Compatible, "/max_tokens"),
    ];
    for (api, place) in places {
        assert_eq!(limit(api, Some(100), place), Some(100), "{api}");
        assert_eq!(limit(api, None, place), None, "{api}");
    }
    let place = "/max_tokens";
    assert_eq!(limit(Api::Anthropic, Some(100), place), Some(100));
    let default = tooltape::limits::OUTPUT_TOKENS_DEFAULT;
    assert_eq!(limit(Api::Anthropic, None, place), Some(default));
}

#[test]
fn an_answer_may_have_to_be_json_of_a_schema() {
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "note": { "type": "string" } },
        "required": ["city"],
    });
    let empty = Toolbox::default().offer_all();
    let messages = [Message::User("Go.".into())];
    let request = Request::new(&messages, &empty).answering(Some(&schema));
    let body = |api: Api| -> Value {
        let body = Encoder::new(api, "m").encode(&request, true).unwrap();
        serde_json::from_slice(&body).unwrap()
    };
    let places = [
        (Api::OpenAi, "/response_format/json_schema/schema"),
        (Api::Responses, "/text/format/schema"),
        (Api::Anthropic, "/output_config/format/schema"),
        (Api::Gemini, "/generationConfig/responseSchema"),
        (Api::Mistral, "/response_format/json_schema/schema"),
        (Api::Compatible, "/response_format/json_schema/schema"),
    ];
    for (api, place) in places {
        let body = body(api);
        let city = body.pointer(place).unwrap()["properties"]["city"]["type"].clone();
        assert_eq!(city.as_str().unwrap().to_lowercase(), "string", "{api}");
        assert_eq!(body.get("tools"), None, "{api}");
    }
    assert_eq!(body(Api::OpenAi)["response_format"]["json_schema"]["strict"], true);
    assert_eq!(body(Api::Gemini)["generationConfig"]["responseMimeType"], "application/json");
    // Strictly, what is optional is `null`, which the host never sees.
    let encoder = Encoder::new(Api::OpenAi, "m");
    let turn = encoder.restore(&request, Turn::answer(r#"{"city":"Rome","note":null}"#));
    assert_eq!(turn.text.as_deref(), Some(r#"{"city":"Rome"}"#));
    // With tools, most models of Gemini refuse it.
    let stage = Stage::new([]);
    let request = Request::new(&messages, &stage.offer).answering(Some(&schema));
    let body = Encoder::new(Api::Gemini, "m").encode(&request, true).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body.get("generationConfig"), None);
}

#[test]
fn a_turn_without_a_word_is_not_shown_and_nobody_speaks_twice() {
    let stage = Stage::new([]);
    let empty = |text: &str| Message::Model(Turn::answer(text).stopped(TurnStop::Cut));
    let said = |text: &str| Message::User(text.into());
    let messages =
        [said("One."), empty(" \n"), said("Two."), empty("Hm."), empty("So."), said(" ")];
    for api in Api::ALL {
        let body = Encoder::new(api, "m").encode(&Request::new(&messages, &stage.offer), true);
        let read = super::reader::read(api, &body.unwrap()).unwrap();
        assert_eq!(read.entries.len(), 3, "{api}: {:?}", read.entries);
    }
}

#[test]
fn a_provider_knows_a_tool_by_its_alias_in_calls_too() {
    let mut toolbox = Toolbox::new(builtin::tools()).unwrap();
    toolbox.alias("anthropic", "echo", "say_again").unwrap();
    let offer = toolbox.offer_all();
    let messages = [Message::User("Go.".into())];
    let encoder = Encoder::new(Api::Anthropic, "m");
    let request = Request::new(&messages, &offer).choosing(Choice::Tool("echo"));
    let body = encoder.encode(&request, true).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["tools"][0]["name"], "say_again");
    assert_eq!(body["tool_choice"]["name"], "say_again");
    assert_eq!(body["tools"][1]["cache_control"]["type"], "ephemeral");
    assert_eq!(body["messages"][0]["content"][0]["cache_control"]["type"], "ephemeral");
}

#[tokio::test]
async fn calls_of_old_are_told_of_where_anthropic_is_offered_no_tool() {
    let (stage, toolbox) = (Stage::new([]), Toolbox::new(builtin::tools()).unwrap());
    let names = ["echo", "gone", "echo", "not a name"];
    let turn = Turn::calls(names.map(|name| Proposal::new("", name, "{}")));
    let replies = stage.replies(&turn.proposals).await;
    let (user, model) = (Message::User("Go.".into()), Message::Model(turn));
    let messages = [user, model, Message::Replies(replies)];
    let body = |api: Api, messages: &[Message], choice: Choice<'_>| -> Value {
        let offer = toolbox.offer(|_| false);
        let request = Request::new(messages, &offer).choosing(choice);
        serde_json::from_slice(&Encoder::new(api, "m").encode(&request, false).unwrap()).unwrap()
    };
    for choice in [Choice::Auto, Choice::Required, Choice::None] {
        let body = body(Api::Anthropic, &messages, choice);
        let tools = body["tools"].as_array().unwrap();
        let told = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>();
        let calls = body["messages"][1]["content"].as_array().unwrap();
        let called = calls.iter().map(|call| call["name"].as_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(called, ["echo", "gone", "echo", "not_a_name"]);
        assert_eq!(told, ["echo", "gone", "not_a_name"]);
        // What is known of a tool is told as it was.
        assert!(tools[0]["input_schema"]["properties"].is_object(), "{}", tools[0]);
        let gone = json!({
            "name": "gone",
            "description": "no longer offered",
            "input_schema": { "type": "object" },
        });
        assert_eq!(tools[1], gone);
        assert_eq!(body["tool_choice"], json!({ "type": "none" }));
    }
    let body = |api: Api, messages: &[Message]| body(api, messages, Choice::Auto);
    assert_eq!(body(Api::Anthropic, &messages[..1]).get("tools"), None);
    assert_eq!(body(Api::Anthropic, &messages[..1]).get("tool_choice"), None);
    for api in Api::ALL.into_iter().filter(|api| *api != Api::Anthropic) {
        assert_eq!(body(api, &messages).get("tools"), None, "{api}");
    }
}
