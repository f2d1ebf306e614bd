//! Says in words what a broken rule expects.

use jsonschema::error::ValidationErrorKind as Wrong;
use serde_json::Value;

use super::words::short;

/// A limit that a value is beyond.
pub(super) struct Limit {
    pub(super) expected: String,
    /// Whether it is about the number of characters, items or fields, not about the value itself.
    pub(super) counted: bool,
}

impl Limit {
    pub(super) fn of(wrong: &Wrong) -> Option<Limit> {
        let plain = |expected| Some(Limit { expected, counted: false });
        let counted = |words: &str, limit: u64, unit: &str| {
            let plural = if limit == 1 { "" } else { "s" };
            Some(Limit { expected: format!("{words} {limit} {unit}{plural}"), counted: true })
        };
        match wrong {
            Wrong::Minimum { limit } => plain(format!("at least {limit}")),
            Wrong::Maximum { limit } => plain(format!("at most {limit}")),
            Wrong::ExclusiveMinimum { limit } => plain(format!("more than {limit}")),
            Wrong::ExclusiveMaximum { limit } => plain(format!("less than {limit}")),
            Wrong::MultipleOf { multiple_of } => plain(format!("a multiple of {multiple_of}")),
            Wrong::MinLength { limit } => counted("at least", *limit, "character"),
            Wrong::MaxLength { limit } => counted("at most", *limit, "character"),
            Wrong::MinItems { limit } => counted("at least", *limit, "item"),
            Wrong::MaxItems { limit } => counted("at most", *limit, "item"),
            Wrong::AdditionalItems { limit } => counted("at most", *limit as u64, "item"),
            Wrong::MinProperties { limit } => counted("at least", *limit, "field"),
            Wrong::MaxProperties { limit } => counted("at most", *limit, "field"),
            _ => None,
        }
    }
}

/// What a rule without a limit expects, given what its keyword says in the schema.
pub(super) fn expectation(wrong: &Wrong, keyword: Option<&Value>) -> String {
    match wrong {
        Wrong::Pattern { pattern } => format!("text that matches `{}`", short(pattern)),
        Wrong::UniqueItems => "items that all differ".into(),
        Wrong::FalseSchema => "nothing".into(),
        Wrong::Contains => match keyword {
            Some(Value::Number(number)) => format!("{number} items as `contains` describes them"),
            Some(schema) => format!("an item that matches `{}`", short(&schema.to_string())),
            None => "an item that matches `contains`".into(),
        },
        Wrong::UnevaluatedItems { .. } => "no further items".into(),
        Wrong::Not { schema } => {
            format!("anything that does not match `{}`", short(&schema.to_string()))
        }
        Wrong::OneOfMultipleValid { .. } => "a value of one form, not of several".into(),
        Wrong::ContentEncoding { content_encoding } => {
            format!("text in the encoding `{}`", short(content_encoding))
        }
        Wrong::ContentMediaType { content_media_type } => {
            format!("text of the type `{}`", short(content_media_type))
        }
        other => format!("what `{}` asks for", short(other.keyword())),
    }
}
