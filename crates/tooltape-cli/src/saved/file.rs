//! The file of a project's saved answers: read strictly, written whole or not at all.

use std::fmt::Write as _;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use tooltape::Hash;

use super::entry::SAVED_ARGS_BYTES_MAX;
use super::{Entry, Pattern, SAVED_MAX};
use crate::exit::Exit;
use crate::private;
use crate::report::{Excerpt, Problem, Result};
use crate::when::{self, LIFETIME_MAX, Moment};

/// The most bytes of such a file.
const SAVED_BYTES_MAX: u64 = 8 << 20;
/// The version of its form.
const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    version: Spanned<u32>,
    project: Spanned<String>,
    #[serde(default)]
    answer: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: Spanned<String>,
    tool: String,
    definition: Spanned<String>,
    args: Spanned<String>,
    #[serde(default)]
    pattern: Option<Pattern>,
    workspace: String,
    created: Spanned<String>,
    expires: Spanned<String>,
}

/// What nobody else writes meanwhile.
pub(super) struct Locked {
    _lock: File,
}

impl Locked {
    /// Waits until nobody else writes.
    pub(super) fn new(file: &Path) -> Result<Locked> {
        let folder = file.parent().unwrap_or(file);
        let locked = private::folder(folder).and_then(|()| {
            let lock = private::file(&folder.join("lock"))?;
            lock.lock()?;
            Ok(lock)
        });
        let lock = locked.map_err(|err| unusable(folder, &err.to_string()))?;
        Ok(Locked { _lock: lock })
    }
}

/// The answers of a file; nothing, where there is none.
pub(super) fn read(path: &Path, project: &str) -> Result<Option<Vec<Entry>>> {
    let text = private::text(path, SAVED_BYTES_MAX);
    let Some(text) = text.map_err(|err| unusable(path, &err.to_string()))? else {
        return Ok(None);
    };
    let parsed: std::result::Result<Form, toml::de::Error> = toml::from_str(&text);
    let source = Source { path, text: &text };
    let form = parsed
        .map_err(|err| source.invalid(err.span().unwrap_or(0..0), err.message().to_owned()))?;
    let found = form.version.get_ref();
    if *found != VERSION {
        let why = format!("found version {found}, expected {VERSION}");
        return Err(source.invalid(form.version.span(), why));
    }
    if form.project.get_ref() != project {
        let why = format!("these are the answers for another project, expected `{project}`");
        return Err(source.invalid(form.project.span(), why));
    }
    if let Some(row) = form.answer.get(SAVED_MAX) {
        let why = format!("found {} answers, expected at most {SAVED_MAX}", form.answer.len());
        return Err(source.invalid(row.name.span(), why));
    }
    let entries = form.answer.into_iter().map(|row| source.entry(row));
    entries.collect::<Result<Vec<Entry>>>().map(Some)
}

/// A text and where it is from.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn entry(&self, row: Row) -> Result<Entry> {
        let Row { name, tool, definition, args, pattern, workspace, created, expires } = row;
        let moment = |text: &Spanned<String>| match Moment::read(text.get_ref()) {
            Some(Moment::At(us)) => Ok(us),
            Some(Moment::Ago(_)) | None => {
                let why = "expected a moment such as `2026-11-16T01:47:11Z`";
                Err(self.invalid(text.span(), why.to_owned()))
            }
        };
        let (created_us, expires_us) = (moment(&created)?, moment(&expires)?);
        let hash: std::result::Result<Hash, _> = definition.get_ref().parse();
        let entry = Entry {
            name: name.get_ref().clone(),
            tool,
            definition: hash.map_err(|err| self.invalid(definition.span(), err.to_string()))?,
            args: args.get_ref().clone(),
            pattern: pattern.unwrap_or_default(),
            workspace,
            created_us,
            expires_us,
        };
        let most_us = u64::try_from(LIFETIME_MAX.as_micros()).unwrap_or(u64::MAX);
        if expires_us.saturating_sub(created_us) > most_us || expires_us <= created_us {
            let days = LIFETIME_MAX.as_secs() / (24 * 60 * 60);
            let why = format!("expected a moment within {days} days of `created`");
            return Err(self.invalid(expires.span(), why));
        }
        if entry.args.len() > SAVED_ARGS_BYTES_MAX {
            let why = format!("expected at most {SAVED_ARGS_BYTES_MAX} bytes");
            return Err(self.invalid(args.span(), why));
        }
        entry.check_pattern().map_err(|why| self.invalid(name.span(), why))?;
        // Whoever edits an answer by hand says something that nobody approved.
        if entry.own_name() != entry.name {
            let why = "this is not the answer that was saved under this name".to_owned();
            return Err(self.invalid(name.span(), why));
        }
        Ok(entry)
    }

    /// A problem at a place in the file.
    fn invalid(&self, span: Range<usize>, why: String) -> Box<Problem> {
        let (name, text) = (self.path.display().to_string(), self.text.to_owned());
        let line = text[..text.floor_char_boundary(span.start)].matches('\n').count() + 1;
        let message = format!("{name}:{line}: {why}");
        let excerpt = Excerpt { name, text, span, label: why };
        Problem::new(Exit::Usage, "answers.invalid", message)
            .hint("take the file away, and no answer is saved")
            .excerpt(Some(excerpt))
    }
}

/// Puts these answers in the place of those that are there.
pub(super) fn write(_: &Locked, path: &Path, project: &str, entries: &[Entry]) -> Result {
    let mut text = format!(
        "# Answers to questions whether a call may run. `tooltape approve saved ls` lists them.\n\
         version = {VERSION}\nproject = {}\n",
        quoted(project),
    );
    entries.iter().for_each(|entry| put(&mut text, entry));
    private::replace(path, &text).map_err(|err| unusable(path, &err.to_string()))
}

fn put(text: &mut String, entry: &Entry) {
    let Entry { name, tool, definition, args, pattern, workspace, created_us, expires_us } = entry;
    let definition = definition.to_string();
    let (created, expires) = (when::rfc3339(*created_us), when::rfc3339(*expires_us));
    let rows = [
        ("name", name),
        ("tool", tool),
        ("definition", &definition),
        ("args", args),
        ("workspace", workspace),
        ("created", &created),
        ("expires", &expires),
    ];
    text.push_str("\n[[answer]]\n");
    for (key, value) in rows {
        writeln!(text, "{key} = {}", quoted(value)).expect("a string takes everything");
    }
    let globs: Vec<String> =
        pattern.iter().map(|(name, glob)| format!("{} = {}", quoted(name), quoted(glob))).collect();
    if !globs.is_empty() {
        writeln!(text, "pattern = {{ {} }}", globs.join(", ")).expect("a string takes everything");
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn unusable(path: &Path, why: &str) -> Box<Problem> {
    let message = format!("saved answers cannot be used: `{}`: {why}", path.display());
    Problem::new(Exit::Failed, "answers.unusable", message)
        .hint("mend it, or take it away: then no answer is saved")
}
