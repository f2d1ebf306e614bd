//! Names what the `jsonschema` crate refuses in a schema.

use jsonschema::error::ValidationErrorKind as Wrong;
use jsonschema::{ReferencingError, ValidationError};
use serde_json::{Value, json};

use super::admit::QUOTE_BYTES_MAX;
use super::error::{PatternFault, SchemaError, excerpt};
use super::explain::explain;

/// Our name for what is wrong with a schema.
pub(super) fn refusal(err: &ValidationError<'_>, schema: &Value) -> SchemaError {
    match err.kind() {
        Wrong::Referencing(err) => bad_reference(err),
        Wrong::Format { format } if format == "regex" => {
            let pattern = err.instance().as_str().unwrap_or_default();
            let fault = pattern_fault(pattern);
            SchemaError::BadPattern { pattern: quote(pattern), fault }
        }
        _ => {
            let reason = explain(std::slice::from_ref(err), schema, &Value::Null).to_string();
            SchemaError::Invalid { reason }
        }
    }
}

fn bad_reference(err: &ReferencingError) -> SchemaError {
    match err {
        ReferencingError::Unretrievable { uri, .. } => {
            SchemaError::RemoteRef { reference: quote(uri) }
        }
        ReferencingError::PointerToNowhere { pointer: name }
        | ReferencingError::InvalidPercentEncoding { pointer: name, .. }
        | ReferencingError::InvalidArrayIndex { pointer: name, .. }
        | ReferencingError::NoSuchAnchor { anchor: name }
        | ReferencingError::InvalidAnchor { anchor: name } => {
            SchemaError::BadRef { reference: quote(&format!("#{name}")) }
        }
        ReferencingError::UnknownSpecification { specification } => {
            SchemaError::UnknownDialect { dialect: quote(specification) }
        }
        ReferencingError::InvalidUri(_) | ReferencingError::CircularMetaschema { .. } => {
            let reason = err.to_string().replacen("Invalid URI", "invalid URI", 1);
            SchemaError::Invalid { reason: quote(&reason) }
        }
    }
}

/// Why the linear engine does not take a pattern.
fn pattern_fault(pattern: &str) -> PatternFault {
    let syntax = jsonschema::options()
        .should_validate_formats(true)
        .build(&json!({ "format": "regex" }))
        .expect("a schema of one known format compiles");
    if !syntax.is_valid(&Value::from(pattern)) {
        return PatternFault::Syntax;
    }
    // With escaped characters gone, a group that looks around can be seen by how it begins, and a
    // digit or `k` that was escaped is a reference to a group.
    let mut chars = pattern.chars();
    let mut plain = String::new();
    let mut refers_back = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => refers_back |= matches!(chars.next(), Some('1'..='9' | 'k')),
            char => plain.push(char),
        }
    }
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| plain.contains(group));
    if refers_back || looks_around { PatternFault::Backtracking } else { PatternFault::TooLarge }
}

fn quote(text: &str) -> String {
    excerpt(text, QUOTE_BYTES_MAX)
}
