//! Where the hunks of a patch fit into a file: exactly, and in one place.

use tooltape::ToolError;

use super::super::nearest::nearest;
use super::super::patch::{FilePatch, Hunk};
use super::super::text::{Newline, Text};
use crate::workspace::{FILE_BYTES_MAX, WorkspaceError, WorkspacePath};

/// What a file holds once its patch is applied; empty, if that deletes it.
pub(super) fn patched(patch: &FilePatch, text: Option<&Text>) -> Result<String, ToolError> {
    let path = patch.from.as_ref().or(patch.to.as_ref());
    let path = path.cloned().unwrap_or_else(WorkspacePath::root);
    let (newline, text) =
        text.map_or((Newline::Mixed, ""), |text| (text.newline, text.text.as_str()));
    let mut fitting = Fitting { path: &path, newline, text, cursor: 0, moved: 0 };
    let mut patched = String::with_capacity(text.len());
    for hunk in &patch.hunks {
        let (kept, new) = fitting.fit(hunk)?;
        patched.push_str(kept);
        patched.push_str(&new);
        if patched.len() as u64 > FILE_BYTES_MAX {
            let bytes = patched.len() as u64;
            return Err(WorkspaceError::TooLarge { path, bytes }.tell());
        }
    }
    patched.push_str(&text[fitting.cursor..]);
    match patch.to.is_none() && !patched.is_empty() {
        true => {
            let lines = patched.lines().count();
            let told = format!(
                "the patch deletes `{path}` but leaves {lines} of its lines, expected it to remove \
                 all"
            );
            Err(ToolError::not_done(told).code("no_match"))
        }
        false => Ok(patched),
    }
}

struct Fitting<'t> {
    path: &'t WorkspacePath,
    newline: Newline,
    text: &'t str,
    /// How much of the text is behind us.
    cursor: usize,
    /// How many lines further down the last hunk was than it said.
    moved: isize,
}

impl<'t> Fitting<'t> {
    /// What is kept before a hunk, and what the hunk puts behind that.
    fn fit(&mut self, hunk: &Hunk) -> Result<(&'t str, String), ToolError> {
        let (old, new) = (self.newline.shown(&hunk.old), self.newline.shown(&hunk.new));
        let from = match old.is_empty() {
            // Nothing says where it belongs, unless nothing is there.
            true if self.text.is_empty() => 0,
            true => return Err(self.refused(hunk, "blind", NO_CONTEXT.to_owned())),
            false => self.place(hunk, &old)?,
        };
        let kept = &self.text[self.cursor..from];
        self.moved = (self.line_of(from) + 1).cast_signed() - hunk.line.cast_signed();
        self.cursor = from + old.len();
        // What follows would go on in the same line.
        if !new.is_empty() && !new.ends_with('\n') && self.cursor < self.text.len() {
            return Err(self.refused(hunk, "no_match", NO_END.to_owned()));
        }
        Ok((kept, new.into_owned()))
    }

    /// Where the old lines begin: where they are said to be, or in the only place where they are.
    fn place(&self, hunk: &Hunk, old: &str) -> Result<usize, ToolError> {
        let line = hunk.line.saturating_sub(1).saturating_add_signed(self.moved);
        let said =
            self.start_of(line).filter(|from| *from >= self.cursor && self.is_at(*from, old));
        if let Some(from) = said {
            return Ok(from);
        }
        let (first, second) = self.matches(old);
        match (first, second) {
            (Some(from), None) => Ok(from),
            (Some(first), Some(second)) => {
                let lines = [first, second].map(|from| self.line_of(from) + 1);
                let told = format!(
                    "its old lines are not at line {}, and at more than one other place, such as \
                     lines {} and {}: add lines around it",
                    hunk.line, lines[0], lines[1]
                );
                Err(self.refused(hunk, "many_matches", told))
            }
            (None, _) => {
                let hint = nearest(&self.text[self.cursor..], old);
                let hint = hint.filter(|_| self.cursor == 0);
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                let told = format!("its old lines are nowhere in the file{hint}");
                Err(self.refused(hunk, "no_match", told))
            }
        }
    }

    /// The first two places where these lines are. A text is searched as a whole, in linear time.
    fn matches(&self, old: &str) -> (Option<usize>, Option<usize>) {
        let at_cursor = self.is_at(self.cursor, old).then_some(self.cursor);
        let lines = format!("\n{old}");
        let mut from = self.cursor;
        let mut below = std::iter::from_fn(|| {
            let found = from + self.text[from..].find(&lines)?;
            from = found + 1;
            Some(found + 1)
        })
        .filter(|from| self.is_at(*from, old));
        let mut places = at_cursor.into_iter().chain(below.by_ref().take(2));
        (places.next(), places.next())
    }

    /// Whether these lines are here: to their end, and if they have none, to the end of the file.
    fn is_at(&self, from: usize, old: &str) -> bool {
        let starts = from == 0 || self.text.as_bytes().get(from - 1) == Some(&b'\n');
        let rest = self.text.get(from..).unwrap_or_default();
        starts && rest.starts_with(old) && (old.ends_with('\n') || rest.len() == old.len())
    }

    /// How many lines are before a place.
    fn line_of(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count()
    }

    /// Where a line begins, counted from 0.
    fn start_of(&self, line: usize) -> Option<usize> {
        match line.checked_sub(1) {
            None => Some(0),
            Some(before) => self.text.match_indices('\n').nth(before).map(|(end, _)| end + 1),
        }
    }

    fn refused(&self, hunk: &Hunk, code: &'static str, why: String) -> ToolError {
        let told = format!("/patch: the hunk at line {} for `{}`: {why}", hunk.at, self.path);
        ToolError::not_done(told).code(code)
    }
}

/// Why a hunk that ends the file is refused before its end.
const NO_END: &str = "its last new line has no line end, expected that only at the file's end";
/// Why a hunk that only adds is refused.
const NO_CONTEXT: &str = "it has no line of the file in it, expected some around the change";
