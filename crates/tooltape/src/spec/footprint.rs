//! What a call reads and writes, as resource keys with hierarchy.

use std::fmt;
use std::slice;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{Access, Typed};
use crate::canon::Canon;

/// The most bytes of a resource key.
pub const RESOURCE_BYTES_MAX: usize = 4096;
/// The most segments of a resource key's path.
pub const RESOURCE_SEGMENTS_MAX: usize = 64;
/// The most keys that a footprint reads, and the most that it writes; more are everything.
pub const FOOTPRINT_KEYS_MAX: usize = 64;

/// A key for something that calls read and write: `domain:path`, where `/` parts the path.
///
/// A key covers what is below it: `file:src` covers `file:src/a.rs` and not `file:src2`, and
/// `file:` covers its whole domain. Keys are compared byte for byte, so whatever has two names
/// must be given one of them first.
///
/// ```
/// use tooltape::Resource;
///
/// let folder = Resource::parse("file:src").unwrap();
/// assert!(folder.covers(&Resource::parse("file:src/a.rs").unwrap()));
/// assert!(!folder.covers(&Resource::parse("file:src2").unwrap()));
/// assert!(Resource::everything().covers(&folder));
/// assert!(Resource::parse("file:src/../secret").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource(Key);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Everything,
    /// A text that passed every check of [`Resource::parse`].
    Below(Box<str>),
}

impl Resource {
    /// What covers every resource of every domain.
    pub const fn everything() -> Resource {
        Resource(Key::Everything)
    }

    /// Reads `domain:path`. The domain is lower case; an empty path is the whole domain.
    pub fn parse(text: &str) -> Result<Resource, ResourceError> {
        if text.len() > RESOURCE_BYTES_MAX {
            return Err(ResourceError::TooLong { bytes: text.len() });
        }
        if text.contains(char::is_control) {
            return Err(ResourceError::Control { key: text.escape_debug().collect() });
        }
        let Some((domain, path)) = text.split_once(':') else {
            return Err(ResourceError::NoDomain { key: text.into() });
        };
        let is_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
        if domain.is_empty() || !domain.bytes().all(is_word) {
            return Err(ResourceError::Domain { domain: domain.into() });
        }
        if path.split('/').nth(RESOURCE_SEGMENTS_MAX).is_some() {
            return Err(ResourceError::TooDeep { segments: path.split('/').count() });
        }
        let is_vague = |segment: &&str| matches!(*segment, "" | "." | "..");
        match path.split('/').find(is_vague) {
            Some(segment) if !path.is_empty() => {
                Err(ResourceError::Segment { key: text.into(), segment: segment.into() })
            }
            Some(_) | None => Ok(Resource(Key::Below(text.into()))),
        }
    }

    /// Whether whatever `other` stands for is part of this.
    pub fn covers(&self, other: &Resource) -> bool {
        let mut others = other.segments();
        self.segments().all(|segment| others.next() == Some(segment))
    }

    /// Whether they have anything in common: one covers the other.
    pub fn overlaps(&self, other: &Resource) -> bool {
        self.segments().zip(other.segments()).all(|(one, other)| one == other)
    }

    /// The way down to it: the domain, then each segment of the path; empty for everything.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        let (domain, path) = match &self.0 {
            Key::Everything => (None, ""),
            Key::Below(text) => {
                let (domain, path) = text.split_once(':').expect("`parse` saw a colon");
                (Some(domain), path)
            }
        };
        domain.into_iter().chain(path.split('/').filter(|segment| !segment.is_empty()))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Key::Everything => "everything",
            Key::Below(text) => text,
        })
    }
}

impl TryFrom<&str> for Resource {
    type Error = ResourceError;

    fn try_from(text: &str) -> Result<Resource, ResourceError> {
        Resource::parse(text)
    }
}

impl TryFrom<String> for Resource {
    type Error = ResourceError;

    fn try_from(text: String) -> Result<Resource, ResourceError> {
        Resource::parse(&text)
    }
}

/// Why a text is not a resource key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// It is longer than [`RESOURCE_BYTES_MAX`].
    #[error("a resource key of {bytes} bytes; at most {RESOURCE_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It has more segments than [`RESOURCE_SEGMENTS_MAX`].
    #[error("a resource key of {segments} segments; at most {RESOURCE_SEGMENTS_MAX} are allowed")]
    TooDeep {
        /// How many it has.
        segments: usize,
    },
    /// It has no colon.
    #[error("`{key}` has no domain; a resource key is like `file:src/a.rs`")]
    NoDomain {
        /// The text.
        key: String,
    },
    /// What is before the colon is no domain.
    #[error("`{domain}` is no domain; expected lower case letters, digits, `-`, `_` or `.`")]
    Domain {
        /// What was found.
        domain: String,
    },
    /// A segment does not name anything.
    #[error("`{key}` has a segment `{segment}`; no segment may be empty, `.` or `..`")]
    Segment {
        /// The text.
        key: String,
        /// The segment.
        segment: String,
    },
    /// It holds a control character.
    #[error("`{key}` holds a control character")]
    Control {
        /// The text, escaped.
        key: String,
    },
}

/// What a call reads and what it writes.
///
/// A key that cannot be read from its text counts as everything, and so do too many keys: what is
/// not known may be anything.
///
/// ```
/// use tooltape::Footprint;
///
/// let copy = Footprint::reads("file:a.txt").and_writes("file:b/a.txt");
/// assert!(copy.conflicts(&Footprint::reads("file:b")));
/// assert!(!copy.conflicts(&Footprint::reads("file:a.txt")));
/// assert!(Footprint::writes("file:../a.txt").is_unknown_write());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    reads: Keys,
    writes: Keys,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys {
    Everything,
    /// At most [`FOOTPRINT_KEYS_MAX`], none of which is everything.
    These(Vec<Resource>),
}

impl Default for Keys {
    fn default() -> Keys {
        Keys::These(Vec::new())
    }
}

impl Keys {
    fn and(self, resource: impl TryInto<Resource>) -> Keys {
        match (self, resource.try_into().map(|resource| resource.0)) {
            (Keys::These(mut these), Ok(Key::Below(text))) if these.len() < FOOTPRINT_KEYS_MAX => {
                these.push(Resource(Key::Below(text)));
                Keys::These(these)
            }
            (Keys::These(_) | Keys::Everything, Ok(_) | Err(_)) => Keys::Everything,
        }
    }

    fn as_slice(&self) -> &[Resource] {
        static EVERYTHING: Resource = Resource::everything();
        match self {
            Keys::Everything => slice::from_ref(&EVERYTHING),
            Keys::These(these) => these,
        }
    }
}

impl Footprint {
    /// Nothing: such a call may overlap any other.
    pub fn none() -> Footprint {
        Footprint::default()
    }

    /// What a tool of this access touches that does not say what: nothing, or everything.
    pub fn everything(access: Access) -> Footprint {
        match access {
            Access::Pure => Footprint::none(),
            Access::Read => Footprint::reads(Resource::everything()),
            Access::Write => Footprint::writes(Resource::everything()),
        }
    }

    /// The reading of one resource.
    pub fn reads(resource: impl TryInto<Resource>) -> Footprint {
        Footprint::none().and_reads(resource)
    }

    /// The writing of one resource. Whoever writes it may read it too.
    pub fn writes(resource: impl TryInto<Resource>) -> Footprint {
        Footprint::none().and_writes(resource)
    }

    /// Adds a resource that is read.
    #[must_use]
    pub fn and_reads(mut self, resource: impl TryInto<Resource>) -> Footprint {
        self.reads = self.reads.and(resource);
        self
    }

    /// Adds a resource that is written.
    #[must_use]
    pub fn and_writes(mut self, resource: impl TryInto<Resource>) -> Footprint {
        self.writes = self.writes.and(resource);
        self
    }

    /// The keys that are read.
    pub fn read_keys(&self) -> &[Resource] {
        self.reads.as_slice()
    }

    /// The keys that are written.
    pub fn written_keys(&self) -> &[Resource] {
        self.writes.as_slice()
    }

    /// Whether nothing is touched.
    pub fn is_none(&self) -> bool {
        self.read_keys().is_empty() && !self.is_write()
    }

    /// Whether anything is written.
    pub fn is_write(&self) -> bool {
        !self.written_keys().is_empty()
    }

    /// Whether it may write anything there is.
    pub fn is_unknown_write(&self) -> bool {
        self.writes == Keys::Everything
    }

    /// Whether one of the two writes what the other reads or writes.
    ///
    /// This is the rule itself; [`Order`](crate::Order) applies it to a batch without comparing
    /// each call with each.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        let overlap = |ones: &[Resource], others: &[Resource]| {
            ones.iter().any(|one| others.iter().any(|other| one.overlaps(other)))
        };
        overlap(self.written_keys(), other.written_keys())
            || overlap(self.written_keys(), other.read_keys())
            || overlap(self.read_keys(), other.written_keys())
    }
}

/// Computes a call's footprint from its arguments: a hook with the name that `tools show` prints.
///
/// ```
/// use tooltape::{Footprint, FootprintOf, Spec, input};
///
/// #[input]
/// struct Remove {
///     path: String,
/// }
///
/// fn path_of(args: &Remove) -> Footprint {
///     Footprint::writes(format!("file:{}", args.path))
/// }
///
/// let spec = Spec::new("remove", "Removes a file.");
/// let spec = spec.touches(FootprintOf::input("path_of", path_of));
/// assert_eq!(spec.hooks.footprint.unwrap().name(), "path_of");
/// ```
#[derive(Clone)]
pub struct FootprintOf {
    name: Arc<str>,
    hook: Arc<Hook>,
}

type Hook = dyn Fn(&Canon, Option<&Typed>) -> Option<Footprint> + Send + Sync;

impl FootprintOf {
    /// A hook on the tool's own input type.
    ///
    /// It is handed what was read while the call was resolved. Where that is of another type, and
    /// the arguments cannot be read as an `I`, the call touches everything.
    pub fn input<I: DeserializeOwned + 'static>(
        name: impl Into<Arc<str>>,
        hook: impl Fn(&I) -> Footprint + Send + Sync + 'static,
    ) -> FootprintOf {
        let hook = move |canon: &Canon, typed: Option<&Typed>| match typed
            .and_then(|typed| typed.downcast_ref::<I>())
        {
            Some(input) => Some(hook(input)),
            None => canon.parse::<I>().ok().map(|input| hook(&input)),
        };
        FootprintOf { name: name.into(), hook: Arc::new(hook) }
    }

    /// A hook on the canonical arguments, for tools without an input type of their own.
    pub fn args(
        name: impl Into<Arc<str>>,
        hook: impl Fn(&Canon) -> Footprint + Send + Sync + 'static,
    ) -> FootprintOf {
        let hook = move |canon: &Canon, _: Option<&Typed>| Some(hook(canon));
        FootprintOf { name: name.into(), hook: Arc::new(hook) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the hook says; `None` where it could not read the arguments. Panics as the hook does.
    pub(crate) fn of(&self, canon: &Canon, typed: Option<&Typed>) -> Option<Footprint> {
        (self.hook)(canon, typed)
    }
}
