//! Sees whether a schema describes objects only, as every input schema must.

use serde_json::Value;

use super::admit::{Dialect, QUOTE_BYTES_MAX, SCHEMA_CHAIN_MAX};
use super::error::{SchemaError, excerpt};
use super::refs::Graph;

/// Refuses a schema that allows, or cannot be seen to exclude, values other than objects.
///
/// It describes an object if it says `type: object`; or lists only objects in `enum` or `const`;
/// or if that holds for what its `$ref` leads to, for one of its `allOf`, or for all of its
/// `anyOf` or `oneOf`. So `true` and `{}` do not: they allow everything.
pub(super) fn must_describe_object(graph: &Graph<'_>, dialect: Dialect) -> Result<(), SchemaError> {
    match culprit(graph, dialect, graph.root(), 0) {
        None => Ok(()),
        Some(schema) => {
            let pointer = excerpt(&graph.pointer_to(schema), QUOTE_BYTES_MAX);
            Err(SchemaError::NotAnObject { pointer })
        }
    }
}

/// The subschema because of which a schema does not describe an object.
fn culprit<'s>(
    graph: &Graph<'s>,
    dialect: Dialect,
    schema: &'s Value,
    chain: usize,
) -> Option<&'s Value> {
    let Some(keywords) = schema.as_object().filter(|_| chain <= SCHEMA_CHAIN_MAX) else {
        return Some(schema);
    };
    let within = |schema: &'s Value| culprit(graph, dialect, schema, chain + 1);
    let targets = |reference| graph.targets(schema, reference);
    let referred = keywords.get("$ref").and_then(Value::as_str).map(targets).unwrap_or_default();
    let by_reference = match referred.as_slice() {
        [target] => within(target),
        _ => Some(schema),
    };
    if by_reference.is_none() || (dialect == Dialect::Draft7 && !referred.is_empty()) {
        return by_reference;
    }
    let only_object = match keywords.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => !names.is_empty() && names.iter().all(|name| name == "object"),
        _ => false,
    };
    let all_objects = |values: &Vec<Value>| values.iter().all(Value::is_object);
    let listed = keywords.get("const").is_some_and(Value::is_object)
        || keywords.get("enum").and_then(Value::as_array).is_some_and(all_objects);
    let list = |keyword| keywords.get(keyword).and_then(Value::as_array);
    if only_object
        || listed
        || list("allOf").is_some_and(|all| all.iter().any(|schema| within(schema).is_none()))
    {
        return None;
    }
    // Where the branches are what should say so, the one that does not is to blame.
    let mut blame = schema;
    for branches in [list("anyOf"), list("oneOf")].into_iter().flatten() {
        match branches.iter().find_map(within) {
            None => return None,
            Some(branch) => blame = branch,
        }
    }
    Some(by_reference.filter(|_| !referred.is_empty()).unwrap_or(blame))
}
