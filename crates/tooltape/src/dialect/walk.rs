//! The walk that rewrites a schema into a closed dialect.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::document::{Document, SHELVES, list, values};
use super::keys::{Aliases, Keys};
use super::merge::{describes, merge};
use super::restore::{Back, Way};
use super::rules::{Null, References, Rules};
use super::shape::any;
use super::union::{take_null, types};
use super::{Compiled, Loss, LossKind, Uncompilable};

/// How many JSON values may be gone through to compile a schema, each as often as it is.
pub const STEPS_MAX: usize = 500_000;
/// How deep subschemas may be nested, each reference opened.
const LEVELS_MAX: usize = 96;
/// How long a constraint may be that moves into a description.
const NOTE_BYTES_MAX: usize = 300;
/// Keywords that say nothing to a model.
pub(super) const SILENT: [&str; 9] = [
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$dynamicAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
    "type",
];
/// Keywords that a model can act on when it reads them in a description.
const TELLING: [&str; 37] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "then",
    "uniqueItems",
];

/// Rewrites a document into a closed dialect.
pub(super) fn compile(document: &Document, rules: &Rules) -> Result<Compiled, Uncompilable> {
    let mut walker = Walker {
        document,
        rules,
        losses: Vec::new(),
        names: BTreeMap::new(),
        pending: Vec::new(),
        active: Vec::new(),
        steps: 0,
        level: 0,
    };
    let mut root = walker.flat(document.root(), "", 0)?;
    root.remove("title");
    let frame = if walker.stands_as_root(&mut root) { None } else { Some(document.free_key()) };
    if frame.is_none() {
        walker.names.insert(String::new(), String::new());
    }
    let description = frame.is_some().then(|| root.remove("description")).flatten();
    let node = walker.node(&Value::Object(root), "")?;
    let (mut shelf, mut ways) = (Map::new(), BTreeMap::new());
    for (name, node) in walker.definitions()? {
        shelf.insert(name.clone(), Value::Object(node.schema));
        ways.insert(name, node.way);
    }
    let (mut schema, mut way) = (node.schema, node.way);
    if let Some(key) = frame {
        schema = framed(&key, schema, rules);
        schema.extend(description.map(|text| ("description".to_owned(), text)));
        way = Way::Framed(key, Box::new(way));
    } else {
        ways.insert(String::new(), way.clone());
    }
    if !shelf.is_empty() {
        schema.insert("$defs".into(), Value::Object(shelf));
    }
    let mut seen = BTreeSet::new();
    walker.losses.retain(|loss| seen.insert(loss.clone()));
    Ok(Compiled {
        schema: Value::Object(schema),
        losses: walker.losses,
        back: Back::new(way, ways),
    })
}

/// An object with one property.
fn framed(key: &str, schema: Map<String, Value>, rules: &Rules) -> Map<String, Value> {
    let mut frame = Map::new();
    frame.insert("type".into(), "object".into());
    frame.insert("properties".into(), json!({ key: schema }));
    frame.insert("required".into(), json!([key]));
    rules.close(&mut frame);
    frame
}

/// A compiled subschema and the way back from it.
pub(super) struct Node {
    pub(super) schema: Map<String, Value>,
    pub(super) way: Way,
}

/// A subschema that is being written.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) schema: Map<String, Value>,
    pub(super) description: Option<String>,
    /// What the description has to say beyond itself.
    pub(super) notes: Vec<String>,
    pub(super) way: Way,
}

pub(super) struct Walker<'a> {
    pub(super) document: &'a Document,
    pub(super) rules: &'a Rules,
    losses: Vec<Loss>,
    /// The name of each shared subschema, by its pointer.
    names: BTreeMap<String, String>,
    /// Shared subschemas that are yet to be compiled.
    pending: Vec<String>,
    /// Recursive references that are open around the current subschema.
    active: Vec<String>,
    steps: usize,
    pub(super) level: usize,
}

impl Walker<'_> {
    /// Compiles one subschema.
    pub(super) fn node(&mut self, schema: &Value, at: &str) -> Result<Node, Uncompilable> {
        self.count(schema)?;
        let draft = match schema {
            Value::Object(schema) => self.draft(schema.clone(), at)?,
            Value::Bool(true) => self.draft(Map::new(), at)?,
            _ => return Err(Uncompilable::Never { pointer: at.to_owned() }),
        };
        Ok(self.finish(draft))
    }

    /// Writes one subschema, up to its description.
    pub(super) fn draft(
        &mut self,
        mut schema: Map<String, Value>,
        at: &str,
    ) -> Result<Draft, Uncompilable> {
        self.descend()?;
        if let [Value::Object(only)] = list(&schema, "allOf")
            && only.len() == 1
            && !schema.contains_key("$ref")
            && let Some(reference) = only.get("$ref").cloned()
        {
            schema.remove("allOf");
            schema.insert("$ref".into(), reference);
        }
        let mut is_nullable = schema.remove("nullable") == Some(Value::Bool(true));
        let reference = schema.get("$ref").and_then(Value::as_str).map(str::to_owned);
        let mut draft = if let Some(reference) = reference {
            self.reference(schema, &reference, at)?
        } else if describes(&schema, "allOf") {
            self.opened(schema, at, at)?
        } else {
            is_nullable |= take_null(&mut schema);
            if describes(&schema, "anyOf") {
                self.union(schema, "anyOf", at)?
            } else if describes(&schema, "oneOf") {
                self.union(schema, "oneOf", at)?
            } else {
                self.typed(schema, at)?
            }
        };
        if is_nullable {
            self.rules.admit_null(&mut draft.schema);
        }
        self.level -= 1;
        Ok(draft)
    }

    /// A reference stays one, or what it names takes its place.
    fn reference(
        &mut self,
        mut schema: Map<String, Value>,
        reference: &str,
        at: &str,
    ) -> Result<Draft, Uncompilable> {
        let is_recursive = self.document.is_recursive(reference);
        let (pointer, _) = self.document.resolve(reference)?;
        let is_alone = schema.keys().all(|key| key == "$ref" || SILENT.contains(&key.as_str()));
        match self.rules.references {
            References::SharedAcyclic if is_recursive => Err(self.recursive(reference)),
            References::Inlined => {
                let inside = if is_alone { &pointer } else { at };
                self.opened(schema, at, inside)
            }
            References::Shared | References::SharedAcyclic if !is_alone && !is_recursive => {
                self.opened(schema, at, at)
            }
            References::Shared | References::SharedAcyclic => {
                let name = self.share(pointer);
                let target = if name.is_empty() { "#".into() } else { format!("#/$defs/{name}") };
                schema.remove("$ref");
                let mut draft = Draft::of(&mut schema);
                draft.way = Way::Named(name);
                self.carry_all(&mut draft, schema, at);
                // Nothing may stand beside `$ref`.
                if draft.is_blank() {
                    draft.schema.insert("$ref".into(), target.into());
                } else {
                    draft.schema.insert("anyOf".into(), json!([{ "$ref": target }]));
                }
                Ok(draft)
            }
        }
    }

    /// Compiles a schema with its `$ref` and `allOf` dissolved.
    fn opened(
        &mut self,
        schema: Map<String, Value>,
        at: &str,
        inside: &str,
    ) -> Result<Draft, Uncompilable> {
        let (floor, level) = (self.active.len(), self.level);
        let draft = match self.flat(&Value::Object(schema.clone()), inside, floor) {
            Ok(flat) => self.draft(flat, inside),
            Err(Uncompilable::Recursive { reference, .. })
                if self.rules.references != References::SharedAcyclic =>
            {
                self.level = level;
                self.unopened(schema, &reference, at)
            }
            Err(err) => Err(err),
        };
        self.active.truncate(floor);
        draft
    }

    /// What stands where a recursive type would have to be opened again.
    fn unopened(
        &mut self,
        mut schema: Map<String, Value>,
        reference: &str,
        at: &str,
    ) -> Result<Draft, Uncompilable> {
        if self.rules.references == References::Shared {
            self.lose(at, "allOf", LossKind::Widened);
            schema.remove("allOf");
            schema.insert("$ref".into(), reference.into());
            return self.reference(schema, reference, at);
        }
        self.lose(at, "$ref", LossKind::Widened);
        let (_, target) = self.document.resolve(reference)?;
        let mut draft = Draft::of(&mut schema);
        if target.as_object().is_some_and(|target| types(target) == ["object"]) {
            draft.schema.insert("type".into(), "object".into());
            draft.notes.push("the same shape as an object around it".into());
        } else {
            draft.schema.insert("anyOf".into(), any());
            draft.notes.push("the same shape as a value around it".into());
        }
        Ok(draft)
    }

    /// The schema with its own `$ref` and `allOf` dissolved. References below `floor` are open
    /// around it and cannot be opened again.
    fn flat(
        &mut self,
        schema: &Value,
        at: &str,
        floor: usize,
    ) -> Result<Map<String, Value>, Uncompilable> {
        self.count(schema)?;
        self.descend()?;
        let mut flat = match schema {
            Value::Object(schema) => schema.clone(),
            Value::Bool(true) => Map::new(),
            _ => return Err(Uncompilable::Never { pointer: at.to_owned() }),
        };
        if let Some(Value::String(reference)) = flat.remove("$ref") {
            if self.document.is_recursive(&reference) {
                if self.active[..floor].contains(&reference)
                    || self.rules.references == References::SharedAcyclic
                {
                    return Err(self.recursive(&reference));
                }
                self.active.push(reference.clone());
            }
            let (pointer, target) = self.document.resolve(&reference)?;
            let target = self.flat(target, &pointer, floor)?;
            flat = self.merged(&target, &flat, at)?;
        }
        if describes(&flat, "allOf") {
            let members = flat.remove("allOf");
            let mut all = Map::new();
            for member in members.as_ref().and_then(Value::as_array).into_iter().flatten() {
                let member = self.flat(member, at, floor)?;
                all = self.merged(&all, &member, at)?;
            }
            flat = self.merged(&all, &flat, at)?;
        }
        self.level -= 1;
        Ok(flat)
    }

    pub(super) fn merged(
        &mut self,
        first: &Map<String, Value>,
        second: &Map<String, Value>,
        at: &str,
    ) -> Result<Map<String, Value>, Uncompilable> {
        let Some((merged, lost)) = merge(first, second) else {
            return Err(Uncompilable::Never { pointer: at.to_owned() });
        };
        lost.iter().for_each(|keyword| self.lose(at, keyword, LossKind::Dropped));
        Ok(merged)
    }

    /// The name under which a subschema is shared; it is compiled after the root.
    fn share(&mut self, pointer: String) -> String {
        if let Some(name) = self.names.get(&pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or("root");
        let taken = self.names.values().cloned().collect();
        let name = Aliases { keys: Keys::Dotted, taken, last: BTreeMap::new() }.alias(last);
        self.names.insert(pointer.clone(), name.clone());
        self.pending.push(pointer);
        name
    }

    /// The shared subschemas by name.
    fn definitions(&mut self) -> Result<BTreeMap<String, Node>, Uncompilable> {
        let mut definitions = BTreeMap::new();
        while let Some(pointer) = self.pending.pop() {
            let (_, target) = self.document.resolve(&format!("#{pointer}"))?;
            let node = self.node(&target.clone(), &pointer)?;
            definitions.insert(self.names[&pointer].clone(), node);
        }
        Ok(definitions)
    }

    /// Copies what a draft can carry, and tells or drops the rest.
    pub(super) fn carry_all(&mut self, draft: &mut Draft, schema: Map<String, Value>, at: &str) {
        for (keyword, value) in schema {
            self.carry(draft, &keyword, value, at);
        }
    }

    pub(super) fn carry(&mut self, draft: &mut Draft, keyword: &str, value: Value, at: &str) {
        // An absent value is what a default of `null` amounts to.
        let is_silent = SILENT.contains(&keyword) || (keyword == "default" && value.is_null());
        if (self.rules.carries)(keyword, &value) {
            draft.schema.insert(keyword.to_owned(), value);
        } else if !is_silent {
            self.tell(draft, keyword, &value, at);
        }
    }

    /// Moves a keyword into the description if it is short and a model can act on it.
    pub(super) fn tell(&mut self, draft: &mut Draft, keyword: &str, value: &Value, at: &str) {
        let note = format!("{keyword}: {value}");
        if TELLING.contains(&keyword) && note.len() <= NOTE_BYTES_MAX {
            draft.notes.push(note);
            self.lose(at, keyword, LossKind::Moved);
        } else {
            self.lose(at, keyword, LossKind::Dropped);
        }
    }

    pub(super) fn lose(&mut self, at: &str, keyword: &str, kind: LossKind) {
        let (pointer, keyword) = (at.to_owned(), keyword.to_owned());
        self.losses.push(Loss { pointer, keyword, kind });
    }

    fn finish(&self, draft: Draft) -> Node {
        let Draft { mut schema, description, notes, way } = draft;
        schema.extend(told(description, &notes).map(|text| ("description".into(), text.into())));
        if self.rules.null == Null::Flag && schema.contains_key("anyOf") {
            // Nothing may stand beside `anyOf`.
            let (mut union, beside): (Map<_, _>, Map<_, _>) =
                schema.into_iter().partition(|(keyword, _)| keyword == "anyOf");
            let first = union["anyOf"][0].as_object_mut().expect("a branch is a schema");
            for (keyword, value) in beside {
                let both = match (first.get(&keyword), keyword.as_str()) {
                    (Some(Value::String(own)), "description") => {
                        format!("{} {own}", value.as_str().unwrap_or_default()).into()
                    }
                    _ => value,
                };
                first.insert(keyword, both);
            }
            schema = union;
        }
        Node { schema, way }
    }

    /// Counts a subschema before it is copied.
    fn count(&mut self, schema: &Value) -> Result<(), Uncompilable> {
        self.steps += values(schema);
        let what = "values, each reference opened";
        let is_in_bounds = self.steps <= STEPS_MAX;
        is_in_bounds.then_some(()).ok_or(Uncompilable::TooBig { what, limit: STEPS_MAX })
    }

    /// Goes one level down; whoever comes back up takes it off again.
    fn descend(&mut self) -> Result<(), Uncompilable> {
        self.level += 1;
        let what = "levels, each reference opened";
        let is_in_bounds = self.level <= LEVELS_MAX;
        is_in_bounds.then_some(()).ok_or(Uncompilable::TooBig { what, limit: LEVELS_MAX })
    }

    fn recursive(&self, reference: &str) -> Uncompilable {
        let reference = reference.to_owned();
        Uncompilable::Recursive { reference, dialect: self.rules.dialect }
    }
}

impl Draft {
    /// An empty draft that takes over the description.
    pub(super) fn of(schema: &mut Map<String, Value>) -> Draft {
        let description = match schema.remove("description") {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        for shelf in SHELVES {
            schema.remove(shelf);
        }
        Draft { description, ..Draft::default() }
    }

    fn is_blank(&self) -> bool {
        self.schema.is_empty() && self.description.is_none() && self.notes.is_empty()
    }
}

/// A description with its notes.
fn told(description: Option<String>, notes: &[String]) -> Option<String> {
    let notes = notes.join("; ");
    match description {
        Some(text) if notes.is_empty() => Some(text),
        Some(text) => Some(format!("{text} ({notes})")),
        None if notes.is_empty() => None,
        None => Some(notes),
    }
}
