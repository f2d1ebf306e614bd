//! What a model is asked for its next turn, and what it says while it takes it.

use std::fmt;

use serde_json::Value;

use super::Message;
use crate::toolbox::Offer;

/// What a model is asked for one turn.
///
/// ```
/// use tooltape::{Choice, Message, Request, Run, Toolbox, builtin};
///
/// let offer = Run::new(&Toolbox::new(builtin::tools()).unwrap()).offer_all();
/// let messages = [Message::User("Hash nothing.".into())];
/// let request = Request::new(&messages, &offer).choosing(Choice::Required);
/// assert_eq!(request.messages.len(), 1);
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The conversation so far, as the model is shown it.
    pub messages: &'a [Message],
    /// The tools that it may propose calls of, in their stable order.
    pub offer: &'a Offer,
    /// What holds for the whole conversation.
    pub instructions: Option<&'a str>,
    /// Whether it must propose a call.
    pub choice: Choice<'a>,
    /// The JSON Schema of an answer, where it must be a JSON value.
    pub answer: Option<&'a Value>,
    /// The tokens that it may write.
    pub output_tokens_max: Option<u64>,
    listener: Option<&'a (dyn Fn(Delta<'_>) + Sync)>,
}

/// Whether a model must propose a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice<'a> {
    /// As it likes.
    #[default]
    Auto,
    /// Some call.
    Required,
    /// A call of this tool.
    Tool(&'a str),
    /// None: it answers.
    None,
}

/// What a model said just now, before its turn is over.
///
/// It is for those who watch. Nothing is executed before the turn is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More of what it says.
    Text(&'a str),
    /// More of what it thinks, where its provider tells.
    Reasoning(&'a str),
    /// It begins to propose a call: the place in the turn, counted from 0, and the tool's name.
    Call(usize, &'a str),
    /// More of the arguments of the call at that place.
    Arguments(usize, &'a str),
    /// What was said so far in this turn was cut off, and the turn begins anew.
    Again,
}

impl<'a> Request<'a> {
    /// Asks for a turn in a conversation, with these tools on offer.
    pub fn new(messages: &'a [Message], offer: &'a Offer) -> Request<'a> {
        Request {
            messages,
            offer,
            instructions: None,
            choice: Choice::Auto,
            answer: None,
            output_tokens_max: None,
            listener: None,
        }
    }

    /// Says what holds for the whole conversation.
    #[must_use]
    pub fn instructed(mut self, instructions: Option<&'a str>) -> Request<'a> {
        self.instructions = instructions;
        self
    }

    /// Says whether a call must be proposed.
    #[must_use]
    pub fn choosing(mut self, choice: Choice<'a>) -> Request<'a> {
        self.choice = choice;
        self
    }

    /// Wants an answer that is a JSON value of this schema.
    #[must_use]
    pub fn answering(mut self, schema: Option<&'a Value>) -> Request<'a> {
        self.answer = schema;
        self
    }

    /// Bounds what the model may write.
    #[must_use]
    pub fn writing_at_most(mut self, tokens: Option<u64>) -> Request<'a> {
        self.output_tokens_max = tokens;
        self
    }

    /// Listens to what the model says before its turn is over.
    #[must_use]
    pub fn listening(mut self, listener: &'a (dyn Fn(Delta<'_>) + Sync)) -> Request<'a> {
        self.listener = Some(listener);
        self
    }

    /// Tells whoever listens what the model said just now.
    pub fn tell(&self, delta: Delta<'_>) {
        if let Some(listener) = self.listener {
            listener(delta);
        }
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.listener.is_some()
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("messages", &self.messages.len())
            .field("instructions", &self.instructions)
            .field("choice", &self.choice)
            .field("answer", &self.answer)
            .field("output_tokens_max", &self.output_tokens_max)
            .finish_non_exhaustive()
    }
}
