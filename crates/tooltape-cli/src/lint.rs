//! What providers would refuse or lose, and what the tools leave undeclared.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tooltape::dialect::{Advert, Dialect, Severity, lint};
use tooltape::{
    Access, Artifacts, Bound, Cancel, Clock, Determinism, Errors, Need, Progress, Random,
    Registered, Right, RunInfo, Spec, State, Toolbox,
};
use tooltape_kit::{AskUser, Plan};

use crate::args::Level;

/// One finding about a tool, or about all tools of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Its code, its tool and its place: the same from run to run.
    pub(crate) id: String,
    pub(crate) code: &'static str,
    pub(crate) severity: &'static str,
    /// The tool, or null where the finding is about a whole request.
    pub(crate) tool: Option<String>,
    /// The providers that it is about; none where it is about the tool itself.
    pub(crate) providers: Vec<&'static str>,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
    #[serde(skip)]
    pub(crate) level: Level,
}

/// Everything found about these tools, in the order of the tools.
pub(crate) fn findings(toolbox: &Toolbox, dialects: &[Dialect]) -> Vec<Finding> {
    let own = toolbox.tools().flat_map(|tool| Tool { spec: tool.spec() }.findings());
    let mut findings: Vec<Finding> = provider_findings(toolbox, dialects);
    findings.extend(own);
    let places: BTreeMap<&str, usize> = toolbox.names().zip(0..).collect();
    let place = |finding: &Finding| finding.tool.as_deref().and_then(|tool| places.get(tool));
    findings.sort_by_key(|finding| place(finding).copied());
    findings
}

/// A finding that several providers share is one finding.
fn provider_findings(toolbox: &Toolbox, dialects: &[Dialect]) -> Vec<Finding> {
    let advert = |tool: &'_ Registered| -> (String, String, Value) {
        let spec = tool.spec();
        (spec.name.to_string(), spec.description.to_string(), spec.input.clone())
    };
    let tools: Vec<_> = toolbox.tools().map(|tool| advert(tool)).collect();
    let adverts: Vec<_> = tools
        .iter()
        .map(|(name, description, input)| Advert { name, description, input })
        .collect();
    let mut findings: Vec<Finding> = Vec::new();
    for dialect in dialects {
        for found in lint(*dialect, &adverts) {
            let level = match found.severity {
                Severity::Note => Level::Note,
                Severity::Warning => Level::Warning,
                Severity::Error => Level::Error,
            };
            let known = findings.iter_mut().find(|known| {
                (known.code, &known.tool, &known.message, known.level)
                    == (found.code, &found.tool, &found.message, level)
            });
            match known {
                Some(known) => known.providers.push(dialect.name()),
                None => {
                    let tool = found.tool.as_deref();
                    let (code, hint) = (found.code, hint(found.code));
                    let mut finding = Finding::new(level, code, tool, found.message, hint);
                    finding.providers.push(dialect.name());
                    findings.push(finding);
                }
            }
        }
    }
    findings
}

/// The place that a message names, and the keyword at that place.
fn place(message: &str) -> String {
    let quoted = || message.split('`').skip(1).step_by(2);
    let Some(place) = quoted().find(|part| part.starts_with(['#', '/'])) else {
        return String::new();
    };
    match quoted().next() {
        Some(keyword) if keyword != place => format!("{place}/{keyword}"),
        Some(_) | None => place.to_owned(),
    }
}

impl Finding {
    fn new(
        level: Level,
        code: &'static str,
        tool: Option<&str>,
        message: String,
        hint: &'static str,
    ) -> Finding {
        let severity = match level {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let id = [code, tool.unwrap_or("*"), &place(&message)].join(":");
        let id = id.trim_end_matches(':').to_owned();
        let (tool, providers) = (tool.map(str::to_owned), Vec::new());
        Finding { id, code, severity, tool, providers, message, hint, level }
    }
}

/// What to do about a finding of the schema compiler.
fn hint(code: &str) -> &'static str {
    match code {
        "description.empty" => "write a doc comment: a model has nothing else to go by",
        "name.refused" | "name.long" | "name.portable" => "give the tool an alias for the provider",
        "name.duplicate" => "rename one of the tools",
        "schema.refused" => "change the input type, or do not offer the tool to that provider",
        "schema.moved" => "nothing to do: the runtime still checks it",
        "schema.dropped" | "schema.widened" => "say it in the description; the runtime checks it",
        "schema.narrowed" => "use a type that the provider can express in full",
        "schema.reshaped" => "nothing to do: arguments are restored before they are checked",
        _ => "offer fewer or smaller tools in one request",
    }
}

/// A tool, as its own declaration is checked.
struct Tool<'a> {
    spec: &'a Spec,
}

impl Tool<'_> {
    fn findings(&self) -> Vec<Finding> {
        let rules =
            [Tool::determinism, Tool::bounds, Tool::errors, Tool::output, Tool::capabilities];
        let findings = rules.iter().filter_map(|rule| rule(self));
        findings.chain(self.capability_forms()).chain(self.properties()).collect()
    }

    fn finding(
        &self,
        level: Level,
        code: &'static str,
        message: impl Into<String>,
        hint: &'static str,
    ) -> Finding {
        Finding::new(level, code, Some(&self.spec.name), message.into(), hint)
    }

    fn determinism(&self) -> Option<Finding> {
        let effects = &self.spec.effects;
        let level = match (effects.determinism, effects.access) {
            (Determinism::NonDeterministic, Access::Pure) => Level::Warning,
            (Determinism::NonDeterministic, Access::Read) => Level::Note,
            (Determinism::NonDeterministic, Access::Write)
            | (Determinism::Deterministic | Determinism::Bounded, _) => return None,
        };
        let message = "the determinism is the default, `NonDeterministic`, so a replay can never \
                       check the result";
        let hint = "declare `Deterministic`, or `Bounded` if it depends on the granted clock or \
                    randomness alone";
        Some(self.finding(level, "spec.determinism", message, hint))
    }

    fn bounds(&self) -> Option<Finding> {
        let bounds = &self.spec.bounds;
        let is_default = matches!(bounds.wall, Bound::Default)
            && matches!(bounds.idle, Bound::Default)
            && matches!(bounds.output_bytes, Bound::Default);
        let level = match self.spec.effects.access {
            Access::Pure => Level::Note,
            Access::Read | Access::Write => Level::Warning,
        };
        let message = "time and output are bounded by the defaults of the run alone";
        let hint = "set bounds that fit the tool, such as `wall_ms = 5_000`";
        is_default.then(|| self.finding(level, "spec.bounds", message, hint))
    }

    fn errors(&self) -> Option<Finding> {
        let message = "errors are plain text, of which a model learns only that the tool failed";
        let hint = "fail with `ToolError`, which says what happened and who acts next";
        (self.spec.errors == Errors::Text)
            .then(|| self.finding(Level::Warning, "spec.errors", message, hint))
    }

    fn output(&self) -> Option<Finding> {
        let is_stable = self.spec.effects.determinism != Determinism::NonDeterministic;
        let message = "results are said to be stable, but no output schema holds their shape";
        let hint = "declare the output's type, such as `output = Report`";
        (is_stable && self.spec.output.is_none())
            .then(|| self.finding(Level::Warning, "spec.output", message, hint))
    }

    fn capabilities(&self) -> Option<Finding> {
        let harmless = [
            Need::of::<Clock>(),
            Need::of::<Random>(),
            Need::of::<RunInfo>(),
            Need::of::<Progress>(),
            Need::of::<Cancel>(),
            Need::of::<Artifacts>(),
            // No right is about what a run keeps for itself, nor about its user.
            Need::of::<State<Plan>>(),
            Need::of::<AskUser>(),
        ];
        let needs = self.spec.needs.iter().filter(|need| !harmless.contains(need));
        let needs: Vec<String> = needs.map(|need| format!("`{}`", need.name())).collect();
        let is_silent = self.spec.capabilities.is_empty() && !needs.is_empty();
        let message = format!("it takes {}, and declares no capability", needs.join(", "));
        let hint = "say what for, such as `needs(\"fs:read:{path}\")`";
        is_silent.then(|| self.finding(Level::Warning, "spec.capabilities", message, hint))
    }

    fn capability_forms(&self) -> impl Iterator<Item = Finding> {
        self.spec.capabilities.iter().filter_map(|capability| {
            // What stands for an argument is read once it is filled in.
            let filled: String = capability
                .split_inclusive('}')
                .map(|part| {
                    part.split_once('{').map_or(part.to_owned(), |(it, _)| format!("{it}x"))
                })
                .collect();
            let err = filled.parse::<Right>().err()?;
            let message = format!("`{capability}` is held by nobody: {err}");
            let hint = "write it like `net:get:api.example.com` or `fs:read:{path}`";
            Some(self.finding(Level::Warning, "spec.capability-form", message, hint))
        })
    }

    fn properties(&self) -> Vec<Finding> {
        let mut bare = Vec::new();
        undescribed(&self.spec.input, String::new(), &mut bare);
        let finding = |pointer| {
            let message = format!("property `{pointer}` has no description");
            let hint = "write a doc comment on the field";
            self.finding(Level::Warning, "spec.property", message, hint)
        };
        bare.into_iter().map(finding).collect()
    }
}

/// Collects the pointers of properties that say nothing about themselves.
fn undescribed(schema: &Value, pointer: String, bare: &mut Vec<String>) {
    let Value::Object(object) = schema else { return };
    for (name, property) in
        object.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        let pointer = format!("{pointer}/properties/{name}");
        // A fixed value and a reference say what they are.
        let speaks = ["description", "title", "const", "$ref"]
            .iter()
            .any(|key| property.get(*key).is_some());
        if !speaks {
            bare.push(pointer.clone());
        }
        undescribed(property, pointer, bare);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(below) = object.get(keyword) {
            undescribed(below, format!("{pointer}/{keyword}"), bare);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for (at, below) in
            object.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            undescribed(below, format!("{pointer}/{keyword}/{at}"), bare);
        }
    }
    for (name, below) in object.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        undescribed(below, format!("{pointer}/$defs/{name}"), bare);
    }
}
