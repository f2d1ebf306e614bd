//! Alternatives: `null`, `anyOf`, `oneOf` and several types at once.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::document::list;
use super::merge::spellings;
use super::restore::Way;
use super::rules::INTEGER_FORMATS;
use super::walk::{Draft, Node, SILENT, Walker};
use super::{LossKind, Uncompilable};

/// How many branches of a `oneOf` are compared in pairs to see that they exclude each other.
const COMPARED_MAX: usize = 200;
/// Keywords about a union as a whole, which stay beside it.
const OUTER: [&str; 13] = [
    "description",
    "title",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "not",
    "if",
    "then",
    "else",
    "discriminator",
];

/// Takes the alternative `null` out of a schema, and says whether there was one.
pub(super) fn take_null(schema: &mut Map<String, Value>) -> bool {
    let mut found = false;
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        let before = types.len();
        if before > 1 {
            types.retain(|name| name != "null");
        }
        let admits = types.len() < before;
        if types.len() == 1 {
            let only = types.remove(0);
            schema.insert("type".into(), only);
        }
        // Where values are listed, `null` has to be one of them.
        found |= admits && !schema.contains_key("enum") && !schema.contains_key("const");
    }
    for keyword in ["enum", "anyOf", "oneOf"] {
        let is_enum = keyword == "enum";
        let Some(Value::Array(values)) = schema.get_mut(keyword) else { continue };
        let is_null = |value: &Value| if is_enum { value.is_null() } else { is_only_null(value) };
        if values.iter().any(is_null) && !values.iter().all(is_null) {
            values.retain(|value| !is_null(value));
            found = true;
        }
    }
    found
}

fn is_only_null(schema: &Value) -> bool {
    let null = Value::Null;
    schema["type"] == "null"
        || schema.get("const") == Some(&null)
        || schema.get("enum") == Some(&json!([null]))
}

/// The types that a schema names or implies; empty if any will do.
pub(super) fn types(schema: &Map<String, Value>) -> Vec<String> {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    let mut types = match schema.get("type") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::String(name)) => vec![name.clone()],
        _ => match schema.get("const") {
            Some(value) => vec![type_of(value).to_owned()],
            None => list(schema, "enum").iter().map(|value| type_of(value).to_owned()).collect(),
        },
    };
    if types.is_empty() {
        if has(&["properties", "required", "additionalProperties", "patternProperties"]) {
            types.push("object".to_owned());
        } else if has(&["items", "prefixItems"]) {
            types.push("array".to_owned());
        }
    }
    let mut seen = BTreeSet::new();
    types.retain(|name| seen.insert(name.clone()));
    if types.iter().any(|name| name == "number") {
        types.retain(|name| name != "integer");
    }
    types
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// One alternative of a compiled union.
struct Part {
    /// The branch of the original that it is from.
    from: usize,
    schema: Value,
    way: Way,
}

impl Walker<'_> {
    /// Alternatives become `anyOf`, each with what stood beside them.
    pub(super) fn union(
        &mut self,
        mut schema: Map<String, Value>,
        keyword: &str,
        at: &str,
    ) -> Result<Draft, Uncompilable> {
        let Some(Value::Array(branches)) = schema.remove(keyword) else {
            return self.typed(schema, at);
        };
        if let [Value::Object(branch)] = branches.as_slice() {
            let only = self.merged(branch, &schema, at)?;
            return self.draft(only, at);
        }
        if keyword == "oneOf" && !self.exclude_each_other(&branches) {
            self.lose(at, "oneOf", LossKind::Widened);
        }
        let (outer, beside): (Map<_, _>, Map<_, _>) =
            schema.clone().into_iter().partition(|(keyword, _)| is_outer(keyword));
        let parts = self.parts(&branches, &beside, &format!("{at}/{keyword}"))?;
        // One alternative `null` is enough, and it is the last.
        let (nulls, others): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.schema["type"] == "null");
        let is_nullable = !nulls.is_empty() && !others.is_empty();
        let parts = if others.is_empty() { nulls } else { others };
        let mut draft = match parts.as_slice() {
            [] => return Err(Uncompilable::Never { pointer: at.to_owned() }),
            [only] => {
                let only = branches[only.from].as_object().cloned().unwrap_or_default();
                let only = self.merged(&only, &schema, at)?;
                self.draft(only, at)?
            }
            parts => {
                let mut outer = outer;
                let mut draft = Draft::of(&mut outer);
                if !listed(parts, &mut draft) {
                    let schemas = parts.iter().map(|part| part.schema.clone()).collect();
                    draft.schema.insert("anyOf".into(), schemas);
                    let ways = parts.iter().map(|part| (part.schema.clone(), part.way.clone()));
                    draft.way = Way::union(ways.collect());
                }
                self.carry_all(&mut draft, outer, at);
                draft
            }
        };
        if is_nullable {
            self.rules.admit_null(&mut draft.schema);
        }
        Ok(draft)
    }

    /// The alternatives, compiled; a union of unions is one union, and none comes twice.
    fn parts(
        &mut self,
        branches: &[Value],
        beside: &Map<String, Value>,
        at: &str,
    ) -> Result<Vec<Part>, Uncompilable> {
        let (mut parts, mut seen) = (Vec::new(), BTreeSet::new());
        for (from, branch) in branches.iter().enumerate() {
            let joined = json!({ "allOf": [beside, branch] });
            let branch = if beside.is_empty() { branch } else { &joined };
            let level = self.level;
            let Node { schema, way } = match self.node(branch, &format!("{at}/{from}")) {
                Ok(node) => node,
                // A branch that nothing can be valid for is no alternative.
                Err(Uncompilable::Never { .. }) => {
                    self.level = level;
                    continue;
                }
                Err(err) => return Err(err),
            };
            let found = match schema.get("anyOf") {
                Some(Value::Array(schemas)) if schema.len() == 1 => {
                    let ways = match way {
                        Way::Union(branches) => branches.into_iter().map(|(_, way)| way).collect(),
                        way => vec![way; schemas.len()],
                    };
                    // An alternative `null` was added without a way.
                    let ways = ways.into_iter().chain(std::iter::repeat(Way::Keep));
                    schemas.iter().cloned().zip(ways).collect()
                }
                _ => vec![(Value::Object(schema), way)],
            };
            for (schema, way) in found {
                if seen.insert(schema.to_string()) {
                    parts.push(Part { from, schema, way });
                }
            }
        }
        Ok(parts)
    }

    /// Several types become alternatives, each with the keywords that concern it.
    pub(super) fn split(
        &mut self,
        schema: Map<String, Value>,
        types: &[String],
        at: &str,
    ) -> Result<Draft, Uncompilable> {
        let mut union = Map::new();
        let mut branches = types
            .iter()
            .map(|name| Map::from_iter([("type".into(), json!(name))]))
            .collect::<Vec<_>>();
        for (keyword, value) in schema {
            if keyword == "type" {
                continue;
            }
            let mut is_placed = false;
            for (name, branch) in types.iter().zip(&mut branches) {
                if let Some(value) = share(&keyword, &value, name) {
                    branch.insert(keyword.clone(), value);
                    is_placed = true;
                }
            }
            if !is_placed {
                union.insert(keyword, value);
            }
        }
        union.insert("anyOf".into(), branches.into_iter().map(Value::Object).collect());
        self.union(union, "anyOf", at)
    }

    /// Whether no value can be valid for two of these schemas.
    fn exclude_each_other(&self, branches: &[Value]) -> bool {
        let resolved = branches.iter().map(|branch| match branch["$ref"].as_str() {
            Some(reference) => self.document.resolve(reference).map_or(branch, |(_, found)| found),
            None => branch,
        });
        let branches = resolved.collect::<Vec<&Value>>();
        branches.len() <= COMPARED_MAX
            && branches.iter().enumerate().all(|(index, first)| {
                branches[index + 1..].iter().all(|second| exclude(first, second))
            })
    }
}

fn is_outer(keyword: &str) -> bool {
    OUTER.contains(&keyword) || (SILENT.contains(&keyword) && keyword != "type")
}

/// The types that a keyword constrains, or nothing if it is about any value.
pub(super) fn constrained(keyword: &str, value: &Value) -> Option<&'static [&'static str]> {
    const NUMBERS: &[&str] = &["number", "integer"];
    match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Some(NUMBERS)
        }
        "minLength" | "maxLength" | "pattern" | "contentEncoding" | "contentMediaType" => {
            Some(&["string"])
        }
        "format" if INTEGER_FORMATS.iter().any(|(format, _, _)| value == format) => Some(NUMBERS),
        "format" => Some(&["string"]),
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains"
        | "minContains" | "maxContains" => Some(&["array"]),
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "dependentRequired"
        | "dependentSchemas" => Some(&["object"]),
        _ => None,
    }
}

/// The part of a keyword that is only about values of a type, if there is one.
fn share(keyword: &str, value: &Value, name: &str) -> Option<Value> {
    if keyword == "enum" {
        let values = value.as_array().into_iter().flatten();
        let fitting = values.filter(|value| is_of(value, name)).cloned().collect::<Vec<_>>();
        return (!fitting.is_empty()).then_some(Value::Array(fitting));
    }
    constrained(keyword, value).filter(|types| types.contains(&name)).map(|_| value.clone())
}

/// Whether a value is of a type.
pub(super) fn is_of(value: &Value, name: &str) -> bool {
    type_of(value) == name || (name == "number" && value.is_number())
}

/// Writes alternatives that are only strings as one list; what each of them says moves along.
fn listed(parts: &[Part], draft: &mut Draft) -> bool {
    const PLAIN: [&str; 4] = ["type", "const", "enum", "description"];
    let (mut values, mut notes) = (Vec::new(), Vec::new());
    for part in parts {
        let Some(schema) = part.schema.as_object() else { return false };
        let found = constants(schema);
        let is_plain = schema.keys().all(|keyword| PLAIN.contains(&keyword.as_str()));
        if !is_plain || found.is_empty() || !found.iter().all(Value::is_string) {
            return false;
        }
        if let Some(text) = schema.get("description").and_then(Value::as_str) {
            let names = found.iter().map(Value::to_string).collect::<Vec<_>>();
            notes.push(format!("{}: {text}", names.join(", ")));
        }
        values.extend(found.iter().cloned());
    }
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.to_string()));
    draft.schema.insert("type".into(), "string".into());
    draft.schema.insert("enum".into(), Value::Array(values));
    draft.notes.extend(notes);
    true
}

/// Whether two schemas plainly have no value in common.
fn exclude(first: &Value, second: &Value) -> bool {
    let (Some(first), Some(second)) = (first.as_object(), second.as_object()) else { return false };
    let (ours, theirs) = (types(first), types(second));
    let overlap = |name: &String| {
        theirs.contains(name)
            || (name == "integer" && theirs.iter().any(|other| other == "number"))
            || (name == "number" && theirs.iter().any(|other| other == "integer"))
    };
    if !ours.is_empty() && !theirs.is_empty() && !ours.iter().any(overlap) {
        return true;
    }
    let by_value = |first: &Map<String, Value>, second: &Map<String, Value>| {
        let (ours, theirs) = (constants(first), constants(second));
        let theirs = spellings(theirs);
        !ours.is_empty() && !theirs.is_empty() && spellings(ours).is_disjoint(&theirs)
    };
    let required =
        |schema| list(schema, "required").iter().filter_map(Value::as_str).collect::<BTreeSet<_>>();
    let (our_needs, their_needs) = (required(first), required(second));
    let property = |schema: &Map<String, Value>, name: &str| {
        schema.get("properties").and_then(|all| all.get(name)).and_then(Value::as_object).cloned()
    };
    let by_tag = our_needs.intersection(&their_needs).any(|name| {
        let (ours, theirs) = (property(first, name), property(second, name));
        ours.zip(theirs).is_some_and(|(ours, theirs)| by_value(&ours, &theirs))
    });
    let forbids = |closed: &Map<String, Value>, other: &Map<String, Value>| {
        closed.get("additionalProperties") == Some(&Value::Bool(false))
            && list(other, "required")
                .iter()
                .filter_map(Value::as_str)
                .any(|name| closed.get("properties").is_none_or(|all| all.get(name).is_none()))
    };
    by_value(first, second) || by_tag || forbids(first, second) || forbids(second, first)
}

fn constants(schema: &Map<String, Value>) -> &[Value] {
    schema.get("const").map_or_else(|| list(schema, "enum"), std::slice::from_ref)
}
