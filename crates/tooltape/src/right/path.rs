//! Where files are: a path below a root that the host opened, compared component by component.

use std::fmt;
use std::str::FromStr;

use super::error::ScopeError;
use super::word::Word;

/// The most bytes of a path in a right.
pub const RIGHT_PATH_BYTES_MAX: usize = 4096;
/// The most components of a path in a right.
pub const RIGHT_PATH_DEPTH_MAX: usize = 64;

/// A path below some root: it never leaves it, and there is one way to write it.
///
/// ```
/// use tooltape::scope::RelativePath;
///
/// let folder: RelativePath = "src".parse().unwrap();
/// assert!(folder.covers(&"src/main.rs".parse().unwrap()));
/// assert!(!folder.covers(&"src-evil".parse().unwrap()));
/// assert!("src/../..".parse::<RelativePath>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelativePath(
    /// Checked by `from_str`; empty for the root itself.
    Box<str>,
);

impl RelativePath {
    /// The root itself, written `.`.
    pub fn root() -> RelativePath {
        RelativePath("".into())
    }

    /// The components on the way down; none for the root.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|component| !component.is_empty())
    }

    /// Whether `other` is this path, or is below it.
    pub fn covers(&self, other: &RelativePath) -> bool {
        match other.0.strip_prefix(&*self.0) {
            Some(rest) => rest.is_empty() || self.0.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

impl FromStr for RelativePath {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<RelativePath, ScopeError> {
        const PART: &str = "path";
        ScopeError::unless_sized(PART, text, RIGHT_PATH_BYTES_MAX, "a path, or `.` for all")?;
        let plain =
            "no control character, no backslash, and no wildcard: a folder covers all in it";
        ScopeError::unless_all(PART, text, plain, |c| {
            !c.is_control() && !matches!(c, '\\' | '*' | '?')
        })?;
        if text == "." {
            return Ok(RelativePath::root());
        }
        let is_drive = text.as_bytes()[0].is_ascii_alphabetic() && text[1..].starts_with(':');
        if text.starts_with('/') || is_drive {
            return Err(ScopeError::form(PART, text, "a path relative to its root"));
        }
        if text.split('/').any(|component| matches!(component, "" | "." | "..")) {
            return Err(ScopeError::form(PART, text, "components other than ``, `.` and `..`"));
        }
        if text.split('/').any(|component| component.trim() != component) {
            return Err(ScopeError::form(PART, text, "no space around a component"));
        }
        match text.split('/').count() {
            found if found > RIGHT_PATH_DEPTH_MAX => {
                let (unit, most) = ("components", RIGHT_PATH_DEPTH_MAX);
                Err(ScopeError::TooMuch { part: PART, found, unit, most })
            }
            _ => Ok(RelativePath(text.into())),
        }
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// The files at and below a path, under one root.
///
/// Written `path` below the run's workspace, `@root/path` below a root of that name, `.` or
/// `@root/.` for all of it. A folder of the workspace whose name begins with `@` is `./@name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileScope {
    /// The name that the host gave the root; none for the run's workspace.
    pub root: Option<Word>,
    /// The path below it.
    pub path: RelativePath,
}

impl FileScope {
    /// Whether all files of `other` are files of this.
    pub fn covers(&self, other: &FileScope) -> bool {
        self.root == other.root && self.path.covers(&other.path)
    }
}

impl FromStr for FileScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<FileScope, ScopeError> {
        let (root, path) = match text.strip_prefix('@') {
            Some(rest) => {
                let (root, path) = rest.split_once('/').ok_or_else(|| {
                    let expected = "`@root/path`, or `./@name` for a file of that name";
                    ScopeError::form("path", text, expected)
                })?;
                (Some(Word::parse("root", root)?), path)
            }
            None if text.starts_with("./@") => (None, &text[2..]),
            None => (None, text),
        };
        Ok(FileScope { root, path: path.parse()? })
    }
}

impl fmt::Display for FileScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            Some(root) => write!(f, "@{root}/{}", self.path),
            None if self.path.0.starts_with('@') => write!(f, "./{}", self.path),
            None => self.path.fmt(f),
        }
    }
}

/// A program by its absolute path, and by no other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Program(RelativePath);

impl FromStr for Program {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Program, ScopeError> {
        const EXPECTED: &str = "an absolute path such as `/usr/bin/git`";
        match text.strip_prefix('/') {
            Some("" | ".") | None => Err(ScopeError::form("program", text, EXPECTED)),
            Some(path) => path.parse().map(Program),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}
