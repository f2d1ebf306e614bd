//! A conversation with all that can be in one, crashed behind every record and taken up again.

use std::sync::Arc;

use tooltape::testing::check_transcript;
use tooltape::{
    Access, Agent, Append, BoxFuture, Empty, Event, MemoryTape, Message, Model, ModelError,
    Proposal, Record, Replay, Request, Run, Spec, Tape, Tool, ToolError, Toolbox, Turn, tool_fn,
};

/// A model whose turn follows from how many it took.
struct Teller;

fn call(name: &str, arguments: &str) -> Proposal {
    Proposal::new("c", name, arguments)
}

impl Model for Teller {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let taken = request.messages.iter().filter(|it| matches!(it, Message::Model(_))).count();
        let offered = request.offer.tools().any(|tool| &*tool.spec().name == "weather");
        let turn = match taken {
            0 => Turn::calls([call("tool_search", r#"{"query":"weather"}"#)]),
            1 if offered => Turn::calls([call("weather", "{}"), call("broken", "{}")]),
            1 => panic!("what was found is offered"),
            2 | 3 => Turn::calls([call("broken", "{}")]).saying("again"),
            4 => Turn::answer("no JSON"),
            5 => Turn::answer("1"),
            6 => Turn::calls([call("broken", "{ }")]),
            _ => Turn::answer("2"),
        };
        Box::pin(async { Ok(turn) })
    }
}

fn toolbox() -> Toolbox {
    let spec = |name: &'static str| Spec::new(name, "A tool.").access(Access::Read);
    let weather: Arc<dyn Tool> =
        tool_fn(spec("weather").deferred(), async |_: Empty| Ok::<_, ToolError>("sunny"));
    let broken =
        tool_fn(spec("broken"), async |_: Empty| Err::<u8, _>(ToolError::tell("it is broken")));
    let mut toolbox = Toolbox::new([weather, broken]).unwrap();
    toolbox.searchable().unwrap();
    toolbox
}

fn agent(run: Run) -> Agent<Teller> {
    Agent::new(Teller, run).answering(&serde_json::json!({ "type": "integer" })).unwrap()
}

fn drawn(messages: &[Message]) -> Vec<String> {
    let drawn = messages.iter().map(|message| match message {
        Message::User(text) => format!("user {text}"),
        Message::Model(turn) => format!("model {:?} {:?}", turn.text, turn.proposals),
        Message::Replies(replies) => {
            replies.iter().map(|reply| reply.text()).collect::<Vec<_>>().join(" | ")
        }
    });
    drawn.collect()
}

fn kinds(records: &[Record]) -> Vec<&'static str> {
    let own = ["run.resumed", "call.judged", "call.started"];
    let kinds = records.iter().map(|record| record.event.kind());
    kinds.filter(|kind| !own.contains(kind)).collect()
}

#[tokio::test]
async fn a_conversation_that_crashed_anywhere_goes_on_as_it_would_have() {
    let (tape, toolbox) = (MemoryTape::default(), toolbox());
    let whole = agent(Run::new(&toolbox).tape(tape.clone()));
    let mut conversation = whole.open();
    conversation.ask("How is the weather?").await.unwrap();
    let second = tape.records(whole.run().id()).len();
    let last = conversation.ask("And now?").await;
    let expected = drawn(conversation.messages());
    check_transcript(conversation.messages()).unwrap();
    conversation.close(last).await.unwrap();
    let id = whole.run().id();
    let records = tape.records(id);
    assert_eq!(kinds(&records).iter().filter(|kind| **kind == "model.nudged").count(), 2);
    let report = Replay::of_records(records.clone()).with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report:?}");

    for cut in 2..records.len() {
        let crashed = MemoryTape::default();
        let mut events = records[..cut].iter().map(|record| record.event.clone()).collect();
        crashed.append(Append::new(id, 0, records[0].at_us, &mut events)).durable().await.unwrap();
        let run = Run::new(&toolbox).tape(crashed.clone()).resume(id).await.unwrap();
        let again = agent(run);
        let mut conversation = again.open();
        let mut answered = conversation.resume().await;
        if cut <= second {
            answered = conversation.ask("And now?").await;
        }
        assert_eq!(drawn(conversation.messages()), expected, "cut behind {cut}");
        conversation.close(answered).await.unwrap();
        let resumed = crashed.records(id);
        assert_eq!(kinds(&resumed), kinds(&records), "cut behind {cut}");
        let settled = resumed.iter().filter(|it| matches!(it.event, Event::Settled(_))).count();
        assert_eq!(settled, 6, "cut behind {cut}");
        let report = Replay::of_records(resumed).with(&toolbox).check().await.unwrap();
        assert!(report.is_same(), "cut behind {cut}: {report:?}");
    }
}
