//! Values in rules that arguments are compared with: exactly, whatever their numbers.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::canon::{Doc, Kind, Limits, Node, compare};

/// An exact decimal number: it is never rounded, and `1`, `1.0` and `1e0` are one number.
///
/// ```
/// use tooltape::rule::Number;
///
/// let number = |text: &str| text.parse::<Number>().unwrap();
/// assert_eq!(number("1e2"), number("100.0"));
/// assert!(number("9007199254740993") > number("9007199254740992"));
/// assert!(number("-0.1") < number("0"));
/// assert!("NaN".parse::<Number>().is_err());
/// ```
#[derive(Clone, Serialize)]
pub struct Number(
    /// In canonical form.
    Box<str>,
);

/// A text that is no JSON number, or no exact one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found `{found}`, expected a number such as `12`, `-0.5` or `1e6`")]
pub struct NotANumber {
    found: String,
}

impl Number {
    /// How it compares with a number of some arguments.
    pub(super) fn compared_with(&self, node: &Node<'_>) -> Option<Ordering> {
        node.number_text().map(|text| compare(&self.0, text))
    }
}

impl FromStr for Number {
    type Err = NotANumber;

    fn from_str(text: &str) -> Result<Number, NotANumber> {
        let refused = || NotANumber { found: text.chars().take(80).collect() };
        let doc = Doc::read(text, &Limits::ARGUMENTS).map_err(|_| refused())?;
        match doc.root().kind() {
            Kind::Number => Ok(Number(doc.canonical().as_str().into())),
            Kind::Null | Kind::Bool(_) | Kind::String | Kind::Array | Kind::Object => {
                Err(refused())
            }
        }
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Number {
        Number(number.to_string().into())
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A value that an argument may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Literal {
    /// `true` or `false`.
    Bool(bool),
    /// A number, exactly.
    Number(Number),
    /// A text, exactly.
    Text(String),
}

impl Literal {
    /// Whether a value is this one; nothing, where it is of another kind.
    pub(super) fn is(&self, node: &Node<'_>) -> Option<bool> {
        match self {
            Literal::Bool(truth) => match node.kind() {
                Kind::Bool(found) => Some(found == *truth),
                Kind::Null | Kind::Number | Kind::String | Kind::Array | Kind::Object => None,
            },
            Literal::Number(number) => number.compared_with(node).map(Ordering::is_eq),
            Literal::Text(text) => node.as_str().map(|found| found == text.as_str()),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bool(truth) => truth.fmt(f),
            Literal::Number(number) => number.fmt(f),
            Literal::Text(text) => write!(f, "`{text}`"),
        }
    }
}
