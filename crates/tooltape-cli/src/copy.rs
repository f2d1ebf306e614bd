//! Copies a folder for a run to work on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most files and folders of one copy.
pub(crate) const COPY_FILES_MAX: usize = 10_000;
/// The most bytes of one copy.
pub(crate) const COPY_BYTES_MAX: u64 = 256 << 20;
/// The deepest folder of one copy.
pub(crate) const COPY_DEPTH_MAX: usize = 64;

/// Copies the files and folders below `from` into `to`, which must not be there.
///
/// Links are refused: a copy that follows them could hold anything, one that keeps them could be
/// left through them. Where it fails, what was copied is taken away again.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::create_dir(to)?;
    let mut copy = Copy { files: 0, bytes: 0 };
    let copied = copy.folder(from, to, 0);
    if copied.is_err() {
        fs::remove_dir_all(to)?;
    }
    copied
}

struct Copy {
    files: usize,
    bytes: u64,
}

impl Copy {
    fn folder(&mut self, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
        if depth > COPY_DEPTH_MAX {
            return Err(refused(from, format!("is more than {COPY_DEPTH_MAX} folders deep")));
        }
        let mut paths: Vec<PathBuf> =
            fs::read_dir(from)?.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>()?;
        paths.sort();
        for path in paths {
            self.files += 1;
            if self.files > COPY_FILES_MAX {
                return Err(refused(from, format!("holds more than {COPY_FILES_MAX} files")));
            }
            let Some(name) = path.file_name() else { continue };
            let target = to.join(name);
            let metadata = path.symlink_metadata()?;
            if metadata.is_dir() {
                fs::create_dir(&target)?;
                self.folder(&path, &target, depth + 1)?;
            } else if metadata.is_file() {
                self.bytes += metadata.len();
                if self.bytes > COPY_BYTES_MAX {
                    return Err(refused(from, format!("holds more than {COPY_BYTES_MAX} bytes")));
                }
                fs::copy(&path, &target)?;
            } else {
                return Err(refused(&path, "is neither a file nor a folder".to_owned()));
            }
        }
        Ok(())
    }
}

fn refused(path: &Path, why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` {why}", path.display()))
}
