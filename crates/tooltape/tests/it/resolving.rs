//! From a model's text to a call: acceptance 22 to 35 and 116.

use expect_test::{Expect, expect};
use serde_json::json;
use tooltape::limits::{SHOWN_BYTES_MAX, TOLD_BYTES_MAX};
use tooltape::testing::{Spy, play};
use tooltape::{
    Access, Event, Executed, MemoryTape, Proposal, Recovery, RepairStep, Repairs, Rules, Run,
    RunError, Toolbox,
};

fn read_file() -> Spy {
    Spy::new("read_file", Access::Read).declaring(|spec| {
        spec.input(json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "lines": { "type": "integer", "minimum": 1 },
                "mode": { "enum": ["text", "bytes"] },
            },
            "required": ["path"],
            "additionalProperties": false,
        }))
    })
}

fn nothing_required(access: Access) -> Spy {
    Spy::new("status", access).declaring(|spec| {
        spec.input(json!({ "type": "object", "properties": { "all": { "type": "boolean" } } }))
    })
}

fn run(spies: &[&Spy]) -> Run {
    let toolbox = Toolbox::new(spies.iter().map(|spy| spy.tool())).unwrap();
    let allow = spies
        .iter()
        .fold(Rules::allow_reads(), |rules, spy| rules.allow(spy.tool().spec().name.to_string()));
    Run::new(&toolbox).policy(allow)
}

/// Every line is refused, and no tool runs.
async fn refused(script: &str, expect: Expect) {
    let spy = read_file();
    expect.assert_eq(&play(&run(&[&spy]), script).await);
    assert_eq!(spy.calls(), 0, "arguments are checked before any tool code runs");
}

#[tokio::test]
async fn arguments_are_checked_before_any_tool_code_runs() {
    refused(
        r#"
        read_file {"path":7}
        read_file {"path":"a","lines":0}
        read_file {"path":"a","mode":"txet"}
        read_file {"pth":"a"}
        read_file {}
        "#,
        expect![[r#"
            c1 not executed: arguments could not be deserialised: /path: expected string, found number `7`: did you mean `"7"`?
            c2 not executed: arguments could not be deserialised: /lines: expected at least 1, found 0
            c3 not executed: arguments could not be deserialised: /mode: `txet` is not allowed: did you mean `text`?
            c4 not executed: arguments could not be deserialised: missing `path`
            unknown field `pth`: did you mean `path`?
            c5 not executed: arguments could not be deserialised: missing `path`
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_unknown_tool_is_never_executed_and_is_named() {
    refused(
        "reed_file {}\nwhat {}",
        expect![[r#"
            c1 not executed: unknown tool `reed_file`: did you mean `read_file`?
            c2 not executed: unknown tool `what`
        "#]],
    )
    .await;
}

#[tokio::test]
async fn malformed_json_is_never_replaced_by_an_empty_object() {
    let spy = nothing_required(Access::Write);
    let run = run(&[&spy]);
    for text in ["{", "{\"all\":", "nul", "{}{}", "{} x", "[]", "\"{}\"", "{\"all\":true,}"] {
        let replies = run.batch(vec![Proposal::new("c1", "status", text)]).await.unwrap();
        assert!(replies[0].is_error, "`{text}` is refused");
        assert_eq!(replies[0].executed, Executed::NotExecuted);
    }
    assert_eq!(spy.calls(), 0);
}

#[tokio::test]
async fn the_reply_to_a_bad_call_carries_its_id() {
    let spy = read_file();
    let bad = ["{", "[1]", r#"{"path":1}"#, r#"{"path":"a","path":"b"}"#];
    let proposals = bad
        .iter()
        .enumerate()
        .map(|(at, text)| Proposal::new(format!("toolu_{at}"), "read_file", *text));
    let replies = run(&[&spy]).batch(proposals.collect()).await.unwrap();
    let ids: Vec<_> = replies.iter().map(|reply| reply.id.to_string()).collect();
    assert_eq!(ids, ["toolu_0", "toolu_1", "toolu_2", "toolu_3"]);
}

#[tokio::test]
async fn a_run_where_recovery_is_forbidden_ends_with_the_reply_on_tape() {
    let (spy, tape) = (read_file(), MemoryTape::default());
    let run = run(&[&spy]).recovery(Recovery::Forbidden).tape(tape.clone());
    let err = run.batch(vec![Proposal::new("c1", "read_file", "{")]).await.unwrap_err();
    let RunError::Ended { replies, .. } = err else { panic!("it ended: {err}") };
    assert_eq!((&*replies[0].id, replies[0].executed), ("c1", Executed::NotExecuted));
    let settled = tape
        .records(run.id())
        .iter()
        .any(|record| matches!(&record.event, Event::Settled(reply) if &*reply.id == "c1"));
    assert!(settled);
    let closed = run.batch(vec![Proposal::new("c2", "read_file", r#"{"path":"a"}"#)]).await;
    assert!(matches!(closed, Err(RunError::Closed { .. })));
    assert_eq!(spy.calls(), 0);
}

#[tokio::test]
async fn a_provider_layer_hands_over_what_it_could_not_parse() {
    let spy = read_file();
    let broken = Proposal::unparsed("c1", "read_file", r#"{"path": "a"#, "EOF in a string");
    assert_eq!(broken.failure(), Some(("EOF in a string", r#"{"path": "a"#)));
    let replies = run(&[&spy]).batch(vec![broken]).await.unwrap();
    expect![[r#"not executed: your JSON was malformed: EOF in a string; you sent `{"path": "a`"#]]
        .assert_eq(&replies[0].text());
    assert_eq!(spy.calls(), 0);
}

#[test]
fn ordinary_arguments_are_never_taken_for_a_failure() {
    let keys = r#"{"error":"x","raw":"y","__parse_error":true}"#;
    assert_eq!(Proposal::new("c1", "read_file", keys).failure(), None);
}

#[tokio::test]
async fn a_malformed_call_is_shown_what_it_sent_and_no_more_than_the_bound() {
    let long = format!("{{\"path\": \"{}", "é".repeat(SHOWN_BYTES_MAX));
    for cut in 0..4 {
        let text = format!("{}{long}", " ".repeat(cut));
        let replies = run(&[&read_file()]).batch(vec![Proposal::new("c", "read_file", text)]).await;
        let told = replies.unwrap()[0].text();
        assert!(told.starts_with("not executed: your JSON was malformed"), "{told}");
        assert!(told.len() <= TOLD_BYTES_MAX && told.contains('é'), "{told}");
    }
}

#[tokio::test]
async fn a_wrong_type_is_a_deserialisation_error() {
    refused(r#"read_file {"path":["a"]}"#, expect![[r#"
        c1 not executed: arguments could not be deserialised: /path: expected string, found array `["a"]`
    "#]]).await;
}

#[tokio::test]
async fn a_hidden_or_extra_field_is_refused_by_name() {
    refused(r#"read_file {"path":"a","run_id":"x","token":"y"}"#, expect![[r#"
        c1 not executed: arguments could not be deserialised: unknown field `run_id`, expected one of `lines`, `mode`, `path`
        unknown field `token`, expected one of `lines`, `mode`, `path`
    "#]]).await;
}

#[tokio::test]
async fn empty_arguments_mean_an_empty_object_only_where_that_is_harmless() {
    let (reads, writes) = (nothing_required(Access::Read), nothing_required(Access::Write));
    assert_eq!(play(&run(&[&reads]), "status").await, "c1 {}\n");
    let told = "c1 not executed: arguments are empty, expected a JSON object\n";
    assert_eq!(play(&run(&[&writes]), "status").await, told);
    assert_eq!(play(&run(&[&read_file()]), "read_file").await, told);

    let tape = MemoryTape::default();
    let by_policy = run(&[&writes]).repairs(Repairs { empty: true, ..Repairs::default() });
    let by_policy = by_policy.tape(tape.clone());
    assert_eq!(play(&by_policy, "status").await, "c1 {}\n");
    let is_mended = |record: tooltape::Record| match record.event {
        Event::Judged { facts, .. } => facts.repairs() == [RepairStep::Empty],
        _ => false,
    };
    assert!(tape.records(by_policy.id()).into_iter().any(is_mended));
}

#[tokio::test]
async fn repairs_are_made_only_where_the_run_allows_them_and_are_on_tape() {
    let script = "read_file ```json {\"path\":\"a\",\"lines\":\"3\"} ```";
    let fenced = Proposal::new("c1", "read_file", "```json\n{\"path\":\"a\",\"lines\":\"3\"}\n```");
    let encoded = Proposal::new("c2", "read_file", r#""{\"path\":\"a\"}""#);
    assert!(play(&run(&[&read_file()]), script).await.contains("not executed"));

    let all = Repairs { fence: true, double_encoding: true, numeric_string: true, empty: false };
    let tape = MemoryTape::default();
    let run = run(&[&read_file()]).repairs(all).tape(tape.clone());
    let replies = run.batch(vec![fenced, encoded]).await.unwrap();
    assert_eq!(replies[0].text(), r#"{"lines":3,"path":"a"}"#);
    assert_eq!(replies[1].text(), r#"{"path":"a"}"#);
    let repairs: Vec<_> = tape
        .records(run.id())
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Judged { facts, .. } => Some(facts.repairs().to_vec()),
            _ => None,
        })
        .collect();
    use RepairStep::{DoubleEncoding, Fence, NumericString};
    assert_eq!(repairs, [vec![Fence, NumericString], vec![DoubleEncoding]]);
}

#[tokio::test]
async fn an_allow_list_violation_is_on_tape_and_told_only_where_the_policy_says_so() {
    use tooltape::{Call, Verdict};
    let tape = MemoryTape::default();
    let silent = |_: &Call| Verdict::Deny { rule: "list".into(), told: None };
    let spy = read_file();
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap()).policy(silent).tape(tape.clone());
    assert_eq!(play(&run, r#"read_file {"path":"a"}"#).await, "c1 not executed: denied\n");
    let denied = tape.records(run.id()).iter().any(|record| {
        matches!(&record.event, Event::Judged { verdict: "deny", rule, .. } if rule == "list")
    });
    assert!(denied);

    let telling = |_: &Call| Verdict::deny("list", "only `list_dir` is allowed");
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap()).policy(telling);
    let told = "c1 not executed: denied: only `list_dir` is allowed\n";
    assert_eq!(play(&run, r#"read_file {"path":"a"}"#).await, told);
    assert_eq!(spy.calls(), 0);
}
