//! Models behind HTTP: asked, misled, cut off and cancelled, by servers on this machine.

mod driving;
mod faults;
mod strange;
mod cancelling;
mod keys;
mod proxies;
mod local;

use std::sync::{Arc, Mutex};

use tooltape::http::{HttpModel, Provider};
use tooltape::testing::{Spy, check_transcript};
use tooltape::wire::Api;
use tooltape::{
    Access, Agent, AgentError, Answered, Event, MemoryTape, Replay, Run, Step, Stopped, ToolError,
    Toolbox, TurnStop, serde_json,
};

use crate::fake::{Fake, Said, call, said};

/// What a model acts on, and what is known of it afterwards.
pub(crate) struct World {
    pub(crate) look: Spy,
    pub(crate) open: Spy,
    pub(crate) tape: MemoryTape,
    pub(crate) heard: Arc<Mutex<Heard>>,
}

/// What somebody who watches heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<String>,
    /// How often a turn began anew.
    pub(crate) again: usize,
    /// All of it, as it may be logged.
    pub(crate) log: String,
}

/// What came of a question.
pub(crate) struct Came {
    pub(crate) answered: Result<Answered, AgentError>,
    /// All that is on the tape.
    pub(crate) tape: String,
    /// How each turn on the tape stopped.
    pub(crate) stops: Vec<String>,
}

impl World {
    pub(crate) fn new() -> World {
        let place = r#"{"type":"object","properties":{"place":{"type":"string"}}}"#;
        let door = r#"{"type":"object","properties":{"door":{"type":"string"}}}"#;
        let schema = |text| serde_json::from_str(text).unwrap();
        let look = Spy::new("look", Access::Read).declaring(|spec| spec.input(schema(place)));
        let open = Spy::new("open", Access::Read).declaring(|spec| spec.input(schema(door)));
        let open = open.returning(|_| Err(ToolError::tell("the door is stuck")));
        World { look, open, tape: MemoryTape::default(), heard: Arc::default() }
    }

    pub(crate) fn toolbox(&self) -> Toolbox {
        Toolbox::new([self.look.tool(), self.open.tool()]).unwrap()
    }

    pub(crate) fn agent(&self, provider: Provider) -> Agent<HttpModel> {
        let run = Run::new(&self.toolbox()).tape(self.tape.clone());
        let heard = Arc::clone(&self.heard);
        Agent::new(provider.build().unwrap(), run)
            .watch(move |step| heard.lock().unwrap().hear(step))
    }

    /// Asks, and holds what comes of it against what is promised of any end.
    pub(crate) async fn ask(&self, provider: Provider) -> Came {
        let agent = self.agent(provider);
        let mut conversation = agent.open();
        let asked = conversation.ask("What is behind the red door?").await;
        check_transcript(conversation.messages()).unwrap();
        let answered = conversation.close(asked).await;
        let records = self.tape.records(agent.run().id());
        let stops = records.iter().filter_map(|record| match &record.event {
            Event::Turn(turn) => Some(turn.stop.to_owned()),
            _ => None,
        });
        let stops: Vec<String> = stops.collect();
        // What is never executed never starts.
        let cut = stops.iter().filter(|stop| **stop == TurnStop::Cut.word()).count();
        if cut == stops.len() {
            assert_eq!((self.look.calls(), self.open.calls()), (0, 0), "a cut call was executed");
        }
        let replay = Replay::of_records(records).with(&self.toolbox()).check().await.unwrap();
        assert!(replay.is_same(), "{replay:?}");
        let lines = self.tape.lines(agent.run().id()).unwrap();
        let tape = lines.iter().map(|line| format!("{}\n", line.text())).collect();
        Came { answered, tape, stops }
    }

    /// Asks, and expects the answer of a server that was good in the end.
    pub(crate) async fn survives(&self, fake: &Fake, provider: Provider, requests: usize) {
        let came = self.ask(provider).await;
        let answered = came.answered.unwrap();
        assert_eq!(
            (answered.text.as_deref(), answered.stop),
            (Some("It is a hall."), Stopped::Answer)
        );
        assert_eq!((fake.seen().len(), fake.left()), (requests, 0));
        assert_eq!(fake.refused(), [""; 0]);
        assert_eq!((self.look.calls(), answered.errors), (1, 0), "it looked once");
    }
}

impl Heard {
    fn hear(&mut self, step: Step<'_>) {
        self.log.push_str(&format!("{step:?}\n"));
        match step {
            Step::Text(text) => self.text.push_str(text),
            Step::Reasoning(text) => self.reasoning.push_str(text),
            Step::Call(_, name) => self.calls.push(name.to_owned()),
            Step::Again => self.again += 1,
            _ => {}
        }
    }
}

/// A model looks once, having said that it will.
pub(crate) fn looking(api: Api) -> Said {
    said(["I look around.".into(), call(api, 1, "look", r#"{"place":"hall"}"#)])
}

/// A model answers.
pub(crate) fn answering() -> Said {
    said(["It is a hall.".into()])
}

/// Both ways in which an answer can come.
pub(crate) fn ways(fake: &Fake) -> [Provider; 2] {
    [fake.provider(), fake.provider().whole()]
}
