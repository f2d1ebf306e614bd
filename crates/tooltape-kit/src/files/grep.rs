//! `grep`: the lines of files that match a regular expression.

mod lines;
mod search;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use search::{Searched, search};
use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Cancel, Clock, Footprint, ToolError, input, tool};

use super::sight::{at_most, dotted, only};
use crate::workspace::{
    Cut, Patience, Sight, WALK_DEPTH_MAX, Workspace, WorkspaceError, WorkspacePath, shown,
};

pub use lines::{GREP_BYTES_MAX, GREP_LINE_BYTES_MAX};
pub use search::{GREP_HEAP_BYTES_MAX, GREP_THREADS_MAX};

/// How many matches are shown where nobody says.
pub const GREP_MATCHES_DEFAULT: u64 = 200;
/// The most matches that one call shows.
pub const GREP_MATCHES_MAX: u64 = 2_000;
/// The most lines that are shown before or after a match.
pub const GREP_CONTEXT_MAX: u64 = 20;
/// The longest pattern, in bytes.
pub const GREP_PATTERN_BYTES_MAX: usize = 4_096;
/// The largest regular expression, once it is compiled; in bytes.
pub const GREP_REGEX_BYTES_MAX: usize = 4 << 20;

/// The most bytes of what the compiler of patterns says that a message shows.
const REASON_BYTES_MAX: usize = 512;

// What to show of what is found. A doc comment here would reach the model.
#[input]
#[derive(Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Show {
    Lines,
    Files,
    Counts,
}

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct Grep {
    /// A regular expression in Rust's syntax: no look-around, no back-references.
    pattern: String,
    /// The directory or file to search, relative to the workspace: all of it where none is given.
    path: Option<WorkspacePath>,
    /// Only files whose paths match, such as `*.rs` or `src/**/*.ts`; with `!` in front all others.
    glob: Option<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Whether `pattern` is plain text.
    #[serde(default)]
    fixed: bool,
    /// Whether a match may go over several lines.
    #[serde(default)]
    multiline: bool,
    /// How many lines to show before each match.
    #[serde(default)]
    before: u64,
    /// How many lines to show after each match.
    #[serde(default)]
    after: u64,
    /// The matching `lines` where nothing is given, or the `files` alone, or `counts` of lines.
    show: Option<Show>,
    /// Whether to look at names that begin with a dot, too.
    #[serde(default)]
    hidden: bool,
    /// Whether to look at what `.gitignore` and `.ignore` name, too.
    #[serde(default)]
    ignored: bool,
    /// How many matches, or files, to show: 200 where none is given.
    limit: Option<u64>,
}

impl Grep {
    fn check(&self) -> Result<(), String> {
        at_most(self.limit, GREP_MATCHES_DEFAULT, GREP_MATCHES_MAX)?;
        for (name, lines) in [("before", self.before), ("after", self.after)] {
            if lines > GREP_CONTEXT_MAX {
                return Err(format!("/{name}: found {lines}, expected 0 to {GREP_CONTEXT_MAX}"));
            }
        }
        only(self.glob.as_deref()).map_err(|told| format!("/glob: {told}"))?;
        self.matcher().map(drop).map_err(|told| format!("/pattern: {told}"))
    }

    fn matcher(&self) -> Result<RegexMatcher, String> {
        let bytes = self.pattern.len();
        if !(1..=GREP_PATTERN_BYTES_MAX).contains(&bytes) {
            let most = GREP_PATTERN_BYTES_MAX;
            return Err(format!("found {bytes} bytes, expected a pattern of 1 to {most}"));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.fixed)
            .multi_line(true)
            .size_limit(GREP_REGEX_BYTES_MAX)
            .dfa_size_limit(GREP_REGEX_BYTES_MAX);
        if !self.multiline {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(&self.pattern).map_err(|err| {
            let reason = err.to_string();
            let hint = match self.multiline {
                false if reason.contains(r#""\n""#) => ": set `multiline` to match line ends",
                _ => "",
            };
            format!("{}{hint}", shown(reason.trim(), REASON_BYTES_MAX))
        })
    }
}

/// What `grep` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Grepped {
    /// The files in which something was found, in the order of the parts of their paths.
    files: Vec<Matches>,
    /// How many matches are shown, or files.
    matches: u64,
    /// How many files and directories could not be searched, or not to their end.
    skipped: u64,
    /// Whether there may be more matches than are shown.
    truncated: bool,
    /// Why not all are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_by: Option<Cut>,
}

/// What was found in a file.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Matches {
    /// The file's path, relative to the workspace.
    path: String,
    /// How many lines match, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The lines, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<Line>,
}

/// A line of a file.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Line {
    /// Its number, counted from 1.
    line: u64,
    /// Its text, without its end. Bytes that are not UTF-8 are shown as U+FFFD.
    text: String,
    /// Whether it stands only around a match.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    context: bool,
    /// Whether it is too long to be shown whole; then what is shown is around its first match.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// Searches the text files of the workspace for a regular expression, and shows the matching lines
/// by file, sorted by path. Hidden files, binary files and what `.gitignore` names are left out
/// unless asked for, and symbolic links are not followed. `truncated` says that there may be more.
#[tool(
    Read,
    filesystem,
    blocking,
    version = "0.1.0",
    needs("fs:read:{path}"),
    touches = path_of,
    output = Grepped,
    wall_ms = 30_000,
    output_bytes = 1 << 20
)]
pub(super) fn grep(
    args: Grep,
    files: Workspace,
    clock: Clock,
    cancel: Cancel,
) -> Result<Grepped, ToolError> {
    let matcher = args.matcher().map_err(ToolError::not_done)?;
    let only = only(args.glob.as_deref()).map_err(ToolError::not_done)?;
    let limit = at_most(args.limit, GREP_MATCHES_DEFAULT, GREP_MATCHES_MAX);
    let limit = limit.map_err(ToolError::not_done)?;
    let (hidden, ignored) = (args.hidden, args.ignored);
    let dotted = dotted(args.glob.as_deref().unwrap_or_default());
    let sight = Sight { hidden, ignored, only, dotted, depth: WALK_DEPTH_MAX };
    let from = args.path.clone().unwrap_or_else(WorkspacePath::root);
    let patience = Patience::new(clock, cancel.clone());
    let walk = files.walk(&from, sight, patience.clone()).map_err(WorkspaceError::tell)?;
    let searched = search(&args, &matcher, limit, &files, walk, &patience);
    if cancel.is_requested() {
        return Err(ToolError::cancelled());
    }
    let Searched { files, matches, skipped, cut, refusal } = searched;
    if let Some(refusal) = refusal {
        return Err(refusal.tell());
    }
    Ok(Grepped { files, matches, skipped, truncated: cut.is_some(), truncated_by: cut })
}

fn path_of(args: &Grep) -> Footprint {
    args.path.as_ref().unwrap_or(&WorkspacePath::root()).searches()
}
