//! What a directory holds, in an order that does not depend on the file system.

use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, ErrorKind};

use cap_std::fs::{Dir, FileType};
use serde::Serialize;
use tooltape::schemars::JsonSchema;

use super::permit::Links;
use super::{Workspace, WorkspaceError, WorkspacePath, system};

/// The most entries of a directory that are listed.
pub const ENTRIES_MAX: usize = 1_000;
/// The most entries of a directory that are read to find the first [`ENTRIES_MAX`] of them.
pub const ENTRIES_SCANNED_MAX: u64 = 1_000_000;

/// What a directory holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[non_exhaustive]
pub struct Listing {
    /// The directory's path, relative to the workspace.
    pub path: WorkspacePath,
    /// The first entries, ordered by the bytes of their names.
    pub entries: Vec<Entry>,
    /// How many entries the directory has.
    pub total: u64,
    /// Whether there are more entries than are listed.
    pub truncated: bool,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[non_exhaustive]
pub struct Entry {
    /// Its name, or its path from the directory on where it is deeper. Bytes that are not UTF-8
    /// are shown as U+FFFD.
    pub name: String,
    /// What it is. Symbolic links are not followed.
    pub kind: EntryKind,
    /// The bytes of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// What an entry of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A pipe, socket or device.
    Other,
}

impl EntryKind {
    pub(super) fn of(file_type: FileType) -> EntryKind {
        match file_type {
            _ if file_type.is_file() => EntryKind::File,
            _ if file_type.is_dir() => EntryKind::Dir,
            _ if file_type.is_symlink() => EntryKind::Symlink,
            _ => EntryKind::Other,
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EntryKind::File => "a regular file",
            EntryKind::Dir => "a directory",
            EntryKind::Symlink => "a symbolic link",
            EntryKind::Other => "a pipe, socket or device",
        })
    }
}

impl Workspace {
    /// Lists a directory: the first [`ENTRIES_MAX`] entries by the bytes of their names.
    ///
    /// Symbolic links on the way are followed by the host as long as they stay inside, and never by
    /// a call.
    pub fn list(&self, path: &WorkspacePath) -> Result<Listing, WorkspaceError> {
        let dir = match self.may_read(path)? {
            Links::Followed => {
                let opened = self.root.open_dir(path.as_str());
                opened.map_err(|source| self.no_dir(path, source))?
            }
            Links::NotFollowed => self.open_dir_itself(path)?,
        };
        let (names, total) = first_names(path, &dir)?;
        let mut entries = Vec::with_capacity(names.len());
        for name in &names {
            entries.extend(entry(path, &dir, name)?);
        }
        self.seen.listed(&self.root, path, entries.iter().map(|entry: &Entry| &*entry.name));
        let truncated = total > names.len() as u64;
        Ok(Listing { path: path.clone(), entries, total, truncated })
    }
}

impl Workspace {
    /// Opens a directory. No symbolic link is followed on the way.
    fn open_dir_itself(&self, path: &WorkspacePath) -> Result<Dir, WorkspaceError> {
        let root = system::open_dir_itself(&self.root, ".");
        let mut dir = root.map_err(|source| WorkspaceError::from_io(path, source))?;
        for name in path.components() {
            dir = system::open_dir_itself(&dir, name).map_err(|source| {
                match dir.symlink_metadata(name).is_ok_and(|found| found.is_symlink()) {
                    true => self.linked(path),
                    false => self.no_dir(path, source),
                }
            })?;
        }
        Ok(dir)
    }

    /// Says what is there that is no directory.
    fn no_dir(&self, path: &WorkspacePath, source: io::Error) -> WorkspaceError {
        match self.root.metadata(path.as_str()).map(|found| EntryKind::of(found.file_type())) {
            Ok(found) if source.kind() == ErrorKind::NotADirectory => {
                let expected = EntryKind::Dir;
                WorkspaceError::Kind { path: path.clone(), found, expected }
            }
            Ok(_) | Err(_) => WorkspaceError::from_io(path, source),
        }
    }
}

/// The first names in order and the number of all, in memory for no more than the first.
fn first_names(path: &WorkspacePath, dir: &Dir) -> Result<(Vec<OsString>, u64), WorkspaceError> {
    let refused = |source| WorkspaceError::from_io(path, source);
    let mut names = BinaryHeap::with_capacity(ENTRIES_MAX + 1);
    let mut total = 0;
    for entry in dir.entries().map_err(refused)? {
        total += 1;
        if total > ENTRIES_SCANNED_MAX {
            return Err(WorkspaceError::TooManyEntries { path: path.clone() });
        }
        names.push(entry.map_err(refused)?.file_name());
        if names.len() > ENTRIES_MAX {
            names.pop();
        }
    }
    Ok((names.into_sorted_vec(), total))
}

/// Looks at an entry, which may be gone by now.
fn entry(path: &WorkspacePath, dir: &Dir, name: &OsStr) -> Result<Option<Entry>, WorkspaceError> {
    let metadata = match dir.symlink_metadata(name) {
        Ok(metadata) => metadata,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(WorkspaceError::from_io(path, err)),
    };
    let kind = EntryKind::of(metadata.file_type());
    let size = (kind == EntryKind::File).then(|| metadata.len());
    Ok(Some(Entry { name: name.to_string_lossy().into_owned(), kind, size }))
}
