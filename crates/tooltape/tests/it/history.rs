//! Long conversations in a window: acceptance 84 and 108.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tooltape::testing::{Spy, check_transcript};
use tooltape::{
    Access, Agent, BoxFuture, Empty, History, Message, Model, ModelError, Next, Output, Proposal,
    Request, Run, Spec, Talk, Tool, ToolError, Toolbox, Turn, Window, tool_fn,
};

/// A tool that returns as many bytes as it is asked for.
fn returning(name: &str, hints: impl FnOnce(&mut History)) -> Arc<dyn Tool> {
    let mut history = History::default();
    hints(&mut history);
    let returns = |args: tooltape::Args| {
        let bytes = args.to_value()["bytes"].as_u64().unwrap_or(0);
        Ok(Output::text("x".repeat(bytes as usize)))
    };
    let spy = Spy::new(name, Access::Read).returning(returns);
    spy.declaring(|spec| spec.history(history)).tool()
}

fn toolbox() -> Toolbox {
    Toolbox::new([
        returning("plain", |_| {}),
        returning("read", |it| it.dedupe_by = Some("path".into())),
        returning("search", |it| it.summarise_by = Some("path".into())),
        returning("log", |it| it.compact = true),
        returning("rules", |it| it.pin = true),
    ])
    .unwrap()
}

/// A call, as `name path bytes`.
fn call(text: &str) -> Proposal {
    let [name, path, bytes] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let arguments = format!(r#"{{"path":"{path}","bytes":{bytes}}}"#);
    Proposal::new(format!("{name}_{path}"), name.to_owned(), arguments)
}

/// A conversation in which the model made these calls, turn by turn.
async fn conversation(turns: &[&[&str]]) -> Vec<Message> {
    let run = Run::new(&toolbox());
    let mut talk = Talk::new("Please fix the test.", u32::MAX);
    for turn in turns {
        let turn = Turn::calls(turn.iter().map(|text| call(text)));
        let Next::Calls(proposals) = talk.turn(turn) else { panic!("it calls") };
        talk.replies(run.batch(proposals).await.unwrap());
    }
    talk.messages().to_vec()
}

/// The conversation in a window of so many bytes.
fn shown(messages: &[Message], bytes: usize) -> Vec<Message> {
    let offer = toolbox().offer_all();
    let shown = Window { bytes }.show(messages, |name| offer.history(name)).into_owned();
    check_transcript(&shown).unwrap();
    shown
}

/// The texts of all replies, with long ones told by their length.
fn replies(messages: &[Message]) -> Vec<String> {
    let replies = messages.iter().filter_map(|message| match message {
        Message::Replies(replies) => Some(replies),
        Message::User(_) | Message::Model(_) => None,
    });
    let text = |text: String| if text.len() > 300 { text.len().to_string() } else { text };
    replies.flatten().map(|reply| text(reply.text())).collect()
}

fn bytes(messages: &[Message]) -> usize {
    let size = |message: &Message| match message {
        Message::User(text) => text.len(),
        Message::Model(turn) => {
            let size = |it: &Proposal| it.id.len() + it.name.len() + it.text().len();
            turn.proposals.iter().map(size).sum()
        }
        Message::Replies(replies) => {
            replies.iter().map(|reply| reply.id.len() + reply.text().len()).sum()
        }
    };
    messages.iter().map(size).sum()
}

#[test]
fn hints_are_each_tools_own_and_none_for_unknown_tools() {
    let offer = toolbox().offer_all();
    assert_eq!(offer.history("read").dedupe_by.as_deref(), Some("path"));
    assert_eq!(offer.history("search").summarise_by.as_deref(), Some("path"));
    assert!(offer.history("log").compact && offer.history("rules").pin);
    assert_eq!(offer.history("plain"), History::default());
    assert_eq!(offer.history("nobody"), History::default());
}

#[tokio::test]
async fn a_conversation_that_fits_is_shown_as_it_is() {
    let messages = conversation(&[&["plain a 100"], &["log a 5000"]]).await;
    assert_eq!(replies(&shown(&messages, 10_000)), replies(&messages));
}

#[tokio::test]
async fn sixty_calls_in_one_step_keep_the_users_request_in_the_window() {
    let calls: Vec<String> = (0..60).map(|at| format!("plain f{at} 30000")).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let messages = conversation(&[&["plain before 1000"], &calls]).await;
    assert!(bytes(&messages) > 1_800_000);
    let shown = shown(&messages, 100_000);
    let Some(Message::User(text)) = shown.first() else { panic!("the user begins: {shown:?}") };
    assert_eq!(&**text, "Please fix the test.");
    assert!(bytes(&shown) <= 100_000, "{} bytes", bytes(&shown));
    let replies = replies(&shown);
    assert_eq!(replies.len(), 60, "every call has its reply");
    assert!(replies.iter().all(|text| text.parse::<usize>().unwrap() > 1_000), "{replies:?}");
}

#[tokio::test]
async fn old_results_are_shortened_as_their_tools_allow_and_oldest_first() {
    let messages = conversation(&[
        &["read a 3000", "read b 3000"],
        &["search s 3000", "log l 3000"],
        &["read a 3000", "rules r 3000", "plain p 3000"],
        &["log last 3000"],
    ])
    .await;
    // Each of the eight replies ends in a line break.
    let all = bytes(&messages) + 8;
    assert_eq!(replies(&shown(&messages, all)), ["3000"; 8]);
    let replaced = "a later result replaces this one; path: a\n\
                    [tooltape: 3,000 of 3,000 bytes left out]";
    let summed_up = "path: s\n[tooltape: 3,000 of 3,000 bytes left out]";
    assert_eq!(
        replies(&shown(&messages, all - 1)),
        [replaced, "3000", summed_up, "871", "3000", "3000", "3000", "3000"]
    );
}

#[tokio::test]
async fn only_a_later_good_result_for_the_same_value_replaces_an_earlier_one() {
    let long = "p".repeat(300);
    let (one, other) = (format!("read {long}1 3000"), format!("read {long}2 3000"));
    let messages = conversation(&[&[&one], &[&other], &["plain p 3000"]]).await;
    let shown = shown(&messages, bytes(&messages) - 1);
    assert!(!format!("{:?}", replies(&shown)).contains("a later result"), "they are two files");
}

#[tokio::test]
async fn the_oldest_exchanges_are_left_out_whole_and_pinned_ones_stay() {
    let messages = conversation(&[
        &["rules r 3000"],
        &["plain a 3000", "plain b 3000"],
        &["plain c 3000"],
        &["plain d 3000"],
    ])
    .await;
    let shown = shown(&messages, 13_000);
    assert_eq!(replies(&shown), ["3000"; 3]);
    let kept = shown.iter().filter_map(|message| match message {
        Message::Model(turn) => Some(&*turn.proposals[0].id),
        Message::User(_) | Message::Replies(_) => None,
    });
    assert_eq!(kept.collect::<Vec<_>>(), ["rules_r", "plain_c", "plain_d"]);
}

#[tokio::test]
async fn what_is_shown_stays_the_same_for_some_turns() {
    let turns: Vec<String> = (0..40).map(|at| format!("log l{at} 2000")).collect();
    let turns: Vec<[&str; 1]> = turns.iter().map(|turn| [turn.as_str()]).collect();
    let turns: Vec<&[&str]> = turns.iter().map(|turn| &turn[..]).collect();
    let messages = conversation(&turns).await;
    let mut before = Vec::new();
    let mut same = 0;
    for turns in 1..=40 {
        let now = replies(&shown(&messages[..1 + 2 * turns], 20_000));
        same += usize::from(now.starts_with(&before));
        before = now;
    }
    assert!(same >= 25, "what was shown stayed the same in {same} of 40 turns");
}

/// A model that calls once, and keeps what it was shown.
struct Watcher(Arc<Mutex<Vec<usize>>>);

impl Model for Watcher {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let Request { messages, .. } = *request;
        let mut seen = self.0.lock().unwrap();
        seen.push(bytes(messages));
        let turn = if seen.len() < 6 {
            Turn::calls([Proposal::new("c", "big", "{}")])
        } else {
            Turn::answer("done")
        };
        Box::pin(async move { Ok(turn) })
    }
}

#[tokio::test]
async fn an_agent_shows_its_model_the_window() {
    let big = Spec::new("big", "Returns much.").access(Access::Read);
    let big = tool_fn(big, async |_: Empty| Ok::<_, ToolError>("x".repeat(20_000)));
    let seen = Arc::default();
    let run = Run::new(&Toolbox::new([big]).unwrap());
    let agent = Agent::new(Watcher(Arc::clone(&seen)), run).window(Window { bytes: 50_000 });
    agent.ask("Go.").await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.len() == 6 && seen.iter().all(|bytes| *bytes <= 50_000), "{seen:?}");
    assert!(seen[2] > 40_000, "the window is used: {seen:?}");
}

fn any_turn() -> impl Strategy<Value = Vec<String>> {
    let name = prop::sample::select(vec!["plain", "read", "search", "log", "nobody"]);
    let call = (name, "[a-c]", 0..6_000_usize);
    let call = call.prop_map(|(name, path, bytes)| format!("{name} {path} {bytes}"));
    prop::collection::vec(call, 1..6)
}

proptest! {
    #[test]
    fn any_conversation_fits_its_window_and_stays_whole(
        turns in prop::collection::vec(any_turn(), 1..12),
        window in 3_000..40_000_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let turns: Vec<Vec<&str>> =
            turns.iter().map(|turn| turn.iter().map(String::as_str).collect()).collect();
        let turns: Vec<&[&str]> = turns.iter().map(Vec::as_slice).collect();
        let messages = runtime.block_on(conversation(&turns));
        // The checker of transcripts is within.
        let shown = shown(&messages, window);
        prop_assert!(bytes(&shown) <= window, "{} of {window} bytes", bytes(&shown));
        prop_assert!(matches!(shown[0], Message::User(_)));
        let newest = |messages: &[Message]| match messages.last() {
            Some(Message::Replies(replies)) => replies.iter().map(|it| it.call).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        prop_assert_eq!(newest(&shown), newest(&messages));
    }
}
