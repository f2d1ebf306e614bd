//! A real model, offline: it calls the right tool, sees an error, is heard, cut off and cancelled.

mod server;

use serde_json::json;
use server::Server;
use tooltape::http::{HttpModel, Provider, Waits};
use tooltape::testing::{Spy, check_transcript};
use tooltape::wire::Api;
use tooltape::{
    Access, Agent, AgentError, AgentLimits, Event, MemoryTape, ModelError, Patience, Replay, Run,
    Steer, Step, Stopped, ToolError, Toolbox,
};

const QUESTION: &str = "What is the weather in Paris?";

/// Three tools, of which one is right.
struct Tools {
    weather: Spy,
    add: Spy,
    mail: Spy,
    tape: MemoryTape,
}

impl Tools {
    fn new() -> Tools {
        let spy = |name, description: &str, properties: [&str; 2], kind| {
            let [first, second] = properties;
            let input = json!({
                "type": "object",
                "properties": { first: { "type": kind }, second: { "type": kind } },
                "required": [first],
            });
            Spy::new(name, Access::Read).declaring(|mut spec| {
                spec.description = description.into();
                spec.input(input)
            })
        };
        Tools {
            weather: spy("weather", "Says the weather in a city.", ["city", "day"], "string"),
            add: spy("add", "Adds two numbers.", ["a", "b"], "integer"),
            mail: spy("mail", "Sends a mail to somebody.", ["to", "text"], "string"),
            tape: MemoryTape::default(),
        }
    }

    fn toolbox(&self) -> Toolbox {
        Toolbox::new([self.weather.tool(), self.add.tool(), self.mail.tool()]).unwrap()
    }

    /// An agent with all of them, who is not patient with its model's server.
    fn agent(&self, provider: Provider) -> Agent<HttpModel> {
        agent(provider, Run::new(&self.toolbox()).tape(self.tape.clone()))
    }

    /// An agent with the right one alone, which is sooner read.
    fn forecaster(&self, provider: Provider) -> Agent<HttpModel> {
        let toolbox = Toolbox::new([self.weather.tool()]).unwrap();
        agent(provider, Run::new(&toolbox).tape(self.tape.clone()))
    }

    fn calls(&self) -> [usize; 3] {
        [self.weather.calls(), self.add.calls(), self.mail.calls()]
    }
}

fn agent(provider: Provider, run: Run) -> Agent<HttpModel> {
    let mut waits = Waits::default();
    waits.attempts = 1;
    Agent::new(provider.waits(waits).build().unwrap(), run)
}

#[tokio::test]
async fn a_real_model_calls_the_right_tool_of_three_and_a_replay_asks_nobody() {
    let Some(server) = Server::start(1) else { return };
    let streamed = server.provider(Api::Compatible);
    let whole = streamed.clone().whole();
    for provider in [streamed, whole, server.provider(Api::Anthropic)] {
        let tools = Tools::new();
        let agent = tools.agent(provider).turns_max(1);
        let answered = agent.ask(QUESTION).await.unwrap();
        assert_eq!((answered.stop, answered.errors), (Stopped::Turns, 0));
        assert_eq!(tools.calls(), [1, 0, 0]);
        assert!(answered.usage.input_tokens > 100 && answered.usage.output_tokens > 10);
        let records = tools.tape.records(agent.run().id());
        let asked = records.iter().find_map(|record| match &record.event {
            Event::Proposed(facts) => Some((facts.name.to_string(), facts.arguments.to_string())),
            _ => None,
        });
        let (name, arguments) = asked.unwrap();
        assert!(name == "weather" && arguments.contains(r#""city":"Paris""#), "{arguments}");
        let replay = Replay::of_records(records).with(&tools.toolbox()).check().await.unwrap();
        assert!(replay.is_same(), "{replay:?}");
    }
}

#[tokio::test]
async fn a_real_model_sees_that_a_tool_failed() {
    let Some(server) = Server::start(1) else { return };
    // The ids that its server makes up are different each time, and it is easily confused.
    let mut said = Vec::new();
    while !said.iter().any(|text: &String| text.contains("closed")) {
        assert!(said.len() < 3, "it saw nothing of it: {said:?}");
        said.push(after_a_failure(server.provider(Api::Compatible)).await);
    }
}

/// What the model says after its tool failed, where it has nothing left to call.
async fn after_a_failure(provider: Provider) -> String {
    let mut tools = Tools::new();
    let closed = |_| Err(ToolError::tell("the station in Paris is closed"));
    tools.weather = tools.weather.returning(closed);
    let agent = tools.forecaster(provider).gate(|turn, _| turn == 1);
    let mut conversation = agent.open();
    let answered = conversation.ask(QUESTION).await.unwrap();
    check_transcript(conversation.messages()).unwrap();
    assert_eq!((answered.stop, answered.turns, answered.errors), (Stopped::Answer, 2, 1));
    answered.text.unwrap().to_string()
}

#[tokio::test]
async fn a_real_model_is_heard_before_it_is_done_and_stops_when_it_is_told_to() {
    let Some(server) = Server::start(1) else { return };
    // There is one seat: who did not give it up would keep the next one waiting for long.
    let long = "Write a very long story about a fisherman and the sea.";
    for api in [Api::Compatible, Api::Anthropic] {
        for cancels in [true, false] {
            let (tools, steer) = (Tools::new(), Steer::new());
            let run = Run::new(&Toolbox::default()).tape(tools.tape.clone());
            let (hand, canceller) = (steer.clone(), run.canceller());
            let model = server.provider(api).build().unwrap();
            let agent = Agent::new(model, run).steered_by(&steer).watch(move |step| {
                if let Step::Text(_) = step {
                    match cancels {
                        true => canceller.cancel(),
                        false => hand.interrupt(),
                    }
                }
            });
            let stop = if cancels { Stopped::Cancelled } else { Stopped::Interrupted };
            let answered = agent.ask(long).await.unwrap();
            assert_eq!((answered.stop, answered.turns), (stop, 0), "{api}");
        }
    }
    let tools = Tools::new();
    let agent = tools.forecaster(server.provider(Api::Compatible)).turns_max(1);
    let answered = agent.ask(QUESTION).await;
    assert_eq!((answered.unwrap().calls, tools.calls()), (1, [1, 0, 0]));
}

#[tokio::test]
async fn a_real_call_that_is_cut_off_executes_nothing() {
    let Some(server) = Server::start(1) else { return };
    for tokens in [8, 20, 28, 34] {
        for streams in [true, false] {
            let (tools, mut limits) = (Tools::new(), AgentLimits::default());
            limits.output_tokens = Some(tokens);
            let provider = server.provider(Api::Compatible);
            let provider = if streams { provider } else { provider.whole() };
            let agent = tools.forecaster(provider).limits(limits);
            let mut conversation = agent.open();
            match conversation.ask(QUESTION).await {
                Ok(answered) => assert_eq!(answered.stop, Stopped::Length),
                // This server fails in the midst of a call that has no end.
                Err(AgentError::Model(ModelError::Busy { status: 500, .. })) => assert!(streams),
                Err(err) => panic!("{tokens}: {err}"),
            }
            check_transcript(conversation.messages()).unwrap();
            assert_eq!(tools.calls(), [0, 0, 0], "{tokens}");
        }
    }
}

#[tokio::test]
async fn a_real_model_that_repeats_itself_is_told_and_then_stopped() {
    let Some(server) = Server::start(1) else { return };
    let tools = Tools::new();
    let patience = Patience { repeats: 2, ..Patience::default() };
    let agent = tools.forecaster(server.provider(Api::Compatible)).patience(patience);
    let mut conversation = agent.open();
    let answered = conversation.ask(QUESTION).await;
    check_transcript(conversation.messages()).unwrap();
    let answered = conversation.close(answered).await.unwrap();
    assert_eq!(answered.stop, Stopped::Stalled, "{answered:?}");
    let records = tools.tape.records(agent.run().id());
    let nudges = records.iter().filter(|record| matches!(record.event, Event::Nudged(_)));
    assert_eq!((nudges.count(), tools.calls()[0] as u64), (1, answered.calls));
}
