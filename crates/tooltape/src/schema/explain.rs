//! Turns what the `jsonschema` crate finds wrong into problems for a model.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Wrong};
use serde_json::Value;

use super::error::excerpt;
use super::found::{Found, Source};
use super::near::nearest;
use super::rules::{Limit, expectation};
use super::words::{
    ALLOWED_MAX, Mismatch, More, POINTER_BYTES_MAX, PROBLEMS_MAX, Problem, ProblemKind, one_of,
    short,
};

/// The most unknown fields of one object that are told apart.
const UNKNOWN_MAX: usize = 100;

/// Explains what is wrong with the value that a source holds.
pub(super) fn explain(
    errors: &[ValidationError<'_>],
    source: &dyn Source,
    schema: &Value,
) -> Mismatch {
    let explainer = Explainer { source, schema };
    let mut problems: Vec<Problem> =
        errors.iter().flat_map(|error| explainer.problems(error)).collect();
    problems.sort_by(in_order);
    problems.dedup();
    let more = problems.len().saturating_sub(PROBLEMS_MAX);
    problems.truncate(PROBLEMS_MAX);
    Mismatch { problems, more: More::Exactly(more) }
}

/// Knows the value and the schema that errors are about.
pub(super) struct Explainer<'e> {
    source: &'e dyn Source,
    schema: &'e Value,
}

impl Explainer<'_> {
    pub(super) fn problems(&self, error: &ValidationError<'_>) -> Vec<Problem> {
        match error.kind() {
            Wrong::AdditionalProperties { unexpected }
            | Wrong::UnevaluatedProperties { unexpected } => self.unknown(error, unexpected),
            Wrong::AnyOf { context } | Wrong::OneOfNotValid { context } => {
                self.none_of(error, context)
            }
            Wrong::Enum { options } => {
                let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                vec![self.not_listed(error, options.iter().collect())]
            }
            Wrong::Constant { expected_value } => {
                vec![self.not_listed(error, vec![expected_value.as_ref()])]
            }
            Wrong::Required { property } => vec![self.missing(error, property)],
            Wrong::Type { kind } => vec![self.mistyped(error, &types_of(kind))],
            Wrong::PropertyNames { error: wrong } => vec![self.misnamed(error, wrong)],
            other => vec![self.broken(error, other)],
        }
    }

    fn problem(&self, error: &ValidationError<'_>, kind: ProblemKind) -> Problem {
        Problem {
            kind,
            pointer: excerpt(error.instance_path().as_str(), POINTER_BYTES_MAX),
            found: String::new(),
            expected: String::new(),
            allowed: Vec::new(),
            suggestion: None,
        }
    }

    fn found(&self, error: &ValidationError<'_>) -> Found {
        self.source.find(error.instance_path().as_str())
    }

    fn unknown(&self, error: &ValidationError<'_>, unexpected: &[String]) -> Vec<Problem> {
        let known: Vec<&str> = self.fields_beside(error).map(|(name, _)| name).collect();
        let allowed: Vec<String> = known.iter().take(ALLOWED_MAX).map(|name| short(name)).collect();
        let expected = one_of(&allowed, known.len());
        let problem = |name: &String| Problem {
            found: short(name),
            suggestion: nearest(name, known.iter().copied()).map(short),
            expected: expected.clone(),
            allowed: allowed.clone(),
            ..self.problem(error, ProblemKind::Unknown)
        };
        unexpected.iter().take(UNKNOWN_MAX).map(problem).collect()
    }

    fn missing(&self, error: &ValidationError<'_>, name: &Value) -> Problem {
        let name = name.as_str().unwrap_or_default();
        let field = self.fields_beside(error).find(|(field, _)| *field == name);
        let types = field.and_then(|(_, schema)| schema.get("type")?.as_str());
        Problem {
            found: short(name),
            expected: types.unwrap_or("a value").into(),
            ..self.problem(error, ProblemKind::Missing)
        }
    }

    pub(super) fn mistyped(
        &self,
        error: &ValidationError<'_>,
        types: &BTreeSet<&'static str>,
    ) -> Problem {
        let found = self.found(error);
        let types: Vec<&str> = types.iter().copied().collect();
        Problem {
            suggestion: found.as_one_of(&types),
            expected: types.join(" or "),
            found: found.in_words(),
            ..self.problem(error, ProblemKind::Type)
        }
    }

    pub(super) fn not_listed(&self, error: &ValidationError<'_>, options: Vec<&Value>) -> Problem {
        let found = self.found(error);
        // Quotes only matter where there is something else than texts.
        let texts: Option<Vec<&str>> = options.iter().map(|option| option.as_str()).collect();
        let (found, suggestion, allowed) = match (texts, found.text()) {
            (Some(texts), Some(text)) => {
                let allowed: Vec<String> =
                    texts.iter().take(ALLOWED_MAX).map(|text| short(text)).collect();
                (short(text), nearest(text, texts.iter().copied()).map(short), allowed)
            }
            (_, _) => {
                let options = options.iter().take(ALLOWED_MAX);
                (found.json, None, options.map(|option| short(&option.to_string())).collect())
            }
        };
        let expected = one_of(&allowed, options.len());
        let problem = self.problem(error, ProblemKind::Enum);
        Problem { found, suggestion, expected, allowed, ..problem }
    }

    fn misnamed(&self, error: &ValidationError<'_>, wrong: &ValidationError<'_>) -> Problem {
        let name = wrong.instance().as_str().unwrap_or_default().to_owned();
        let source = Value::String(name.clone());
        let names = Explainer { source: &source, schema: self.schema };
        let wrong = names.problems(wrong).into_iter().next();
        let expected = wrong.map_or_else(|| "allowed".into(), |problem| problem.expected);
        Problem {
            expected: format!("each field name to be {expected}"),
            found: format!("`{}`", short(&name)),
            ..self.problem(error, ProblemKind::Other)
        }
    }

    fn broken(&self, error: &ValidationError<'_>, wrong: &Wrong) -> Problem {
        let found = self.found(error);
        let (kind, expected, found) = match Limit::of(wrong) {
            Some(Limit { expected, counted }) => {
                let found = if counted { found.size.to_string() } else { found.json };
                (ProblemKind::Range, expected, found)
            }
            None => (ProblemKind::Other, expectation(wrong), found.in_words()),
        };
        Problem { expected, found, ..self.problem(error, kind) }
    }

    /// The fields that the schema names beside the keyword that an error comes from.
    fn fields_beside(&self, error: &ValidationError<'_>) -> impl Iterator<Item = (&str, &Value)> {
        let path = error.schema_path().as_str();
        let parent = path.rsplit_once('/').and_then(|(parent, _)| self.schema.pointer(parent));
        let fields = parent.and_then(|schema| schema.get("properties")?.as_object());
        fields.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }
}

/// Problems by place, an array's in the order of its items, then by kind and name.
fn in_order(left: &Problem, right: &Problem) -> Ordering {
    let part = |left: &str, right: &str| match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_) | Err(_), _) => left.cmp(right),
    };
    let mut parts = left.pointer.split('/').zip(right.pointer.split('/'));
    let by_place = parts.find_map(|(left, right)| Some(part(left, right)).filter(|o| o.is_ne()));
    by_place
        .unwrap_or_else(|| left.pointer.len().cmp(&right.pointer.len()))
        .then_with(|| left.kind.cmp(&right.kind))
        .then_with(|| left.found.cmp(&right.found))
        .then_with(|| left.expected.cmp(&right.expected))
}

pub(super) fn types_of(kind: &TypeKind) -> BTreeSet<&'static str> {
    match kind {
        TypeKind::Single(single) => BTreeSet::from([single.as_str()]),
        TypeKind::Multiple(set) => set.iter().map(|single| single.as_str()).collect(),
    }
}
