//! A file that is about to be replaced: held by its handle, and replaced as a whole or not at all.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use cap_std::fs::{File, Metadata};
use tooltape::Random;

use super::place::{Place, Purpose, check_names};
use super::unfinished::{Unfinished, sync};
use super::{Workspace, WorkspaceError, WorkspacePath};
use super::{check_readable, check_size, read_regular, system};

/// A file as it was when it was opened to be changed.
///
/// It is held by its handle, beside the handle of its directory, so whatever happens to the names
/// on the way there meanwhile changes nothing about what is replaced.
///
/// ```
/// use tooltape::Random;
/// use tooltape_kit::Workspace;
///
/// let folder = tempfile::tempdir().unwrap();
/// std::fs::write(folder.path().join("a.txt"), "one").unwrap();
///
/// let files = Workspace::open(folder.path()).unwrap();
/// let original = files.original(&"a.txt".parse().unwrap()).unwrap();
/// let changed = [original.bytes(), b" two"].concat();
/// original.replace(&changed, &Random::system()).unwrap();
/// assert_eq!(files.read(&"a.txt".parse().unwrap()).unwrap(), b"one two");
/// ```
pub struct Original {
    pub(super) place: Place,
    file: File,
    pub(super) metadata: Metadata,
    bytes: Vec<u8>,
    files: Workspace,
}

/// A regular file that was opened by its own name, and where it is.
pub(super) struct Opened {
    place: Place,
    pub(super) file: File,
    metadata: Metadata,
}

impl Workspace {
    /// Opens a regular file to be changed. No symbolic link is followed on the way.
    ///
    /// Protected names are refused, whether they exist or not, and so is a file that nobody may
    /// write.
    pub fn original(&self, path: &WorkspacePath) -> Result<Original, WorkspaceError> {
        check_names(path)?;
        self.may_read(path)?;
        let Opened { place, file, metadata } = self.open_as(path, Purpose::Changing)?;
        if system::is_read_only(&metadata) {
            return Err(WorkspaceError::ReadOnly { path: path.clone() });
        }
        let bytes = read_regular(path, &file)?;
        self.seen.read(&self.root, path, &bytes);
        Ok(Original { place, file, metadata, bytes, files: self.clone() })
    }

    /// Opens a regular file to be read. No symbolic link is followed.
    pub(super) fn open_itself(&self, path: &WorkspacePath) -> Result<Opened, WorkspaceError> {
        self.open_as(path, Purpose::Reading)
    }

    fn open_as(&self, path: &WorkspacePath, purpose: Purpose) -> Result<Opened, WorkspaceError> {
        let place = self.reach(path, purpose)?;
        // To open a device can already be an effect, so it is looked at first.
        let Some(metadata) = place.look(self)? else {
            return Err(WorkspaceError::Missing { path: path.clone() });
        };
        check_readable(path, &metadata)?;
        let Place { parent, name, .. } = &place;
        let file = system::open_file_itself(parent, name)
            .map_err(|source| self.unopened(path, parent, name, source))?;
        let metadata = file.metadata().map_err(|source| place.refused(source))?;
        Ok(Opened { place, file, metadata })
    }
}

impl Original {
    /// What the file holds.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The mode that it has, and the one that it would have as a program or as none.
    pub(crate) fn modes(&self, is_executable: bool) -> (u32, u32) {
        let mode = system::kept_mode(&self.metadata);
        (mode, system::executable(mode, is_executable))
    }

    /// Replaces the file by one that holds these bytes.
    ///
    /// Whoever opens the path finds the old file or the new one, never a mixture, even after a
    /// power cut. The new file keeps the owner and the permissions of the old one, but no setuid
    /// bit; other links to the old one keep the old content. A file that was changed since it was
    /// opened is left alone.
    pub fn replace(mut self, bytes: &[u8], random: &Random) -> Result<(), WorkspaceError> {
        check_size(&self.place.path, bytes.len() as u64)?;
        self.files.may_write(&self.place.path)?;
        self.files.seen.writing(&self.place.path, bytes)?;
        let mode = system::kept_mode(&self.metadata);
        let unfinished = self.beside(bytes, mode, random)?;
        self.check_unchanged()?;
        let old = self.exchanged(unfinished)?;
        self.files.seen.written(&self.place.path);
        let Place { path, parent, .. } = self.place;
        let synced = sync(&parent).map_err(|source| WorkspaceError::Unsynced { path, source });
        drop(old);
        synced
    }

    /// Puts the new file in place. What it displaced is checked once more, and is left for the
    /// caller to drop: nobody else's work gets lost.
    fn exchanged(&mut self, new: Unfinished) -> Result<Option<Unfinished>, WorkspaceError> {
        let name = self.place.name.clone();
        match new.exchange(&name) {
            Ok(()) => {}
            // Some file systems exchange no names. What was just checked is replaced there.
            Err(err) if err.kind() == ErrorKind::InvalidInput => {
                new.replace(&name).map_err(|source| self.place.refused(source))?;
                return Ok(None);
            }
            Err(err) => return Err(self.place.refused(err)),
        }
        let old = new;
        let Err(changed) = self.check_is_at(&old.name) else { return Ok(Some(old)) };
        match old.exchange(&name) {
            Ok(()) => Err(changed),
            Err(source) => {
                let kept = self.place.path_beside(&old.leave());
                let left = vec![(self.place.path.clone(), kept)];
                Err(WorkspaceError::Torn { cause: changed.to_string(), left, source })
            }
        }
    }

    /// The file that will take its place, with its owner.
    pub(super) fn beside(
        &self,
        bytes: &[u8],
        mode: u32,
        random: &Random,
    ) -> Result<Unfinished, WorkspaceError> {
        let finish = |file: &File| system::take_after(file, &self.metadata, mode);
        Unfinished::create(&self.place.parent, bytes, random, finish)
            .map_err(|source| self.place.refused(source))
    }

    /// Checks that the name is still the file that was opened, and the file still what was read.
    pub(super) fn check_unchanged(&mut self) -> Result<(), WorkspaceError> {
        let name = self.place.name.clone();
        self.check_is_at(&name)
    }

    /// Checks that this name, in the same directory, is the file that was opened, as it was read.
    pub(super) fn check_is_at(&mut self, name: &str) -> Result<(), WorkspaceError> {
        let is_same = match self.place.parent.symlink_metadata(name) {
            Ok(now) => {
                system::identity(&now) == system::identity(&self.metadata) && self.holds_the_same()
            }
            Err(_) => false,
        };
        match is_same {
            true => Ok(()),
            false => Err(WorkspaceError::Changed { path: self.place.path.clone() }),
        }
    }

    fn holds_the_same(&mut self) -> bool {
        let mut now = Vec::with_capacity(self.bytes.len() + 1);
        let limit = self.bytes.len() as u64 + 1;
        let read = self.file.seek(SeekFrom::Start(0));
        let read = read.and_then(|_| (&self.file).take(limit).read_to_end(&mut now));
        read.is_ok() && now == self.bytes
    }
}
