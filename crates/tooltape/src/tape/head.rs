//! The end of a run's chain, to be kept elsewhere: a chain alone cannot see its own truncation.

use serde::{Deserialize, Serialize};

use super::{Head, TapeError};
use crate::canon::{Canon, Doc, Hash, Limits};
use crate::id::RunId;

/// The head of one run, exported and perhaps signed.
///
/// Its text is one line of canonical JSON. A tape that was cut off, however neatly, does not lead
/// to it any more.
///
/// ```
/// use tooltape::{Head, RunHead, RunId};
///
/// let head = RunHead::new(RunId::new(1, [7; 10]), Head::empty());
/// assert_eq!(RunHead::parse(&head.text())?, head);
/// # Ok::<(), tooltape::TapeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RunHead {
    /// Which run, and how it ends.
    pub head: End,
    /// Whoever signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The signature, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Which run ends how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The run.
    pub run: RunId,
    /// How many records it has.
    pub len: u64,
    /// The hash of the last one.
    pub hash: Hash,
}

impl End {
    /// The head.
    pub fn head(&self) -> Head {
        Head { len: self.len, hash: self.hash }
    }
}

impl RunHead {
    /// The head of a run, not signed.
    pub fn new(run: RunId, head: Head) -> RunHead {
        RunHead { head: End { run, len: head.len, hash: head.hash }, key: None, signature: None }
    }

    /// Its line, without a line end.
    pub fn text(&self) -> String {
        let canon = Canon::of(self).expect("hashes, numbers and ids can be written");
        canon.as_str().to_owned()
    }

    /// Reads a line that [`RunHead::text`] wrote, and no other.
    pub fn parse(text: &str) -> Result<RunHead, TapeError> {
        let other = |why: String| TapeError::Foreign { why: format!("not a head: {why}") };
        let doc = Doc::read(text, &Limits::OWN).map_err(|err| other(err.to_string()))?;
        if !doc.is_canonical() {
            return Err(other("its text is not in canonical form".to_owned()));
        }
        serde_json::from_str(text).map_err(|err| other(err.to_string()))
    }

    /// What a signature is over.
    #[cfg(feature = "sign")]
    pub(super) fn signed_bytes(&self) -> Vec<u8> {
        let end = Canon::of(&self.head).expect("hashes, numbers and ids can be written");
        [b"tooltape/1 head\n", end.as_str().as_bytes()].concat()
    }
}
