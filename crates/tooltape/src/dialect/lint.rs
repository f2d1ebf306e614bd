//! What a provider would refuse or not enforce, said before a request is made.

use std::collections::BTreeMap;
use std::fmt;

use super::budget::Size;
use super::{Advert, Dialect, LossKind, compile};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is lost.
    Note,
    /// The request is taken, but the provider enforces less than the schema says.
    Warning,
    /// The provider refuses the request.
    Error,
}

/// One finding about a tool, or about all tools of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lint {
    /// The tool, or `None` if the finding is about the request.
    pub tool: Option<String>,
    /// A stable name of the rule.
    pub code: &'static str,
    /// What was found, and what was expected.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
}

impl fmt::Display for Lint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(formatter, "{severity}[{}]: ", self.code)?;
        if let Some(tool) = &self.tool {
            write!(formatter, "`{tool}`: ")?;
        }
        formatter.write_str(&self.message)
    }
}

/// How many tools a request may have (OpenAI).
const OPENAI_TOOLS_MAX: usize = 128;
/// How many properties a schema may have (OpenAI strict).
const OPENAI_PROPERTIES_MAX: usize = 5_000;
/// How deep a schema may be nested (OpenAI strict).
const OPENAI_LEVELS_MAX: usize = 10;
/// How many characters the names and listed values of a schema may have (OpenAI strict).
const OPENAI_CHARACTERS_MAX: usize = 120_000;
/// How many values all enums of a schema may list (OpenAI strict).
const OPENAI_ENUM_VALUES_MAX: usize = 1_000;
/// Up to how many values an enum may have any number of characters (OpenAI strict).
const OPENAI_ENUM_SMALL: usize = 250;
/// How many characters a larger enum may have (OpenAI strict).
const OPENAI_ENUM_CHARACTERS_MAX: usize = 15_000;
/// How many tools of a request may be strict (Anthropic).
const ANTHROPIC_TOOLS_MAX: usize = 20;
/// How many optional properties the strict tools of a request may have together (Anthropic).
const ANTHROPIC_OPTIONAL_MAX: usize = 24;
/// How many unions the strict tools of a request may have together (Anthropic).
const ANTHROPIC_UNIONS_MAX: usize = 16;
/// How long a name may be everywhere.
const NAME_CHARS_SAFE: usize = 64;

/// Checks the tools of one request against a provider's rules.
///
/// ```
/// use serde_json::json;
/// use tooltape::dialect::{Advert, Dialect, lint};
///
/// let input = json!({ "type": "object", "properties": {} });
/// let advert = Advert { name: "git.push", description: "Pushes.", input: &input };
/// assert_eq!(
///     lint(Dialect::OpenAi, &[advert])[0].to_string(),
///     "error[name.refused]: `git.push`: `openai` takes names of 1 to 64 of `A-Z a-z 0-9 _ -`",
/// );
/// ```
pub fn lint(dialect: Dialect, tools: &[Advert<'_>]) -> Vec<Lint> {
    let mut report = Report { dialect, lints: Vec::new() };
    let (mut optional, mut unions) = (0, 0);
    for tool in tools {
        report.name(tool.name);
        if tool.description.trim().is_empty() {
            let message = "the description is empty, and a model has only that to go by".to_owned();
            report.add(Some(tool.name), "description.empty", Severity::Warning, message);
        }
        if let Some(size) = report.schema(tool) {
            report.size(tool.name, &size);
            optional += size.optional;
            unions += size.unions;
        }
    }
    report.duplicates(tools);
    let budgets: &[_] = match dialect {
        Dialect::OpenAi | Dialect::OpenAiStrict => {
            &[("openai.tools", "tools", tools.len(), OPENAI_TOOLS_MAX)]
        }
        Dialect::AnthropicStrict => &[
            ("anthropic.strict.tools", "strict tools", tools.len(), ANTHROPIC_TOOLS_MAX),
            (
                "anthropic.strict.optional",
                "optional properties in strict tools",
                optional,
                ANTHROPIC_OPTIONAL_MAX,
            ),
            ("anthropic.strict.unions", "unions in strict tools", unions, ANTHROPIC_UNIONS_MAX),
        ],
        Dialect::Anthropic | Dialect::Gemini | Dialect::Plain => &[],
    };
    for &(code, what, found, limit) in budgets {
        report.budget(None, code, what, found, limit);
    }
    report.lints
}

struct Report {
    dialect: Dialect,
    lints: Vec<Lint>,
}

impl Report {
    fn name(&mut self, name: &str) {
        let dialect = self.dialect;
        let (letters, limit, severity) = match dialect {
            Dialect::OpenAi | Dialect::OpenAiStrict => ("_-", 64, Severity::Error),
            Dialect::Anthropic | Dialect::AnthropicStrict => ("_-", 128, Severity::Error),
            Dialect::Gemini => ("_.:-", 128, Severity::Error),
            Dialect::Plain => ("_.-", 128, Severity::Warning),
        };
        let is_of = |more: &str| {
            name.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
        };
        let starts_well =
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let needs_start = dialect == Dialect::Gemini;
        if name.is_empty() || name.len() > limit || !is_of(letters) || (needs_start && !starts_well)
        {
            let letters = letters.chars().map(|letter| format!(" {letter}")).collect::<String>();
            let start = if needs_start { ", the first a letter or `_`" } else { "" };
            let message =
                format!("`{dialect}` takes names of 1 to {limit} of `A-Z a-z 0-9{letters}`{start}");
            self.add(Some(name), "name.refused", severity, message);
        } else if name.len() > NAME_CHARS_SAFE {
            let message =
                format!("{} characters, and older endpoints take {NAME_CHARS_SAFE}", name.len());
            self.add(Some(name), "name.long", Severity::Warning, message);
        } else if !is_of("_-") || !starts_well {
            let message = "other providers take only `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`".to_owned();
            self.add(Some(name), "name.portable", Severity::Note, message);
        }
    }

    /// Compiles the schema and reports what that cost; the size is that of the compiled schema.
    fn schema(&mut self, tool: &Advert<'_>) -> Option<Size> {
        let name = Some(tool.name);
        let compiled = match compile(tool.input, self.dialect) {
            Ok(compiled) => compiled,
            Err(err) => {
                self.add(name, "schema.refused", Severity::Error, err.to_string());
                return None;
            }
        };
        for loss in compiled.losses() {
            let (code, severity) = match loss.kind {
                // No model adds properties that it was not told of, and the runtime refuses them.
                LossKind::Dropped if loss.keyword == "additionalProperties" => {
                    ("schema.dropped", Severity::Note)
                }
                LossKind::Moved => ("schema.moved", Severity::Note),
                LossKind::Dropped => ("schema.dropped", Severity::Warning),
                LossKind::Widened => ("schema.widened", Severity::Warning),
                LossKind::Narrowed => ("schema.narrowed", Severity::Warning),
            };
            self.add(name, code, severity, loss.to_string());
        }
        if compiled.reshapes() {
            let message = "the model writes another shape, which is restored".to_owned();
            self.add(name, "schema.reshaped", Severity::Note, message);
        }
        Some(Size::of(compiled.schema()))
    }

    /// The budgets of one schema.
    fn size(&mut self, name: &str, size: &Size) {
        if self.dialect != Dialect::OpenAiStrict {
            return;
        }
        let large = size.enums.iter().filter(|(values, _)| *values > OPENAI_ENUM_SMALL);
        let longest = large.map(|(_, characters)| *characters).max().unwrap_or(0);
        let budgets = [
            ("openai.strict.properties", "properties", size.properties, OPENAI_PROPERTIES_MAX),
            ("openai.strict.levels", "levels", size.levels, OPENAI_LEVELS_MAX),
            (
                "openai.strict.characters",
                "characters of names and listed values",
                size.characters,
                OPENAI_CHARACTERS_MAX,
            ),
            ("openai.strict.enum-values", "enum values", size.enum_values, OPENAI_ENUM_VALUES_MAX),
            (
                "openai.strict.enum-characters",
                "characters in one enum of more than 250 values",
                longest,
                OPENAI_ENUM_CHARACTERS_MAX,
            ),
        ];
        for (code, what, found, limit) in budgets {
            self.budget(Some(name), code, what, found, limit);
        }
    }

    fn duplicates(&mut self, tools: &[Advert<'_>]) {
        let mut counts = BTreeMap::new();
        for tool in tools {
            *counts.entry(tool.name).or_insert(0) += 1;
        }
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            let message = format!("{count} tools have this name, expected one");
            self.add(Some(name), "name.duplicate", Severity::Error, message);
        }
    }

    fn budget(
        &mut self,
        tool: Option<&str>,
        code: &'static str,
        what: &str,
        found: usize,
        limit: usize,
    ) {
        if found > limit {
            let message = format!("{found} {what}, expected at most {limit}");
            self.add(tool, code, Severity::Error, message);
        }
    }

    fn add(&mut self, tool: Option<&str>, code: &'static str, severity: Severity, message: String) {
        self.lints.push(Lint { tool: tool.map(str::to_owned), code, message, severity });
    }
}
