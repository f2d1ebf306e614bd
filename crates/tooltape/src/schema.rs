//! Validation in words a model can act on.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::canon::{Doc, Flat, Limits, Sets};

mod error;
mod near;
mod refs;
mod admit;
mod input;
mod sets;
mod same;
mod fields;
mod plan;
mod walk;
mod flat;
mod view;
mod words;
mod found;
mod rules;
mod union;
mod explain;
mod extract;
mod refuse;

pub use admit::{
    SCHEMA_BYTES_MAX, SCHEMA_CHAIN_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PATTERNS_MAX, SCHEMA_VALUES_MAX,
    SCHEMA_WIDTH_MAX,
};
pub use error::{PatternFault, SchemaError};
pub(crate) use extract::check_extract;
pub use extract::{EXTRACT_CHOICES_MAX, EXTRACT_SCHEMAS_MAX};
pub use near::{NEAREST_CHARS_MAX, NEAREST_WORDS_MAX, nearest};
pub use refs::SCHEMA_NAMES_MAX;
pub use words::{
    ALLOWED_MAX, EXCERPT_BYTES_MAX, MISMATCH_BYTES_MAX, Mismatch, POINTER_BYTES_MAX, PROBLEMS_MAX,
    Problem, ProblemKind,
};

use plan::Plan;
use refs::Graph;
use view::{Budget, View, Views};
use words::More;

/// The largest regular expression when compiled, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The steps that every check may take, however short the document.
pub const CHECK_STEPS_MIN: u64 = 100_000;

/// The further steps that a check may take for each byte of the document.
pub const CHECK_STEPS_PER_BYTE: u64 = 32;

/// The most errors that are looked at to explain a mismatch.
const ERRORS_MAX: usize = 10_000;

/// A schema compiled once, when its tool is registered.
///
/// Schemas are of JSON Schema draft 2020-12, or of draft 7 where `$schema` says so. `format` is an
/// annotation: it tells the model what to write and refuses nothing. Patterns run in linear time.
/// References lead to the schema itself; nothing is ever fetched.
///
/// The common keywords are checked by a walk over the document, any other by the `jsonschema`
/// crate; verdicts and words are the same. Neither builds a tree, and a check takes a number of
/// steps that is at most linear in the document: [`CHECK_STEPS_MIN`] and [`CHECK_STEPS_PER_BYTE`].
///
/// ```
/// use tooltape::{Checker, Doc, Limits};
///
/// let schema = serde_json::json!({ "type": "object", "required": ["path"] });
/// let checker = Checker::compile_input(&schema)?;
/// assert!(checker.check(&Doc::read(r#"{"path": "a.txt"}"#, &Limits::default())?).is_ok());
/// assert!(checker.check(&Doc::read("{}", &Limits::default())?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Checker {
    schema: Value,
    validator: Validator<Views>,
    plan: Option<Plan>,
    sets: Option<Sets>,
    accepts_empty_object: bool,
}

impl Checker {
    /// Compiles a schema, or says by name what this runtime refuses in it.
    pub fn compile(schema: &Value) -> Result<Checker, SchemaError> {
        Checker::compile_if(schema, |_, _| Ok(()))
    }

    /// Compiles the schema of a tool's input, which must also describe an object.
    ///
    /// It does so if it says `type: object`; or lists only objects in `enum` or `const`; or if
    /// that holds for what its `$ref` leads to, for one of its `allOf`, or for all of its `anyOf`
    /// or `oneOf`. So `true` and `{}` are refused: they allow everything.
    pub fn compile_input(schema: &Value) -> Result<Checker, SchemaError> {
        Checker::compile_if(schema, input::must_describe_object)
    }

    fn compile_if(
        schema: &Value,
        judge: impl FnOnce(&Graph<'_>, admit::Dialect) -> Result<(), SchemaError>,
    ) -> Result<Checker, SchemaError> {
        admit::measure(schema)?;
        let graph = Graph::of(schema)?;
        let dialect = admit::admit(&graph)?;
        let patterns =
            PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
        let validator = jsonschema::options_for::<Views>()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|err| refuse::refusal(&err, schema))?;
        judge(&graph, dialect)?;
        let mut checker = Checker {
            validator,
            plan: Plan::compile(&graph, dialect),
            sets: sets::sets_of(&graph, dialect),
            accepts_empty_object: false,
            schema: schema.clone(),
        };
        let empty = Doc::read("{}", &Limits::default()).expect("`{}` is within all limits");
        checker.accepts_empty_object = checker.check(&empty).is_ok();
        Ok(checker)
    }

    /// The schema that was compiled.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Checks a document, and says what is wrong with it.
    #[inline]
    pub fn check(&self, doc: &Doc<'_>) -> Result<(), Mismatch> {
        let steps = CHECK_STEPS_MIN + CHECK_STEPS_PER_BYTE * doc.text().len() as u64;
        if let Some(plan) = &self.plan
            && walk::surely_holds(plan, doc.root(), steps)
        {
            return Ok(());
        }
        let budget = Budget::new(steps, ERRORS_MAX);
        let valid = self.validator.is_valid(View::Value(doc.root(), &budget));
        match (budget.is_spent(), valid) {
            (true, _) => Err(Mismatch::too_much()),
            (false, true) => Ok(()),
            (false, false) => Err(self.explain(doc, steps)),
        }
    }

    /// Whether a flat object is surely valid; where it is not, [`Checker::check`] can tell.
    #[inline]
    pub(crate) fn surely_takes(&self, flat: &Flat<'_>) -> bool {
        self.plan.as_ref().is_some_and(|plan| flat::surely_holds(plan, flat))
    }

    /// Whether `{}` is valid.
    pub fn accepts_empty_object(&self) -> bool {
        self.accepts_empty_object
    }

    /// Which arrays are `uniqueItems` in every valid document.
    ///
    /// That is followed through `properties`, `additionalProperties`, `items`, `$ref` and `allOf`,
    /// and not through what chooses, such as `anyOf`. A recursive schema is followed once.
    pub fn sets(&self) -> Option<&Sets> {
        self.sets.as_ref()
    }

    /// Whether documents are checked by the walk for the common keywords.
    pub fn is_fast(&self) -> bool {
        self.plan.is_some()
    }

    #[cold]
    fn explain(&self, doc: &Doc<'_>, steps: u64) -> Mismatch {
        let budget = Budget::new(steps, ERRORS_MAX);
        let errors = self.validator.iter_errors(View::Value(doc.root(), &budget));
        let errors: Vec<_> = errors.filter(view::counts).collect();
        let mut mismatch = explain::explain(&errors, doc, &self.schema);
        if budget.is_spent() {
            mismatch.more = More::Unknown;
        }
        mismatch
    }
}
