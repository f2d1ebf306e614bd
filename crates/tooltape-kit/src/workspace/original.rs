//! A file that is about to be replaced: held by its handle, and replaced as a whole or not at all.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use cap_std::fs::{Dir, File, Metadata};
use tooltape::Random;

use super::protected::protected;
use super::{EntryKind, Workspace, WorkspaceError, WorkspacePath};
use super::{check_readable, check_size, read_regular, system};

/// How often a name for the unfinished file may be taken already.
const NAME_TRIES_MAX: u32 = 8;

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
    path: WorkspacePath,
    parent: Dir,
    name: String,
    file: File,
    metadata: Metadata,
    bytes: Vec<u8>,
    files: Workspace,
}

/// A regular file that was opened by its own name, and the directory that it is in.
pub(super) struct Opened {
    parent: Dir,
    name: String,
    pub(super) file: File,
    metadata: Metadata,
}

impl Workspace {
    /// Opens a regular file to be changed. No symbolic link is followed on the way.
    ///
    /// Protected names are refused, whether they exist or not, and so is a file that nobody may
    /// write.
    pub fn original(&self, path: &WorkspacePath) -> Result<Original, WorkspaceError> {
        let names = path.components();
        if let Some(name) = names.iter().find_map(|name| protected(name)) {
            return Err(WorkspaceError::Protected { path: path.clone(), name });
        }
        self.may_read(path)?;
        let Opened { parent, name, file, metadata } = self.open_itself(path)?;
        if system::is_read_only(&metadata) {
            return Err(WorkspaceError::ReadOnly { path: path.clone() });
        }
        let bytes = read_regular(path, &file)?;
        self.seen.read(&self.root, path, &bytes);
        let (path, files) = (path.clone(), self.clone());
        Ok(Original { path, parent, name, file, metadata, bytes, files })
    }

    /// Opens a regular file and the directory that it is in. No symbolic link is followed.
    pub(super) fn open_itself(&self, path: &WorkspacePath) -> Result<Opened, WorkspaceError> {
        let names = path.components();
        let Some((name, parents)) = names.split_last() else {
            let (found, expected) = (EntryKind::Dir, EntryKind::File);
            return Err(WorkspaceError::Kind { path: path.clone(), found, expected });
        };
        let refused = |source| WorkspaceError::from_io(path, source);
        let mut parent = system::open_dir_itself(&self.root, ".").map_err(refused)?;
        for name in parents {
            parent = system::open_dir_itself(&parent, name)
                .map_err(|source| unopened(path, &parent, name, source))?;
        }
        // To open a device can already be an effect, so it is looked at first.
        let metadata = parent.symlink_metadata(name).map_err(refused)?;
        if metadata.is_symlink() {
            return Err(WorkspaceError::ChangeThroughLink { path: path.clone() });
        }
        check_readable(path, &metadata)?;
        let file = system::open_file_itself(&parent, name)
            .map_err(|source| unopened(path, &parent, name, source))?;
        let metadata = file.metadata().map_err(refused)?;
        Ok(Opened { parent, name: (*name).to_owned(), file, metadata })
    }
}

/// Says whether it was a link that could not be opened.
fn unopened(path: &WorkspacePath, dir: &Dir, name: &str, source: io::Error) -> WorkspaceError {
    match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_symlink() => {
            WorkspaceError::ChangeThroughLink { path: path.clone() }
        }
        Ok(_) | Err(_) => WorkspaceError::from_io(path, source),
    }
}

impl Original {
    /// What the file holds.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Replaces the file by one that holds these bytes.
    ///
    /// Whoever opens the path finds the old file or the new one, never a mixture, even after a
    /// power cut. The new file keeps the owner and the permissions of the old one, but no setuid
    /// bit; other links to the old one keep the old content. A file that was changed since it was
    /// opened is left alone.
    pub fn replace(mut self, bytes: &[u8], random: &Random) -> Result<(), WorkspaceError> {
        check_size(&self.path, bytes.len() as u64)?;
        self.files.may_write(&self.path)?;
        self.files.seen.writing(&self.path, bytes)?;
        let refused = |path: &WorkspacePath, source| WorkspaceError::from_io(path, source);
        let (unfinished, file) =
            self.create_beside(random).map_err(|source| refused(&self.path, source))?;
        let replaced = fill(file, bytes, &self.metadata)
            .map_err(|source| refused(&self.path, source))
            .and_then(|()| self.check_unchanged())
            .and_then(|()| {
                let renamed = self.parent.rename(&unfinished, &self.parent, &self.name);
                renamed.map_err(|source| refused(&self.path, source))
            });
        if replaced.is_err() {
            // What is left behind is a file under a name that means nothing to anybody.
            let _ = self.parent.remove_file(&unfinished);
        }
        replaced?;
        self.files.seen.written(&self.path);
        match sync(&self.parent) {
            Ok(()) => Ok(()),
            Err(source) => Err(WorkspaceError::Unsynced { path: self.path, source }),
        }
    }

    /// Creates the file that will take the original's place, in the same directory.
    fn create_beside(&self, random: &Random) -> io::Result<(String, File)> {
        let mut tries = 0;
        loop {
            let name = format!(".unfinished-{:016x}", random.next_u64());
            match self.parent.open_with(&name, &system::creating()) {
                Ok(file) => return Ok((name, file)),
                Err(err) if err.kind() == ErrorKind::AlreadyExists && tries < NAME_TRIES_MAX => {
                    tries += 1;
                }
                Err(err) => return Err(err),
            }
        }
    }

    /// Checks that the name is still the file that was opened, and the file still what was read.
    fn check_unchanged(&mut self) -> Result<(), WorkspaceError> {
        let unchanged = match self.parent.symlink_metadata(&self.name) {
            Ok(now) => {
                system::identity(&now) == system::identity(&self.metadata) && self.holds_the_same()
            }
            Err(_) => false,
        };
        match unchanged {
            true => Ok(()),
            false => Err(WorkspaceError::Changed { path: self.path.clone() }),
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

fn fill(mut file: File, bytes: &[u8], metadata: &Metadata) -> io::Result<()> {
    file.write_all(bytes)?;
    system::take_after(&file, metadata)?;
    file.sync_all()
}

/// Makes a rename durable. Some file systems have nothing to sync for a directory and say so.
fn sync(dir: &Dir) -> io::Result<()> {
    match dir.try_clone()?.into_std_file().sync_all() {
        Err(err) if matches!(err.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}
