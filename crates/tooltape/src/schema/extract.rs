//! Whether a schema leaves no room for a text that somebody else wrote.

use serde_json::{Map, Value};

/// The most values of an `enum`, and the most properties of an object, in an extract.
pub const EXTRACT_CHOICES_MAX: usize = 64;
/// The most schemas that an extract is made of.
pub const EXTRACT_SCHEMAS_MAX: usize = 256;

/// The furthest bound of a number in an extract: beyond it, doubles are not exact.
const EXTRACT_NUMBER_MAX: f64 = 9_007_199_254_740_991.0;

/// The words that say nothing of the values.
const ANNOTATIONS: [&str; 8] =
    ["$schema", "$id", "$defs", "title", "description", "format", "default", "examples"];

/// Why values of a schema may hold a text that somebody else wrote: where, and what was found.
pub(crate) type Loose = (String, &'static str);

/// Checks that all values of a schema are booleans, choices, numbers between bounds, and objects
/// with those: what can be told from them was thought of by whoever wrote the schema.
pub(crate) fn check_extract(schema: &Value) -> Result<(), Loose> {
    let mut left = EXTRACT_SCHEMAS_MAX;
    Walk { root: schema, left: &mut left }.check(schema, "")
}

struct Walk<'s> {
    root: &'s Value,
    left: &'s mut usize,
}

impl Walk<'_> {
    fn check(&mut self, schema: &Value, at: &str) -> Result<(), Loose> {
        let loose = |why| Err((at.to_owned(), why));
        match self.left.checked_sub(1) {
            Some(left) => *self.left = left,
            None => return loose("too many schemas, or one that refers to itself"),
        }
        let Value::Object(schema) = schema else {
            return loose("a schema that lets anything pass");
        };
        if let Some(target) = schema.get("$ref") {
            let target = target.as_str().and_then(|it| self.root.pointer(it.strip_prefix('#')?));
            return match target {
                Some(target) => self.check(&target.clone(), at),
                None => loose("a reference to nowhere"),
            };
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = schema.get(word) {
                let mut each = schemas.iter().enumerate();
                return each.try_for_each(|(no, it)| self.check(it, &format!("{at}/{word}/{no}")));
            }
        }
        if let Some(choices) = schema.get("enum") {
            return choices_fit(choices).or_else(|()| loose("choices that are many or no words"));
        }
        if let Some(choice) = schema.get("const") {
            return scalar(choice).or_else(|()| loose("a choice that is no word"));
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(word)) => vec![word],
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            Some(_) | None => return loose("values of any type"),
        };
        types.into_iter().try_for_each(|word| self.check_type(word, schema, at))
    }

    fn check_type(
        &mut self,
        word: &str,
        schema: &Map<String, Value>,
        at: &str,
    ) -> Result<(), Loose> {
        let loose = |why| Err((at.to_owned(), why));
        let says = |words: &[&str]| {
            let known = |word: &&str| ANNOTATIONS.contains(word) || words.contains(word);
            schema.keys().all(|key| known(&key.as_str()))
        };
        match word {
            "boolean" | "null" => Ok(()),
            "integer" | "number" => {
                let bound = |key| schema.get(key).and_then(Value::as_f64);
                let is_near = |key| bound(key).is_some_and(|it| it.abs() <= EXTRACT_NUMBER_MAX);
                let from = is_near("minimum") || is_near("exclusiveMinimum");
                let to = is_near("maximum") || is_near("exclusiveMaximum");
                if from && to { Ok(()) } else { loose("numbers without bounds, or with far ones") }
            }
            "object" => {
                let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
                let words = ["type", "properties", "required", "additionalProperties"];
                if !is_closed || !says(&words) {
                    return loose("objects with properties of any name");
                }
                let none = Map::new();
                let properties = schema.get("properties").and_then(Value::as_object);
                let properties = properties.unwrap_or(&none);
                if properties.len() > EXTRACT_CHOICES_MAX {
                    return loose("many properties");
                }
                let mut each = properties.iter();
                each.try_for_each(|(name, it)| self.check(it, &format!("{at}/properties/{name}")))
            }
            "string" => loose("strings of any kind"),
            "array" => loose("arrays, which spell texts"),
            _ => loose("values of an unknown type"),
        }
    }
}

fn choices_fit(choices: &Value) -> Result<(), ()> {
    match choices {
        Value::Array(choices) if choices.len() <= EXTRACT_CHOICES_MAX => {
            choices.iter().try_for_each(scalar)
        }
        _ => Err(()),
    }
}

fn scalar(value: &Value) -> Result<(), ()> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(_) | Value::Object(_) => Err(()),
    }
}
