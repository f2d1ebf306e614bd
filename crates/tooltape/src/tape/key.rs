//! What may happen once in a run.

use std::fmt;

use crate::id::CallNo;

/// What may happen once in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// An attempt at a call.
    Started(CallNo, u32),
    /// The end of a call.
    Settled(CallNo),
    /// The answer to a question whether a call may run.
    Answered(CallNo, u32),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Started(CallNo(call), attempt) => write!(f, "started:{call}:{attempt}"),
            Key::Settled(CallNo(call)) => write!(f, "settled:{call}"),
            Key::Answered(CallNo(call), question) => write!(f, "answer:{call}:{question}"),
        }
    }
}
