//! `edit_file`: exact replacements in a file, all of them or none.

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Footprint, Random, ToolError, input, tool};

use super::diff::{Side, bounded, diff};
use super::expected::{check_form, check_hash, hash};
use super::nearest::nearest;
use super::text::{Newline, Text};
use crate::workspace::{FILE_BYTES_MAX, Original, Workspace, WorkspaceError, WorkspacePath};

/// The most replacements of one call.
pub const EDITS_MAX: usize = 100;
/// The most places of a text that are counted where one was expected.
pub const MATCHES_COUNTED_MAX: usize = 100;

/// The code of an edit that could be meant in several ways.
const MANY_MATCHES: &str = "many_matches";
/// The most places of a text that a message names.
const MATCHES_NAMED_MAX: usize = 8;

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct EditFile {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The replacements, made one after the other: all of them or none.
    edits: Vec<Edit>,
    /// The hash that `read_file` returned. The file is left alone if it has another one by now.
    expect_hash: Option<String>,
}

#[input]
pub(super) struct Edit {
    /// The text to replace, exactly as it stands in the file. It must occur exactly once.
    old: String,
    /// The text to put in its place.
    new: String,
    /// Whether to replace every occurrence, of which there must be at least one.
    replace_all: Option<bool>,
}

impl EditFile {
    fn check(&self) -> Result<(), String> {
        if !(1..=EDITS_MAX).contains(&self.edits.len()) {
            let found = self.edits.len();
            return Err(format!("/edits: found {found} edits, expected 1 to {EDITS_MAX}"));
        }
        for (at, edit) in self.edits.iter().enumerate() {
            if edit.old.is_empty() {
                return Err(format!("/edits/{at}/old: found nothing, expected text to replace"));
            }
            if edit.old == edit.new {
                return Err(format!("/edits/{at}/new: found the same as `old`, expected a change"));
            }
        }
        check_form(self.expect_hash.as_deref())
    }
}

/// What `edit_file` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Edited {
    /// The file's path, relative to the workspace.
    path: WorkspacePath,
    /// The BLAKE3 hash of the whole file as it is now, as lower-case hexadecimal.
    hash: String,
    /// What changed, as a unified diff.
    diff: String,
    /// How many replacements were made.
    edits: u64,
}

/// Replaces exact pieces of text in an existing text file of the workspace: all of `edits`, or none
/// of them. Each `old` must occur exactly once, so give enough text around it, unless `replace_all`
/// is true. Line ends follow the file's own. Returns a diff and the new hash.
#[tool(
    Write,
    filesystem,
    blocking,
    version = "0.1.0",
    repeat = Once,
    reach = Local,
    process = false,
    spend = false,
    needs("fs:read:{path}", "fs:write:{path}"),
    touches = path_of,
    preview = would_be,
    output = Edited,
    wall_ms = 60_000,
    output_bytes = 256 << 10
)]
pub(super) fn edit_file(
    args: EditFile,
    files: Workspace,
    random: Random,
) -> Result<Edited, ToolError> {
    let original = files.original(&args.path).map_err(WorkspaceError::tell)?;
    let draft = draft(&args, &original)?;
    // Before the replacement, because nothing may fail after it.
    let bytes = draft.newline.stored(&draft.edited).into_owned().into_bytes();
    let (hash, diff) = (hash(&bytes), bounded(draft.diff(&args.path)));
    original.replace(&bytes, &random).map_err(WorkspaceError::tell)?;
    Ok(Edited { path: args.path, hash, diff, edits: draft.made })
}

/// What a file would become.
struct Draft {
    newline: Newline,
    text: String,
    edited: String,
    /// How many replacements make it so.
    made: u64,
}

fn draft(args: &EditFile, original: &Original) -> Result<Draft, ToolError> {
    let EditFile { path, edits, expect_hash } = args;
    check_hash(path, original.bytes(), expect_hash.as_deref())?;
    let Text { newline, text } = Text::of(path, original.bytes())?;
    let (edited, made) = edited(path, &text, newline, edits)?;
    Ok(Draft { newline, text, edited, made })
}

/// The change as it would be now, for whoever is asked about it.
async fn would_be(args: EditFile, files: Workspace) -> Result<String, ToolError> {
    let original = files.original(&args.path).map_err(WorkspaceError::tell)?;
    draft(&args, &original).map(|draft| draft.diff(&args.path))
}

fn path_of(args: &EditFile) -> Footprint {
    args.path.writes()
}

/// The text with all edits made, and how many replacements these were.
fn edited(
    path: &WorkspacePath,
    text: &str,
    newline: Newline,
    edits: &[Edit],
) -> Result<(String, u64), ToolError> {
    let (mut edited, mut made) = (text.to_owned(), 0);
    for (at, edit) in edits.iter().enumerate() {
        let (old, new) = (newline.shown(&edit.old), newline.shown(&edit.new));
        let first = match (only_match(&edited, &old), edit.replace_all) {
            (Err(Refusal { code: MANY_MATCHES, .. }), Some(true)) => None,
            (found, _) => Some(found.map_err(|refusal| {
                let told = format!("/edits/{at}/old: {}", refusal.told);
                ToolError::not_done(told).code(refusal.code)
            })?),
        };
        let times = first.map_or_else(|| edited.matches(&*old).count(), |_| 1);
        // Before it is made: every place may grow.
        let bytes = (edited.len() - times * old.len()) as u64;
        let bytes = bytes.saturating_add((times as u64).saturating_mul(new.len() as u64));
        if bytes > FILE_BYTES_MAX {
            return Err(WorkspaceError::TooLarge { path: path.clone(), bytes }.tell());
        }
        match first {
            Some(from) => edited.replace_range(from..from + old.len(), &new),
            None => edited = edited.replace(&*old, &new),
        }
        made += times as u64;
    }
    Ok((edited, made))
}

/// Why an edit cannot be made.
struct Refusal {
    code: &'static str,
    told: String,
}

/// Where `old` begins, if it occurs exactly once.
fn only_match(text: &str, old: &str) -> Result<usize, Refusal> {
    let mut matches = Vec::new();
    let mut from = 0;
    // Matches may overlap: a text that could be meant in two ways is not unique.
    while let Some(at) = text[from..].find(old).filter(|_| matches.len() <= MATCHES_COUNTED_MAX) {
        matches.push(from + at);
        from += at + text[from + at..].chars().next().map_or(1, char::len_utf8);
    }
    match matches[..] {
        [only] => Ok(only),
        [] => {
            let hint = nearest(text, old).map(|hint| format!("; {hint}")).unwrap_or_default();
            let told = format!("found nowhere in the file, expected exactly one place{hint}");
            Err(Refusal { code: "no_match", told })
        }
        _ => Err(Refusal { code: MANY_MATCHES, told: ambiguous(text, &matches) }),
    }
}

fn ambiguous(text: &str, matches: &[usize]) -> String {
    let count = match matches.len() {
        count if count > MATCHES_COUNTED_MAX => format!("more than {MATCHES_COUNTED_MAX}"),
        count => count.to_string(),
    };
    let line = |at: &usize| (text[..*at].matches('\n').count() + 1).to_string();
    let mut lines: Vec<_> = matches.iter().take(MATCHES_NAMED_MAX).map(line).collect();
    lines.dedup();
    if matches.len() > MATCHES_NAMED_MAX {
        lines.push("…".to_owned());
    }
    let lines = lines.join(", ");
    format!("found at {count} places, expected exactly one: add text around it; see lines {lines}")
}

impl Draft {
    fn diff(&self, path: &WorkspacePath) -> String {
        let (before, after) = (&self.text, &self.edited);
        diff(Some(Side { path, text: before }), Some(Side { path, text: after }))
    }
}
