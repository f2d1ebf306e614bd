//! `write_file`: a file with this content, new or in the place of another.

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Footprint, Random, ToolError, input, tool};

use super::diff::{bounded, diff_of_bytes};
use super::expected::{check_form, check_hash, hash};
use crate::workspace::{Original, Workspace, WorkspaceError, WorkspacePath};

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct WriteFile {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The whole content, written byte for byte.
    content: String,
    /// The hash that `read_file` returned, to replace the file only if it still has it.
    expect_hash: Option<String>,
    /// Whether to replace a file whatever it holds.
    overwrite: Option<bool>,
    /// Whether to create the folders above the file that are missing.
    create_dirs: Option<bool>,
}

impl WriteFile {
    fn check(&self) -> Result<(), String> {
        check_form(self.expect_hash.as_deref())
    }
}

/// What `write_file` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Written {
    /// The file's path, relative to the workspace.
    path: WorkspacePath,
    /// Whether there was no such file before.
    created: bool,
    /// The BLAKE3 hash of the whole file as it is now, as lower-case hexadecimal.
    hash: String,
    /// What changed, as a unified diff.
    diff: String,
}

/// Writes a file of the workspace as a whole. A file that exists is replaced only if `expect_hash`
/// is the hash that it has, or if `overwrite` is true. Use `edit_file` for small changes. Returns
/// a diff and the new hash.
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
    output = Written,
    wall_ms = 60_000,
    output_bytes = 256 << 10
)]
pub(super) fn write_file(
    args: WriteFile,
    files: Workspace,
    random: Random,
) -> Result<Written, ToolError> {
    let original = replaced(&args, &files)?;
    let created = original.is_none();
    // Before the change, because nothing may fail after it.
    let (hash, diff) = (hash(args.content.as_bytes()), bounded(draft(&args, original.as_ref())));
    put(&args, &files, original, &random).map_err(|err| match err {
        WorkspaceError::Missing { path } => {
            let told = format!("the folder of `{path}` does not exist: say `create_dirs`");
            ToolError::not_done(told).code("not_found")
        }
        err => err.tell(),
    })?;
    Ok(Written { path: args.path, created, hash, diff })
}

/// The file that is to be replaced, if there is one and it may be.
fn replaced(args: &WriteFile, files: &Workspace) -> Result<Option<Original>, ToolError> {
    let WriteFile { path, expect_hash, .. } = args;
    let original = match files.original(path) {
        Ok(original) => original,
        Err(WorkspaceError::Missing { .. }) if expect_hash.is_none() => return Ok(None),
        Err(err @ WorkspaceError::Missing { .. }) => {
            let told = format!("{err}, expected a file of the hash that was given");
            return Err(ToolError::not_done(told).code("precondition_failed"));
        }
        Err(err) => return Err(err.tell()),
    };
    check_hash(path, original.bytes(), expect_hash.as_deref())?;
    if expect_hash.is_none() && args.overwrite != Some(true) {
        let told = format!(
            "`{path}` exists: read it and give its hash as `expect_hash`, or say `overwrite`"
        );
        return Err(ToolError::not_done(told).code("exists"));
    }
    Ok(Some(original))
}

fn put(
    args: &WriteFile,
    files: &Workspace,
    original: Option<Original>,
    random: &Random,
) -> Result<(), WorkspaceError> {
    let (path, bytes) = (&args.path, args.content.as_bytes());
    match (original, path.parent()) {
        (Some(original), _) => original.replace(bytes, random),
        (None, Some(parent)) if args.create_dirs == Some(true) => {
            let folders = files.make_folders(&parent)?;
            files.create(path, bytes, random)?;
            folders.keep()
        }
        (None, _) => files.create(path, bytes, random),
    }
}

fn draft(args: &WriteFile, original: Option<&Original>) -> String {
    diff_of_bytes(&args.path, original.map(Original::bytes), Some(&args.content))
}

/// The change as it would be now, for whoever is asked about it.
async fn would_be(args: WriteFile, files: Workspace) -> Result<String, ToolError> {
    let original = replaced(&args, &files)?;
    Ok(draft(&args, original.as_ref()))
}

/// A folder that is created on the way is part of the path.
fn path_of(args: &WriteFile) -> Footprint {
    args.path.writes()
}
