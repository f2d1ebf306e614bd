//! How tools fail and how they stop a run: acceptance 36 and 38.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use tooltape::{
    Agent, Block, Empty, Executed, Output, Proposal, Reply, Run, RunError, Script, Spec, Stop,
    Stopped, ToolError, Turn, input, tool, tool_fn, tools,
};

use crate::declaring::{over, reply};

/// What the model reads of a reply, whether it was executed, and what the host reads.
fn seen(reply: &Reply) -> String {
    let fault = reply.fault.as_ref().unwrap();
    let host = format!("{} {} | {}", fault.kind, fault.code, fault.message);
    format!("{} | {} | {host}\n", reply.text(), reply.executed)
}

/// An error that is no `std::error::Error`, and has a chain of causes.
struct Chain;

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if f.alternate() { "outer: planted cause" } else { "outer" })
    }
}

/// Fails with a plain text.
#[tool(Read)]
async fn with_string(_: Empty) -> Result<(), String> {
    Err("planted text".into())
}

/// Fails with a text that is always there.
#[tool(Read)]
async fn with_str(_: Empty) -> Result<(), &'static str> {
    Err("planted text")
}

/// Fails with an error of the standard library.
#[tool(Read)]
async fn with_io(_: Empty) -> Result<(), io::Error> {
    Err(io::Error::other("planted disk"))
}

/// Fails with what can only be displayed.
#[tool(Read, blocking)]
fn with_chain(_: Empty) -> Result<(), Chain> {
    Err(Chain)
}

/// Fails with a box of anything.
#[tool(Read)]
async fn with_box(_: Empty) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Err("planted box")?
}

/// Fails by a question mark.
#[tool(Read)]
async fn with_question_mark(_: Empty) -> Result<u8, ToolError> {
    Ok("planted".parse::<u8>()?)
}

#[tokio::test]
async fn a_tool_may_fail_with_any_displayable_error_and_only_the_host_reads_it() {
    let tools = tools![with_string, with_str, with_io, with_chain, with_box, with_question_mark];
    let names = tools.each_ref().map(|tool| tool.spec().name.clone());
    let run = over(tools);
    let mut all = String::new();
    for name in names {
        let reply = reply(&run, &name, "{}").await;
        assert!(!reply.text().contains("planted"), "the model reads none of it");
        all.push_str(&seen(&reply));
    }
    expect![[r#"
        failed: the tool failed | executed | failed tool.failed | planted text
        failed: the tool failed | executed | failed tool.failed | planted text
        failed: the tool failed | executed | failed tool.failed | planted disk
        failed: the tool failed | executed | failed tool.failed | outer: planted cause
        failed: the tool failed | executed | failed tool.failed | planted box
        failed: the tool failed | executed | failed tool.failed | invalid digit found in string
    "#]]
    .assert_eq(&all);
}

#[input]
struct Kind {
    kind: String,
}

/// Fails in every way there is.
#[tool(Read)]
async fn fails(args: Kind) -> Result<(), ToolError> {
    let err = match args.kind.as_str() {
        "tell" => ToolError::tell("no such row"),
        "retry_after" => ToolError::retry_after(Duration::from_secs(2), "too many calls"),
        "not_done" => ToolError::not_done("the disk is full"),
        "in_doubt" => ToolError::in_doubt("the line went dead"),
        "cancelled" => ToolError::cancelled(),
        "user_must_act" => ToolError::user_must_act("log in first"),
        _ => ToolError::fatal("the database is gone"),
    };
    Err(err.code("row.some").details(json!({ "host": "only" })).because("planted cause"))
}

#[tokio::test]
async fn every_kind_of_error_says_what_happened_and_tells_host_and_model_apart() {
    let run = over(tools![fails]);
    let mut all = String::new();
    for kind in ["tell", "retry_after", "not_done", "in_doubt", "cancelled", "user_must_act"] {
        let reply = reply(&run, "fails", &json!({ "kind": kind }).to_string()).await;
        assert_eq!(reply.details.as_deref(), Some(&json!({ "host": "only" })), "{kind}");
        assert!(!reply.text().contains("planted"), "{kind}");
        all.push_str(&format!("{kind}: {}", seen(&reply)));
    }
    expect![[r#"
        tell: failed: no such row | executed | failed row.some | no such row: planted cause
        retry_after: not executed: too many calls | not executed | failed row.some | too many calls: planted cause
        not_done: not executed: the disk is full | not executed | failed row.some | the disk is full: planted cause
        in_doubt: unknown: the line went dead; do not repeat it blindly | unknown | in_doubt row.some | the line went dead: planted cause
        cancelled: unknown: cancelled | unknown | cancelled row.some | cancelled: planted cause
        user_must_act: not executed: log in first | not executed | failed row.some | log in first: planted cause
    "#]].assert_eq(&all);
}

#[tokio::test]
async fn a_fatal_error_ends_the_run_and_settles_its_batch() {
    let run = over(tools![fails]);
    let batch = ["fatal", "tell"]
        .map(|kind| Proposal::new(kind, "fails", json!({ "kind": kind }).to_string()));
    let Err(RunError::Ended { why, replies }) = run.batch(batch.into()).await else {
        panic!("it is fatal")
    };
    assert_eq!(why, "fails: the database is gone: planted cause");
    let seen: Vec<_> = replies.iter().map(Reply::text).collect();
    assert_eq!(seen, ["failed: the database is gone", "not executed: cancelled"]);
    let Err(closed) = run.batch(Vec::new()).await else { panic!("the run is over") };
    assert!(closed.to_string().starts_with("not executed: the run ended before"), "{closed}");
}

#[tokio::test]
async fn output_that_cannot_be_serialised_fails_at_that_stage() {
    let spec = Spec::new("table", "Makes a table with keys that JSON does not have.");
    let table = tool_fn(spec, async |_: Empty| {
        Ok::<_, ToolError>(BTreeMap::from([((1, 2), "planted value")]))
    });
    let reply = reply(&over([table]), "table", "{}").await;
    assert_eq!(reply.executed, Executed::Executed, "the tool ran");
    expect![[r#"
        failed: the tool's output could not be serialised | executed | failed output.unserialisable | the tool's output could not be serialised: key must be a string
    "#]].assert_eq(&seen(&reply));
}

/// Ends the run when it has what it came for.
#[tool(Read)]
async fn finish(args: Kind) -> Result<Stop<String>, ToolError> {
    match args.kind.as_str() {
        "fail" => Err(ToolError::tell("not found")),
        kind => Ok(Stop(format!("found {kind}"))),
    }
}

/// Has no say in it.
#[tool(Read, vote = Advisory)]
async fn advise(_: Empty) -> Result<&'static str, ToolError> {
    Ok("go on")
}

/// Goes on.
#[tool(Read)]
async fn look(_: Empty) -> Result<&'static str, ToolError> {
    Ok("nothing")
}

/// Why a conversation ends whose first turn proposes these calls.
async fn ends(calls: &[(&str, &str)]) -> Stopped {
    let calls = calls.iter().map(|(name, args)| Proposal::new(*name, *name, *args));
    let model = Script::new([Turn::calls(calls), Turn::answer("done")]);
    let run: Run = over(tools![finish, advise, look]);
    Agent::new(model, run).ask("Find it.").await.unwrap().stop
}

#[tokio::test]
async fn a_result_may_vote_to_end_the_run_and_every_counting_call_must_agree() {
    let (found, failed) = (("finish", r#"{"kind":"it"}"#), ("finish", r#"{"kind":"fail"}"#));
    let (advice, other, unknown) = (("advise", "{}"), ("look", "{}"), ("nobody", "{}"));
    assert_eq!(ends(&[found]).await, Stopped::Vote);
    assert_eq!(ends(&[found, found]).await, Stopped::Vote);
    assert_eq!(ends(&[found, advice]).await, Stopped::Vote);
    assert_eq!(ends(&[found, other]).await, Stopped::Answer);
    assert_eq!(ends(&[found, failed]).await, Stopped::Answer);
    assert_eq!(ends(&[found, unknown]).await, Stopped::Answer);
    assert_eq!(ends(&[advice]).await, Stopped::Answer);
    assert_eq!(ends(&[]).await, Stopped::Answer);
}

#[tokio::test]
async fn a_vote_is_beside_the_value_and_not_in_it() {
    let reply = reply(&over(tools![finish]), "finish", r#"{"kind":"it"}"#).await;
    assert!(reply.stop);
    assert_eq!(reply.value.as_ref().unwrap().as_str(), r#""found it""#);
    assert_eq!(*reply.content, [Block::text("found it")]);

    let spec = Spec::new("both", "Stops with blocks.");
    let both = tool_fn(spec, async |_: Empty| {
        Ok::<_, ToolError>(Stop(Output::text("value").block(Block::text("more"))))
    });
    let reply = crate::declaring::reply(&over([both]), "both", "{}").await;
    assert_eq!((reply.stop, reply.text().as_str()), (true, "value\nmore"));
}
