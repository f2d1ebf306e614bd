//! What a change of a file looks like: a unified diff.

use similar::TextDiff;

use super::text::{Newline, Text};
use crate::workspace::WorkspacePath;

/// The most bytes of a diff that are returned.
pub const DIFF_BYTES_MAX: usize = 32 << 10;
/// The most lines of a file whose diff is made.
pub const DIFF_LINES_MAX: usize = 500_000;

/// The lines around a change that its diff shows.
const DIFF_CONTEXT_LINES: usize = 3;
/// What a diff calls a file that is not there.
const NOWHERE: &str = "/dev/null";

/// A file before or after a change: where it is and what it holds, if it is there.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) path: &'a WorkspacePath,
    pub(super) text: &'a str,
}

/// A unified diff, unless the file has too many lines.
pub(super) fn diff(before: Option<Side<'_>>, after: Option<Side<'_>>) -> String {
    let text = |side: Option<Side<'_>>| side.map_or(String::new(), |side| side.text.to_owned());
    let (old, new) = (text(before), text(after));
    let lines = old.lines().count().max(new.lines().count());
    if lines > DIFF_LINES_MAX {
        return format!("\\ not shown: {lines} lines, expected at most {DIFF_LINES_MAX}\n");
    }
    let name = |prefix: &str, side: Option<Side<'_>>| {
        side.map_or(NOWHERE.to_owned(), |side| format!("{prefix}/{}", side.path))
    };
    let (before, after) = (name("a", before), name("b", after));
    let diff = TextDiff::from_lines(&old, &new);
    let unified = diff.unified_diff().context_radius(DIFF_CONTEXT_LINES).to_string();
    // A file that is created or removed empty, or only moved, has no lines to show.
    format!("--- {before}\n+++ {after}\n{unified}")
}

/// The diff of bytes that may be no text.
pub(super) fn diff_of_bytes(path: &WorkspacePath, old: Option<&[u8]>, new: Option<&str>) -> String {
    let old = old.map(|old| Text::of(path, old));
    match &old {
        Some(Err(_)) => "\\ not shown: the file was not text\n".to_owned(),
        Some(Ok(before)) => {
            let Some(new) = new else { return diff(Some(Side { path, text: &before.text }), None) };
            let after = Text::from(new);
            match before.newline == after.newline {
                true => diff_of_texts(path, &before.text, &after.text),
                false => reended(path, before, &after),
            }
        }
        None => diff(None, new.map(|text| Side { path, text })),
    }
}

fn diff_of_texts(path: &WorkspacePath, old: &str, new: &str) -> String {
    diff(Some(Side { path, text: old }), Some(Side { path, text: new }))
}

/// The diff of a file whose lines end otherwise afterwards, which no line of it would show.
fn reended(path: &WorkspacePath, before: &Text, after: &Text) -> String {
    let (old, new) = (before.newline, after.newline);
    let (stored_old, stored_new) = (old.stored(&before.text), new.stored(&after.text));
    match old == Newline::Mixed || new == Newline::Mixed {
        true => diff_of_texts(path, &stored_old, &stored_new),
        false => {
            let diff = diff_of_texts(path, &before.text, &after.text);
            format!("{diff}\\ line ends: {} → {}\n", old.name(), new.name())
        }
    }
}

/// As much of a diff as is returned. Its last line says what is left out, where something is.
pub(super) fn bounded(diff: String) -> String {
    if diff.len() <= DIFF_BYTES_MAX {
        return diff;
    }
    let cut = &diff[..diff.floor_char_boundary(DIFF_BYTES_MAX)];
    let cut = &cut[..cut.rfind('\n').map_or(0, |at| at + 1)];
    format!("{cut}\\ cut here: {} of {} bytes\n", cut.len(), diff.len())
}
