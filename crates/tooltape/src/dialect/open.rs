//! The dialects that take JSON Schema as it is, except at its root.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::document::{Document, SHELVES, rewrite, shelved};
use super::keys::Keys;
use super::merge::{describes, merge};
use super::restore::{Back, Property, Way};
use super::union::types;
use super::{Compiled, Loss, LossKind, Uncompilable};

/// What an API that takes JSON Schema refuses nevertheless.
pub(super) struct Open {
    /// The names that the properties of the root may have.
    keys: Keys,
    /// The keyword that names a draft stays.
    names_draft: bool,
    /// An array says what its items are, and the root what its properties are.
    is_complete: bool,
}

pub(super) const OPENAI: Open = Open { keys: Keys::Any, names_draft: true, is_complete: true };
pub(super) const ANTHROPIC: Open =
    Open { keys: Keys::Dotted, names_draft: false, is_complete: false };

/// Makes the root an object, and leaves the rest as it is where the API takes it.
pub(super) fn compile(document: &Document, open: &Open) -> Result<Compiled, Uncompilable> {
    let never = || Uncompilable::Never { pointer: String::new() };
    let mut losses = Vec::new();
    let mut lose = |keyword: &str, kind| {
        losses.push(Loss { pointer: String::new(), keyword: keyword.to_owned(), kind });
    };
    let mut root = match document.root() {
        Value::Object(root) => root.clone(),
        Value::Bool(true) => Map::new(),
        _ => return Err(never()),
    };
    // What others refer to must stay where it is, in a frame if need be.
    if !document.refers_into_root() {
        while let Some(Value::String(reference)) = root.remove("$ref") {
            let (_, target) = document.resolve(&reference)?;
            let (merged, lost) =
                target.as_object().and_then(|target| merge(target, &root)).ok_or_else(never)?;
            lost.iter().for_each(|keyword| lose(keyword, LossKind::Dropped));
            root = merged;
        }
        tell_constraints(&mut root, lose);
    }
    let takes = |name: &String| !document.refers_into_root() || open.keys.take(name);
    let mut way = Way::Keep;
    if stands_as_root(&root) && names(&root).all(takes) {
        root.insert("type".into(), "object".into());
        way = rename(&mut root, open.keys);
    } else {
        let key = document.free_key();
        root = framed(root, &key);
        way = Way::Framed(key, Box::new(way));
    }
    if !open.names_draft {
        root.remove("$schema");
    }
    if open.is_complete {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    let mut schema = Value::Object(root);
    if open.is_complete {
        rewrite(&mut schema, &mut complete);
    }
    Ok(Compiled { schema, losses, back: Back::new(way, BTreeMap::new()) })
}

/// Moves what only constrains the properties of the root into its description.
fn tell_constraints(root: &mut Map<String, Value>, mut lose: impl FnMut(&str, LossKind)) {
    for keyword in ["anyOf", "oneOf", "allOf", "not"] {
        if describes(root, keyword) {
            continue;
        }
        if let Some(constraint) = root.remove(keyword) {
            let note = format!("({keyword}: {constraint})");
            let text = match root.get("description").and_then(Value::as_str) {
                Some(text) => format!("{text} {note}"),
                None => note,
            };
            root.insert("description".into(), text.into());
            lose(keyword, LossKind::Moved);
        }
    }
}

fn stands_as_root(root: &Map<String, Value>) -> bool {
    let types = types(root);
    let combined = ["$ref", "anyOf", "oneOf", "allOf", "not", "enum", "const"];
    (types.is_empty() || types.iter().any(|name| name == "object"))
        && !combined.iter().any(|keyword| root.contains_key(*keyword))
}

/// The names of the properties of the root.
fn names(root: &Map<String, Value>) -> impl Iterator<Item = &String> + Clone {
    let properties = root.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys)
}

/// The root as the one property of an object; what others refer to stays where it was.
fn framed(mut root: Map<String, Value>, key: &str) -> Map<String, Value> {
    let mut frame = Map::new();
    for keyword in SHELVES.into_iter().chain(["$schema", "description"]) {
        frame.extend(root.remove(keyword).map(|value| (keyword.to_owned(), value)));
    }
    frame.insert("type".into(), "object".into());
    frame.insert("properties".into(), json!({ key: root }));
    frame.insert("required".into(), json!([key]));
    let mut frame = Value::Object(frame);
    rewrite(&mut frame, &mut |schema| {
        let Some(Value::String(reference)) = schema.get_mut("$ref") else { return };
        let is_shelved = SHELVES.iter().any(|shelf| reference.starts_with(&shelved(shelf)));
        if !is_shelved {
            reference.insert_str(1, &format!("/properties/{key}"));
        }
    });
    match frame {
        Value::Object(frame) => frame,
        _ => unreachable!("an object was just made"),
    }
}

/// Gives the properties of the root names that the API takes.
fn rename(root: &mut Map<String, Value>, keys: Keys) -> Way {
    let aliases = keys.aliases(names(root));
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        let taken = std::mem::take(properties);
        properties.extend(taken.into_iter().map(|(name, schema)| (aliases[&name].clone(), schema)));
    }
    if let Some(Value::Array(required)) = root.get_mut("required") {
        for name in required {
            if let Some(alias) = name.as_str().and_then(|name| aliases.get(name)) {
                *name = alias.clone().into();
            }
        }
    }
    let properties = aliases
        .into_iter()
        .map(|(name, alias)| (alias, Property { name, null_is_absent: false, way: Way::Keep }));
    Way::object(properties.collect())
}

/// Says what an array's items are where the schema does not.
fn complete(schema: &mut Map<String, Value>) {
    let is_array = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        Some(name) => name == "array",
        None => false,
    };
    if is_array && !schema.contains_key("prefixItems") {
        schema.entry("items").or_insert_with(|| json!({}));
    }
}
