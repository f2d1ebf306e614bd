//! A conversation in the form that all APIs have in common.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::Api;
use super::encode::{EncodeError, Encoder, raw};
use super::ids::Ids;
use crate::id::NAME_BYTES_MAX;
use crate::model::{Message, Request, Turn};
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::toolbox::Offer;
use crate::verbatim::{Part, Verbatim};

/// What stands for what a user said who said nothing, which most APIs refuse.
const NOTHING: &str = "(nothing)";
/// The name of a tool that has none, which all APIs refuse.
const NAMELESS: &str = "unknown";
/// The key under which arguments are shown that are no JSON object, where an API takes no other.
const UNPARSED: &str = "_unparsed";

/// An entry of a conversation.
pub(super) enum Entry<'r> {
    /// What the user said, all of it.
    User(Cow<'r, str>),
    Model(Spoken<'r>),
    Replies(Vec<Answered<'r>>),
}

/// A turn of the model that says or proposes something.
pub(super) struct Spoken<'r> {
    text: Cow<'r, str>,
    calls: Vec<Called<'r>>,
    /// What was said and proposed as its model wrote it, if this is its model.
    parts: Option<&'r [Part]>,
    /// Whether the user has said nothing since.
    pub(super) is_current: bool,
}

/// A call.
pub(super) struct Called<'r> {
    /// An id that the API accepts.
    pub(super) id: Arc<str>,
    /// Whether its provider gave it one.
    pub(super) had_id: bool,
    /// The name under which the API knows the tool.
    pub(super) name: Cow<'r, str>,
    /// The arguments as the model wrote them.
    pub(super) arguments: &'r str,
}

/// The reply to a call.
pub(super) struct Answered<'r> {
    pub(super) call: Called<'r>,
    pub(super) reply: &'r Reply,
}

/// A piece of a turn.
pub(super) enum Piece<'p> {
    Text(&'p str),
    /// A call, with what its provider wants to see beside it.
    Call(&'p Called<'p>, Option<&'p str>),
    Opaque(&'p str),
}

impl Called<'_> {
    /// The arguments as a JSON object, whatever they are.
    pub(super) fn object(&self) -> Box<RawValue> {
        let object = Some(self.arguments.trim()).filter(|text| text.starts_with('{'));
        let object = object.and_then(|text| RawValue::from_string(text.to_owned()).ok());
        object.unwrap_or_else(|| raw(&serde_json::json!({ UNPARSED: self.arguments })))
    }
}

impl<'r> Spoken<'r> {
    /// The pieces, in their order. None is a blank text.
    pub(super) fn pieces(&self) -> Vec<Piece<'_>> {
        let (mut rest, mut calls) = (&*self.text, self.calls.iter());
        let mut pieces = Vec::new();
        for part in self.parts.unwrap_or_default() {
            match part {
                Part::Text(bytes) => {
                    let (text, more) = rest.split_at(*bytes);
                    rest = more;
                    pieces.push(Piece::Text(text));
                }
                Part::Call(beside) => {
                    pieces.extend(calls.next().map(|call| Piece::Call(call, beside.as_deref())));
                }
                Part::Opaque(json) => pieces.push(Piece::Opaque(json)),
            }
        }
        pieces.push(Piece::Text(rest));
        pieces.extend(calls.map(|call| Piece::Call(call, None)));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.trim().is_empty()));
        pieces
    }

    fn merge(&mut self, other: Spoken<'r>) {
        self.parts = None;
        self.calls.extend(other.calls);
        let texts = [&*self.text, &*other.text].map(str::trim);
        self.text = texts.join("\n\n").trim().to_owned().into();
    }
}

/// The entries of what a model is asked: users and models take turns, and calls are answered.
pub(super) fn entries<'r>(
    encoder: &Encoder,
    request: &Request<'r>,
) -> Result<Vec<Entry<'r>>, EncodeError> {
    let mut ids = Ids::new(encoder.api());
    let mut entries: Vec<Entry<'r>> = Vec::new();
    let mut messages = request.messages.iter().enumerate().peekable();
    let is_user = |message: &Message| matches!(message, Message::User(_));
    let last_user = request.messages.iter().rposition(is_user);
    while let Some((at, message)) = messages.next() {
        match message {
            Message::User(text) => match entries.last_mut() {
                Some(Entry::User(before)) => *before = format!("{before}\n\n{text}").into(),
                Some(Entry::Model(_) | Entry::Replies(_)) | None => {
                    entries.push(Entry::User(Cow::Borrowed(text)));
                }
            },
            Message::Model(turn) => {
                let mut spoken = spoken(encoder, request.offer, turn, &mut ids);
                spoken.is_current = last_user.is_none_or(|user| user < at);
                let next = messages.next_if(|(_, next)| matches!(next, Message::Replies(_)));
                let replies = match next {
                    Some((_, Message::Replies(replies))) => &**replies,
                    Some((_, Message::User(_) | Message::Model(_))) | None => &[],
                };
                if replies.len() != spoken.calls.len() {
                    let (calls, replies) = (spoken.calls.len(), replies.len());
                    return Err(EncodeError::Unanswered { at, calls, replies });
                }
                let answered = spoken.calls.iter().zip(replies);
                let answered = answered.map(|(call, reply)| Answered { call: call.again(), reply });
                let answered: Vec<_> = answered.collect();
                push(&mut entries, spoken);
                if !answered.is_empty() {
                    entries.push(Entry::Replies(answered));
                }
            }
            Message::Replies(replies) => {
                let replies = replies.len();
                return Err(EncodeError::Unanswered { at, calls: 0, replies });
            }
        }
    }
    for entry in &mut entries {
        if let Entry::User(text) = entry
            && text.trim().is_empty()
        {
            *text = Cow::Borrowed(NOTHING);
        }
    }
    match entries.first() {
        Some(Entry::User(_)) => Ok(entries),
        Some(Entry::Model(_) | Entry::Replies(_)) | None => Err(EncodeError::NobodyAsks),
    }
}

/// Adds a turn, unless it says nothing at all.
fn push<'r>(entries: &mut Vec<Entry<'r>>, spoken: Spoken<'r>) {
    if spoken.text.trim().is_empty() && spoken.calls.is_empty() {
        return;
    }
    match entries.last_mut() {
        Some(Entry::Model(before)) => before.merge(spoken),
        Some(Entry::User(_) | Entry::Replies(_)) | None => entries.push(Entry::Model(spoken)),
    }
}

impl<'r> Called<'r> {
    fn again(&self) -> Called<'r> {
        let Called { id, had_id, name, arguments } = self;
        Called { id: id.clone(), had_id: *had_id, name: name.clone(), arguments }
    }
}

fn spoken<'r>(encoder: &Encoder, offer: &'r Offer, turn: &'r Turn, ids: &mut Ids) -> Spoken<'r> {
    let calls = turn.proposals.iter().map(|proposal| Called {
        id: ids.next(&proposal.id),
        had_id: !proposal.id.is_empty(),
        name: named(encoder.api(), offer, proposal),
        arguments: proposal.text(),
    });
    let text = turn.text.as_deref().unwrap_or_default();
    let own = turn.verbatim.as_deref();
    let own = own.filter(|own| own.is_of(encoder.api().name(), encoder.model()));
    let own = own.filter(|own| own.fits(Some(text), turn.proposals.len()));
    let parts = own.map(Verbatim::parts);
    Spoken { text: text.into(), calls: calls.collect(), parts, is_current: false }
}

/// The name under which an API knows the tool of a proposal, or one that it accepts.
pub(super) fn named<'r>(api: Api, offer: &'r Offer, proposal: &'r Proposal) -> Cow<'r, str> {
    if let Some(tool) = offer.find(&proposal.name) {
        return offer.name_for(api.name(), tool.id().name().as_str()).into();
    }
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_allowed = |c: char| is_letter(c) || c.is_ascii_digit() || c == '-';
    let name = &*proposal.name;
    if name.len() <= NAME_BYTES_MAX && name.chars().all(is_allowed) && name.starts_with(is_letter) {
        return name.into();
    }
    let chars = name.chars().map(|c| if is_allowed(c) { c } else { '_' });
    let name: String = chars.skip_while(|c| !is_letter(*c)).take(NAME_BYTES_MAX).collect();
    if name.is_empty() { NAMELESS.into() } else { name.into() }
}
