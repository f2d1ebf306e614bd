//! Picks, of all the forms that a value might have had, the one that was probably meant.

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Wrong;
use serde_json::Value;

use super::explain::{Explainer, types_of};
use super::words::Problem;

type Branch<'e> = &'e [ValidationError<'static>];

impl Explainer<'_> {
    /// The problems of a value that matches none of the branches of an `anyOf` or `oneOf`.
    ///
    /// Branches for another type are left out, and so are those that another tag (a field with a
    /// fixed value) belongs to. If none remains, the tags or types themselves are the problem. Of
    /// those that do, the one with the fewest problems is told: whoever solves these is done.
    pub(super) fn none_of(
        &self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
    ) -> Vec<Problem> {
        let place = error.instance_path().as_str();
        let branches: Vec<Branch<'_>> = context.iter().map(Vec::as_slice).collect();
        let of_its_type = left_after(&branches, |branch| {
            branch.iter().all(|error| !is_type(error) || error.instance_path().as_str() != place)
        });
        if of_its_type.is_empty() {
            return vec![self.mistyped(error, &types_at(&branches, place))];
        }
        let tagged =
            left_after(&of_its_type, |branch| branch.iter().all(|error| listed(error).is_none()));
        if let (true, Some(problem)) = (tagged.is_empty(), self.wrong_tag(&of_its_type)) {
            return vec![problem];
        }
        let nearest = if tagged.is_empty() { of_its_type } else { tagged };
        let problems = nearest.iter().map(|branch| self.problems_of(branch));
        problems.min_by_key(Vec::len).unwrap_or_default()
    }

    fn problems_of(&self, branch: Branch<'_>) -> Vec<Problem> {
        branch.iter().flat_map(|error| self.problems(error)).collect()
    }

    /// The one place where each branch lists values and the value is in none of the lists.
    fn wrong_tag(&self, branches: &[Branch<'_>]) -> Option<Problem> {
        let (first, others) = branches.split_first()?;
        first.iter().find_map(|error| {
            let place = error.instance_path().as_str();
            let mut options = listed(error)?;
            for branch in others {
                let same = |error: &&ValidationError<'_>| error.instance_path().as_str() == place;
                options.extend(branch.iter().filter(same).find_map(listed)?);
            }
            Some(self.not_listed(error, options))
        })
    }
}

/// The branches that pass a test.
fn left_after<'e>(branches: &[Branch<'e>], passes: impl Fn(Branch<'e>) -> bool) -> Vec<Branch<'e>> {
    branches.iter().copied().filter(|branch| passes(branch)).collect()
}

fn is_type(error: &ValidationError<'_>) -> bool {
    matches!(error.kind(), Wrong::Type { .. })
}

/// The values that an error says are the only ones allowed.
fn listed<'e>(error: &'e ValidationError<'_>) -> Option<Vec<&'e Value>> {
    match error.kind() {
        Wrong::Enum { options } => options.as_array().map(|options| options.iter().collect()),
        Wrong::Constant { expected_value } => Some(vec![expected_value.as_ref()]),
        _ => None,
    }
}

/// The types that some branches ask of the value at a place.
fn types_at(branches: &[Branch<'_>], place: &str) -> BTreeSet<&'static str> {
    let errors = branches.iter().copied().flatten();
    let here = errors.filter(|error| error.instance_path().as_str() == place);
    let types = here.filter_map(|error| match error.kind() {
        Wrong::Type { kind } => Some(types_of(kind)),
        _ => None,
    });
    types.flatten().collect()
}
