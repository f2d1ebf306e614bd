//! A unified diff, read strictly: what it says of each file, or why it says nothing.

mod path;

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::SplitInclusive;

use path::{in_header, named};

use crate::workspace::{WorkspacePath, shown};

/// The most files of one patch. A file that is renamed is two paths, and each is a key.
pub const PATCHED_FILES_MAX: usize = 32;
/// The most places that one patch changes.
pub const HUNKS_MAX: usize = 1_000;

/// The highest number of a line, and the most lines of a hunk: more than any file has.
const LINE_MAX: usize = 1 << 30;
/// The most bytes of a patch's line that a message shows.
const SHOWN_BYTES_MAX: usize = 80;
/// Where a hunk begins.
const HUNK: &str = "@@ ";

/// What a patch says of one file.
#[derive(Debug, Default)]
pub(super) struct FilePatch {
    /// Where it is; nothing, where it is created.
    pub(super) from: Option<WorkspacePath>,
    /// Where it will be; nothing, where it is deleted.
    pub(super) to: Option<WorkspacePath>,
    /// Whether it is to be a program, where that is said.
    pub(super) is_executable: Option<bool>,
    pub(super) hunks: Vec<Hunk>,
}

/// One place of a file that changes.
#[derive(Debug)]
pub(super) struct Hunk {
    /// The line of the patch that begins it.
    pub(super) at: usize,
    /// The line of the file, counted from 1, where it is expected.
    pub(super) line: usize,
    /// The lines that are there, with those around them.
    pub(super) old: String,
    /// The lines to be there.
    pub(super) new: String,
}

impl FilePatch {
    /// The paths that it touches.
    pub(super) fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        let to = self.to.as_ref().filter(|to| self.from.as_ref() != Some(*to));
        self.from.iter().chain(to)
    }
}

/// Reads a patch. Every path in it is touched by one of its parts only.
pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let mut reader = Reader { lines: patch.split_inclusive('\n').peekable(), at: 0, hunks: 0 };
    let mut files = Vec::new();
    while let Some(file) = reader.file()? {
        files.push(file);
        if files.len() > PATCHED_FILES_MAX {
            return Err(format!("found more than {PATCHED_FILES_MAX} files"));
        }
    }
    if files.is_empty() {
        return Err("found no file, expected a unified diff with `---` and `+++` lines".to_owned());
    }
    let mut touched = HashSet::new();
    for path in files.iter().flat_map(FilePatch::paths) {
        if !touched.insert(path.as_str().to_lowercase()) {
            return Err(format!("found `{path}` in two parts, expected one part for each file"));
        }
    }
    Ok(files)
}

struct Reader<'p> {
    lines: Peekable<SplitInclusive<'p, char>>,
    /// The number of the line that was read last.
    at: usize,
    hunks: usize,
}

/// What stands above the hunks of a file.
#[derive(Default)]
struct Header {
    file: FilePatch,
    is_renamed: bool,
    is_new: bool,
    is_deleted: bool,
}

impl<'p> Reader<'p> {
    fn next(&mut self) -> Option<&'p str> {
        self.at += 1;
        self.lines.next()
    }

    fn peek(&mut self) -> Option<&'p str> {
        self.lines.peek().copied()
    }

    fn wrong(&self, found: &str, expected: &str) -> String {
        let found = shown(found.trim_end(), SHOWN_BYTES_MAX);
        format!("line {}: found `{found}`, expected {expected}", self.at)
    }

    /// The next file, after whatever stands before it, such as the message of a commit.
    fn file(&mut self) -> Result<Option<FilePatch>, String> {
        while let Some(line) = self.peek() {
            if line.starts_with(HUNK) {
                self.at += 1;
                return Err(self.wrong(line, "the `---` and `+++` lines of its file before it"));
            }
            if let Some(names) = line.strip_prefix("diff --git ") {
                self.next();
                return self.git_file(names).map(Some);
            }
            if line.starts_with("--- ") {
                let header = self.names(Header::default())?;
                return self.with_hunks(header).map(Some);
            }
            self.next();
        }
        Ok(None)
    }

    /// A file as git describes it.
    fn git_file(&mut self, names: &str) -> Result<FilePatch, String> {
        let mut header = Header::default();
        loop {
            match self.peek() {
                Some(line) if line.starts_with("--- ") => {
                    let header = self.names(header)?;
                    return self.with_hunks(header);
                }
                Some(line) if is_extended(line) => {
                    self.next();
                    self.extended(line, &mut header)?;
                }
                Some(_) | None => return self.without_hunks(names, header),
            }
        }
    }

    /// A line of git's own between the name of a file and its hunks.
    fn extended(&mut self, line: &str, header: &mut Header) -> Result<(), String> {
        let text = line.trim_end_matches(['\r', '\n']);
        let mode = |mode: &str| match mode {
            "100644" => Ok(Some(false)),
            "100755" => Ok(Some(true)),
            _ => Err(self.wrong(line, "a regular file of mode `100644` or `100755`")),
        };
        let path = |path: &str| named(path).map(Some).map_err(|why| self.wrong(line, &why));
        let after = |prefix: &str| text.strip_prefix(prefix);
        if let Some(new) = after("new file mode ") {
            header.is_new = true;
            header.file.is_executable = mode(new)?;
        } else if let Some(new) = after("new mode ") {
            header.file.is_executable = mode(new)?;
        } else if let Some(old) = after("old mode ") {
            mode(old)?;
        } else if let Some(old) = after("deleted file mode ") {
            header.is_deleted = true;
            mode(old)?;
        } else if let Some(from) = after("rename from ") {
            header.is_renamed = true;
            header.file.from = path(from)?;
        } else if let Some(to) = after("rename to ") {
            header.is_renamed = true;
            header.file.to = path(to)?;
        } else if text.starts_with("index ") || text.contains("similarity index ") {
        } else {
            return Err(self.wrong(line, "a change of text: write binary files and copies whole"));
        }
        Ok(())
    }

    /// The `---` and `+++` lines.
    fn names(&mut self, mut header: Header) -> Result<Header, String> {
        let mut name = |prefix: &str| {
            let line = self.next().unwrap_or_default();
            let name = line
                .strip_prefix(prefix)
                .ok_or_else(|| self.wrong(line, &format!("`{}` and a path", prefix.trim_end())))?;
            in_header(name).map_err(|why| self.wrong(line, &why))
        };
        let (from, to) = (name("--- ")?, name("+++ ")?);
        if from.is_none() && to.is_none() {
            return Err(self.wrong("/dev/null", "a path before or after the change"));
        }
        let agrees = match header.is_renamed {
            true => from == header.file.from && to == header.file.to,
            false => from.is_none() || to.is_none() || from == to,
        };
        let is_whole = !(header.is_new && from.is_some() || header.is_deleted && to.is_some());
        if !agrees || !is_whole {
            let found = to.as_ref().or(from.as_ref()).map(ToString::to_string);
            let expected = "the paths that the lines above name; a file is renamed with `rename \
                            from` and `rename to`";
            return Err(self.wrong(&found.unwrap_or_default(), expected));
        }
        (header.file.from, header.file.to) = (from, to);
        Ok(header)
    }

    fn with_hunks(&mut self, header: Header) -> Result<FilePatch, String> {
        let mut file = header.file;
        while let Some(line) = self.peek().filter(|line| line.starts_with(HUNK)) {
            self.next();
            file.hunks.push(self.hunk(line)?);
            self.hunks += 1;
            if self.hunks > HUNKS_MAX {
                return Err(format!("found more than {HUNKS_MAX} hunks"));
            }
        }
        match file.hunks.is_empty() {
            true => Err(self.wrong(self.lines.clone().next().unwrap_or(""), "`@@` and a hunk")),
            false => self.check_ended().map(|()| file),
        }
    }

    /// Checks that no line of a hunk is left which its counts leave out: it would be dropped.
    fn check_ended(&mut self) -> Result<(), String> {
        while self.peek().is_some_and(|line| line.trim_end_matches(['\r', '\n']).is_empty()) {
            self.next();
        }
        let Some(line) = self.peek() else { return Ok(()) };
        // The next file, or the signature of a mail.
        let is_other = line.starts_with("--- ") || line.trim_end() == "--";
        match line.starts_with(['+', '-', ' ', '\\']) && !is_other {
            true => {
                self.at += 1;
                Err(self.wrong(line, "no more lines of the hunk above, as its header says"))
            }
            false => Ok(()),
        }
    }

    /// A file without hunks: renamed, of another mode, or empty.
    fn without_hunks(&self, names: &str, header: Header) -> Result<FilePatch, String> {
        let Header { mut file, is_renamed, is_new, is_deleted } = header;
        if is_renamed && file.from.is_some() && file.to.is_some() {
            return Ok(file);
        }
        let nothing = "a change: hunks, a rename, a new mode, or an empty file that comes or goes";
        if is_renamed || !is_new && !is_deleted && file.is_executable.is_none() {
            return Err(self.wrong(names, nothing));
        }
        let path = path::both(names).ok_or_else(|| self.wrong(names, "`a/PATH b/PATH`"))?;
        file.from = (!is_new).then(|| path.clone());
        file.to = (!is_deleted).then_some(path);
        Ok(file)
    }

    /// The lines of a hunk: as many as its first one says.
    fn hunk(&mut self, first: &str) -> Result<Hunk, String> {
        let at = self.at;
        let expected = format!("`@@ -LINE,COUNT +LINE,COUNT @@`, all at most {LINE_MAX}");
        let ranges = ranges(first).ok_or_else(|| self.wrong(first, &expected))?;
        let Ranges { line, old: mut olds, new: mut news } = ranges;
        let (mut old, mut new) = (String::new(), String::new());
        // Whether the old and the new file ended already.
        let (mut old_ended, mut new_ended) = (false, false);
        while olds > 0 || news > 0 {
            let short = format!("{olds} more old and {news} more new lines, as its header says");
            let line = self.next().unwrap_or_default();
            // An editor may have cut the space of an empty line.
            let (sign, text) = match line.split_at_checked(1) {
                Some((sign @ (" " | "-" | "+"), text)) => (sign, text),
                Some(("\n" | "\r", _)) => (" ", line),
                Some(_) | None => return Err(self.wrong(line, &short)),
            };
            let (in_old, in_new) = (sign != "+", sign != "-");
            if in_old && olds == 0 || in_new && news == 0 {
                return Err(self.wrong(line, &short));
            }
            if in_old && old_ended || in_new && new_ended {
                return Err(self.wrong(line, "nothing behind a line that ends its file"));
            }
            let is_last = self.peek().is_some_and(|line| line.starts_with('\\'));
            if is_last {
                self.next();
            }
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = if is_last { text.strip_suffix('\r').unwrap_or(text) } else { text };
            let end = if is_last { "" } else { "\n" };
            (old_ended, new_ended) =
                (old_ended || is_last && in_old, new_ended || is_last && in_new);
            if in_old {
                olds -= 1;
                old.extend([text, end]);
            }
            if in_new {
                news -= 1;
                new.extend([text, end]);
            }
        }
        Ok(Hunk { at, line, old, new })
    }
}

/// What the first line of a hunk says.
struct Ranges {
    line: usize,
    old: usize,
    new: usize,
}

fn ranges(first: &str) -> Option<Ranges> {
    let (ranges, _) = first.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (line, count) = text.split_once(',').unwrap_or((text, "1"));
        let number = |text: &str| text.parse().ok().filter(|number| *number <= LINE_MAX);
        Some((number(line)?, number(count)?))
    };
    let ((line, old), (_, new)): ((usize, usize), (usize, usize)) = (range(old)?, range(new)?);
    Some(Ranges { line, old, new })
}

/// Whether git puts such a line between the name of a file and its hunks.
fn is_extended(line: &str) -> bool {
    let starts = [
        "old mode ",
        "new mode ",
        "deleted file mode ",
        "new file mode ",
        "copy from ",
        "copy to ",
        "rename from ",
        "rename to ",
        "similarity index ",
        "dissimilarity index ",
        "index ",
        "GIT binary patch",
        "Binary files ",
    ];
    starts.iter().any(|start| line.starts_with(start))
}
