//! What a command would change, as a list and as a patch.

use std::fmt::Write as _;

use serde::Serialize;
use similar::TextDiff;
use tooltape::schemars::JsonSchema;

use crate::sandbox::{ChangeKind, FileChange};
use crate::workspace::{Workspace, WorkspacePath, protected};

/// The most bytes of a patch that are returned.
pub const PATCH_BYTES_MAX: usize = 128 << 10;

/// What a command would change.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Preview {
    /// Each path that would change.
    changes: Vec<Change>,
    /// The changes of text files as a unified diff, for `apply_patch`.
    patch: String,
    /// The paths that `patch` changes, for `apply_patch`.
    paths: Vec<String>,
    /// Whether something is left out of the list or of the diff.
    truncated: bool,
}

/// One path that would change.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
struct Change {
    /// The path, relative to the workspace.
    path: String,
    /// `created`, `changed` or `deleted`.
    kind: &'static str,
    /// Whether the name is protected: no tool would make this change.
    protected: bool,
}

/// Compares what was changed with what is there.
pub(super) fn preview(files: &Workspace, changes: &[FileChange], is_whole: bool) -> Preview {
    let (mut patch, mut paths, mut truncated) = (String::new(), Vec::new(), !is_whole);
    for change in changes.iter().filter(|change| !is_protected(&change.path)) {
        let before = change.path.parse::<WorkspacePath>().ok();
        let before = before.and_then(|path| files.read(&path).ok());
        let before = before.map(String::from_utf8);
        let (old, new) = match (change.kind, &before, &change.text) {
            (ChangeKind::Created, _, Some(text)) => ("", text.as_str()),
            (ChangeKind::Changed, Some(Ok(old)), Some(new)) => (old.as_str(), new.as_str()),
            (ChangeKind::Deleted, Some(Ok(old)), _) => (old.as_str(), ""),
            _ => continue,
        };
        let diff = unified(change, old, new);
        match patch.len() + diff.len() {
            0..=PATCH_BYTES_MAX => {
                patch.push_str(&diff);
                paths.push(change.path.clone());
            }
            _ => truncated = true,
        }
    }
    let listed = |FileChange { path, kind, .. }: &FileChange| {
        let kind = match kind {
            ChangeKind::Created => "created",
            ChangeKind::Changed => "changed",
            ChangeKind::Deleted => "deleted",
        };
        Change { path: path.clone(), kind, protected: is_protected(path) }
    };
    Preview { changes: changes.iter().map(listed).collect(), patch, paths, truncated }
}

fn is_protected(path: &str) -> bool {
    path.split('/').any(|name| protected(name).is_some())
}

fn unified(change: &FileChange, old: &str, new: &str) -> String {
    let FileChange { path, kind, .. } = change;
    let (mut before, mut after) = (format!("a/{path}"), format!("b/{path}"));
    match kind {
        ChangeKind::Created => before = "/dev/null".to_owned(),
        ChangeKind::Deleted => after = "/dev/null".to_owned(),
        ChangeKind::Changed => {}
    }
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = write!(text, "{}", diff.unified_diff().header(&before, &after));
    text
}
