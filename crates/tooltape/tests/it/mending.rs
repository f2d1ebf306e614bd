//! Conversations from elsewhere: mended in both directions, on the tape, and taken up again.

use proptest::prelude::*;
use tooltape::testing::{Spy, check_transcript};
use tooltape::{
    Access, Agent, Event, MemoryTape, Message, Proposal, Replay, Reply, Run, Script, Toolbox, Turn,
    Verdict, mend,
};

fn reply(id: &str, text: &str) -> Reply {
    Reply::recalled(id.into(), "look".into(), text.into(), false)
}

fn calls(ids: &[&str]) -> Message {
    Message::Model(Turn::calls(ids.iter().map(|id| Proposal::new(*id, "look", "{}"))))
}

fn drawn(messages: &[Message]) -> String {
    let lines = messages.iter().map(|message| match message {
        Message::User(text) => format!("user {text}"),
        Message::Model(turn) => {
            let ids: Vec<_> = turn.proposals.iter().map(|it| it.id.to_string()).collect();
            format!("model {} [{}]", turn.text.as_deref().unwrap_or_default(), ids.join(" "))
        }
        Message::Replies(replies) => {
            let texts = replies.iter().map(|reply| format!("{}={}", reply.id, reply.text()));
            format!("replies {}", texts.collect::<Vec<_>>().join(" "))
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn calls_without_replies_get_one_and_replies_without_calls_are_left_out() {
    let messages = vec![
        Message::Replies(vec![reply("x", "orphan")]),
        Message::User("go".into()),
        calls(&["a", "b"]),
        Message::Replies(vec![reply("b", "two"), reply("z", "orphan")]),
        Message::User("and".into()),
        Message::User("now".into()),
        Message::Model(Turn::calls([])),
        calls(&["c"]),
    ];
    let mended = mend(messages);
    check_transcript(&mended).unwrap();
    let unknown = "unknown: what became of this call is not known; look before you do it again";
    let expected = format!(
        "user go\nmodel  [a b]\nreplies a={unknown} b=two\nuser and\n\nnow\nmodel  [c]\nreplies \
         c={unknown}"
    );
    assert_eq!(drawn(&mended), expected);
}

fn message() -> impl Strategy<Value = Message> {
    let id = || prop::sample::select(vec!["", "a", "b", "c"]);
    prop_oneof![
        "[a-z]{0,3}".prop_map(|text| Message::User(text.into())),
        ("[a-z]{0,3}", prop::collection::vec(id(), 0..4)).prop_map(|(text, ids)| {
            let calls = ids.into_iter().map(|id| Proposal::new(id, "look", "{}"));
            Message::Model(Turn::calls(calls).saying(text))
        }),
        prop::collection::vec(id(), 0..4).prop_map(|ids| {
            Message::Replies(ids.into_iter().map(|id| reply(id, "seen")).collect())
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_in_is_valid_once_mended_and_mending_again_changes_nothing(
        messages in prop::collection::vec(message(), 0..12),
    ) {
        let mended = mend(messages);
        check_transcript(&mended).unwrap();
        prop_assert_eq!(drawn(&mend(mended.clone())), drawn(&mended));
    }
}

#[tokio::test]
async fn a_recalled_conversation_goes_on_is_on_the_tape_and_is_untrusted() {
    let look = Spy::new("look", Access::Read);
    let toolbox = Toolbox::new([look.tool()]).unwrap();
    let tape = MemoryTape::default();
    let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test")).tape(tape.clone());
    let turns = [Turn::calls([Proposal::new("n", "look", "{}")]), Turn::answer("done")];
    let agent = Agent::new(Script::new(turns), run);
    let mut conversation = agent.open();
    conversation.recall(vec![Message::User("before".into()), calls(&["a"])]).unwrap();
    let answered = conversation.ask("now").await;
    assert_eq!(conversation.messages().len(), 7);
    check_transcript(conversation.messages()).unwrap();
    assert!(conversation.recall(Vec::new()).is_err());
    conversation.close(answered).await.unwrap();
    let records = tape.records(agent.run().id());
    let judged = records.iter().find_map(|record| match &record.event {
        Event::Judged { facts, .. } => Some(!facts.context().is_trusted()),
        _ => None,
    });
    assert_eq!(judged, Some(true));
    let report = Replay::of_records(records).with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report:?}");
}

#[tokio::test]
async fn a_recorded_session_becomes_a_script_that_plays_it_again() {
    let look = Spy::new("look", Access::Read);
    let tape = MemoryTape::default();
    let toolbox = Toolbox::new([look.tool()]).unwrap();
    let turns = || {
        [
            Turn::calls([Proposal::new("a", "look", r#"{"n": 1.50}"#)]).saying("so"),
            Turn::calls([Proposal::new("b", "look", "{\n}"), Proposal::new("", "look", "{")]),
            Turn::answer("done"),
        ]
    };
    let agent = Agent::new(Script::new(turns()), Run::new(&toolbox).tape(tape.clone()));
    agent.ask("Look.").await.unwrap();
    let script = Script::recorded(&tape.records(agent.run().id())).to_string();
    let again = Script::parse(&script).unwrap();
    assert_eq!((again.question(), again.turns()), (Some("Look."), &turns()[..]));
    assert_eq!(again.to_string(), script);
}
