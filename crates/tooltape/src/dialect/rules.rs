//! What each closed dialect carries, as tables.

use serde_json::{Map, Value, json};

use super::Dialect;
use super::keys::Keys;

/// The rules of a dialect that takes a closed subset of JSON Schema.
pub(super) struct Rules {
    pub(super) dialect: Dialect,
    /// Whether a keyword that only narrows a value can stay as it is.
    pub(super) carries: fn(&str, &Value) -> bool,
    /// Whether a value can stand in an `enum`.
    pub(super) enumerable: fn(&Value) -> bool,
    /// Whether a single value is `const`, or an `enum` of one.
    pub(super) constant: Constant,
    pub(super) references: References,
    pub(super) null: Null,
    pub(super) objects: Objects,
    /// What a property that may be absent is.
    pub(super) absence: Absence,
    pub(super) keys: Keys,
}

impl Rules {
    /// Says that an object has no other properties, where that can be said.
    pub(super) fn close(&self, schema: &mut Map<String, Value>) {
        match self.objects {
            Objects::Closed => {
                schema.insert("additionalProperties".into(), false.into());
            }
            Objects::Silent => {}
        }
    }

    /// Makes `null` valid.
    pub(super) fn admit_null(&self, schema: &mut Map<String, Value>) {
        if schema.get("type").is_some_and(|name| name == "null") {
            return;
        }
        let absent = json!({ "type": "null" });
        if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
            if !branches.contains(&absent) {
                branches.push(absent);
            }
            return;
        }
        if self.null == Null::Flag {
            schema.insert("nullable".into(), true.into());
            return;
        }
        if schema.contains_key("$ref") || schema.contains_key("const") {
            let description = schema.remove("description");
            let value = std::mem::take(schema);
            schema.insert("anyOf".into(), json!([value, absent]));
            schema.extend(description.map(|text| ("description".to_owned(), text)));
            return;
        }
        if let Some(Value::Array(values)) = schema.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
        if let Some(Value::String(name)) = schema.get("type") {
            let names = json!([name, "null"]);
            schema.insert("type".into(), names);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Constant {
    Const,
    Enum,
}

/// What becomes of `$ref`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// It stays, and recursive types are fine.
    Shared,
    /// It stays, and recursive types are refused.
    SharedAcyclic,
    /// What it names takes its place; a recursive type is opened once.
    Inlined,
}

/// How a value that may be `null` is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Null {
    /// `"type": [T, "null"]`.
    Type,
    /// `"nullable": true`, and nothing stands beside `anyOf`.
    Flag,
}

/// Which properties an object may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Objects {
    /// Only declared ones, said with `"additionalProperties": false`; every value has a type.
    Closed,
    /// Declared ones, and the dialect has no word about others.
    Silent,
}

/// How a property that may be absent is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// It is required, and `null` means that it is absent.
    Null,
    /// It is not required.
    Optional,
}

pub(super) const OPENAI_STRICT: Rules = Rules {
    dialect: Dialect::OpenAiStrict,
    carries: |keyword, value| match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
        | "minItems" | "maxItems" | "title" => true,
        "pattern" => !looks_around(value),
        "format" => is_one_of(value, &OPENAI_FORMATS),
        _ => false,
    },
    enumerable: is_scalar,
    constant: Constant::Const,
    references: References::Shared,
    null: Null::Type,
    objects: Objects::Closed,
    absence: Absence::Null,
    keys: Keys::Any,
};

pub(super) const ANTHROPIC_STRICT: Rules = Rules {
    dialect: Dialect::AnthropicStrict,
    // The API's documentation also lists `default` and `pattern`, but the vendor's own library
    // moves them into the description; so do we.
    carries: |keyword, value| match keyword {
        "minItems" => value.as_u64().is_some_and(|items| items <= 1),
        "format" => is_one_of(value, &OPENAI_FORMATS) || value == "uri",
        "title" => true,
        _ => false,
    },
    enumerable: is_scalar,
    constant: Constant::Enum,
    references: References::SharedAcyclic,
    null: Null::Type,
    objects: Objects::Closed,
    absence: Absence::Optional,
    keys: Keys::Dotted,
};

pub(super) const GEMINI: Rules = Rules {
    dialect: Dialect::Gemini,
    // `additionalProperties` and `default` are fields of the vendor's library, but the API has
    // refused them.
    carries: |keyword, value| match keyword {
        "minimum" | "maximum" | "minItems" | "maxItems" | "minLength" | "maxLength"
        | "minProperties" | "maxProperties" | "pattern" | "title" | "example" => true,
        "format" => is_one_of(value, &["int32", "int64", "float", "double", "date-time", "enum"]),
        _ => false,
    },
    enumerable: |value| value.as_str().is_some_and(|text| !text.is_empty()),
    constant: Constant::Enum,
    references: References::Inlined,
    null: Null::Flag,
    objects: Objects::Silent,
    absence: Absence::Optional,
    keys: Keys::Identifiers,
};

const OPENAI_FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// The formats of numbers, with the bounds that a schema can say instead.
pub(super) const INTEGER_FORMATS: [(&str, Option<i64>, Option<i64>); 16] = [
    ("int8", Some(i8::MIN as i64), Some(i8::MAX as i64)),
    ("int16", Some(i16::MIN as i64), Some(i16::MAX as i64)),
    ("int32", Some(i32::MIN as i64), Some(i32::MAX as i64)),
    ("int64", None, None),
    ("int128", None, None),
    ("int", None, None),
    ("uint8", Some(0), Some(u8::MAX as i64)),
    ("uint16", Some(0), Some(u16::MAX as i64)),
    ("uint32", Some(0), Some(u32::MAX as i64)),
    ("uint64", Some(0), None),
    ("uint128", Some(0), None),
    ("uint", Some(0), None),
    ("float", None, None),
    ("double", None, None),
    ("half-float", None, None),
    ("number", None, None),
];

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn is_one_of(value: &Value, names: &[&str]) -> bool {
    value.as_str().is_some_and(|name| names.contains(&name))
}

/// Whether a pattern looks ahead or behind, which no automaton can do.
fn looks_around(pattern: &Value) -> bool {
    let pattern = pattern.as_str().unwrap_or_default();
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
}
