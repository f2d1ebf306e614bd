//! Why a run could not go on.

use std::fmt;
use std::sync::Arc;

use crate::grant::Need;
use crate::id::{CallNo, RunId};
use crate::reply::{RedactError, Reply};
use crate::tape::{Parent, TapeError};
use crate::tool::RegisterError;

/// A grant that a tool needs and a run does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The tool.
    pub tool: Arc<str>,
    /// The grant.
    pub need: Need,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` needs `{}`", self.tool, self.need.name())?;
        self.need.secret().map_or(Ok(()), |name| write!(f, ", the secret `{name}`"))
    }
}

/// Why a run could not go on. The replies that were made are never lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Tools need what was not granted. Nothing was executed.
    #[error("not executed: {}, which the run was not granted",
        .0.iter().map(Missing::to_string).collect::<Vec<_>>().join(", "))]
    MissingGrants(Vec<Missing>),
    /// The secrets that the run was granted cannot be looked for. Nothing was executed.
    #[error("not executed: {0}")]
    Redact(#[from] RedactError),
    /// A tool was refused.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// A fault ended the run. Every call of the batch was settled first.
    #[error("the run ended: {why}")]
    Ended {
        /// The fault.
        why: String,
        /// The replies of the batch, in order.
        replies: Vec<Reply>,
    },
    /// Somebody must answer before the run goes on. It is on the tape: answer there, and
    /// [resume](crate::Run::resume) it.
    #[error("the run is paused: {} of its calls wait for an answer", .calls.len())]
    Paused {
        /// The calls that wait.
        calls: Vec<CallNo>,
        /// The replies of the batch that were made, in order.
        replies: Vec<Reply>,
    },
    /// The run ended earlier. Nothing was executed.
    #[error("not executed: the run ended before: {why}")]
    Closed {
        /// Why it ended.
        why: String,
    },
    /// A tool called the run that it is a call of. Nothing was executed.
    #[error("not executed: a tool cannot use the run that called it; take `Spawn` for a child")]
    Reentered,
    /// A child was to be given a tool. It is not there.
    #[error("a child's tools can only be taken away")]
    Narrow,
    /// The tape could not be written.
    #[error(transparent)]
    Tape(#[from] TapeError),
}

/// Why a run cannot go on. Nothing was executed, and its tape is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The tape has no such run.
    #[error("there is no run `{run}` on this tape")]
    Unknown {
        /// The run.
        run: RunId,
    },
    /// It came to its end.
    #[error("the run came to its end, so there is nothing to resume: {why}")]
    Ended {
        /// How.
        why: String,
    },
    /// A call of another run started it, and is in doubt itself.
    #[error("call {} of run `{}` started the run: resume that one", .parent.call, .parent.run)]
    Nested {
        /// Who started it.
        parent: Parent,
    },
    /// A fork would change what was settled before the place that it begins at.
    #[error("call {call} is settled before that place: fork before it")]
    Edited {
        /// The call.
        call: CallNo,
    },
    /// A fork would change a call that is not there.
    #[error("there is no call {call} to edit at that place; {}", open_calls(.calls))]
    NoCall {
        /// The call.
        call: CallNo,
        /// The calls that are there and not settled.
        calls: Vec<CallNo>,
    },
    /// The last value of a state cannot be read as what the state holds now.
    #[error("the last value of the state `{state}` does not fit it any more: {why}")]
    State {
        /// The state's type.
        state: String,
        /// Why.
        why: String,
    },
    /// What its calls wrote to a store could not be brought there.
    #[error("the store cannot be used: {why}")]
    Unstored {
        /// Why.
        why: String,
    },
    /// The tape could not be read or written, or is damaged.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// The run as it is set up now cannot begin.
    #[error(transparent)]
    Run(#[from] RunError),
}

fn open_calls(calls: &[CallNo]) -> String {
    match calls {
        [] => "none is open".to_owned(),
        calls => {
            let calls: Vec<String> = calls.iter().map(|call| format!("`{call}`")).collect();
            format!("open are {}", calls.join(", "))
        }
    }
}
