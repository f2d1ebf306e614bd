//! A right to spend is a right to spend so much in all, by a run and all below it.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tooltape::{
    Answer, Call, Clock, Empty, Footprint, FootprintOf, MemoryTape, Proposal, Replay, Reply, Run,
    RunError, RunLimits, Spawn, Spec, Tool, ToolError, Toolbox, Verdict, answer_question, input,
    open_questions, tool_fn,
};

#[input]
struct Bill {
    amount: f64,
    #[serde(default)]
    fail: bool,
}

/// A tool that pays, and what it paid.
fn pays() -> (Arc<dyn Tool>, Arc<Mutex<Vec<f64>>>) {
    let paid = Arc::new(Mutex::new(Vec::new()));
    let book = paid.clone();
    let spec = Spec::new("pay", "Pays a bill.").needs("spend:usd:{amount}");
    let pay = tool_fn(spec, move |bill: Bill| {
        let book = book.clone();
        async move {
            if bill.fail {
                return Err(ToolError::not_done("the till is closed"));
            }
            book.lock().unwrap().push(bill.amount);
            Ok(())
        }
    });
    (pay, paid)
}

fn pay(amount: f64) -> Proposal {
    Proposal::new("p", "pay", json!({ "amount": amount }).to_string())
}

fn run_of(tools: impl IntoIterator<Item = Arc<dyn Tool>>, rights: &str) -> Run {
    let run = Run::new(&Toolbox::new(tools).unwrap());
    run.policy(|_: &Call| Verdict::allow("all")).rights(rights.parse().unwrap())
}

/// `denied` of `policy.denied`.
fn last(code: &str) -> &str {
    code.rsplit('.').next().unwrap_or(code)
}

fn words(replies: &[Reply]) -> Vec<&str> {
    replies.iter().map(|it| it.fault.as_ref().map_or("paid", |fault| last(&fault.code))).collect()
}

#[tokio::test]
async fn the_calls_of_a_run_spend_no_more_than_it_may_in_all() {
    let (tool, paid) = pays();
    let tape = MemoryTape::default();
    let run = run_of([tool.clone()], "spend:usd:5").tape(tape.clone());
    let bills = [2.0, 2.5, 0.75, 0.5, 0.1].map(pay).to_vec();
    let replies = run.batch(bills).await.unwrap();
    assert_eq!(words(&replies), ["paid", "paid", "denied", "paid", "denied"]);
    assert_eq!(paid.lock().unwrap().iter().sum::<f64>(), 5.0);
    let fault = replies[2].fault.as_ref().unwrap();
    assert!(fault.message.contains("`run` does not give `spend:usd:5.25`"), "{}", fault.message);
    let toolbox = Toolbox::new([tool]).unwrap();
    let report = Replay::of(&tape, run.id())
        .with(&toolbox)
        .policy(|_: &Call| Verdict::allow("all"))
        .check()
        .await
        .unwrap();
    assert!(report.is_same(), "{report}");
}

#[tokio::test]
async fn what_was_not_spent_is_given_back() {
    let (tool, paid) = pays();
    let run = run_of([tool], "spend:usd:5").approver(|pending| {
        let amount = pending.call().args().to_value()["amount"].as_f64();
        let answer = match amount {
            Some(4.0) => Answer::Deny("too much".into()),
            _ => Answer::Once,
        };
        Box::pin(async { answer })
    });
    let run = run.policy(|_: &Call| Verdict::ask("money"));
    let failing = Proposal::new("p", "pay", json!({ "amount": 3, "fail": true }).to_string());
    let mut seen = Vec::new();
    for bill in [pay(4.0), failing, pay(5.0), pay(0.01)] {
        seen.extend(words(&run.batch(vec![bill]).await.unwrap()).into_iter().map(str::to_owned));
    }
    assert_eq!(seen, ["denied", "failed", "paid", "denied"]);
    assert_eq!(*paid.lock().unwrap(), [5.0]);
}

#[tokio::test]
async fn what_children_spend_their_parent_has_spent() {
    let (tool, paid) = pays();
    let spec = Spec::new("delegate", "Pays in a child run.");
    let delegate = tool_fn(spec, async |_: Empty, spawn: Spawn| {
        let two = "spend:usd:2".parse().unwrap();
        let child = spawn.child()?.rights(&two).start();
        let bills = vec![pay(1.5), pay(1.0), pay(0.5)];
        let replies = child.batch(bills).await.map_err(ToolError::from)?;
        Ok::<_, ToolError>(words(&replies).join(" "))
    });
    let run = run_of([tool, delegate], "spend:usd:5");
    let delegated = || Proposal::new("d", "delegate", "{}");
    let replies = run.batch(vec![delegated(), delegated(), delegated()]).await.unwrap();
    let texts: Vec<String> = replies.iter().map(|reply| reply.text()).collect();
    // Each child may spend 2, and all of them 5.
    assert_eq!(texts.iter().filter(|text| *text == "paid denied paid").count(), 2, "{texts:?}");
    let total: f64 = paid.lock().unwrap().iter().sum();
    assert!((4.0..=5.0).contains(&total), "{total}");
    assert_eq!(words(&run.batch(vec![pay(5.5 - total)]).await.unwrap()), ["denied"]);
}

#[tokio::test]
async fn a_thousand_children_at_once_spend_no_more_than_their_parent_may() {
    let (tool, paid) = pays();
    let spec = Spec::new("delegate", "Pays in a child run.");
    let delegate = tool_fn(spec, async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.start();
        let replies = child.batch(vec![pay(0.25), pay(0.25)]).await.map_err(ToolError::from)?;
        Ok::<_, ToolError>(replies.len())
    });
    let mut limits = RunLimits::default();
    (limits.batch_calls, limits.run_calls) = (1_000, 10_000);
    let run = run_of([tool, delegate], "spend:usd:100").limits(limits);
    let all = (0..1_000).map(|no| Proposal::new(format!("d{no}"), "delegate", "{}"));
    run.batch(all.collect()).await.unwrap();
    assert_eq!(paid.lock().unwrap().iter().sum::<f64>(), 100.0);
}

#[tokio::test]
async fn what_was_spent_before_a_crash_is_spent() {
    let (tool, paid) = pays();
    let tape = MemoryTape::default();
    let open = || run_of([tool.clone()], "spend:usd:5").tape(tape.clone());
    let run = open();
    assert_eq!(words(&run.batch(vec![pay(3.0), pay(9.0)]).await.unwrap()), ["paid", "denied"]);
    let id = run.id();
    drop(run);
    let resumed = open().resume(id).await.unwrap();
    let replies = resumed.batch(vec![pay(2.5), pay(2.0)]).await.unwrap();
    assert_eq!(words(&replies), ["denied", "paid"]);
    assert_eq!(*paid.lock().unwrap(), [3.0, 2.0]);
}

#[tokio::test]
async fn what_a_call_would_spend_that_waits_for_an_answer_is_not_spent() {
    for (said, answer) in [("no", Answer::Deny("no".into())), ("yes", Answer::Once)] {
        let tape = MemoryTape::default();
        let apart = FootprintOf::input("apart", |_: &Bill| Footprint::default());
        let spec = Spec::new("pay", "Pays a bill.").needs("spend:usd:{amount}").touches(apart);
        let tool = tool_fn(spec, async |bill: Bill| Ok::<_, ToolError>(bill.amount));
        let open = || {
            let run = run_of([tool.clone()], "spend:usd:5").tape(tape.clone()).pausing();
            run.policy(|call: &Call| match call.args().to_value()["amount"].as_f64() {
                Some(2.0) => Verdict::ask("two"),
                _ => Verdict::allow("all"),
            })
        };
        let run = open();
        let paused = run.batch(vec![pay(2.0), pay(3.5)]).await.unwrap_err();
        let RunError::Paused { replies, .. } = paused else { panic!("{paused}") };
        assert_eq!(words(&replies), ["paid"], "the first waits, and holds nothing back");
        let id = run.id();
        drop(run);
        let approval = open_questions(&tape, id).await.unwrap()[0].question.approval;
        answer_question(&tape, &Clock::system(), id, approval, answer).await.unwrap();
        let resumed = open().resume(id).await.unwrap();
        let settled = resumed.settle_open().await.unwrap();
        // A yes is no money: by then there is too little of it.
        assert_eq!(words(&settled), ["denied"], "{said}");
        assert_eq!(words(&resumed.batch(vec![pay(1.5)]).await.unwrap()), ["paid"], "{said}");
        assert_eq!(words(&resumed.batch(vec![pay(0.1)]).await.unwrap()), ["denied"], "{said}");
    }
}
