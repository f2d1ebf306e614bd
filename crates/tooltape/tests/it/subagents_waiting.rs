//! Sub-agents that outlive their process: they wait for answers, and go on after a crash.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tooltape::{
    Access, Ack, Agent, Answer, Append, BoxFuture, Clock, Empty, Event, Label, MemoryTape, Message,
    Model, ModelError, Name, Proposal, Record, Repeat, Replay, Request, Run, RunId, Spec, Stopped,
    SubAgent, Tape, TapeError, Tool, ToolError, Toolbox, Turn, Verdict, Verify, answer_question,
    input, open_questions, tool_fn,
};

#[input]
struct Push {
    n: u64,
}

/// A model whose turn follows from how many it took.
struct Counting(&'static [&'static [(&'static str, &'static str)]]);

impl Model for Counting {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let taken = request.messages.iter().filter(|it| matches!(it, Message::Model(_))).count();
        let turn = match self.0.get(taken) {
            Some(calls) => {
                let calls = calls.iter().enumerate();
                Turn::calls(
                    calls.map(|(at, (name, args))| Proposal::new(format!("{at}"), *name, *args)),
                )
            }
            None => Turn::answer("done"),
        };
        Box::pin(async { Ok(turn) })
    }
}

const CALLER: Counting = Counting(&[
    &[("push", r#"{"n":1}"#), ("scout", r#"{"task":"go"}"#)],
    &[("push", r#"{"n":2}"#)],
]);
const SCOUT: Counting = Counting(&[
    &[("push", r#"{"n":10}"#)],
    &[("deep", r#"{"task":"dive"}"#)],
    &[("push", r#"{"n":11}"#)],
]);
const DEEP: Counting = Counting(&[&[("push", r#"{"n":100}"#)], &[("push", r#"{"n":101}"#)]]);

type Pushed = Arc<Mutex<Vec<u64>>>;

fn toolbox(pushed: &Pushed) -> Toolbox {
    let pushed = pushed.clone();
    let mut spec = Spec::new("push", "Pushes.");
    spec.effects.repeat = Repeat::Keyed;
    let push = tool_fn(spec, move |args: Push| {
        pushed.lock().unwrap().push(args.n);
        async move { Ok::<_, ToolError>(args.n) }
    });
    let deep = SubAgent::new("deep", "Dives.", DEEP).tool();
    Toolbox::new([push, SubAgent::new("scout", "Scouts.", SCOUT).tool(), deep]).unwrap()
}

/// Asks about these numbers, and allows all else.
fn asking(numbers: &'static [u64]) -> impl Fn(&tooltape::Call) -> Verdict {
    move |call| {
        let args = call.args().to_value();
        match args["n"].as_u64().filter(|n| numbers.contains(n)) {
            Some(_) => Verdict::ask("a number"),
            None => Verdict::allow("test"),
        }
    }
}

async fn open(tape: &MemoryTape) -> Vec<(RunId, tooltape::Hash)> {
    let mut open = Vec::new();
    for run in tape.runs() {
        let asked = open_questions(tape, run).await.unwrap();
        open.extend(asked.into_iter().map(|it| (run, it.question.approval)));
    }
    open
}

/// Every record is in order.
fn sound(tape: &MemoryTape, run: RunId) {
    let mut verify = Verify::default();
    tape.lines(run).unwrap().iter().for_each(|line| verify.line(line).unwrap());
}

#[tokio::test]
async fn a_question_of_a_sub_agent_pauses_the_whole_tree_until_somebody_answers() {
    for (answer, expected) in [
        (Answer::Once, vec![1, 10, 100, 101, 11, 2]),
        (Answer::Deny("no".to_owned()), vec![1, 10, 101, 2]),
    ] {
        let (tape, pushed) = (MemoryTape::default(), Pushed::default());
        let set_up = || {
            let run = Run::new(&toolbox(&pushed)).tape(tape.clone()).pausing();
            run.policy(asking(&[100, 11]))
        };
        let first = Agent::new(CALLER, set_up());
        let id = first.run().id();
        assert_eq!(first.ask("Push.").await.unwrap().stop, Stopped::Paused);
        assert_eq!(*pushed.lock().unwrap(), [1, 10]);
        // Each in another process, as it were.
        for questions in [1, 1, 0] {
            let open = open(&tape).await;
            assert_eq!(open.len(), questions);
            for (run, approval) in open {
                assert_ne!(run, id, "a child asks");
                let clock = Clock::system();
                answer_question(&tape, &clock, run, approval, answer.clone()).await.unwrap();
            }
            if questions > 0 {
                let again = Agent::new(CALLER, set_up().resume(id).await.unwrap());
                again.resume().await.unwrap();
            }
        }
        assert_eq!(*pushed.lock().unwrap(), expected);
        assert_eq!(tape.runs().len(), 3);
        for run in tape.runs() {
            let records = tape.records(run);
            let last = &records.last().unwrap().event;
            assert!(matches!(last, Event::RunEnded { status: "ended", .. }), "{last:?}");
            sound(&tape, run);
        }
        let report = Replay::of_records(tape.records(id)).with(&toolbox(&pushed)).check().await;
        assert!(report.unwrap().is_same());
    }
}

/// A tape that knows in which order its runs were written.
#[derive(Clone, Default)]
struct Ordered {
    tape: MemoryTape,
    written: Arc<Mutex<Vec<(RunId, u64, Event)>>>,
}

impl Tape for Ordered {
    fn append(&self, append: Append<'_>) -> Ack {
        let events = append.events.iter().map(|event| (append.run, append.at_us, event.clone()));
        self.written.lock().unwrap().extend(events);
        self.tape.append(append)
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

fn settled(written: &[(RunId, u64, Event)]) -> BTreeSet<u64> {
    let replies = written.iter().filter_map(|(_, _, event)| match event {
        Event::Settled(reply) if *reply.name == *"push" => reply.text().parse().ok(),
        _ => None,
    });
    replies.collect()
}

#[tokio::test]
async fn a_tree_of_runs_that_crashed_anywhere_does_nothing_again_that_was_settled() {
    let (whole, pushed) = (Ordered::default(), Pushed::default());
    let run =
        |tape: Ordered, pushed: &Pushed| Run::new(&toolbox(pushed)).tape(tape).policy(asking(&[]));
    let agent = Agent::new(CALLER, run(whole.clone(), &pushed));
    let id = agent.run().id();
    agent.ask("Push.").await.unwrap();
    let all = BTreeSet::from([1, 2, 10, 11, 100, 101]);
    let written = whole.written.lock().unwrap().clone();
    assert_eq!((settled(&written), written.len() > 40), (all.clone(), true));
    for cut in 2..written.len() {
        let (crashed, pushed) = (Ordered::default(), Pushed::default());
        for (run, at_us, event) in &written[..cut] {
            let after = crashed.tape.records(*run).len() as u64;
            let mut events = vec![event.clone()];
            crashed.append(Append::new(*run, after, *at_us, &mut events)).durable().await.unwrap();
        }
        let again = Agent::new(CALLER, run(crashed.clone(), &pushed).resume(id).await.unwrap());
        let answered = again.resume().await.unwrap();
        assert_eq!(answered.text.as_deref(), Some("done"), "cut behind {cut}");
        let (before, done) = (settled(&written[..cut]), pushed.lock().unwrap().clone());
        let again: Vec<_> = done.iter().filter(|n| before.contains(n)).collect();
        assert!(again.is_empty(), "cut behind {cut}: {again:?} were done again");
        assert_eq!(before.into_iter().chain(done).collect::<BTreeSet<_>>(), all, "behind {cut}");
        assert_eq!(crashed.tape.runs().len(), 3, "cut behind {cut}");
    }
}

#[tokio::test]
async fn a_child_of_a_tool_that_cannot_wait_does_not_pause_its_caller() {
    let (tape, pushed) = (MemoryTape::default(), Pushed::default());
    let spec = Spec::new("once", "Calls once.");
    let once = tool_fn(spec, async |_: Empty, spawn: tooltape::Spawn| {
        let scout = Proposal::new("s", "scout", r#"{"task":"go"}"#);
        let replies = spawn.child()?.start().batch(vec![scout]).await.map_err(ToolError::from)?;
        Ok::<_, ToolError>(replies[0].text())
    });
    let tools = toolbox(&pushed).tools().map(|tool| tool.tool().clone()).collect::<Vec<_>>();
    let toolbox = Toolbox::new(tools.into_iter().chain([once])).unwrap();
    let run = Run::new(&toolbox).tape(tape.clone()).pausing().policy(asking(&[10]));
    let replies = run.batch(vec![Proposal::new("c", "once", "{}")]).await.unwrap();
    assert_eq!((replies[0].text().as_str(), open(&tape).await.len()), ("done", 0));
    assert_eq!(*pushed.lock().unwrap(), [100, 101, 11]);
}

/// A tool that pays.
fn pays(pushed: &Pushed) -> Arc<dyn Tool> {
    let pushed = pushed.clone();
    let spec = Spec::new("push", "Pays.").needs("spend:usd:{n}");
    tool_fn(spec, move |args: Push| {
        pushed.lock().unwrap().push(args.n);
        async move { Ok::<_, ToolError>(args.n) }
    })
}

#[tokio::test]
async fn what_a_sub_agent_spent_and_used_before_a_pause_counts_after_it() {
    const PAYER: Counting = Counting(&[&[("push", r#"{"n":4}"#)], &[("push", r#"{"n":3}"#)]]);
    const BUYER: Counting = Counting(&[
        &[("payer", r#"{"task":"pay"}"#)],
        &[("push", r#"{"n":4}"#), ("push", r#"{"n":2}"#)],
    ]);
    for is_ended in [false, true] {
        let (tape, pushed) = (MemoryTape::default(), Pushed::default());
        let tools = [pays(&pushed), SubAgent::new("payer", "Pays.", PAYER).tool()];
        let toolbox = Toolbox::new(tools).unwrap();
        let set_up = || {
            let run = Run::new(&toolbox).tape(tape.clone()).pausing().policy(asking(&[3]));
            let run = run.rights("spend:usd:10".parse().unwrap());
            run.quota(Name::new("push").unwrap(), 4)
        };
        let first = Agent::new(BUYER, set_up());
        let id = first.run().id();
        assert_eq!(first.ask("Buy.").await.unwrap().stop, Stopped::Paused);
        let resumed = set_up().resume(id).await.unwrap();
        assert_eq!(resumed.in_doubt(), [], "a pause leaves nothing in doubt");
        drop(resumed);
        let (child, approval) = open(&tape).await.remove(0);
        let once = Answer::Once;
        answer_question(&tape, &Clock::system(), child, approval, once).await.unwrap();
        let tape = match is_ended {
            false => tape.clone(),
            true => ended_but_not_settled(&set_up, &tape, id).await,
        };
        let run = set_up().tape(tape.clone()).resume(id).await.unwrap();
        let again = Agent::new(BUYER, run);
        again.resume().await.unwrap();
        // 4 and 3 by the sub-agent; of 4 and 2 the first is too much, and the second the last call.
        let all = pushed.lock().unwrap().clone();
        assert_eq!(all, [4, 3, 2], "the sub-agent had ended: {is_ended}");
        let one_more = again.run().batch(vec![Proposal::new("x", "push", r#"{"n":1}"#)]).await;
        assert!(one_more.is_err() || one_more.unwrap()[0].is_error);
        sound(&tape, id);
    }
}

/// The tape of a run that was resumed, and crashed between the end of its child and its own next
/// record.
async fn ended_but_not_settled(
    set_up: &impl Fn() -> Run,
    tape: &MemoryTape,
    id: RunId,
) -> MemoryTape {
    let copy = Ordered::default();
    for run in tape.runs() {
        let records = tape.records(run);
        let mut events = records.iter().map(|record| record.event.clone()).collect();
        let append = Append::new(run, 0, records[0].at_us, &mut events);
        copy.tape.append(append).durable().await.unwrap();
    }
    let agent = Agent::new(Counting(&[]), set_up().tape(copy.clone()).resume(id).await.unwrap());
    agent.run().settle_open().await.unwrap();
    let written = copy.written.lock().unwrap().clone();
    let is_end = |event: &Event| matches!(event, Event::RunEnded { .. });
    let end = written.iter().position(|(run, _, event)| *run != id && is_end(event)).unwrap();
    for (run, at_us, event) in &written[..=end] {
        let after = tape.records(*run).len() as u64;
        let mut events = vec![event.clone()];
        tape.append(Append::new(*run, after, *at_us, &mut events)).durable().await.unwrap();
    }
    tape.clone()
}

#[tokio::test]
async fn a_sub_agent_of_another_version_is_not_given_an_open_task_without_a_word() {
    let (tape, pushed) = (MemoryTape::default(), Pushed::default());
    let agent = |version: &'static str| {
        let scout = SubAgent::new("scout", "Scouts.", DEEP).version(version).tool();
        let tools = toolbox(&pushed).tools().map(|tool| tool.tool().clone()).collect::<Vec<_>>();
        let push = tools.into_iter().next().unwrap();
        let run = Run::new(&Toolbox::new([push, scout]).unwrap()).tape(tape.clone());
        run.policy(asking(&[101]))
    };
    let task = Proposal::new("c", "scout", r#"{"task":"go"}"#);
    let run = agent("1.0.0").pausing();
    run.batch(vec![task]).await.unwrap_err();
    let resumed = agent("1.0.1").pausing().resume(run.id()).await.unwrap();
    resumed.settle_open().await.unwrap_err();
    assert_eq!(*pushed.lock().unwrap(), [100], "somebody is asked first");
    let asked = open_questions(&tape, run.id()).await.unwrap();
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn what_a_sub_agent_saw_before_a_pause_labels_what_it_says_after_it() {
    const READER: Counting = Counting(&[&[("look", "{}")], &[("push", r#"{"n":10}"#)]]);
    let (tape, pushed) = (MemoryTape::default(), Pushed::default());
    let spec = Spec::new("look", "Looks.").access(Access::Read).labelled(Label::untrusted("web"));
    let look = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>("seen"));
    let scout = SubAgent::new("scout", "Scouts.", READER).tool();
    let push = toolbox(&pushed).get("push").unwrap().tool().clone();
    let toolbox = Toolbox::new([look, push, scout]).unwrap();
    let set_up = || Run::new(&toolbox).tape(tape.clone()).pausing().policy(asking(&[10]));
    let run = set_up();
    run.batch(vec![Proposal::new("c", "scout", r#"{"task":"go"}"#)]).await.unwrap_err();
    let (child, approval) = open(&tape).await.remove(0);
    answer_question(&tape, &Clock::system(), child, approval, Answer::Once).await.unwrap();
    let resumed = set_up().resume(run.id()).await.unwrap();
    let replies = resumed.settle_open().await.unwrap();
    assert_eq!((replies[0].text().as_str(), pushed.lock().unwrap().len()), ("done", 1));
    assert!(!replies[0].label().is_trusted());
}
