//! Why a workspace refused.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use tooltape::{Refusal, ToolError};

use super::{ENTRIES_SCANNED_MAX, EntryKind, FILE_BYTES_MAX, WorkspacePath, system};

/// Why a workspace refused. Nothing was changed, except where [`WorkspaceError::Unsynced`] or
/// [`WorkspaceError::Torn`] says so.
///
/// Return [`WorkspaceError::tell`] from a tool: a plain `?` would hide the reason from the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The workspace's folder could not be opened.
    #[error("the workspace `{}` could not be opened: {}", .folder.display(), .source.kind())]
    Root {
        /// The folder, as the host named it.
        folder: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The path leads outside, through a symbolic link.
    #[error("`{path}` leads outside the workspace")]
    Outside {
        /// The path.
        path: WorkspacePath,
    },
    /// There is nothing there.
    #[error("`{path}` does not exist")]
    Missing {
        /// The path.
        path: WorkspacePath,
    },
    /// Something else is there.
    #[error("`{path}` is {found}, expected {expected}")]
    Kind {
        /// The path.
        path: WorkspacePath,
        /// What is there.
        found: EntryKind,
        /// What was expected.
        expected: EntryKind,
    },
    /// A name on the way down is not a directory.
    #[error("`{path}` goes through what is not a directory")]
    Through {
        /// The path.
        path: WorkspacePath,
    },
    /// A symbolic link on the way goes in circles or is of a kind that is never followed.
    #[error("`{path}` goes through a symbolic link that cannot be followed")]
    Link {
        /// The path.
        path: WorkspacePath,
    },
    /// The path is or goes through a symbolic link, which a call never follows.
    #[error("`{path}` is or goes through a symbolic link{}, expected the path of the file itself",
            leads(.to))]
    ThroughLink {
        /// The path.
        path: WorkspacePath,
        /// Where it leads, if that is known and inside.
        to: Option<WorkspacePath>,
    },
    /// Something is there already.
    #[error("`{path}` is {found} already, expected nothing there")]
    Exists {
        /// The path.
        path: WorkspacePath,
        /// What is there.
        found: EntryKind,
    },
    /// The directory has something in it.
    #[error("`{path}` is a directory that is not empty, expected a file or an empty directory")]
    NotEmpty {
        /// The path.
        path: WorkspacePath,
    },
    /// The operating system does not permit it.
    #[error("the operating system denies access to `{path}`")]
    Denied {
        /// The path.
        path: WorkspacePath,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file may not be written by anybody.
    #[error("`{path}` is read-only, expected a file that its owner may write")]
    ReadOnly {
        /// The path.
        path: WorkspacePath,
    },
    /// The name belongs to the people and programs around the workspace, and is never written.
    #[error("`{path}` is protected: tools never write `{name}`")]
    Protected {
        /// The path.
        path: WorkspacePath,
        /// The protected name.
        name: &'static str,
    },
    /// The path is in a repository of git that is not called `.git`.
    #[error("`{path}` is protected: tools never write in a git repository, as `{head}` makes it")]
    Repository {
        /// The path.
        path: WorkspacePath,
        /// The file that makes its folder one.
        head: WorkspacePath,
    },
    /// Both paths are names of one file.
    #[error("`{path}` and `{other}` are two names of one file, expected two files")]
    SameFile {
        /// The path.
        path: WorkspacePath,
        /// The other one.
        other: WorkspacePath,
    },
    /// The file is larger than [`FILE_BYTES_MAX`], or would be.
    #[error("`{path}` is too large: {bytes} bytes or more, expected at most {FILE_BYTES_MAX}")]
    TooLarge {
        /// The path.
        path: WorkspacePath,
        /// As much of its size as is known.
        bytes: u64,
    },
    /// The directory has more than [`ENTRIES_SCANNED_MAX`] entries.
    #[error(
        "`{path}` has more entries than {ENTRIES_SCANNED_MAX}, which is the most that are read"
    )]
    TooManyEntries {
        /// The path.
        path: WorkspacePath,
    },
    /// The file changed between reading and replacing it.
    #[error("`{path}` was changed by somebody else meanwhile, expected it as it was read")]
    Changed {
        /// The path.
        path: WorkspacePath,
    },
    /// The run of the call may not do it, or may not any more.
    #[error("`{path}` may not be used: {refusal}")]
    Withheld {
        /// The path.
        path: WorkspacePath,
        /// Who withholds what.
        refusal: Box<Refusal>,
    },
    /// What the file would hold has a label, and that could not be kept.
    #[error("`{path}` was not changed, since its label cannot be kept: {source}")]
    Unlabelled {
        /// The path.
        path: WorkspacePath,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file was replaced, but may not survive a power cut.
    #[error("`{path}` was replaced, but the disk did not confirm it: {source}")]
    Unsynced {
        /// The path.
        path: WorkspacePath,
        /// What the operating system said.
        source: io::Error,
    },
    /// Some of several changes were made, and could not be taken back.
    #[error(
        "{cause}, and these changes could not be taken back: {}: {source}; read the files to see \
         what they hold", left_behind(.left)
    )]
    Torn {
        /// Why not all of them were made.
        cause: String,
        /// The files that are changed, each with the one that holds what it held before.
        left: Vec<(WorkspacePath, Option<WorkspacePath>)>,
        /// What the operating system said.
        source: io::Error,
    },
    /// Anything else that the operating system said.
    #[error("`{path}` could not be used: {source}")]
    Io {
        /// The path.
        path: WorkspacePath,
        /// What the operating system said.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            WorkspaceError::Root { .. } => "workspace_unavailable",
            WorkspaceError::Outside { .. } => "outside_root",
            WorkspaceError::Missing { .. } => "not_found",
            WorkspaceError::Kind { expected: EntryKind::Dir, .. } => "not_a_directory",
            WorkspaceError::Kind { .. } => "not_a_file",
            WorkspaceError::Through { .. } => "not_a_directory",
            WorkspaceError::Link { .. } | WorkspaceError::ThroughLink { .. } => "symlink",
            WorkspaceError::Exists { .. } => "exists",
            WorkspaceError::NotEmpty { .. } => "not_empty",
            WorkspaceError::Denied { .. } => "permission_denied",
            WorkspaceError::ReadOnly { .. } => "read_only",
            WorkspaceError::Protected { .. } | WorkspaceError::Repository { .. } => "protected",
            WorkspaceError::SameFile { .. } => "same_file",
            WorkspaceError::TooLarge { .. } => "too_large",
            WorkspaceError::TooManyEntries { .. } => "too_many_entries",
            WorkspaceError::Withheld { .. } => "withheld",
            WorkspaceError::Unlabelled { .. } => "unlabelled",
            WorkspaceError::Changed { .. } => "precondition_failed",
            WorkspaceError::Unsynced { .. } => "not_durable",
            WorkspaceError::Torn { .. } => "in_doubt",
            WorkspaceError::Io { source, .. } if is_full(source) => "disk_full",
            WorkspaceError::Io { .. } => "io",
        }
    }

    /// The same refusal as a tool returns it: the model reads why, and whether anything was done.
    pub fn tell(self) -> ToolError {
        let (told, code) = (self.to_string(), self.code());
        match self {
            WorkspaceError::Unsynced { .. } => ToolError::tell(told).code(code),
            WorkspaceError::Torn { .. } => ToolError::in_doubt(told).code(code),
            WorkspaceError::Root { source, .. } | WorkspaceError::Denied { source, .. } => {
                ToolError::not_done(told).code(code).because(source)
            }
            WorkspaceError::Outside { .. }
            | WorkspaceError::Missing { .. }
            | WorkspaceError::Kind { .. }
            | WorkspaceError::Through { .. }
            | WorkspaceError::Link { .. }
            | WorkspaceError::ThroughLink { .. }
            | WorkspaceError::Exists { .. }
            | WorkspaceError::NotEmpty { .. }
            | WorkspaceError::ReadOnly { .. }
            | WorkspaceError::Protected { .. }
            | WorkspaceError::Repository { .. }
            | WorkspaceError::SameFile { .. }
            | WorkspaceError::TooLarge { .. }
            | WorkspaceError::TooManyEntries { .. }
            | WorkspaceError::Withheld { .. }
            | WorkspaceError::Unlabelled { .. }
            | WorkspaceError::Changed { .. }
            | WorkspaceError::Io { .. } => ToolError::not_done(told).code(code),
        }
    }

    /// What the operating system's refusal means for a path.
    pub(super) fn from_io(path: &WorkspacePath, source: io::Error) -> WorkspaceError {
        let path = path.clone();
        match source.kind() {
            ErrorKind::NotFound => WorkspaceError::Missing { path },
            ErrorKind::NotADirectory => WorkspaceError::Through { path },
            // A way out is refused by `cap-std` itself, so no system call failed.
            ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
                WorkspaceError::Outside { path }
            }
            ErrorKind::PermissionDenied => WorkspaceError::Denied { path, source },
            ErrorKind::DirectoryNotEmpty => WorkspaceError::NotEmpty { path },
            _ if system::is_link_refusal(&source) => WorkspaceError::Link { path },
            _ => WorkspaceError::Io { path, source },
        }
    }
}

/// Whether there is no room for more.
fn is_full(source: &io::Error) -> bool {
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// What is changed, and where its old content is, in words.
fn left_behind(left: &[(WorkspacePath, Option<WorkspacePath>)]) -> String {
    let file = |(path, old): &(WorkspacePath, Option<WorkspacePath>)| match old {
        None => format!("`{path}`, which is new"),
        Some(old) => format!("`{path}`, whose old content is in `{old}`"),
    };
    left.iter().map(file).collect::<Vec<_>>().join("; ")
}

/// Where a link leads, in words.
fn leads(to: &Option<WorkspacePath>) -> String {
    to.as_ref().map(|to| format!(" to `{to}`")).unwrap_or_default()
}
