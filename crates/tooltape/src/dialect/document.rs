//! A schema that was read: bounded, well-formed, spelled as 2020-12, all references known.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Uncompilable;

/// How deep a schema may be nested, counted in JSON values.
pub const DEPTH_MAX: usize = 128;
/// How many JSON values a schema may have.
pub const VALUES_MAX: usize = 100_000;
/// How many different places of a schema `$ref` may name.
pub const REFERENCES_MAX: usize = 500;
/// How many subschemas are looked at to see whether `null` is valid.
const NULL_STEPS_MAX: usize = 10_000;

/// How long a value may be that a message quotes.
const EXCERPT_BYTES_MAX: usize = 80;
/// The property that holds a root which is not an object.
const FRAME_KEY: &str = "input";

/// Keywords whose value is a schema.
const ONE: [&str; 12] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value is a list of schemas by name.
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords that keep schemas for others to refer to.
pub(super) const SHELVES: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose subschemas describe the same value as the schema they stand in.
const BESIDE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// A schema that was read.
pub(super) struct Document {
    root: Value,
    /// Whether each reference names a recursive type.
    recursive: BTreeMap<String, bool>,
}

impl Document {
    /// Reads a schema; everything that no dialect takes is refused here.
    pub(super) fn read(schema: &Value) -> Result<Document, Uncompilable> {
        let mut values = 0;
        measure(schema, 0, &mut values)?;
        let root = modern(schema);
        if let Err(err) = jsonschema::draft202012::meta::validate(&root) {
            let found = err.instance().to_string();
            let excerpt = if found.len() > EXCERPT_BYTES_MAX { "value" } else { &found };
            return Err(Uncompilable::Malformed {
                pointer: err.instance_path().to_string(),
                reason: err.masked_with(format!("`{excerpt}`")).to_string(),
            });
        }
        let mut document = Document { root, recursive: BTreeMap::new() };
        document.recursive = document.references()?;
        Ok(document)
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// The subschema that a reference names, with the pointer to it.
    pub(super) fn resolve(&self, reference: &str) -> Result<(String, &Value), Uncompilable> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(Uncompilable::Remote { reference: reference.to_owned() });
        };
        let pointer = percent_decoded(fragment);
        match pointer.as_deref().and_then(|pointer| self.root.pointer(pointer)) {
            Some(target @ (Value::Object(_) | Value::Bool(_))) => {
                Ok((pointer.expect("a pointer that was resolved"), target))
            }
            Some(_) | None => Err(Uncompilable::Dangling { reference: reference.to_owned() }),
        }
    }

    /// Whether a reference names a type that contains itself.
    pub(super) fn is_recursive(&self, reference: &str) -> bool {
        self.recursive.get(reference).copied().unwrap_or(false)
    }

    /// Whether a reference names a part of the root that is not there to be referred to.
    pub(super) fn refers_into_root(&self) -> bool {
        let is_shelved = |name: &str| SHELVES.iter().any(|shelf| name.starts_with(&shelved(shelf)));
        self.recursive.keys().any(|name| name != "#" && !is_shelved(name))
    }

    /// Whether `null` is valid; of a schema too involved to tell, it is said to be.
    pub(super) fn admits_null(&self, schema: &Value) -> bool {
        self.admits_null_within(schema, 0, &Cell::new(NULL_STEPS_MAX))
    }

    fn admits_null_within(&self, schema: &Value, depth: usize, steps: &Cell<usize>) -> bool {
        let Value::Object(schema) = schema else { return schema == &Value::Bool(true) };
        if depth == DEPTH_MAX || steps.get() == 0 {
            return true;
        }
        steps.set(steps.get() - 1);
        let admits = |schema: &Value| self.admits_null_within(schema, depth + 1, steps);
        let every = |keyword| list(schema, keyword).iter().all(admits);
        let some =
            |keyword| !schema.contains_key(keyword) || list(schema, keyword).iter().any(admits);
        let typed = match schema.get("type") {
            None => true,
            Some(Value::Array(types)) => types.iter().any(|name| name == "null"),
            Some(name) => name == "null",
        };
        let referred = schema.get("$ref").and_then(Value::as_str);
        (typed || schema.get("nullable") == Some(&Value::Bool(true)))
            && schema.get("const").is_none_or(Value::is_null)
            && (!schema.contains_key("enum") || list(schema, "enum").contains(&Value::Null))
            && referred
                .is_none_or(|name| self.resolve(name).is_ok_and(|(_, target)| admits(target)))
            && every("allOf")
            && some("anyOf")
            && some("oneOf")
    }

    /// A property name that stands nowhere in the document.
    pub(super) fn free_key(&self) -> String {
        let mut names = BTreeSet::new();
        collect_keys(&self.root, &mut names);
        let numbered = (2..).map(|number| format!("{FRAME_KEY}_{number}"));
        let mut keys = std::iter::once(FRAME_KEY.to_owned()).chain(numbered);
        keys.find(|key| !names.contains(key.as_str())).expect("there are more numbers than names")
    }

    /// Every reference of the document, and whether it names a recursive type.
    fn references(&self) -> Result<BTreeMap<String, bool>, Uncompilable> {
        let mut names = Vec::new();
        collect(&self.root, &mut names, Reach::Document);
        names.sort();
        names.dedup();
        if names.len() > REFERENCES_MAX {
            let what = "different references";
            return Err(Uncompilable::TooBig { what, limit: REFERENCES_MAX });
        }
        let (mut below, mut beside) = (Vec::new(), Vec::new());
        for name in &names {
            let (_, target) = self.resolve(name)?;
            for (edges, reach) in [(&mut below, Reach::Subtree), (&mut beside, Reach::Same)] {
                let mut found = Vec::new();
                collect(target, &mut found, reach);
                let indices = found.iter().filter_map(|name| names.binary_search(name).ok());
                edges.push(indices.collect::<BTreeSet<usize>>());
            }
        }
        if let Some(start) = (0..names.len()).find(|&start| returns(&beside, start)) {
            return Err(Uncompilable::Cyclic { reference: names.swap_remove(start) });
        }
        let flags = (0..names.len()).map(|start| returns(&below, start)).collect::<Vec<bool>>();
        Ok(names.into_iter().zip(flags).collect())
    }
}

/// How references to what is on a shelf begin.
pub(super) fn shelved(shelf: &str) -> String {
    format!("#/{shelf}/")
}

/// The elements of a keyword that is a list.
pub(super) fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Changes every subschema that is an object, children first.
pub(super) fn rewrite(schema: &mut Value, edit: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Value::Object(schema) = schema else { return };
    for (keyword, value) in schema.iter_mut() {
        let keyword = keyword.as_str();
        match value {
            Value::Array(values) if LIST.contains(&keyword) => {
                values.iter_mut().for_each(|value| rewrite(value, edit));
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                named.values_mut().for_each(|value| rewrite(value, edit));
            }
            value if ONE.contains(&keyword) => rewrite(value, edit),
            _ => {}
        }
    }
    edit(schema);
}

/// Which references of a schema are meant.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// All of them, on the shelves too.
    Document,
    /// Those that a value of the schema can meet.
    Subtree,
    /// Those that describe the same value as the schema does.
    Same,
}

fn collect(schema: &Value, found: &mut Vec<String>, reach: Reach) {
    let Value::Object(schema) = schema else { return };
    if let Some(Value::String(reference)) = schema.get("$ref") {
        found.push(reference.clone());
    }
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        let skipped = match reach {
            Reach::Document => false,
            Reach::Subtree => SHELVES.contains(&keyword),
            Reach::Same => !BESIDE.contains(&keyword),
        };
        match value {
            _ if skipped => {}
            Value::Array(values) if LIST.contains(&keyword) => {
                values.iter().for_each(|value| collect(value, found, reach));
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                named.values().for_each(|value| collect(value, found, reach));
            }
            value if ONE.contains(&keyword) => collect(value, found, reach),
            _ => {}
        }
    }
}

/// Whether a walk along the edges can come back to where it started.
fn returns(edges: &[BTreeSet<usize>], start: usize) -> bool {
    let mut seen = vec![false; edges.len()];
    let mut open = edges[start].iter().copied().collect::<Vec<usize>>();
    while let Some(next) = open.pop() {
        if next == start {
            return true;
        }
        if !std::mem::replace(&mut seen[next], true) {
            open.extend(&edges[next]);
        }
    }
    false
}

fn collect_keys<'a>(value: &'a Value, keys: &mut BTreeSet<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            keys.insert(key);
            collect_keys(item, keys);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// How many JSON values there are in this one, itself counted.
pub(super) fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(map) => map.values().map(values).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn measure(value: &Value, depth: usize, values: &mut usize) -> Result<(), Uncompilable> {
    *values += 1;
    if *values > VALUES_MAX {
        return Err(Uncompilable::TooBig { what: "values", limit: VALUES_MAX });
    }
    if depth > DEPTH_MAX {
        return Err(Uncompilable::TooBig { what: "levels", limit: DEPTH_MAX });
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| measure(item, depth + 1, values)),
        Value::Object(map) => map.values().try_for_each(|item| measure(item, depth + 1, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// The schema with what drafts 4 to 7 spell differently spelled as in 2020-12.
fn modern(schema: &Value) -> Value {
    let mut root = schema.clone();
    let mut changed = false;
    rewrite(&mut root, &mut |schema| {
        if schema.get("items").is_some_and(Value::is_array) {
            let items = schema.remove("items").expect("it was just seen");
            schema.insert("prefixItems".into(), items);
            if let Some(rest) = schema.remove("additionalItems") {
                schema.insert("items".into(), rest);
            }
            changed = true;
        }
        let bounds = [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")];
        for (bound, exclusive) in bounds {
            let Some(&Value::Bool(is_exclusive)) = schema.get(exclusive) else { continue };
            schema.remove(exclusive);
            if is_exclusive && let Some(value) = schema.remove(bound) {
                schema.insert(exclusive.into(), value);
            }
            changed = true;
        }
    });
    if changed && let Value::Object(root) = &mut root {
        root.remove("$schema");
    }
    root
}

/// The text without percent escapes, or nothing if they are broken.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match byte {
            b'%' => {
                let digits = std::str::from_utf8(after.get(..2)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, &after[2..])
            }
            byte => (byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
