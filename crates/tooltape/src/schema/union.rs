//! Picks, of all the forms that a value might have had, the one that was probably meant.

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Wrong};
use serde_json::Value;

type Branch<'e> = &'e [ValidationError<'static>];

/// One thing wrong.
pub(super) enum Finding<'e> {
    /// An error that is no union.
    Error(&'e ValidationError<'e>),
    /// A value that is of none of these types.
    Types(&'e ValidationError<'e>, BTreeSet<&'static str>),
    /// A value that is none of these.
    Tag(&'e ValidationError<'e>, Vec<&'e Value>),
}

impl<'e> Finding<'e> {
    pub(super) fn error(&self) -> &'e ValidationError<'e> {
        match self {
            Finding::Error(error) | Finding::Types(error, _) | Finding::Tag(error, _) => error,
        }
    }
}

/// The form that a value which matches none is nearest to, or else what all forms agree on.
///
/// Branches of `anyOf` or `oneOf` for another type are left out, and so are those that another tag
/// (a field with a fixed value) belongs to. If none remains, the tags or types themselves are the
/// problem. Of those that do, the one with the fewest errors is told: whoever solves these is done.
pub(super) fn nearest_branch<'e>(
    error: &'e ValidationError<'e>,
    context: &'e [Vec<ValidationError<'static>>],
) -> Result<Branch<'e>, Finding<'e>> {
    let place = error.instance_path().as_str();
    let branches: Vec<Branch<'_>> = context.iter().map(Vec::as_slice).collect();
    let of_its_type = left_after(&branches, |branch| types_asked(branch, place).is_none());
    if of_its_type.is_empty() {
        let types = branches.iter().filter_map(|branch| types_asked(branch, place));
        return Err(Finding::Types(error, types.flatten().collect()));
    }
    let tagged =
        left_after(&of_its_type, |branch| branch.iter().all(|error| listed(error).is_none()));
    let left = match (tagged.is_empty(), wrong_tag(&of_its_type)) {
        (true, Some(tag)) => return Err(tag),
        (true, None) => of_its_type,
        (false, _) => tagged,
    };
    Ok(left.into_iter().min_by_key(|branch| branch.len()).unwrap_or_default())
}

/// The one place where each branch lists values and the value is in none of the lists.
fn wrong_tag<'e>(branches: &[Branch<'e>]) -> Option<Finding<'e>> {
    let (first, others) = branches.split_first()?;
    first.iter().find_map(|error| {
        let place = error.instance_path().as_str();
        let mut options = listed(error)?;
        for branch in others {
            let same = |error: &&ValidationError<'_>| error.instance_path().as_str() == place;
            options.extend(branch.iter().filter(same).find_map(listed)?);
        }
        Some(Finding::Tag(error, options))
    })
}

/// The branches that pass a test.
fn left_after<'e>(branches: &[Branch<'e>], passes: impl Fn(Branch<'e>) -> bool) -> Vec<Branch<'e>> {
    branches.iter().copied().filter(|branch| passes(branch)).collect()
}

/// The values that an error says are the only ones allowed.
fn listed<'e>(error: &'e ValidationError<'_>) -> Option<Vec<&'e Value>> {
    match error.kind() {
        Wrong::Enum { options } => options.as_array().map(|options| options.iter().collect()),
        Wrong::Constant { expected_value } => Some(vec![expected_value.as_ref()]),
        _ => None,
    }
}

/// The types that a branch asks for, if the value at a place is of none of them.
fn types_asked(branch: Branch<'_>, place: &str) -> Option<BTreeSet<&'static str>> {
    let here = branch.iter().filter(|error| error.instance_path().as_str() == place);
    here.filter_map(|error| match error.kind() {
        Wrong::Type { kind } => Some(types_of(kind)),
        Wrong::AnyOf { context } | Wrong::OneOfNotValid { context } => {
            let types: Option<Vec<_>> =
                context.iter().map(|branch| types_asked(branch, place)).collect();
            types.map(|types| types.into_iter().flatten().collect())
        }
        _ => None,
    })
    .next()
}

pub(super) fn types_of(kind: &TypeKind) -> BTreeSet<&'static str> {
    match kind {
        TypeKind::Single(single) => BTreeSet::from([single.as_str()]),
        TypeKind::Multiple(set) => set.iter().map(|single| single.as_str()).collect(),
    }
}
