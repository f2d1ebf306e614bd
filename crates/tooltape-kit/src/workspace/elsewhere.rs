//! Systems where no workspace opens, because its handle is not known to hold.

use std::io;

use cap_std::fs::{Dir, File, Metadata, OpenOptions};

pub(super) fn check_supported() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn reading() -> OpenOptions {
    OpenOptions::new()
}

pub(super) fn creating() -> OpenOptions {
    OpenOptions::new()
}

pub(super) fn open_dir_itself(_: &Dir, _: &str) -> io::Result<Dir> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn open_file_itself(_: &Dir, _: &str) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn is_link_refusal(_: &io::Error) -> bool {
    false
}

pub(super) fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

pub(super) fn is_read_only(_: &Metadata) -> bool {
    true
}

pub(super) fn take_after(_: &File, _: &Metadata) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
