//! Where a file is: a name in a directory that is held open, reached without any link.

use std::io::{self, ErrorKind, Read};

use cap_std::fs::{Dir, Metadata};

use super::protected::{BESIDE_HEAD, HEAD, is_beside_head, is_head, protected};
use super::{EntryKind, Workspace, WorkspaceError, WorkspacePath, system};

/// The characters of the shortest hash of git.
const HASH_CHARS_MIN: u64 = 40;

/// A name in an open directory. Whatever happens to the names on the way there meanwhile changes
/// nothing about where it is.
pub(super) struct Place {
    pub(super) path: WorkspacePath,
    pub(super) parent: Dir,
    pub(super) name: String,
}

/// What somebody is on the way for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Reading,
    Changing,
}

impl Workspace {
    /// The place of what is to be changed. Protected names are refused, whether they exist or not.
    pub(super) fn place(&self, path: &WorkspacePath) -> Result<Place, WorkspaceError> {
        check_names(path)?;
        self.reach(path, Purpose::Changing)
    }

    /// The same for a folder, which makes nothing a repository by being called `HEAD`.
    pub(super) fn folder(&self, path: &WorkspacePath) -> Result<Place, WorkspaceError> {
        check_folders(path)?;
        self.reach(path, Purpose::Changing)
    }

    /// Goes down to the directory of a path. No symbolic link is followed.
    pub(super) fn reach(
        &self,
        path: &WorkspacePath,
        purpose: Purpose,
    ) -> Result<Place, WorkspaceError> {
        let names = path.components();
        let Some((name, parents)) = names.split_last() else {
            let (found, expected) = (EntryKind::Dir, EntryKind::File);
            return Err(WorkspaceError::Kind { path: path.clone(), found, expected });
        };
        let refused = |source| WorkspaceError::from_io(path, source);
        let mut parent = system::open_dir_itself(&self.root, ".").map_err(refused)?;
        check_plain(path, 0, &parent, purpose)?;
        for (at, name) in parents.iter().enumerate() {
            parent = system::open_dir_itself(&parent, name)
                .map_err(|source| self.unopened(path, &parent, name, source))?;
            check_plain(path, at + 1, &parent, purpose)?;
        }
        Ok(Place { path: path.clone(), parent, name: (*name).to_owned() })
    }

    /// Says whether it was a link that could not be opened, and where that leads.
    pub(super) fn unopened(
        &self,
        path: &WorkspacePath,
        dir: &Dir,
        name: &str,
        source: io::Error,
    ) -> WorkspaceError {
        match dir.symlink_metadata(name) {
            Ok(metadata) if metadata.is_symlink() => self.linked(path),
            Ok(_) | Err(_) => WorkspaceError::from_io(path, source),
        }
    }

    /// Refuses a path with a link in it, and says where it leads, so that this is asked for.
    pub(super) fn linked(&self, path: &WorkspacePath) -> WorkspaceError {
        let outside = |err: &io::Error| {
            err.kind() == ErrorKind::PermissionDenied && err.raw_os_error().is_none()
        };
        let to = match self.root.canonicalize(path.as_str()) {
            Ok(real) => real.to_str().and_then(|real| real.parse().ok()),
            Err(err) if outside(&err) => return WorkspaceError::Outside { path: path.clone() },
            Err(_) => None,
        };
        WorkspaceError::ThroughLink { path: path.clone(), to }
    }
}

impl Place {
    /// What is there, if anything is. A link is refused.
    pub(super) fn look(&self, files: &Workspace) -> Result<Option<Metadata>, WorkspaceError> {
        match self.parent.symlink_metadata(&self.name) {
            Ok(metadata) if metadata.is_symlink() => Err(files.linked(&self.path)),
            Ok(metadata) => Ok(Some(metadata)),
            Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
            Err(err) => Err(self.refused(err)),
        }
    }

    /// Checks that nothing is there.
    pub(super) fn check_vacant(&self, files: &Workspace) -> Result<(), WorkspaceError> {
        match self.look(files)? {
            None => Ok(()),
            Some(metadata) => {
                let found = EntryKind::of(metadata.file_type());
                Err(WorkspaceError::Exists { path: self.path.clone(), found })
            }
        }
    }

    /// The path of another name in the same directory.
    pub(super) fn path_beside(&self, name: &str) -> Option<WorkspacePath> {
        self.path.parent()?.joined(name)
    }

    pub(super) fn refused(&self, source: io::Error) -> WorkspaceError {
        WorkspaceError::from_io(&self.path, source)
    }
}

/// Checks that no name of a file's path is protected.
pub(super) fn check_names(path: &WorkspacePath) -> Result<(), WorkspaceError> {
    check_folders(path)?;
    match path.components().last().is_some_and(|name| is_head(name)) {
        true => Err(WorkspaceError::Protected { path: path.clone(), name: HEAD }),
        false => Ok(()),
    }
}

/// Checks that no name of a folder's path is protected.
pub(super) fn check_folders(path: &WorkspacePath) -> Result<(), WorkspaceError> {
    match path.components().iter().find_map(|name| protected(name)) {
        Some(name) => Err(WorkspaceError::Protected { path: path.clone(), name }),
        None => Ok(()),
    }
}

/// Checks that a change is not inside a repository of git, whatever its folder is called, and makes
/// none of the folder at this depth of the path: git obeys what is in it.
fn check_plain(
    path: &WorkspacePath,
    depth: usize,
    dir: &Dir,
    purpose: Purpose,
) -> Result<(), WorkspaceError> {
    if purpose == Purpose::Reading || dir.symlink_metadata(HEAD).map_or(true, |it| it.is_dir()) {
        return Ok(());
    }
    let names = path.components();
    let completes = names.get(depth).is_some_and(|name| is_beside_head(name));
    let is_beside = |name: &&str| dir.symlink_metadata(name).is_ok();
    match completes || BESIDE_HEAD.iter().any(is_beside) || is_ref(dir) {
        false => Ok(()),
        true => {
            let folder = names[..depth.min(names.len())].join("/");
            let head = format!("./{folder}").trim_end_matches('/').parse().ok();
            let head = head.and_then(|folder: WorkspacePath| folder.joined(HEAD));
            let head = head.unwrap_or_else(|| path.clone());
            Err(WorkspaceError::Repository { path: path.clone(), head })
        }
    }
}

/// Whether the `HEAD` of a directory says what git expects of one. What cannot be read may.
fn is_ref(dir: &Dir) -> bool {
    if !dir.symlink_metadata(HEAD).is_ok_and(|metadata| metadata.is_file()) {
        return true;
    }
    let mut start = Vec::new();
    let read = system::open_file_itself(dir, HEAD)
        .and_then(|file| file.take(HASH_CHARS_MIN).read_to_end(&mut start));
    let is_id = || start.len() as u64 == HASH_CHARS_MIN && start.iter().all(u8::is_ascii_hexdigit);
    read.is_err() || start.starts_with(b"ref:") || is_id()
}
