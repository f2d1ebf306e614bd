//! Files of ours that nobody else may have written: read with care, replaced whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Makes a folder that only its owner can enter, and looks whether it is one.
pub(crate) fn folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)?;
    check_folder(folder)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Refuses a folder that somebody else could have written to.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
    let metadata = folder.symlink_metadata()?;
    match metadata.is_dir() {
        true => check_private(folder, &metadata),
        false => Err(io::Error::other("it is a link, expected a folder")),
    }
}

/// Whether a folder is another or is below it, wherever links lead.
pub(crate) fn is_below(folder: &Path, root: &Path) -> bool {
    let exists = folder.ancestors().find_map(|it| it.canonicalize().ok());
    let real = exists.unwrap_or_else(|| folder.to_owned());
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    // Whoever can write to a folder above it can put another in its place.
    real.starts_with(&root) || folder.starts_with(&root)
}

/// Refuses what somebody else could have written.
#[cfg_attr(not(unix), allow(clippy::unnecessary_wraps, unused_variables))]
fn check_private(path: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        let owner = std::os::unix::fs::MetadataExt::uid(metadata);
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other(format!("`{}` is somebody else's", path.display())));
        }
        if mode & 0o022 != 0 {
            let why = format!("others may write to `{}`: `chmod go-w` it", path.display());
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// Refuses a link, also one that was put there since.
#[cfg_attr(not(unix), allow(clippy::unnecessary_wraps, unused_variables))]
fn same_file(file: &File, path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let (opened, named) = (file.metadata()?, path.symlink_metadata()?);
        let is_same = (opened.dev(), opened.ino()) == (named.dev(), named.ino());
        if !is_same || !opened.is_file() {
            return Err(io::Error::other("it is a link or no file, expected a plain file"));
        }
    }
    Ok(())
}

/// Opens a file that holds nothing, such as a lock, and makes it where there is none.
pub(crate) fn file(path: &Path) -> io::Result<File> {
    let file = options().create(true).truncate(false).open(path)?;
    same_file(&file, path)?;
    Ok(file)
}

/// The text of a file, of at most so many bytes; nothing, where there is none.
pub(crate) fn text(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    let mut text = String::new();
    let read = path.symlink_metadata().and_then(|metadata| {
        // To open a pipe is to wait for whoever writes to it.
        if !metadata.is_file() {
            return Err(io::Error::other("it is a link or no file, expected a plain file"));
        }
        let file = File::open(path)?;
        same_file(&file, path)?;
        check_private(path, &file.metadata()?)?;
        file.take(bytes_max + 1).read_to_string(&mut text)
    });
    match read {
        Err(err) if is_missing(&err) => Ok(None),
        Err(err) => Err(err),
        Ok(bytes) if bytes as u64 > bytes_max => {
            Err(io::Error::other(format!("it has more than {bytes_max} bytes")))
        }
        Ok(_) => Ok(Some(text)),
    }
}

/// Puts a text in the place of what a file holds, whole or not at all.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    // What a crash left behind.
    let _nothing = fs::remove_file(&fresh);
    let mut file = options().create_new(true).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    File::open(path.parent().unwrap_or(path))?.sync_all()
}

/// Whether there is no such file, or no folder that could hold it.
pub(crate) fn is_missing(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
