//! Compiles the common keywords into a plan that a document is walked with.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Number, Value};

use super::admit::Dialect;
use super::fields::{Fields, Named};
use super::refs::Graph;
use super::same::Quantity;

/// The longest way through a schema that is compiled; a longer one has no plan.
const PLAN_DEPTH_MAX: usize = 256;

/// A schema whose every keyword the walk knows.
pub(super) struct Plan {
    rules: Vec<Rule>,
    root: RuleId,
}

/// A rule of a plan.
pub(super) type RuleId = usize;

/// What one subschema asks for.
#[derive(Default)]
pub(super) struct Rule {
    pub(super) kinds: Kinds,
    /// What it asks for beside the type; most rules ask for nothing.
    pub(super) more: Option<Box<More>>,
}

/// The rarer parts of a rule; each that is absent asks for nothing.
#[derive(Default)]
pub(super) struct More {
    pub(super) object: Option<ObjectRule>,
    pub(super) array: Option<ArrayRule>,
    pub(super) length: Option<Sizes>,
    pub(super) bounds: Vec<Bound>,
    pub(super) multiple_of: Option<u64>,
    /// The lists that the value must be in: `enum`, `const`.
    pub(super) lists: Vec<List>,
    /// Rules that must all hold: `$ref`, `allOf`.
    pub(super) all: Vec<RuleId>,
    /// Rules of which one at least must hold.
    pub(super) any: Option<Vec<RuleId>>,
    /// Rules of which exactly one must hold.
    pub(super) one: Option<Vec<RuleId>>,
    pub(super) not: Option<RuleId>,
}

/// The only values that are allowed.
pub(super) enum List {
    Texts(Fields<Box<str>>),
    Values(Vec<Value>),
}

/// What a rule asks of the fields of an object.
pub(super) struct ObjectRule {
    fields: Fields<FieldRule>,
    /// How many of the fields with a name are required.
    pub(super) required: usize,
    /// The rule for all other fields, if there is one.
    pub(super) others: Option<RuleId>,
    pub(super) count: Sizes,
}

/// What a rule asks of one field.
pub(super) struct FieldRule {
    name: Box<str>,
    pub(super) required: bool,
    pub(super) rule: Option<RuleId>,
}

/// What a rule asks of the items of an array.
pub(super) struct ArrayRule {
    pub(super) items: Option<RuleId>,
    pub(super) count: Sizes,
    pub(super) differ: bool,
}

/// How many characters, items or fields there may be.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// One limit of a number: how it must not compare with it.
pub(super) struct Bound {
    pub(super) limit: Quantity,
    /// The order of value and limit that is too far.
    pub(super) beyond: Ordering,
    /// Whether the limit itself is allowed.
    pub(super) inclusive: bool,
}

/// A set of JSON types, integers apart from other numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Kinds = Kinds(0);
    pub(super) const NULL: Kinds = Kinds(1);
    pub(super) const BOOLEAN: Kinds = Kinds(1 << 1);
    pub(super) const INTEGER: Kinds = Kinds(1 << 2);
    pub(super) const FRACTION: Kinds = Kinds(1 << 3);
    pub(super) const NUMBER: Kinds = Kinds(1 << 2 | 1 << 3);
    pub(super) const STRING: Kinds = Kinds(1 << 4);
    pub(super) const ARRAY: Kinds = Kinds(1 << 5);
    pub(super) const OBJECT: Kinds = Kinds(1 << 6);
    pub(super) const ALL: Kinds = Kinds((1 << 7) - 1);

    pub(super) fn contains(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }

    fn named(name: &str) -> Option<Kinds> {
        match name {
            "null" => Some(Kinds::NULL),
            "boolean" => Some(Kinds::BOOLEAN),
            "integer" => Some(Kinds::INTEGER),
            "number" => Some(Kinds::NUMBER),
            "string" => Some(Kinds::STRING),
            "array" => Some(Kinds::ARRAY),
            "object" => Some(Kinds::OBJECT),
            _ => None,
        }
    }

    fn of(types: &Value) -> Option<Kinds> {
        match types {
            Value::String(name) => Kinds::named(name),
            Value::Array(names) => names.iter().try_fold(Kinds::NONE, |kinds, name| {
                Some(Kinds(kinds.0 | Kinds::named(name.as_str()?)?.0))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }
}

impl Default for Kinds {
    fn default() -> Kinds {
        Kinds::ALL
    }
}

impl List {
    fn of(values: &[Value]) -> List {
        let text = |value: &Value| value.as_str().map(Box::from);
        match values.iter().map(text).collect() {
            Some(texts) => List::Texts(Fields::new(texts)),
            None => List::Values(values.to_vec()),
        }
    }
}

impl More {
    /// Whether other rules have a say.
    #[inline]
    pub(super) fn has_branches(&self) -> bool {
        !self.all.is_empty() || self.any.is_some() || self.one.is_some() || self.not.is_some()
    }
}

impl Bound {
    pub(super) fn allows(&self, quantity: Quantity) -> bool {
        match quantity.compare(self.limit) {
            Some(Ordering::Equal) => self.inclusive,
            Some(order) => order != self.beyond,
            None => false,
        }
    }
}

impl ObjectRule {
    /// The rule for the field of that name, if it has one of its own.
    #[inline]
    pub(super) fn field(&self, name: &str) -> Option<&FieldRule> {
        self.fields.get(name)
    }
}

impl Named for FieldRule {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Box<str> {
    fn name(&self) -> &str {
        self
    }
}

impl Sizes {
    const ANY: Sizes = Sizes { min: 0, max: u64::MAX };

    pub(super) fn allow(self, count: usize) -> bool {
        (self.min..=self.max).contains(&(count as u64))
    }

    /// Whether a text has an allowed number of characters; one of few bytes needs no counting.
    pub(super) fn allow_text(self, text: &str) -> bool {
        let may_be_short = (text.len() as u64) < self.min.saturating_mul(4);
        let may_be_long = text.len() as u64 > self.max;
        (!may_be_short && !may_be_long) || self.allow(text.chars().count())
    }

    fn is_any(self) -> bool {
        self.min == 0 && self.max == u64::MAX
    }
}

impl Plan {
    /// Compiles a schema, unless it has a keyword that the walk does not know: then there is no
    /// plan at all, since what is left out would be ignored.
    pub(super) fn compile(graph: &Graph<'_>, dialect: Dialect) -> Option<Plan> {
        let mut planner =
            Planner { graph, dialect, rules: Vec::new(), ids: HashMap::new(), depth: 0 };
        let root = planner.rule(graph.root())?;
        Some(Plan { rules: planner.rules, root })
    }

    pub(super) fn root(&self) -> RuleId {
        self.root
    }

    #[inline]
    pub(super) fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id]
    }
}

struct Planner<'g, 's> {
    graph: &'g Graph<'s>,
    dialect: Dialect,
    rules: Vec<Rule>,
    /// The rule of each schema, by address; recursion finds the one that is being made.
    ids: HashMap<*const Value, RuleId>,
    depth: usize,
}

impl<'s> Planner<'_, 's> {
    fn rule(&mut self, schema: &'s Value) -> Option<RuleId> {
        let address = std::ptr::from_ref(schema);
        if let Some(id) = self.ids.get(&address) {
            return Some(*id);
        }
        if self.depth == PLAN_DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let id = match self.lone_reference(schema) {
            Some(reference) => self.target(schema, reference)?,
            None => {
                let id = self.rules.len();
                self.rules.push(Rule::default());
                self.ids.insert(address, id);
                self.rules[id] = self.rule_of(schema)?;
                id
            }
        };
        self.ids.insert(address, id);
        self.depth -= 1;
        Some(id)
    }

    /// The reference of a schema that says nothing else: its rule is the target's.
    fn lone_reference(&self, schema: &'s Value) -> Option<&'s Value> {
        let keywords = schema.as_object()?;
        let reference = keywords.get("$ref")?;
        let lone = match self.dialect {
            // Whatever stands beside a reference has no say.
            Dialect::Draft7 => true,
            Dialect::Draft202012 => {
                keywords.keys().all(|keyword| keyword == "$ref" || self.is_annotation(keyword))
            }
        };
        lone.then_some(reference)
    }

    fn rule_of(&mut self, schema: &'s Value) -> Option<Rule> {
        match schema {
            Value::Bool(true) => Some(Rule::default()),
            Value::Bool(false) => Some(Rule { kinds: Kinds::NONE, more: None }),
            Value::Object(keywords) => {
                let mut parts = Parts::default();
                for (keyword, value) in keywords {
                    self.keyword(schema, keyword, value, &mut parts)?;
                }
                Some(parts.into_rule())
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// Takes one keyword into a rule, or gives up.
    fn keyword(
        &mut self,
        schema: &'s Value,
        keyword: &str,
        value: &'s Value,
        parts: &mut Parts,
    ) -> Option<()> {
        match keyword {
            "type" => parts.kinds = Kinds::of(value)?,
            "properties" => {
                for (name, schema) in value.as_object()? {
                    let rule = self.rule(schema)?;
                    parts.fields.entry(name.as_str().into()).or_default().0 = Some(rule);
                }
            }
            "required" => {
                for name in value.as_array()? {
                    parts.fields.entry(name.as_str()?.into()).or_default().1 = true;
                }
            }
            "additionalProperties" => parts.others = self.unless_true(value)?,
            "items" if !value.is_array() => parts.items = self.unless_true(value)?,
            "propertyNames" if is_any_text(value) => {}
            "minProperties" => parts.fields_count.min = size(value)?,
            "maxProperties" => parts.fields_count.max = size(value)?,
            "minItems" => parts.items_count.min = size(value)?,
            "maxItems" => parts.items_count.max = size(value)?,
            "minLength" => parts.length.min = size(value)?,
            "maxLength" => parts.length.max = size(value)?,
            "uniqueItems" => parts.differ = value.as_bool()?,
            "minimum" => parts.bound(value, Ordering::Less, true)?,
            "exclusiveMinimum" => parts.bound(value, Ordering::Less, false)?,
            "maximum" => parts.bound(value, Ordering::Greater, true)?,
            "exclusiveMaximum" => parts.bound(value, Ordering::Greater, false)?,
            "multipleOf" => parts.more.multiple_of = Some(value.as_u64().filter(|of| *of > 0)?),
            "enum" => parts.more.lists.push(List::of(value.as_array()?)),
            "const" => parts.more.lists.push(List::of(std::slice::from_ref(value))),
            "allOf" => parts.more.all.extend(self.list(value)?),
            "anyOf" => parts.more.any = Some(self.list(value)?),
            "oneOf" => parts.more.one = Some(self.list(value)?),
            "not" => parts.more.not = Some(self.rule(value)?),
            "$ref" => parts.more.all.push(self.target(schema, value)?),
            "$schema" if std::ptr::eq(schema, self.graph.root()) => {}
            _ if self.is_annotation(keyword) => {}
            _ => return None,
        }
        Some(())
    }

    /// Whether a keyword asks nothing of any value.
    fn is_annotation(&self, keyword: &str) -> bool {
        match keyword {
            "$anchor" | "$comment" | "$defs" | "$id" | "default" | "definitions" | "deprecated"
            | "description" | "examples" | "format" | "readOnly" | "title" | "writeOnly" => true,
            "contentEncoding" | "contentMediaType" => self.dialect == Dialect::Draft202012,
            _ => false,
        }
    }

    fn list(&mut self, schemas: &'s Value) -> Option<Vec<RuleId>> {
        schemas.as_array()?.iter().map(|schema| self.rule(schema)).collect()
    }

    /// The rule of a schema; none if it asks for nothing.
    fn unless_true(&mut self, schema: &'s Value) -> Option<Option<RuleId>> {
        if schema == &Value::Bool(true) {
            return Some(None);
        }
        self.rule(schema).map(Some)
    }

    /// The rule that a reference within the document leads to.
    fn target(&mut self, schema: &'s Value, reference: &Value) -> Option<RuleId> {
        let reference = reference.as_str().filter(|reference| reference.starts_with('#'))?;
        if self.dialect == Dialect::Draft7 && schema.get("$id").is_some() {
            // An `$id` beside a reference names nothing there, but the graph takes it for a name.
            return None;
        }
        match self.graph.targets(schema, reference).as_slice() {
            [target] => self.rule(target),
            _ => None,
        }
    }
}

/// The parts of a rule while its keywords are read.
#[derive(Default)]
struct Parts {
    kinds: Kinds,
    /// For each name: its rule, and whether it is required.
    fields: BTreeMap<Box<str>, (Option<RuleId>, bool)>,
    others: Option<RuleId>,
    fields_count: Sizes,
    items: Option<RuleId>,
    items_count: Sizes,
    differ: bool,
    length: Sizes,
    more: More,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes::ANY
    }
}

impl Parts {
    fn bound(&mut self, limit: &Value, beyond: Ordering, inclusive: bool) -> Option<()> {
        let limit = Quantity::of(limit.as_number()?);
        self.more.bounds.push(Bound { limit, beyond, inclusive });
        Some(())
    }

    fn into_rule(self) -> Rule {
        let Parts { kinds, fields, others, fields_count, items, items_count, .. } = self;
        let mut more = self.more;
        if !fields.is_empty() || others.is_some() || !fields_count.is_any() {
            let field = |(name, (rule, required)): (_, (Option<RuleId>, _))| {
                // A name that is only required is one of the other fields.
                FieldRule { name, required, rule: rule.or(others) }
            };
            let required = fields.values().filter(|(_, required)| *required).count();
            let fields = Fields::new(fields.into_iter().map(field).collect());
            more.object = Some(ObjectRule { fields, required, others, count: fields_count });
        }
        if items.is_some() || self.differ || !items_count.is_any() {
            more.array = Some(ArrayRule { items, count: items_count, differ: self.differ });
        }
        more.length = (!self.length.is_any()).then_some(self.length);
        let asks = more.object.is_some()
            || more.array.is_some()
            || more.length.is_some()
            || !more.bounds.is_empty()
            || more.multiple_of.is_some()
            || !more.lists.is_empty()
            || !more.all.is_empty()
            || more.any.is_some()
            || more.one.is_some()
            || more.not.is_some();
        Rule { kinds, more: asks.then(|| Box::new(more)) }
    }
}

/// Whether a schema for names of fields allows them all, as every name is a text.
fn is_any_text(schema: &Value) -> bool {
    schema == &Value::Bool(true) || *schema == serde_json::json!({ "type": "string" })
}

/// A number of characters, items or fields; `2.0` is one, too.
fn size(value: &Value) -> Option<u64> {
    let whole = |number: &Number| match Quantity::of(number) {
        Quantity::Integer(integer) => u64::try_from(integer).ok(),
        Quantity::Double(double) => {
            (double.fract() == 0.0 && (0.0..1e15).contains(&double)).then_some(double as u64)
        }
    };
    value.as_number().and_then(whole)
}
