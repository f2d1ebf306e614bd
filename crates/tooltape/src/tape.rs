//! The record of a run: append-only, chained, complete before each effect.

mod chain;
mod event;
mod memory;
mod recorder;
mod subscribe;

pub use chain::{Head, verify};
pub use event::{Event, Key, Parent, ProposalEvent, Record, TurnEvent};
pub use memory::MemoryTape;
pub(crate) use recorder::Recorder;
pub use subscribe::{
    BACKLOG_BYTES_DEFAULT, BACKLOG_PROGRESS_DEFAULT, BACKLOG_RECORDS_DEFAULT, Backlog, Seen,
    Subscription,
};

use crate::id::RunId;
use crate::tool::BoxFuture;

/// The most records that one read returns.
pub const READ_RECORDS_MAX: usize = 10_000;

/// Where records go.
///
/// The seam has one primitive to write: append these events to this run, if it still has as many
/// as the writer thinks and none of their keys is taken. That one rule fences off a second
/// executor, makes starting and settling happen once, and lets the first answer win.
pub trait Tape: Send + Sync {
    /// Appends all the events, or none.
    ///
    /// Returns at once with an [`Ack`]; events become durable in the order of the calls.
    fn append(&self, append: Append<'_>) -> Ack;

    /// Reads up to `most` records of a run, from a sequence number on. An unknown run has none.
    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>>;
}

/// Events to append to one run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Append<'e> {
    /// The run.
    pub run: RunId,
    /// How many records the run has; another number means that somebody else wrote.
    pub after: u64,
    /// When it was written, in microseconds since the Unix epoch.
    pub at_us: u64,
    /// What to append. A tape that takes the events leaves the list empty, one that refuses them
    /// leaves it as it was.
    pub events: &'e mut Vec<Event>,
}

impl<'e> Append<'e> {
    /// Events to append to `run` after its first `after` records.
    pub fn new(run: RunId, after: u64, at_us: u64, events: &'e mut Vec<Event>) -> Append<'e> {
        Append { run, after, at_us, events }
    }
}

/// The promise that an append is, or will be, durable.
#[must_use = "an append may have been refused"]
pub enum Ack {
    /// It is decided already.
    Now(Result<(), TapeError>),
    /// It was accepted; the future says when it is durable. Dropping it changes nothing.
    Later(BoxFuture<'static, Result<(), TapeError>>),
}

impl Ack {
    /// Waits until the events are durable.
    pub async fn durable(self) -> Result<(), TapeError> {
        match self {
            Ack::Now(result) => result,
            Ack::Later(ack) => ack.await,
        }
    }

    /// Goes on without waiting, unless the append was refused already.
    pub fn accepted(self) -> Result<(), TapeError> {
        match self {
            Ack::Now(result) => result,
            Ack::Later(_) => Ok(()),
        }
    }
}

/// Why a tape did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    /// Somebody else appended to the run.
    #[error("the run has {found} records, expected {expected}: another executor wrote to it")]
    Conflict {
        /// How many the writer thought.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// A key that may be used once was used before.
    #[error("`{key}` is on the tape already")]
    KeyTaken {
        /// The key.
        key: Key,
    },
    /// The chain is broken.
    #[error("the tape is corrupt at record {seq}: {why}")]
    Corrupt {
        /// Where.
        seq: u64,
        /// How.
        why: String,
    },
    /// Nothing can be written any more.
    #[error("the tape takes no more records: {why}")]
    Poisoned {
        /// Why.
        why: String,
    },
}
