//! `move_file`: a file at another path.

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Footprint, ToolError, input, tool};

use crate::workspace::{Existing, Workspace, WorkspaceError, WorkspacePath};

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct MoveFile {
    /// The file, relative to the workspace.
    from: WorkspacePath,
    /// Where it is to be, relative to the workspace.
    to: WorkspacePath,
    /// Whether to replace a file that is there.
    overwrite: Option<bool>,
}

impl MoveFile {
    fn check(&self) -> Result<(), String> {
        match self.from == self.to {
            true => Err("/to: found the same as `from`, expected another path".to_owned()),
            false => Ok(()),
        }
    }
}

/// What `move_file` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Moved {
    /// Where the file was, relative to the workspace.
    from: WorkspacePath,
    /// Where the file is, relative to the workspace.
    to: WorkspacePath,
    /// Whether a file that was there is gone.
    replaced: bool,
    /// What changed, as the header of a unified diff.
    diff: String,
}

/// Moves or renames a file of the workspace. The folder of `to` must exist. A file that is there
/// already is replaced only if `overwrite` is true.
#[tool(
    Write,
    filesystem,
    blocking,
    version = "0.1.0",
    repeat = Once,
    reach = Local,
    process = false,
    spend = false,
    needs("fs:read:{from}", "fs:write:{from}", "fs:write:{to}"),
    touches = paths_of,
    preview = would_be,
    output = Moved,
    wall_ms = 60_000,
    output_bytes = 64 << 10
)]
pub(super) fn move_file(args: MoveFile, files: Workspace) -> Result<Moved, ToolError> {
    let existing = match args.overwrite {
        Some(true) => Existing::Replaced,
        Some(false) | None => Existing::Kept,
    };
    let replaced = existing == Existing::Replaced && exists(&args.to, &files)?;
    let diff = header(&args);
    files.rename(&args.from, &args.to, existing).map_err(WorkspaceError::tell)?;
    Ok(Moved { from: args.from, to: args.to, replaced, diff })
}

fn exists(path: &WorkspacePath, files: &Workspace) -> Result<bool, ToolError> {
    files.exists(path).map_err(WorkspaceError::tell)
}

fn header(args: &MoveFile) -> String {
    let MoveFile { from, to, .. } = args;
    format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n")
}

/// The change as it would be now, for whoever is asked about it.
async fn would_be(args: MoveFile, files: Workspace) -> Result<String, ToolError> {
    let told = match exists(&args.to, &files)? {
        true => format!("\\ replaces the file that is at `{}`\n", args.to),
        false => String::new(),
    };
    Ok(format!("{}{told}", header(&args)))
}

fn paths_of(args: &MoveFile) -> Footprint {
    WorkspacePath::all_written([&args.from, &args.to].into_iter())
}
