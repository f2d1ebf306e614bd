//! A file under a name that means nothing to anybody, until it is put in its place.

use std::io::{self, ErrorKind, Write};

use cap_std::fs::{Dir, File};
use tooltape::Random;

use super::system;

/// How the name of a file begins that is not finished, or is about to go.
const PREFIX: &str = ".unfinished-";
/// How often a name may be taken already.
const NAME_TRIES_MAX: u32 = 8;

/// A file of its own name beside the one that it is for: private, and gone unless it is used.
pub(super) struct Unfinished {
    parent: Dir,
    pub(super) name: String,
    is_mine: bool,
}

impl Unfinished {
    /// Creates the file and fills it. Its content is on the disk afterwards.
    pub(super) fn create(
        parent: &Dir,
        bytes: &[u8],
        random: &Random,
        finish: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<Unfinished> {
        let mut tries = 0;
        let (name, mut file) = loop {
            let name = format!("{PREFIX}{:016x}", random.next_u64());
            match parent.open_with(&name, &system::creating()) {
                Ok(file) => break (name, file),
                Err(err) if err.kind() == ErrorKind::AlreadyExists && tries < NAME_TRIES_MAX => {
                    tries += 1;
                }
                Err(err) => return Err(err),
            }
        };
        let unfinished = Unfinished { parent: parent.try_clone()?, name, is_mine: true };
        file.write_all(bytes)?;
        finish(&file)?;
        file.sync_all()?;
        Ok(unfinished)
    }

    /// Takes the place of whatever has this name.
    pub(super) fn replace(mut self, name: &str) -> io::Result<()> {
        self.parent.rename(&self.name, &self.parent, name)?;
        self.is_mine = false;
        Ok(())
    }

    /// Changes places with whatever has this name, which is gone in its place unless it is used.
    pub(super) fn exchange(&self, name: &str) -> io::Result<()> {
        system::exchange(&self.parent, &self.name, name)
    }

    /// Takes a name that nothing has.
    pub(super) fn appear(mut self, name: &str) -> io::Result<()> {
        let left = system::rename_new(&self.parent, &self.name, &self.parent, name)?;
        // Its first name is tried once more when this is dropped.
        self.is_mine = left.is_some();
        Ok(())
    }

    /// Leaves the file to whoever knows its name.
    pub(super) fn leave(mut self) -> String {
        self.is_mine = false;
        std::mem::take(&mut self.name)
    }
}

/// What cannot be removed is a file under a name that means nothing to anybody.
impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.is_mine {
            let _ = self.parent.remove_file(&self.name);
        }
    }
}

/// A name that nothing has, for a file that is about to go.
pub(super) fn aside(random: &Random) -> String {
    format!("{PREFIX}{:016x}", random.next_u64())
}

/// Makes a change of names durable. Some file systems have nothing to sync for a directory and say
/// so.
pub(super) fn sync(dir: &Dir) -> io::Result<()> {
    match dir.try_clone()?.into_std_file().sync_all() {
        Err(err) if matches!(err.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}
