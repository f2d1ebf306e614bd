//! Systems where no workspace opens, because its handle is not known to hold.

use std::ffi::{OsStr, OsString};
use std::io;
use std::iter;

use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::EntryKind;

pub(super) fn check_supported() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn reading() -> OpenOptions {
    OpenOptions::new()
}

pub(super) fn creating() -> OpenOptions {
    OpenOptions::new()
}

pub(super) fn open_dir_itself(_: &Dir, _: impl AsRef<OsStr>) -> io::Result<Dir> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn open_file_itself(_: &Dir, _: impl AsRef<OsStr>) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn names(
    _: &Dir,
) -> io::Result<impl Iterator<Item = io::Result<(OsString, EntryKind)>>> {
    Ok(iter::empty())
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

pub(super) fn kept_mode(_: &Metadata) -> u32 {
    0
}

pub(super) fn new_mode(_: &Dir) -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn executable(mode: u32, _: bool) -> u32 {
    mode
}

pub(super) fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn take_after(_: &File, _: &Metadata, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn rename_new(_: &Dir, _: &str, _: &Dir, _: &str) -> io::Result<Option<io::Error>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn exchange(_: &Dir, _: &str, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A folder of this process alone.
pub(super) fn create_private_dir(_: &std::path::Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
