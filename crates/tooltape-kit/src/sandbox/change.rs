//! What a process would change in a workspace.

use serde::{Deserialize, Serialize};

/// The most paths of a change that are listed.
pub const CHANGES_MAX: usize = 1_000;
/// The most bytes of all new contents together.
pub const CHANGES_BYTES_MAX: usize = 1 << 20;

/// What becomes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// There was nothing.
    Created,
    /// There was something else.
    Changed,
    /// There is nothing any more.
    Deleted,
}

/// One path that a process would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// What becomes of it.
    pub kind: ChangeKind,
    /// What the file would hold; nothing where it is no file, no text, or too much.
    pub text: Option<String>,
}
