//! One configuration file: read strictly, with the place of each key.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::Config;
use crate::exit::Exit;
use crate::report::{Excerpt, Problem, Result};

/// The most bytes of a configuration file.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// The most rules of a configuration file.
const RULES_MAX: usize = 1_000;

/// The text of a configuration file, and where each of its keys stands.
pub(super) struct Source {
    name: String,
    text: String,
    /// Where each line starts.
    lines: Vec<usize>,
    /// By a key's path, such as `policy.rules.0.tool`.
    spots: HashMap<String, Spot>,
}

/// Where a key and its value stand.
struct Spot {
    name: Range<usize>,
    value: Range<usize>,
}

/// The text of a file that may be missing.
pub(super) fn text(path: &Path, name: &str) -> Result<Option<String>> {
    let unreadable = |why: String| {
        Problem::new(Exit::Usage, "config.unreadable", format!("`{name}` {why}"))
            .hint("mend the file, or take it away")
    };
    let mut text = String::new();
    match path.metadata() {
        // To open a pipe is to wait for whoever writes to it.
        Ok(metadata) if !metadata.is_file() => return Err(unreadable("is not a file".to_owned())),
        Ok(_) | Err(_) => {}
    }
    let read =
        File::open(path).and_then(|file| file.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 > CONFIG_BYTES_MAX => {
            Err(unreadable(format!("has more than {CONFIG_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(Some(text)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) if err.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(err) => Err(unreadable(format!("cannot be read: {err}"))),
    }
}

impl Source {
    /// Reads a configuration. What is wrong with it is shown at its place.
    pub(super) fn parse(name: String, text: String) -> Result<(Source, Config)> {
        let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        let mut source = Source { name, text, lines, spots: HashMap::new() };
        let parsed = toml::from_str(&source.text).and_then(|config| {
            let mut spots = HashMap::new();
            mark(DeTable::parse(&source.text)?.get_ref(), "", &mut spots);
            Ok::<(Config, _), toml::de::Error>((config, spots))
        });
        let (config, spots) = parsed.map_err(|err| {
            let span = err.span().unwrap_or(0..0);
            let line = source.line(span.start);
            let shown = veiled(&source.text);
            let is_open = shown.lines().nth(line - 1) == source.text.lines().nth(line - 1);
            // Somebody may have written a secret where its name should be.
            let why = if is_open { err.message().to_owned() } else { unquoted(err.message()) };
            source.invalid(span, why)
        })?;
        source.spots = spots;
        let count = config.policy.rules.as_ref().map_or(0, Vec::len);
        if count > RULES_MAX {
            let span = source.value_span(&format!("policy.rules.{RULES_MAX}"));
            let why = format!("found {count} rules, expected at most {RULES_MAX}");
            return Err(source.invalid(span, why));
        }
        Ok((source, config))
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A problem at a place in the file.
    pub(super) fn invalid(&self, span: Range<usize>, why: String) -> Box<Problem> {
        let Source { name, text, .. } = self;
        let label = why.lines().next().unwrap_or_default().to_owned();
        let (line, column) = self.line_and_column(span.start);
        let excerpt = Excerpt { name: name.clone(), text: veiled(text), span, label };
        Problem::new(Exit::Usage, "config.invalid", format!("{name}:{line}:{column}: {why}"))
            .hint("`tooltape config schema` prints what a configuration may hold")
            .excerpt(Some(excerpt))
    }

    /// The line of a byte, counted from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    /// The line and the column of a byte, both counted from 1.
    pub(super) fn line_and_column(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.line(at);
        (line, self.text[self.lines[line - 1]..at].chars().count() + 1)
    }

    /// Where the value of a key stands, such as that of `policy.rules.0.tool`.
    pub(super) fn value_span(&self, key: &str) -> Range<usize> {
        self.spots.get(key).map_or(0..0, |spot| spot.value.clone())
    }

    /// Where a key itself stands.
    pub(super) fn name_span(&self, key: &str) -> Range<usize> {
        self.spots.get(key).map_or(0..0, |spot| spot.name.clone())
    }
}

/// A configuration as it may be shown: without what stands in quotes where secrets are named.
fn veiled(text: &str) -> String {
    let mut is_veiled = false;
    let line = |line: &str| {
        let start = line.trim_start();
        if start.starts_with('[') && start.contains(']') && !start.contains(',') {
            is_veiled = start.trim_start_matches(['[', ' ', '"']).starts_with("secrets");
        }
        let is_secret = is_veiled || start.starts_with("secrets");
        if is_secret { unquoted(line) } else { line.to_owned() }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// The same text, as long as before, with nothing to read inside quotes.
fn unquoted(text: &str) -> String {
    let (mut out, mut inside) = (String::with_capacity(text.len()), None);
    for c in text.chars() {
        match inside {
            None => {
                inside = matches!(c, '"' | '\'').then_some(c);
                out.push(c);
            }
            Some(quote) if c == quote => {
                inside = None;
                out.push(c);
            }
            Some(_) if c == '\n' => out.push(c),
            Some(_) => out.extend(std::iter::repeat_n('*', c.len_utf8())),
        }
    }
    out
}

fn mark(table: &DeTable<'_>, above: &str, spots: &mut HashMap<String, Spot>) {
    for (name, value) in table {
        let dot = if above.is_empty() { "" } else { "." };
        let key = format!("{above}{dot}{}", name.get_ref());
        // A table has no place of its own but that of its name.
        let is_table = value.get_ref().is_table();
        let place = if is_table { name.span() } else { value.span() };
        mark_value(value.get_ref(), &key, spots);
        spots.insert(key, Spot { name: name.span(), value: place });
    }
}

fn mark_value(value: &DeValue<'_>, key: &str, spots: &mut HashMap<String, Spot>) {
    match value {
        DeValue::Table(table) => mark(table, key, spots),
        DeValue::Array(array) => {
            for (at, value) in array.iter().enumerate() {
                let key = format!("{key}.{at}");
                mark_value(value.get_ref(), &key, spots);
                spots.insert(key, Spot { name: value.span(), value: value.span() });
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}
