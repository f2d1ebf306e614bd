//! One JSON Schema in each provider's dialect, and what the translation cost.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

mod budget;
mod document;
mod keys;
mod lint;
mod merge;
mod open;
mod restore;
mod rules;
mod shape;
mod union;
mod walk;

pub use document::{DEPTH_MAX, REFERENCES_MAX, VALUES_MAX};
pub use lint::{Lint, Severity, lint};
pub use walk::STEPS_MAX;

use document::Document;
use restore::Back;

/// The dialect of JSON Schema that a provider's API takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI without `strict`: JSON Schema with an object as its root.
    OpenAi,
    /// OpenAI with `strict`: a closed subset that the model cannot leave.
    OpenAiStrict,
    /// Anthropic without `strict`: JSON Schema 2020-12 with an object as its root.
    Anthropic,
    /// Anthropic with `strict`: a closed subset that the model cannot leave. It writes required
    /// properties before optional ones.
    AnthropicStrict,
    /// Gemini's `parameters`: a subset of OpenAPI 3.0.3.
    Gemini,
    /// The schema as it is, as MCP and inspectors take it.
    Plain,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: [Dialect; 6] = [
        Dialect::OpenAi,
        Dialect::OpenAiStrict,
        Dialect::Anthropic,
        Dialect::AnthropicStrict,
        Dialect::Gemini,
        Dialect::Plain,
    ];

    /// The name that [`FromStr`] reads and [`Display`](fmt::Display) writes.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::OpenAi => "openai",
            Dialect::OpenAiStrict => "openai-strict",
            Dialect::Anthropic => "anthropic",
            Dialect::AnthropicStrict => "anthropic-strict",
            Dialect::Gemini => "gemini",
            Dialect::Plain => "plain",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Dialect, UnknownDialect> {
        let found = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

/// A name that is no [`Dialect`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown dialect `{0}`, expected `openai`, `openai-strict`, `anthropic`, \
     `anthropic-strict`, `gemini` or `plain`"
)]
pub struct UnknownDialect(String);

/// What a dialect could not say as the schema says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loss {
    /// Where: a JSON pointer to a subschema of the original, references opened on the way.
    pub pointer: String,
    /// Which keyword of that subschema.
    pub keyword: String,
    /// What became of it.
    pub kind: LossKind,
}

/// What became of a keyword that a dialect cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossKind {
    /// The model reads it in the description; the provider does not enforce it.
    Moved,
    /// The model does not see it.
    Dropped,
    /// The model may write more than the original allows.
    Widened,
    /// The model cannot write everything that the original allows.
    Narrowed,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { pointer, keyword, kind } = self;
        let what = match kind {
            LossKind::Moved => "moved into the description",
            LossKind::Dropped => "dropped",
            LossKind::Widened => "widened",
            LossKind::Narrowed => "narrowed",
        };
        write!(formatter, "`{keyword}` at `#{pointer}` {what}")
    }
}

/// Why a schema has no form in a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Uncompilable {
    /// It is no JSON Schema.
    #[error("not a JSON Schema at `#{pointer}`: {reason}")]
    Malformed {
        /// Where.
        pointer: String,
        /// What is wrong there.
        reason: String,
    },
    /// A `$ref` leaves the document; nothing is ever fetched.
    #[error("`$ref` to `{reference}` leaves the document, expected `#` or `#/…`")]
    Remote {
        /// The reference.
        reference: String,
    },
    /// A `$ref` points at nothing.
    #[error("`$ref` to `{reference}` points at nothing")]
    Dangling {
        /// The reference.
        reference: String,
    },
    /// A `$ref` leads back to itself without describing any part of a value.
    #[error("`$ref` to `{reference}` leads back to itself and describes nothing")]
    Cyclic {
        /// The reference.
        reference: String,
    },
    /// A recursive type, where the dialect has none.
    #[error("`{dialect}` has no recursive types, and `{reference}` is one")]
    Recursive {
        /// The reference.
        reference: String,
        /// The dialect.
        dialect: Dialect,
    },
    /// An object with any properties, where the dialect takes only declared ones.
    #[error("`{dialect}` takes only declared properties, and `#{pointer}` declares none")]
    Undeclared {
        /// Where.
        pointer: String,
        /// The dialect.
        dialect: Dialect,
    },
    /// A value of any type, where the dialect wants one.
    #[error("`{dialect}` wants a type, and `#{pointer}` has none")]
    Untyped {
        /// Where.
        pointer: String,
        /// The dialect.
        dialect: Dialect,
    },
    /// A subschema that accepts no value.
    #[error("no value is valid at `#{pointer}`")]
    Never {
        /// Where.
        pointer: String,
    },
    /// More than a named limit allows.
    #[error("the schema has more than {limit} {what}")]
    TooBig {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl Uncompilable {
    /// A short stable name of the rule that was broken.
    pub fn rule(&self) -> &'static str {
        match self {
            Uncompilable::Malformed { .. } => "malformed",
            Uncompilable::Remote { .. } => "remote",
            Uncompilable::Dangling { .. } => "dangling",
            Uncompilable::Cyclic { .. } => "cyclic",
            Uncompilable::Recursive { .. } => "recursive",
            Uncompilable::Undeclared { .. } => "undeclared",
            Uncompilable::Untyped { .. } => "untyped",
            Uncompilable::Never { .. } => "never",
            Uncompilable::TooBig { .. } => "too-big",
        }
    }
}

/// A schema in a provider's dialect, what it cost, and the way back.
#[derive(Clone, Debug)]
pub struct Compiled {
    schema: Value,
    losses: Vec<Loss>,
    back: Back,
}

impl Compiled {
    /// The schema to send.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// What the dialect could not say, in the order in which it was met.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Whether the model writes arguments in another shape than the original schema describes,
    /// so that [`restore`](Compiled::restore) has work to do.
    pub fn reshapes(&self) -> bool {
        self.back.reshapes()
    }

    /// Arguments for the original schema from what the model wrote for the compiled one.
    ///
    /// Nothing is repaired: text that is not JSON, repeats a key in an object that would change,
    /// or is nested too deep comes back untouched, and so does text that needs no change, byte for
    /// byte. What stays keeps its spelling and its order.
    pub fn restore<'a>(&self, arguments: &'a str) -> Cow<'a, str> {
        self.back.restore(arguments, &self.schema)
    }
}

/// Translates a schema into a dialect.
///
/// `openai` and `anthropic` take the schema as it is, except what the API refuses: the root
/// becomes an object, spellings of older drafts become those of 2020-12, the properties of the
/// root have names that fit. `openai-strict`, `anthropic-strict` and `gemini` take a closed subset
/// into which the schema is rewritten. It says the same as the original as far as the dialect can;
/// what it cannot say moves into descriptions, and every such place is a [`Loss`]. Where the
/// *shape* had to change, [`Compiled::restore`] maps what the model wrote back:
///
/// * a root that is no object with declared properties (a tagged enum, a map) stands in an object
///   with one property;
/// * an optional property of `openai-strict` is required and may be `null`, which means absent;
/// * in the closed dialects a map is a list of entries with `key` and `value`;
/// * a property whose name the API refuses has another name.
///
/// The closed dialects leave out what says nothing to a model (`$schema`, `$id`, `$comment`, the
/// title of the root, which is the name of a type) without calling it a loss.
///
/// ```
/// use serde_json::json;
/// use tooltape::dialect::{Dialect, compile};
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "path": { "type": "string", "minLength": 1 } },
/// });
/// let compiled = compile(&schema, Dialect::OpenAiStrict)?;
/// assert_eq!(compiled.schema()["properties"]["path"]["type"], json!(["string", "null"]));
/// assert_eq!(
///     compiled.losses()[0].to_string(),
///     "`minLength` at `#/properties/path` moved into the description",
/// );
/// assert_eq!(compiled.restore(r#"{"path":null}"#), "{}");
/// # Ok::<(), tooltape::dialect::Uncompilable>(())
/// ```
pub fn compile(schema: &Value, dialect: Dialect) -> Result<Compiled, Uncompilable> {
    let document = Document::read(schema)?;
    match dialect {
        Dialect::Plain => {
            Ok(Compiled { schema: schema.clone(), losses: Vec::new(), back: Back::default() })
        }
        Dialect::OpenAi => open::compile(&document, &open::OPENAI),
        Dialect::Anthropic => open::compile(&document, &open::ANTHROPIC),
        Dialect::OpenAiStrict => walk::compile(&document, &rules::OPENAI_STRICT),
        Dialect::AnthropicStrict => walk::compile(&document, &rules::ANTHROPIC_STRICT),
        Dialect::Gemini => walk::compile(&document, &rules::GEMINI),
    }
}

/// What a model is told about a tool: no more than this ever reaches one.
#[derive(Clone, Copy, Debug)]
pub struct Advert<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The tool's description.
    pub description: &'a str,
    /// The tool's input schema.
    pub input: &'a Value,
}

/// One tool as a provider's API takes it.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The entry for the request's list of tools.
    pub tool: Value,
    /// The input schema in it, with its losses and the way back.
    pub compiled: Compiled,
}

/// Writes a tool as a provider's API takes it.
///
/// OpenAI: `{"type":"function","function":{name, description, parameters}}`; Anthropic and plain:
/// `{name, description, input_schema}`; Gemini: one function declaration,
/// `{name, description, parameters}`. The strict dialects add `"strict": true`.
pub fn export(dialect: Dialect, tool: &Advert<'_>) -> Result<Exported, Uncompilable> {
    let compiled = compile(tool.input, dialect)?;
    let schema_key = match dialect {
        Dialect::OpenAi | Dialect::OpenAiStrict | Dialect::Gemini => "parameters",
        Dialect::Anthropic | Dialect::AnthropicStrict | Dialect::Plain => "input_schema",
    };
    let mut entry = Map::new();
    entry.insert("name".into(), tool.name.into());
    entry.insert("description".into(), tool.description.into());
    entry.insert(schema_key.into(), compiled.schema.clone());
    let tool = match dialect {
        Dialect::OpenAi => json!({ "type": "function", "function": entry }),
        Dialect::OpenAiStrict => {
            entry.insert("strict".into(), true.into());
            json!({ "type": "function", "function": entry })
        }
        Dialect::AnthropicStrict => {
            entry.insert("strict".into(), true.into());
            Value::Object(entry)
        }
        Dialect::Anthropic | Dialect::Gemini | Dialect::Plain => Value::Object(entry),
    };
    Ok(Exported { tool, compiled })
}
