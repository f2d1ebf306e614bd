//! Why a text is not a right.

use super::RIGHT_BYTES_MAX;

/// Why a text is not a right. What cannot be read grants nothing.
///
/// ```
/// use tooltape::Right;
///
/// let err = "fs:read:../etc".parse::<Right>().unwrap_err();
/// assert_eq!(
///     err.to_string(),
///     "in `fs:read:../etc`, the path is `../etc`, expected components other than ``, `.` and `..`"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RightError {
    /// There is nothing.
    #[error("a right is empty, expected `domain:action:scope`")]
    Empty,
    /// It is longer than [`RIGHT_BYTES_MAX`].
    #[error("a right has {bytes} bytes, expected at most {RIGHT_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It has fewer than three parts.
    #[error("`{right}` is no right, expected `domain:action:scope`")]
    Form {
        /// The text, escaped.
        right: String,
    },
    /// There are no rights of this domain.
    #[error("`{domain}` is no domain of rights, expected {expected}")]
    Domain {
        /// What was found, escaped.
        domain: String,
        /// The domains that there are.
        expected: &'static str,
    },
    /// The domain has no such action.
    #[error("`{action}` is no action of `{domain}`, expected {expected}")]
    Action {
        /// The domain.
        domain: &'static str,
        /// What was found, escaped.
        action: String,
        /// The actions that there are.
        expected: &'static str,
    },
    /// The rest does not say what the right is about.
    #[error("in `{right}`, {source}")]
    Scope {
        /// The text, escaped.
        right: String,
        /// What is wrong with it.
        source: ScopeError,
    },
}

/// What is wrong with one part of a right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// There is nothing.
    #[error("the {part} is empty, expected {expected}")]
    Empty {
        /// Which part.
        part: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// There is too much of it.
    #[error("the {part} has {found} {unit}, expected at most {most}")]
    TooMuch {
        /// Which part.
        part: &'static str,
        /// How much it has.
        found: usize,
        /// Of what.
        unit: &'static str,
        /// How much it may have.
        most: usize,
    },
    /// A character has no place there.
    #[error("the {part} has `{found}` at byte {at}, expected {expected}")]
    Character {
        /// Which part.
        part: &'static str,
        /// The character, escaped.
        found: String,
        /// Where in the part it is.
        at: usize,
        /// What would do.
        expected: &'static str,
    },
    /// It means nothing, or is not the one way to write what it means.
    #[error("the {part} is `{found}`, expected {expected}")]
    Form {
        /// Which part.
        part: &'static str,
        /// The text, escaped.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl ScopeError {
    pub(super) fn form(part: &'static str, found: &str, expected: impl Into<String>) -> ScopeError {
        ScopeError::Form { part, found: escaped(found), expected: expected.into() }
    }

    /// Refuses the first character of a part that is not `allowed`.
    pub(super) fn unless_all(
        part: &'static str,
        text: &str,
        expected: &'static str,
        allowed: impl Fn(char) -> bool,
    ) -> Result<(), ScopeError> {
        match text.char_indices().find(|(_, c)| !allowed(*c)) {
            None => Ok(()),
            Some((at, c)) => {
                let found = c.escape_debug().collect();
                Err(ScopeError::Character { part, found, at, expected })
            }
        }
    }

    /// Refuses a part that is empty, or has more than `most` bytes.
    pub(super) fn unless_sized(
        part: &'static str,
        text: &str,
        most: usize,
        expected: &'static str,
    ) -> Result<(), ScopeError> {
        match text.len() {
            0 => Err(ScopeError::Empty { part, expected }),
            found if found > most => Err(ScopeError::TooMuch { part, found, unit: "bytes", most }),
            _ => Ok(()),
        }
    }
}

/// Why a list of texts is not a set of rights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RightsError {
    /// There are more than may be read.
    #[error("there are more than {most} rights")]
    TooMany {
        /// How many may be read.
        most: usize,
    },
    /// One of them is not a right.
    #[error("right {number}: {source}")]
    Right {
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong with it.
        source: RightError,
    },
}

/// A text as errors show it: whatever is invisible is written out.
pub(super) fn escaped(text: &str) -> String {
    text.escape_debug().collect()
}
