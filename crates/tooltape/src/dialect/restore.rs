//! The way back: from what a model wrote for a compiled schema to arguments for the original.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::shape::ENTRY;

/// How deep arguments may be nested that are brought back.
const RESTORED_DEPTH_MAX: usize = 128;
/// How many values are compared with schemas to see which alternative one fits.
const FIT_STEPS_MAX: usize = 100_000;

/// How a value that was written for a compiled subschema is brought back.
#[derive(Clone, Debug, Default)]
pub(super) enum Way {
    /// It stays as it is.
    #[default]
    Keep,
    /// An object, by the names that the model wrote.
    Object(BTreeMap<String, Property>),
    /// A list, each element in the same way.
    Items(Box<Way>),
    /// A list of entries that is a map, each value in the same way.
    Entries(Box<Way>),
    /// The way of the first schema that the value fits.
    Union(Vec<(Value, Way)>),
    /// The way of a shared subschema; the root's name is empty.
    Named(String),
    /// An object with one property that holds the value.
    Framed(String, Box<Way>),
}

/// How a property is brought back.
#[derive(Clone, Debug)]
pub(super) struct Property {
    /// Its name in the original schema.
    pub(super) name: String,
    pub(super) null_is_absent: bool,
    pub(super) way: Way,
}

impl Way {
    pub(super) fn object(properties: BTreeMap<String, Property>) -> Way {
        let changes = properties.iter().any(|(alias, property)| {
            *alias != property.name || property.null_is_absent || !property.way.is_keep()
        });
        if changes { Way::Object(properties) } else { Way::Keep }
    }

    pub(super) fn items(way: Way) -> Way {
        if way.is_keep() { Way::Keep } else { Way::Items(Box::new(way)) }
    }

    pub(super) fn union(branches: Vec<(Value, Way)>) -> Way {
        let changes = branches.iter().any(|(_, way)| !way.is_keep());
        if changes { Way::Union(branches) } else { Way::Keep }
    }

    fn is_keep(&self) -> bool {
        matches!(self, Way::Keep)
    }

    /// Whether the way does more than lead to another one.
    fn acts(&self) -> bool {
        match self {
            Way::Keep | Way::Named(_) => false,
            Way::Entries(_) | Way::Framed(_, _) => true,
            Way::Items(way) => way.acts(),
            Way::Union(branches) => branches.iter().any(|(_, way)| way.acts()),
            Way::Object(properties) => properties.iter().any(|(alias, property)| {
                *alias != property.name || property.null_is_absent || property.way.acts()
            }),
        }
    }
}

/// The way back from a whole compiled schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Back {
    way: Way,
    shared: BTreeMap<String, Way>,
}

/// Text that must stay as it is: nested too deep, or an object that would change repeats a key.
struct Untouchable;

type Restored = Result<Option<String>, Untouchable>;

impl Back {
    pub(super) fn new(way: Way, shared: BTreeMap<String, Way>) -> Back {
        Back { way, shared }
    }

    pub(super) fn reshapes(&self) -> bool {
        self.way.acts() || self.shared.values().any(Way::acts)
    }

    pub(super) fn restore<'a>(&self, text: &'a str, schema: &Value) -> Cow<'a, str> {
        if !self.reshapes() {
            return Cow::Borrowed(text);
        }
        let Ok(raw) = serde_json::from_str::<&RawValue>(text) else { return Cow::Borrowed(text) };
        match self.value(raw.get(), &self.way, schema, 0) {
            Ok(Some(restored)) => Cow::Owned(restored),
            Ok(None) | Err(Untouchable) => Cow::Borrowed(text),
        }
    }

    /// The restored text of a value, or nothing if it needs no change.
    fn value(&self, text: &str, way: &Way, schema: &Value, depth: usize) -> Restored {
        if depth > RESTORED_DEPTH_MAX {
            return Err(Untouchable);
        }
        let onward = |text: &str, way: &Way| self.value(text, way, schema, depth + 1);
        match way {
            Way::Keep => Ok(None),
            Way::Named(name) => match self.shared.get(name) {
                Some(way) => onward(text, way),
                None => Ok(None),
            },
            Way::Framed(key, way) => match members(text)? {
                Some(Members(members)) => match members.as_slice() {
                    [(only, value)] if only == key => {
                        let restored = onward(value.get(), way)?;
                        Ok(Some(restored.unwrap_or_else(|| value.get().to_owned())))
                    }
                    members if members.iter().any(|(name, _)| name == key) => Ok(None),
                    // The model left the frame out.
                    _ => onward(text, way),
                },
                None => Ok(None),
            },
            Way::Object(properties) => self.object(text, properties, onward),
            Way::Items(way) => {
                let Some(elements) = elements(text) else { return Ok(None) };
                let restored = elements.iter().map(|element| onward(element.get(), way));
                let restored = restored.collect::<Result<Vec<_>, _>>()?;
                if restored.iter().all(Option::is_none) {
                    return Ok(None);
                }
                let texts = elements.iter().zip(restored);
                let texts = texts.map(|(own, new)| new.unwrap_or_else(|| own.get().to_owned()));
                Ok(Some(format!("[{}]", texts.collect::<Vec<_>>().join(","))))
            }
            Way::Entries(way) => self.map(text, way, onward),
            Way::Union(branches) => {
                let Ok(value) = serde_json::from_str::<Value>(text) else { return Ok(None) };
                let fit = Fit { root: schema, steps: Cell::new(FIT_STEPS_MAX) };
                let fitting = branches.iter().find(|(branch, _)| fit.fits(branch, &value));
                fitting.map_or(Ok(None), |(_, way)| onward(text, way))
            }
        }
    }

    fn object(
        &self,
        text: &str,
        properties: &BTreeMap<String, Property>,
        onward: impl Fn(&str, &Way) -> Restored,
    ) -> Restored {
        let Some(Members(members)) = members(text)? else { return Ok(None) };
        let (mut kept, mut is_changed) = (Vec::new(), false);
        for (key, value) in members {
            let value = value.get();
            let Some(property) = properties.get(&key) else {
                kept.push(member(&key, value));
                continue;
            };
            if property.null_is_absent && value == "null" {
                is_changed = true;
                continue;
            }
            let restored = onward(value, &property.way)?;
            is_changed |= restored.is_some() || property.name != key;
            kept.push(member(&property.name, restored.as_deref().unwrap_or(value)));
        }
        Ok(is_changed.then(|| format!("{{{}}}", kept.join(","))))
    }

    /// A map from a list of entries; anything else stays.
    fn map(&self, text: &str, way: &Way, onward: impl Fn(&str, &Way) -> Restored) -> Restored {
        let Some(entries) = elements(text) else { return Ok(None) };
        let mut kept = Vec::new();
        for entry in entries {
            let Some(Members(members)) = members(entry.get())? else { return Ok(None) };
            let part = |name| members.iter().find(|(key, _)| key == name).map(|(_, raw)| raw.get());
            let [Some(key), Some(value)] = ENTRY.map(part) else { return Ok(None) };
            if members.len() != ENTRY.len() || !key.starts_with('"') {
                return Ok(None);
            }
            let restored = onward(value, way)?;
            kept.push(format!("{key}:{}", restored.as_deref().unwrap_or(value)));
        }
        Ok(Some(format!("{{{}}}", kept.join(","))))
    }
}

/// Whether values fit compiled schemas, as far as their shape tells.
struct Fit<'a> {
    root: &'a Value,
    /// How many comparisons are left; when there are none, nothing fits.
    steps: Cell<usize>,
}

impl Fit<'_> {
    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let listed = schema["enum"].as_array();
        let cost = 1 + listed.map_or(0, Vec::len);
        let Some(steps) = self.steps.get().checked_sub(cost) else { return false };
        self.steps.set(steps);
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.root.pointer(reference.trim_start_matches('#'));
            return target.is_some_and(|target| self.fits(target, value));
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            return branches.iter().any(|branch| self.fits(branch, value));
        }
        if value.is_null() && schema["nullable"] == true {
            return true;
        }
        let is_of = |name: &Value| match name.as_str() {
            Some("null") => value.is_null(),
            Some("boolean") => value.is_boolean(),
            Some("integer" | "number") => value.is_number(),
            Some("string") => value.is_string(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            _ => false,
        };
        let is_typed = match &schema["type"] {
            Value::Array(names) => names.iter().any(is_of),
            name => is_of(name),
        };
        let is_listed = schema.get("const").is_none_or(|constant| constant == value)
            && listed.is_none_or(|listed| listed.contains(value));
        is_typed && is_listed && self.parts_fit(schema, value)
    }

    fn parts_fit(&self, schema: &Value, value: &Value) -> bool {
        match value {
            Value::Array(elements) => elements.iter().all(|item| self.fits(&schema["items"], item)),
            Value::Object(members) => {
                let Some(properties) = schema["properties"].as_object() else { return true };
                let required = schema["required"].as_array().map_or(&[] as &[Value], Vec::as_slice);
                required.iter().filter_map(Value::as_str).all(|name| members.contains_key(name))
                    && members.iter().all(|(name, member)| {
                        properties.get(name).is_some_and(|property| self.fits(property, member))
                    })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(name))
}

fn elements(text: &str) -> Option<Vec<&RawValue>> {
    text.starts_with('[').then(|| serde_json::from_str(text).ok()).flatten()
}

/// The members of an object as they were written, or nothing if the text is no object.
fn members(text: &str) -> Result<Option<Members<'_>>, Untouchable> {
    if !text.starts_with('{') {
        return Ok(None);
    }
    let members = serde_json::from_str::<Members<'_>>(text).map_err(|_| Untouchable)?;
    let names = members.0.iter().map(|(name, _)| name).collect::<BTreeSet<_>>();
    if names.len() < members.0.len() { Err(Untouchable) } else { Ok(Some(members)) }
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
