//! Sets of rights, with what is denied of them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Right, RightsError};

/// The most rights that are read as one set, denied ones included.
pub const RIGHTS_MAX: usize = 256;

/// The most rights of a list that is read back: two sets that meet can have so many.
pub const RIGHTS_LISTED_MAX: usize = RIGHTS_MAX * RIGHTS_MAX;

/// What may be done, and what of it may not: a set of rights that only narrows.
///
/// Empty is nothing. What is denied is denied whatever allows it, and so is all that it is a part
/// of: whoever may not read `src/keys` may not read the whole of `src`, though every other file in
/// it. As an amount includes the smaller ones, to deny one is to deny every amount of its currency.
///
/// Two sets meet in what both cover. No method widens a set.
///
/// ```
/// use tooltape::{Rights, Right};
///
/// let right = |text: &str| text.parse::<Right>().unwrap();
/// let run = Rights::of([right("fs:read:."), right("net:any:*.example.com")]);
/// let tool: Rights = "fs:read:src\nfs:write:src\n!fs:read:src/keys".parse().unwrap();
/// let both = run.meet(&tool);
/// assert_eq!(both.to_string(), "fs:read:src\n!fs:read:src/keys");
/// assert!(both.covers(&right("fs:read:src/main.rs")));
/// assert_eq!(
///     both.explain(&right("fs:read:src/keys/a")).to_string(),
///     "denied by `fs:read:src/keys`"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rights {
    /// In order, and none covers another.
    allowed: Vec<Right>,
    /// In order, and none covers another.
    denied: Vec<Right>,
}

impl Rights {
    /// Nothing.
    pub fn none() -> Rights {
        Rights { allowed: Vec::new(), denied: Vec::new() }
    }

    /// What these rights cover, and nothing else.
    pub fn of(rights: impl IntoIterator<Item = Right>) -> Rights {
        Rights { allowed: maximal(rights), denied: Vec::new() }
    }

    /// The same without these, and without whatever they are a part of.
    #[must_use]
    pub fn denying(self, rights: impl IntoIterator<Item = Right>) -> Rights {
        Rights { allowed: self.allowed, denied: maximal(self.denied.into_iter().chain(rights)) }
    }

    /// What both cover.
    #[must_use]
    pub fn meet(&self, other: &Rights) -> Rights {
        let meets = self
            .allowed
            .iter()
            .flat_map(|one| other.allowed.iter().filter_map(move |another| one.meet(another)));
        let denied = self.denied.iter().chain(&other.denied).cloned();
        Rights { allowed: maximal(meets), denied: maximal(denied) }
    }

    /// Whether the whole of a right is among these, and no part of it is denied.
    pub fn covers(&self, right: &Right) -> bool {
        match self.explain(right) {
            Why::Covered { .. } => true,
            Why::Denied { .. } | Why::Missing => false,
        }
    }

    /// Whether it covers every right that `other` covers.
    pub fn covers_all(&self, other: &Rights) -> bool {
        let is_dead = |right: &Right| other.denied.iter().any(|denied| denied.shadows(right));
        // What a denial of `other` leaves of its rights must be here, and denied by nothing here
        // that `other` does not deny itself.
        other.allowed.iter().flat_map(Right::parts).filter(|part| !is_dead(part)).all(|part| {
            let mut lost = self.denied.iter().filter_map(|denied| denied.meet(&part));
            self.allowed.iter().any(|allowed| allowed.covers(&part))
                && lost.all(|lost| lost.parts().iter().all(is_dead))
        })
    }

    /// Says why a right is covered, or is not.
    pub fn explain(&self, right: &Right) -> Why<'_> {
        let denied = self.denied.iter().find(|denied| denied.overlaps(right));
        let allowed = || self.allowed.iter().find(|allowed| allowed.covers(right));
        match denied {
            Some(by) => Why::Denied { by },
            None => allowed().map_or(Why::Missing, |by| Why::Covered { by }),
        }
    }

    /// What is allowed as far as nothing denies it, in order.
    pub fn allowed(&self) -> &[Right] {
        &self.allowed
    }

    /// What is denied, in order.
    pub fn denied(&self) -> &[Right] {
        &self.denied
    }

    /// Whether it covers no right at all.
    pub fn is_none(&self) -> bool {
        Rights::none().covers_all(self)
    }

    /// The texts that it is read from again: first what is allowed, then what is denied.
    fn texts(&self) -> impl Iterator<Item = String> {
        let denied = self.denied.iter().map(|right| format!("!{right}"));
        self.allowed.iter().map(Right::to_string).chain(denied)
    }

    fn read<'a>(
        texts: impl Iterator<Item = Cow<'a, str>>,
        most: usize,
    ) -> Result<Rights, RightsError> {
        let (mut allowed, mut denied) = (Vec::new(), Vec::new());
        for (index, text) in texts.enumerate() {
            if index == most {
                return Err(RightsError::TooMany { most });
            }
            let (rights, text) = match text.strip_prefix('!') {
                Some(text) => (&mut denied, text),
                None => (&mut allowed, &*text),
            };
            let right = text.parse();
            let number = index + 1;
            rights.push(right.map_err(|source| RightsError::Right { number, source })?);
        }
        Ok(Rights::of(allowed).denying(denied))
    }
}

/// The rights that no other one covers, in order.
fn maximal(rights: impl IntoIterator<Item = Right>) -> Vec<Right> {
    let mut kept: Vec<Right> = Vec::new();
    for right in rights {
        if !kept.iter().any(|other| other.covers(&right)) {
            kept.retain(|other| !right.covers(other));
            kept.push(right);
        }
    }
    kept.sort_unstable();
    kept
}

/// One right to a line, those that are denied with a `!` before them.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts().enumerate().try_for_each(|(index, text)| {
            let gap = if index == 0 { "" } else { "\n" };
            write!(f, "{gap}{text}")
        })
    }
}

impl FromStr for Rights {
    type Err = RightsError;

    fn from_str(text: &str) -> Result<Rights, RightsError> {
        // Not `lines`, which would also swallow carriage returns.
        match text {
            "" => Ok(Rights::none()),
            text => Rights::read(text.split('\n').map(Cow::Borrowed), RIGHTS_MAX),
        }
    }
}

impl Serialize for Rights {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.texts())
    }
}

impl<'de> Deserialize<'de> for Rights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rights, D::Error> {
        deserializer.deserialize_seq(List)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = Rights;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rights such as `fs:read:src`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Rights, A::Error> {
        let mut texts = Vec::new();
        // One more than may be is enough to refuse them.
        while texts.len() <= RIGHTS_LISTED_MAX {
            match list.next_element::<Cow<'de, str>>()? {
                Some(text) => texts.push(text),
                None => break,
            }
        }
        Rights::read(texts.into_iter(), RIGHTS_LISTED_MAX).map_err(A::Error::custom)
    }
}

/// Why a right is covered by a set, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why<'a> {
    /// It is covered.
    Covered {
        /// The right that covers it.
        by: &'a Right,
    },
    /// It is not: a part of it is denied.
    Denied {
        /// The right that is denied.
        by: &'a Right,
    },
    /// It is not: nothing covers it.
    Missing,
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Covered { by } => write!(f, "covered by `{by}`"),
            Why::Denied { by } => write!(f, "denied by `{by}`"),
            Why::Missing => f.write_str("covered by no right"),
        }
    }
}
