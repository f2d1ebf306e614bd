//! Questions that wait on the tape: what a yes is good for, and that it is used once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tooltape::{
    Access, Agent, Answer, AnswerError, Call, CallNo, Clock, Domain, Effects, Event, Executed,
    Hash, MemoryTape, OpenQuestion, Proposal, Replay, Rules, Run, RunError, RunId, RunLimits,
    Script, Spec, Stopped, Toolbox, Turn, Verdict, Verify, answer_question, open_questions,
};

use crate::stage::Stage;

/// A second after the epoch of these tests.
const NOW: Duration = Duration::from_secs(1_700_000_000);

fn asking(toolbox: &Toolbox, tape: &MemoryTape) -> Run {
    let rules = Rules::allow_reads().ask_before_writes();
    Run::new(toolbox).tape(tape.clone()).policy(rules).clock(Clock::fixed(NOW)).pausing()
}

fn at(later: Duration) -> Clock {
    Clock::fixed(NOW + later)
}

fn call(tool: &str, args: &serde_json::Value) -> Proposal {
    Proposal::new("c1", tool, args.to_string())
}

async fn only(tape: &MemoryTape, run: RunId) -> OpenQuestion {
    let mut open = open_questions(tape, run).await.unwrap();
    assert_eq!(open.len(), 1);
    open.remove(0)
}

async fn say(tape: &MemoryTape, run: RunId, answer: Answer) -> Result<(), AnswerError> {
    let approval = only(tape, run).await.question.approval;
    answer_question(tape, &at(Duration::ZERO), run, approval, answer).await
}

/// Every record is in order: no answer to what nobody asked, no start without a yes.
pub(crate) fn sound(tape: &MemoryTape, run: RunId) {
    let mut verify = Verify::default();
    tape.lines(run).unwrap().iter().for_each(|line| verify.line(line).unwrap());
}

#[tokio::test]
async fn a_question_waits_on_the_tape_and_its_answer_lets_exactly_one_call_run() {
    let stage = Stage::new();
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([stage.write("pay")]).unwrap());
    let run = asking(&toolbox, &tape);
    let paused = run.batch(vec![call("pay", &json!({ "ms": 0 }))]).await.unwrap_err();
    let RunError::Paused { calls, replies } = paused else { panic!("{paused}") };
    assert_eq!((calls, replies.len(), stage.log().len()), (vec![CallNo(1)], 0, 0));
    let closed = run.batch(vec![call("pay", &json!({}))]).await.unwrap_err();
    assert!(matches!(closed, RunError::Closed { .. }), "a paused run goes on where it is resumed");
    // Still nobody answers: it is asked no second question.
    let again = asking(&toolbox, &tape).resume(run.id()).await.unwrap();
    assert!(matches!(again.settle_open().await.unwrap_err(), RunError::Paused { .. }));
    say(&tape, run.id(), Answer::Once).await.unwrap();
    let resumed = asking(&toolbox, &tape).resume(run.id()).await.unwrap();
    let replies = resumed.settle_open().await.unwrap();
    assert_eq!((replies[0].executed, stage.log().len()), (Executed::Executed, 1));
    let kinds: Vec<_> = tape.records(run.id()).iter().map(|it| it.event.kind()).collect();
    assert_eq!(
        kinds[3..],
        [
            "call.asked",
            "run.paused",
            "run.resumed",
            "call.judged",
            "run.paused",
            "call.answered",
            "run.resumed",
            "call.judged",
            "call.started",
            "call.settled"
        ]
    );
    sound(&tape, run.id());
    // The next call of the same kind is another, and asks again.
    let next = resumed.batch(vec![call("pay", &json!({ "ms": 0 }))]).await.unwrap_err();
    assert!(matches!(next, RunError::Paused { .. }));
    assert_eq!(stage.log().len(), 1);
}

#[tokio::test]
async fn an_agent_pauses_and_goes_on_with_its_conversation() {
    let stage = Stage::new();
    let tools = [stage.file("pay", Access::Write), stage.file("look", Access::Read)];
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(tools).unwrap());
    let turns = || {
        let look = Proposal::new("c2", "look", r#"{"path":"b"}"#);
        let proposals = [call("pay", &json!({ "path": "a" })), look];
        [Turn::calls(proposals), Turn::answer("paid")]
    };
    let agent = Agent::new(Script::new(turns()), asking(&toolbox, &tape));
    let paused = agent.ask("Pay.").await.unwrap();
    assert_eq!((paused.stop, paused.text), (Stopped::Paused, None));
    let id = agent.run().id();
    assert_eq!(stage.starts().len(), 1, "what nobody must be asked about goes on");
    say(&tape, id, Answer::Deny("not today".into())).await.unwrap();
    let resumed = asking(&toolbox, &tape).resume(id).await.unwrap();
    let agent = Agent::new(Script::new(turns().into_iter().skip(1)), resumed);
    let answered = agent.resume().await.unwrap();
    assert_eq!((answered.stop, answered.text.as_deref()), (Stopped::Answer, Some("paid")));
    assert_eq!(stage.starts().len(), 1, "a no is a no");
    let denied = tape.records(id).into_iter().find_map(|record| match record.event {
        Event::Settled(reply) if reply.call == CallNo(1) => Some(reply.text()),
        _ => None,
    });
    assert_eq!(denied.as_deref(), Some("not executed: denied: not today"));
    let records = tape.records(id);
    let replay =
        Replay::of_records(records).with(&toolbox).policy(Rules::allow_reads().ask_before_writes());
    let report = replay.check().await.unwrap();
    assert!(report.divergences.is_empty(), "{:?}", report.divergences);
}

#[tokio::test]
async fn what_waits_for_a_call_that_waits_begins_once_it_was_answered() {
    let stage = Stage::new();
    let tools = [stage.file("put", Access::Write), stage.file("get", Access::Read)];
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(tools).unwrap());
    let turns = [Turn::calls([
        Proposal::new("c1", "put", r#"{"path":"a"}"#),
        Proposal::new("c2", "get", r#"{"path":"a"}"#),
        Proposal::new("c3", "get", r#"{"path":"b"}"#),
    ])];
    let agent = Agent::new(Script::new(turns), asking(&toolbox, &tape));
    agent.ask("Put and get.").await.unwrap();
    assert_eq!(stage.log().len(), 1, "only what touches something else");
    let id = agent.run().id();
    say(&tape, id, Answer::Once).await.unwrap();
    let resumed = asking(&toolbox, &tape).resume(id).await.unwrap();
    let agent = Agent::new(Script::new([Turn::answer("done")]), resumed);
    assert_eq!(agent.resume().await.unwrap().stop, Stopped::Answer);
    let ran: Vec<_> =
        stage.log().iter().map(|span| format!("{} {}", span.tool, span.args)).collect();
    assert_eq!(ran, [r#"get {"path":"b"}"#, r#"put {"path":"a"}"#, r#"get {"path":"a"}"#]);
}

#[tokio::test]
async fn a_yes_is_good_for_nothing_else() {
    let stage = Stage::new();
    let pay = || stage.tool(Spec::new("pay", "Pays."));
    let toolbox = Toolbox::new([pay()]).unwrap();
    let approved = async || {
        let tape = MemoryTape::default();
        let run = asking(&toolbox, &tape);
        run.batch(vec![call("pay", &json!({ "ms": 1 }))]).await.unwrap_err();
        let asked = only(&tape, run.id()).await.question.approval;
        say(&tape, run.id(), Answer::Once).await.unwrap();
        (tape, run.id(), asked)
    };
    let asks_again = async |tape: &MemoryTape, id: RunId, run: Run, why: &str, before: Hash| {
        let resumed = run.resume(id).await.unwrap();
        let paused = resumed.settle_open().await.unwrap_err();
        assert!(matches!(paused, RunError::Paused { .. }), "{why}");
        assert_ne!(only(tape, id).await.question.approval, before, "{why}");
        assert_eq!(stage.log().len(), 0, "{why}");
        sound(tape, id);
    };
    let (tape, id, asked) = approved().await;
    let other = Toolbox::new([stage.tool(Spec::new("pay", "Pays more."))]).unwrap();
    asks_again(&tape, id, asking(&other, &tape), "another tool", asked).await;
    let (tape, id, asked) = approved().await;
    let stricter = Rules::allow_reads().ask_before_writes().deny("push", "no");
    asks_again(&tape, id, asking(&toolbox, &tape).policy(stricter), "another policy", asked).await;
    let (tape, id, asked) = approved().await;
    let renamed = |_: &Call| Verdict::ask("another rule");
    asks_again(&tape, id, asking(&toolbox, &tape).policy(renamed), "another rule", asked).await;
    let (tape, id, asked) = approved().await;
    let late = asking(&toolbox, &tape).clock(at(RunLimits::default().approval));
    asks_again(&tape, id, late, "expired", asked).await;
    // And where all is as it was, it runs.
    let (tape, id, _) = approved().await;
    let resumed = asking(&toolbox, &tape).resume(id).await.unwrap();
    resumed.settle_open().await.unwrap();
    assert_eq!(stage.log().len(), 1);
}

#[tokio::test]
async fn a_question_is_answered_once_in_time_and_by_its_name() {
    let stage = Stage::new();
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([stage.write("pay")]).unwrap());
    let run = asking(&toolbox, &tape);
    run.batch(vec![call("pay", &json!({}))]).await.unwrap_err();
    let (id, asked) = (run.id(), only(&tape, run.id()).await.question.approval);
    let answer = async |when: Duration, approval, answer| {
        answer_question(&tape, &at(when), id, approval, answer).await
    };
    let unknown = Hash::of(Domain::Approval, b"guessed");
    let err = answer(Duration::ZERO, unknown, Answer::Once).await.unwrap_err();
    assert!(matches!(err, AnswerError::Unknown { .. }), "{err}");
    let err = answer(Duration::ZERO, asked, Answer::Later).await.unwrap_err();
    assert!(matches!(err, AnswerError::Later), "{err}");
    let err = answer(RunLimits::default().approval, asked, Answer::Once).await.unwrap_err();
    assert!(matches!(err, AnswerError::Expired), "{err}");
    answer(Duration::ZERO, asked, Answer::Once).await.unwrap();
    let err = answer(Duration::ZERO, asked, Answer::Deny("no".into())).await.unwrap_err();
    assert!(matches!(err, AnswerError::Answered), "{err}");
    assert!(open_questions(&tape, id).await.unwrap().is_empty());
    assert_eq!(stage.log().len(), 0, "an answer executes nothing");
}

#[tokio::test]
async fn a_yes_for_the_run_covers_what_the_rule_asks_about_the_tool_and_no_more() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([stage.write("pay"), stage.write("push")]).unwrap();
    let (tape, asked) = (MemoryTape::default(), Arc::new(AtomicU64::new(0)));
    let run = |by: &'static str| {
        let asked = asked.clone();
        let run = Run::new(&toolbox).tape(tape.clone()).clock(Clock::fixed(NOW));
        run.policy(move |_: &Call| Verdict::ask(by)).approver(move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Answer::Run })
        })
    };
    let first = run("writes");
    for ms in 0..3 {
        first.batch(vec![call("pay", &json!({ "ms": ms }))]).await.unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "once for the tool");
    first.batch(vec![call("push", &json!({}))]).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2, "another tool is another question");
    let id = first.id();
    drop(first);
    let resumed = run("writes").resume(id).await.unwrap();
    resumed.batch(vec![call("pay", &json!({ "ms": 9 }))]).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2, "the run goes on with what it was allowed");
    drop(resumed);
    let other = run("another rule").resume(id).await.unwrap();
    other.batch(vec![call("pay", &json!({ "ms": 9 }))]).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 3, "another rule asks again");
    assert_eq!(stage.log().len(), 6);
    sound(&tape, id);
}

#[tokio::test]
async fn a_batch_that_is_cancelled_answers_what_waited() {
    let stage = Stage::new();
    let spec = Spec::new("guard", "Fails.").effects({
        let mut effects = Effects::pure();
        effects.aborts_siblings = true;
        effects
    });
    let tools = [stage.file("pay", Access::Write), stage.tool(spec)];
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(tools).unwrap());
    let run = asking(&toolbox, &tape);
    let proposals = vec![
        call("pay", &json!({ "path": "a" })),
        Proposal::new("c2", "guard", r#"{"fail":"it is late"}"#),
    ];
    let replies = run.batch(proposals).await.unwrap();
    assert_eq!(replies[0].executed, Executed::NotExecuted, "{}", replies[0].text());
    assert_eq!((replies.len(), stage.starts().len()), (2, 1));
    assert!(open_questions(&tape, run.id()).await.unwrap().is_empty());
    sound(&tape, run.id());
}

#[tokio::test]
async fn a_yes_for_the_run_ends_with_its_time() {
    let stage = Stage::new();
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([stage.write("pay")]).unwrap());
    let run = asking(&toolbox, &tape);
    run.batch(vec![call("pay", &json!({ "ms": 0 }))]).await.unwrap_err();
    say(&tape, run.id(), Answer::Run).await.unwrap();
    let resumed = asking(&toolbox, &tape).resume(run.id()).await.unwrap();
    resumed.settle_open().await.unwrap();
    resumed.batch(vec![call("pay", &json!({ "ms": 1 }))]).await.unwrap();
    assert_eq!(stage.log().len(), 2);
    drop(resumed);
    let late = asking(&toolbox, &tape).clock(at(RunLimits::default().approval));
    let late = late.resume(run.id()).await.unwrap();
    let paused = late.batch(vec![call("pay", &json!({ "ms": 1 }))]).await.unwrap_err();
    assert!(matches!(paused, RunError::Paused { .. }), "{paused}");
    assert_eq!(stage.log().len(), 2);
}

#[tokio::test]
async fn what_a_run_may_do_when_it_is_resumed_is_what_its_replay_judges_by() {
    let stage = Stage::new();
    let put = stage.tool(Spec::new("put", "Puts.").needs("fs:write:{path}"));
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([put]).unwrap());
    let run = asking(&toolbox, &tape).rights("fs:write:.".parse().unwrap());
    run.batch(vec![call("put", &json!({ "path": "a" }))]).await.unwrap_err();
    say(&tape, run.id(), Answer::Once).await.unwrap();
    let narrower = asking(&toolbox, &tape).rights("fs:write:b".parse().unwrap());
    let resumed = narrower.resume(run.id()).await.unwrap();
    let replies = resumed.settle_open().await.unwrap();
    assert_eq!((replies[0].executed, stage.log().len()), (Executed::NotExecuted, 0));
    sound(&tape, run.id());
    let rules = Rules::allow_reads().ask_before_writes();
    let replay = Replay::of_records(tape.records(run.id())).with(&toolbox).policy(rules);
    let report = replay.check().await.unwrap();
    assert!(report.divergences.is_empty(), "{report}");
}
