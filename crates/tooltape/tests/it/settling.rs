//! What each class of fault does to its call, its batch and its run.

use std::sync::atomic::{AtomicUsize, Ordering};

use tooltape::testing::{Spy, proposals};
use tooltape::{
    Access, Ack, Agent, Answer, Append, BoxFuture, Effects, Event, Executed, FaultKind, MemoryTape,
    Proposal, Record, Repeat, Retry, Rules, Run, RunError, RunId, Script, Spec, Tape, TapeError,
    ToolError, Toolbox, Turn, Verdict,
};

use crate::driving::texts;
use crate::stage::free;

fn failing(error: fn() -> ToolError) -> Spy {
    let retried = |spec: Spec| {
        let effects = Effects { repeat: Repeat::Idempotent, ..Effects::default() };
        spec.effects(effects).retry(Retry { attempts: 2, pause_ms: 1, pause_ms_max: 1 })
    };
    let spy = Spy::new("work", Access::Write).declaring(retried);
    match error().kind() {
        tooltape::ToolErrorKind::Fatal => spy.returning(|_| Err(ToolError::fatal("gone"))),
        _ => spy.returning(|_| Err(ToolError::tell("no"))),
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_tried_again_mended_by_the_model_or_ends_the_run_by_its_class() {
    let soft = failing(|| ToolError::tell("no"));
    let run = free([soft.tool()]);
    let replies = run.batch(proposals("work {}\nwork nonsense")).await.unwrap();
    assert_eq!(soft.calls(), 2, "what may be repeated is tried again");
    let kinds: Vec<_> = replies.iter().map(|it| it.fault.as_ref().unwrap().kind).collect();
    assert_eq!(kinds, [FaultKind::Failed, FaultKind::Repair], "what is malformed is mended");
    assert_eq!(replies[1].executed, Executed::NotExecuted);
    run.batch(proposals("work {}")).await.unwrap();

    let hard = failing(|| ToolError::fatal("gone"));
    let run = free([hard.tool()]);
    let err = run.batch(proposals("work {}")).await.unwrap_err();
    assert!(matches!(err, RunError::Ended { .. }));
    assert_eq!(hard.calls(), 1);
    assert!(matches!(run.batch(proposals("work {}")).await, Err(RunError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_host_says_which_faults_end_its_run_and_the_model_is_not_asked_again() {
    let tape = MemoryTape::default();
    let denied = Spy::new("write", Access::Write);
    let toolbox = Toolbox::new([denied.tool(), Spy::new("read", Access::Read).tool()]).unwrap();
    let run = Run::new(&toolbox).tape(tape.clone()).hard([FaultKind::Denied]);
    let id = run.id();
    let model = Script::new([
        Turn::calls([Proposal::new("r", "read", "{}"), Proposal::new("w", "write", "{}")]),
        Turn::answer("I went on."),
    ]);
    let agent = Agent::new(model, run);
    let err = agent.ask("Write.").await.unwrap_err().to_string();
    assert!(err.starts_with("the run ended: write: this run may only read"), "{err}");
    let records = tape.records(id);
    let turns = records.iter().filter(|it| matches!(it.event, Event::Turn(_))).count();
    let settled = records.iter().filter(|it| matches!(it.event, Event::Settled(_))).count();
    assert_eq!((turns, settled, denied.calls()), (1, 2, 0), "every call has its reply on tape");
}

#[tokio::test]
async fn a_denial_is_on_the_tape_and_stops_the_call_before_anything_else_of_it() {
    let (spy, tape) = (Spy::new("write", Access::Write), MemoryTape::default());
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap()).tape(tape.clone());
    let replies = run.batch(proposals("write {}")).await.unwrap();
    assert_eq!(texts(&replies), ["not executed: denied: this run may only read"]);
    let kinds: Vec<_> = tape
        .records(run.id())
        .iter()
        .map(|record| serde_json::to_value(record).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["run.started", "call.proposed", "call.judged", "call.settled"]);
    assert_eq!(spy.calls(), 0);
}

#[tokio::test]
async fn a_policy_that_denies_all_and_an_empty_offer_let_nothing_run() {
    let spies = [Access::Pure, Access::Read, Access::Write]
        .map(|access| Spy::new(&format!("{access:?}").to_lowercase(), access));
    let toolbox = Toolbox::new(spies.each_ref().map(Spy::tool)).unwrap();
    let run = Run::new(&toolbox).policy(Rules::deny_all());
    let replies = run.batch(proposals("pure {}\nread {}\nwrite {}")).await.unwrap();
    assert!(replies.iter().all(|it| it.text().starts_with("not executed: denied: ")));

    let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("all"));
    let nothing = run.offer(|_| false);
    let replies = run.answer(&nothing, proposals("pure {}\nread {}\nwrite {}")).await.unwrap();
    assert!(replies.iter().all(|it| it.text().starts_with("not executed: ")));
    assert!(spies.iter().all(|spy| spy.calls() == 0));
}

/// A tape that refuses one append, the one of this number.
struct Hiccup {
    tape: MemoryTape,
    refused: usize,
    appends: AtomicUsize,
}

impl Tape for Hiccup {
    fn append(&self, append: Append) -> Ack {
        match self.appends.fetch_add(1, Ordering::SeqCst) == self.refused {
            true => Ack::Now(Err(TapeError::Poisoned { why: "planted".into() })),
            false => self.tape.append(append),
        }
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        self.tape.read(run, from, most)
    }
}

/// The types of the events of a call that is asked about, where one append was refused.
async fn with_a_hiccup(refused: usize) -> String {
    let tape = MemoryTape::default();
    let toolbox = Toolbox::new([Spy::new("read", Access::Read).tool()]).unwrap();
    let run = Run::new(&toolbox)
        .tape(Hiccup { tape: tape.clone(), refused, appends: AtomicUsize::new(0) })
        .policy(|_: &_| Verdict::ask("test"))
        .approver(|_| Box::pin(async { Answer::Once }));
    run.batch(proposals("read {}")).await.unwrap_err();
    let types = tape.records(run.id()).into_iter().map(|record| {
        let record = serde_json::to_value(&record).unwrap();
        record["type"].as_str().unwrap().to_owned()
    });
    types.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn what_a_tape_refused_comes_with_what_it_takes_next_but_for_what_did_not_start() {
    // The question, then the start, then the end.
    let question = "run.started call.proposed call.judged call.asked call.settled";
    assert_eq!(with_a_hiccup(0).await, question, "and a run opens with `run.started`");
    let start = "run.started call.proposed call.judged call.asked call.answered call.settled";
    assert_eq!(with_a_hiccup(1).await, start);
    let end = "run.started call.proposed call.judged call.asked call.answered call.started";
    assert_eq!(with_a_hiccup(2).await, end, "then the call is in doubt, as after a crash");
}
