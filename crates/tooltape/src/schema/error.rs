//! Why a schema is refused when it is registered.

use std::borrow::Cow;

/// What this runtime refuses in a schema, by name.
///
/// A schema is judged once, when its tool is registered; nothing in it is fetched, and nothing in
/// it is silently ignored. Every text in here is bounded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema is larger than this runtime compiles.
    #[error("the schema has more than {max} {unit}")]
    TooLarge {
        /// What was counted: `bytes`, `values`, `names` or `patterns`.
        unit: &'static str,
        /// The limit.
        max: usize,
    },
    /// The schema is nested more deeply than this runtime compiles.
    #[error("the schema is nested, or leads from one subschema to the next, more than {max} deep")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// One value would have to be held against too many subschemas at once.
    #[error("`{pointer}` holds one value against more than {max} subschemas")]
    TooWide {
        /// Where in the schema, as a JSON pointer after `#`.
        pointer: String,
        /// The limit.
        max: usize,
    },
    /// A reference leads back to itself without looking further into the value.
    #[error("`{pointer}` refers to itself without end")]
    CyclicRef {
        /// Where in the schema, as a JSON pointer after `#`.
        pointer: String,
    },
    /// A reference names something outside the schema; it was not fetched.
    #[error("the reference `{reference}` leads out of the schema, and nothing is fetched")]
    RemoteRef {
        /// The reference, resolved as far as it can be.
        reference: String,
    },
    /// A reference names nothing.
    #[error("the reference `{reference}` leads nowhere")]
    BadRef {
        /// The reference.
        reference: String,
    },
    /// A regular expression cannot be used.
    #[error("the pattern `{pattern}` {fault}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        fault: PatternFault,
    },
    /// `$schema` names a dialect other than draft 2020-12 and draft 7.
    #[error("the dialect `{dialect}` is unknown, expected draft 2020-12 or draft 7")]
    UnknownDialect {
        /// What `$schema` says.
        dialect: String,
    },
    /// An input schema allows, or cannot be seen to exclude, values that are not objects.
    #[error("an input schema must describe an object, but `{pointer}` does not say `type: object`")]
    NotAnObject {
        /// The subschema that is to blame, as a JSON pointer after `#`.
        pointer: String,
    },
    /// The schema breaks the rules of its dialect.
    #[error("the schema is not valid: {reason}")]
    Invalid {
        /// What is wrong, and where.
        reason: String,
    },
}

/// Why a regular expression is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// It is not a regular expression of ECMA-262.
    #[error("is not a regular expression")]
    Syntax,
    /// It looks around or refers back, which only a backtracking engine can do; those can be made
    /// to run for ever, so none is here.
    #[error("looks around or refers back, which takes unbounded time")]
    Backtracking,
    /// It is too large when compiled, or says something that the linear engine cannot.
    #[error("is too large when compiled, or is not of the linear-time kind")]
    TooLarge,
}

impl SchemaError {
    /// A short name that never changes, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            SchemaError::TooLarge { .. } => "schema.too_large",
            SchemaError::TooDeep { .. } => "schema.too_deep",
            SchemaError::TooWide { .. } => "schema.too_wide",
            SchemaError::CyclicRef { .. } => "schema.cyclic_ref",
            SchemaError::RemoteRef { .. } => "schema.remote_ref",
            SchemaError::BadRef { .. } => "schema.bad_ref",
            SchemaError::BadPattern { .. } => "schema.bad_pattern",
            SchemaError::UnknownDialect { .. } => "schema.unknown_dialect",
            SchemaError::NotAnObject { .. } => "schema.not_an_object",
            SchemaError::Invalid { .. } => "schema.invalid",
        }
    }
}

/// A text cut to a number of bytes at a character boundary, control characters made visible.
pub(super) fn excerpt(text: &str, bytes_max: usize) -> String {
    let cut = text.floor_char_boundary(bytes_max);
    let shown = &text[..cut];
    let mut shown = if shown.contains(char::is_control) {
        let escape = |char: char| match char.is_control() {
            true => char.escape_default().to_string(),
            false => char.to_string(),
        };
        Cow::Owned(shown.chars().map(escape).collect())
    } else {
        Cow::Borrowed(shown)
    };
    if cut < text.len() {
        shown.to_mut().push('…');
    }
    shown.into_owned()
}
