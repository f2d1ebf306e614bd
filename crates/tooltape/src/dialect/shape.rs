//! Values of one type: objects, maps, arrays, scalars.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::document::list;
use super::merge::describes;
use super::restore::{Property, Way};
use super::rules::{Absence, Constant, INTEGER_FORMATS, Objects};
use super::union::{constrained, is_of, types};
use super::walk::{Draft, Walker};
use super::{LossKind, Uncompilable};

/// The names in an entry of a map.
pub(super) const ENTRY: [&str; 2] = ["key", "value"];

impl Walker<'_> {
    /// A schema without references and alternatives.
    pub(super) fn typed(
        &mut self,
        mut schema: Map<String, Value>,
        at: &str,
    ) -> Result<Draft, Uncompilable> {
        let types = types(&schema);
        match types.as_slice() {
            [] => self.untyped(schema, at),
            [name] => {
                let concerns = |keyword: &String, value: &mut Value| {
                    constrained(keyword, value).is_none_or(|types| types.contains(&name.as_str()))
                };
                schema.retain(concerns);
                schema.remove("type");
                match name.as_str() {
                    "object" => self.object(schema, at),
                    "array" => self.array(schema, at),
                    name => Ok(self.scalar(schema, name, at)),
                }
            }
            types => self.split(schema, types, at),
        }
    }

    /// Whether a schema can be the root as it is: an object with declared properties.
    pub(super) fn stands_as_root(&self, schema: &mut Map<String, Value>) -> bool {
        let is_union = ["anyOf", "oneOf"].iter().any(|key| describes(schema, key));
        let types = types(schema);
        let is_object = types.is_empty() || types.iter().any(|name| name == "object");
        let is_listed = schema.contains_key("enum") || schema.contains_key("const");
        if is_union || !is_object || is_listed || map_of(schema).is_some() {
            return false;
        }
        schema.insert("type".into(), "object".into());
        schema.remove("nullable");
        schema.entry("properties").or_insert_with(|| json!({}));
        true
    }

    fn object(&mut self, mut schema: Map<String, Value>, at: &str) -> Result<Draft, Uncompilable> {
        if let Some(map) = map_of(&schema) {
            return self.entries(schema, map, at);
        }
        let mut draft = Draft::of(&mut schema);
        let declared = schema.remove("properties");
        let additional = schema.remove("additionalProperties");
        let required = match schema.remove("required") {
            Some(Value::Array(names)) => names,
            _ => Vec::new(),
        };
        let is_open = schema.contains_key("patternProperties")
            || matches!(&additional, None | Some(Value::Bool(true)))
            || additional.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty);
        let is_bare = match &declared {
            Some(Value::Object(declared)) => declared.is_empty() && additional.is_some(),
            _ => true,
        };
        let is_closed = self.rules.objects == Objects::Closed;
        if is_closed && is_open && is_bare && required.is_empty() {
            let pointer = at.to_owned();
            return Err(Uncompilable::Undeclared { pointer, dialect: self.rules.dialect });
        }
        if is_closed && schema.get("unevaluatedProperties") == Some(&Value::Bool(false)) {
            schema.remove("unevaluatedProperties");
        }
        if is_closed && schema.remove("patternProperties").is_some() {
            self.lose(at, "patternProperties", LossKind::Narrowed);
        }
        match (is_closed, additional) {
            (_, None) | (true, Some(Value::Bool(false))) | (false, Some(Value::Bool(true))) => {}
            (true, Some(_)) => self.lose(at, "additionalProperties", LossKind::Narrowed),
            (false, Some(Value::Bool(false))) => {
                self.lose(at, "additionalProperties", LossKind::Dropped);
            }
            (false, Some(_)) if is_open => {}
            (false, Some(other)) => self.tell(&mut draft, "additionalProperties", &other, at),
        }
        draft.schema.insert("type".into(), "object".into());
        let declared = match declared {
            Some(Value::Object(declared)) => Some(declared),
            _ if is_closed => Some(Map::new()),
            _ => None,
        };
        self.properties(&mut draft, declared, &required, at)?;
        self.rules.close(&mut draft.schema);
        self.carry_all(&mut draft, schema, at);
        Ok(draft)
    }

    fn properties(
        &mut self,
        draft: &mut Draft,
        declared: Option<Map<String, Value>>,
        required: &[Value],
        at: &str,
    ) -> Result<(), Uncompilable> {
        let required_names = required.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>();
        let is_required = |name: &str| required_names.contains(name);
        let Some(declared) = declared else {
            return self.undeclared(required, &Map::new(), at);
        };
        self.undeclared(required, &declared, at)?;
        let aliases = self.rules.keys.aliases(declared.keys());
        let (mut properties, mut needed, mut ways) = (Map::new(), Vec::new(), BTreeMap::new());
        for (name, schema) in &declared {
            if *schema == Value::Bool(false) && !is_required(name) {
                continue;
            }
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let mut node = self.node(schema, &format!("{at}/properties/{escaped}"))?;
            let mut null_is_absent = false;
            if !is_required(name) && self.rules.absence == Absence::Null {
                null_is_absent = !self.document.admits_null(schema);
                if null_is_absent {
                    self.rules.admit_null(&mut node.schema);
                }
            }
            let alias = aliases[name].clone();
            if is_required(name) || self.rules.absence == Absence::Null {
                needed.push(Value::from(alias.clone()));
            }
            properties.insert(alias.clone(), Value::Object(node.schema));
            ways.insert(alias, Property { name: name.clone(), null_is_absent, way: node.way });
        }
        draft.schema.insert("properties".into(), Value::Object(properties));
        if !needed.is_empty() || self.rules.absence == Absence::Null {
            draft.schema.insert("required".into(), Value::Array(needed));
        }
        draft.way = Way::object(ways);
        Ok(())
    }

    /// Required properties that nobody described.
    fn undeclared(
        &mut self,
        required: &[Value],
        declared: &Map<String, Value>,
        at: &str,
    ) -> Result<(), Uncompilable> {
        let mut names = required.iter().filter_map(Value::as_str);
        let Some(name) = names.find(|name| !declared.contains_key(*name)) else { return Ok(()) };
        match self.rules.objects {
            Objects::Closed => Err(Uncompilable::Untyped {
                pointer: format!("{at}/properties/{name}"),
                dialect: self.rules.dialect,
            }),
            Objects::Silent => {
                self.lose(at, "required", LossKind::Dropped);
                Ok(())
            }
        }
    }

    /// A map becomes a list of entries.
    fn entries(
        &mut self,
        mut schema: Map<String, Value>,
        map: MapOf,
        at: &str,
    ) -> Result<Draft, Uncompilable> {
        let mut draft = Draft::of(&mut schema);
        let handled = ["properties", "additionalProperties", "patternProperties", "propertyNames"];
        for keyword in handled {
            schema.remove(keyword);
        }
        for (keyword, of_list) in [("minProperties", "minItems"), ("maxProperties", "maxItems")] {
            if let Some(bound) = schema.remove(keyword) {
                schema.insert(of_list.into(), bound);
            }
        }
        let key = self.node(&map.key, &format!("{at}/propertyNames"))?;
        let value = self.node(&map.value, &format!("{at}/{}", map.keyword))?;
        let [key_name, value_name] = ENTRY;
        let mut entry = Map::new();
        entry.insert("type".into(), "object".into());
        let properties = json!({ key_name: key.schema, value_name: value.schema });
        entry.insert("properties".into(), properties);
        entry.insert("required".into(), json!(ENTRY));
        self.rules.close(&mut entry);
        draft.schema.insert("type".into(), "array".into());
        draft.schema.insert("items".into(), Value::Object(entry));
        draft.notes.push("a list of entries, each key once".into());
        draft.way = Way::Entries(Box::new(value.way));
        self.carry_all(&mut draft, schema, at);
        Ok(draft)
    }

    fn array(&mut self, mut schema: Map<String, Value>, at: &str) -> Result<Draft, Uncompilable> {
        let mut draft = Draft::of(&mut schema);
        draft.schema.insert("type".into(), "array".into());
        let mut items = schema.remove("items").filter(|items| *items != Value::Bool(false));
        if let Some(Value::Array(mut prefix)) = schema.remove("prefixItems") {
            let order = prefix.iter().map(name_of).collect::<Vec<_>>().join(", ");
            prefix.extend(items);
            prefix.dedup();
            if prefix.len() > 1 {
                draft.notes.push(format!("in this order: {order}"));
                self.lose(at, "prefixItems", LossKind::Moved);
            }
            items = Some(match prefix.len() {
                1 => prefix.remove(0),
                _ => json!({ "anyOf": prefix }),
            });
        }
        let items = self.node(&items.unwrap_or(Value::Bool(true)), &format!("{at}/items"))?;
        draft.schema.insert("items".into(), Value::Object(items.schema));
        draft.way = Way::items(items.way);
        self.carry_all(&mut draft, schema, at);
        Ok(draft)
    }

    fn scalar(&mut self, mut schema: Map<String, Value>, name: &str, at: &str) -> Draft {
        let mut draft = Draft::of(&mut schema);
        draft.schema.insert("type".into(), name.into());
        if name == "integer" || name == "number" {
            self.numeric_format(&mut draft, &mut schema, at);
            self.inclusive(&mut schema, name);
        }
        let constant = schema.remove("const");
        let listed = match (&constant, schema.remove("enum")) {
            (Some(constant), _) => vec![constant.clone()],
            (None, Some(Value::Array(values))) => values,
            (None, _) => Vec::new(),
        };
        let fits = |value: &Value| is_of(value, name) && (self.rules.enumerable)(value);
        match (constant, self.rules.constant) {
            _ if listed.is_empty() || name == "null" => {}
            _ if !listed.iter().all(fits) => {
                self.tell(&mut draft, "enum", &Value::Array(listed), at);
            }
            (Some(constant), Constant::Const) => {
                draft.schema.insert("const".into(), constant);
            }
            (_, Constant::Const | Constant::Enum) => {
                draft.schema.insert("enum".into(), Value::Array(listed));
            }
        }
        self.carry_all(&mut draft, schema, at);
        draft
    }

    /// A width that the dialect has no word for becomes bounds, unless it is wider than the
    /// integers that JSON carries exactly.
    fn numeric_format(&mut self, draft: &mut Draft, schema: &mut Map<String, Value>, at: &str) {
        let format = schema.get("format").cloned().unwrap_or_default();
        let known = INTEGER_FORMATS.iter().find(|(name, _, _)| format == *name);
        let Some((_, low, high)) = known.filter(|_| !(self.rules.carries)("format", &format))
        else {
            return;
        };
        schema.remove("format");
        let carries_bounds = (self.rules.carries)("maximum", &format);
        if !carries_bounds && high.is_some() {
            self.tell(draft, "format", &format, at);
            return;
        }
        for (keyword, bound) in [("minimum", low), ("maximum", high)] {
            if let Some(bound) = bound {
                schema.entry(keyword).or_insert_with(|| json!(bound));
            }
        }
    }

    /// A bound that excludes itself, where the dialect has only the other kind.
    fn inclusive(&mut self, schema: &mut Map<String, Value>, name: &str) {
        let bounds = [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)];
        for (exclusive, inclusive, step) in bounds {
            let Some(bound) = schema.get(exclusive).cloned() else { continue };
            let carries = self.rules.carries;
            if carries(exclusive, &bound) || !carries(inclusive, &bound) {
                continue;
            }
            let nearest = match (name, bound.as_i64()) {
                ("integer", Some(bound)) => bound.checked_add(step).map(|bound| json!(bound)),
                _ => None,
            };
            if nearest.is_some() {
                schema.remove(exclusive);
            }
            let nearest = nearest.unwrap_or(bound);
            let tighter = schema.get(inclusive).and_then(Value::as_f64).is_some_and(|own| {
                let other = nearest.as_f64().unwrap_or_default();
                if step > 0 { own > other } else { own < other }
            });
            if !tighter {
                schema.insert(inclusive.into(), nearest);
            }
        }
    }

    fn untyped(&mut self, mut schema: Map<String, Value>, at: &str) -> Result<Draft, Uncompilable> {
        match self.rules.objects {
            Objects::Closed => {
                let pointer = at.to_owned();
                Err(Uncompilable::Untyped { pointer, dialect: self.rules.dialect })
            }
            Objects::Silent => {
                let mut draft = Draft::of(&mut schema);
                draft.schema.insert("anyOf".into(), any());
                self.lose(at, "type", LossKind::Narrowed);
                for (keyword, value) in schema {
                    match constrained(&keyword, &value) {
                        Some(_) => self.tell(&mut draft, &keyword, &value, at),
                        None => self.carry(&mut draft, &keyword, value, at),
                    }
                }
                Ok(draft)
            }
        }
    }
}

/// What to call a value in a description.
fn name_of(schema: &Value) -> String {
    let types = schema.as_object().map(types).unwrap_or_default();
    let named = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    match (named, schema["title"].as_str()) {
        (Some(name), _) | (None, Some(name)) => name.to_owned(),
        (None, None) if types.is_empty() => "value".to_owned(),
        (None, None) => types.join(" or "),
    }
}

/// Nearly any value, where each has to have a type.
pub(super) fn any() -> Value {
    let of = |name| json!({ "type": name });
    let mut any = ["string", "number", "boolean", "object"].map(of).to_vec();
    let items = json!({ "anyOf": any });
    any.extend([json!({ "type": "array", "items": items }), of("null")]);
    Value::Array(any)
}

/// What the keys and values of a map are.
struct MapOf {
    keyword: &'static str,
    key: Value,
    value: Value,
}

/// The schema of a map, if properties are described but none is named.
fn map_of(schema: &Map<String, Value>) -> Option<MapOf> {
    let names = schema.get("properties").and_then(Value::as_object);
    if names.is_some_and(|names| !names.is_empty()) || !list(schema, "required").is_empty() {
        return None;
    }
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let mut key = json!({ "type": "string" });
    if let Some(names @ Value::Object(_)) = schema.get("propertyNames") {
        key = json!({ "allOf": [key, names] });
    }
    let is_described = |value: &Value| value.as_object().is_some_and(|value| !value.is_empty());
    match (schema.get("additionalProperties"), patterns) {
        (Some(value), None) if is_described(value) => {
            Some(MapOf { keyword: "additionalProperties", key, value: value.clone() })
        }
        (None | Some(Value::Bool(false)), Some(patterns)) if patterns.len() == 1 => {
            let (pattern, value) =
                patterns.iter().next().filter(|(_, value)| is_described(value))?;
            let key = json!({ "allOf": [key, { "pattern": pattern }] });
            Some(MapOf { keyword: "patternProperties", key, value: value.clone() })
        }
        _ => None,
    }
}
