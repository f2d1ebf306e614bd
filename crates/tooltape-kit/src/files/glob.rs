//! `glob`: the files whose paths match a pattern.

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Cancel, Clock, Footprint, ToolError, input, tool};

use super::sight::{at_most, dotted, only};
use crate::workspace::{
    Cut, EntryKind, Patience, Sight, WALK_DEPTH_MAX, Workspace, WorkspaceError, WorkspacePath,
};

/// How many files are listed where nobody says.
pub const GLOB_FILES_DEFAULT: u64 = 1_000;
/// The most files that one call lists.
pub const GLOB_FILES_MAX: u64 = 10_000;
/// The most bytes of paths that one call lists.
pub const GLOB_PATHS_BYTES_MAX: usize = 512 << 10;

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct Glob {
    /// Such as `*.rs` for names at any depth, or `src/**/*.{ts,tsx}` for paths from `path` on.
    pattern: String,
    /// The directory to look in, relative to the workspace: all of it where none is given.
    path: Option<WorkspacePath>,
    /// Whether to look at names that begin with a dot, too.
    #[serde(default)]
    hidden: bool,
    /// Whether to look at what `.gitignore` and `.ignore` name, too.
    #[serde(default)]
    ignored: bool,
    /// How many files to list: 1000 where none is given.
    limit: Option<u64>,
}

impl Glob {
    fn check(&self) -> Result<(), String> {
        at_most(self.limit, GLOB_FILES_DEFAULT, GLOB_FILES_MAX)?;
        only(Some(&self.pattern)).map(drop).map_err(|told| format!("/pattern: {told}"))
    }
}

/// What `glob` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Globbed {
    /// The files' paths, relative to the workspace, in the order of their parts.
    files: Vec<String>,
    /// How many directories could not be looked into.
    skipped: u64,
    /// Whether there may be more files than are listed.
    truncated: bool,
    /// Why not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_by: Option<Cut>,
}

/// Lists the files of the workspace whose paths match a pattern, sorted by path. Hidden files and
/// what `.gitignore` names are left out unless asked for, and symbolic links are not followed.
/// `truncated` says that there may be more.
#[tool(
    Read,
    filesystem,
    blocking,
    version = "0.1.0",
    needs("fs:read:{path}"),
    touches = path_of,
    output = Globbed,
    wall_ms = 30_000,
    output_bytes = 1 << 20
)]
pub(super) fn glob(
    args: Glob,
    files: Workspace,
    clock: Clock,
    cancel: Cancel,
) -> Result<Globbed, ToolError> {
    let Glob { pattern, path, hidden, ignored, limit } = args;
    let only = only(Some(&pattern)).map_err(ToolError::not_done)?;
    let limit = at_most(limit, GLOB_FILES_DEFAULT, GLOB_FILES_MAX).map_err(ToolError::not_done)?;
    let dotted = dotted(&pattern);
    let sight = Sight { hidden, ignored, only, dotted, depth: WALK_DEPTH_MAX };
    let from = path.unwrap_or_else(WorkspacePath::root);
    let patience = Patience::new(clock, cancel.clone());
    let mut walk = files.walk(&from, sight, patience).map_err(WorkspaceError::tell)?;
    let (mut paths, mut bytes, mut cut) = (Vec::new(), 0, None);
    for found in walk.by_ref().filter(|found| found.kind == EntryKind::File) {
        let path = found.shown();
        bytes += path.len();
        if paths.len() as u64 == limit || bytes > GLOB_PATHS_BYTES_MAX {
            cut = Some(if bytes > GLOB_PATHS_BYTES_MAX { Cut::Bytes } else { Cut::Limit });
            break;
        }
        paths.push(path);
    }
    if cancel.is_requested() {
        return Err(ToolError::cancelled());
    }
    if let Some(refusal) = walk.refusal.take() {
        return Err(refusal.tell());
    }
    files.saw_names(paths.iter().map(String::as_str));
    let truncated_by = cut.or(walk.cut);
    let truncated = truncated_by.is_some();
    Ok(Globbed { files: paths, skipped: walk.skipped, truncated, truncated_by })
}

fn path_of(args: &Glob) -> Footprint {
    args.path.as_ref().unwrap_or(&WorkspacePath::root()).searches()
}
