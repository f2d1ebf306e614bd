//! Turns what the `jsonschema` crate finds wrong into problems for a model.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Wrong;
use serde_json::Value;

use super::error::excerpt;
use super::found::{Found, Source};
use super::near::nearest;
use super::rules::{Limit, expectation};
use super::union::{Finding, nearest_branch, types_of};
use super::words::{
    ALLOWED_MAX, Mismatch, More, POINTER_BYTES_MAX, PROBLEMS_MAX, Problem, ProblemKind, one_of,
    short,
};

/// The most unknown fields of one object that are told apart.
const UNKNOWN_MAX: usize = 100;

/// The most findings that are put into words, to choose the first problems from.
const WORDED_MAX: usize = 50;

/// Explains what is wrong with the value that a source holds.
pub(super) fn explain(
    errors: &[ValidationError<'_>],
    source: &dyn Source,
    schema: &Value,
) -> Mismatch {
    let mut findings = Vec::new();
    // Unions may be nested as deep as a document is: this must not recurse.
    let mut pending: Vec<&ValidationError<'_>> = errors.iter().collect();
    while let Some(error) = pending.pop() {
        match error.kind() {
            Wrong::AnyOf { context } | Wrong::OneOfNotValid { context } => {
                match nearest_branch(error, context) {
                    Ok(branch) => pending.extend(branch),
                    Err(finding) => findings.push(finding),
                }
            }
            _ => findings.push(Finding::Error(error)),
        }
    }
    findings.sort_by_cached_key(|finding| place(finding.error().instance_path().as_str()));
    let explainer = Explainer { source, schema };
    let worded = findings.iter().take(WORDED_MAX);
    let mut problems: Vec<Problem> =
        worded.flat_map(|finding| explainer.problems(finding)).collect();
    if problems.is_empty() {
        problems.push(Problem::vague(source.find("").in_words()));
    }
    problems.sort_by(in_order);
    problems.dedup();
    let more = problems.len().saturating_sub(PROBLEMS_MAX);
    let unworded = findings.len().saturating_sub(WORDED_MAX);
    problems.truncate(PROBLEMS_MAX);
    Mismatch { problems, more: More::Exactly(more + unworded) }
}

/// Knows the value and the schema that errors are about.
pub(super) struct Explainer<'e> {
    source: &'e dyn Source,
    schema: &'e Value,
}

impl Explainer<'_> {
    fn problems(&self, finding: &Finding<'_>) -> Vec<Problem> {
        let error = match finding {
            Finding::Types(error, types) => return vec![self.mistyped(error, types)],
            Finding::Tag(error, options) => return vec![self.not_listed(error, options)],
            Finding::Error(error) => error,
        };
        match error.kind() {
            Wrong::AdditionalProperties { unexpected } => self.unknown(error, unexpected),
            Wrong::UnevaluatedProperties { unexpected } => {
                // What is known here may not be all: other parts of the schema allow fields, too.
                let mut problems = self.unknown(error, unexpected);
                for problem in &mut problems {
                    (problem.expected, problem.allowed) = (String::new(), Vec::new());
                }
                problems
            }
            Wrong::FalseSchema if forbids_fields(error) => {
                self.unknown(error, &self.source.names(error.instance_path().as_str()))
            }
            Wrong::Enum { options } => {
                let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                vec![self.not_listed(error, &options.iter().collect::<Vec<_>>())]
            }
            Wrong::Constant { expected_value } => {
                vec![self.not_listed(error, &[expected_value.as_ref()])]
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
        let present = self.source.names(error.instance_path().as_str());
        let known: Vec<&str> = self.fields_beside(error).map(|(name, _)| name).collect();
        let absent = || known.iter().copied().filter(|name| !present.iter().any(|has| has == name));
        let allowed: Vec<String> = known.iter().take(ALLOWED_MAX).map(|name| short(name)).collect();
        let expected = match known.len() {
            0 => "no fields".into(),
            total => one_of(&allowed, total),
        };
        let problem = |name: &String| Problem {
            found: short(name),
            suggestion: nearest(name, absent()).map(short),
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

    fn mistyped(&self, error: &ValidationError<'_>, types: &BTreeSet<&str>) -> Problem {
        let found = self.found(error);
        let types: Vec<&str> = types.iter().copied().collect();
        Problem {
            suggestion: found.as_one_of(&types),
            expected: types.join(" or "),
            found: found.in_words(),
            ..self.problem(error, ProblemKind::Type)
        }
    }

    fn not_listed(&self, error: &ValidationError<'_>, options: &[&Value]) -> Problem {
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
        let mismatch =
            explain(std::slice::from_ref(wrong), &Value::from(name.as_str()), self.schema);
        let wrong = mismatch.problems.into_iter().next();
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
            None => {
                let keyword = self.schema.pointer(error.schema_path().as_str());
                (ProblemKind::Other, expectation(wrong, keyword), found.in_words())
            }
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

/// Whether an error says that an object has fields at all, and not that a value is there at all.
fn forbids_fields(error: &ValidationError<'_>) -> bool {
    let ends = |path: &str| path.rsplit('/').next() == Some("additionalProperties");
    ends(error.schema_path().as_str()) && !ends(error.instance_path().as_str())
}

/// Problems by place, then by kind and name.
fn in_order(left: &Problem, right: &Problem) -> Ordering {
    let place = place(&left.pointer).cmp(&place(&right.pointer));
    place
        .then_with(|| left.kind.cmp(&right.kind))
        .then_with(|| left.found.cmp(&right.found))
        .then_with(|| left.expected.cmp(&right.expected))
}

/// A pointer as it is ordered: an object before what it holds, items by their number.
fn place(pointer: &str) -> Vec<(Option<u64>, String)> {
    pointer.split('/').map(|part| (part.parse().ok(), part.to_owned())).collect()
}
