//! The seam to a model: a conversation goes in, a turn comes out.

mod recorded;
mod script;

use std::sync::Arc;

use serde::Serialize;

pub use recorded::Recorded;
pub(crate) use recorded::again;
pub use script::{Script, ScriptError};

use crate::call::Proposal;
use crate::reply::Reply;
use crate::tool::BoxFuture;
use crate::toolbox::Offer;

/// One entry of a conversation.
#[derive(Clone, Debug)]
pub enum Message {
    /// What the user said.
    User(Arc<str>),
    /// What the model said and proposed.
    Model(Turn),
    /// What its proposals came to, one reply each, in their order.
    Replies(Vec<Reply>),
}

/// What a model did with its turn.
///
/// ```
/// use tooltape::{Proposal, Turn};
/// assert!(Turn::answer("done").proposals.is_empty());
/// assert_eq!(Turn::calls([Proposal::new("c1", "now", "{}")]).proposals.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// What it said.
    pub text: Option<Arc<str>>,
    /// What it proposed. A turn without proposals is an answer.
    pub proposals: Vec<Proposal>,
    /// Why it stopped.
    pub stop: TurnStop,
    /// What it cost.
    pub usage: Usage,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStop {
    /// It was done.
    Done,
    /// It ran out of room. What it proposed may be cut off, and is never executed.
    Length,
    /// It refused.
    Refused,
}

impl TurnStop {
    /// The word on the tape.
    pub fn word(self) -> &'static str {
        match self {
            TurnStop::Done => "done",
            TurnStop::Length => "length",
            TurnStop::Refused => "refused",
        }
    }
}

/// What turns cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
}

impl Turn {
    /// The model answers.
    pub fn answer(text: impl Into<Arc<str>>) -> Turn {
        Turn { text: Some(text.into()), ..Turn::calls([]) }
    }

    /// The model proposes calls.
    pub fn calls(proposals: impl IntoIterator<Item = Proposal>) -> Turn {
        let proposals = proposals.into_iter().collect();
        Turn { text: None, proposals, stop: TurnStop::Done, usage: Usage::default() }
    }

    /// Says something besides.
    #[must_use]
    pub fn saying(mut self, text: impl Into<Arc<str>>) -> Turn {
        self.text = Some(text.into());
        self
    }

    /// Stops for another reason than being done.
    #[must_use]
    pub fn stopped(mut self, stop: TurnStop) -> Turn {
        self.stop = stop;
        self
    }
}

/// A language model.
pub trait Model: Send + Sync {
    /// Takes one turn. Dropping the future gives the turn up.
    fn turn<'a>(
        &'a self,
        messages: &'a [Message],
        offer: &'a Offer,
    ) -> BoxFuture<'a, Result<Turn, ModelError>>;
}

/// Why a model took no turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A script or a recording has no more turns.
    #[error("the model has no turn {turn}: it ends after {turns}")]
    Over {
        /// The turn that was asked for, counted from 1.
        turn: usize,
        /// How many there are.
        turns: usize,
    },
    /// The model could not be reached, or failed.
    #[error("the model failed: {0}")]
    Failed(String),
}
