//! Walks a document along a plan, with no tree between.

use std::cell::Cell;

use super::plan::{ArrayRule, Kinds, List, More, ObjectRule, Plan, RuleId};
use super::same::{Quantity, all_differ, same, steps_to_read};
use crate::canon::{Kind, Node};

/// Whether a document surely follows a plan within a number of steps.
///
/// `false` means that it does not, or that the walk cannot tell; the full validator can.
pub(super) fn surely_holds(plan: &Plan, root: Node<'_>, steps: u64) -> bool {
    let walk = Walk { plan, steps: Cell::new(steps) };
    walk.holds(plan.root(), root) && walk.steps.get() > 0
}

struct Walk<'p> {
    plan: &'p Plan,
    /// The steps left; none, too, once there is something that the walk cannot tell.
    steps: Cell<u64>,
}

impl Walk<'_> {
    #[inline]
    fn holds(&self, id: RuleId, node: Node<'_>) -> bool {
        if !self.spend(1) {
            return false;
        }
        let rule = self.plan.rule(id);
        let kind = node.kind();
        rule.kinds.contains(kinds_of(kind, node, rule.kinds))
            && rule.more.as_deref().is_none_or(|more| self.more_holds(more, kind, node))
    }

    // Most values are done before this; it stays out of their way.
    #[inline(never)]
    fn more_holds(&self, more: &More, kind: Kind, node: Node<'_>) -> bool {
        let of_its_kind = match kind {
            Kind::Object => more.object.as_ref().is_none_or(|rule| self.object_holds(rule, node)),
            Kind::Array => more.array.as_ref().is_none_or(|rule| self.array_holds(rule, node)),
            Kind::String => more
                .length
                .is_none_or(|sizes| node.as_str().is_none_or(|text| sizes.allow_text(&text))),
            Kind::Number => self.number_holds(more, node),
            Kind::Null | Kind::Bool(_) => true,
        };
        of_its_kind
            && more.lists.iter().all(|list| self.list_holds(list, node))
            && more.all.iter().all(|rule| self.holds(*rule, node))
            && more.any.as_ref().is_none_or(|any| any.iter().any(|rule| self.holds(*rule, node)))
            && more.one.as_ref().is_none_or(|one| self.one_holds(one, node))
            && more.not.is_none_or(|rule| !self.holds(rule, node))
    }

    fn object_holds(&self, rule: &ObjectRule, node: Node<'_>) -> bool {
        if !rule.count.allow(node.len()) {
            return false;
        }
        let mut required = 0;
        for (name, value) in node.fields() {
            let rule_id = match rule.field(&name) {
                Some(field) => {
                    required += usize::from(field.required);
                    field.rule
                }
                None => rule.others,
            };
            if rule_id.is_some_and(|rule_id| !self.holds(rule_id, value)) {
                return false;
            }
        }
        // A document has no two fields of one name, so counting them is enough.
        required == rule.required
    }

    fn array_holds(&self, rule: &ArrayRule, node: Node<'_>) -> bool {
        rule.count.allow(node.len())
            && rule.items.is_none_or(|items| node.items().all(|item| self.holds(items, item)))
            && (!rule.differ || (self.spend(steps_to_read(node)) && all_differ(node)))
    }

    fn number_holds(&self, more: &More, node: Node<'_>) -> bool {
        if more.bounds.is_empty() && more.multiple_of.is_none() {
            return true;
        }
        let quantity = Quantity::of_node(node);
        if let Quantity::Double(_) = quantity
            && (more.multiple_of.is_some() || node.is_integer())
        {
            return self.cannot_tell();
        }
        more.bounds.iter().all(|bound| bound.allows(quantity))
            && match (more.multiple_of, quantity) {
                (Some(of), Quantity::Integer(integer)) => integer % i128::from(of) == 0,
                (Some(_), Quantity::Double(_)) | (None, _) => true,
            }
    }

    fn list_holds(&self, list: &List, node: Node<'_>) -> bool {
        match list {
            List::Texts(texts) => node.as_str().is_some_and(|text| texts.get(&text).is_some()),
            List::Values(values) => {
                self.spend(values.len() as u64) && values.iter().any(|value| same(node, value))
            }
        }
    }

    fn one_holds(&self, rules: &[RuleId], node: Node<'_>) -> bool {
        let mut holding = rules.iter().filter(|rule| self.holds(**rule, node));
        holding.next().is_some() && holding.next().is_none()
    }

    /// Takes steps, if there are as many.
    #[inline]
    fn spend(&self, steps: u64) -> bool {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Ends the walk: whatever it says no longer counts.
    fn cannot_tell(&self) -> bool {
        self.steps.set(0);
        false
    }
}

/// What a value is, telling integers from other numbers only where the rule does.
#[inline]
fn kinds_of(kind: Kind, node: Node<'_>, asked: Kinds) -> Kinds {
    match kind {
        Kind::Null => Kinds::NULL,
        Kind::Bool(_) => Kinds::BOOLEAN,
        Kind::Number if asked.contains(Kinds::NUMBER) => Kinds::NUMBER,
        Kind::Number if node.is_integer() => Kinds::INTEGER,
        Kind::Number => Kinds::FRACTION,
        Kind::String => Kinds::STRING,
        Kind::Array => Kinds::ARRAY,
        Kind::Object => Kinds::OBJECT,
    }
}
