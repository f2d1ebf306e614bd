//! Tools for the files of a workspace: look, read, and change.

mod text;
mod list_dir;
mod read_file;
mod nearest;
mod edit_file;

use std::sync::Arc;

use tooltape::Tool;

pub use edit_file::{DIFF_BYTES_MAX, DIFF_LINES_MAX, EDITS_MAX, MATCHES_COUNTED_MAX};
pub use nearest::LINE_SHOWN_BYTES_MAX;
pub use read_file::READ_BYTES_MAX;

/// The tools for the files of a workspace: `list_dir`, `read_file` and `edit_file`.
///
/// Each of them needs a [`Workspace`](crate::Workspace), and reaches no file but through it.
pub fn tools() -> [Arc<dyn Tool>; 3] {
    tooltape::tools![list_dir::list_dir, read_file::read_file, edit_file::edit_file]
}
