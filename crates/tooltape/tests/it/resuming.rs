//! Resuming a run: what goes on, what is asked, and what cannot be resumed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tooltape::{
    Agent, AgentError, Answer, BoundKind, CallNo, Event, Executed, Found, IdempotencyKey,
    MemoryTape, Name, Proposal, Repeat, ResumeError, Run, RunLimits, Script, Spec, State, Tool,
    ToolError, Toolbox, Turn, Verdict, builtin, input, tool, tool_fn,
};

use crate::stage::cut;

#[input]
struct Pay {
    cents: u64,
}

/// A tool that pays, and the keys that it paid with.
fn payer(spec: Spec) -> (Arc<dyn Tool>, Arc<Mutex<Vec<String>>>) {
    let paid = Arc::new(Mutex::new(Vec::new()));
    let book = paid.clone();
    let pay = tool_fn(spec, move |_: Pay, key: IdempotencyKey| {
        let book = book.clone();
        async move {
            book.lock().unwrap().push(key.as_str().to_owned());
            Ok::<_, ToolError>("paid")
        }
    });
    (pay, paid)
}

fn pay() -> Vec<Proposal> {
    vec![Proposal::new("c1", "pay", r#"{"cents":5}"#)]
}

/// The tape as a crash leaves it: the records up to the last that passes.
fn crashed(tape: &MemoryTape, run: &Run, last: impl Fn(&Event) -> bool) -> MemoryTape {
    let records = tape.records(run.id());
    let len = records.iter().rposition(|record| last(&record.event)).unwrap() + 1;
    cut(&records[..len])
}

fn started(event: &Event) -> bool {
    matches!(event, Event::Started { .. })
}

fn run(toolbox: &Toolbox, tape: &MemoryTape) -> Run {
    Run::new(toolbox).tape(tape.clone()).policy(|_: &_| Verdict::allow("all"))
}

/// A run that crashed while it paid, and what a resumed run needs.
async fn crash_while_paying(spec: Spec) -> (MemoryTape, Run, Toolbox, Arc<Mutex<Vec<String>>>) {
    let (tool, paid) = payer(spec);
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([tool]).unwrap());
    let first = run(&toolbox, &tape);
    first.batch(pay()).await.unwrap();
    let tape = crashed(&tape, &first, started);
    (tape, first, toolbox, paid)
}

#[tokio::test]
async fn a_keyed_call_is_tried_again_with_the_same_key() {
    let mut spec = Spec::new("pay", "Pays.");
    spec.effects.repeat = Repeat::Keyed;
    let (tape, first, toolbox, paid) = crash_while_paying(spec).await;
    let resumed = run(&toolbox, &tape).resume(first.id()).await.unwrap();
    assert_eq!((resumed.id(), resumed.in_doubt()), (first.id(), vec![CallNo(1)]));
    let replies = resumed.settle_open().await.unwrap();
    assert_eq!((replies.len(), replies[0].executed), (1, Executed::Executed));
    let paid = paid.lock().unwrap().clone();
    assert_eq!((paid.len(), &paid[0]), (2, &paid[1]), "the service sees one key");
    let events: Vec<_> = tape.records(first.id()).into_iter().map(|it| it.event).collect();
    assert!(matches!(&events[4], Event::RunResumed { in_doubt, .. } if in_doubt == &[CallNo(1)]));
    assert!(events.iter().any(|it| matches!(it, Event::Started { attempt: 2, .. })));
    assert!(resumed.settle_open().await.unwrap().is_empty(), "there is nothing left");
}

#[tokio::test]
async fn what_happens_once_is_not_tried_again_unless_somebody_says_so() {
    for (answer, times, executed) in [
        (None, 1, Executed::Unknown),
        (Some(Answer::Deny("no".to_owned())), 1, Executed::Unknown),
        (Some(Answer::Once), 2, Executed::Executed),
    ] {
        let (tape, first, toolbox, paid) = crash_while_paying(Spec::new("pay", "Pays.")).await;
        let resumed = run(&toolbox, &tape);
        let resumed = match answer {
            None => resumed,
            Some(answer) => resumed.approver(move |pending| {
                assert_eq!(pending.rule(), "in doubt");
                let answer = answer.clone();
                Box::pin(async move { answer })
            }),
        };
        let resumed = resumed.resume(first.id()).await.unwrap();
        let replies = resumed.settle_open().await.unwrap();
        assert_eq!((paid.lock().unwrap().len(), replies[0].executed), (times, executed));
        if executed == Executed::Unknown {
            assert!(replies[0].text().starts_with("unknown: "), "{}", replies[0].text());
            assert_eq!(&*replies[0].fault.as_ref().unwrap().code, "resume.in_doubt");
        }
    }
}

mod hooked {
    use super::*;

    async fn was_paid(args: Pay, seen: State<u64>) -> Result<Found, ToolError> {
        Ok(match (args.cents, seen.get()) {
            (_, 0) => Found::DidNot,
            (_, 1) => Found::Happened,
            (_, _) => Found::CannotTell,
        })
    }

    /// Pays.
    #[tool(Write, reconcile = was_paid)]
    async fn pay(_args: Pay, seen: State<u64>) -> Result<u64, ToolError> {
        Ok(seen.get())
    }

    #[tokio::test]
    async fn a_tool_that_can_look_is_asked_what_happened() {
        for (found, executed, starts, code) in [
            (0_u64, Executed::Executed, 2, None),
            (1, Executed::Executed, 1, Some("resume.happened")),
            (2, Executed::Unknown, 1, Some("resume.in_doubt")),
        ] {
            let toolbox = Toolbox::new(tooltape::tools![pay]).unwrap();
            let tape = MemoryTape::default();
            let first = run(&toolbox, &tape).grant(State::new(found));
            first.batch(super::pay()).await.unwrap();
            let tape = crashed(&tape, &first, started);
            let resumed = run(&toolbox, &tape).grant(State::new(found));
            let resumed = resumed.resume(first.id()).await.unwrap();
            let replies = resumed.settle_open().await.unwrap();
            assert_eq!(replies[0].executed, executed);
            assert_eq!(replies[0].fault.as_ref().map(|it| &*it.code), code);
            let records = tape.records(first.id());
            let started = records.iter().filter(|it| started(&it.event)).count();
            assert_eq!(started, starts);
            assert!(records.iter().any(|it| matches!(it.event, Event::Reconciled { .. })));
        }
    }
}

#[tokio::test]
async fn turns_are_not_asked_for_again_and_replies_go_back_to_the_model() {
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(builtin::tools()).unwrap());
    let hash = |id: &str| Proposal::new(id, "hash", r#"{"text":"x"}"#);
    let turns =
        [Turn::calls([hash("a"), hash("b")]), Turn::calls([hash("c")]), Turn::answer("done")];
    let agent = Agent::new(Script::new(turns.clone()), run(&toolbox, &tape));
    agent.ask("Go.").await.unwrap();
    let tape = crashed(
        &tape,
        agent.run(),
        |event| matches!(event, Event::Turn(turn) if turn.proposals.len() == 1),
    );
    let resumed = run(&toolbox, &tape).resume(agent.run().id()).await.unwrap();
    let agent = Agent::new(Script::new(turns[2..].to_vec()), resumed);
    let answered = agent.resume().await.unwrap();
    assert_eq!((answered.turns, answered.calls, answered.errors), (3, 3, 0));
    assert_eq!(answered.text.as_deref(), Some("done"));
}

#[tokio::test]
async fn what_cannot_be_resumed_is_told_and_left_alone() {
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(builtin::tools()).unwrap());
    let agent = Agent::new(Script::new([Turn::answer("done")]), run(&toolbox, &tape));
    agent.ask("Go.").await.unwrap();
    let id = agent.run().id();
    let head = tape.head(id).unwrap();
    let ended = run(&toolbox, &tape).resume(id).await.err().unwrap();
    assert!(matches!(ended, ResumeError::Ended { .. }), "{ended}");
    assert_eq!(tape.head(id).unwrap(), head);
    let unknown = run(&toolbox, &MemoryTape::default()).resume(id).await.err().unwrap();
    assert!(matches!(unknown, ResumeError::Unknown { .. }), "{unknown}");
    let batch = run(&toolbox, &tape);
    batch.batch(vec![Proposal::new("c", "echo", r#"{"text":"hi"}"#)]).await.unwrap();
    let resumed = run(&toolbox, &tape).resume(batch.id()).await.unwrap();
    let unasked = Agent::new(Script::new([]), resumed).resume().await.unwrap_err();
    assert!(matches!(unasked, AgentError::Unasked), "{unasked}");
    // Whoever thinks that the run is still theirs is fenced off.
    let again = batch.batch(vec![Proposal::new("d", "echo", r#"{"text":"hi"}"#)]).await;
    assert!(format!("{again:?}").contains("another executor wrote to it"), "{again:?}");
}

#[tokio::test]
async fn limits_and_states_go_on_from_what_was_used() {
    let bump = tool_fn(Spec::new("bump", "Bumps."), async |_: Pay, count: State<u64>| {
        count.update(|count| {
            *count += 1;
            *count
        })
    });
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([bump]).unwrap());
    let mut limits = RunLimits::default();
    limits.run_calls = 5;
    let set_up = || {
        let quota = Name::new("bump").unwrap();
        run(&toolbox, &tape).grant(State::new(0_u64)).limits(limits).quota(quota, 3)
    };
    let bump = || vec![Proposal::new("c", "bump", json!({ "cents": 1 }).to_string())];
    let first = set_up();
    first.batch(bump()).await.unwrap();
    first.batch(bump()).await.unwrap();
    let resumed = set_up().resume(first.id()).await.unwrap();
    let reply = resumed.batch(bump()).await.unwrap().remove(0);
    assert_eq!((reply.text(), reply.call), ("3".to_owned(), CallNo(3)));
    let beyond = resumed.batch(bump()).await.unwrap().remove(0);
    assert_eq!(beyond.fault.as_ref().unwrap().bound, Some(BoundKind::ToolCalls));
    // A state of another shape is not guessed.
    let other = run(&toolbox, &tape).grant(State::new(0_u64)).resume(first.id()).await;
    assert!(other.is_ok());
    let missing = run(&toolbox, &tape).resume(first.id()).await.err().unwrap();
    assert!(missing.to_string().contains("`bump` needs `State<u64>`"), "{missing}");
}

#[tokio::test]
async fn an_answer_holds_until_the_call_starts_and_no_longer_than_the_tool_stays_the_same() {
    let asked = Arc::new(AtomicU64::new(0));
    let ask = |toolbox: &Toolbox, tape: &MemoryTape| {
        let asked = asked.clone();
        Run::new(toolbox).tape(tape.clone()).policy(|_: &_| Verdict::ask("ask")).approver(
            move |_| {
                asked.fetch_add(1, Ordering::SeqCst);
                Box::pin(async { Answer::Once })
            },
        )
    };
    let (tool, paid) = payer(Spec::new("pay", "Pays."));
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([tool]).unwrap());
    let first = ask(&toolbox, &tape);
    first.batch(pay()).await.unwrap();
    let answered = crashed(&tape, &first, |event| matches!(event, Event::Answered { .. }));
    let resumed = ask(&toolbox, &answered).resume(first.id()).await.unwrap();
    resumed.settle_open().await.unwrap();
    assert_eq!((asked.load(Ordering::SeqCst), paid.lock().unwrap().len()), (1, 2));
    let (changed, _) = payer(Spec::new("pay", "Pays more."));
    let changed = Toolbox::new([changed]).unwrap();
    let answered = crashed(&tape, &first, |event| matches!(event, Event::Answered { .. }));
    let resumed = ask(&changed, &answered).resume(first.id()).await.unwrap();
    resumed.settle_open().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2, "it was approved when it was another");
}
