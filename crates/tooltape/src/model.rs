//! The seam to a model: a conversation goes in, a turn comes out.

mod recorded;
mod request;
mod script;

use std::sync::Arc;

pub use recorded::Recorded;
pub(crate) use recorded::again;
pub use request::{Choice, Delta, Request};
pub use script::{Script, ScriptError};

use crate::proposal::Proposal;
use crate::reply::Reply;
pub use crate::tape::Usage;
use crate::tape::{ProposalEvent, TurnEvent};
use crate::tool::BoxFuture;
use crate::verbatim::Verbatim;

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
    /// What only its provider can read of it, to be shown to that provider again.
    pub verbatim: Option<Arc<Verbatim>>,
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
    /// It was cut off: what it said and proposed is not all of it, and is never executed.
    Cut,
}

impl TurnStop {
    /// The word on the tape.
    pub fn word(self) -> &'static str {
        match self {
            TurnStop::Done => "done",
            TurnStop::Length => "length",
            TurnStop::Refused => "refused",
            TurnStop::Cut => "cut",
        }
    }
}

impl Turn {
    /// The model answers.
    pub fn answer(text: impl Into<Arc<str>>) -> Turn {
        Turn { text: Some(text.into()), ..Turn::calls([]) }
    }

    /// The model proposes calls.
    pub fn calls(proposals: impl IntoIterator<Item = Proposal>) -> Turn {
        let proposals = proposals.into_iter().collect();
        let (stop, usage) = (TurnStop::Done, Usage::default());
        Turn { text: None, proposals, stop, usage, verbatim: None }
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

    /// Costs something.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Turn {
        self.usage = usage;
        self
    }

    /// Has parts that only its provider can read.
    #[must_use]
    pub fn verbatim(mut self, verbatim: Verbatim) -> Turn {
        self.verbatim = Some(Arc::new(verbatim));
        self
    }

    /// The turn as the tape keeps it.
    pub(crate) fn event(&self) -> TurnEvent {
        TurnEvent {
            text: self.text.clone(),
            proposals: self.proposals.iter().map(ProposalEvent::new).collect(),
            stop: self.stop.word(),
            input_tokens: self.usage.input_tokens,
            output_tokens: self.usage.output_tokens,
            cached_tokens: self.usage.cached_tokens,
            verbatim: self.verbatim.clone(),
        }
    }
}

/// A language model.
pub trait Model: Send + Sync {
    /// Takes one turn. Dropping the future gives the turn up.
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>>;
}

impl<M: Model + ?Sized> Model for &M {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        (**self).turn(request)
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        (**self).turn(request)
    }
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        (**self).turn(request)
    }
}

/// Why a model took no turn. Nothing was executed for it.
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
    /// It wants a key, or another one.
    #[error("the model's server wants another key: {0}")]
    Unauthorised(String),
    /// Nobody could be reached, or nobody answered in time.
    #[error("the model's server was not reached: {0}")]
    Unreachable(String),
    /// The request was refused, and would be refused again.
    #[error("the model's server refused the request ({status}): {told}")]
    Rejected {
        /// The status of its answer.
        status: u16,
        /// What it said about it.
        told: String,
    },
    /// The server was busy or broken, each time that it was asked.
    #[error("the model's server could not answer ({status}): {told}")]
    Busy {
        /// The status of its last answer.
        status: u16,
        /// What it said about it.
        told: String,
    },
    /// What came back is not what this API says.
    #[error("the model's server answered in no way that is known: {0}")]
    Garbled(String),
    /// The model could not be reached, or failed.
    #[error("the model failed: {0}")]
    Failed(String),
}

impl ModelError {
    /// Whether the same request may fare better later, or with another key. A run whose model
    /// fails so is paused, and can be resumed.
    pub fn is_passing(&self) -> bool {
        match self {
            ModelError::Unreachable(_) | ModelError::Busy { .. } | ModelError::Unauthorised(_) => {
                true
            }
            ModelError::Over { .. }
            | ModelError::Rejected { .. }
            | ModelError::Garbled(_)
            | ModelError::Failed(_) => false,
        }
    }
}
