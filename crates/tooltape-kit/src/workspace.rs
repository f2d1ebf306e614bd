//! A folder that tools may use, held as an open handle.

#[cfg(not(unix))]
mod elsewhere;
mod change;
mod changes;
mod error;
mod footprint;
mod ignored;
mod list;
mod memory;
mod original;
mod path;
mod permit;
mod place;
mod protected;
mod seen;
mod unfinished;
#[cfg(unix)]
mod unix;
mod walk;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata};
use memory::Scratch;
use permit::Links;
use seen::Seen;
use tooltape::{CallContext, Grant, Rights};

#[cfg(not(unix))]
use elsewhere as system;
#[cfg(unix)]
use unix as system;

pub use change::Existing;
pub(crate) use change::Folders;
pub(crate) use changes::Changes;
pub use error::WorkspaceError;
pub use ignored::IGNORE_BYTES_MAX;
pub use list::{ENTRIES_MAX, ENTRIES_SCANNED_MAX, Entry, EntryKind, Listing};
pub use original::Original;
pub(crate) use path::shown;
pub use path::{
    COMPONENT_BYTES_MAX, PATH_BYTES_MAX, PATH_SHOWN_BYTES_MAX, PathError, WorkspacePath,
};
pub(crate) use protected::{HEAD, protected};
pub(crate) use walk::{Cut, Found, Patience, Sight, Walk};
pub use walk::{WALK_DEPTH_MAX, WALK_ENTRIES_MAX, WALK_MS_MAX};

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
    /// What removes the folder with the last handle to it, where that is wanted.
    scratch: Option<Arc<Scratch>>,
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
            Ok(root) => {
                let (root, seen) = (Arc::new(root), Seen::new(folder));
                Ok(Workspace { root, seen, call: None, scratch: None })
            }
            Err(source) => Err(WorkspaceError::Root { folder: folder.to_owned(), source }),
        }
    }

    #[cfg(target_os = "linux")]
    /// The open folder itself, for whoever hands it to a process.
    pub(crate) fn root(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        Ok(self.root.try_clone()?.into_std_file().into())
    }

    /// Reads a regular file of at most [`FILE_BYTES_MAX`].
    ///
    /// Symbolic links are followed by the host as long as they stay inside, and never by a call:
    /// its path was judged, and no other. What could block, such as a pipe, is refused without
    /// being opened.
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
