//! Forking a run, comparing two, and writing one down as a test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::{expect, expect_file};
use serde_json::json;
use tooltape::{
    Agent, CallNo, Clock, Diff, Event, Fork, MemoryTape, Proposal, Random, Record, RecordTest,
    Replay, ResumeError, Run, RunId, Script, Spec, TapeWriter, Tool, ToolError, Toolbox, Turn,
    Verdict, builtin, input, tool_fn,
};

#[input]
struct Line {
    text: String,
}

/// A tool that writes, and what it wrote.
fn writer() -> (Arc<dyn Tool>, Arc<Mutex<Vec<String>>>) {
    let written = Arc::new(Mutex::new(Vec::new()));
    let book = written.clone();
    let write = tool_fn(Spec::new("write", "Writes a line."), move |args: Line| {
        let book = book.clone();
        async move {
            book.lock().unwrap().push(args.text.clone());
            Ok::<_, ToolError>(args.text.len())
        }
    });
    (write, written)
}

fn write(id: &str, text: &str) -> Proposal {
    Proposal::new(id, "write", json!({ "text": text }).to_string())
}

fn run(toolbox: &Toolbox, tape: &MemoryTape) -> Run {
    Run::new(toolbox).tape(tape.clone()).policy(|_: &_| Verdict::allow("all"))
}

fn place_of(records: &[Record], call: u64) -> u64 {
    let proposed = |record: &&Record| match &record.event {
        Event::Proposed(facts) => facts.call == CallNo(call),
        _ => false,
    };
    records.iter().find(proposed).unwrap().seq
}

#[tokio::test]
async fn a_fork_shares_the_beginning_and_goes_its_own_way_from_there() {
    let tape = MemoryTape::default();
    let (tool, written) = writer();
    let toolbox = Toolbox::new([tool]).unwrap();
    let model = Script::new([
        Turn::calls([write("a", "one"), write("b", "two"), write("c", "three")]),
        Turn::answer("done"),
    ]);
    let agent = Agent::new(model, run(&toolbox, &tape));
    agent.ask("Write.").await.unwrap();
    let first = agent.run().id();
    let records = tape.records(first);
    let fork = Fork::of(first, place_of(&records, 2)).edit(CallNo(2), json!({ "text": "zwei" }));
    let forked = run(&toolbox, &tape).fork(fork).await.unwrap();
    let agent = Agent::new(Script::new([Turn::answer("fertig")]), forked);
    let answered = agent.resume().await.unwrap();
    assert_eq!((answered.text.as_deref(), answered.turns), (Some("fertig"), 2));
    assert_eq!(*written.lock().unwrap(), ["one", "two", "three", "zwei", "three"]);
    let second = agent.run().id();
    let Event::RunStarted { fork: Some(point), .. } = &tape.records(second)[0].event else {
        panic!("it says where it comes from");
    };
    assert_eq!((point.run, point.seq), (first, place_of(&records, 2)));
    let diff = Diff::of(&records, &tape.records(second)).unwrap();
    assert!(!diff.is_same());
    let text = diff.to_string().replace(&first.to_string(), "A").replace(&second.to_string(), "B");
    expect![[r##"
        left  A
        right B
             #1    #1  write
        ~    #2    #2  write
              /arguments/text
                left  "two"
                right "zwei"
              /value
                left  3
                right 4
             #3    #3  write
              /answer
                left  "done"
                right "fertig"
        1 of 3 calls differ"##]]
    .assert_eq(&text);
    let report = Replay::of(&tape, second).with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report}");
}

#[tokio::test]
async fn a_run_without_a_model_is_forked_at_a_call() {
    let tape = MemoryTape::default();
    let (tool, written) = writer();
    let toolbox = Toolbox::new([tool]).unwrap();
    let first = run(&toolbox, &tape);
    first.batch(vec![write("a", "one")]).await.unwrap();
    first.batch(vec![write("b", "two")]).await.unwrap();
    let at = place_of(&tape.records(first.id()), 2);
    let fork = Fork::of(first.id(), at).edit(CallNo(2), json!({ "text": "zwei" }));
    let forked = run(&toolbox, &tape).fork(fork).await.unwrap();
    let replies = forked.settle_open().await.unwrap();
    assert_eq!((replies.len(), replies[0].call), (1, CallNo(2)));
    assert_eq!(*written.lock().unwrap(), ["one", "two", "zwei"]);
    let late = Fork::of(first.id(), at).edit(CallNo(1), json!({ "text": "eins" }));
    let refused = run(&toolbox, &tape).fork(late).await.err().unwrap();
    assert!(matches!(refused, ResumeError::Edited { call: CallNo(1) }), "{refused}");
    for at in [0, 10_000] {
        let refused = run(&toolbox, &tape).fork(Fork::of(first.id(), at)).await.err().unwrap();
        assert!(refused.to_string().contains("of which one must be shared"), "{refused}");
    }
    let nobody = RunId::new(1, [0; 10]);
    let refused = run(&toolbox, &tape).fork(Fork::of(nobody, 1)).await.err().unwrap();
    assert!(matches!(refused, ResumeError::Unknown { .. }), "{refused}");
}

#[tokio::test]
async fn runs_are_aligned_by_their_calls() {
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(builtin::tools()).unwrap());
    let play = async |texts: &[&str]| {
        let run = run(&toolbox, &tape);
        for text in texts {
            let args = json!({ "text": text }).to_string();
            run.batch(vec![Proposal::new("c", "echo", args)]).await.unwrap();
        }
        tape.records(run.id())
    };
    let (left, right) = (play(&["a", "b", "c", "d"]).await, play(&["a", "c", "x", "d", "e"]).await);
    let diff = Diff::of(&left, &right).unwrap();
    let pairs: Vec<_> =
        diff.calls.iter().map(|it| (it.left.map(|no| no.0), it.right.map(|no| no.0))).collect();
    let wanted = [
        (Some(1), Some(1)),
        (Some(2), None),
        (Some(3), Some(2)),
        (None, Some(3)),
        (Some(4), Some(4)),
        (None, Some(5)),
    ];
    assert_eq!(pairs, wanted);
    assert!(Diff::of(&left, &left).unwrap().is_same());
    assert!(Diff::of(&left, &[]).is_none());
    let json = serde_json::to_value(&diff).unwrap();
    assert_eq!(json["calls"][1]["right"], json!(null));
}

#[tokio::test]
async fn a_run_becomes_a_test_that_needs_nothing_but_its_tape() {
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(builtin::tools()).unwrap());
    let run = run(&toolbox, &tape).random(Random::seeded([7; 32]));
    let run = run.clock(Clock::fixed(Duration::from_secs(1_700_000_000)));
    let echo = Proposal::new("a", "echo", r#"{"text":"hello"}"#);
    run.batch(vec![echo, Proposal::new("b", "nobody", "{}")]).await.unwrap();
    let mut file = TapeWriter::new(Vec::new()).unwrap();
    tape.lines(run.id()).unwrap().iter().for_each(|line| file.line(line).unwrap());
    let file = String::from_utf8(file.end(|_| {}).unwrap()).unwrap();
    let report = Replay::from_lines(&file, None).unwrap().with(&toolbox).check().await.unwrap();
    assert!(report.is_same() && report.calls == 2, "{report}");
    assert_eq!(report.tape.head(run.id()).unwrap(), tape.head(run.id()).unwrap());
    let damaged = file.replace("nobody", "somebody");
    assert!(Replay::from_lines(&damaged, None).is_err(), "a changed tape is refused");
    let test = RecordTest {
        name: "what_was_recorded_still_happens",
        tape: "recorded.tape.jsonl",
        tools: "tooltape::builtin::tools()",
    };
    // Both are files of this crate, where the test is compiled and run as it stands.
    expect_file!["recorded.tape.jsonl"].assert_eq(&file);
    expect_file!["recorded.rs"].assert_eq(&test.source(&tape.records(run.id())).unwrap());
}

#[tokio::test]
async fn a_fork_that_edits_a_call_that_is_not_there_says_which_are() {
    let tape = MemoryTape::default();
    let (tool, written) = writer();
    let toolbox = Toolbox::new([tool]).unwrap();
    let calls = [write("a", "one"), write("b", "two"), write("c", "three")];
    let model = Script::new([Turn::calls(calls.clone()), Turn::answer("done")]);
    let agent = Agent::new(model, run(&toolbox, &tape));
    agent.ask("Write.").await.unwrap();
    let by_host = run(&toolbox, &tape);
    by_host.batch(calls.to_vec()).await.unwrap();
    let before = tape.runs();
    for (id, expected) in [(agent.run().id(), "`#2`, `#3`"), (by_host.id(), "`#2`")] {
        let fork = Fork::of(id, place_of(&tape.records(id), 2)).edit(CallNo(9), json!({}));
        let refused = run(&toolbox, &tape).fork(fork).await.err().unwrap();
        assert!(matches!(refused, ResumeError::NoCall { .. }));
        let expected = format!("there is no call #9 to edit at that place; open are {expected}");
        assert_eq!(refused.to_string(), expected);
    }
    assert_eq!(tape.runs(), before, "nothing was begun");
    assert_eq!(written.lock().unwrap().len(), 6);
}
