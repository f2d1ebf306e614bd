//! What a rule says of an argument: where it is, and what it must be like.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::glob::Glob;
use super::host::host_of;
use super::literal::{Literal, Number};
use crate::canon::{Canon, Kind, Node, Peek};
use crate::right::Hosts;

/// The most steps from the arguments down to one of them.
pub const ARGUMENT_STEPS_MAX: usize = 16;

/// Which way a rule errs where it is in doubt: one that allows matches nothing then, and one that
/// asks or denies matches everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lean {
    Allows,
    Holds,
}

impl Lean {
    /// What is in doubt counts as this.
    pub(super) fn sure(self, found: Option<bool>) -> bool {
        found.unwrap_or(self == Lean::Holds)
    }

    /// Of several values all must match to be allowed, and one to be held.
    pub(super) fn over<T>(
        self,
        mut values: impl Iterator<Item = T>,
        matches: impl FnMut(T) -> bool,
    ) -> bool {
        match self {
            Lean::Holds => values.any(matches),
            Lean::Allows => {
                let mut values = values.peekable();
                values.peek().is_some() && values.all(matches)
            }
        }
    }
}

/// Where an argument is: a top-level name, or a JSON pointer, which begins with a `/`.
///
/// In a pointer `*` stands for every item of a list.
///
/// ```
/// use tooltape::rule::Argument;
///
/// assert_eq!("path".parse::<Argument>().unwrap().name(), "path");
/// assert_eq!("/edits/*/new".parse::<Argument>().unwrap().name(), "edits");
/// assert!("/edits/~2".parse::<Argument>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Argument {
    text: Box<str>,
    /// The way down, of at least one step.
    steps: Box<[Box<str>]>,
}

/// Why a text does not say where an argument is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found `{found}`, expected {expected}")]
pub struct ArgumentError {
    found: String,
    expected: &'static str,
}

impl Argument {
    /// The top-level argument that it is, or is in.
    pub fn name(&self) -> &str {
        &self.steps[0]
    }

    /// Whether it is what rules call the file that a call is about.
    pub(super) fn is_path(&self) -> bool {
        matches!(&*self.steps, [name] if &**name == "path")
    }

    /// Whether what is there matches; what is not there does not.
    pub(super) fn is_like(&self, root: Node<'_>, test: &Test, lean: Lean) -> bool {
        below(root, &self.steps, test, lean)
    }
}

fn below(node: Node<'_>, steps: &[Box<str>], test: &Test, lean: Lean) -> bool {
    let (Some((step, rest)), kind) = (steps.split_first(), node.kind()) else {
        return match node.kind() {
            Kind::Array => lean.over(node.items(), |item| lean.sure(test.of(&item, lean))),
            Kind::Null | Kind::Bool(_) | Kind::Number | Kind::String | Kind::Object => {
                lean.sure(test.of(&node, lean))
            }
        };
    };
    let nth = || step.parse().ok().and_then(|at| node.items().nth(at));
    match kind {
        Kind::Object if **step == *"*" => {
            lean.over(node.fields().map(|(_, field)| field), |it| below(it, rest, test, lean))
        }
        Kind::Object => node.get(step).is_some_and(|field| below(field, rest, test, lean)),
        Kind::Array if **step == *"*" => {
            lean.over(node.items(), |item| below(item, rest, test, lean))
        }
        Kind::Array => nth().is_some_and(|item| below(item, rest, test, lean)),
        // What is not there is nowhere, and what is of another kind is in doubt.
        Kind::Null => false,
        Kind::Bool(_) | Kind::Number | Kind::String => lean.sure(None),
    }
}

impl FromStr for Argument {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Argument, ArgumentError> {
        let refused = |expected| ArgumentError { found: text.chars().take(80).collect(), expected };
        let Some(pointer) = text.strip_prefix('/') else {
            return match text {
                "" => Err(refused("the name of an argument, or a JSON pointer")),
                name => Ok(Argument { text: name.into(), steps: [name.into()].into() }),
            };
        };
        let step = |step: &str| {
            let plain = step.replace("~0", "").replace("~1", "");
            (!plain.contains('~')).then(|| step.replace("~1", "/").replace("~0", "~").into())
        };
        let steps = pointer.split('/').map(step).collect::<Option<Box<[_]>>>();
        let steps = steps.ok_or_else(|| refused("`~0` for `~` and `~1` for `/` in a pointer"))?;
        match steps.len() <= ARGUMENT_STEPS_MAX {
            true => Ok(Argument { text: text.into(), steps }),
            false => Err(refused("a pointer of at most 16 steps")),
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// What an argument must be like.
///
/// Of a list, every item must be for a rule that allows, and one for a rule that asks or denies. An
/// argument that is of another kind than the test is about matches only rules that ask or deny.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// A path that matches.
    Glob(Glob),
    /// One of these values.
    OneOf(Vec<Literal>),
    /// A number, and no smaller one.
    AtLeast(Number),
    /// A number, and no larger one.
    AtMost(Number),
    /// A text of more characters.
    LongerThan(usize),
    /// A text of fewer characters.
    ShorterThan(usize),
    /// A host or an HTTP address of one of these hosts.
    Host(#[serde(serialize_with = "as_texts")] Vec<Hosts>),
}

impl Test {
    /// Whether a rule that asks or denies is about this file, or about something in this folder.
    pub(super) fn holds_for(&self, path: &str) -> bool {
        if let Test::Glob(glob) = self {
            return glob.is_below(path) || Lean::Holds.sure(glob.matches(path));
        }
        let canon = Canon::string(path);
        let peek = Peek::new(&canon);
        peek.root().is_none_or(|node| Lean::Holds.sure(self.of(&node, Lean::Holds)))
    }

    /// Whether a value is like this; nothing, where that is in doubt.
    fn of(&self, node: &Node<'_>, lean: Lean) -> Option<bool> {
        let long = || node.as_str().map(|text| text.chars().count());
        match self {
            Test::Glob(glob) => glob.matches(&node.as_str()?),
            Test::OneOf(literals) => {
                let mut found = literals.iter().filter_map(|literal| literal.is(node)).peekable();
                found.peek().is_some().then(|| found.any(|is| is))
            }
            Test::AtLeast(least) => Some(least.compared_with(node)? != Ordering::Greater),
            Test::AtMost(most) => Some(most.compared_with(node)? != Ordering::Less),
            Test::LongerThan(chars) => Some(long()? > *chars),
            Test::ShorterThan(chars) => Some(long()? < *chars),
            Test::Host(hosts) => {
                let host = Hosts::from(host_of(&node.as_str()?)?);
                Some(is_among(hosts, &host, lean))
            }
        }
    }
}

/// Whether hosts are among those of a rule: all of them to be allowed, and some to be held.
pub(super) fn is_among(named: &[Hosts], asked: &Hosts, lean: Lean) -> bool {
    named.iter().any(|named| match lean {
        Lean::Allows => named.covers(asked),
        Lean::Holds => named.covers(asked) || asked.covers(named),
    })
}

pub(super) fn as_texts<T: fmt::Display, S: Serializer>(
    values: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Glob(glob) => write!(f, "like `{glob}`"),
            Test::OneOf(literals) => f.write_str(&either(literals)),
            Test::AtLeast(least) => write!(f, "at least {least}"),
            Test::AtMost(most) => write!(f, "at most {most}"),
            Test::LongerThan(chars) => write!(f, "longer than {chars} characters"),
            Test::ShorterThan(chars) => write!(f, "shorter than {chars} characters"),
            Test::Host(hosts) => write!(f, "at {}", either(hosts)),
        }
    }
}

/// Values with `or` between them.
pub(super) fn either<T: fmt::Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join(" or ")
}
