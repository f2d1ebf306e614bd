//! Tools for the files of a workspace: look, read, and change.

mod kind;
mod text;
mod diff;
mod expected;
mod list_dir;
mod read_file;
mod write_file;
mod nearest;
mod edit_file;
mod sight;
mod glob;
mod grep;
mod patch;
mod apply_patch;
mod move_file;
mod delete_file;

use std::sync::Arc;

use tooltape::Tool;

pub use diff::{DIFF_BYTES_MAX, DIFF_LINES_MAX};
pub use edit_file::{EDITS_MAX, MATCHES_COUNTED_MAX};
pub use glob::{GLOB_FILES_DEFAULT, GLOB_FILES_MAX, GLOB_PATHS_BYTES_MAX};
pub use grep::{
    GREP_BYTES_MAX, GREP_CONTEXT_MAX, GREP_HEAP_BYTES_MAX, GREP_LINE_BYTES_MAX,
    GREP_MATCHES_DEFAULT, GREP_MATCHES_MAX, GREP_PATTERN_BYTES_MAX, GREP_REGEX_BYTES_MAX,
    GREP_THREADS_MAX,
};
pub use list_dir::LIST_DEPTH_MAX;
pub use nearest::LINE_SHOWN_BYTES_MAX;
pub use patch::{HUNKS_MAX, PATCHED_FILES_MAX};
pub use read_file::{READ_BYTES_MAX, READ_IMAGE_BYTES_MAX};
pub use sight::GLOB_BYTES_MAX;

/// The tools for the files of a workspace: `list_dir`, `read_file`, `glob`, `grep`, `write_file`,
/// `edit_file`, `apply_patch`, `move_file` and `delete_file`.
///
/// Each of them needs a [`Workspace`](crate::Workspace), and reaches no file but through it.
pub fn tools() -> [Arc<dyn Tool>; 9] {
    tooltape::tools![
        list_dir::list_dir,
        read_file::read_file,
        glob::glob,
        grep::grep,
        write_file::write_file,
        edit_file::edit_file,
        apply_patch::apply_patch,
        move_file::move_file,
        delete_file::delete_file,
    ]
}
