//! The tools as they are usually written, which shows that the attacks bite.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Joins, and compares the beginning of the text.
pub(crate) fn resolve(root: &Path, path: &str) -> io::Result<PathBuf> {
    let full = root.join(path);
    match full.to_string_lossy().starts_with(&*root.to_string_lossy()) {
        true => Ok(full),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

pub(crate) fn list_dir(root: &Path, path: &str) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(resolve(root, path)?)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

pub(crate) fn read_file(root: &Path, path: &str) -> io::Result<String> {
    fs::read_to_string(resolve(root, path)?)
}

/// Reads, replaces, and writes in place.
pub(crate) fn edit_file(root: &Path, path: &str, old: &str, new: &str) -> io::Result<()> {
    let full = resolve(root, path)?;
    let text = fs::read_to_string(&full)?;
    fs::write(&full, text.replace(old, new))
}

/// Resolves links first, then checks, then opens: right until somebody is quick.
pub(crate) fn read_checked(root: &Path, path: &str) -> io::Result<String> {
    let full = root.join(path);
    match fs::canonicalize(&full)?.starts_with(root) {
        true => fs::read_to_string(&full),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Creates or replaces, through whatever is there, with a temporary name that anybody can guess.
pub(crate) fn write_file(root: &Path, path: &str, text: &str) -> io::Result<()> {
    let full = resolve(root, path)?;
    if let Some(parent) = full.parent() {
        fs::create_dir_all(parent)?;
    }
    let guessed = full.with_extension("tmp");
    fs::write(&guessed, text)?;
    fs::copy(&guessed, &full)?;
    fs::remove_file(&guessed)
}

/// Checks both names by their text, and renames.
pub(crate) fn move_file(root: &Path, from: &str, to: &str) -> io::Result<()> {
    fs::rename(resolve(root, from)?, resolve(root, to)?)
}
