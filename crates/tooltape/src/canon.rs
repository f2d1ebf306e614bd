//! Canonical form and hashes: which texts mean the same, and what they are called for short.

use std::sync::{Arc, LazyLock};
use std::{fmt, hash as hash_of};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

mod text;
mod limits;
mod unreadable;
mod pool;
mod string;
mod number;
mod table;
mod read;
mod doc;
mod write;
mod flat;
mod peek;
mod strict;
mod serialize;
mod hash;

pub use doc::{Doc, Kind, Node};
pub(crate) use flat::{Flat, Scalar};
pub(crate) use hash::Hashing;
pub use hash::{Domain, Hash, NotAHash};
pub use limits::{
    ARGUMENT_BYTES_MAX, DEPTH_MAX, INTEGER_DIGITS_MAX, Limits, NODES_MAX, RESULT_BYTES_MAX,
};
pub(crate) use number::compare;
pub(crate) use peek::Peek;
pub(crate) use string::run_end;
use text::Text;
pub use unreadable::{Place, Unreadable};
pub use write::Sets;

/// The name and version of the rules that [`Canon`] follows.
pub const CANON_PROFILE: &str = "jcs-int/1";

/// Canonical JSON text: RFC 8785, with large integers kept exactly.
///
/// Equal values have equal text, whatever their white space, order of keys, escapes and number
/// literals were, and different integers have different text. Cheap to clone.
///
/// RFC 8785 knows doubles only, so it gives `9007199254740993` and `9007199254740992` one text. Two
/// calls would share one approval. Hence these rules for numbers:
///
/// 1. A literal without fraction and exponent is an integer and keeps its digits, however many
///    (up to [`INTEGER_DIGITS_MAX`]); `-0` is `0`.
/// 2. Any other literal is a double in the shortest text that RFC 8785 gives it: `1.0` is `1`,
///    `1E30` is `1e+30`. If its value is an integer, and that text would be another integer, it
///    keeps its exact digits instead: `9007199254740993.0` is `9007199254740993`.
/// 3. A fraction beyond 2^53, which no double can hold, is refused. So is what is larger than the
///    largest double.
///
/// From 10^21 on, where RFC 8785 writes exponents, `1e21` and its 22 digits stay two texts, since
/// only the digits can be read as an integer again.
///
/// ```
/// use tooltape::{Canon, Doc, Limits};
///
/// let doc = Doc::read(r#"{"id": 9007199254740993, "a": [1.0, "\u00e9"]}"#, &Limits::default())?;
/// assert_eq!(doc.canonical().as_str(), r#"{"a":[1,"é"],"id":9007199254740993}"#);
/// # Ok::<(), tooltape::Unreadable>(())
/// ```
#[derive(Clone)]
pub struct Canon(Text);

impl PartialEq for Canon {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Canon {}

impl hash_of::Hash for Canon {
    fn hash<H: hash_of::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Canon {
    /// The canonical form of anything that can be serialized.
    ///
    /// Refuses what JSON cannot hold: numbers that are not finite, keys that have no text, and what
    /// is beyond [`Limits::OWN`]. Keys that are numbers become text, as `serde_json` writes them.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Uncanonical> {
        serialize::canonical(value, &Limits::OWN)
    }

    /// The same, within other limits.
    pub(crate) fn within<T>(value: &T, limits: &Limits) -> Result<Self, Uncanonical>
    where
        T: Serialize + ?Sized,
    {
        serialize::canonical(value, limits)
    }

    /// The canonical form of a string.
    pub(crate) fn string(text: &str) -> Self {
        // What `serde_json` escapes, and how, is what RFC 8785 says.
        Self(Text::written(serde_json::to_string(text).expect("any string can be written")))
    }

    /// The text that a canonical string stands for. Memory is used for that text alone.
    pub(crate) fn to_text(&self) -> Option<String> {
        let inside = self.as_str().strip_prefix('"')?.strip_suffix('"')?;
        Some(string::unescape(inside))
    }

    /// The canonical form of no arguments at all: `{}`.
    pub fn empty_object() -> Self {
        static EMPTY: LazyLock<Canon> = LazyLock::new(|| Canon::new("{}"));
        EMPTY.clone()
    }

    /// The canonical form of nothing: `null`.
    pub(crate) fn null() -> Self {
        Self::new("null")
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The bytes of the text.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The value that the text stands for, as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// The value that the text stands for, as a tree; integers beyond 64 bits become doubles.
    pub fn to_value(&self) -> Value {
        self.parse().expect("canonical text is JSON whose depth and numbers serde_json can hold")
    }

    /// Takes the text of a flat object, which is canonical.
    #[inline]
    pub(crate) fn of_flat(_: &Flat<'_>, text: &Arc<str>) -> Self {
        Self(Text::sharing(text))
    }

    /// Takes a text that is canonical already.
    #[inline]
    fn new(text: &str) -> Self {
        Self(Text::new(text))
    }
}

/// Serializes as the JSON that it is; only `serde_json` can do so.
impl Serialize for Canon {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue =
            serde_json::from_str(self.as_str()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Reads any JSON and puts it into canonical form; only `serde_json` can do so.
impl<'de> Deserialize<'de> for Canon {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let doc = Doc::read(raw.get(), &Limits::OWN).map_err(serde::de::Error::custom)?;
        Ok(doc.canonical())
    }
}

impl fmt::Display for Canon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Canon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Canon").field(&format_args!("{}", self.as_str())).finish()
    }
}

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Uncanonical {
    /// It could not be serialized as JSON, for example because a number is not finite.
    #[error(transparent)]
    Unwritable(#[from] serde_json::Error),
    /// It was serialized as a text that is refused.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}
