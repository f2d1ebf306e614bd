//! `read_file`: the text of a file, or some of its lines.

use std::num::NonZeroU64;

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Footprint, ToolError, input, tool};

use super::text::{Newline, Text};
use crate::workspace::{Workspace, WorkspaceError, WorkspacePath};

/// The most bytes of text that one call returns.
pub const READ_BYTES_MAX: usize = 64 << 10;

// A doc comment here would reach the model, which reads the tool's already.
#[input]
pub(super) struct ReadFile {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The first line to read, counted from 1. The first of the file where none is given.
    start: Option<NonZeroU64>,
    /// How many lines to read. All where none is given.
    lines: Option<NonZeroU64>,
}

/// What `read_file` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct FileText {
    /// The file's path, relative to the workspace.
    path: WorkspacePath,
    /// The lines that were asked for, with their line ends.
    text: String,
    /// The first of these lines, counted from 1.
    start: u64,
    /// How many lines these are.
    lines: u64,
    /// How many lines the file has.
    total_lines: u64,
    /// The BLAKE3 hash of the whole file, as lower-case hexadecimal.
    hash: String,
    /// How the lines of the file end.
    newline: Newline,
    /// Whether less is returned than was asked for.
    truncated: bool,
}

/// Reads a text file of the workspace, or `lines` lines of it from line `start` on. Also returns
/// the hash of the whole file, for `expect_hash` of `edit_file`. Where `truncated` is true, not
/// everything fitted: go on at line `start` + `lines`.
#[tool(
    Read,
    filesystem,
    blocking,
    version = "0.1.0",
    needs("fs:read:{path}"),
    touches = path_of,
    output = FileText,
    wall_ms = 30_000,
    output_bytes = 512 << 10
)]
pub(super) fn read_file(args: ReadFile, files: Workspace) -> Result<FileText, ToolError> {
    let ReadFile { path, start, lines } = args;
    let bytes = files.read(&path).map_err(WorkspaceError::tell)?;
    let Text { newline, text } = Text::of(&path, &bytes)?;
    let total_lines = text.split_inclusive('\n').count() as u64;
    let start = start.map_or(1, NonZeroU64::get);
    if start > total_lines.max(1) {
        let told = format!("/start: found {start}, but the last line of `{path}` is {total_lines}");
        return Err(ToolError::not_done(told).code("past_end"));
    }
    let Window { shown, lines, truncated } = window(&text, start, lines);
    let (text, hash) = (shown.to_owned(), blake3::hash(&bytes).to_hex().to_string());
    Ok(FileText { path, text, start, lines, total_lines, hash, newline, truncated })
}

fn path_of(args: &ReadFile) -> Footprint {
    args.path.reads()
}

/// A part of a text that may be shown.
struct Window<'a> {
    shown: &'a str,
    lines: u64,
    truncated: bool,
}

/// As many whole lines as fit; a line that does not fit by itself is cut.
fn window(text: &str, start: u64, lines: Option<NonZeroU64>) -> Window<'_> {
    let count = |lines| usize::try_from(lines).unwrap_or(usize::MAX);
    let asked = lines.map_or(usize::MAX, |lines| count(lines.get()));
    let skipped = text.split_inclusive('\n').take(count(start - 1)).map(str::len).sum();
    let rest = &text[skipped..];
    let (mut bytes, mut fitting) = (0, 0);
    for line in rest.split_inclusive('\n').take(asked) {
        if bytes + line.len() > READ_BYTES_MAX {
            let (bytes, lines) = match fitting {
                0 => (line.floor_char_boundary(READ_BYTES_MAX), 1),
                _ => (bytes, fitting),
            };
            return Window { shown: &rest[..bytes], lines, truncated: true };
        }
        bytes += line.len();
        fitting += 1;
    }
    Window { shown: &rest[..bytes], lines: fitting, truncated: false }
}
