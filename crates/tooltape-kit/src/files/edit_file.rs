//! `edit_file`: exact replacements in a file, all of them or none.

use serde::Serialize;
use similar::TextDiff;
use tooltape::schemars::JsonSchema;
use tooltape::{Footprint, Random, ToolError, input, tool};

use super::nearest::nearest;
use super::text::{Newline, Text};
use crate::workspace::{FILE_BYTES_MAX, Original, Workspace, WorkspaceError, WorkspacePath};

/// The most replacements of one call.
pub const EDITS_MAX: usize = 100;
/// The most places of a text that are counted where one was expected.
pub const MATCHES_COUNTED_MAX: usize = 100;
/// The most bytes of a diff that are returned.
pub const DIFF_BYTES_MAX: usize = 32 << 10;
/// The most lines of a file whose diff is made.
pub const DIFF_LINES_MAX: usize = 500_000;

/// The most places of a text that a message names.
const MATCHES_NAMED_MAX: usize = 8;
/// The lines around a change that its diff shows.
const DIFF_CONTEXT_LINES: usize = 3;
/// The characters of a BLAKE3 hash in hexadecimal.
const HASH_CHARS: usize = 64;

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
        let is_hex =
            |hash: &str| hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match &self.expect_hash {
            Some(hash) if hash.len() != HASH_CHARS || !is_hex(hash) => Err(format!(
                "/expect_hash: expected {HASH_CHARS} lower-case hexadecimal characters, as \
                 `read_file` returns them"
            )),
            Some(_) | None => Ok(()),
        }
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
/// of them. Each `old` must occur exactly once, so give enough text around it. Line ends follow the
/// file's own. Returns a diff and the new hash.
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
    Ok(Edited { path: args.path, hash, diff, edits: args.edits.len() as u64 })
}

/// What a file would become.
struct Draft {
    newline: Newline,
    text: String,
    edited: String,
}

fn draft(args: &EditFile, original: &Original) -> Result<Draft, ToolError> {
    let EditFile { path, edits, expect_hash } = args;
    let hash = hash(original.bytes());
    if let Some(expected) = expect_hash.as_ref().filter(|expected| **expected != hash) {
        let told = format!(
            "`{path}` has the hash `{hash}`, expected `{expected}`: it was changed, read it again"
        );
        return Err(ToolError::not_done(told).code("precondition_failed"));
    }
    let Text { newline, text } = Text::of(path, original.bytes())?;
    let edited = edited(path, &text, newline, edits)?;
    Ok(Draft { newline, text, edited })
}

/// The change as it would be now, for whoever is asked about it.
async fn would_be(args: EditFile, files: Workspace) -> Result<String, ToolError> {
    let original = files.original(&args.path).map_err(WorkspaceError::tell)?;
    draft(&args, &original).map(|draft| draft.diff(&args.path))
}

fn path_of(args: &EditFile) -> Footprint {
    args.path.writes()
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// The text with all edits made.
fn edited(
    path: &WorkspacePath,
    text: &str,
    newline: Newline,
    edits: &[Edit],
) -> Result<String, ToolError> {
    let mut edited = text.to_owned();
    for (at, edit) in edits.iter().enumerate() {
        let (old, new) = (newline.shown(&edit.old), newline.shown(&edit.new));
        let from = only_match(&edited, &old).map_err(|refusal| {
            let told = format!("/edits/{at}/old: {}", refusal.told);
            ToolError::not_done(told).code(refusal.code)
        })?;
        edited.replace_range(from..from + old.len(), &new);
        if edited.len() as u64 > FILE_BYTES_MAX {
            let bytes = edited.len() as u64;
            return Err(WorkspaceError::TooLarge { path: path.clone(), bytes }.tell());
        }
    }
    Ok(edited)
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
        _ => Err(Refusal { code: "many_matches", told: ambiguous(text, &matches) }),
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
    /// A unified diff, unless the file has too many lines.
    fn diff(&self, path: &WorkspacePath) -> String {
        let (old, new) = (self.text.as_str(), self.edited.as_str());
        let lines = old.lines().count().max(new.lines().count());
        if lines > DIFF_LINES_MAX {
            return format!("\\ not shown: {lines} lines, expected at most {DIFF_LINES_MAX}\n");
        }
        let diff = TextDiff::from_lines(old, new);
        let mut unified = diff.unified_diff();
        let (before, after) = (format!("a/{path}"), format!("b/{path}"));
        unified.context_radius(DIFF_CONTEXT_LINES).header(&before, &after);
        unified.to_string()
    }
}

/// As much of a diff as is returned. Its last line says what is left out, where something is.
fn bounded(diff: String) -> String {
    if diff.len() <= DIFF_BYTES_MAX {
        return diff;
    }
    let cut = &diff[..diff.floor_char_boundary(DIFF_BYTES_MAX)];
    let cut = &cut[..cut.rfind('\n').map_or(0, |at| at + 1)];
    format!("{cut}\\ cut here: {} of {} bytes\n", cut.len(), diff.len())
}
