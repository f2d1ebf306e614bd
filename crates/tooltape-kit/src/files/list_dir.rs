//! `list_dir`: what a directory holds.

use tooltape::{Footprint, ToolError, input, tool};

use crate::workspace::{Listing, Workspace, WorkspaceError, WorkspacePath};

// A doc comment here would reach the model, which reads the tool's already.
#[input]
pub(super) struct ListDir {
    /// The directory, relative to the workspace. The workspace itself where none is given.
    path: Option<WorkspacePath>,
}

/// Lists the entries of a directory of the workspace, sorted by name: the name, the kind (`file`,
/// `dir`, `symlink` or `other`) and the size of files in bytes. `truncated` says that there are
/// more entries than are listed.
#[tool(
    Read,
    filesystem,
    blocking,
    version = "0.1.0",
    needs("fs:read:{path}"),
    touches = path_of,
    output = Listing,
    wall_ms = 30_000,
    output_bytes = 2 << 20
)]
pub(super) fn list_dir(args: ListDir, files: Workspace) -> Result<Listing, ToolError> {
    let path = args.path.unwrap_or_else(WorkspacePath::root);
    files.list(&path).map_err(WorkspaceError::tell)
}

fn path_of(args: &ListDir) -> Footprint {
    args.path.as_ref().unwrap_or(&WorkspacePath::root()).reads()
}
