//! One schema for values that are valid for two.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::document::list;

/// Two schemas as one, and the keywords of the first that gave way because they could not be
/// combined. The annotations of the second win. `None`: no value is valid for both.
pub(super) fn merge(
    first: &Map<String, Value>,
    second: &Map<String, Value>,
) -> Option<(Map<String, Value>, Vec<String>)> {
    let mut merged = first.clone();
    let mut lost = Vec::new();
    for (keyword, theirs) in second {
        let Some(ours) = merged.get(keyword).filter(|ours| *ours != theirs) else {
            merged.insert(keyword.clone(), theirs.clone());
            continue;
        };
        let both = match keyword.as_str() {
            "type" => common_types(ours, theirs)?,
            "enum" => {
                let listed = spellings(elements(theirs));
                let shared = elements(ours).iter().filter(|one| listed.contains(&one.to_string()));
                let shared = shared.cloned().collect::<Vec<Value>>();
                (!shared.is_empty()).then_some(Value::Array(shared))?
            }
            "const" => return None,
            "required" => {
                let known = spellings(elements(ours));
                let more = elements(theirs).iter().filter(|one| !known.contains(&one.to_string()));
                elements(ours).iter().chain(more).cloned().collect()
            }
            "properties" | "patternProperties" => by_name(ours, theirs),
            "items" | "propertyNames" => all_of(ours, theirs),
            "additionalProperties" => match (ours, theirs) {
                (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
                (ours, theirs) => all_of(ours, theirs),
            },
            "allOf" => elements(ours).iter().chain(elements(theirs)).cloned().collect(),
            "anyOf" | "oneOf" => {
                let other = json!({ keyword: theirs });
                elements(ours).iter().map(|branch| all_of(branch, &other)).collect()
            }
            "not" => json!({ "anyOf": [ours, theirs] }),
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                if number(ours) > number(theirs) { ours.clone() } else { theirs.clone() }
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                if number(ours) < number(theirs) { ours.clone() } else { theirs.clone() }
            }
            "uniqueItems" => Value::Bool(true),
            "title" | "description" | "default" | "examples" | "example" | "deprecated"
            | "readOnly" | "writeOnly" | "$schema" | "$id" | "$comment" | "$defs"
            | "definitions" => theirs.clone(),
            _ => {
                lost.push(keyword.clone());
                theirs.clone()
            }
        };
        merged.insert(keyword.clone(), both);
    }
    Some((merged, lost))
}

/// Whether a schema only compares or demands properties, and describes no value.
pub(super) fn only_constrains(schema: &Value) -> bool {
    const CONSTRAINTS: [&str; 8] = [
        "required",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "minProperties",
        "maxProperties",
    ];
    schema.as_object().is_some_and(|schema| {
        let mut keywords = schema.keys().map(String::as_str);
        !schema.is_empty()
            && keywords.all(|keyword| CONSTRAINTS.contains(&keyword) || keyword == "description")
    })
}

/// Whether a list of schemas is there, and is more than constraints on properties.
pub(super) fn describes(schema: &Map<String, Value>, keyword: &str) -> bool {
    list(schema, keyword).iter().any(|branch| !only_constrains(branch))
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Values as text, to find one quickly.
pub(super) fn spellings(values: &[Value]) -> BTreeSet<String> {
    values.iter().map(Value::to_string).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn all_of(ours: &Value, theirs: &Value) -> Value {
    if ours == theirs { ours.clone() } else { json!({ "allOf": [ours, theirs] }) }
}

fn by_name(ours: &Value, theirs: &Value) -> Value {
    let mut named = ours.as_object().cloned().unwrap_or_default();
    for (name, schema) in theirs.as_object().into_iter().flatten() {
        let both = named.get(name).map_or_else(|| schema.clone(), |ours| all_of(ours, schema));
        named.insert(name.clone(), both);
    }
    Value::Object(named)
}

fn common_types(ours: &Value, theirs: &Value) -> Option<Value> {
    let names = |value: &Value| match value {
        Value::Array(names) => names.clone(),
        name => vec![name.clone()],
    };
    let (ours, theirs) = (names(ours), names(theirs));
    let admits = |names: &[Value], name: &Value| {
        names.contains(name) || (name == "integer" && names.contains(&json!("number")))
    };
    let mut shared = ours.iter().filter(|name| admits(&theirs, name)).cloned().collect::<Vec<_>>();
    for name in theirs.iter().filter(|name| admits(&ours, name)) {
        if !shared.contains(name) {
            shared.push(name.clone());
        }
    }
    match shared.len() {
        0 => None,
        1 => shared.pop(),
        _ => Some(Value::Array(shared)),
    }
}
