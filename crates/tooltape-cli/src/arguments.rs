//! Arguments that were typed, as the JSON text that a model would have sent.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tooltape::Proposal;

use crate::args::{Pair, Typed};

/// The id of the one call that a command makes.
pub(crate) const CALL_ID: &str = "call_1";
/// How many references and branches of a schema are followed to find out a property's type.
const SCHEMA_STEPS_MAX: usize = 32;

/// Proposes a call with typed arguments.
///
/// A value is taken as it is where the property's schema takes a string, and is JSON elsewhere.
/// Numbers keep their spelling. What cannot be read is proposed as unparsed.
pub(crate) fn propose(name: &str, typed: &[Typed], schema: Option<&Value>) -> Proposal {
    let mut text = String::from("{");
    for typed in typed {
        let Pair { name: key, value } = match typed {
            Typed::Pair(pair) => pair,
            Typed::Unreadable { text, error } => {
                return Proposal::unparsed(CALL_ID, name, text.as_str(), error);
            }
        };
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        let quoted = || Value::from(value.as_str()).to_string();
        let json = serde_json::from_str::<&RawValue>(value);
        match (takes(schema, key), json) {
            (Takes::Strings, _) | (Takes::Nothing, Err(_)) => text.push_str(&quoted()),
            (Takes::Others | Takes::Nothing, Ok(json)) => text.push_str(json.get()),
            (Takes::Others, Err(err)) => {
                let raw = format!("{key}={value}");
                let error = format!("`{key}` takes no strings, so its value must be JSON: {err}");
                return Proposal::unparsed(CALL_ID, name, raw, error);
            }
        }
    }
    text.push('}');
    Proposal::new(CALL_ID, name, text)
}

/// Whether calls with this schema can have an argument of this name.
pub(crate) fn can_have(schema: &Value, key: &str) -> bool {
    let (mut has_properties, mut is_open, mut is_there) = (false, false, false);
    let mut steps = SCHEMA_STEPS_MAX;
    walk(schema, schema, &mut steps, &mut |object| {
        let closing = ["additionalProperties", "unevaluatedProperties"];
        let is_closed = closing.iter().any(|word| object.get(*word) == Some(&Value::Bool(false)));
        let properties = object.get("properties");
        if properties.is_none() && !is_closed {
            return;
        }
        has_properties = true;
        is_there |= properties.is_some_and(|properties| properties.get(key).is_some());
        is_open |= !is_closed;
    });
    is_there || is_open || !has_properties || steps == 0
}

/// What a property takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Strings,
    Others,
    /// There is no such property.
    Nothing,
}

fn takes(schema: Option<&Value>, key: &str) -> Takes {
    let Some(root) = schema else { return Takes::Nothing };
    let mut found = Vec::new();
    let mut steps = SCHEMA_STEPS_MAX;
    walk(root, root, &mut steps, &mut |object| {
        found.extend(object.get("properties").and_then(|properties| properties.get(key)));
    });
    let takes_string = found.iter().any(|property| {
        let mut is_string = false;
        let mut steps = SCHEMA_STEPS_MAX;
        walk(property, root, &mut steps, &mut |object| is_string |= names_string(object));
        is_string
    });
    match (takes_string, found.is_empty()) {
        (true, _) => Takes::Strings,
        (false, false) => Takes::Others,
        (false, true) => Takes::Nothing,
    }
}

fn names_string(schema: &Map<String, Value>) -> bool {
    match (schema.get("type"), schema.get("enum"), schema.get("const")) {
        (Some(Value::String(name)), _, _) => name == "string",
        (Some(Value::Array(names)), _, _) => names.iter().any(|name| name == "string"),
        (_, Some(Value::Array(values)), _) => values.iter().any(Value::is_string),
        (_, _, Some(value)) => value.is_string(),
        _ => false,
    }
}

/// Visits a schema and everything that describes the same value: references and branches.
fn walk<'a>(
    schema: &'a Value,
    root: &'a Value,
    steps: &mut usize,
    visit: &mut dyn FnMut(&'a Map<String, Value>),
) {
    let Value::Object(object) = schema else { return };
    if *steps == 0 {
        return;
    }
    *steps -= 1;
    visit(object);
    let target = object.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    let branches = ["anyOf", "oneOf", "allOf"].iter().filter_map(|word| object.get(*word));
    let branches = branches.filter_map(Value::as_array).flatten();
    for below in target.into_iter().chain(branches) {
        walk(below, root, steps, visit);
    }
}
