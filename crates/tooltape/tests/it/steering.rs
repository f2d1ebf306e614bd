//! Conversations that go on: asked twice, steered, interrupted, limited, and taken up again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tooltape::testing::{Spy, check_transcript};
use tooltape::{
    Access, Agent, AgentLimits, BoxFuture, CallNo, Choice, Delta, Empty, Event, MemoryTape,
    Message, Model, ModelError, Patience, Price, Proposal, Replay, Request, Run, Script, Spec,
    Steer, Step, Stopped, ToolError, Toolbox, Turn, Usage, Verdict, tool_fn,
};

/// A model that is a function of what it is asked.
struct Asked<F>(F);

impl<F: Fn(&Request<'_>) -> Turn + Send + Sync> Model for Asked<F> {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        Box::pin(async move { Ok((self.0)(request)) })
    }
}

/// A model that never comes to its turn.
struct Silent(Arc<Notify>);

impl Model for Silent {
    fn turn<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

fn call(name: &str) -> Proposal {
    Proposal::new("c1", name, "{}")
}

fn run(spy: &Spy) -> Run {
    Run::new(&Toolbox::new([spy.tool()]).unwrap()).policy(|_: &_| Verdict::allow("test"))
}

fn users(messages: &[Message]) -> Vec<String> {
    let said = messages.iter().filter_map(|message| match message {
        Message::User(text) => Some(text.to_string()),
        Message::Model(_) | Message::Replies(_) => None,
    });
    said.collect()
}

#[tokio::test]
async fn what_is_asked_next_is_asked_in_the_same_conversation() {
    let spy = Spy::new("look", Access::Read);
    let turns = [Turn::calls([call("look")]), Turn::answer("one"), Turn::answer("two")];
    let tape = MemoryTape::default();
    let agent = Agent::new(Script::new(turns), run(&spy).tape(tape.clone())).turns_max(2);
    let mut conversation = agent.open();
    assert_eq!(conversation.ask("first").await.unwrap().text.as_deref(), Some("one"));
    let last = conversation.ask("second").await;
    assert_eq!(users(conversation.messages()), ["first", "second"]);
    check_transcript(conversation.messages()).unwrap();
    let last = conversation.close(last).await.unwrap();
    assert_eq!((last.text.as_deref(), last.turns, last.stop), (Some("two"), 3, Stopped::Answer));

    let toolbox = Toolbox::new([spy.tool()]).unwrap();
    let records = tape.records(agent.run().id());
    let report = Replay::of_records(records.clone()).with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report:?}");
}

#[tokio::test]
async fn what_is_said_while_a_call_runs_is_heard_before_the_next_turn() {
    let steer = Steer::new();
    let hand = steer.clone();
    let look = tool_fn(Spec::new("look", "Looks.").access(Access::Read), move |_: Empty| {
        let hand = hand.clone();
        async move { hand.say("Look again.").map_err(|err| ToolError::tell(err.to_string())) }
    });
    let model = Asked(|request: &Request<'_>| match users(request.messages).len() {
        1 => Turn::calls([call("look")]),
        _ => Turn::answer(users(request.messages).join(" | ")),
    });
    let agent = Agent::new(model, Run::new(&Toolbox::new([look]).unwrap())).steered_by(&steer);
    let answered = agent.ask("Look.").await.unwrap();
    assert_eq!(answered.text.as_deref(), Some("Look. | Look again."));
}

#[tokio::test]
async fn what_is_said_after_the_last_word_is_answered_too() {
    let steer = Steer::new();
    let hand = steer.clone();
    let model = Asked(move |request: &Request<'_>| match users(request.messages).len() {
        1 => {
            hand.say("One more thing.").unwrap();
            Turn::answer("done")
        }
        _ => Turn::answer("done too"),
    });
    let agent = Agent::new(model, Run::new(&Toolbox::default())).steered_by(&steer);
    let answered = agent.ask("Go.").await.unwrap();
    assert_eq!((answered.text.as_deref(), answered.turns), (Some("done too"), 2));
}

#[tokio::test]
async fn an_interrupted_turn_ends_unless_something_was_said() {
    let began = Arc::new(Notify::new());
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::default()).tape(tape.clone());
    let agent = Agent::new(Silent(Arc::clone(&began)), run);
    let steer = agent.steer();
    let mut conversation = agent.open();
    let interrupt = async {
        began.notified().await;
        steer.interrupt();
    };
    let (answered, ()) = tokio::join!(conversation.ask("Go."), interrupt);
    assert_eq!(answered.unwrap().stop, Stopped::Interrupted);

    let say = async {
        began.notified().await;
        steer.say("Not that.").unwrap();
        steer.interrupt();
        began.notified().await;
        steer.interrupt();
    };
    let (answered, ()) = tokio::join!(conversation.ask("Again."), say);
    let answered = conversation.close(answered).await.unwrap();
    assert_eq!((answered.stop, answered.turns), (Stopped::Interrupted, 0));
    let records = tape.records(agent.run().id());
    let kinds: Vec<_> = records.iter().map(|record| record.event.kind()).collect();
    let said = ["run.started", "model.asked", "model.asked", "model.said", "run.ended"];
    assert_eq!(kinds, said);
}

#[tokio::test]
async fn an_interrupted_batch_answers_every_call_and_the_conversation_goes_on() {
    let began = Arc::new(Notify::new());
    let told = Arc::clone(&began);
    let wait = tool_fn(Spec::new("wait", "Waits.").access(Access::Read), move |_: Empty| {
        told.notify_one();
        std::future::pending::<Result<u8, ToolError>>()
    });
    let model = Asked(|request: &Request<'_>| match request.messages.last() {
        Some(Message::Replies(_)) | None => unreachable!("somebody said something"),
        Some(Message::User(text)) if &**text == "Go." => {
            Turn::calls([call("wait"), Proposal::new("c2", "wait", "{}")])
        }
        Some(_) => Turn::answer("stopped"),
    });
    let agent = Agent::new(model, Run::new(&Toolbox::new([wait]).unwrap()));
    let steer = agent.steer();
    let mut conversation = agent.open();
    let interrupt = async {
        began.notified().await;
        steer.say("Enough.").unwrap();
        steer.interrupt();
    };
    let (answered, ()) = tokio::join!(conversation.ask("Go."), interrupt);
    let answered = answered.unwrap();
    assert_eq!((answered.text.as_deref(), answered.errors), (Some("stopped"), 2));
    check_transcript(conversation.messages()).unwrap();
}

#[tokio::test]
async fn one_interrupted_call_leaves_the_others_alone() {
    let began = Arc::new(Notify::new());
    let told = Arc::clone(&began);
    let wait = tool_fn(Spec::new("wait", "Waits.").access(Access::Read), move |_: Empty| {
        told.notify_one();
        std::future::pending::<Result<u8, ToolError>>()
    });
    let look = Spy::new("look", Access::Read);
    let turns = [Turn::calls([call("wait"), call("look")]), Turn::answer("done")];
    let toolbox = Toolbox::new([wait, look.tool()]).unwrap();
    let agent = Agent::new(Script::new(turns), Run::new(&toolbox));
    let steer = agent.steer();
    let interrupt = async {
        began.notified().await;
        steer.interrupt_call(CallNo(1));
    };
    let (answered, ()) = tokio::join!(agent.ask("Go."), interrupt);
    let answered = answered.unwrap();
    assert_eq!((answered.errors, answered.calls, look.calls()), (1, 2, 1));
}

#[tokio::test]
async fn a_conversation_that_is_held_waits_until_somebody_lets_it_go_on() {
    let agent = Agent::new(Script::new([Turn::answer("done")]), Run::new(&Toolbox::default()));
    let steer = agent.steer();
    steer.hold();
    let mut asked = Box::pin(agent.ask("Go."));
    assert!(futures_util::poll!(asked.as_mut()).is_pending());
    steer.go_on();
    assert_eq!(asked.await.unwrap().text.as_deref(), Some("done"));
}

/// A model that looks again and again, and pays for it.
fn looking() -> impl Model {
    let usage = Usage { input_tokens: 100, output_tokens: 10, cached_tokens: 50 };
    let looks = Mutex::new(0);
    Asked(move |_: &Request<'_>| {
        let mut looks = looks.lock().unwrap();
        *looks += 1;
        let arguments = format!(r#"{{"n":{looks}}}"#);
        Turn::calls([Proposal::new("c1", "look", arguments)]).costing(usage)
    })
}

#[tokio::test]
async fn every_limit_of_a_conversation_stops_it_and_leaves_a_valid_transcript() {
    let limits = |set: fn(&mut AgentLimits)| {
        let mut limits = AgentLimits::default();
        set(&mut limits);
        limits
    };
    let cases = [
        (limits(|it| it.turns = 2), Stopped::Turns, 2),
        (limits(|it| it.calls = 3), Stopped::Calls, 4),
        (limits(|it| it.tokens = 250), Stopped::Tokens, 3),
        (limits(|it| it.cost = 900), Stopped::Cost, 2),
        (limits(|it| it.wall = Duration::ZERO), Stopped::Time, 0),
    ];
    for (limits, stop, turns) in cases {
        let spy = Spy::new("look", Access::Read);
        let price = Price { input: 4_000_000, output: 20_000_000, cached: 1_000_000 };
        let agent = Agent::new(looking(), run(&spy)).limits(limits).price(price);
        let mut conversation = agent.open();
        let answered = conversation.ask("Look.").await.unwrap();
        assert_eq!((answered.stop, answered.turns), (stop, turns));
        assert_eq!(answered.cost, Some(450 * u64::from(turns)));
        assert_eq!(answered.stop.status(), "failed");
        check_transcript(conversation.messages()).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_takes_too_long_is_given_up() {
    let mut limits = AgentLimits::default();
    limits.wall = Duration::from_secs(5);
    let model = Silent(Arc::default());
    let agent = Agent::new(model, Run::new(&Toolbox::default())).limits(limits);
    assert_eq!(agent.ask("Go.").await.unwrap().stop, Stopped::Time);
}

#[tokio::test]
async fn calls_that_can_never_be_read_use_up_the_repairs() {
    let spy = Spy::new("look", Access::Read);
    let turns = (0..9).map(|n| Turn::calls([Proposal::new("c1", "look", "{".repeat(n + 1))]));
    let mut limits = AgentLimits::default();
    limits.repairs = 2;
    let agent = Agent::new(Script::new(turns), run(&spy)).limits(limits);
    let agent = agent.patience(Patience::endless());
    let answered = agent.ask("Go.").await.unwrap();
    assert_eq!((answered.stop, answered.turns, spy.calls()), (Stopped::Repairs, 3, 0));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_sent_back_with_what_is_wrong() {
    let schema = serde_json::json!({
        "type": "object", "required": ["sum"], "properties": { "sum": { "type": "integer" } },
    });
    let turns = ["four", r#"{"sum":"4"}"#, r#"{"sum":4}"#].map(Turn::answer);
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::default()).tape(tape.clone());
    let agent = Agent::new(Script::new(turns), run).answering(&schema).unwrap();
    let mut conversation = agent.open();
    let answered = conversation.ask("2 + 2?").await.unwrap();
    assert_eq!(answered.value, Some(serde_json::json!({ "sum": 4 })));
    let said = users(conversation.messages());
    assert!(said[2].contains("/sum") && said[2].contains("integer"), "{said:?}");
    let records = tape.records(agent.run().id());
    let nudges = records.iter().filter_map(|record| match &record.event {
        Event::Nudged(nudge) => Some((nudge.why, nudge.times)),
        _ => None,
    });
    assert_eq!(nudges.collect::<Vec<_>>(), [("answer", 1), ("answer", 2)]);
    check_transcript(conversation.messages()).unwrap();
}

#[tokio::test]
async fn a_model_that_must_call_a_tool_is_told_when_it_does_not() {
    let spy = Spy::new("look", Access::Read);
    let turns = [Turn::answer("no"), Turn::calls([call("look")]), Turn::answer("yes")];
    let choose = |turn| if turn <= 2 { Choice::Tool("look") } else { Choice::Auto };
    let agent = Agent::new(Script::new(turns), run(&spy)).choosing(choose);
    let answered = agent.ask("Look.").await.unwrap();
    assert_eq!((answered.text.as_deref(), spy.calls()), (Some("yes"), 1));

    let model = Asked(|_: &Request<'_>| Turn::answer("no"));
    let agent = Agent::new(model, run(&spy)).choosing(|_| Choice::Required);
    assert_eq!(agent.ask("Look.").await.unwrap().stop, Stopped::Repairs);
}

#[tokio::test]
async fn who_watches_sees_every_step_and_no_secret() {
    struct Telling;
    impl Model for Telling {
        fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
            Box::pin(async move {
                if request.messages.len() > 1 {
                    request.tell(Delta::Text("done"));
                    return Ok(Turn::answer("done"));
                }
                request.tell(Delta::Reasoning("the key is hunter2-"));
                request.tell(Delta::Reasoning("hunter2, I think"));
                request.tell(Delta::Text("It is hunter2-hun"));
                request.tell(Delta::Text("ter2."));
                request.tell(Delta::Call(0, "look"));
                let text = "It is hunter2-hunter2.";
                Ok(Turn::calls([call("look")]).saying(text))
            })
        }
    }
    let spy = Spy::new("look", Access::Read);
    let redactor = tooltape::Redactor::new(["hunter2-hunter2"]).unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let steps = Arc::clone(&seen);
    let agent = Agent::new(Telling, run(&spy).redact(redactor)).watch(move |step| {
        let line = match step {
            Step::Record(record) => record.event.kind().to_owned(),
            Step::Turn(turn) => format!("turn {} {:?}", turn.proposals.len(), turn.text),
            step => format!("{step:?}"),
        };
        steps.lock().unwrap().push(line);
    });
    agent.ask("Look.").await.unwrap();
    let seen = seen.lock().unwrap().join("\n");
    assert!(!seen.contains("hunter2"), "{seen}");
    let order = ["Asked(1)", "Call(0", "turn 1", "call.settled", "Asked(2)", "turn 0"];
    let places: Vec<_> = order.iter().map(|it| seen.find(it).expect(it)).collect();
    assert!(places.is_sorted(), "{seen}");
}
