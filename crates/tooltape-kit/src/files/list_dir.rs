//! `list_dir`: what a directory holds.

use tooltape::{Cancel, Clock, Footprint, ToolError, input, tool};

use crate::workspace::{
    ENTRIES_MAX, Entry, Listing, Patience, Sight, Workspace, WorkspaceError, WorkspacePath,
};

/// The most levels of directories that one call lists.
pub const LIST_DEPTH_MAX: usize = 8;

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct ListDir {
    /// The directory, relative to the workspace. The workspace itself where none is given.
    path: Option<WorkspacePath>,
    /// How many levels to list, 1 to 8: with 2, also what the directories in it hold.
    depth: Option<usize>,
}

impl ListDir {
    fn check(&self) -> Result<(), String> {
        match self.depth {
            None | Some(1..=LIST_DEPTH_MAX) => Ok(()),
            Some(depth) => Err(format!("/depth: found {depth}, expected 1 to {LIST_DEPTH_MAX}")),
        }
    }
}

/// Lists the entries of a directory of the workspace, sorted by name: the name, the kind (`file`,
/// `dir`, `symlink` or `other`) and the size of files in bytes. With `depth` also the entries
/// below, by their paths from there. `truncated` says that there are more than are listed.
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
pub(super) fn list_dir(
    args: ListDir,
    files: Workspace,
    clock: Clock,
    cancel: Cancel,
) -> Result<Listing, ToolError> {
    let path = args.path.unwrap_or_else(WorkspacePath::root);
    let listing = files.list(&path).map_err(WorkspaceError::tell)?;
    match args.depth {
        None | Some(1) => Ok(listing),
        Some(depth) => {
            let patience = Patience::new(clock, cancel.clone());
            let listing = deep(listing, depth, &files, patience).map_err(WorkspaceError::tell)?;
            if cancel.is_requested() {
                return Err(ToolError::cancelled());
            }
            Ok(listing)
        }
    }
}

/// The same listing, with all that is below.
fn deep(
    listing: Listing,
    depth: usize,
    files: &Workspace,
    patience: Patience,
) -> Result<Listing, WorkspaceError> {
    let sight = Sight::all(depth);
    let mut walk = files.walk(&listing.path, sight, patience)?;
    let (mut entries, mut total) = (Vec::new(), 0);
    for found in walk.by_ref() {
        total += 1;
        if entries.len() < ENTRIES_MAX {
            files.saw_names([found.shown().as_str()].into_iter());
            let (name, kind, size) = (found.below(&listing.path), found.kind, found.size());
            entries.push(Entry { name, kind, size });
        }
    }
    if let Some(refusal) = walk.refusal.take() {
        return Err(refusal);
    }
    let truncated = total > entries.len() as u64 || walk.cut.is_some();
    Ok(Listing { path: listing.path, entries, total, truncated })
}

fn path_of(args: &ListDir) -> Footprint {
    args.path.as_ref().unwrap_or(&WorkspacePath::root()).reads()
}
