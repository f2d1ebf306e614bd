//! Protected names in a workspace that a process may write: none is changed, and none is made.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, chmodat, openat2,
    renameat_with, statat,
};
use rustix::io::Errno;

use super::SetAside;
use crate::workspace::protected;

/// The most entries of a workspace that is searched for protected names.
pub(super) const SWEPT_MAX: usize = 2_000_000;
/// The most protected names of a workspace, each of which becomes a mount.
pub(super) const HELD_MAX: usize = 512;
/// How many names are tried for what is renamed.
const ASIDE_TRIES_MAX: u32 = 1_000;

/// What tells a file from every other.
type Identity = (u64, u64);

/// The protected names of a workspace before a process ran in it.
pub(super) struct Sweep {
    root: OwnedFd,
    before: HashSet<Identity>,
}

/// What a process must find as it is.
pub(super) struct Held {
    /// Its path, relative to the workspace.
    pub(super) path: OsString,
    /// A handle of exactly this.
    pub(super) handle: OwnedFd,
}

impl Sweep {
    /// Finds all there are, and a handle for each that can be mounted.
    pub(super) fn before(root: OwnedFd) -> Result<(Sweep, Vec<Held>), String> {
        let (mut before, mut held) = (HashSet::new(), Vec::new());
        let told = |path: &OsStr, err: io::Error| format!("`{}`: {err}", path.to_string_lossy());
        let found = walk(&root, Unreadable::Found)?;
        for path in found {
            let opened = identity(&root, &path).and_then(|(dev, ino, kind)| {
                before.insert((dev, ino));
                let is_link = kind == FileType::Symlink;
                let flags = OFlags::PATH | OFlags::NOFOLLOW;
                if is_link { Ok(None) } else { open(&root, &path, flags).map(Some) }
            });
            match opened {
                Ok(Some(handle)) => held.push(Held { path, handle }),
                Ok(None) => {}
                // Another process of the workspace ended meanwhile.
                Err(err) if err.kind() == io::ErrorKind::NotFound => {}
                Err(err) => return Err(told(&path, err)),
            }
        }
        match held.len() {
            0..=HELD_MAX => Ok((Sweep { root, before }, held)),
            count => Err(format!("it has {count} protected names, expected at most {HELD_MAX}")),
        }
    }

    /// Gives everything another name that has a protected one and was not there before.
    pub(super) fn after(&self) -> Vec<SetAside> {
        let found = match walk(&self.root, Unreadable::Opened) {
            Ok(found) => found,
            Err(why) => return vec![SetAside { path: why, now: None }],
        };
        let is_new = |path: &OsString| {
            let known = identity(&self.root, path).map(|(dev, ino, _)| (dev, ino));
            known.is_ok_and(|known| !self.before.contains(&known))
        };
        let set_aside = |path: OsString| {
            let now = aside(&self.root, &path).ok();
            let shown = |path: OsString| path.to_string_lossy().into_owned();
            SetAside { path: shown(path), now: now.map(shown) }
        };
        found.into_iter().filter(is_new).map(set_aside).collect()
    }
}

/// What becomes of a folder that cannot be read.
#[derive(Clone, Copy, PartialEq)]
enum Unreadable {
    /// It counts as protected: nobody knows what is in it.
    Found,
    /// It is made readable, since whoever made it so may have hidden something.
    Opened,
}

/// The paths of all protected names. What is below one of them belongs to it.
fn walk(root: &OwnedFd, unreadable: Unreadable) -> Result<Vec<OsString>, String> {
    let (mut found, mut waiting, mut swept) = (Vec::new(), vec![OsString::new()], 0);
    while let Some(folder) = waiting.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = match open(root, &folder, flags) {
            Err(err) if err.kind() == io::ErrorKind::PermissionDenied => match unreadable {
                Unreadable::Found => {
                    found.push(folder);
                    continue;
                }
                Unreadable::Opened => {
                    let _ = chmodat(root, &folder, Mode::RWXU, AtFlags::empty());
                    open(root, &folder, flags)
                }
            },
            opened => opened,
        };
        // What vanishes meanwhile, or is deeper than any path, nobody will find either.
        let Ok(opened) = opened else { continue };
        let Ok(entries) = Dir::new(opened) else { continue };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            swept += 1;
            if swept > SWEPT_MAX {
                return Err(format!("it has more than {SWEPT_MAX} entries"));
            }
            let path = joined(&folder, name);
            if protected(&name.to_string_lossy()).is_some() {
                found.push(path);
            } else if is_folder(root, &path, entry.file_type()) {
                waiting.push(path);
            }
        }
    }
    Ok(found)
}

fn is_folder(root: &OwnedFd, path: &OsStr, kind: FileType) -> bool {
    match kind {
        FileType::Directory => true,
        // Some file systems do not say.
        FileType::Unknown => identity(root, path).is_ok_and(|it| it.2 == FileType::Directory),
        FileType::RegularFile
        | FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice => false,
    }
}

fn joined(folder: &OsStr, name: &OsStr) -> OsString {
    let mut path = folder.as_bytes().to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend(name.as_bytes());
    OsString::from_vec(path)
}

/// Opens what is at a path, through no link.
fn open(root: &OwnedFd, path: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { OsStr::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

fn identity(root: impl AsFd, path: &OsStr) -> io::Result<(u64, u64, FileType)> {
    let stat = statat(root, path, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((stat.st_dev, stat.st_ino, FileType::from_raw_mode(stat.st_mode)))
}

/// Gives something a name that means nothing to anybody.
fn aside(root: &OwnedFd, path: &OsStr) -> io::Result<OsString> {
    let bytes = path.as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'/');
    let (folder, name) = match at {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])),
        None => (OsStr::new(""), path),
    };
    let parent = open(root, folder, OFlags::PATH | OFlags::DIRECTORY)?;
    let mut is_opened = false;
    let mut number = 1;
    while number <= ASIDE_TRIES_MAX {
        let mut harmless = b"set-aside.".to_vec();
        harmless.extend(number.to_string().into_bytes());
        let harmless = OsString::from_vec(harmless);
        match renameat_with(&parent, name, &parent, &harmless, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(joined(folder, &harmless)),
            Err(Errno::EXIST) => number += 1,
            Err(Errno::ACCESS | Errno::PERM) if !is_opened => {
                is_opened = true;
                let folder = if folder.is_empty() { OsStr::new(".") } else { folder };
                chmodat(root, folder, Mode::RWXU, AtFlags::empty())?;
            }
            Err(err) => return Err(err.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
