//! The chain: each record's hash covers the one before it.

use serde::{Deserialize, Serialize};

use super::{Line, Record, TapeError};
use crate::canon::{Domain, Hash};

/// The end of a chain: what an exported head pins down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// How many records there are.
    pub len: u64,
    /// The hash of the last one, which covers all before it.
    pub hash: Hash,
}

impl Head {
    /// The head of a run without records.
    pub fn empty() -> Head {
        Head { len: 0, hash: Hash::of(Domain::Event, b"") }
    }

    /// The head once this record follows.
    pub fn then(self, record: &Record) -> Result<Head, TapeError> {
        self.then_line(&Line::of(record, self.hash)?)
    }
}

impl Record {
    /// The hash of what a replay compares: no run, no stamps, no durations.
    pub fn content_hash(&self) -> Result<Hash, TapeError> {
        Ok(Line::of(self, Head::empty().hash)?.content())
    }
}

/// Checks that these records, from the first on, lead to this head.
///
/// Altering, dropping, swapping or inserting a record leads to another one.
pub fn verify(records: &[Record], head: Head) -> Result<(), TapeError> {
    let found = records.iter().try_fold(Head::empty(), Head::then)?;
    if found == head {
        return Ok(());
    }
    let why = format!(
        "the chain ends at {} records with `{}`, expected {} with `{}`",
        found.len, found.hash, head.len, head.hash
    );
    Err(TapeError::Corrupt { seq: found.len.min(head.len), why })
}
