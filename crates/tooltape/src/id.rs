//! Names and ids: what tools, runs and calls are called.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The longest tool name that every provider accepts.
pub const NAME_BYTES_MAX: usize = 64;
/// The longest version text.
pub const VERSION_BYTES_MAX: usize = 32;

/// A tool's name: safe for every provider, `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`.
///
/// ```
/// use tooltape::Name;
/// assert_eq!(Name::new("read_file").unwrap().as_str(), "read_file");
/// assert_eq!(
///     Name::new("read file").unwrap_err().to_string(),
///     "tool name `read file` has ` ` at byte 4, expected only `a-z A-Z 0-9 _ -`; \
///      did you mean `read_file`?"
/// );
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// Accepts a provider-safe name, or says what is wrong with it and what would do.
    pub fn new(text: &str) -> Result<Name, NameError> {
        let suggestion = || suggest(text);
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong { bytes: text.len(), suggestion: suggestion() });
        }
        let unsafe_char = |(at, c): &(usize, char)| {
            let letter = c.is_ascii_alphabetic() || *c == '_';
            !(letter || (*at > 0 && (c.is_ascii_digit() || *c == '-')))
        };
        match text.char_indices().find(unsafe_char) {
            Some((0, found)) if found.is_ascii_digit() || found == '-' => {
                Err(NameError::Start { name: text.into(), found, suggestion: suggestion() })
            }
            Some((at, found)) => {
                Err(NameError::Character { name: text.into(), at, found, suggestion: suggestion() })
            }
            None => Ok(Name(text.into())),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as text that is shared.
    pub(crate) fn to_arc(&self) -> Arc<str> {
        self.0.clone()
    }
}

/// The nearest acceptable name: ASCII, snake_case, short enough.
fn suggest(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(NAME_BYTES_MAX) {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => name.push(c),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    name.truncate(NAME_BYTES_MAX);
    name
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Name::new(&text).map_err(D::Error::custom)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

// A `Name` is looked up by the text that a model wrote.
impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Why a name cannot be a tool's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// There is no name.
    #[error("tool name is empty, expected 1 to {NAME_BYTES_MAX} characters")]
    Empty,
    /// Some provider would refuse it.
    #[error(
        "tool name has {bytes} bytes, expected at most {NAME_BYTES_MAX}; \
         did you mean `{suggestion}`?"
    )]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// A name that would do.
        suggestion: String,
    },
    /// It starts with a digit or a dash.
    #[error(
        "tool name `{name}` starts with `{found}`, expected a letter or `_`; \
         did you mean `{suggestion}`?"
    )]
    Start {
        /// The name.
        name: String,
        /// Its first character.
        found: char,
        /// A name that would do.
        suggestion: String,
    },
    /// A character in it needs escaping somewhere.
    #[error(
        "tool name `{name}` has `{found}` at byte {at}, expected only `a-z A-Z 0-9 _ -`; \
         did you mean `{suggestion}`?"
    )]
    Character {
        /// The name.
        name: String,
        /// Where the character is.
        at: usize,
        /// The character.
        found: char,
        /// A name that would do.
        suggestion: String,
    },
}

/// A tool's name and version, printed `name@version`.
///
/// Cheap to clone, since every record of a call has one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId(Arc<(Name, Box<str>)>);

impl ToolId {
    /// Accepts a name and a version such as `1.0.0`.
    pub fn new(name: Name, version: &str) -> Result<ToolId, VersionError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
        let numbered = version.starts_with(|c: char| c.is_ascii_digit());
        if numbered && version.len() <= VERSION_BYTES_MAX && version.chars().all(plain) {
            Ok(ToolId(Arc::new((name, version.into()))))
        } else {
            Err(VersionError { name, version: version.chars().take(VERSION_BYTES_MAX).collect() })
        }
    }

    /// The name.
    pub fn name(&self) -> &Name {
        &self.0.0
    }

    /// The version.
    pub fn version(&self) -> &str {
        &self.0.1
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name(), self.version())
    }
}

impl fmt::Debug for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// Reads what a tool's id prints as.
impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolId, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let parts = text.split_once('@');
        let (name, version) = parts.ok_or_else(|| D::Error::custom("expected `name@version`"))?;
        let name = Name::new(name).map_err(D::Error::custom)?;
        ToolId::new(name, version).map_err(D::Error::custom)
    }
}

impl Serialize for ToolId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A version that is not like `1.0.0`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "tool `{name}` has version `{version}`, expected a digit first, then only `a-z A-Z 0-9 . - +`, \
     at most {VERSION_BYTES_MAX} bytes"
)]
pub struct VersionError {
    name: Name,
    version: String,
}

/// A run's id: sortable by time, unguessable, printed as a UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Uuid);

impl RunId {
    /// Makes an id from the run's clock and randomness, which the host grants.
    pub fn new(unix_ms: u64, random: [u8; 10]) -> RunId {
        RunId(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid())
    }

    /// The id of a child of one of the run's calls, by which every attempt at the call finds it: a
    /// [`SubAgent`](crate::SubAgent) has one, the first. It stands behind the run's own where ids
    /// are sorted.
    pub fn child(self, call: CallNo, nth: u64) -> RunId {
        let numbers = [call.0.to_be_bytes(), nth.to_be_bytes()].concat();
        let seed = blake3::derive_key("tooltape 2026-11 child run", self.0.as_bytes());
        let mut random = [0; 10];
        random.copy_from_slice(&blake3::keyed_hash(&seed, &numbers).as_bytes()[..10]);
        let unix_ms = self.0.as_u128() >> 80;
        RunId::new(u64::try_from(unix_ms).unwrap_or(u64::MAX).saturating_add(call.0), random)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// A text is not the id of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a run, expected 32 lower-case hexadecimal digits in five groups")]
pub struct NotARun;

impl FromStr for RunId {
    type Err = NotARun;

    fn from_str(text: &str) -> Result<RunId, NotARun> {
        let id = Uuid::try_parse(text).map(RunId).map_err(|_| NotARun)?;
        // There are other ways to write a UUID; the one that we print is the one that we read.
        if id.to_string() == text { Ok(id) } else { Err(NotARun) }
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunId, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The number of a call within its run, counted from 1.
///
/// The provider's id of a call is kept on every path, but it may be empty or used twice; this one
/// is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallNo(pub u64);

impl fmt::Display for CallNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
