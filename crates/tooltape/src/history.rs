//! How a long conversation is shown to a model that cannot read all of it.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use crate::fault::clip;
use crate::model::Message;
use crate::proposal::Proposal;
use crate::reply::{Reply, share};
use crate::spec::History;

/// The bytes of a conversation that a model is shown.
pub const WINDOW_BYTES_DEFAULT: usize = 400_000;
/// The bytes of an old result that its tool lets be cut.
pub const COMPACTED_BYTES_MAX: usize = 1_024;
/// The bytes of an argument's value that stand for an old result.
pub const ARGUMENT_SHOWN_BYTES_MAX: usize = 256;

/// The part of a window that is cleared when it is full: one in so many. Until it is full again
/// nothing that was shown changes, so that a provider's cache of it stays warm.
const CLEARED_PART: usize = 4;

/// How much of a conversation a model is shown. The tape keeps everything.
///
/// What the user said is always shown, and so is the newest exchange; a call is shown with its
/// reply, or neither is. Where the conversation is too long, old results are shortened as their
/// tools [allow](History), oldest first; then the oldest exchanges are left out, but for those with
/// a pinned result; at last all results that are left share the room.
///
/// ```
/// use tooltape::{History, Message, Window};
///
/// let messages = [Message::User("Hello.".into())];
/// assert_eq!(Window::default().show(&messages, |_| History::default()).len(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many bytes, as far as that can be done.
    pub bytes: usize,
}

impl Default for Window {
    fn default() -> Window {
        Window { bytes: WINDOW_BYTES_DEFAULT }
    }
}

impl Window {
    /// The conversation as a model is shown it, given what each tool allows, by its name.
    pub fn show<'m>(
        &self,
        messages: &'m [Message],
        hints: impl Fn(&str) -> History,
    ) -> Cow<'m, [Message]> {
        if messages.iter().map(size).sum::<usize>() <= self.bytes {
            return Cow::Borrowed(messages);
        }
        let mut draft = Draft { messages: Vec::with_capacity(messages.len()), bytes: 0, hints };
        for message in messages {
            draft.bytes += size(message);
            draft.messages.push(message.clone());
            let is_asked = match message {
                Message::User(_) | Message::Replies(_) => true,
                Message::Model(_) => false,
            };
            // What was shown when the model was asked then is shown again.
            if is_asked && draft.bytes > self.bytes {
                let goal = self.bytes - self.bytes / CLEARED_PART;
                draft.shorten(goal);
                draft.leave_out(goal);
                draft.squeeze(self.bytes);
            }
        }
        Cow::Owned(draft.messages)
    }
}

/// A conversation that is being shortened.
struct Draft<H> {
    messages: Vec<Message>,
    bytes: usize,
    hints: H,
}

impl<H: Fn(&str) -> History> Draft<H> {
    /// Shortens old results, as their tools allow, until so many bytes are left.
    fn shorten(&mut self, bytes: usize) {
        let latest = self.latest();
        let exchanges = self.exchanges();
        let Some((_, old)) = exchanges.split_last() else { return };
        for at in old {
            let (proposals, replies) = self.exchange(*at);
            for (place, (proposal, reply)) in proposals.iter().zip(&replies).enumerate() {
                if self.bytes <= bytes {
                    return;
                }
                let hints = (self.hints)(&reply.name);
                let is_latest = match value_of(proposal, hints.dedupe_by.as_deref()) {
                    Some(value) => {
                        latest.get(&(reply.name.to_string(), value)) <= Some(&(*at, place))
                    }
                    None => true,
                };
                if let Some(short) = shortened(proposal, reply, &hints, is_latest) {
                    self.replace(*at, place, short);
                }
            }
        }
    }

    /// Where the latest good result is, by its tool and what tells its results apart.
    fn latest(&self) -> HashMap<(String, String), (usize, usize)> {
        let mut latest = HashMap::new();
        for at in self.exchanges() {
            let (proposals, replies) = self.exchange(at);
            let good = proposals.iter().zip(&replies).enumerate();
            for (place, (proposal, reply)) in good.filter(|(_, (_, reply))| !reply.is_error) {
                let hints = (self.hints)(&reply.name);
                if let Some(value) = value_of(proposal, hints.dedupe_by.as_deref()) {
                    latest.insert((reply.name.to_string(), value), (at, place));
                }
            }
        }
        latest
    }

    /// Leaves out the oldest exchanges until so many bytes are left.
    fn leave_out(&mut self, bytes: usize) {
        let exchanges = self.exchanges();
        let Some((_, old)) = exchanges.split_last() else { return };
        let mut left_out = Vec::new();
        for at in old {
            if self.bytes <= bytes {
                break;
            }
            let (_, replies) = self.exchange(*at);
            if !replies.iter().any(|reply| (self.hints)(&reply.name).pin) {
                self.bytes -= size(&self.messages[*at]) + size(&self.messages[*at + 1]);
                left_out.extend([*at, *at + 1]);
            }
        }
        let mut places = 0..;
        self.messages
            .retain(|_| places.next().is_none_or(|at| left_out.binary_search(&at).is_err()));
    }

    /// Lets all results share the room that is left, but for those that are pinned.
    fn squeeze(&mut self, bytes: usize) {
        if self.bytes <= bytes {
            return;
        }
        let mut loose = Vec::new();
        for at in self.exchanges() {
            let (_, replies) = self.exchange(at);
            let replies = replies.into_iter().enumerate();
            let unpinned = replies.filter(|(_, reply)| !(self.hints)(&reply.name).pin);
            loose.extend(unpinned.map(|(place, reply)| (at, place, reply)));
        }
        let sizes = loose.iter().map(|(_, _, reply)| reply.bytes_shown());
        let others = self.bytes - sizes.clone().sum::<usize>();
        let Some(share) = share(sizes, bytes.saturating_sub(others)) else { return };
        for (at, place, reply) in loose {
            if reply.bytes_shown() > share {
                self.replace(at, place, reply.compacted(share));
            }
        }
    }

    /// Where the model proposed calls that were answered.
    fn exchanges(&self) -> Vec<usize> {
        let is_exchange = |pair: &[Message]| match pair {
            [Message::Model(turn), Message::Replies(_)] => !turn.proposals.is_empty(),
            [..] => false,
        };
        let pairs = self.messages.windows(2).enumerate();
        pairs.filter(|(_, pair)| is_exchange(pair)).map(|(at, _)| at).collect()
    }

    fn exchange(&self, at: usize) -> (Vec<Proposal>, Vec<Reply>) {
        let [Message::Model(turn), Message::Replies(replies)] = &self.messages[at..at + 2] else {
            return (Vec::new(), Vec::new());
        };
        (turn.proposals.clone(), replies.clone())
    }

    fn replace(&mut self, exchange: usize, place: usize, short: Reply) {
        if let Message::Replies(replies) = &mut self.messages[exchange + 1] {
            self.bytes -= replies[place].bytes_shown();
            self.bytes += short.bytes_shown();
            replies[place] = short;
        }
    }
}

/// An old result as its tool lets it be shortened, if that makes it any shorter.
fn shortened(
    proposal: &Proposal,
    reply: &Reply,
    hints: &History,
    is_latest: bool,
) -> Option<Reply> {
    if hints.pin {
        return None;
    }
    let named = |by: &Option<String>| {
        let by = by.as_deref()?;
        let value = clip(value_of(proposal, Some(by))?, ARGUMENT_SHOWN_BYTES_MAX);
        Some(format!("{by}: {value}"))
    };
    let replaced = named(&hints.dedupe_by).filter(|_| !is_latest);
    let replaced = replaced.map(|named| format!("a later result replaces this one; {named}"));
    let short = match replaced.or_else(|| named(&hints.summarise_by)) {
        Some(summary) => reply.summed_up(summary),
        None if hints.compact => reply.compacted(COMPACTED_BYTES_MAX),
        None => return None,
    };
    (short.bytes_shown() < reply.bytes_shown()).then_some(short)
}

/// The value of an argument, as text.
fn value_of(proposal: &Proposal, argument: Option<&str>) -> Option<String> {
    let argument = argument?;
    let arguments: Value = serde_json::from_str(proposal.text()).ok()?;
    Some(match arguments.get(argument)? {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    })
}

/// How many bytes a model reads for a message.
pub(crate) fn size(message: &Message) -> usize {
    match message {
        Message::User(text) => text.len(),
        Message::Model(turn) => {
            let proposals = turn.proposals.iter();
            let proposed = proposals.map(|it| it.id.len() + it.name.len() + it.text().len());
            let kept = turn.verbatim.iter().flat_map(|it| it.opaque()).map(str::len);
            let said = turn.text.as_ref().map_or(0, |text| text.len());
            said + proposed.sum::<usize>() + kept.sum::<usize>()
        }
        Message::Replies(replies) => {
            replies.iter().map(|reply| reply.id.len() + reply.bytes_shown()).sum()
        }
    }
}
