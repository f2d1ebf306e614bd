//! A path as a model may write it: relative, downwards, and one spelling for each place.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tooltape::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 4_096;
/// The longest part of a path between two slashes, in bytes.
pub const COMPONENT_BYTES_MAX: usize = 255;
/// The most bytes of a path that a message shows.
pub const PATH_SHOWN_BYTES_MAX: usize = 256;

/// A path inside a workspace, relative to its root; `.` is the root itself.
///
/// It only goes down: no `..`, no leading `/`, a name between any two slashes, and nothing in it is
/// expanded. As a field of a tool's input it is checked while the call is resolved, before
/// anybody is asked about the call.
///
/// ```
/// use tooltape_kit::WorkspacePath;
///
/// let path: WorkspacePath = "./src/main.rs".parse().unwrap();
/// assert_eq!(path.as_str(), "src/main.rs");
/// assert!("../main.rs".parse::<WorkspacePath>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct WorkspacePath(String);

/// Why a text is not a path inside a workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// There is nothing.
    #[error("found an empty path, expected one such as `src/main.rs`; `.` is the workspace")]
    Empty,
    /// It is longer than [`PATH_BYTES_MAX`].
    #[error("found a path of {bytes} bytes, expected at most {PATH_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It has a part longer than [`COMPONENT_BYTES_MAX`].
    #[error("found `{component}…` of {bytes} bytes, expected at most {COMPONENT_BYTES_MAX}")]
    ComponentTooLong {
        /// How the part begins.
        component: String,
        /// The part's length.
        bytes: usize,
    },
    /// It starts at the root of the machine.
    #[error("`{path}` is absolute, expected a path relative to the workspace")]
    Absolute {
        /// The path.
        path: String,
    },
    /// It goes up.
    #[error("`{path}` holds `..`, expected a path that only goes down from the workspace")]
    Upwards {
        /// The path.
        path: String,
    },
    /// It has a part that is empty, or a `.` behind a name.
    #[error("`{path}` has a part that names nothing, expected names with one `/` between them")]
    Nameless {
        /// The path.
        path: String,
    },
    /// It holds a NUL character.
    #[error("`{path}` holds a NUL character, which no path can")]
    Nul {
        /// The path.
        path: String,
    },
}

impl WorkspacePath {
    /// The workspace itself.
    pub fn root() -> WorkspacePath {
        WorkspacePath(".".to_owned())
    }

    /// The path, in its one spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder that it is in; nothing for the workspace itself.
    pub(crate) fn parent(&self) -> Option<WorkspacePath> {
        match self.0.rsplit_once('/') {
            Some((parent, _)) => Some(WorkspacePath(parent.to_owned())),
            None => (self.0 != ".").then(WorkspacePath::root),
        }
    }

    /// A name in the folder at this path, if that is still a path.
    pub(super) fn joined(&self, name: &str) -> Option<WorkspacePath> {
        format!("{}/{name}", self.0).parse().ok()
    }

    /// Everything on the way down to it and the path itself, but not the workspace.
    pub(super) fn ancestors(&self) -> Vec<WorkspacePath> {
        let ends = self.0.match_indices('/').map(|(end, _)| end).chain([self.0.len()]);
        let ancestors = ends.map(|end| WorkspacePath(self.0[..end].to_owned()));
        ancestors.filter(|path| path.0 != ".").collect()
    }

    /// The names on the way down; none for the workspace itself.
    pub(super) fn components(&self) -> Vec<&str> {
        self.0.split('/').filter(|component| *component != ".").collect()
    }
}

impl FromStr for WorkspacePath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<WorkspacePath, PathError> {
        let path = || shown(text, PATH_SHOWN_BYTES_MAX);
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong { bytes: text.len() });
        }
        if text.contains('\0') {
            return Err(PathError::Nul { path: path() });
        }
        if text.starts_with('/') {
            return Err(PathError::Absolute { path: path() });
        }
        let mut names = Vec::new();
        for component in text.split('/') {
            match component {
                ".." => return Err(PathError::Upwards { path: path() }),
                "." if names.is_empty() => {}
                "" | "." => return Err(PathError::Nameless { path: path() }),
                _ if component.len() > COMPONENT_BYTES_MAX => {
                    let bytes = component.len();
                    let component = component[..component.floor_char_boundary(32)].to_owned();
                    return Err(PathError::ComponentTooLong { component, bytes });
                }
                _ => names.push(component),
            }
        }
        match names.is_empty() {
            true => Ok(WorkspacePath::root()),
            false => Ok(WorkspacePath(names.join("/"))),
        }
    }
}

impl TryFrom<String> for WorkspacePath {
    type Error = PathError;

    fn try_from(text: String) -> Result<WorkspacePath, PathError> {
        text.parse()
    }
}

/// The path as messages show it: cut at [`PATH_SHOWN_BYTES_MAX`], control characters escaped.
impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0, PATH_SHOWN_BYTES_MAX))
    }
}

impl JsonSchema for WorkspacePath {
    fn schema_name() -> Cow<'static, str> {
        "WorkspacePath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// A text as messages show it: at most `bytes` of it, control characters escaped.
pub(crate) fn shown(text: &str, bytes: usize) -> String {
    let cut = &text[..text.floor_char_boundary(bytes)];
    let mut shown: String = cut
        .chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            escaped.into_iter().flatten().chain((!c.is_control()).then_some(c))
        })
        .collect();
    if cut.len() < text.len() {
        shown.push('…');
    }
    shown
}
