//! `tooltape config`.

use std::path::Path;

use serde::Serialize;
use tooltape::limits::TURNS_DEFAULT;

use super::Context;
use crate::config::{self, KEYS, Key, Place};
use crate::escape;
use crate::exit::Exit;
use crate::out::{Detail, FAINT, Format, STRONG, paint};
use crate::report::{Problem, Result};

/// One key, as it is explained.
#[derive(Serialize)]
struct Explained {
    name: &'static str,
    value: Option<toml::Value>,
    #[serde(flatten)]
    source: Source,
    /// What weaker layers say, or what others add where the layers add up.
    also: Vec<Said>,
}

#[derive(Serialize)]
struct Said {
    value: toml::Value,
    #[serde(flatten)]
    source: Source,
}

/// Who set it.
#[derive(Serialize)]
struct Source {
    source: String,
    line: Option<usize>,
    column: Option<usize>,
}

impl Source {
    fn new(place: Place) -> Source {
        let (line, column) = place.at.unzip();
        Source { source: place.name, line, column }
    }

    fn text(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.source),
            _ => self.source.clone(),
        }
    }
}

/// Prints each key's value, and who set it.
pub(super) fn explain(context: &Context<'_>, key: Option<&str>) -> Result<Exit> {
    let layers = context.layers(Path::new("."))?;
    let keys: Vec<&Key> = match key {
        None => KEYS.iter().collect(),
        Some(name) => vec![Key::named(name).ok_or_else(|| unknown(name))?],
    };
    let explained: Vec<Explained> = keys
        .iter()
        .map(|key| {
            let mut said: Vec<(&toml::Value, Place)> = layers.said(key).collect();
            // Not always the strongest layer decides: a user's may be stricter.
            let decides = match key.name {
                "policy.default" => layers.policy_default().map(|found| found.place()),
                "policy.strict" => layers.policy_strict().map(|found| found.place()),
                _ => None,
            };
            if decides.is_some() {
                said.sort_by_key(|(_, place)| Some(place) != decides.as_ref());
            }
            let mut said = said
                .into_iter()
                .map(|(value, place)| Said { value: value.clone(), source: Source::new(place) });
            let winner = said.next();
            let also = said.collect();
            let (value, source) = match winner {
                Some(said) => (Some(said.value), said.source),
                None => {
                    let source = Source { source: "default".into(), line: None, column: None };
                    (default(key.name), source)
                }
            };
            Explained { name: key.name, value, source, also }
        })
        .collect();
    if context.out.detail == Detail::Verbose {
        let files: Vec<&str> = layers.files().collect();
        context.out.say(&format!("read: {}", escape::line(&files.join(", "))));
    }
    match context.out.format {
        Format::Json => context.out.json(&explained)?,
        Format::Text => {
            for key in &explained {
                context.out.table(&line(key))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn line(key: &Explained) -> String {
    let shown = |value: &toml::Value| match value {
        toml::Value::Array(values) if values.iter().any(toml::Value::is_table) => {
            format!("{} rules", values.len())
        }
        value => escape::line(&value.to_string()).into_owned(),
    };
    let value = key.value.as_ref().map_or_else(|| "(not set)".to_owned(), shown);
    let source = escape::line(&key.source.text()).into_owned();
    let mut line =
        format!("{} = {value}  {}", paint(STRONG, key.name), paint(FAINT, format!("# {source}")));
    for said in &key.also {
        let value = shown(&said.value);
        let source = escape::line(&said.source.text()).into_owned();
        line.push_str(&paint(FAINT, format!("\n  also {value}  # {source}")));
    }
    line
}

/// What holds where no layer says anything.
fn default(key: &str) -> Option<toml::Value> {
    match key {
        "workspace" => Some(".".into()),
        "agent.model" => Some("script".into()),
        "agent.turns" => Some(i64::from(TURNS_DEFAULT).into()),
        "tools.disable" | "tools.promote" | "policy.rules" => Some(toml::Value::Array(Vec::new())),
        "policy.default" => Some("ask".into()),
        "policy.strict" => Some(false.into()),
        _ => None,
    }
}

fn unknown(name: &str) -> Box<Problem> {
    let names: Vec<String> = KEYS.iter().map(|key| format!("`{}`", key.name)).collect();
    Problem::new(Exit::Failed, "config.unknown_key", format!("there is no key `{name}`"))
        .hint(format!("the keys are {}", names.join(", ")))
}

/// Prints the JSON Schema of `tooltape.toml`.
pub(super) fn schema(context: &Context<'_>) -> Result<Exit> {
    let schema = config::schema();
    match context.out.format {
        Format::Json => context.out.json(&schema)?,
        Format::Text => context.out.pretty(&schema)?,
    }
    Ok(Exit::Done)
}
