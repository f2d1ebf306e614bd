//! `tooltape tools`.

use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Value, json};
use tooltape::dialect::{self, Advert, Dialect};
use tooltape::{Bounds, Effects, Errors, Hash, History, Hooks, Reach, Registered, Retry, Toolbox};

use super::Context;
use crate::args::Level;
use crate::escape;
use crate::exit::Exit;
use crate::lint::findings;
use crate::out::{BAD, FAINT, Format, STRONG, paint};
use crate::report::{Problem, Result};

/// How many characters of a hash tell tools apart.
const HASH_CHARS: usize = 12;
/// How many characters of a description a list shows.
const DESCRIPTION_CHARS: usize = 72;

/// All that a tool declares.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    version: &'a str,
    id: String,
    description: &'a str,
    input_schema: &'a Value,
    output_schema: &'a Option<Value>,
    effects: &'a Effects,
    bounds: &'a Bounds,
    retry: &'a Retry,
    history: &'a History,
    errors: Errors,
    needs: Vec<String>,
    capabilities: &'a [String],
    hooks: Vec<String>,
    promoted: bool,
    definition: Hash,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Value>,
}

impl<'a> Row<'a> {
    fn new(tool: &'a Registered) -> Row<'a> {
        let spec = tool.spec();
        Row {
            name: &spec.name,
            version: &spec.version,
            id: tool.id().to_string(),
            description: &spec.description,
            input_schema: &spec.input,
            output_schema: &spec.output,
            effects: &spec.effects,
            bounds: &spec.bounds,
            retry: &spec.retry,
            history: &spec.history,
            errors: spec.errors,
            needs: spec.needs.iter().map(|need| need.name()).collect(),
            capabilities: &spec.capabilities,
            hooks: hooks(tool),
            promoted: tool.is_promoted(),
            definition: tool.definition(),
            component: None,
        }
    }
}

/// Lists the tools.
pub(super) fn list(context: &Context<'_>) -> Result<Exit> {
    let toolbox = toolbox(context)?;
    let rows: Vec<Row<'_>> = toolbox.tools().map(|tool| Row::new(tool)).collect();
    if context.out.format == Format::Json {
        context.out.json(&rows)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["TOOL", "ACCESS", "REPEAT", "DEFINITION", "DESCRIPTION"]);
    for row in &rows {
        let definition: String = row.definition.to_string().chars().take(HASH_CHARS).collect();
        let words: Vec<&str> = row.description.split_whitespace().collect();
        let description = escape::clipped(&words.join(" "), DESCRIPTION_CHARS);
        table.add_row([
            row.id.clone(),
            access(row.effects),
            word(&row.effects.repeat),
            definition,
            description,
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    context.out.table(&table.trim_fmt())?;
    Ok(Exit::Done)
}

/// Shows all that a tool declares.
pub(super) fn show(context: &Context<'_>, name: &str) -> Result<Exit> {
    let toolbox = toolbox(context)?;
    let Some(tool) = toolbox.get(name) else {
        let message = format!("there is no tool named `{name}`");
        return Err(Problem::new(Exit::Failed, "tool.unknown", message)
            .hint("`tooltape tools list` lists the tools"));
    };
    let component = context.host.components().of_tool(name);
    let row = Row { component, ..Row::new(tool) };
    if context.out.format == Format::Json {
        context.out.json(&row)?;
        return Ok(Exit::Done);
    }
    let compact = |value: Value| escape::json(&value.to_string()).into_owned();
    let pretty = |value: &Value| {
        let text = serde_json::to_string_pretty(value).expect("a value serialises");
        escape::json(&text).replace('\n', "\n  ")
    };
    let list = |words: &[String]| match words {
        [] => "none".to_owned(),
        words => escape::line(&words.join(", ")).into_owned(),
    };
    let mut text = format!("{}\n  {}\n", paint(STRONG, &row.id), escape::text(row.description));
    let lines = [
        ("access", access(row.effects)),
        ("effects", compact(json!(row.effects))),
        ("bounds", compact(json!(row.bounds))),
        ("retry", compact(json!(row.retry))),
        ("history", compact(json!(row.history))),
        ("errors", word(&row.errors)),
        ("needs", list(&row.needs)),
        ("capabilities", list(row.capabilities)),
        ("hooks", list(&row.hooks)),
        ("promoted", if row.promoted { "yes" } else { "no" }.to_owned()),
        ("definition", row.definition.to_string()),
        ("input", pretty(row.input_schema)),
        ("output", row.output_schema.as_ref().map_or_else(|| "not declared".into(), pretty)),
    ];
    let of_component = row.component.iter().flat_map(|it| {
        let part = |name| (name, escape::json(&it[name].to_string()).into_owned());
        ["file", "hash", "bytes", "imports"].map(part)
    });
    for (name, value) in lines.into_iter().chain(of_component) {
        text.push_str(&format!("  {} {value}\n", paint(FAINT, format!("{name:12}"))));
    }
    context.out.table(&text)?;
    Ok(Exit::Done)
}

/// Says what is wrong with the tools.
pub(super) fn lint(
    context: &Context<'_>,
    providers: &[Dialect],
    deny: Option<Level>,
) -> Result<Exit> {
    let toolbox = toolbox(context)?;
    let dialects = if providers.is_empty() { &Dialect::ALL } else { providers };
    let findings = findings(&toolbox, dialects);
    match context.out.format {
        Format::Json => context.out.json(&findings)?,
        Format::Text => {
            for finding in &findings {
                let style = if finding.level == Level::Error { BAD } else { STRONG };
                let head = paint(style, format!("{}[{}]", finding.severity, finding.code));
                let tool = finding.tool.as_ref().map_or(String::new(), |it| format!("`{it}`: "));
                let providers = match finding.providers.as_slice() {
                    [] => String::new(),
                    providers => paint(FAINT, format!(" ({})", providers.join(", "))),
                };
                let (message, hint) = (escape::line(&finding.message), finding.hint);
                context
                    .out
                    .table(&format!("{head}: {tool}{message}{providers}\n  help: {hint}"))?;
            }
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (tools, errors) = (toolbox.names().count(), count(Level::Error));
    let (warnings, notes) = (count(Level::Warning), count(Level::Note));
    let summary = format!("{tools} tools: {errors} errors, {warnings} warnings, {notes} notes");
    match deny {
        Some(level) if findings.iter().any(|finding| finding.level >= level) => {
            Err(Problem::new(Exit::Failed, "lint.denied", summary)
                .hint("mend the findings, or deny only worse ones with `--deny error`"))
        }
        Some(_) | None => {
            context.out.say(&summary);
            Ok(Exit::Done)
        }
    }
}

/// Prints the tools as a provider's API takes them.
pub(super) fn export(context: &Context<'_>, provider: Dialect) -> Result<Exit> {
    let toolbox = toolbox(context)?;
    let mut tools = Vec::new();
    let offer = toolbox.offer_all();
    for tool in toolbox.tools() {
        let spec = tool.spec();
        let name = offer.name_for(provider.name(), &spec.name);
        let advert = Advert { name, description: &spec.description, input: &spec.input };
        let exported = dialect::export(provider, &advert).map_err(|err| {
            let message = format!("`{}` cannot be exported for `{provider}`: {err}", tool.id());
            Problem::new(Exit::Failed, "schema.refused", message)
                .hint(format!("take it out with `--set tools.disable={}`", spec.name))
        })?;
        for loss in exported.compiled.losses() {
            let loss = loss.to_string();
            context.out.say(&paint(FAINT, format!("note: `{name}`: {}", escape::line(&loss))));
        }
        tools.push(exported.tool);
    }
    let request = match provider {
        Dialect::Gemini => json!([{ "functionDeclarations": tools }]),
        Dialect::OpenAi
        | Dialect::OpenAiStrict
        | Dialect::Anthropic
        | Dialect::AnthropicStrict
        | Dialect::Plain => Value::Array(tools),
    };
    match context.out.format {
        Format::Json => context.out.json(&request)?,
        Format::Text => context.out.pretty(&request)?,
    }
    Ok(Exit::Done)
}

fn toolbox(context: &Context<'_>) -> Result<Toolbox> {
    let layers = context.layers(Path::new("."))?;
    context.host.toolbox(&layers)
}

/// What is computed from arguments, each as an author declares it.
fn hooks(tool: &Registered) -> Vec<String> {
    let read = tool.spec().hooks.read.iter().map(|_| "read".to_owned());
    let Hooks { reconcile, preview, .. } = &tool.spec().hooks;
    let named = [
        tool.touches().map(|hook| format!("touches = {}", hook.name())),
        reconcile.as_ref().map(|hook| format!("reconcile = {}", hook.name())),
        preview.as_ref().map(|hook| format!("preview = {}", hook.name())),
    ];
    read.chain(named.into_iter().flatten()).collect()
}

/// What a call may touch, in a few words.
fn access(effects: &Effects) -> String {
    let touches = [
        (effects.filesystem, "files"),
        (effects.process, "processes"),
        (effects.reach == Reach::Network, "network"),
        (effects.spend, "money"),
    ];
    let touches = touches.iter().filter(|(touched, _)| *touched).map(|(_, name)| *name);
    let touches: Vec<&str> = touches.collect();
    match touches.as_slice() {
        [] => word(&effects.access),
        touches => format!("{}: {}", word(&effects.access), touches.join(", ")),
    }
}

/// The word that an enum is written as.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}
