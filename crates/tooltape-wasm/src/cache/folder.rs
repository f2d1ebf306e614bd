//! A folder that is ours alone, and the files in it that are.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    self, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, linkat, openat, renameat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::KEY_BYTES;
use crate::limit::{CACHE_BYTES_MAX, CACHE_ENTRIES_MAX};

/// The file that the key is in.
const KEY: &str = "key";
/// How often a key is looked for or made, while others do so too.
const KEY_ATTEMPTS: usize = 16;
/// What others may do with what is ours alone.
const OTHERS: u32 = 0o077;

/// A folder that is ours alone. It stays the same one, whatever becomes of its path.
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder, which is made if it is not there.
    pub(super) fn open(path: &Path) -> Result<Folder, String> {
        let unopened = |err: &dyn std::fmt::Display| format!("it cannot be opened: {err}");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|err| unopened(&err))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty()).map_err(|err| unopened(&err))?;
        let stat = fstat(&folder).map_err(|err| unopened(&err))?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(format!("it belongs to the user {}, expected ourselves", stat.st_uid));
        }
        match stat.st_mode & OTHERS {
            0 => Ok(Folder(folder)),
            _ => {
                let mode = stat.st_mode & 0o777;
                Err(format!("others may use it: its mode is {mode:o}, expected 700"))
            }
        }
    }

    /// The key, which is made if there is none that only we can read.
    pub(super) fn key(&self) -> io::Result<[u8; KEY_BYTES]> {
        // Others may make one, or take one away, at the same time.
        for _ in 0..KEY_ATTEMPTS {
            if let Some(key) = self.old_key() {
                return Ok(key);
            }
            match fs::statat(&self.0, KEY, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => self.make_key()?,
                // One that others may have read is worth as much as none; but it may also have
                // been made just now.
                Ok(_) if self.old_key().is_none() => {
                    let _ = unlinkat(&self.0, KEY, AtFlags::empty());
                }
                Ok(_) => {}
                Err(err) => return Err(err.into()),
            }
        }
        Err(io::Error::other("somebody else changes it all the time"))
    }

    fn make_key(&self) -> io::Result<()> {
        let mut key = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        let written = self.written(&[&key])?;
        // Whoever else made one meanwhile was first.
        let _ = linkat(&self.0, written.as_str(), &self.0, KEY, AtFlags::empty());
        Ok(unlinkat(&self.0, written.as_str(), AtFlags::empty())?)
    }

    fn old_key(&self) -> Option<[u8; KEY_BYTES]> {
        // It has two names for a moment while it is made.
        self.read_unless(KEY, KEY_BYTES as u64, |stat| stat.st_nlink > 2)?.try_into().ok()
    }

    /// The bytes of a file that is ours alone, and no link, unless there are more than so many.
    pub(super) fn read(&self, name: &str, bytes_max: u64) -> Option<Vec<u8>> {
        self.read_unless(name, bytes_max, |stat| stat.st_nlink > 1)
    }

    fn read_unless(
        &self,
        name: &str,
        bytes_max: u64,
        is_linked: fn(&Stat) -> bool,
    ) -> Option<Vec<u8>> {
        // Nobody waits for a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        if !is_ours(&stat) || is_linked(&stat) {
            return None;
        }
        // What is too large is no reason to ask for as much memory.
        let size = u64::try_from(stat.st_size).ok().filter(|size| *size <= bytes_max)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        File::from(file).take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= bytes_max).then_some(bytes)
    }

    /// Makes or replaces a file: whole, or not at all.
    pub(super) fn write(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        if bytes > CACHE_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.prune(bytes)?;
        let written = self.written(parts)?;
        let renamed = renameat(&self.0, written.as_str(), &self.0, name);
        if renamed.is_err() {
            let _ = unlinkat(&self.0, written.as_str(), AtFlags::empty());
        }
        Ok(renamed?)
    }

    /// Writes a file under a name that nobody else uses, and says which.
    fn written(&self, parts: &[&[u8]]) -> io::Result<String> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let count = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{count}.part", std::process::id());
        // What a process of this number left behind, it cannot need any more.
        let _ = unlinkat(&self.0, name.as_str(), AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(&self.0, name.as_str(), flags, mode)?);
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        if written.is_err() {
            let _ = unlinkat(&self.0, name.as_str(), AtFlags::empty());
        }
        written.map(|()| name)
    }

    /// Takes away what was kept longest, where there is no room for so many bytes more.
    fn prune(&self, more: u64) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_owned();
            if entry.file_type() != FileType::Directory && name.as_bytes() != KEY.as_bytes() {
                let stat = fs::statat(&self.0, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                kept.push(((stat.st_mtime, stat.st_mtime_nsec), name, size));
            }
        }
        kept.sort();
        let (mut entries, mut bytes) = (1, more);
        // From the newest on, until there is no room.
        let fits = kept.iter().rev().take_while(|(_, _, size)| {
            entries += 1;
            bytes = bytes.saturating_add(*size);
            entries <= CACHE_ENTRIES_MAX && bytes <= CACHE_BYTES_MAX
        });
        let surplus = kept.len() - fits.count();
        for (_, name, _) in &kept[..surplus] {
            unlinkat(&self.0, name, AtFlags::empty())?;
        }
        Ok(())
    }
}

/// Whether a file is a file of ours that nobody else can read or change.
fn is_ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == geteuid().as_raw()
        && stat.st_mode & OTHERS == 0
}
