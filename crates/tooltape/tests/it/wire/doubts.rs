//! What is in doubt is not executed: an end that was not told, arguments that were told twice.

use serde_json::{Value, json};
use tooltape::wire::{Api, decode};
use tooltape::{Turn, TurnStop};

use super::recordings::fed;

fn streamed(api: Api, events: &[Value]) -> (Turn, Option<String>) {
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let (turn, word, heard) = fed(api, [stream.as_bytes()]).unwrap();
    assert!(heard.is_of(&turn));
    (turn, word)
}

fn choice(choice: Value) -> Value {
    json!({ "choices": [choice] })
}

#[test]
fn an_event_that_says_nothing_ends_no_stream() {
    let function = json!({ "name": "f", "arguments": "{}" });
    let call = json!({ "tool_calls": [{ "index": 0, "id": "a", "function": function }] });
    let silent = [
        json!({ "index": 0, "finish_reason": null, "content_filter_results": {} }),
        json!({ "index": 0, "delta": null }),
        json!({ "message": null, "finish_reason": "" }),
        json!({ "message": { "content": "Hi" } }),
    ];
    for silent in silent {
        let begun = [choice(json!({ "delta": call })), choice(silent.clone())];
        let (cut, word) = streamed(Api::OpenAi, &begun);
        assert_eq!((cut.stop, word), (TurnStop::Cut, None), "{silent}");
        assert_eq!(cut.proposals.len(), 1);
        let [first, second] = begun;
        let end = choice(json!({ "delta": {}, "finish_reason": "tool_calls" }));
        assert_eq!(streamed(Api::OpenAi, &[first, second, end]).0.stop, TurnStop::Done);
    }
    // A body that came whole was not cut off.
    let body = choice(json!({ "message": call })).to_string();
    assert_eq!(decode(Api::Compatible, body.as_bytes()).unwrap().stop, TurnStop::Done);
}

/// What each API says at the end of a turn that is not done, and of one that is.
fn ends(api: Api) -> [Vec<Value>; 2] {
    let ended = |word: &str| match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => {
            vec![choice(json!({ "delta": {}, "finish_reason": word }))]
        }
        Api::Responses => {
            let details = json!({ "reason": "max_output_tokens" });
            let response = json!({ "status": word, "incomplete_details": details });
            vec![json!({ "type": format!("response.{word}"), "response": response })]
        }
        Api::Anthropic => {
            vec![json!({ "type": "message_delta", "delta": { "stop_reason": word } })]
        }
        Api::Gemini => vec![json!({ "candidates": [{ "finishReason": word }] })],
    };
    match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => ["length", "stop"].map(ended),
        Api::Responses => ["incomplete", "completed"].map(ended),
        Api::Anthropic => ["max_tokens", "end_turn"].map(ended),
        Api::Gemini => ["MAX_TOKENS", "STOP"].map(ended),
    }
}

/// What is said last, where the word for the end is not.
fn last(api: Api) -> Option<Value> {
    (api == Api::Anthropic).then(|| json!({ "type": "message_stop" }))
}

#[test]
fn a_turn_that_was_not_done_is_not_done_by_saying_so() {
    for api in Api::ALL {
        let [unfinished, done] = ends(api);
        let stop = |events: [&Vec<Value>; 2]| {
            let events = events.into_iter().flatten().cloned().chain(last(api));
            let (turn, word) = streamed(api, &events.collect::<Vec<_>>());
            (turn.stop, word.unwrap().to_lowercase())
        };
        assert_eq!(stop([&done, &done]).0, TurnStop::Done, "{api}");
        let (weakened, word) = stop([&unfinished, &done]);
        assert_eq!(weakened, TurnStop::Length, "{api}");
        assert!(["length", "incomplete", "max_tokens"].contains(&&*word), "{api}: {word}");
        assert_eq!(stop([&done, &unfinished]).0, TurnStop::Length, "{api}");
    }
    // Whoever goes on has not stopped, and may be done later.
    let [unfinished, done] = ends(Api::OpenAi);
    let more = vec![choice(json!({ "delta": { "content": "Hi" } }))];
    let (turn, word) = streamed(Api::OpenAi, &[unfinished, more, done].concat());
    assert_eq!((turn.stop, word.as_deref()), (TurnStop::Done, Some("stop")));
    let words = ["content_filter", "what_now"].map(|word| {
        let end = |word: &str| choice(json!({ "delta": {}, "finish_reason": word }));
        streamed(Api::OpenAi, &[end(word), end("stop")]).0.stop
    });
    assert_eq!(words, [TurnStop::Refused, TurnStop::Cut]);
}

#[test]
fn arguments_that_came_in_two_versions_are_not_executed() {
    let item = |arguments: Value| {
        let (kind, name) = ("function_call", "f");
        json!({ "type": kind, "call_id": "a", "name": name, "arguments": arguments })
    };
    let arguments = |done: Value| {
        let delta = "response.function_call_arguments.delta";
        let events = [
            json!({ "type": "response.output_item.added", "item": item(json!("")) }),
            json!({ "type": delta, "delta": r#"{"path":"/"}"# }),
            done,
            json!({ "type": "response.completed", "response": { "status": "completed" } }),
        ];
        let (turn, _) = streamed(Api::Responses, &events);
        assert_eq!(turn.stop, TurnStop::Done);
        let failure = turn.proposals[0].failure().map(|(why, raw)| format!("{why}: {raw}"));
        failure.unwrap_or_else(|| turn.proposals[0].text().to_string())
    };
    let told = |whole: Value| {
        let kind = "response.function_call_arguments.done";
        let argued = arguments(json!({ "type": kind, "arguments": whole }));
        let kind = "response.output_item.done";
        assert_eq!(arguments(json!({ "type": kind, "item": item(whole) })), argued);
        argued
    };
    let disputed = r#"its arguments came in two versions: {"path":"/"}"#;
    assert_eq!(told(json!(r#"{"path":"/tmp/x"}"#)), disputed);
    assert_eq!(told(json!("{")), disputed);
    assert_eq!(told(json!(r#"{"path":"/"}"#)), r#"{"path":"/"}"#);
    // What is not told again is no other version.
    assert_eq!(told(json!("")), r#"{"path":"/"}"#);
    assert_eq!(told(Value::Null), r#"{"path":"/"}"#);
}
