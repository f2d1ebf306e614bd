//! A folder that tools may use, held as an open handle.

#[cfg(not(unix))]
mod elsewhere;
mod error;
mod footprint;
mod list;
mod original;
mod path;
mod permit;
mod protected;
mod seen;
#[cfg(unix)]
mod unix;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata};
use permit::Links;
use seen::Seen;
use tooltape::{CallContext, Grant, Rights};

#[cfg(not(unix))]
use elsewhere as system;
#[cfg(unix)]
use unix as system;

pub use error::WorkspaceError;
pub use list::{ENTRIES_MAX, ENTRIES_SCANNED_MAX, Entry, EntryKind, Listing};
pub use original::Original;
pub(crate) use path::shown;
pub use path::{
    COMPONENT_BYTES_MAX, PATH_BYTES_MAX, PATH_SHOWN_BYTES_MAX, PathError, WorkspacePath,
};

/// The largest file that is read or written, in bytes.
pub const FILE_BYTES_MAX: u64 = 8 << 20;

/// A folder that tools may use, and the only way to files that they have.
///
/// It is an open directory handle: every path is resolved from it by the operating system, so
/// neither `..` nor a symbolic link nor a folder that is exchanged meanwhile leads out of it.
/// Cloning is cheap, and a clone is the same folder, wherever it is moved to.
///
/// ```
/// use tooltape_kit::{Workspace, WorkspacePath};
///
/// let folder = tempfile::tempdir().unwrap();
/// std::fs::write(folder.path().join("a.txt"), "one").unwrap();
/// std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
///
/// let files = Workspace::open(folder.path()).unwrap();
/// assert_eq!(files.read(&"a.txt".parse().unwrap()).unwrap(), b"one");
///
/// let outside: WorkspacePath = "etc/passwd".parse().unwrap();
/// let refusal = files.read(&outside).unwrap_err();
/// assert_eq!(refusal.to_string(), "`etc/passwd` leads outside the workspace");
/// ```
#[derive(Clone)]
pub struct Workspace {
    root: Arc<Dir>,
    seen: Seen,
    /// The call that holds it, where one does.
    call: Option<CallContext>,
}

impl Grant for Workspace {
    /// Whoever holds the handle may use the files.
    fn confers(&self) -> Rights {
        let rights = ["fs:read:.", "fs:write:."].map(|right| right.parse());
        Rights::of(rights.into_iter().flatten())
    }

    /// What a call reads it has seen, and what it writes has the label of what it has seen.
    fn for_call(mut self, context: &CallContext) -> Workspace {
        self.seen.provenance = context.provenance();
        self.call = Some(context.clone());
        self
    }
}

impl Workspace {
    /// Opens a folder of the host's choice. Only here is a path of the whole machine taken.
    pub fn open(folder: impl AsRef<Path>) -> Result<Workspace, WorkspaceError> {
        let folder = folder.as_ref();
        let opened = system::check_supported()
            .and_then(|()| Dir::open_ambient_dir(folder, ambient_authority()));
        match opened {
            Ok(root) => Ok(Workspace { root: Arc::new(root), seen: Seen::new(folder), call: None }),
            Err(source) => Err(WorkspaceError::Root { folder: folder.to_owned(), source }),
        }
    }

    /// Reads a regular file of at most [`FILE_BYTES_MAX`].
    ///
    /// Symbolic links are followed as long as they stay inside, by whoever may read all of it; a
    /// call that may read only a part follows none. What could block, such as a pipe, is refused
    /// without being opened.
    pub fn read(&self, path: &WorkspacePath) -> Result<Vec<u8>, WorkspaceError> {
        let refused = |source| WorkspaceError::from_io(path, source);
        let file = match self.may_read(path)? {
            Links::NotFollowed => self.open_itself(path)?.file,
            Links::Followed => {
                // To open a device can already be an effect, so it is looked at first.
                check_readable(path, &self.root.metadata(path.as_str()).map_err(refused)?)?;
                self.root.open_with(path.as_str(), &system::reading()).map_err(refused)?
            }
        };
        let bytes = read_regular(path, &file)?;
        self.seen.read(&self.root, path, &bytes);
        Ok(bytes)
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workspace")
    }
}

/// Reads an open file, which may be another than the one that was looked at.
fn read_regular(path: &WorkspacePath, file: &File) -> Result<Vec<u8>, WorkspaceError> {
    let refused = |source| WorkspaceError::from_io(path, source);
    check_readable(path, &file.metadata().map_err(refused)?)?;
    let mut bytes = Vec::new();
    // One byte past the limit at most: a file may grow while it is read.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(refused)?;
    check_size(path, bytes.len() as u64)?;
    Ok(bytes)
}

fn check_readable(path: &WorkspacePath, metadata: &Metadata) -> Result<(), WorkspaceError> {
    match EntryKind::of(metadata.file_type()) {
        EntryKind::File => check_size(path, metadata.len()),
        found => {
            let expected = EntryKind::File;
            Err(WorkspaceError::Kind { path: path.clone(), found, expected })
        }
    }
}

fn check_size(path: &WorkspacePath, bytes: u64) -> Result<(), WorkspaceError> {
    match bytes {
        0..=FILE_BYTES_MAX => Ok(()),
        _ => Err(WorkspaceError::TooLarge { path: path.clone(), bytes }),
    }
}
