//! The record of a run: append-only, chained, complete before each effect.

mod chain;
mod discreet;
mod event;
mod file;
mod head;
mod key;
mod line;
mod memory;
mod read;
mod recorder;
#[cfg(feature = "sign")]
mod sign;
#[cfg(feature = "sqlite")]
mod sqlite;
mod subscribe;
mod turn;
mod verify;
mod whole;

pub use chain::{Head, verify};
pub use event::{EVENT_VERSION, Event, ForkPoint, Parent, Record};
pub use file::{TAPE_FILE_HEADER, TAPE_LINE_BYTES_MAX, TapeRead, TapeWriter, read_tape};
pub use head::{End, RunHead};
pub use key::Key;
pub use line::{Line, STAMPS};
pub use memory::MemoryTape;
pub(crate) use recorder::{Accepted, Recorder, Recording, Refused};
#[cfg(feature = "sign")]
pub use sign::SignKey;
#[cfg(feature = "sqlite")]
pub use sqlite::{
    Audit, BUSY_DEFAULT, CHECKPOINT_PAGES, COMMIT_EVENTS_MAX, DeadWriter, Erase, NotAStatus,
    QUEUE_EVENTS_MAX, READERS_MAX, RESERVE_BYTES_MIN, RESERVE_CALL_BYTES, RUN_RECORDS_MAX,
    RUNS_HELD_MAX, RUNS_MAX, Recovered, RunStatus, RunSummary, RunsQuery, SqliteOptions,
    SqliteTape, TornTail,
};
pub use subscribe::{
    BACKLOG_BYTES_DEFAULT, BACKLOG_PROGRESS_DEFAULT, BACKLOG_RECORDS_DEFAULT, Backlog, Seen,
    Subscription,
};
pub use turn::{Nudge, ProposalEvent, Recalled, RecalledReply, TurnEvent, Usage};
pub use verify::{Damage, InDoubt, Verified, Verify};
pub(crate) use whole::Whole;

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

/// All records of a run, page by page.
pub(crate) async fn all_records(tape: &dyn Tape, run: RunId) -> Result<Vec<Record>, TapeError> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let page = tape.read(run, records.len() as u64, READ_RECORDS_MAX).await?;
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page);
    }
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
    #[inline]
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
    /// What the record said was erased. Its place in the chain is still held.
    #[error("what record {seq} said was erased")]
    Erased {
        /// Which record.
        seq: u64,
    },
    /// It was written by a later version of this library. Nothing was changed.
    #[error(
        "the tape has version {version}, and this program reads up to {known}: use a newer one"
    )]
    Newer {
        /// Its version.
        version: u32,
        /// The latest that is known here.
        known: u32,
    },
    /// Somebody else is writing to the run. It can still be read.
    #[error("the run is being written by {holder}: it can be read, and resumed once that is over")]
    Locked {
        /// Who: process, host and since when.
        holder: String,
    },
    /// There is no room for what would follow. What was recorded is safe, and can be read.
    #[error("the tape has no room: {why}")]
    Full {
        /// What was wanted and what there is.
        why: String,
    },
    /// It may only be read.
    #[error("the tape was opened to be read only")]
    ReadOnly,
    /// It is no tape. Nothing was changed.
    #[error("this is no tape: {why}")]
    Foreign {
        /// What it is instead.
        why: String,
    },
    /// The system would not do it.
    #[error("the tape cannot be used: {why}")]
    Io {
        /// What the system said.
        why: String,
    },
    /// Nothing can be written any more.
    #[error("the tape takes no more records: {why}")]
    Poisoned {
        /// Why.
        why: String,
    },
}
