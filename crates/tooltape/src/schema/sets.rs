//! Finds the arrays that a schema calls sets.

use serde_json::{Map, Value};

use super::admit::Dialect;
use super::refs::Graph;
use crate::canon::Sets;

/// The most subschemas that are looked at for sets; beyond them, arrays keep their order.
const LOOKS_MAX: usize = 10_000;

/// The longest way through a schema that is followed to find a set.
const DEPTH_MAX: usize = 256;

/// Which arrays are `uniqueItems`, as far as that holds for every valid document.
///
/// It is followed through `properties`, `additionalProperties`, `items`, `$ref` and `allOf`, and
/// not through what chooses, such as `anyOf`. A recursive schema is followed once.
pub(super) fn sets_of(graph: &Graph<'_>, dialect: Dialect) -> Option<Sets> {
    let mut search = Search { graph, dialect, looks: LOOKS_MAX, above: Vec::new() };
    let mut sets = Sets::default();
    search.collect(graph.root(), &mut sets);
    (!sets.is_empty()).then_some(sets)
}

struct Search<'g, 's> {
    graph: &'g Graph<'s>,
    dialect: Dialect,
    looks: usize,
    /// The schemas around the one that is looked at.
    above: Vec<&'s Value>,
}

impl<'s> Search<'_, 's> {
    fn collect(&mut self, schema: &'s Value, sets: &mut Sets) {
        let Some(keywords) = schema.as_object() else { return };
        let too_far = self.looks == 0 || self.above.len() == DEPTH_MAX;
        if too_far || self.above.iter().any(|above| std::ptr::eq(*above, schema)) {
            return;
        }
        self.looks -= 1;
        self.above.push(schema);
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str)
            && let [target] = self.graph.targets(schema, reference).as_slice()
        {
            self.collect(target, sets);
        }
        if self.dialect == Dialect::Draft202012 || !keywords.contains_key("$ref") {
            self.collect_beside(keywords, sets);
        }
        self.above.pop();
    }

    fn collect_beside(&mut self, keywords: &'s Map<String, Value>, sets: &mut Sets) {
        for schema in keywords.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.collect(schema, sets);
        }
        sets.here |= keywords.get("uniqueItems") == Some(&Value::Bool(true));
        if let Some(items) = keywords.get("items").filter(|_| !keywords.contains_key("prefixItems"))
        {
            let mut inside = sets.items.take().unwrap_or_default();
            self.collect(items, &mut inside);
            sets.items = Some(inside).filter(|items| !items.is_empty());
        }
        let properties = keywords.get("properties").and_then(Value::as_object);
        let named = properties.into_iter().flatten();
        let mut others = Sets::default();
        if let Some(schema) = keywords.get("additionalProperties")
            && !keywords.contains_key("patternProperties")
        {
            self.collect(schema, &mut others);
        }
        for (name, schema) in named {
            let mut field = sets.fields.remove(name).unwrap_or_default();
            self.collect(schema, &mut field);
            // A name without sets still has to be told from the others.
            if !field.is_empty() || !others.is_empty() {
                sets.fields.insert(name.clone(), field);
            }
        }
        if !others.is_empty() {
            sets.others = Some(Box::new(others));
        }
    }
}
