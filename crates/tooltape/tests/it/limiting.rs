//! What limits a conversation holds when it is interrupted, resumed, nested, or goes in circles.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tooltape::testing::{Spy, check_transcript};
use tooltape::{
    Access, Agent, AgentLimits, BoxFuture, Choice, Empty, Event, MemoryTape, Message, Model,
    ModelError, Patience, Proposal, Redactor, Request, Run, Script, Spec, Steer, Stopped, SubAgent,
    ToolError, Toolbox, Turn, Usage, Verdict, tool_fn,
};

/// A model that takes the turns that it is given, and pauses its run at some of them.
struct Pausing {
    turns: Vec<Turn>,
    taken: Arc<AtomicU32>,
    pauses: Vec<u32>,
    paused: Arc<Mutex<Vec<u32>>>,
}

impl Model for Pausing {
    fn turn<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let at = self.taken.load(Ordering::SeqCst);
        let mut paused = self.paused.lock().unwrap();
        if self.pauses.contains(&at) && !paused.contains(&at) {
            paused.push(at);
            return Box::pin(async { Err(ModelError::Unreachable("gone".into())) });
        }
        self.taken.fetch_add(1, Ordering::SeqCst);
        let turn = self.turns.get(at as usize).cloned();
        Box::pin(async move { turn.ok_or(ModelError::Over { turn: 0, turns: 0 }) })
    }
}

fn call(name: &str) -> Proposal {
    Proposal::new("c1", name, "{}")
}

fn toolbox() -> Toolbox {
    let broken = Spec::new("broken", "Fails.").access(Access::Read);
    let broken = tool_fn(broken, async |_: Empty| Err::<u8, _>(ToolError::tell("broken")));
    Toolbox::new([broken]).unwrap()
}

/// How the turns end with pauses before some of them, each resumed in a run of its own.
async fn with_pauses(
    turns: &[Turn],
    pauses: &[u32],
    limits: AgentLimits,
    choose: fn(u32) -> Choice<'static>,
) -> (Stopped, u32) {
    let (tape, toolbox) = (MemoryTape::default(), toolbox());
    let (taken, paused) = (Arc::default(), Arc::default());
    let mut run = Run::new(&toolbox).tape(tape.clone());
    let id = run.id();
    let mut is_first = true;
    loop {
        let (turns, pauses) = (turns.to_vec(), pauses.to_vec());
        let (taken, paused) = (Arc::clone(&taken), Arc::clone(&paused));
        let model = Pausing { turns, taken, pauses, paused };
        let agent = Agent::new(model, run).limits(limits).choosing(choose);
        let answered = if is_first { agent.ask("Go.").await } else { agent.resume().await };
        is_first = false;
        match answered {
            Ok(answered) => return (answered.stop, answered.turns),
            Err(err) => assert!(err.to_string().contains("gone"), "{err}"),
        }
        run = Run::new(&toolbox).tape(tape.clone()).resume(id).await.unwrap();
    }
}

#[tokio::test]
async fn a_resumed_conversation_counts_repairs_and_nudges_as_it_would_have() {
    let mut limits = AgentLimits::default();
    limits.repairs = 2;
    let required = |turn| if turn < 9 { Choice::Required } else { Choice::Auto };
    let answers = vec![Turn::answer("no"); 9];
    let live = with_pauses(&answers, &[], limits, required).await;
    assert_eq!(live, (Stopped::Repairs, 3));
    assert_eq!(with_pauses(&answers, &[1, 2], limits, required).await, live);

    let mut turns = vec![Turn::answer("no")];
    turns.extend(vec![Turn::calls([call("broken")]); 3]);
    turns.push(Turn::answer("yes"));
    let once = |turn| if turn == 1 { Choice::Required } else { Choice::Auto };
    let live = with_pauses(&turns, &[], AgentLimits::default(), once).await;
    assert_eq!(live, (Stopped::Answer, 5));
    for pauses in [&[1][..], &[2], &[3], &[1, 2, 3, 4]] {
        assert_eq!(with_pauses(&turns, pauses, AgentLimits::default(), once).await, live);
    }
}

#[tokio::test]
async fn a_second_question_has_all_its_turns_also_when_it_is_resumed() {
    let (tape, toolbox) = (MemoryTape::default(), toolbox());
    let run = Run::new(&toolbox).tape(tape.clone());
    let id = run.id();
    let look = |n: u32| Turn::calls([Proposal::new("c", "broken", format!(r#"{{"n":{n}}}"#))]);
    let first = Agent::new(Script::new([look(1), look(2), look(3)]), run).turns_max(3);
    let mut conversation = first.open();
    assert_eq!(conversation.ask("First?").await.unwrap().stop, Stopped::Turns);
    drop(conversation);
    let run = Run::new(&toolbox).tape(tape.clone()).resume(id).await.unwrap();
    let model = Pausing {
        turns: vec![look(4)],
        taken: Arc::default(),
        pauses: vec![1],
        paused: Arc::default(),
    };
    let second = Agent::new(model, run).turns_max(3);
    let mut conversation = second.open();
    conversation.resume().await.unwrap();
    let paused = conversation.ask("Second?").await;
    conversation.close(paused).await.unwrap_err();
    let run = Run::new(&toolbox).tape(tape.clone()).resume(id).await.unwrap();
    let third = Agent::new(Script::new([Turn::answer("fine")]), run).turns_max(3);
    let answered = third.resume().await.unwrap();
    assert_eq!((answered.text.as_deref(), answered.stop), (Some("fine"), Stopped::Answer));
}

#[tokio::test]
async fn what_sub_agents_cost_counts_for_who_called_them() {
    let usage = Usage { input_tokens: 500, output_tokens: 100, cached_tokens: 0 };
    let scout = Script::new(vec![Turn::answer("seen").costing(usage); 9]);
    let scout = SubAgent::new("scout", "Scouts.", scout).tool();
    let run = Run::new(&Toolbox::new([scout]).unwrap()).policy(|_: &_| Verdict::allow("test"));
    let task = |n: u32| Proposal::new("c", "scout", format!(r#"{{"task":"look {n}"}}"#));
    let model = Script::new((0..9).map(|n| Turn::calls([task(n)])));
    let mut limits = AgentLimits::default();
    limits.tokens = 1_000;
    let agent = Agent::new(model, run).limits(limits);
    let answered = agent.ask("Go.").await.unwrap();
    assert_eq!((answered.stop, answered.turns), (Stopped::Tokens, 2));
    assert_eq!(answered.usage.input_tokens, 1_000);
}

#[tokio::test]
async fn calls_beyond_their_limit_are_answered_in_place_and_those_within_are_not_punished() {
    let ask = async |calls: usize| {
        let spy = Spy::new("look", Access::Read);
        let run = Run::new(&Toolbox::new([spy.tool()]).unwrap());
        let proposals = (0..calls).map(|n| Proposal::new(format!("c{n}"), "look", "{}"));
        let turns = [Turn::calls(proposals.collect::<Vec<_>>()), Turn::answer("done")];
        let mut limits = AgentLimits::default();
        limits.calls = 2;
        let agent = Agent::new(Script::new(turns), run).limits(limits);
        let mut conversation = agent.open();
        let answered = conversation.ask("Go.").await.unwrap();
        check_transcript(conversation.messages()).unwrap();
        (answered.stop, spy.calls(), answered.errors)
    };
    assert_eq!(ask(1).await, (Stopped::Answer, 1, 0));
    assert_eq!(ask(2).await, (Stopped::Answer, 2, 0));
    assert_eq!(ask(50).await, (Stopped::Calls, 2, 48));
}

#[tokio::test]
async fn what_is_said_with_an_interrupt_that_comes_too_late_is_answered_all_the_same() {
    let steer = Steer::new();
    let hand = steer.clone();
    let look = tool_fn(Spec::new("look", "Looks.").access(Access::Read), move |_: Empty| {
        hand.say("Not that.").unwrap();
        hand.interrupt();
        async { Ok::<_, ToolError>("seen") }
    });
    let turns = [Turn::calls([call("look")]), Turn::answer("heard")];
    let run = Run::new(&Toolbox::new([look]).unwrap());
    let agent = Agent::new(Script::new(turns), run).steered_by(&steer);
    let mut conversation = agent.open();
    let answered = conversation.ask("Go.").await.unwrap();
    assert_eq!(answered.text.as_deref(), Some("heard"));
    let said = conversation.messages().iter().filter(|it| matches!(it, Message::User(_)));
    assert_eq!(said.count(), 2);
}

#[tokio::test]
async fn what_is_said_to_an_ended_run_waits_for_the_question_that_opens_it_again() {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::default()).tape(tape.clone());
    let agent = Agent::new(Script::new(["one", "two"].map(Turn::answer)), run);
    agent.ask("First?").await.unwrap();
    agent.steer().say("By the way.").unwrap();
    agent.ask("Second?").await.unwrap();
    let records = tape.records(agent.run().id());
    let said: Vec<_> = records.iter().skip(4).map(|record| record.event.kind()).collect();
    assert_eq!(said, ["model.asked", "model.said", "model.turn", "run.ended"]);
}

#[tokio::test]
async fn time_is_up_while_a_call_runs() {
    let wait = tool_fn(Spec::new("wait", "Waits.").access(Access::Read), |_: Empty| {
        std::future::pending::<Result<u8, ToolError>>()
    });
    let run = Run::new(&Toolbox::new([wait]).unwrap());
    let mut limits = AgentLimits::default();
    limits.wall = Duration::from_millis(20);
    let agent = Agent::new(Script::new([Turn::calls([call("wait")])]), run).limits(limits);
    let mut conversation = agent.open();
    let answered = conversation.ask("Go.").await.unwrap();
    assert_eq!((answered.stop, answered.errors), (Stopped::Time, 1));
    check_transcript(conversation.messages()).unwrap();
}

/// What a turn proposes, by its number.
type Way = Box<dyn Fn(usize) -> Vec<Proposal> + Send + Sync>;

/// A model that calls for ever, each turn as a function of its number.
struct Circling<F>(F);

impl<F: Fn(usize) -> Vec<Proposal> + Send + Sync> Model for Circling<F> {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let taken = request.messages.iter().filter(|it| matches!(it, Message::Model(_))).count();
        let turn = Turn::calls((self.0)(taken));
        Box::pin(async { Ok(turn) })
    }
}

#[tokio::test]
async fn no_way_to_go_in_circles_is_too_clever() {
    let look = |n: usize| Proposal::new("c", "look", format!(r#"{{"n":{n}}}"#));
    let ways: [(&str, Way); 5] = [
        ("a period of four", Box::new(move |at| vec![look(at % 4)])),
        ("another order", Box::new(move |at| (0..4).map(|n| look((n + at) % 4)).collect())),
        ("more of the same", Box::new(move |at| vec![look(1); at % 5 + 1])),
        (
            "an unknown tool beside",
            Box::new(move |at| {
                vec![look(1), Proposal::new("u", "lock", format!(r#"{{"n":{at}}}"#))]
            }),
        ),
        (
            "blanks",
            Box::new(move |at| {
                vec![Proposal::new("c", "look", format!(r#"{{"n":1{}}}"#, " ".repeat(at)))]
            }),
        ),
    ];
    for (way, turns) in ways {
        let spy = Spy::new("look", Access::Read);
        let run = Run::new(&Toolbox::new([spy.tool()]).unwrap());
        let agent = Agent::new(Circling(turns), run).turns_max(100);
        assert_eq!(agent.ask("Go.").await.unwrap().stop, Stopped::Stalled, "{way}");
    }
}

#[tokio::test]
async fn a_question_that_is_asked_again_is_not_held_against_the_model() {
    let spy = Spy::new("look", Access::Read);
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap());
    let turns = (0..20).flat_map(|_| [Turn::calls([call("look")]), Turn::answer("fine")]);
    let agent = Agent::new(Script::new(turns), run).patience(Patience::default());
    let mut conversation = agent.open();
    for _ in 0..9 {
        assert_eq!(conversation.ask("How is it?").await.unwrap().stop, Stopped::Answer);
    }
}

#[tokio::test]
async fn a_recalled_conversation_brings_no_secret_to_the_tape_or_the_model() {
    let tape = MemoryTape::default();
    let redactor = Redactor::new(["hunter2-hunter2"]).unwrap();
    let run = Run::new(&Toolbox::default()).tape(tape.clone()).redact(redactor);
    let agent = Agent::new(Script::new([Turn::answer("done")]), run);
    let mut conversation = agent.open();
    let proposal = Proposal::new("c", "look", r#"{"key":"hunter2-hunter2"}"#);
    let messages = vec![
        Message::User("my key is hunter2-hunter2".into()),
        Message::Model(Turn::calls([proposal]).saying("so it is hunter2-hunter2")),
        Message::Replies(vec![tooltape::Reply::recalled(
            "c".into(),
            "look".into(),
            "hunter2-hunter2".into(),
            false,
        )]),
    ];
    conversation.recall(messages).unwrap();
    let answered = conversation.ask("And now?").await;
    assert!(!format!("{:?}", conversation.messages()).contains("hunter2"));
    conversation.close(answered).await.unwrap();
    let records = tape.records(agent.run().id());
    assert!(records.iter().any(|record| matches!(record.event, Event::Recalled { .. })));
    assert!(!format!("{records:?}").contains("hunter2"));
}
