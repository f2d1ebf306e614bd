//! Mends a conversation that took place elsewhere, so that every provider takes it.

use std::sync::Arc;

use crate::model::{Message, Turn};
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::run::Run;
use crate::tape::{ProposalEvent, Recalled, RecalledReply};
use crate::toolbox::Offer;

/// What stands for what was said before the conversation that is left.
const BEFORE: &str = "[tooltape] what was said before this is not known";
/// What stands for the reply of a call of which there is none.
const UNANSWERED: &str =
    "unknown: what became of this call is not known; look before you do it again";

/// Mends a conversation in both directions: a call without a reply gets one that says so, and a
/// reply without its call is left out. The user begins, nobody speaks twice in a row, and ids stay
/// as they are.
///
/// What needs no mending stays as it is, so that mending twice is mending once.
///
/// ```
/// use tooltape::{Message, Proposal, Turn, mend};
///
/// let call = Turn::calls([Proposal::new("c1", "pay", "{}")]);
/// let mended = mend(vec![Message::User("Pay.".into()), Message::Model(call)]);
/// let Some(Message::Replies(replies)) = mended.last() else { panic!("there is a reply now") };
/// assert!(replies[0].text().starts_with("unknown"));
/// ```
pub fn mend(messages: Vec<Message>) -> Vec<Message> {
    let mut mended: Vec<Message> = Vec::with_capacity(messages.len());
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::User(text) => match mended.last_mut() {
                Some(Message::User(before)) => *before = format!("{before}\n\n{text}").into(),
                Some(Message::Model(_) | Message::Replies(_)) | None => {
                    mended.push(Message::User(text));
                }
            },
            Message::Model(turn) => {
                let mut replies = Vec::new();
                while let Some(Message::Replies(more)) =
                    messages.next_if(|next| matches!(next, Message::Replies(_)))
                {
                    replies.extend(more);
                }
                take_turn(&mut mended, turn, replies);
            }
            // Its call is not known.
            Message::Replies(_) => {}
        }
    }
    mended
}

/// Puts a turn into the conversation, with one reply for each of its calls.
fn take_turn(mended: &mut Vec<Message>, mut turn: Turn, mut replies: Vec<Reply>) {
    turn.text = turn.text.filter(|text| !text.is_empty());
    if turn.text.is_none() && turn.proposals.is_empty() {
        return;
    }
    if mended.is_empty() {
        mended.push(Message::User(BEFORE.into()));
    }
    if let Some(Message::Model(_)) = mended.last()
        && let Some(Message::Model(before)) = mended.pop()
    {
        let both = before.text.iter().chain(&turn.text).map(|text| &**text).collect::<Vec<_>>();
        turn.text = Some(both.join("\n\n").into());
        turn.verbatim = None;
    }
    let answered = turn.proposals.iter().map(|proposal| {
        let at = replies.iter().position(|reply| reply.id == proposal.id);
        at.map_or_else(|| unanswered(proposal), |at| replies.remove(at))
    });
    let answered: Vec<Reply> = answered.collect();
    mended.push(Message::Model(turn));
    if !answered.is_empty() {
        mended.push(Message::Replies(answered));
    }
}

fn unanswered(proposal: &Proposal) -> Reply {
    Reply::recalled(proposal.id.clone(), proposal.name.clone(), UNANSWERED.into(), true)
}

/// What takes out secrets.
pub(super) struct Discreet<'a> {
    pub(super) run: &'a Run,
    pub(super) offer: &'a Offer,
}

/// A conversation as the tape may keep it.
pub(super) fn recalled(messages: &[Message], discreet: &Discreet<'_>) -> Arc<[Recalled]> {
    let Discreet { run, offer } = discreet;
    let text = |text: Arc<str>| run.discreet_text(text);
    let recalled = messages.iter().map(|message| match message {
        Message::User(said) => Recalled::User { text: text(said.clone()) },
        Message::Model(turn) => {
            let proposals = turn.proposals.iter().cloned().map(|it| run.discreet(offer, it));
            Recalled::Model {
                text: turn.text.clone().map(text),
                proposals: proposals.map(|it| ProposalEvent::new(&it)).collect(),
            }
        }
        Message::Replies(replies) => {
            let replies = replies.iter().map(|reply| RecalledReply {
                id: reply.id.clone(),
                name: reply.name.clone(),
                text: text(reply.text().into()),
                is_error: reply.is_error,
            });
            Recalled::Replies { replies: replies.collect() }
        }
    });
    recalled.collect()
}

/// A conversation from what the tape keeps of it.
pub(crate) fn restored(recalled: &[Recalled]) -> Vec<Message> {
    let messages = recalled.iter().map(|it| match it {
        Recalled::User { text } => Message::User(text.clone()),
        Recalled::Model { text, proposals } => {
            let mut turn = Turn::calls(proposals.iter().map(ProposalEvent::proposal));
            turn.text = text.clone();
            Message::Model(turn)
        }
        Recalled::Replies { replies } => {
            let replies = replies.iter().map(|reply| {
                let RecalledReply { id, name, text, is_error } = reply.clone();
                Reply::recalled(id, name, text, is_error)
            });
            Message::Replies(replies.collect())
        }
    });
    messages.collect()
}
