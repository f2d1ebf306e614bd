//! Ten thousand hostile argument texts: no panic, no execution, and a reply with the id each.

use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use tooltape::limits::{ARGUMENT_BYTES_MAX, DEPTH_MAX, TOLD_BYTES_MAX};
use tooltape::testing::Spy;
use tooltape::{Access, Executed, Proposal, Repairs, Run, Toolbox, Verdict};

/// How many texts are tried.
const TEXTS: usize = 10_000;
/// How many are tried in one batch.
const BATCH: usize = 100;

fn spy() -> Spy {
    Spy::new("write_file", Access::Write).declaring(|spec| {
        spec.input(json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1, "maxLength": 64 },
                "mode": { "type": "integer", "minimum": 0, "maximum": 511 },
                "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 2 },
            },
            "required": ["path"],
            "additionalProperties": false,
        }))
    })
}

/// A text that the schema takes, with anything at all in its string.
fn good() -> impl Strategy<Value = String> {
    (any::<[char; 3]>(), 0..512u16, any::<bool>()).prop_map(|(name, mode, tags)| {
        let path: String = name.iter().collect();
        let mut args = json!({ "path": path, "mode": mode });
        if tags {
            args["tags"] = json!(["a", "b"]);
        }
        args.to_string()
    })
}

/// A value that is no object with a path.
fn wrong_value() -> impl Strategy<Value = String> {
    let texts = [
        "null",
        "true",
        "0",
        "-1",
        "1e309",
        "\"{}\"",
        "[]",
        "[{\"path\":\"a\"}]",
        "{}",
        "NaN",
        "{\"path\":null}",
        "{\"path\":[]}",
        "{\"path\":{}}",
        "{\"path\":1}",
        "{\"path\":\"\"}",
        "{\"path\":\"a\",\"mode\":-1}",
        "{\"path\":\"a\",\"mode\":1.5}",
        "{path:\"a\"}",
        "{\"path\":\"a\",\"mode\":99999999999999999999}",
        "{\"path\":\"a\",\"tags\":[\"c\"]}",
        "{\"path\":\"a\",\"tags\":\"a\"}",
        "{'path':'a'}",
        "{\"path\":\"a\",}",
        "\u{feff}{}",
        "{\"path\":\"a\",\"mode\":00}",
        "{\"path\":\"a\",\"mode\":+1}",
        "{\"path\":\"a\"/**/}",
        "{\"path\":\"\\ud800\"}",
        "{\"path\":\"\\udc00\\ud800\"}",
        "{\"path\":\"\\x41\"}",
        "{\"path\":\"a\u{0}\"}",
        "{\"path\":\"a\nb\"}",
        "{\"__proto__\":{\"path\":\"a\"}}",
        "",
        " ",
    ];
    proptest::sample::select(texts.to_vec()).prop_map(str::to_owned)
}

/// Texts that must be refused, each by another rule.
fn hostile() -> impl Strategy<Value = String> {
    let cut = (good(), any::<proptest::sample::Index>()).prop_map(|(text, at)| {
        let cut = text.floor_char_boundary(at.index(text.len()));
        text[..cut].to_owned()
    });
    let trailing = (good(), "[^ \t\r\n]{1,4}").prop_map(|(text, more)| text + &more);
    let extra = (good(), "[a-z]{1,12}")
        .prop_map(|(text, name)| format!("{},\"x_{name}\":1}}", &text[..text.len() - 1]));
    let twice = good().prop_map(|text| {
        let text = &text[..text.len() - 1];
        format!("{text},\"p\\u0061th\":\"b\"}}")
    });
    let deep = (DEPTH_MAX..DEPTH_MAX * 20, any::<bool>()).prop_map(|(depth, closed)| {
        let close = if closed { "]".repeat(depth) } else { String::new() };
        format!("{{\"path\":{}{close}}}", "[".repeat(depth))
    });
    let long =
        (65..4_096usize).prop_map(|length| format!("{{\"path\":\"{}\"}}", "é".repeat(length)));
    let noise = ".{0,64}".prop_filter("this noise is a good call", |text| {
        serde_json::from_str::<serde_json::Value>(text).is_err()
    });
    Union::new([
        cut.boxed(),
        trailing.boxed(),
        extra.boxed(),
        twice.boxed(),
        deep.boxed(),
        long.boxed(),
        noise.boxed(),
        wrong_value().boxed(),
    ])
}

async fn all_refused(texts: Vec<String>, repairs: Repairs) {
    let spy = spy();
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap())
        .policy(|_: &_| Verdict::allow("everything that resolves"))
        .repairs(repairs);
    let proposals = texts
        .iter()
        .enumerate()
        .map(|(at, text)| Proposal::new(format!("id-{at}"), "write_file", text.as_str()));
    let replies = run.batch(proposals.collect()).await.unwrap();
    assert_eq!(replies.len(), texts.len());
    for (at, (text, reply)) in texts.iter().zip(&replies).enumerate() {
        assert_eq!(&*reply.id, format!("id-{at}"));
        assert!(reply.is_error, "`{text}` was not refused");
        assert_eq!(reply.executed, Executed::NotExecuted, "`{text}`");
        assert!(reply.text().starts_with("not executed: "), "{}", reply.text());
        assert!(reply.text().len() <= TOLD_BYTES_MAX);
    }
    assert_eq!(spy.calls(), 0, "something was executed");
}

#[test]
fn ten_thousand_hostile_texts_are_refused_each_with_its_id() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let batch = proptest::collection::vec(hostile(), BATCH);
    let cases = u32::try_from(TEXTS / BATCH).unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let checked = TestRunner::new(config).run(&batch, |texts| {
        runtime.block_on(all_refused(texts, Repairs::default()));
        Ok(())
    });
    checked.unwrap();
}

#[tokio::test]
async fn a_text_over_the_size_limit_is_refused_and_costs_the_tape_no_more() {
    let text = format!("{{\"path\":\"{}\"}}", "a".repeat(ARGUMENT_BYTES_MAX));
    all_refused(vec![text], Repairs::default()).await;
}

#[tokio::test]
async fn repairs_never_turn_a_hostile_text_into_a_call_that_the_schema_refuses() {
    let all = Repairs { fence: true, double_encoding: true, numeric_string: true, empty: true };
    let texts = [
        "```json\n{\"path\":1}\n```",
        "```\n{\"path\":\n```",
        "\"\\\"{}\\\"\"",
        "{\"path\":\"a\",\"mode\":\"512\"}",
        "{\"path\":\"a\",\"mode\":\"0x1\"}",
        "{\"path\":\"a\",\"mode\":\"1\",\"mode\":\"2\"}",
        "``````",
        "```json```",
        "",
    ];
    all_refused(texts.map(str::to_owned).to_vec(), all).await;
}
