//! Where a file is: a name in a directory that is held open, reached without any link.

use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, Metadata};

use super::protected::{HEAD, is_head, protected};
use super::{EntryKind, Workspace, WorkspaceError, WorkspacePath, system};

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
        check_plain(path, &parent, purpose)?;
        for name in parents {
            parent = system::open_dir_itself(&parent, name)
                .map_err(|source| self.unopened(path, &parent, name, source))?;
            check_plain(path, &parent, purpose)?;
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

/// Checks that a change is not inside a repository of git: a folder that holds its `HEAD` is one,
/// or is about to become one, and git obeys what else is in it.
fn check_plain(path: &WorkspacePath, dir: &Dir, purpose: Purpose) -> Result<(), WorkspaceError> {
    let holds_head = || dir.symlink_metadata(HEAD).is_ok_and(|head| !head.is_dir());
    match purpose == Purpose::Changing && holds_head() {
        true => Err(WorkspaceError::Protected { path: path.clone(), name: HEAD }),
        false => Ok(()),
    }
}
