//! Single changes: a file is created, moved or removed, a folder is created.

use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, File, Metadata};
use tooltape::Random;

use super::place::{Place, check_folders};
use super::unfinished::{Unfinished, sync};
use super::{EntryKind, Workspace, WorkspaceError, WorkspacePath, check_size, system};

/// What becomes of a file that is where another is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the other does not go there.
    Kept,
    /// It goes.
    Replaced,
}

/// Folders that were created for something that is not there yet: gone again unless it is.
pub(crate) struct Folders {
    made: Vec<Place>,
}

impl Workspace {
    /// Creates a file, or replaces the one that is there, as [`Original::replace`] does.
    ///
    /// The folder must exist. A new file can be read by whom its folder can be read, and written by
    /// its owner.
    ///
    /// ```
    /// use tooltape::Random;
    /// use tooltape_kit::Workspace;
    ///
    /// let files = Workspace::in_memory().unwrap();
    /// let path = "a.txt".parse().unwrap();
    /// files.write(&path, b"one", &Random::system()).unwrap();
    /// files.write(&path, b"two", &Random::system()).unwrap();
    /// assert_eq!(files.read(&path).unwrap(), b"two");
    ///
    /// let hook = ".git/hooks/pre-commit".parse().unwrap();
    /// assert_eq!(files.write(&hook, b"", &Random::system()).unwrap_err().code(), "protected");
    /// ```
    ///
    /// [`Original::replace`]: crate::Original::replace
    pub fn write(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        random: &Random,
    ) -> Result<(), WorkspaceError> {
        match self.original(path) {
            Ok(original) => original.replace(bytes, random),
            Err(WorkspaceError::Missing { .. }) => self.create(path, bytes, random),
            Err(err) => Err(err),
        }
    }

    /// Creates a file where there is nothing. Whatever appears there meanwhile is left alone.
    pub fn create(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        random: &Random,
    ) -> Result<(), WorkspaceError> {
        check_size(path, bytes.len() as u64)?;
        let place = self.vacant(path)?;
        self.seen.writing(path, bytes)?;
        let unfinished = place.beside(bytes, None, random)?;
        unfinished.appear(&place.name).map_err(|source| self.not_appeared(&place, source))?;
        self.seen.written(path);
        sync(&place.parent)
            .map_err(|source| WorkspaceError::Unsynced { path: path.clone(), source })
    }

    /// Creates a folder, and those above it that are missing.
    pub fn create_dir(&self, path: &WorkspacePath) -> Result<(), WorkspaceError> {
        self.make_folders(path)?.keep()
    }

    /// Moves a regular file. Neither path leads through a symbolic link, and neither is protected.
    pub fn rename(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        existing: Existing,
    ) -> Result<(), WorkspaceError> {
        let (source, moved) = self.removable(from)?;
        self.may_read(from)?;
        let target = self.place(to)?;
        self.may_write(to)?;
        let found = target.look(self)?;
        let found = found.map(|metadata| (EntryKind::of(metadata.file_type()), metadata));
        match (found, existing) {
            (None, _) => {}
            (Some((EntryKind::File, metadata)), Existing::Replaced) => {
                if system::is_read_only(&metadata) {
                    return Err(WorkspaceError::ReadOnly { path: to.clone() });
                }
                // The system would leave both names, and say that all is done.
                if system::identity(&metadata) == system::identity(&moved) {
                    return Err(WorkspaceError::SameFile { path: from.clone(), other: to.clone() });
                }
            }
            (Some((found, _)), _) => {
                return Err(WorkspaceError::Exists { path: to.clone(), found });
            }
        }
        self.seen.moving(&self.root, from, to)?;
        let moved = match existing {
            Existing::Kept => {
                system::rename_new(&source.parent, &source.name, &target.parent, &target.name)
            }
            Existing::Replaced => {
                let renamed = source.parent.rename(&source.name, &target.parent, &target.name);
                renamed.map(|()| None)
            }
        };
        if let Some(source) = moved.map_err(|source| self.not_appeared(&target, source))? {
            let cause = format!("`{from}` could not be removed once it was at `{to}`");
            let left = vec![(to.clone(), Some(from.clone()))];
            return Err(WorkspaceError::Torn { cause, left, source });
        }
        let synced = sync(&target.parent).and_then(|()| sync(&source.parent));
        synced.map_err(|source| WorkspaceError::Unsynced { path: to.clone(), source })
    }

    /// Removes a regular file or an empty folder. A symbolic link stays, and so does what it leads
    /// to.
    pub fn remove(&self, path: &WorkspacePath) -> Result<(), WorkspaceError> {
        let place = self.place(path)?;
        let is_dir = place.look(self)?.is_some_and(|metadata| metadata.is_dir());
        let place = if is_dir { place } else { self.removable(path)?.0 };
        self.may_write(path)?;
        let removed = match is_dir {
            true => place.parent.remove_dir(&place.name),
            false => place.parent.remove_file(&place.name),
        };
        removed.map_err(|source| place.refused(source))?;
        sync(&place.parent)
            .map_err(|source| WorkspaceError::Unsynced { path: path.clone(), source })
    }

    /// Whether anything is at a path that could be written.
    pub(crate) fn exists(&self, path: &WorkspacePath) -> Result<bool, WorkspaceError> {
        Ok(self.place(path)?.look(self)?.is_some())
    }

    /// Where nothing is, and something may be written.
    pub(super) fn vacant(&self, path: &WorkspacePath) -> Result<Place, WorkspaceError> {
        let place = self.place(path)?;
        self.may_write(path)?;
        place.check_vacant(self)?;
        Ok(place)
    }

    /// The place of a regular file that may go, and the file.
    fn removable(&self, path: &WorkspacePath) -> Result<(Place, Metadata), WorkspaceError> {
        let place = self.place(path)?;
        self.may_write(path)?;
        let Some(metadata) = place.look(self)? else {
            return Err(WorkspaceError::Missing { path: path.clone() });
        };
        match EntryKind::of(metadata.file_type()) {
            EntryKind::File if system::is_read_only(&metadata) => {
                Err(WorkspaceError::ReadOnly { path: path.clone() })
            }
            EntryKind::File => Ok((place, metadata)),
            found @ (EntryKind::Dir | EntryKind::Symlink | EntryKind::Other) => {
                let expected = EntryKind::File;
                Err(WorkspaceError::Kind { path: path.clone(), found, expected })
            }
        }
    }

    /// Says what kept a name from appearing.
    pub(super) fn not_appeared(&self, place: &Place, source: io::Error) -> WorkspaceError {
        match place.check_vacant(self) {
            Err(err) if source.kind() == ErrorKind::AlreadyExists => err,
            Ok(()) | Err(_) => place.refused(source),
        }
    }

    /// Creates a folder and those above it that are missing, until they are kept.
    pub(crate) fn make_folders(&self, path: &WorkspacePath) -> Result<Folders, WorkspaceError> {
        check_folders(path)?;
        let mut folders = Folders { made: Vec::new() };
        for path in path.ancestors() {
            let place = self.folder(&path)?;
            match place.look(self)? {
                Some(metadata) if metadata.is_dir() => continue,
                Some(_) => return Err(WorkspaceError::Through { path }),
                None => {}
            }
            self.may_write(&path)?;
            match place.parent.create_dir(&place.name) {
                Ok(()) => folders.made.push(place),
                // Somebody else made it meanwhile, and keeps it.
                Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
                Err(err) => return Err(place.refused(err)),
            }
        }
        Ok(folders)
    }
}

impl Place {
    /// A new file that will be here.
    pub(super) fn beside(
        &self,
        bytes: &[u8],
        mode: Option<u32>,
        random: &Random,
    ) -> Result<Unfinished, WorkspaceError> {
        let finish = |file: &File| {
            let mode = mode.map_or_else(|| system::new_mode(&self.parent), Ok)?;
            system::set_mode(file, mode)
        };
        Unfinished::create(&self.parent, bytes, random, finish).map_err(|err| self.refused(err))
    }
}

impl Folders {
    /// Leaves them where they are, on the disk.
    pub(crate) fn keep(mut self) -> Result<(), WorkspaceError> {
        let made = std::mem::take(&mut self.made);
        sync_all(made.iter().map(|place| (&place.path, &place.parent)))
    }
}

/// What somebody else has put something into meanwhile stays.
impl Drop for Folders {
    fn drop(&mut self) {
        for place in self.made.iter().rev() {
            let _ = place.parent.remove_dir(&place.name);
        }
    }
}

/// The directories of several places, each of them on the disk as it is now.
pub(super) fn sync_all<'p>(
    places: impl Iterator<Item = (&'p WorkspacePath, &'p Dir)>,
) -> Result<(), WorkspaceError> {
    for (path, dir) in places {
        let unsynced = |source| WorkspaceError::Unsynced { path: path.clone(), source };
        sync(dir).map_err(unsynced)?;
    }
    Ok(())
}
