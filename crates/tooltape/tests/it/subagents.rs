//! Sub-agents: tools that give tasks to models, in child runs that only ever narrow.

use std::sync::{Arc, Mutex};

use tooltape::testing::Spy;
use tooltape::{
    Access, Agent, AgentLimits, Answer, BoxFuture, Event, MemoryTape, Model, ModelError, Proposal,
    Request, Run, RunId, RunLimits, Script, Stopped, SubAgent, Tape, Toolbox, Turn, Verdict,
};

/// A model that notes what it is offered, and answers.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Model for Noting {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let names: Vec<_> =
            request.offer.tools().map(|tool| tool.spec().name.to_string()).collect();
        self.0.lock().unwrap().push(names.join(" "));
        Box::pin(async { Ok(Turn::answer("noted")) })
    }
}

fn task(arguments: &str) -> Proposal {
    Proposal::new("c1", "scout", arguments)
}

fn run(spies: &[&Spy], scout: SubAgent) -> (Run, MemoryTape) {
    let tape = MemoryTape::default();
    let tools = spies.iter().map(|spy| spy.tool()).chain([scout.tool()]);
    let run = Run::new(&Toolbox::new(tools).unwrap()).policy(|_: &_| Verdict::allow("test"));
    (run.tape(tape.clone()), tape)
}

#[tokio::test]
async fn a_sub_agent_has_its_callers_whole_toolbox_and_can_be_narrowed() {
    let (look, push) = (Spy::new("look", Access::Read), Spy::new("push", Access::Write));
    let noting = Noting::default();
    let (whole, _) = run(&[&look, &push], SubAgent::new("scout", "Scouts.", noting.clone()));
    whole.batch(vec![task(r#"{"task":"go"}"#)]).await.unwrap();
    let named = r#"{"task":"go","tools":["look","nothing"]}"#;
    whole.batch(vec![task(named)]).await.unwrap();
    let scout =
        SubAgent::new("scout", "Scouts.", noting.clone()).only(|spec| &*spec.name == "push");
    let (narrow, _) = run(&[&look, &push], scout);
    narrow.batch(vec![task(r#"{"task":"go"}"#), task(named)]).await.unwrap();
    assert_eq!(*noting.0.lock().unwrap(), ["look push scout", "look", "push", ""]);
}

#[tokio::test]
async fn a_sub_agents_run_is_linked_on_the_tape_and_its_vote_ends_only_itself() {
    let look = Spy::new("look", Access::Read);
    let scout =
        Script::new([Turn::calls([Proposal::new("x", "look", "{}")]), Turn::answer("seen")]);
    let (run, tape) = run(&[&look], SubAgent::new("scout", "Scouts.", scout));
    let model = Script::new([Turn::calls([task(r#"{"task":"look"}"#)]), Turn::answer("done")]);
    let agent = Agent::new(model, run);
    let answered = agent.ask("Scout.").await.unwrap();
    assert_eq!((answered.text.as_deref(), look.calls()), (Some("done"), 1));
    let parent = agent.run().id();
    let runs: Vec<RunId> = tape.runs();
    let child = *runs.iter().find(|run| **run != parent).unwrap();
    let records = tape.read(child, 0, 1).await.unwrap();
    let Event::RunStarted { parent: Some(link), depth: 1, .. } = &records[0].event else {
        panic!("the child names its parent: {records:?}");
    };
    assert_eq!((link.run, link.call.0), (parent, 1));
}

#[tokio::test]
async fn nesting_stops_at_its_limit_with_an_error_and_no_stack_of_agents() {
    struct Deeper;
    impl Model for Deeper {
        fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
            let turn = match request.messages.len() {
                1 => Turn::calls([task(r#"{"task":"deeper"}"#)]),
                _ => Turn::answer("back"),
            };
            Box::pin(async { Ok(turn) })
        }
    }
    let (run, tape) = run(&[], SubAgent::new("scout", "Scouts.", Deeper));
    let mut limits = RunLimits::default();
    limits.depth = 3;
    let replies = run.limits(limits).batch(vec![task(r#"{"task":"go"}"#)]).await.unwrap();
    assert_eq!(replies[0].text(), "back");
    assert_eq!(tape.runs().len(), 4);
}

#[tokio::test]
async fn a_sub_agent_that_stops_without_an_answer_is_an_error_that_says_why() {
    let look = Spy::new("look", Access::Read);
    let turns =
        (0..9).map(|n| Turn::calls([Proposal::new("x", "look", format!(r#"{{"n":{n}}}"#))]));
    let mut limits = AgentLimits::default();
    limits.turns = 2;
    let scout = SubAgent::new("scout", "Scouts.", Script::new(turns)).limits(limits);
    let (run, _) = run(&[&look], scout);
    let replies = run.batch(vec![task(r#"{"task":"go"}"#)]).await.unwrap();
    assert!(replies[0].is_error && replies[0].text().contains("turns"), "{}", replies[0].text());
    assert_eq!(look.calls(), 2);
}

#[tokio::test]
async fn a_sub_agents_calls_are_asked_about_and_cancelled_with_its_caller() {
    let push = Spy::new("push", Access::Write);
    let turns = [Turn::calls([Proposal::new("x", "push", "{}")]), Turn::answer("pushed")];
    let (allowed, _) = run(&[&push], SubAgent::new("scout", "Scouts.", Script::new(turns)));
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let allowed = allowed
        .policy(|call: &tooltape::Call| match call.tool().name().as_str() {
            "push" => Verdict::ask("pushing"),
            _ => Verdict::allow("test"),
        })
        .approver(move |_: &_| {
            *count.lock().unwrap() += 1;
            Box::pin(async { Answer::Once })
        });
    let replies = allowed.batch(vec![task(r#"{"task":"push"}"#)]).await.unwrap();
    assert_eq!((replies[0].text().as_str(), *asked.lock().unwrap()), ("pushed", 1));

    struct Never;
    impl Model for Never {
        fn turn<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
            Box::pin(std::future::pending())
        }
    }
    let (run, _) = run(&[], SubAgent::new("scout", "Scouts.", Never));
    let agent = Agent::new(Script::new([Turn::calls([task(r#"{"task":"go"}"#)])]), run);
    let canceller = agent.run().canceller();
    let mut asking = Box::pin(agent.ask("Scout."));
    assert!(futures_util::poll!(asking.as_mut()).is_pending());
    canceller.cancel();
    let answered = asking.await.unwrap();
    assert_eq!((answered.stop, answered.errors), (Stopped::Cancelled, 1));
}
