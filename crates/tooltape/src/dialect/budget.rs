//! How much of a provider's budgets a compiled schema uses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The sizes of a compiled schema that providers limit.
#[derive(Debug, Default)]
pub(super) struct Size {
    /// Properties of all objects.
    pub(super) properties: usize,
    /// Properties that may be absent.
    pub(super) optional: usize,
    /// How deep properties and items are nested; the root's properties are on level one.
    pub(super) levels: usize,
    /// Characters of all names of properties and definitions, and of all listed values.
    pub(super) characters: usize,
    /// Listed values of all enums.
    pub(super) enum_values: usize,
    /// Each enum: how many values, of how many characters.
    pub(super) enums: Vec<(usize, usize)>,
    /// Subschemas with alternatives.
    pub(super) unions: usize,
}

impl Size {
    pub(super) fn of(schema: &Value) -> Size {
        let mut size = Size::default();
        size.add(schema);
        size.levels = levels(schema, schema, &mut BTreeMap::new());
        size
    }

    fn add(&mut self, schema: &Value) {
        let Value::Object(schema) = schema else { return };
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = |name: &String| {
                required.is_some_and(|names| names.iter().any(|other| other == name))
            };
            self.properties += properties.len();
            self.optional += properties.keys().filter(|name| !is_required(name)).count();
        }
        if schema.contains_key("anyOf") || schema.get("type").is_some_and(Value::is_array) {
            self.unions += 1;
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let characters = values.iter().map(characters).sum();
            self.enum_values += values.len();
            self.enums.push((values.len(), characters));
            self.characters += characters;
        }
        self.characters += schema.get("const").map_or(0, characters);
        for keyword in ["properties", "$defs"] {
            for (name, schema) in named(schema, keyword) {
                self.characters += name.chars().count();
                self.add(schema);
            }
        }
        inner(schema).for_each(|schema| self.add(schema));
    }
}

/// The levels below a schema; a recursive type is counted once.
fn levels(schema: &Value, root: &Value, known: &mut BTreeMap<String, usize>) -> usize {
    let Value::Object(schema) = schema else { return 0 };
    if let Some(Value::String(reference)) = schema.get("$ref") {
        if let Some(levels) = known.get(reference) {
            return *levels;
        }
        known.insert(reference.clone(), 0);
        let target = root.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
        let levels = levels(target, root, known);
        known.insert(reference.clone(), levels);
        return levels;
    }
    let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let same = branches.map(|schema| levels(schema, root, known)).max();
    let items = schema.get("items").into_iter();
    let below = items.chain(named(schema, "properties").map(|(_, schema)| schema));
    let below = below.map(|schema| 1 + levels(schema, root, known)).max();
    same.max(below).unwrap_or(0)
}

fn named<'a>(
    schema: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(keyword).and_then(Value::as_object).into_iter().flatten()
}

fn inner(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    schema.get("items").into_iter().chain(branches)
}

fn characters(value: &Value) -> usize {
    match value.as_str() {
        Some(text) => text.chars().count(),
        None => value.to_string().len(),
    }
}
