//! What every provider asks of a transcript.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::model::Message;

/// One entry of a transcript, as far as a provider checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'t> {
    /// The user said something.
    User,
    /// The model said something, or proposed calls, or both.
    Model {
        /// Whether it said something.
        speaks: bool,
        /// What it proposed.
        calls: Vec<CallEntry<'t>>,
    },
    /// The calls were answered.
    Replies(Vec<ReplyEntry<'t>>),
}

/// A call in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEntry<'t> {
    /// Its id.
    pub id: Cow<'t, str>,
    /// The tool's name.
    pub name: Cow<'t, str>,
}

/// A reply in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyEntry<'t> {
    /// The id of its call.
    pub id: Cow<'t, str>,
    /// The name of its call's tool.
    pub name: Cow<'t, str>,
    /// Whether it is marked as an error.
    pub is_error: bool,
    /// What it says.
    pub text: Cow<'t, str>,
}

/// What a provider asks beyond what all of them ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptRules {
    /// The provider, as messages name it.
    pub provider: &'static str,
    /// What ids must look like.
    pub ids: IdRule,
    /// Whether a reply must name its tool as the call did.
    pub names: bool,
    /// Whether a reply has an error flag. Where it has none, its text must say that it failed.
    pub flags_errors: bool,
}

/// What the ids of calls must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdRule {
    /// Like anything: calls and replies are matched by their order.
    Any,
    /// Present, and one for each call of the transcript, with these lengths and characters.
    Distinct {
        /// The fewest characters.
        least: usize,
        /// The most characters.
        most: usize,
        /// The characters that are allowed beside letters and digits; `None` allows all.
        besides: Option<&'static str>,
    },
}

impl TranscriptRules {
    /// What all providers ask. Ids are the provider's own, so a dialect must make them fit.
    pub const COMMON: TranscriptRules = TranscriptRules {
        provider: "any provider",
        ids: IdRule::Any,
        names: false,
        flags_errors: false,
    };

    /// Each provider, with its rules.
    pub const ALL: [TranscriptRules; 7] = [
        TranscriptRules::by_id("OpenAI Chat", usize::MAX, None),
        TranscriptRules::by_id("OpenAI Responses", usize::MAX, None),
        TranscriptRules {
            flags_errors: true,
            ..TranscriptRules::by_id("Anthropic", usize::MAX, None)
        },
        TranscriptRules { provider: "Gemini", names: true, ..TranscriptRules::COMMON },
        TranscriptRules {
            flags_errors: true,
            ..TranscriptRules::by_id("Bedrock", 64, Some("_.:-"))
        },
        TranscriptRules {
            ids: IdRule::Distinct { least: 9, most: 9, besides: Some("") },
            ..TranscriptRules::by_id("Mistral", 9, Some(""))
        },
        TranscriptRules { provider: "Ollama", names: true, ..TranscriptRules::COMMON },
    ];

    const fn by_id(
        provider: &'static str,
        most: usize,
        besides: Option<&'static str>,
    ) -> TranscriptRules {
        let ids = IdRule::Distinct { least: 1, most, besides };
        TranscriptRules { provider, ids, names: false, flags_errors: false }
    }
}

/// A rule of providers that a transcript breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{provider} refuses entry {at}: {why}")]
pub struct TranscriptError {
    /// Who refuses it.
    pub provider: &'static str,
    /// The entry, counted from 0.
    pub at: usize,
    /// What is wrong with it.
    pub why: String,
}

/// The entries of a conversation.
pub fn entries(messages: &[Message]) -> Vec<Entry<'_>> {
    let entries = messages.iter().map(|message| match message {
        Message::User(_) => Entry::User,
        Message::Model(turn) => {
            let calls = turn.proposals.iter().map(|proposal| CallEntry {
                id: Cow::Borrowed(&proposal.id),
                name: Cow::Borrowed(&proposal.name),
            });
            let speaks = turn.text.as_ref().is_some_and(|text| !text.is_empty());
            Entry::Model { speaks, calls: calls.collect() }
        }
        Message::Replies(replies) => {
            let replies = replies.iter().map(|reply| ReplyEntry {
                id: Cow::Borrowed(&reply.id),
                name: Cow::Borrowed(&reply.name),
                is_error: reply.is_error,
                text: Cow::Owned(reply.text()),
            });
            Entry::Replies(replies.collect())
        }
    });
    entries.collect()
}

/// Checks a conversation by what all providers ask.
///
/// The user begins, and nobody but a model is followed by replies. Every call is answered exactly
/// once, in the next entry and in the order of the calls, with its id. A turn says something, and
/// an error says so in its text.
pub fn check_transcript(messages: &[Message]) -> Result<(), TranscriptError> {
    check_entries(&entries(messages), &TranscriptRules::COMMON)
}

/// Checks a transcript by the rules of one provider. For the codecs of dialects.
pub fn check_entries(
    entries: &[Entry<'_>],
    rules: &TranscriptRules,
) -> Result<(), TranscriptError> {
    let mut ids = HashSet::new();
    let mut unanswered: &[CallEntry<'_>] = &[];
    let mut before = None;
    for (at, entry) in entries.iter().enumerate() {
        let refused = |why: String| TranscriptError { provider: rules.provider, at, why };
        if let (false, Entry::User | Entry::Model { .. }) = (unanswered.is_empty(), entry) {
            let why = format!("{} calls of the turn before it have no reply", unanswered.len());
            return Err(refused(why));
        }
        check_turns(before, entry).map_err(refused)?;
        match entry {
            Entry::User => {}
            Entry::Model { calls, .. } => {
                calls
                    .iter()
                    .try_for_each(|call| check_id(rules, call, &mut ids).map_err(refused))?;
                unanswered = calls;
            }
            Entry::Replies(replies) => {
                check_replies(rules, unanswered, replies).map_err(refused)?;
                unanswered = &[];
            }
        }
        before = Some(entry);
    }
    match unanswered.len() {
        0 => Ok(()),
        calls => Err(TranscriptError {
            provider: rules.provider,
            at: entries.len(),
            why: format!("the transcript ends, and {calls} calls have no reply"),
        }),
    }
}

/// Who may follow whom.
fn check_turns(before: Option<&Entry<'_>>, entry: &Entry<'_>) -> Result<(), String> {
    let broken = match (before, entry) {
        (None, Entry::User) => None,
        (None, Entry::Model { .. } | Entry::Replies(_)) => Some("the user does not begin"),
        (Some(Entry::User), Entry::User) => Some("the user speaks twice in a row"),
        (Some(Entry::Model { .. }), Entry::Model { .. }) => Some("the model speaks twice in a row"),
        (Some(Entry::User | Entry::Replies(_)), Entry::Replies(_)) => {
            Some("replies follow no turn of the model")
        }
        (_, Entry::Model { speaks: false, calls }) if calls.is_empty() => {
            Some("the turn neither says nor proposes anything")
        }
        (Some(_), Entry::User | Entry::Model { .. } | Entry::Replies(_)) => None,
    };
    broken.map_or(Ok(()), |why| Err(why.to_owned()))
}

fn check_id<'t>(
    rules: &TranscriptRules,
    call: &'t CallEntry<'_>,
    taken: &mut HashSet<&'t str>,
) -> Result<(), String> {
    let IdRule::Distinct { least, most, besides } = rules.ids else { return Ok(()) };
    let id = &*call.id;
    let is_allowed =
        |c: char| besides.is_none_or(|besides| c.is_ascii_alphanumeric() || besides.contains(c));
    if !(least..=most).contains(&id.chars().count()) || !id.chars().all(is_allowed) {
        return Err(format!("the id `{id}` is none that it accepts"));
    }
    match taken.insert(id) {
        true => Ok(()),
        false => Err(format!("the id `{id}` was used before")),
    }
}

fn check_replies(
    rules: &TranscriptRules,
    calls: &[CallEntry<'_>],
    replies: &[ReplyEntry<'_>],
) -> Result<(), String> {
    if calls.len() != replies.len() {
        return Err(format!("{} calls have {} replies", calls.len(), replies.len()));
    }
    for (at, (call, reply)) in calls.iter().zip(replies).enumerate() {
        if call.id != reply.id {
            return Err(format!("reply {at} is to `{}`, expected `{}`", reply.id, call.id));
        }
        if rules.names && call.name != reply.name {
            return Err(format!("reply {at} is of `{}`, expected `{}`", reply.name, call.name));
        }
        if reply.is_error && !rules.flags_errors && !says_so(&reply.text) {
            return Err(format!("reply {at} is an error, and its text does not say so"));
        }
    }
    Ok(())
}

/// Whether a text says that something went wrong, in the words of a fault.
fn says_so(text: &str) -> bool {
    // In a frame, the line above says it too.
    let said = text.split_once('\n').filter(|(line, _)| line.starts_with("[tooltape "));
    let words = ["not executed", "executed", "unknown", "failed", "error"];
    let text = said.map_or(text, |(_, text)| text);
    words.iter().any(|word| text.starts_with(word))
}
