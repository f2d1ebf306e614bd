//! Checks flat objects, with no table between.

use super::plan::{Kinds, List, More, Plan, Rule, Sizes};
use super::same::Quantity;
use crate::canon::{Flat, Scalar};

/// Whether a flat object surely follows a plan.
///
/// `false` means that it does not, or that this check cannot tell; the walk and the full validator
/// can.
#[inline]
pub(super) fn surely_holds(plan: &Plan, flat: &Flat<'_>) -> bool {
    let rule = plan.rule(plan.root());
    let Some(more) = rule.more.as_deref() else { return rule.kinds.contains(Kinds::OBJECT) };
    let Some(object) = &more.object else { return false };
    let fields = flat.fields();
    if !rule.kinds.contains(Kinds::OBJECT)
        || !more.lists.is_empty()
        || more.has_branches()
        || !object.count.allow(fields.len())
    {
        return false;
    }
    let mut required = 0;
    for field in fields {
        let rule_id = match object.field(field.name) {
            Some(named) => {
                required += usize::from(named.required);
                named.rule
            }
            None => object.others,
        };
        if rule_id.is_some_and(|rule_id| !scalar_holds(plan.rule(rule_id), field.value)) {
            return false;
        }
    }
    required == object.required
}

#[inline]
fn scalar_holds(rule: &Rule, value: Scalar<'_>) -> bool {
    let kinds = match value {
        Scalar::Null => Kinds::NULL,
        Scalar::Bool(_) => Kinds::BOOLEAN,
        Scalar::Integer(_) => Kinds::INTEGER,
        Scalar::Text(_) => Kinds::STRING,
    };
    rule.kinds.contains(kinds) && rule.more.as_deref().is_none_or(|more| more_holds(more, value))
}

// Most values are done before this; it stays out of their way.
#[inline(never)]
fn more_holds(more: &More, value: Scalar<'_>) -> bool {
    if more.has_branches() {
        return false;
    }
    let of_its_kind = match value {
        Scalar::Null | Scalar::Bool(_) => true,
        Scalar::Integer(integer) => {
            let quantity = Quantity::Integer(integer.into());
            more.multiple_of.is_none() && more.bounds.iter().all(|bound| bound.allows(quantity))
        }
        Scalar::Text(text) => more.length.is_none_or(|sizes: Sizes| sizes.allow_text(text)),
    };
    of_its_kind
        && more.lists.iter().all(|list| match (list, value) {
            (List::Texts(texts), Scalar::Text(text)) => texts.get(text).is_some(),
            (List::Texts(_) | List::Values(_), _) => false,
        })
}
