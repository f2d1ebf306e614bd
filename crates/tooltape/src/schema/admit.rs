//! Decides which schemas are admitted: small, closed, and cheap to hold a value against.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::error::{SchemaError, excerpt};
use super::refs::{self, Graph};

/// The largest schema, in bytes of its keys and values.
pub const SCHEMA_BYTES_MAX: usize = 1 << 20;

/// The most values (objects, arrays, texts, numbers) in a schema.
pub const SCHEMA_VALUES_MAX: usize = 20_000;

/// The deepest nesting of a schema: what a JSON parser with default settings reads.
pub const SCHEMA_DEPTH_MAX: usize = 128;

/// The most regular expressions in a schema.
pub const SCHEMA_PATTERNS_MAX: usize = 100;

/// The most subschemas that one value may be held against without looking into it.
///
/// Without this bound a chain of `allOf: [next, next]` doubles the work with each link.
pub const SCHEMA_WIDTH_MAX: usize = 1_000;

/// The longest chain of subschemas that hold the same value: references, `allOf` and the like.
///
/// A check recurses along it on every level of a document, so this bounds the stack.
pub const SCHEMA_CHAIN_MAX: usize = 16;

/// How often a value is looked at again for each subschema beside an `unevaluated…` keyword.
const UNEVALUATED_FACTOR: usize = 3;

/// The longest text of a schema that an error repeats, in bytes.
pub(super) const QUOTE_BYTES_MAX: usize = 200;

/// A dialect that schemas may be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Draft7,
    Draft202012,
}

/// Refuses a schema that is too wide, endless, or of an unknown dialect.
pub(super) fn admit(graph: &Graph<'_>) -> Result<Dialect, SchemaError> {
    let dialect = graph.root().as_object().map_or(Ok(None), dialect_in)?;
    let mut patterns = 0;
    for object in graph.schemas().iter().filter_map(|schema| schema.as_object()) {
        dialect_in(object)?;
        patterns += usize::from(object.contains_key("pattern"));
        patterns += object.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
    }
    if patterns > SCHEMA_PATTERNS_MAX {
        return Err(SchemaError::TooLarge { unit: "patterns", max: SCHEMA_PATTERNS_MAX });
    }
    let mut widths = Widths { graph, known: HashMap::new() };
    graph.schemas().iter().try_for_each(|schema| widths.measure(schema, 0).map(drop))?;
    Ok(dialect.unwrap_or(Dialect::Draft202012))
}

/// Refuses a schema that is too large or too deep, without recursion: it may be as deep as memory
/// allows.
pub(super) fn measure(schema: &Value) -> Result<(), SchemaError> {
    let (mut bytes, mut values) = (0_usize, 0_usize);
    let mut pending = vec![(schema, 0_usize)];
    while let Some((value, depth)) = pending.pop() {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::TooDeep { max: SCHEMA_DEPTH_MAX });
        }
        values += 1;
        bytes += 1;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => bytes += 4,
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => {
                bytes += fields.keys().map(|key| key.len() + 1).sum::<usize>();
                pending.extend(fields.values().map(|value| (value, depth + 1)));
            }
        }
        if bytes > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLarge { unit: "bytes", max: SCHEMA_BYTES_MAX });
        }
        if values + pending.len() > SCHEMA_VALUES_MAX {
            return Err(SchemaError::TooLarge { unit: "values", max: SCHEMA_VALUES_MAX });
        }
    }
    Ok(())
}

fn dialect_in(schema: &Map<String, Value>) -> Result<Option<Dialect>, SchemaError> {
    let Some(Value::String(uri)) = schema.get("$schema") else { return Ok(None) };
    match uri.strip_suffix('#').unwrap_or(uri) {
        "https://json-schema.org/draft/2020-12/schema" => Ok(Some(Dialect::Draft202012)),
        "http://json-schema.org/draft-07/schema" => Ok(Some(Dialect::Draft7)),
        _ => Err(SchemaError::UnknownDialect { dialect: excerpt(uri, QUOTE_BYTES_MAX) }),
    }
}

/// How many subschemas one value meets at each schema.
struct Widths<'g, 's> {
    graph: &'g Graph<'s>,
    /// By the address of the schema; `None` while it is being measured.
    known: HashMap<*const Value, Option<Measure>>,
}

/// The subschemas that one value meets at a schema, the schema itself among them.
#[derive(Clone, Copy)]
struct Measure {
    /// How many they are.
    width: usize,
    /// How many of them lead from one to the next.
    chain: usize,
}

impl<'s> Widths<'_, 's> {
    /// Measures a schema that was reached by a chain of so many.
    fn measure(&mut self, schema: &'s Value, above: usize) -> Result<Measure, SchemaError> {
        let mut own = Measure { width: 1, chain: 1 };
        let Some(object) = schema.as_object() else { return Ok(own) };
        match self.known.get(&std::ptr::from_ref(schema)) {
            Some(Some(measure)) => return Ok(*measure),
            Some(None) => return Err(SchemaError::CyclicRef { pointer: self.pointer(schema) }),
            None => {}
        }
        if above == SCHEMA_CHAIN_MAX {
            return Err(SchemaError::TooDeep { max: SCHEMA_CHAIN_MAX });
        }
        self.known.insert(std::ptr::from_ref(schema), None);
        for child in refs::same_value(object) {
            let inner = self.measure(child, above + 1)?;
            own.width += inner.width;
            own.chain = own.chain.max(inner.chain + 1);
        }
        for reference in refs::references(object) {
            let mut widest = 1;
            for target in self.graph.targets(schema, reference) {
                let inner = self.measure(target, above + 1)?;
                widest = inner.width.max(widest);
                own.chain = own.chain.max(inner.chain + 1);
            }
            own.width += widest;
        }
        let unevaluated = ["unevaluatedProperties", "unevaluatedItems"];
        if unevaluated.iter().any(|keyword| object.contains_key(*keyword)) {
            own.width *= UNEVALUATED_FACTOR;
        }
        if own.width > SCHEMA_WIDTH_MAX {
            let pointer = self.pointer(schema);
            return Err(SchemaError::TooWide { pointer, max: SCHEMA_WIDTH_MAX });
        }
        if own.chain > SCHEMA_CHAIN_MAX {
            return Err(SchemaError::TooDeep { max: SCHEMA_CHAIN_MAX });
        }
        self.known.insert(std::ptr::from_ref(schema), Some(own));
        Ok(own)
    }

    fn pointer(&self, schema: &'s Value) -> String {
        excerpt(&self.graph.pointer_to(schema), QUOTE_BYTES_MAX)
    }
}
