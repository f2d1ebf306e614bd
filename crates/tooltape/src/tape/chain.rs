//! The chain: each record's hash covers the one before it.

use serde::Serialize;

use super::{Record, TapeError};
use crate::canon::{Canon, Domain, Hash};

/// The end of a chain: what an exported head pins down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
        let corrupt = |why| TapeError::Corrupt { seq: record.seq, why };
        if record.seq != self.len {
            return Err(corrupt(format!("record {} follows record {}", record.seq, self.len)));
        }
        let link = Link { previous: self.hash, record };
        let canon = Canon::of(&link).map_err(|err| corrupt(err.to_string()))?;
        let hash = Hash::of(Domain::Event, canon.as_str().as_bytes());
        Ok(Head { len: self.len + 1, hash })
    }
}

#[derive(Serialize)]
struct Link<'a> {
    previous: Hash,
    #[serde(flatten)]
    record: &'a Record,
}

impl Record {
    /// The hash of what a replay compares: no run, no stamps, no durations.
    pub fn content_hash(&self) -> Result<Hash, TapeError> {
        let canon = Canon::of(&self.event.unstamped())
            .map_err(|err| TapeError::Corrupt { seq: self.seq, why: err.to_string() })?;
        Ok(Hash::of(Domain::Content, canon.as_str().as_bytes()))
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
