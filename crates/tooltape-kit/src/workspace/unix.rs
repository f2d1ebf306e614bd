//! The few system calls that `cap-std` does not offer.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, fchown};
use std::path::Path;

use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use cap_std::fs::{Permissions, PermissionsExt};
use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::Errno;

use super::EntryKind;

/// The bits that let somebody write.
const WRITE_BITS: u32 = 0o222;
/// The bits of a mode that a replaced file keeps: none that change who a program runs as.
const KEPT_BITS: u32 = 0o777;
/// The bits that let somebody read, and those that let somebody run.
const READ_BITS: u32 = 0o444;
const RUN_BITS: u32 = 0o111;
/// The bits that let somebody else than the owner read.
const OTHERS_READ_BITS: u32 = 0o044;
/// The mode of a file that is not finished.
const PRIVATE: u32 = 0o600;
/// The mode of a folder that is nobody else's.
const PRIVATE_DIR: u32 = 0o700;

/// Whether handles work as they must on this system.
pub(super) fn check_supported() -> io::Result<()> {
    Ok(())
}

/// How files are opened to be read: a pipe or a terminal never makes anybody wait.
pub(super) fn reading() -> OpenOptions {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.cast_signed());
    options
}

/// How files are created: only where there is nothing, and for nobody else.
pub(super) fn creating() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE);
    options
}

/// Opens the directory of exactly this name: a single component, never a link.
pub(super) fn open_dir_itself(dir: &Dir, name: impl AsRef<OsStr>) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(openat(dir, name.as_ref(), flags, Mode::empty())?.into()))
}

/// Opens the file of exactly this name: a single component, never a link.
pub(super) fn open_file_itself(dir: &Dir, name: impl AsRef<OsStr>) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from_std(openat(dir, name.as_ref(), flags, Mode::empty())?.into()))
}

/// The names in a directory, and what each of them is.
pub(super) fn names(
    dir: &Dir,
) -> io::Result<impl Iterator<Item = io::Result<(OsString, EntryKind)>>> {
    let entries = rustix::fs::Dir::read_from(dir)?;
    Ok(entries.filter_map(|entry| match entry {
        Err(err) => Some(Err(err.into())),
        Ok(entry) => {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let kind = || match entry.file_type() {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Dir,
                FileType::Symlink => EntryKind::Symlink,
                // Some file systems do not say; what is gone by now is nothing to anybody.
                FileType::Unknown => dir
                    .symlink_metadata(name)
                    .map_or(EntryKind::Other, |metadata| EntryKind::of(metadata.file_type())),
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice => EntryKind::Other,
            };
            (name != "." && name != "..").then(|| Ok((name.to_owned(), kind())))
        }
    }))
}

/// Whether the system refused to follow a link.
pub(super) fn is_link_refusal(err: &io::Error) -> bool {
    err.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// What tells a file from every other.
pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether nobody may write the file.
pub(super) fn is_read_only(metadata: &Metadata) -> bool {
    metadata.mode() & WRITE_BITS == 0
}

/// The mode of a file as what replaces it has it: no bit that changes who a program runs as.
pub(super) fn kept_mode(of: &Metadata) -> u32 {
    of.mode() & KEPT_BITS
}

/// The mode of a new file in a directory: read by whom the directory is read, written by its owner.
pub(super) fn new_mode(dir: &Dir) -> io::Result<u32> {
    Ok(PRIVATE | (dir.dir_metadata()?.mode() & OTHERS_READ_BITS))
}

/// A mode with or without the right to run the file, for whoever may read it.
pub(super) fn executable(mode: u32, is_executable: bool) -> u32 {
    match is_executable {
        true => mode | (mode & READ_BITS) >> 2,
        false => mode & !RUN_BITS,
    }
}

/// Gives a file this mode, whatever the mask of the process is.
pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives a new file the owner of the one that it replaces, and a mode.
pub(super) fn take_after(file: &File, of: &Metadata, mode: u32) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (of.uid(), of.gid()) {
        fchown(file, Some(of.uid()), Some(of.gid()))?;
    }
    set_mode(file, mode)
}

/// Renames to a name that nothing has: whatever has it meanwhile is left alone.
///
/// Returns why the old name is still there, too, where only the new one could be made.
pub(super) fn rename_new(
    from_dir: &Dir,
    from: &str,
    to_dir: &Dir,
    to: &str,
) -> io::Result<Option<io::Error>> {
    match renamed_with(from_dir, from, to_dir, to, Flag::NoReplace) {
        // Some file systems know no such flag. A link appears only where there is nothing, too.
        Err(err) if err.kind() == io::ErrorKind::InvalidInput => {
            from_dir.hard_link(from, to_dir, to)?;
            Ok(from_dir.remove_file(from).err())
        }
        renamed => renamed.map(|()| None),
    }
}

/// Lets two names of a directory change places at once.
pub(super) fn exchange(dir: &Dir, one: &str, other: &str) -> io::Result<()> {
    renamed_with(dir, one, dir, other, Flag::Exchange)
}

enum Flag {
    NoReplace,
    Exchange,
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn renamed_with(from_dir: &Dir, from: &str, to_dir: &Dir, to: &str, flag: Flag) -> io::Result<()> {
    let flags = match flag {
        Flag::NoReplace => rustix::fs::RenameFlags::NOREPLACE,
        Flag::Exchange => rustix::fs::RenameFlags::EXCHANGE,
    };
    Ok(rustix::fs::renameat_with(from_dir, from, to_dir, to, flags)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn renamed_with(_: &Dir, _: &str, _: &Dir, _: &str, _: Flag) -> io::Result<()> {
    Err(io::ErrorKind::InvalidInput.into())
}

/// Creates a folder of this process alone.
pub(super) fn create_private_dir(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(PRIVATE_DIR).create(folder)
}
