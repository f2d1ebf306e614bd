//! Shows a strictly read document to the `jsonschema` crate, value by value, within a budget.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::json::{Array, Json, JsonNumber, Node as JsonNode, NodeIdentity, Object};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Number, Value};

use super::same::{all_differ, same, steps_to_read};
use crate::canon::{Kind, Node};

/// The representation of JSON that our validators read: no tree is built for it.
pub(super) struct Views;

impl Json for Views {
    type Node<'a> = View<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(View<'_>) -> T) -> T {
        f(View::Name(string))
    }
}

/// The keys that are compared in about the time of a step.
const KEYS_PER_STEP: u64 = 4;

/// What stands in an error for the value that is wrong, once the budget is spent.
const SPENT: Value = Value::Bool(false);

/// Whether an error was found while there was a budget.
pub(super) fn counts(error: &ValidationError<'_>) -> bool {
    **error.instance() != SPENT
}

/// How much a validator may still look at.
///
/// When it is used up, every value looks like `null`: the validator comes to a quick end, and what
/// it says no longer counts. That bounds recursion that a schema multiplies, and unions of unions.
pub(super) struct Budget {
    steps: Cell<u64>,
    errors: Cell<usize>,
}

impl Budget {
    pub(super) fn new(steps: u64, errors: usize) -> Budget {
        Budget { steps: Cell::new(steps), errors: Cell::new(errors) }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.steps.get() == 0
    }

    fn step(&self) -> bool {
        self.spend(1)
    }

    fn spend(&self, steps: u64) -> bool {
        self.steps.set(self.steps.get().saturating_sub(steps));
        !self.is_spent()
    }

    /// Counts an error that the validator is about to describe.
    fn error(&self) {
        match self.errors.get().checked_sub(1) {
            Some(left) => self.errors.set(left),
            None => self.steps.set(0),
        }
    }
}

/// A value of a document, or the name of a field while `propertyNames` looks at it.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    Value(Node<'a>, &'a Budget),
    Name(&'a str),
}

impl<'a> View<'a> {
    /// The value, if the budget allows one more look at it.
    fn look(&self) -> Option<(Node<'a>, &'a Budget)> {
        match *self {
            View::Value(node, budget) => budget.step().then_some((node, budget)),
            View::Name(_) => None,
        }
    }

    fn of_kind(&self, kind: Kind) -> Option<(Node<'a>, &'a Budget)> {
        self.look().filter(|(node, _)| node.kind() == kind)
    }
}

impl<'a> JsonNode<'a, Views> for View<'a> {
    type Object = Inside<'a>;
    type Array = Inside<'a>;
    type Number = Literal<'a>;

    fn as_object(&self) -> Option<Inside<'a>> {
        self.of_kind(Kind::Object).map(|(node, budget)| Inside { node, budget })
    }

    fn as_array(&self) -> Option<Inside<'a>> {
        self.of_kind(Kind::Array).map(|(node, budget)| Inside { node, budget })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            View::Name(name) => Some(Cow::Borrowed(name)),
            View::Value(..) => {
                let (node, budget) = self.of_kind(Kind::String)?;
                budget.spend(steps_to_read(node)).then(|| node.as_str())?
            }
        }
    }

    fn as_number(&self) -> Option<Literal<'a>> {
        self.of_kind(Kind::Number).map(|(node, _)| Literal(node))
    }

    fn as_boolean(&self) -> Option<bool> {
        match self.look()?.0.kind() {
            Kind::Bool(truth) => Some(truth),
            Kind::Null | Kind::Number | Kind::String | Kind::Array | Kind::Object => None,
        }
    }

    fn is_null(&self) -> bool {
        self.json_type() == JsonType::Null
    }

    fn is_number(&self) -> bool {
        self.json_type() == JsonType::Number
    }

    fn json_type(&self) -> JsonType {
        let name = matches!(self, View::Name(_)).then_some(Kind::String);
        match name.or_else(|| Some(self.look()?.0.kind())) {
            Some(Kind::Null) | None => JsonType::Null,
            Some(Kind::Bool(_)) => JsonType::Boolean,
            Some(Kind::Number) => JsonType::Number,
            Some(Kind::String) => JsonType::String,
            Some(Kind::Array) => JsonType::Array,
            Some(Kind::Object) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match self {
            View::Name(name) => expected.as_str() == Some(name),
            View::Value(..) => self.look().is_some_and(|(node, _)| same(node, expected)),
        }
    }

    /// Asked for only to describe an error. Our words take the value from the document; here it
    /// is enough to tell the errors that count from those of a spent budget.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self {
            View::Name(name) => Value::from(*name),
            View::Value(_, budget) if budget.is_spent() => SPENT,
            View::Value(_, budget) => {
                budget.error();
                Value::Null
            }
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        match self {
            View::Value(node, _) => Some(NodeIdentity::new(node.offset())),
            View::Name(_) => None,
        }
    }
}

/// The inside of an array or object.
pub(super) struct Inside<'a> {
    node: Node<'a>,
    budget: &'a Budget,
}

impl<'a> Object<'a, Views> for Inside<'a> {
    type Node = View<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = Box<dyn Iterator<Item = (Cow<'a, str>, View<'a>)> + 'a>;

    fn len(&self) -> usize {
        self.node.len()
    }

    fn get(&self, key: &Box<str>) -> Option<View<'a>> {
        // Where the keys of an object stand in order, they are looked through one by one.
        let steps = 1 + self.node.len() as u64 / KEYS_PER_STEP;
        let field = self.budget.spend(steps).then(|| self.node.get(key))?;
        field.map(|node| View::Value(node, self.budget))
    }

    fn members(&self) -> Self::MembersIter {
        let budget = self.budget;
        let fields = self.node.fields().take_while(|_| budget.step());
        Box::new(fields.map(|(name, node)| (name, View::Value(node, budget))))
    }
}

impl<'a> Array<'a, Views> for Inside<'a> {
    type Node = View<'a>;
    type ElementsIter = Box<dyn Iterator<Item = View<'a>> + 'a>;

    fn len(&self) -> usize {
        self.node.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        let budget = self.budget;
        let items = self.node.items().take_while(|_| budget.step());
        Box::new(items.map(|node| View::Value(node, budget)))
    }

    fn is_unique(&self) -> bool {
        self.budget.spend(steps_to_read(self.node)) && all_differ(self.node)
    }
}

/// A number, read from its literal.
pub(super) struct Literal<'a>(Node<'a>);

impl JsonNumber for Literal<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0.raw())
    }

    fn to_number(&self) -> Cow<'_, Number> {
        let double = || self.0.as_f64().and_then(Number::from_f64).unwrap_or_else(|| 0.into());
        let signed = || self.0.as_i64().map_or_else(double, Number::from);
        Cow::Owned(self.0.as_u64().map_or_else(signed, Number::from))
    }

    fn is_integer(&self) -> bool {
        self.0.is_integer()
    }
}
