//! The loop without I/O: turns and replies in; calls, or the end, out.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::history::size;
use crate::model::{Message, Turn, TurnStop, Usage};
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::spec::Vote;

/// A conversation, and what must happen next in it.
///
/// It does no I/O, so replay and simulation use the same code as the live loop.
///
/// ```
/// use tooltape::{Next, Talk, Turn};
///
/// let mut talk = Talk::new("Say hello.", 8);
/// let Next::Stop(answered) = talk.turn(Turn::answer("hello")) else { panic!("it answered") };
/// assert_eq!((answered.text.as_deref(), answered.turns), (Some("hello"), 1));
/// ```
pub struct Talk {
    messages: Vec<Message>,
    /// The bytes of all messages.
    bytes: usize,
    turns: u32,
    turns_max: u32,
    /// How many turns were taken when the user asked last.
    asked_after: u32,
    calls: u64,
    errors: u64,
    usage: Usage,
    /// How it ends once the proposals of a turn that did not finish are answered.
    ending: Option<(Option<Arc<str>>, Stopped)>,
}

/// What must happen next.
#[derive(Debug)]
pub enum Next {
    /// The model takes a turn.
    Model,
    /// These proposals are answered.
    Calls(Vec<Proposal>),
    /// It is over.
    Stop(Answered),
}

/// How a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Answered {
    /// What the model said last.
    #[serde(rename = "answer")]
    pub text: Option<Arc<str>>,
    /// Why it ended.
    pub stop: Stopped,
    /// How many turns the model took.
    pub turns: u32,
    /// How many calls it proposed.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// What it cost.
    pub usage: Usage,
    /// The answer as a JSON value, where one of a schema was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What the turns cost, in millionths, where the [price](crate::Price) is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

/// Why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The model answered.
    Answer,
    /// The tools voted to stop.
    Vote,
    /// The model may take no more turns.
    Turns,
    /// The model ran out of room.
    Length,
    /// The model refused.
    Refused,
    /// The model was cut off.
    Cut,
    /// The model proposed more calls than it may.
    Calls,
    /// The model read and wrote more than it may.
    Tokens,
    /// The time is up.
    Time,
    /// The turns cost more than they may.
    Cost,
    /// What the model said had to be mended too often.
    Repairs,
    /// The model got nowhere, though it was told.
    Stalled,
    /// Somebody interrupted the turn, and said nothing.
    Interrupted,
    /// Somebody cancelled the run.
    Cancelled,
    /// Somebody must answer whether a call may run. It goes on where it is resumed.
    Paused,
}

impl Stopped {
    /// The word on the tape.
    pub fn word(self) -> &'static str {
        match self {
            Stopped::Answer => "answer",
            Stopped::Vote => "vote",
            Stopped::Turns => "turns",
            Stopped::Length => "length",
            Stopped::Refused => "refused",
            Stopped::Cut => "cut",
            Stopped::Calls => "calls",
            Stopped::Tokens => "tokens",
            Stopped::Time => "time",
            Stopped::Cost => "cost",
            Stopped::Repairs => "repairs",
            Stopped::Stalled => "stalled",
            Stopped::Interrupted => "interrupted",
            Stopped::Cancelled => "cancelled",
            Stopped::Paused => "paused",
        }
    }

    /// The status of a run that ended so.
    pub fn status(self) -> &'static str {
        match self {
            Stopped::Answer | Stopped::Vote => "ended",
            Stopped::Turns
            | Stopped::Length
            | Stopped::Refused
            | Stopped::Cut
            | Stopped::Calls
            | Stopped::Tokens
            | Stopped::Time
            | Stopped::Cost
            | Stopped::Repairs
            | Stopped::Stalled => "failed",
            Stopped::Cancelled | Stopped::Interrupted => "cancelled",
            Stopped::Paused => "paused",
        }
    }
}

impl Talk {
    /// A conversation that starts with this question.
    pub fn new(question: impl Into<Arc<str>>, turns_max: u32) -> Talk {
        let messages = vec![Message::User(question.into())];
        let (bytes, usage) = (messages.iter().map(size).sum(), Usage::default());
        Talk {
            messages,
            bytes,
            turns: 0,
            turns_max,
            asked_after: 0,
            calls: 0,
            errors: 0,
            usage,
            ending: None,
        }
    }

    /// A conversation that goes on from these messages, which must be a valid transcript.
    pub(crate) fn after(messages: Vec<Message>, turns_max: u32) -> Talk {
        let mut talk = Talk::new("", turns_max);
        talk.bytes = messages.iter().map(size).sum();
        talk.messages = messages;
        talk
    }

    /// The user asks something else, for which the model may take as many turns as before.
    pub fn ask(&mut self, question: impl Into<Arc<str>>) -> Next {
        self.asked_after = self.turns;
        self.say(question);
        self.begin()
    }

    /// Somebody says something to the model while it is at work.
    pub fn say(&mut self, text: impl Into<Arc<str>>) {
        let text = text.into();
        // No provider lets a user speak twice in a row.
        match self.messages.pop() {
            Some(Message::User(before)) => {
                self.bytes -= before.len();
                self.push(Message::User(format!("{before}\n\n{text}").into()));
            }
            Some(last) => {
                self.messages.push(last);
                self.push(Message::User(text));
            }
            None => self.push(Message::User(text)),
        }
    }

    /// What must happen first.
    pub fn begin(&self) -> Next {
        match self.may_go_on() {
            true => Next::Model,
            false => Next::Stop(self.answered(None, Stopped::Turns)),
        }
    }

    /// Whether the model may take another turn for what it was asked.
    pub(super) fn may_go_on(&self) -> bool {
        self.turns - self.asked_after < self.turns_max
    }

    /// Everything said so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The bytes of everything said so far, counted as it was said.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn push(&mut self, message: Message) {
        self.bytes += size(&message);
        self.messages.push(message);
    }

    /// How many calls were answered.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// How many turns the model has taken.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// The model took a turn.
    pub fn turn(&mut self, turn: Turn) -> Next {
        self.turns += 1;
        self.usage.add(turn.usage);
        let (text, proposals) = (turn.text.clone(), turn.proposals.clone());
        let stopped = match turn.stop {
            TurnStop::Done => None,
            TurnStop::Length => Some(Stopped::Length),
            TurnStop::Refused => Some(Stopped::Refused),
            TurnStop::Cut => Some(Stopped::Cut),
        };
        // No provider takes a turn that neither says nor proposes anything.
        if text.as_ref().is_some_and(|text| !text.is_empty()) || !proposals.is_empty() {
            self.push(Message::Model(turn));
        }
        match (stopped, proposals.is_empty()) {
            (None, false) => Next::Calls(proposals),
            (None, true) => Next::Stop(self.answered(text, Stopped::Answer)),
            (Some(stopped), true) => Next::Stop(self.answered(text, stopped)),
            (Some(stopped), false) => {
                // They may be cut off too, so none is executed; each still gets its reply.
                self.ending = Some((text, stopped));
                Next::Calls(proposals.iter().map(unfinished).collect())
            }
        }
    }

    /// The model's proposals were answered.
    pub fn replies(&mut self, replies: Vec<Reply>) -> Next {
        self.calls += replies.len() as u64;
        self.errors += replies.iter().filter(|reply| reply.is_error).count() as u64;
        let stops = votes_to_stop(&replies);
        self.push(Message::Replies(replies));
        if let Some((text, stopped)) = self.ending.take() {
            Next::Stop(self.answered(text, stopped))
        } else if stops {
            Next::Stop(self.answered(None, Stopped::Vote))
        } else if !self.may_go_on() {
            Next::Stop(self.answered(None, Stopped::Turns))
        } else {
            Next::Model
        }
    }

    /// Somebody cancelled the run.
    pub fn cancelled(&self) -> Answered {
        self.answered(None, Stopped::Cancelled)
    }

    /// Somebody must answer whether a call may run.
    pub(crate) fn paused(&self) -> Answered {
        self.answered(None, Stopped::Paused)
    }

    /// What it came to so far.
    pub(super) fn answered(&self, text: Option<Arc<str>>, stop: Stopped) -> Answered {
        let Talk { turns, calls, errors, usage, .. } = *self;
        Answered { text, stop, turns, calls, errors, usage, value: None, cost: None }
    }
}

/// A proposal of a turn that did not finish: nobody knows what it would have been.
fn unfinished(proposal: &Proposal) -> Proposal {
    let Proposal { id, name, .. } = proposal.clone();
    Proposal::unparsed(id, name, proposal.text().clone(), "the turn ended before it was done")
}

/// A batch stops the run when some counting call votes for it and no counting call does not.
/// What failed, was denied or was never known counts as a no.
fn votes_to_stop(replies: &[Reply]) -> bool {
    let mut counting = replies.iter().filter(|reply| reply.vote == Vote::Counting).peekable();
    counting.peek().is_some() && counting.all(|reply| reply.stop && !reply.is_error)
}
