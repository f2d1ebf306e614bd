//! What is no answer of its API is an error or was cut off, and is never executed.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::limits::{
    EVENT_BYTES_MAX, REFUSAL_BYTES_MAX, TURN_BYTES_MAX, TURN_CALLS_MAX, TURN_ITEMS_MAX,
};
use tooltape::wire::{Api, Decoder, decode, refusal};
use tooltape::{ModelError, TurnStop};

use super::recordings::fed;

const PAGE: &str = "<html><title>Bad Gateway</title>\n</html>\n";

fn chat(deltas: &[&str]) -> String {
    let event = |delta: &&str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    deltas.iter().map(event).collect()
}

/// A body of Chat Completions with these calls.
fn whole(calls: &[&str]) -> String {
    let message = format!("{{\"tool_calls\":[{}]}}", calls.join(","));
    format!("{{\"choices\":[{{\"message\":{message},\"finish_reason\":\"stop\"}}]}}")
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n";

/// The calls of a stream of Chat Completions, as `id name arguments`.
fn calls(deltas: &[&str]) -> Vec<String> {
    let (turn, _, heard) = fed(Api::Compatible, [(chat(deltas) + STOP).as_bytes()]).unwrap();
    assert_eq!(turn.stop, TurnStop::Done);
    assert!(heard.is_of(&turn));
    let calls = turn.proposals.iter();
    calls.map(|it| format!("{} {} {}", it.id, it.name, it.text())).collect()
}

#[test]
fn a_page_of_html_is_no_answer() {
    for api in Api::ALL {
        assert!(matches!(decode(api, PAGE.as_bytes()), Err(ModelError::Garbled(_))), "{api}");
        let streamed = fed(api, [PAGE.as_bytes()]).unwrap_err();
        assert!(
            matches!(&streamed, ModelError::Garbled(why) if why.contains("<html>")),
            "{streamed}"
        );
        for body in ["", "{}", "[]", "null", "\"\"", r#"{"choices":[]}"#, r#"{"candidates":[]}"#] {
            assert!(decode(api, body.as_bytes()).is_err(), "{api} {body}");
        }
        let event = format!("data: {PAGE}\n");
        assert!(matches!(fed(api, [event.as_bytes()]), Err(ModelError::Garbled(_))), "{api}");
    }
}

#[test]
fn what_a_refusal_says_is_short_safe_to_look_at_and_has_no_key() {
    let check = |status: u16, body: &str, expected: &str| {
        let told = match refusal(Api::OpenAi, status, body.as_bytes()) {
            ModelError::Unauthorised(told) => format!("other key: {told}"),
            ModelError::Rejected { status, told } => format!("rejected {status}: {told}"),
            ModelError::Busy { status, told } => format!("busy {status}: {told}"),
            other => panic!("{other}"),
        };
        assert_eq!(told, expected);
    };
    let page = r"busy 502: no JSON of `openai`: `<html><title>Bad Gateway</title>\n</html>`";
    check(502, PAGE, page);
    check(429, "", "busy 429: it said nothing about it");
    check(
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-proj-abcdefgh. See https://a.b."}}"#,
        "other key: Incorrect API key provided: [key] See https://a.b.",
    );
    check(
        403,
        r#"{"detail":"no access for 0123456789abcdef0123456789abcdef\u001b[2J"}"#,
        r"other key: no access for [key]\u{1b}[2J",
    );
    check(400, "\u{202e}\u{1b}[31m", r"rejected 400: no JSON of `openai`: `\u{202e}\u{1b}[31m`");
    let long = refusal(Api::Gemini, 400, &[b'x'; 1 << 20]).to_string();
    assert!(long.len() < 400, "{long}");
    let long = format!("{{\"error\":{{\"message\":\"{}\"}}}}", "y ".repeat(1 << 20));
    assert!(refusal(Api::Gemini, 400, long.as_bytes()).to_string().len() < 1_500);
}

#[test]
fn an_error_in_the_midst_of_a_stream_ends_the_turn() {
    let check = |api: Api, payload: &str, expected: Expect| {
        let mut decoder = Decoder::new(api);
        let event = format!("data: {payload}\n\n");
        let err = decoder.feed(event.as_bytes(), &mut |_| {}).unwrap_err();
        // It stays an error.
        assert_eq!(decoder.feed(b"data: {}\n\n", &mut |_| {}), Err(err.clone()));
        assert_eq!(decoder.finish(), Err(err.clone()));
        expected.assert_eq(&err.to_string());
    };
    check(
        Api::Anthropic,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        expect!["the model's server could not answer (529): Overloaded"],
    );
    check(
        Api::Gemini,
        r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
        expect!["the model's server could not answer (503): The model is overloaded."],
    );
    check(
        Api::Responses,
        r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"No"}}}"#,
        expect!["the model's server could not answer (500): No"],
    );
    check(
        Api::Compatible,
        r#"{"error":{"message":"Provider returned error","code":502}}"#,
        expect!["the model's server could not answer (502): Provider returned error"],
    );
    check(Api::OpenAi, r#"{"error":"out of luck"}"#, expect!["the model failed: out of luck"]);
}

#[test]
fn calls_come_in_all_the_ways_that_servers_have() {
    let call = |json: &str| format!("{{\"tool_calls\":[{json}]}}");
    let streamed = |deltas: &[&str]| {
        let deltas: Vec<String> = deltas.iter().map(|json| call(json)).collect();
        calls(&deltas.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // The id in the first delta only, in every delta, and interleaved.
    let first = r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#;
    assert_eq!(
        streamed(&[
            first,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"{}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"}"}}"#,
        ]),
        ["a f {}", "b g {}"]
    );
    // Another id at the same index is another call.
    let second = r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#;
    assert_eq!(streamed(&[first, second]), ["a f ", "b f {}"]);
    // No index, no id, no name; a name in two pieces; arguments that are an object.
    assert_eq!(
        streamed(&[
            r#"{"id":"a","function":{"name":"get_"}}"#,
            r#"{"function":{"name":"","arguments":"{"}}"#,
            r#"{"id":"a","function":{"name":"get_","arguments":"}"}}"#,
            r#"{"function":{"name":"f","arguments":{"x": [1]}}}"#,
            r#"{"index":7,"function":{"arguments":"{}"}}"#,
            r#"{"index":7,"id":"late","function":{"name":"la"}}"#,
            r#"{"index":7,"function":{"name":"te"}}"#,
        ]),
        ["a get_ {}", r#" f {"x": [1]}"#, "late late {}"]
    );
    // Two calls with one id are two calls.
    let same = r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#;
    assert_eq!(decode(Api::OpenAi, whole(&[same, same]).as_bytes()).unwrap().proposals.len(), 2);
}

#[test]
fn an_end_that_nobody_told_or_knows_is_none() {
    let stop = |api: Api, stream: &str| fed(api, [stream.as_bytes()]).unwrap().0.stop;
    let said = chat(&[r#"{"content":"Hi"}"#]);
    assert_eq!(stop(Api::OpenAi, &said), TurnStop::Cut);
    assert_eq!(stop(Api::OpenAi, &format!("{said}data: [DONE]\n\n")), TurnStop::Cut);
    assert_eq!(stop(Api::OpenAi, ": only a comment\n\n"), TurnStop::Cut);
    let ends = [
        ("stop", TurnStop::Done),
        ("length", TurnStop::Length),
        ("content_filter", TurnStop::Refused),
        ("what_now", TurnStop::Cut),
        ("error", TurnStop::Cut),
    ];
    for (word, expected) in ends {
        let end =
            format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{word}\"}}]}}\n\n");
        assert_eq!(stop(Api::Compatible, &format!("{said}{end}")), expected, "{word}");
        // Whoever goes on has not stopped.
        assert_eq!(stop(Api::Compatible, &format!("{end}{said}")), TurnStop::Cut, "{word}");
        // The blank line at the very end is not missed.
        assert_eq!(stop(Api::Compatible, format!("{said}{end}").trim_end()), TurnStop::Cut);
        assert_eq!(stop(Api::Compatible, &format!("{said}{}\n", end.trim_end())), expected);
    }
    let blocked = r#"data: {"promptFeedback":{"blockReason":"SAFETY"}}"#;
    assert_eq!(stop(Api::Gemini, &format!("{blocked}\n\n")), TurnStop::Refused);
    let begun = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n";
    assert_eq!(stop(Api::Anthropic, begun), TurnStop::Cut);
}

#[test]
fn unknown_events_are_passed_over_and_bytes_that_are_no_text_do_no_harm() {
    let known = [
        (Api::OpenAi, r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#),
        (
            Api::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#,
        ),
    ];
    for (api, event) in known {
        let stream = format!("data: {{\"later\":1}}\n\ndata:\n\nevent: x\ndata: {event}\n\n");
        assert_eq!(fed(api, [stream.as_bytes()]).unwrap().0.text.as_deref(), Some("Hi"), "{api}");
        let broken = format!("data: {event}\n\n").replace("Hi", "\u{1}").into_bytes();
        let broken: Vec<u8> = broken.iter().map(|it| if *it == 1 { 0xFF } else { *it }).collect();
        assert_eq!(fed(api, [&*broken]).unwrap().0.text.as_deref(), Some("\u{fffd}"), "{api}");
    }
    for (api, event) in [
        (Api::Anthropic, r#"{"type":"news","index":3}"#),
        (Api::Responses, r#"{"type":"response.news.delta","delta":{"a":1}}"#),
    ] {
        let turn = fed(api, [format!("data: {event}\n\n").as_bytes()]).unwrap().0;
        assert_eq!((turn.stop, turn.text), (TurnStop::Cut, None), "{api}");
    }
}

#[test]
fn what_is_too_long_is_not_listened_to() {
    let mut decoder = Decoder::new(Api::OpenAi);
    let piece = "x".repeat(1 << 20);
    let mut megabytes = 0;
    let err = loop {
        let said = chat(&[&format!("{{\"content\":\"{piece}\"}}")]);
        match decoder.feed(said.as_bytes(), &mut |_| {}) {
            Ok(()) => megabytes += 1,
            Err(err) => break err,
        }
    };
    assert_eq!(megabytes, TURN_BYTES_MAX >> 20);
    assert_eq!(decoder.finish(), Err(err));
    let event = format!("data: {}\n\n", "x".repeat(EVENT_BYTES_MAX + 1));
    let err = fed(Api::Gemini, [event.as_bytes()]).unwrap_err().to_string();
    assert!(err.contains("an event has more than 16777216 bytes"), "{err}");
    let call = r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#;
    let calls = |count: usize| {
        let turn = decode(Api::OpenAi, whole(&vec![call; count]).as_bytes());
        turn.map(|turn| turn.proposals.len())
    };
    assert_eq!(calls(TURN_CALLS_MAX), Ok(TURN_CALLS_MAX));
    assert!(matches!(calls(TURN_CALLS_MAX + 1), Err(ModelError::Garbled(_))));
    assert!(decode(Api::OpenAi, &vec![b' '; TURN_BYTES_MAX + 1]).is_err());
}

#[test]
fn no_more_is_looked_at_of_a_refusal_than_its_beginning() {
    let body = |bytes: usize| {
        let (start, end) = (r#"{"error":{"code":503,"message":"Busy"},"more":""#, "\"}");
        format!("{start}{}{end}", "x".repeat(bytes - start.len() - end.len()))
    };
    let busy = ModelError::Busy { status: 503, told: "Busy".into() };
    let (within, beyond) = (body(REFUSAL_BYTES_MAX), body(REFUSAL_BYTES_MAX + 1));
    assert_eq!(refusal(Api::Gemini, 503, within.as_bytes()), busy);
    let strange = refusal(Api::Gemini, 503, beyond.as_bytes()).to_string();
    assert!(strange.contains("no JSON of `gemini`: `{\"error\""), "{strange}");
    let streamed = |body: &str| fed(Api::Gemini, [format!("data: {body}\n\n").as_bytes()]);
    assert_eq!(streamed(&within).unwrap_err(), busy);
    assert!(matches!(streamed(&beyond), Err(ModelError::Failed(_))));
}

/// Feeds an event for each number until that is an error, and returns the number.
fn heard_until_refused(api: Api, event: impl Fn(usize) -> Value) -> usize {
    let mut decoder = Decoder::new(api);
    let mut events = 0..=2 * TURN_ITEMS_MAX;
    let refused = events.find(|at| {
        let event = format!("data: {}\n\n", event(*at));
        decoder.feed(event.as_bytes(), &mut |_| {}).is_err()
    });
    assert!(decoder.finish().unwrap_err().to_string().contains("a turn with more than"));
    refused.unwrap()
}

#[test]
fn a_turn_of_too_many_items_is_not_listened_to_however_little_they_say() {
    let added = |item: Value| {
        let added = "response.output_item.added";
        let event = |at| json!({ "type": added, "output_index": at, "item": item.clone() });
        heard_until_refused(Api::Responses, event)
    };
    assert_eq!(added(json!({ "type": "message" })), TURN_ITEMS_MAX);
    assert_eq!(added(json!({ "type": "reasoning" })), TURN_ITEMS_MAX);
    let begun = |block: Value| {
        let begun = "content_block_start";
        let event = |at| json!({ "type": begun, "index": at, "content_block": block.clone() });
        heard_until_refused(Api::Anthropic, event)
    };
    assert_eq!(begun(json!({ "type": "text", "text": "" })), TURN_ITEMS_MAX);
    assert_eq!(begun(json!({ "type": "thinking" })), TURN_ITEMS_MAX);
    let details = |at: usize| {
        let detail = json!({ "type": "reasoning.text", "index": at });
        json!({ "choices": [{ "delta": { "reasoning_details": [detail] } }] })
    };
    // The thought that they are of is an item too.
    assert_eq!(heard_until_refused(Api::Compatible, details), TURN_ITEMS_MAX - 1);
    let deep = |at: usize| {
        let piece = json!({ "jsonPath": format!("$.x{at}{}", ".a".repeat(62)) });
        let call = json!({ "partialArgs": [piece], "willContinue": true });
        let parts = json!([{ "functionCall": call }]);
        json!({ "candidates": [{ "content": { "parts": parts } }] })
    };
    assert!(heard_until_refused(Api::Gemini, deep) < TURN_BYTES_MAX >> 14);
}

#[test]
fn a_block_that_begins_where_another_is_open_ends_that_one() {
    let begun = |id: &str| {
        let block = json!({ "type": "tool_use", "id": id, "name": "f", "input": { "id": id } });
        json!({ "type": "content_block_start", "index": 0, "content_block": block })
    };
    let events = [
        begun("a"),
        begun("b"),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let turn = fed(Api::Anthropic, [stream.as_bytes()]).unwrap().0;
    let arguments = turn.proposals.iter().map(|it| &**it.text()).collect::<Vec<_>>();
    assert_eq!(arguments, [r#"{"id":"a"}"#, r#"{"id":"b"}"#]);
}
