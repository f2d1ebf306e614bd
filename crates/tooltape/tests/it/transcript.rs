//! The checker of transcripts bites, and every kind of limit passes it: acceptance 113.

use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;
use tooltape::testing::{
    CallEntry, Entry, ReplyEntry, Spy, TranscriptRules, check_entries, check_transcript, entries,
};
use tooltape::{
    Access, Bound, Bounds, Empty, Framing, Limits, Message, Next, Output, Proposal, Recovery, Run,
    RunError, RunLimits, Spec, Talk, ToolError, Toolbox, Turn, TurnStop, Verdict, tool_fn,
};

fn call<'t>(id: &'t str, name: &'t str) -> CallEntry<'t> {
    CallEntry { id: Cow::Borrowed(id), name: Cow::Borrowed(name) }
}

fn answer<'t>(id: &'t str, name: &'t str) -> ReplyEntry<'t> {
    let (id, name) = (Cow::Borrowed(id), Cow::Borrowed(name));
    ReplyEntry { id, name, is_error: false, text: Cow::Borrowed("done") }
}

fn failure<'t>(id: &'t str, text: &'t str) -> ReplyEntry<'t> {
    ReplyEntry { is_error: true, text: Cow::Borrowed(text), ..answer(id, "tool") }
}

fn calls<'t>(calls: &[(&'t str, &'t str)]) -> Entry<'t> {
    let calls = calls.iter().map(|(id, name)| call(id, name)).collect();
    Entry::Model { speaks: false, calls }
}

fn replies<'t>(replies: &[(&'t str, &'t str)]) -> Entry<'t> {
    Entry::Replies(replies.iter().map(|(id, name)| answer(id, name)).collect())
}

const SPEAKS: Entry<'static> = Entry::Model { speaks: true, calls: Vec::new() };

fn common(entries: &[Entry<'_>]) -> Result<(), String> {
    check_entries(entries, &TranscriptRules::COMMON).map_err(|err| err.to_string())
}

#[test]
fn a_transcript_that_every_provider_takes_is_taken() {
    let ids = [("abcdefgh1", "a"), ("abcdefgh2", "b")];
    let transcript = [Entry::User, calls(&ids), replies(&ids), SPEAKS, Entry::User, SPEAKS];
    for rules in TranscriptRules::ALL.iter().chain([&TranscriptRules::COMMON]) {
        assert_eq!(check_entries(&transcript, rules), Ok(()), "{}", rules.provider);
    }
}

#[test]
fn every_broken_rule_is_named_with_its_place() {
    let [a, b, ab, ba] =
        [&[("a", "t")][..], &[("b", "t")], &[("a", "t"), ("b", "t")], &[("b", "t"), ("a", "t")]];
    let nothing = Entry::Model { speaks: false, calls: Vec::new() };
    let broken: [(&[Entry<'_>], &str); 14] = [
        (&[SPEAKS], "0: the user does not begin"),
        (&[replies(a)], "0: the user does not begin"),
        (&[Entry::User, Entry::User], "1: the user speaks twice in a row"),
        (&[Entry::User, SPEAKS, SPEAKS], "2: the model speaks twice in a row"),
        (&[Entry::User, replies(a)], "1: replies follow no turn of the model"),
        (&[Entry::User, SPEAKS, replies(a)], "2: 0 calls have 1 replies"),
        (&[Entry::User, nothing], "1: the turn neither says nor proposes anything"),
        (&[Entry::User, calls(ab)], "2: the transcript ends, and 2 calls have no reply"),
        (&[Entry::User, calls(a), Entry::User], "2: 1 calls of the turn before it have no reply"),
        (&[Entry::User, calls(ab), replies(a)], "2: 2 calls have 1 replies"),
        (&[Entry::User, calls(a), replies(ab)], "2: 1 calls have 2 replies"),
        (&[Entry::User, calls(ab), replies(ba)], "2: reply 0 is to `b`, expected `a`"),
        (&[Entry::User, calls(a), replies(b)], "2: reply 0 is to `b`, expected `a`"),
        (
            &[Entry::User, calls(a), replies(a), replies(a)],
            "3: replies follow no turn of the model",
        ),
    ];
    for (transcript, why) in broken {
        assert_eq!(common(transcript), Err(format!("any provider refuses entry {why}")));
    }
}

#[test]
fn providers_refuse_what_only_they_refuse() {
    let refused_by = |transcript: &[Entry<'_>]| -> Vec<&str> {
        let refusing = TranscriptRules::ALL.iter();
        let refusing = refusing.filter(|rules| check_entries(transcript, rules).is_err());
        refusing.map(|rules| rules.provider).collect()
    };
    let by_id = ["OpenAI Chat", "OpenAI Responses", "Anthropic", "Bedrock", "Mistral"];
    let long = "x".repeat(65);
    let said = |id| [Entry::User, calls(&[(id, "t")]), replies(&[(id, "t")])];
    assert_eq!(refused_by(&said("")), by_id);
    let twice = [("abcdefgh1", "t"), ("abcdefgh1", "t")];
    assert_eq!(refused_by(&[Entry::User, calls(&twice), replies(&twice)]), by_id);
    assert_eq!(refused_by(&said("call_1")), ["Mistral"]);
    assert_eq!(refused_by(&said(&long)), ["Bedrock", "Mistral"]);
    assert_eq!(refused_by(&said("a b")), ["Bedrock", "Mistral"]);
    let renamed = [Entry::User, calls(&[("abcdefgh1", "t")]), replies(&[("abcdefgh1", "u")])];
    assert_eq!(refused_by(&renamed), ["Gemini", "Ollama"]);
    let failed = |text| {
        let reply = ReplyEntry { name: "t".into(), ..failure("abcdefgh1", text) };
        [Entry::User, calls(&[("abcdefgh1", "t")]), Entry::Replies(vec![reply])]
    };
    let flagless = ["OpenAI Chat", "OpenAI Responses", "Gemini", "Mistral", "Ollama"];
    assert_eq!(refused_by(&failed("no such file")), flagless);
    assert_eq!(refused_by(&failed("failed: no such file")), [""; 0]);
}

/// Plays turns of a model through a run, and returns the conversation.
async fn conversation(run: &Run, turns: impl IntoIterator<Item = Turn>) -> Vec<Message> {
    let mut talk = Talk::new("Do it.", 4);
    let mut turns = turns.into_iter();
    let mut next = Next::Model;
    loop {
        next = match next {
            Next::Model => match turns.next() {
                Some(turn) => talk.turn(turn),
                None => break,
            },
            Next::Calls(proposals) => talk.replies(match run.batch(proposals).await {
                Ok(replies) | Err(RunError::Ended { replies, .. }) => replies,
                Err(err) => panic!("{err}"),
            }),
            Next::Stop(_) => break,
        };
    }
    talk.messages().to_vec()
}

fn proposed(count: usize, name: &str, arguments: &str) -> Turn {
    let ids = (0..count).map(|at| format!("call_{at}"));
    Turn::calls(ids.map(|id| Proposal::new(id, name, arguments.to_owned())))
}

/// A run over a spy, a tool that hangs and one that returns much.
fn limited(limits: RunLimits) -> Run {
    let hangs = Spec::new("hangs", "Never ends.").access(Access::Read);
    let hangs =
        hangs.bounds(Bounds { wall: Bound::At(Duration::from_millis(10)), ..Bounds::default() });
    let much = Spec::new("much", "Returns much.").access(Access::Read);
    let too_much = Spec::new("too_much", "Returns more than a result.").access(Access::Read);
    let tools = [
        Spy::new("spy", Access::Read).tool(),
        tool_fn(hangs, async |_: Empty| std::future::pending::<Result<u8, ToolError>>().await),
        tool_fn(much, async |_: Empty| Ok::<_, ToolError>("x".repeat(1_000_000))),
        tool_fn(too_much, async |_: Empty| Output::value(&"x".repeat(70_000_000))),
    ];
    Run::new(&Toolbox::new(tools).unwrap()).limits(limits)
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_limit_leaves_a_transcript_that_providers_take() {
    let limits = |change: fn(&mut RunLimits)| {
        let mut limits = RunLimits::default();
        change(&mut limits);
        limits
    };
    let narrow = |limits: &mut RunLimits| {
        limits.arguments = Limits { bytes: 4, ..Limits::default() };
    };
    let many = r#"{"n":1}"#;
    let cases = [
        ("calls of a batch", limits(|it| it.batch_calls = 2), proposed(5, "spy", many)),
        ("calls of a run", limits(|it| it.run_calls = 1), proposed(3, "spy", many)),
        ("no calls at all", limits(|it| it.run_calls = 0), proposed(3, "spy", many)),
        ("bytes of arguments", limits(narrow), proposed(2, "spy", many)),
        ("wall time", RunLimits::default(), proposed(3, "hangs", "{}")),
        ("bytes shown", RunLimits::default(), proposed(3, "much", "{}")),
        ("bytes of a result", RunLimits::default(), proposed(1, "too_much", "{}")),
        ("room", RunLimits::default(), proposed(2, "spy", many).stopped(TurnStop::Length)),
        ("malformed", RunLimits::default(), proposed(2, "spy", "{")),
        ("unknown", RunLimits::default(), proposed(2, "nobody", "{}")),
    ];
    for (limit, limits, turn) in cases {
        for framing in [Framing::Plain, Framing::Framed] {
            let run = limited(limits).framing(framing);
            let messages = conversation(&run, [turn.clone(), Turn::answer("done")]).await;
            assert_eq!(check_transcript(&messages), Ok(()), "{limit}");
            let replies = messages.iter().filter(|it| matches!(it, Message::Replies(_))).count();
            assert_eq!(replies, 1, "{limit}");
        }
    }
}

#[tokio::test]
async fn what_ends_a_run_leaves_a_transcript_that_providers_take() {
    let fatal = Spy::new("fatal", Access::Read).returning(|_| Err(ToolError::fatal("over")));
    let toolbox = Toolbox::new([fatal.tool(), Spy::new("spy", Access::Write).tool()]).unwrap();
    let three = || {
        let names = ["spy", "fatal", "spy"].into_iter().enumerate();
        Turn::calls(names.map(|(at, name)| Proposal::new(format!("call_{at}"), name, "{}")))
    };
    let allowing = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"));
    assert_eq!(check_transcript(&conversation(&allowing, [three()]).await), Ok(()));
    let denying = Run::new(&toolbox).policy(|_: &_| Verdict::deny("test", "no"));
    assert_eq!(check_transcript(&conversation(&denying, [three()]).await), Ok(()));
    let strict = Run::new(&toolbox).recovery(Recovery::Forbidden);
    assert_eq!(check_transcript(&conversation(&strict, [proposed(2, "spy", "{")]).await), Ok(()));
    let cancelled = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"));
    cancelled.cancel();
    let messages = conversation(&cancelled, [three()]).await;
    assert_eq!(check_transcript(&messages), Ok(()));
    // The checker reads what the model does: without the words, it would refuse.
    let mut entries = entries(&messages);
    if let Some(Entry::Replies(replies)) = entries.last_mut() {
        replies[0].text = Cow::Borrowed("all is well");
    }
    let refused = check_entries(&entries, &TranscriptRules::COMMON).unwrap_err();
    assert_eq!(refused.why, "reply 0 is an error, and its text does not say so");
}

proptest! {
    #[test]
    fn no_change_of_a_valid_transcript_that_matters_is_overlooked(
        turns in prop::collection::vec(1..4_usize, 1..6),
        at in any::<prop::sample::Index>(),
    ) {
        let ids: Vec<Vec<String>> = turns.iter().enumerate()
            .map(|(turn, count)| (0..*count).map(|at| format!("t{turn}c{at}")).collect())
            .collect();
        let pairs: Vec<Vec<(&str, &str)>> = ids.iter()
            .map(|ids| ids.iter().map(|id| (id.as_str(), "t")).collect())
            .collect();
        let mut valid = vec![Entry::User];
        valid.extend(pairs.iter().flat_map(|pairs| [calls(pairs), replies(pairs)]));
        prop_assert_eq!(common(&valid), Ok(()));
        let at = at.index(valid.len());
        let mut without = valid.clone();
        without.remove(at);
        prop_assert!(common(&without).is_err(), "without entry {at}");
        let mut twice = valid.clone();
        twice.insert(at, valid[at].clone());
        prop_assert!(common(&twice).is_err(), "with entry {at} twice");
        if let Entry::Replies(_) = &valid[at] {
            let mut fewer = valid.clone();
            let Entry::Replies(replies) = &mut fewer[at] else { unreachable!() };
            replies.pop();
            prop_assert!(common(&fewer).is_err(), "without the last reply of entry {at}");
        }
    }
}
