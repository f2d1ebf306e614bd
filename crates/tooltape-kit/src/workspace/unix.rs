//! The few system calls that `cap-std` does not offer.

use std::io;
use std::os::unix::fs::fchown;

use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use cap_std::fs::{Permissions, PermissionsExt};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// The bits that let somebody write.
const WRITE_BITS: u32 = 0o222;
/// The bits of a mode that a replaced file keeps: none that change who a program runs as.
const KEPT_BITS: u32 = 0o777;
/// The mode of a file that is not finished.
const PRIVATE: u32 = 0o600;

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
pub(super) fn open_dir_itself(dir: &Dir, name: &str) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(Dir::from_std_file(openat(dir, name, flags, Mode::empty())?.into()))
}

/// Opens the file of exactly this name: a single component, never a link.
pub(super) fn open_file_itself(dir: &Dir, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from_std(openat(dir, name, flags, Mode::empty())?.into()))
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

/// Gives a new file the owner and the mode of the one that it replaces.
pub(super) fn take_after(file: &File, of: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (of.uid(), of.gid()) {
        fchown(file, Some(of.uid()), Some(of.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(of.mode() & KEPT_BITS))
}
