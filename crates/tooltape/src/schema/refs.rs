//! Finds the subschemas of a schema and what its references lead to, fetching nothing.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use self::Holds::{List, Named, One, OneOrList};
use super::error::SchemaError;

/// The most `$id`, `$anchor` and `$dynamicAnchor` in a schema.
pub const SCHEMA_NAMES_MAX: usize = 1_000;

/// A keyword with schemas in it.
struct Keyword {
    name: &'static str,
    holds: Holds,
    /// Whether they are held against the very value that the schema around them is.
    same_value: bool,
}

#[derive(Clone, Copy)]
enum Holds {
    One,
    List,
    OneOrList,
    Named,
}

const fn keyword(name: &'static str, holds: Holds, same_value: bool) -> Keyword {
    Keyword { name, holds, same_value }
}

const KEYWORDS: [Keyword; 22] = [
    keyword("$defs", Named, false),
    keyword("additionalItems", One, false),
    keyword("additionalProperties", One, false),
    keyword("allOf", List, true),
    keyword("anyOf", List, true),
    keyword("contains", One, false),
    keyword("contentSchema", One, false),
    keyword("definitions", Named, false),
    keyword("dependencies", Named, true),
    keyword("dependentSchemas", Named, true),
    keyword("else", One, true),
    keyword("if", One, true),
    keyword("items", OneOrList, false),
    keyword("not", One, true),
    keyword("oneOf", List, true),
    keyword("patternProperties", Named, false),
    keyword("prefixItems", List, false),
    keyword("properties", Named, false),
    keyword("propertyNames", One, false),
    keyword("then", One, true),
    keyword("unevaluatedItems", One, false),
    keyword("unevaluatedProperties", One, false),
];

/// Every schema directly inside this one.
fn children(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    KEYWORDS.iter().flat_map(|keyword| schemas_in(schema, keyword))
}

/// Every schema directly inside this one that is held against the same value.
pub(super) fn same_value(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let keywords = KEYWORDS.iter().filter(|keyword| keyword.same_value);
    keywords.flat_map(|keyword| schemas_in(schema, keyword))
}

fn schemas_in<'s>(schema: &'s Map<String, Value>, keyword: &Keyword) -> Vec<&'s Value> {
    let held: Vec<&Value> = match (keyword.holds, schema.get(keyword.name)) {
        (One | OneOrList, Some(schema @ (Value::Object(_) | Value::Bool(_)))) => vec![schema],
        (List | OneOrList, Some(Value::Array(schemas))) => schemas.iter().collect(),
        (Named, Some(Value::Object(schemas))) => schemas.values().collect(),
        (One | List | OneOrList | Named, _) => Vec::new(),
    };
    held.into_iter().filter(|schema| schema.is_object() || schema.is_boolean()).collect()
}

/// The references of a schema.
pub(super) fn references(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_str())
}

/// A schema's subschemas and the names that references may call them by.
pub(super) struct Graph<'s> {
    /// Every subschema, and whatever else a reference makes one.
    schemas: Vec<&'s Value>,
    /// The resource that each schema belongs to, by address.
    resource_of: HashMap<*const Value, usize>,
    /// The root, and each schema with an `$id` of its own.
    resources: Vec<(&'s str, &'s Value)>,
    anchors: Vec<(&'s str, &'s Value)>,
}

impl<'s> Graph<'s> {
    /// Takes in a schema, unless it gives too many names.
    pub(super) fn of(root: &'s Value) -> Result<Graph<'s>, SchemaError> {
        let mut graph = Graph {
            schemas: Vec::new(),
            resource_of: HashMap::new(),
            resources: vec![("", root)],
            anchors: Vec::new(),
        };
        graph.add(root, 0)?;
        let mut next = 0;
        while let Some(&schema) = graph.schemas.get(next) {
            let resource = graph.resource_of[&std::ptr::from_ref(schema)];
            for reference in schema.as_object().into_iter().flat_map(references) {
                for target in graph.targets(schema, reference) {
                    graph.add(target, resource)?;
                }
            }
            next += 1;
        }
        Ok(graph)
    }

    pub(super) fn root(&self) -> &'s Value {
        self.resources[0].1
    }

    /// Every schema, the root first.
    pub(super) fn schemas(&self) -> &[&'s Value] {
        &self.schemas
    }

    /// What a reference of a schema can lead to inside this document.
    ///
    /// A reference to another resource is matched by the last part of its path alone, so this may
    /// be too much, but never too little. One that begins with `#/` has one target at most.
    pub(super) fn targets(&self, schema: &Value, reference: &str) -> Vec<&'s Value> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decoded(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let named = self.anchors.iter().filter(|(name, _)| *name == fragment);
            return named.map(|(_, schema)| *schema).collect();
        }
        let own = self.resource_of.get(&std::ptr::from_ref(schema));
        let resources: Vec<&'s Value> = match own {
            Some(own) if uri.is_empty() => vec![self.resources[*own].1],
            Some(_) | None => {
                let like = self.resources.iter().filter(|(id, _)| may_name(uri, id));
                like.map(|(_, schema)| *schema).collect()
            }
        };
        resources.iter().filter_map(|resource| resource.pointer(&fragment)).collect()
    }

    /// Where a schema stands, as a JSON pointer after `#`.
    pub(super) fn pointer_to(&self, schema: &Value) -> String {
        let mut path = String::from("#");
        find(self.root(), schema, &mut path);
        path
    }

    fn add(&mut self, root: &'s Value, resource: usize) -> Result<(), SchemaError> {
        let mut pending = vec![(root, resource)];
        while let Some((schema, mut resource)) = pending.pop() {
            let address = std::ptr::from_ref(schema);
            if self.resource_of.contains_key(&address) {
                continue;
            }
            self.schemas.push(schema);
            let Some(object) = schema.as_object() else {
                self.resource_of.insert(address, resource);
                continue;
            };
            match object.get("$id").and_then(Value::as_str) {
                Some(id) if id.starts_with('#') => self.anchors.push((&id[1..], schema)),
                Some(id) if std::ptr::eq(schema, self.root()) => self.resources[0].0 = id,
                Some(id) => {
                    resource = self.resources.len();
                    self.resources.push((id, schema));
                }
                None => {}
            }
            for anchor in ["$anchor", "$dynamicAnchor"] {
                let name = object.get(anchor).and_then(Value::as_str);
                self.anchors.extend(name.map(|name| (name, schema)));
            }
            if self.resources.len() + self.anchors.len() > SCHEMA_NAMES_MAX {
                return Err(SchemaError::TooLarge { unit: "names", max: SCHEMA_NAMES_MAX });
            }
            self.resource_of.insert(address, resource);
            pending.extend(children(object).map(|child| (child, resource)));
        }
        Ok(())
    }
}

/// Whether a reference may name the resource of this id: a relative reference keeps its last part.
fn may_name(reference: &str, id: &str) -> bool {
    let last = path_end(reference);
    matches!(last, "" | "." | "..") || last == path_end(id)
}

/// The last part of a URI's path.
fn path_end(uri: &str) -> &str {
    let path = uri.split(['#', '?']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (byte, used) = byte.filter(|_| first == b'%').map_or((first, 0), |byte| (byte, 2));
        bytes.push(byte);
        rest = &after[used..];
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Appends to `path` the way from one value to another inside it, and says whether there is one.
fn find(from: &Value, to: &Value, path: &mut String) -> bool {
    if std::ptr::eq(from, to) {
        return true;
    }
    let mut inside = |name: &str, child| {
        let len = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let found = find(child, to, path);
        if !found {
            path.truncate(len);
        }
        found
    };
    match from {
        Value::Array(items) => {
            items.iter().enumerate().any(|(index, item)| inside(&index.to_string(), item))
        }
        Value::Object(fields) => fields.iter().any(|(name, value)| inside(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
