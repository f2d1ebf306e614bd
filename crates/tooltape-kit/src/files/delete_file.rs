//! `delete_file`: a file or an empty folder that is gone.

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Footprint, Random, ToolError, input, tool};

use super::diff::{bounded, diff_of_bytes};
use super::expected::{check_form, check_hash};
use crate::workspace::{Changes, EntryKind, Original, Workspace, WorkspaceError, WorkspacePath};

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct DeleteFile {
    /// The file or the empty folder, relative to the workspace.
    path: WorkspacePath,
    /// The hash that `read_file` returned. The file is left alone if it has another one by now.
    expect_hash: Option<String>,
}

impl DeleteFile {
    fn check(&self) -> Result<(), String> {
        check_form(self.expect_hash.as_deref())
    }
}

/// What `delete_file` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Deleted {
    /// The path, relative to the workspace.
    path: WorkspacePath,
    /// What was there.
    kind: EntryKind,
    /// What is gone, as a unified diff.
    diff: String,
}

/// Deletes a file of the workspace, or a folder that is empty. Nothing brings it back, so give
/// `expect_hash` where you have read the file. Returns a diff.
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
    output = Deleted,
    wall_ms = 60_000,
    output_bytes = 256 << 10
)]
pub(super) fn delete_file(
    args: DeleteFile,
    files: Workspace,
    random: Random,
) -> Result<Deleted, ToolError> {
    let Draft { kind, diff, original } = draft(&args, &files)?;
    let removed = match original {
        // What has the name by then is what was read, or it stays.
        Some(original) => {
            let mut changes = Changes::new(&files);
            changes.remove(original);
            changes.make(&random)
        }
        None => files.remove(&args.path),
    };
    removed.map_err(WorkspaceError::tell)?;
    Ok(Deleted { path: args.path, kind, diff: bounded(diff) })
}

/// What would be gone.
struct Draft {
    kind: EntryKind,
    diff: String,
    /// The file, where it was read.
    original: Option<Original>,
}

fn draft(args: &DeleteFile, files: &Workspace) -> Result<Draft, ToolError> {
    let DeleteFile { path, expect_hash } = args;
    match files.original(path) {
        Ok(original) => {
            check_hash(path, original.bytes(), expect_hash.as_deref())?;
            let diff = diff_of_bytes(path, Some(original.bytes()), None);
            Ok(Draft { kind: EntryKind::File, diff, original: Some(original) })
        }
        Err(WorkspaceError::Kind { found: EntryKind::Dir, .. }) if expect_hash.is_none() => {
            let diff = format!("\\ the empty directory `{path}`\n");
            Ok(Draft { kind: EntryKind::Dir, diff, original: None })
        }
        Err(WorkspaceError::TooLarge { bytes, .. }) if expect_hash.is_none() => {
            let diff = format!("\\ not shown: {bytes} bytes\n");
            Ok(Draft { kind: EntryKind::File, diff, original: None })
        }
        Err(err) => Err(err.tell()),
    }
}

/// The change as it would be now, for whoever is asked about it.
async fn would_be(args: DeleteFile, files: Workspace) -> Result<String, ToolError> {
    draft(&args, &files).map(|draft| draft.diff)
}

fn path_of(args: &DeleteFile) -> Footprint {
    args.path.writes()
}
