//! BLAKE3 hashes, a kind of their own for each thing that is hashed.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a hash is of; the same bytes have different hashes in different domains.
///
/// A domain is a key of BLAKE3's keyed mode: unlike a prefix it costs nothing, leaves a short input
/// within one block, and cannot be imitated by bytes that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// The canonical form of a call's arguments.
    Arguments,
    /// The raw text of arguments that could not be read.
    RawArguments,
    /// The canonical form of a result.
    Result,
    /// The canonical form of what a tool was declared to be.
    Definition,
    /// An event of a tape, with all before it.
    Event,
    /// What a replay compares of an event.
    Replay,
    /// The bytes of an artifact.
    Content,
    /// The canonical form of a policy.
    Policy,
    /// What an approval is good for.
    Approval,
    /// What somebody was shown of a call before it ran.
    Preview,
    /// The place that has a label, or the label.
    Label,
    /// What an idempotency key is made from.
    Key,
    /// No domain: plain BLAKE3, as other programs compute it.
    Plain,
}

impl Domain {
    /// The key of the domain: its name, filled up with dots.
    fn key(self) -> Option<&'static [u8; 32]> {
        match self {
            Self::Arguments => Some(b"tooltape/1 arguments............"),
            Self::RawArguments => Some(b"tooltape/1 raw arguments........"),
            Self::Result => Some(b"tooltape/1 result..............."),
            Self::Definition => Some(b"tooltape/1 definition..........."),
            Self::Event => Some(b"tooltape/1 event................"),
            Self::Replay => Some(b"tooltape/1 replay..............."),
            Self::Content => Some(b"tooltape/1 content.............."),
            Self::Policy => Some(b"tooltape/1 policy..............."),
            Self::Approval => Some(b"tooltape/1 approval............."),
            Self::Preview => Some(b"tooltape/1 preview.............."),
            Self::Label => Some(b"tooltape/1 label................"),
            Self::Key => Some(b"tooltape/1 key.................."),
            Self::Plain => None,
        }
    }
}

/// A BLAKE3 hash of something in its [`Domain`].
///
/// Its text is 64 lower-case hexadecimal digits, and no other text is read as a hash.
///
/// ```
/// use tooltape::{Domain, Hash};
///
/// let hash = Hash::of(Domain::Plain, b"");
/// assert!(hash.to_string().starts_with("af1349b9"));
/// assert_eq!(hash.to_string().parse(), Ok(hash));
/// assert_ne!(hash, Hash::of(Domain::Content, b""));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of some bytes.
    pub fn of(domain: Domain, bytes: &[u8]) -> Self {
        let hash = match domain.key() {
            Some(key) => blake3::keyed_hash(key, bytes),
            None => blake3::hash(bytes),
        };
        Self(hash.into())
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A hash of bytes that come one after the other.
pub(crate) struct Hashing(blake3::Hasher);

impl Hashing {
    pub(crate) fn new(domain: Domain) -> Self {
        Self(domain.key().map_or_else(blake3::Hasher::new, blake3::Hasher::new_keyed))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all the bytes.
    pub(crate) fn end(&self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

impl From<[u8; 32]> for Hash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is not a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hash, expected 64 lower-case hexadecimal digits")]
pub struct NotAHash;

impl FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(NotAHash);
        }
        blake3::Hash::from_hex(text).map(|hash| Self(hash.into())).map_err(|_| NotAHash)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from(self.0).to_hex())
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
