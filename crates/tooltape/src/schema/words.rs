//! What is wrong with a value, in words that a model can act on.

use std::fmt;

use super::error::excerpt;

/// The most problems that a [`Mismatch`] names.
pub const PROBLEMS_MAX: usize = 5;

/// The longest text of a [`Mismatch`], in bytes.
pub const MISMATCH_BYTES_MAX: usize = 4_096;

/// The longest excerpt of a value or name in a [`Problem`], in bytes.
pub const EXCERPT_BYTES_MAX: usize = 100;

/// The longest pointer of a [`Problem`], in bytes.
pub const POINTER_BYTES_MAX: usize = 300;

/// The most allowed values or names that a [`Problem`] lists.
pub const ALLOWED_MAX: usize = 10;

/// The first things wrong with a value, written for the model that made it.
///
/// Its text has one line for each problem, the same whichever way the value was checked, and no
/// more than [`MISMATCH_BYTES_MAX`] bytes.
///
/// ```
/// use tooltape::{Checker, Doc, Limits};
///
/// let schema = serde_json::json!({
///     "type": "object",
///     "properties": { "path": { "type": "string" }, "lines": { "type": "integer" } },
///     "required": ["path"],
///     "additionalProperties": false,
/// });
/// let checker = Checker::compile_input(&schema)?;
/// let doc = Doc::read(r#"{"pth": "a.txt", "lines": "50"}"#, &Limits::default())?;
/// let mismatch = checker.check(&doc).unwrap_err();
/// assert_eq!(
///     mismatch.to_string(),
///     "missing `path`\n\
///      unknown field `pth`: did you mean `path`?\n\
///      /lines: expected integer, found string `\"50\"`: did you mean `50`?",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub(super) problems: Vec<Problem>,
    pub(super) more: More,
}

/// Whether a [`Mismatch`] leaves problems out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Exactly(usize),
    Unknown,
}

impl Mismatch {
    /// The problems: at least one, at most [`PROBLEMS_MAX`].
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The document would take more steps to check than it may.
    pub(super) fn too_much() -> Mismatch {
        let found = "one that takes too many steps to check".into();
        Mismatch { problems: vec![Problem::vague(found)], more: More::Exactly(0) }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        match self.more {
            More::Exactly(0) => {}
            More::Exactly(1) => lines.push("and 1 more problem".into()),
            More::Exactly(count) => lines.push(format!("and {count} more problems")),
            More::Unknown => lines.push("and more problems".into()),
        }
        let text = lines.join("\n");
        let cut = text.floor_char_boundary(MISMATCH_BYTES_MAX);
        f.write_str(&text[..cut])
    }
}

impl std::error::Error for Mismatch {}

/// One thing wrong with a value.
///
/// Every text in it is bounded, and cut between characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is the matter.
    pub kind: ProblemKind,
    /// Where in the document, as a JSON pointer; empty for the document itself. For a missing or
    /// unknown field it is the object.
    pub pointer: String,
    /// What was found; for a missing or unknown field, its name.
    pub found: String,
    /// What was expected; empty where only a suggestion can be made.
    pub expected: String,
    /// The allowed values, or the known names of fields, as far as there are any.
    pub allowed: Vec<String>,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

impl Problem {
    /// A problem with the whole document of which no more can be said.
    pub(super) fn vague(found: String) -> Problem {
        Problem {
            kind: ProblemKind::Other,
            pointer: String::new(),
            found,
            expected: "a value that the schema allows".into(),
            allowed: Vec::new(),
            suggestion: None,
        }
    }
}

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A required field is missing.
    Missing,
    /// A field has a name that is not known.
    Unknown,
    /// The value is of another type.
    Type,
    /// The value is not one of those listed.
    Enum,
    /// The value is too large, too small, too long or too short.
    Range,
    /// The value breaks any other rule.
    Other,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        match self.kind {
            ProblemKind::Missing => write!(f, "missing `{}`", self.found)?,
            ProblemKind::Unknown => write!(f, "unknown field `{}`", self.found)?,
            ProblemKind::Enum => write!(f, "`{}` is not allowed", self.found)?,
            ProblemKind::Type | ProblemKind::Range | ProblemKind::Other => {
                write!(f, "expected {}, found {}", self.expected, self.found)?;
            }
        }
        match (&self.suggestion, self.kind) {
            (Some(suggestion), _) => write!(f, ": did you mean `{suggestion}`?"),
            (None, ProblemKind::Unknown | ProblemKind::Enum) if !self.expected.is_empty() => {
                write!(f, ", expected {}", self.expected)
            }
            (None, _) => Ok(()),
        }
    }
}

/// Names and values as a list: "one of `a`, `b`".
pub(super) fn one_of(allowed: &[String], total: usize) -> String {
    let listed = allowed.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    match (allowed.len(), total - allowed.len()) {
        (1, 0) => listed,
        (_, 0) => format!("one of {listed}"),
        (_, more) => format!("one of {listed} or {more} more"),
    }
}

/// A name or value of limited length.
pub(super) fn short(text: &str) -> String {
    excerpt(text, EXCERPT_BYTES_MAX)
}
