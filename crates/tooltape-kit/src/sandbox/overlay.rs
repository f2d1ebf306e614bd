//! A workspace that only seems to change: writes go to memory, and are listed at the end.

use std::ffi::{CString, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::getxattr;
use rustix::mount::{MountFlags, mount};

use super::change::{CHANGES_BYTES_MAX, CHANGES_MAX, ChangeKind, FileChange};
use super::protocol::WORKSPACE;

/// The workspace as it is.
pub(super) const LOWER: &str = "/run/lower";
/// What holds the changes.
pub(super) const OVER: &str = "/run/over";

/// Puts the changes of everybody within over the workspace.
pub(super) fn cover() -> Result<(), String> {
    let (upper, work) = (format!("{OVER}/upper"), format!("{OVER}/work"));
    for folder in [&upper, &work] {
        fs::create_dir(folder).map_err(|err| format!("`{folder}`: {err}"))?;
    }
    let options = format!("lowerdir={LOWER},upperdir={upper},workdir={work},userxattr");
    let options = CString::new(options).map_err(|err| err.to_string())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", WORKSPACE, "overlay", flags, Some(options.as_c_str()))
        .map_err(|err| format!("an overlay of the workspace: {err}"))
}

/// What changed, and whether that is all of it.
pub(super) fn changes() -> (Vec<FileChange>, bool) {
    let mut found = Found { changes: Vec::new(), bytes: 0, is_whole: true };
    let upper = PathBuf::from(OVER).join("upper");
    if found.look(&upper, Path::new("")).is_err() {
        found.is_whole = false;
    }
    (found.changes, found.is_whole)
}

struct Found {
    changes: Vec<FileChange>,
    bytes: usize,
    is_whole: bool,
}

impl Found {
    /// Looks at what is in a folder that was changed.
    fn look(&mut self, upper: &Path, folder: &Path) -> io::Result<()> {
        let lower = Path::new(LOWER);
        let names = sorted(&upper.join(folder))?;
        if is_opaque(&upper.join(folder)) {
            // Whatever was in it before is hidden.
            for name in sorted(&lower.join(folder)).into_iter().flatten() {
                if !names.contains(&name) {
                    self.gone(&folder.join(name));
                }
            }
        }
        for name in names {
            let path = folder.join(name);
            let (metadata, before) =
                (upper.join(&path).symlink_metadata()?, lower.join(&path).symlink_metadata().ok());
            let kind = match &before {
                None => ChangeKind::Created,
                Some(_) => ChangeKind::Changed,
            };
            let file_type = metadata.file_type();
            if file_type.is_char_device() && metadata.rdev() == 0 {
                self.gone(&path);
            } else if file_type.is_dir() {
                if !before.is_some_and(|before| before.is_dir()) {
                    self.add(&path, kind, None);
                }
                self.look(upper, &path)?;
            } else {
                let text = file_type.is_file().then(|| self.text(&upper.join(&path))).flatten();
                self.add(&path, kind, text);
            }
        }
        Ok(())
    }

    /// Lists what was at a path, and below it, as deleted.
    fn gone(&mut self, path: &Path) {
        let lower = Path::new(LOWER).join(path);
        if lower.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) && self.is_whole {
            sorted(&lower).into_iter().flatten().for_each(|name| self.gone(&path.join(name)));
        }
        self.add(path, ChangeKind::Deleted, None);
    }

    fn add(&mut self, path: &Path, kind: ChangeKind, text: Option<String>) {
        match path.to_str() {
            Some(path) if self.changes.len() < CHANGES_MAX => {
                self.changes.push(FileChange { path: path.to_owned(), kind, text });
            }
            Some(_) | None => self.is_whole = false,
        }
    }

    fn text(&mut self, path: &Path) -> Option<String> {
        let left = CHANGES_BYTES_MAX - self.bytes;
        let mut bytes = Vec::new();
        fs::File::open(path).ok()?.take(left as u64 + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() > left {
            return None;
        }
        self.bytes += bytes.len();
        String::from_utf8(bytes).ok()
    }
}

fn sorted(folder: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 1];
    getxattr(folder, "user.overlay.opaque", &mut value).is_ok() && value == *b"y"
}
