//! What stands at a place of a value, shown in few bytes.

use serde_json::Value;

use super::words::{EXCERPT_BYTES_MAX, short};
use crate::canon::{Doc, Kind, Node};

/// The most names of one object's fields that are looked at.
const NAMES_MAX: usize = 1_000;

/// Something that errors point into.
pub(super) trait Source {
    /// What stands where a JSON pointer leads.
    fn find(&self, pointer: &str) -> Found;

    /// The names of the fields of the object where a JSON pointer leads.
    fn names(&self, pointer: &str) -> Vec<String>;
}

/// A value as it is shown.
pub(super) struct Found {
    /// The JSON type.
    kind: &'static str,
    /// Its JSON text, cut.
    pub(super) json: String,
    /// How many characters, items or fields it has.
    pub(super) size: usize,
    /// What a text stands for, cut.
    text: Option<String>,
}

impl Found {
    /// The type and the value: "string `"50"`".
    pub(super) fn in_words(&self) -> String {
        match self.kind {
            "null" => "null".into(),
            kind => format!("{kind} `{}`", self.json),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The value written as one of these types, where only quotes are the matter.
    pub(super) fn as_one_of(&self, types: &[&str]) -> Option<String> {
        let fits = |value: &Value| match value {
            Value::Null => types.contains(&"null"),
            Value::Bool(_) => types.contains(&"boolean"),
            Value::Number(number) => {
                types.contains(&"number")
                    || types.contains(&"integer")
                        && number.as_f64().is_some_and(|n| n.fract() == 0.0)
            }
            Value::String(_) => false,
            Value::Array(_) => types.contains(&"array"),
            Value::Object(_) => types.contains(&"object"),
        };
        match &self.text {
            Some(text) if text.len() < EXCERPT_BYTES_MAX => {
                serde_json::from_str(text).ok().filter(fits).map(|_: Value| short(text.trim()))
            }
            Some(_) => None,
            None => {
                let quotable = matches!(self.kind, "number" | "boolean");
                (quotable && types.contains(&"string")).then(|| format!("\"{}\"", self.json))
            }
        }
    }
}

impl Source for Doc<'_> {
    fn find(&self, pointer: &str) -> Found {
        at(self, pointer).map_or_else(Found::nothing, Found::of_node)
    }

    fn names(&self, pointer: &str) -> Vec<String> {
        let fields = at(self, pointer).into_iter().flat_map(|object| object.fields());
        fields.map(|(name, _)| name.into_owned()).take(NAMES_MAX).collect()
    }
}

impl Source for Value {
    fn find(&self, pointer: &str) -> Found {
        self.pointer(pointer).map_or_else(Found::nothing, Found::of_value)
    }

    fn names(&self, pointer: &str) -> Vec<String> {
        let fields = self.pointer(pointer).and_then(Value::as_object);
        fields.into_iter().flatten().map(|(name, _)| name.clone()).take(NAMES_MAX).collect()
    }
}

fn at<'d>(doc: &'d Doc<'_>, pointer: &str) -> Option<Node<'d>> {
    pointer.split('/').skip(1).try_fold(doc.root(), inside)
}

fn inside<'d>(node: Node<'d>, part: &str) -> Option<Node<'d>> {
    match node.kind() {
        Kind::Array => node.items().nth(part.parse().ok()?),
        Kind::Object => node.get(&part.replace("~1", "/").replace("~0", "~")),
        Kind::Null | Kind::Bool(_) | Kind::Number | Kind::String => None,
    }
}

impl Found {
    fn of_node(node: Node<'_>) -> Found {
        let text = node.as_str();
        Found {
            kind: match node.kind() {
                Kind::Null => "null",
                Kind::Bool(_) => "boolean",
                Kind::Number => "number",
                Kind::String => "string",
                Kind::Array => "array",
                Kind::Object => "object",
            },
            json: short(node.raw()),
            size: text.as_ref().map_or(node.len(), |text| text.chars().count()),
            text: text.map(|text| short(&text)),
        }
    }

    fn of_value(value: &Value) -> Found {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let size = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.chars().count(),
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
        };
        Found { kind, json: short(&value.to_string()), size, text: value.as_str().map(short) }
    }

    /// For a pointer that leads nowhere, which no error of ours has.
    fn nothing() -> Found {
        Found { kind: "null", json: "null".into(), size: 0, text: None }
    }
}
