//! Each recorded stream decodes to what its vendor's own library made of it.

use std::sync::Mutex;

use serde_json::Value;
use tooltape::testing::Spy;
use tooltape::{
    Access, Agent, BoxFuture, Model, ModelError, Proposal, Request, Run, Toolbox, Turn, TurnStop,
    Verdict,
};

use super::recordings::{Recording, fed, payloads, streams};

/// Streams in which the provider says that it failed: so do we.
const FAILED: [(&str, &str); 2] = [
    (
        "test_tool_use_failed_error_streaming.yaml",
        "refused the request (400): Tool call validation",
    ),
    ("test_openrouter_stream_error.yaml", "Token limit reached"),
];

#[test]
fn every_recorded_stream_decodes_to_what_its_vendor_made_of_it() {
    let Some(streams) = streams() else { return };
    let (mut calls, mut failed) = (0, 0);
    for stream in &streams {
        let decoded = fed(stream.api(), [stream.response.as_bytes()]);
        let Some(expected) = &stream.expect else {
            let (_, why) = FAILED.iter().find(|(file, _)| stream.file.ends_with(file)).unwrap();
            let err = decoded.unwrap_err().to_string();
            assert!(err.contains(why), "{err}");
            failed += 1;
            continue;
        };
        let named = stream.named();
        let (turn, word, _) = decoded.unwrap_or_else(|err| panic!("{named}: {err}"));
        // The libraries keep a refusal apart from the text. We have one text for both.
        let refusal = refusal(stream);
        let text = format!("{}{refusal}", expected.text.as_deref().unwrap_or_default());
        assert_eq!(turn.text.as_deref().unwrap_or_default(), text, "{named}");
        assert_eq!(word, expected.stop, "{named}");
        assert_eq!(turn.stop, stop(word.as_deref(), &refusal), "{named}");
        assert_eq!(turn.proposals.len(), expected.tool_calls.len(), "{named}");
        for (proposal, call) in turn.proposals.iter().zip(&expected.tool_calls) {
            assert_eq!(&*proposal.id, call.id.as_deref().unwrap_or_default(), "{named}");
            assert_eq!(&*proposal.name, call.name, "{named}");
            assert_same(proposal, &call.arguments, &named);
            calls += 1;
        }
        assert!(turn.usage.cached_tokens <= turn.usage.input_tokens, "{named}: {:?}", turn.usage);
    }
    let proposing = streams.iter().filter_map(|it| it.expect.as_ref());
    assert_eq!(proposing.filter(|it| !it.tool_calls.is_empty()).count(), 276);
    assert_eq!((failed, calls), (FAILED.len(), 319));
}

/// What the model says of why it refuses, by another reader.
fn refusal(stream: &Recording) -> String {
    let payloads = payloads(&stream.response);
    let deltas = payloads.iter().filter_map(|it| it["choices"][0]["delta"]["refusal"].as_str());
    deltas.collect()
}

fn stop(word: Option<&str>, refusal: &str) -> TurnStop {
    match word {
        Some(_) if !refusal.is_empty() => TurnStop::Refused,
        Some("stop" | "tool_calls" | "completed" | "end_turn" | "tool_use" | "stop_sequence") => {
            TurnStop::Done
        }
        Some("STOP") => TurnStop::Done,
        Some("length" | "incomplete" | "MAX_TOKENS" | "max_tokens") => TurnStop::Length,
        None => TurnStop::Cut,
        Some(word) => panic!("a word that the recordings do not have: {word}"),
    }
}

/// The same text, or the same JSON where the vendor's library wrote it anew.
fn assert_same(proposal: &Proposal, expected: &str, named: &str) {
    if **proposal.text() != *expected {
        let ours: Value = serde_json::from_str(proposal.text()).unwrap();
        assert_eq!(ours, serde_json::from_str::<Value>(expected).unwrap(), "{named}");
    }
}

#[test]
fn a_stream_makes_the_same_turn_whole_by_line_and_byte_by_byte_and_was_heard_in_full() {
    let Some(streams) = streams() else { return };
    for stream in &streams {
        let (api, bytes) = (stream.api(), stream.response.as_bytes());
        let whole = fed(api, [bytes]);
        assert_eq!(fed(api, bytes.split_inclusive(|byte| *byte == b'\n')), whole);
        assert_eq!(fed(api, bytes.chunks(1)), whole, "{}", stream.named());
        if let Ok((turn, _, heard)) = whole {
            assert!(heard.is_of(&turn), "{}: {heard:?} {turn:?}", stream.named());
        }
    }
}

/// A model that has these turns.
struct Played(Mutex<Vec<Turn>>);

impl Model for Played {
    fn turn<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let turn = self.0.lock().unwrap().pop().ok_or(ModelError::Over { turn: 0, turns: 0 });
        Box::pin(async { turn })
    }
}

/// How often a tool ran, which takes anything, when a model took this turn.
async fn executions(turn: &Turn) -> usize {
    let mut toolbox = Toolbox::default();
    let names: std::collections::BTreeSet<_> = turn.proposals.iter().map(|it| &*it.name).collect();
    let spies: Vec<Spy> = names.iter().map(|name| Spy::new(name, Access::Write)).collect();
    spies.iter().for_each(|spy| toolbox.add(spy.tool()).unwrap());
    let model = Played(Mutex::new(vec![Turn::answer("done"), turn.clone()]));
    let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"));
    // A turn that was cut off may end the conversation.
    Agent::new(model, run).ask("Go.").await.ok();
    spies.iter().map(Spy::calls).sum()
}

#[tokio::test]
async fn what_was_cut_off_or_is_no_json_executes_nothing() {
    let Some(streams) = streams() else { return };
    let (mut bad, mut cut) = (0, 0);
    for stream in &streams {
        let Ok((turn, ..)) = fed(stream.api(), [stream.response.as_bytes()]) else { continue };
        // The recordings do not count calls without any arguments as bad ones.
        let is_json = |it: &Proposal| {
            it.text().is_empty() || serde_json::from_str::<Value>(it.text()).is_ok()
        };
        assert_eq!(turn.proposals.iter().filter(|it| !is_json(it)).count(), stream.bad_args);
        let executed = executions(&turn).await;
        if stream.bad_args > 0 {
            assert_eq!(executed, 0, "{}", stream.named());
            bad += 1;
        } else if turn.stop != TurnStop::Done {
            assert_eq!(executed, 0, "{}", stream.named());
            cut += 1;
        } else {
            let objects = turn.proposals.iter().filter(|it| it.text().starts_with('{'));
            assert_eq!(executed, objects.count(), "{}", stream.named());
        }
    }
    assert_eq!(bad, 25);
    assert!(cut > 60, "{cut} turns were cut off");
}
