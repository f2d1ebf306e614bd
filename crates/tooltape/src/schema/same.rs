//! Equality of a document's values with each other and with those of a schema.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Number, Value};

use crate::canon::{Canon, Kind, Node};

/// The most items that are compared pair by pair; more are put in a set.
const PAIRS_MAX: usize = 8;

/// The bytes that are read in about the time of a step.
const BYTES_PER_STEP: u64 = 16;

/// Whether a value of a document equals a value of a schema: `1.0` is `1`, and fields have no
/// order.
pub(super) fn same(node: Node<'_>, value: &Value) -> bool {
    match (node.kind(), value) {
        (Kind::Null, Value::Null) => true,
        (Kind::Bool(truth), Value::Bool(other)) => truth == *other,
        (Kind::Number, Value::Number(number)) => {
            Quantity::of_node(node).compare(Quantity::of(number)) == Some(Ordering::Equal)
        }
        (Kind::String, Value::String(text)) => node.as_str().is_some_and(|found| found == *text),
        (Kind::Array, Value::Array(items)) => {
            node.len() == items.len()
                && node.items().zip(items).all(|(item, value)| same(item, value))
        }
        (Kind::Object, Value::Object(fields)) => {
            node.len() == fields.len()
                && fields
                    .iter()
                    .all(|(name, value)| node.get(name).is_some_and(|field| same(field, value)))
        }
        (
            Kind::Null | Kind::Bool(_) | Kind::Number | Kind::String | Kind::Array | Kind::Object,
            _,
        ) => false,
    }
}

/// Whether no two items of an array are equal.
pub(super) fn all_differ(array: Node<'_>) -> bool {
    let items = array.items();
    if array.len() <= PAIRS_MAX {
        let seen: Vec<Canon> = items.map(|item| item.canonical()).collect();
        return (1..seen.len()).all(|index| !seen[..index].contains(&seen[index]));
    }
    let mut seen = HashSet::with_capacity(array.len());
    let mut items = items;
    items.all(|item| seen.insert(item.canonical()))
}

/// How many steps it counts as to read a value from end to end.
pub(super) fn steps_to_read(node: Node<'_>) -> u64 {
    1 + node.raw().len() as u64 / BYTES_PER_STEP
}

/// A number as exactly as it can be compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Quantity {
    /// An integer of 64 bits, signed or not.
    Integer(i128),
    /// Any other number, as the nearest double.
    Double(f64),
}

impl Quantity {
    pub(super) fn of(number: &Number) -> Quantity {
        match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), _, _) => Quantity::Integer(integer.into()),
            (None, Some(integer), _) => Quantity::Integer(integer.into()),
            (None, None, Some(double)) => Quantity::Double(double),
            (None, None, None) => Quantity::Double(f64::NAN),
        }
    }

    pub(super) fn of_node(node: Node<'_>) -> Quantity {
        match node.as_i64() {
            Some(integer) => Quantity::Integer(integer.into()),
            None => match node.as_u64() {
                Some(integer) => Quantity::Integer(integer.into()),
                None => Quantity::Double(node.as_f64().unwrap_or(f64::NAN)),
            },
        }
    }

    /// The exact order of two numbers; none if one of them is not known.
    pub(super) fn compare(self, other: Quantity) -> Option<Ordering> {
        match (self, other) {
            (Quantity::Integer(left), Quantity::Integer(right)) => Some(left.cmp(&right)),
            (Quantity::Double(left), Quantity::Double(right)) => left.partial_cmp(&right),
            (Quantity::Integer(left), Quantity::Double(right)) => compare(left, right),
            (Quantity::Double(left), Quantity::Integer(right)) => {
                compare(right, left).map(Ordering::reverse)
            }
        }
    }
}

/// Compares an integer of 64 bits with a double, exactly.
#[inline(never)]
fn compare(integer: i128, double: f64) -> Option<Ordering> {
    let whole = double.trunc();
    // The conversion saturates, far outside of 64 bits, so the order stays right.
    let by_whole = integer.cmp(&(whole as i128));
    let by_fraction = 0.0_f64.partial_cmp(&(double - whole));
    match by_whole {
        Ordering::Equal => by_fraction,
        Ordering::Less | Ordering::Greater => (!double.is_nan()).then_some(by_whole),
    }
}
