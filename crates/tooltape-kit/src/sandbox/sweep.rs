//! Protected names in a workspace that a process may write: none is changed, and none is made.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, chmod, fstat, openat,
    openat2, renameat_with, statat,
};
use rustix::io::Errno;
use tooltape::Random;

use super::SetAside;
use crate::workspace::{HEAD, protected};

/// The most entries of a workspace that is searched for protected names.
pub(super) const SWEPT_MAX: usize = 2_000_000;
/// The most protected names of a workspace, each of which becomes a mount.
pub(super) const HELD_MAX: usize = 512;
/// How many names are tried for what is renamed; nobody can guess a single one.
const ASIDE_TRIES_MAX: usize = 8;

/// What tells a file from every other that is there at the same time.
type Identity = (u64, u64, FileType);

/// The protected names of a workspace before a process ran in it.
pub(super) struct Sweep {
    root: OwnedFd,
    before: HashMap<OsString, Identity>,
}

/// What a process must find as it is.
pub(super) struct Held {
    /// Its path, relative to the workspace.
    pub(super) path: OsString,
    /// A handle of exactly this.
    pub(super) handle: OwnedFd,
}

impl Sweep {
    /// Finds all there are, and a handle for each.
    ///
    /// Fails where one of them could be changed in spite of that.
    pub(super) fn before(root: OwnedFd) -> Result<(Sweep, Vec<Held>), String> {
        let (mut before, mut held) = (HashMap::new(), Vec::new());
        for path in all(&root)? {
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            let opened = open(&root, &path, flags);
            let found = opened.and_then(|handle| Ok((fstat(&handle)?, handle)));
            let (stat, handle) = match found {
                Ok(found) => found,
                // Another process of the workspace ended meanwhile.
                Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
                // A link is not opened.
                Err(err) if err.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                    return Err(linked(&path));
                }
                Err(err) => return Err(told(&path, &err)),
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => return Err(linked(&path)),
                // Package managers share the files of packages, which nobody obeys there.
                FileType::RegularFile if stat.st_nlink > 1 && !is_packaged(&path) => {
                    return Err(shared(&path));
                }
                _ => {}
            }
            before.insert(path.clone(), identity(&stat));
            held.push(Held { path, handle });
        }
        match held.len() {
            0..=HELD_MAX => Ok((Sweep { root, before }, held)),
            count => Err(format!("it has {count} protected names, expected at most {HELD_MAX}")),
        }
    }

    /// Gives everything another name that has a protected one and was not there before.
    ///
    /// What may still be in its place is told without a new name.
    pub(super) fn after(&self) -> Vec<SetAside> {
        let random = Random::system();
        let (mut told, mut waiting, mut left) = (Vec::new(), vec![OsString::new()], SWEPT_MAX);
        while let Some(folder) = waiting.pop() {
            if left == 0 {
                told.push(SetAside { path: shown(&folder), now: None });
                break;
            }
            let is_same = |it: Identity| self.before.get(&folder) == Some(&it);
            let listed = handle(&self.root, &folder).and_then(|handle| {
                // Nobody could write what was held, nor is what is in there any news.
                match is_same(identity(&fstat(&handle)?)) {
                    true => Ok(Listed::default()),
                    false => list(&handle, Unreadable::Opened, &mut left),
                }
            });
            let listed = match listed {
                Ok(listed) => listed,
                Err(err) if is_gone(&err) => continue,
                Err(_) => Listed { is_whole: false, ..Listed::default() },
            };
            if !listed.is_whole {
                told.push(SetAside { path: shown(&folder), now: None });
            }
            waiting.extend(listed.folders.iter().map(|name| joined(&folder, name)));
            for name in listed.protected {
                let path = joined(&folder, &name);
                if self.is_known(&path) {
                    continue;
                }
                let now = aside(&self.root, &folder, &name, &random);
                if now.as_ref().is_err_and(is_gone) {
                    continue;
                }
                // Under a harmless name, it may be a folder with protected names in it.
                let is_folder = |now: &OsString| {
                    let stat = statat(&self.root, now, AtFlags::SYMLINK_NOFOLLOW);
                    stat.map_or(true, |stat| identity(&stat).2 == FileType::Directory)
                };
                waiting.extend(now.as_ref().ok().filter(|now| is_folder(now)).cloned());
                told.push(SetAside { path: shown(&path), now: now.ok().as_deref().map(shown) });
            }
        }
        told
    }

    /// Whether something is what it was before; what cannot be looked at is not.
    fn is_known(&self, path: &OsStr) -> bool {
        let stat = statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| self.before.get(path) == Some(&identity(&stat)))
    }
}

/// Whether there is no such folder any more: another process of the workspace changed it, and
/// what that one leaves behind is looked at when it ends.
fn is_gone(err: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(Errno::raw_os_error);
    err.raw_os_error().is_some_and(|err| gone.contains(&err))
}

fn told(path: &OsStr, err: &io::Error) -> String {
    format!("`{}`: {err}", shown(path))
}

fn linked(path: &OsStr) -> String {
    let why = "so what its protected name stands for could be changed elsewhere";
    format!("`{}` is a symbolic link, {why}; expected a file or a folder", shown(path))
}

/// Whether it belongs to a package that somebody else wrote and nobody works in.
fn is_packaged(path: &OsStr) -> bool {
    path.as_encoded_bytes().split(|byte| *byte == b'/').any(|name| name == b"node_modules")
}

fn shared(path: &OsStr) -> String {
    let why = "so it could be changed by a name that is not protected";
    format!("`{}` is a file with more than one name, {why}; expected a copy", shown(path))
}

fn shown(path: &OsStr) -> String {
    if path.is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// The paths of all that a process must find as it is. What is below one belongs to it.
fn all(root: &OwnedFd) -> Result<Vec<OsString>, String> {
    let (mut found, mut waiting, mut left) = (Vec::new(), vec![OsString::new()], SWEPT_MAX);
    while let Some(folder) = waiting.pop() {
        let listed =
            handle(root, &folder).and_then(|handle| list(&handle, Unreadable::Refused, &mut left));
        match listed {
            Ok(listed) if !listed.is_whole => {
                return Err(format!("it has more than {SWEPT_MAX} entries"));
            }
            // All of a repository is obeyed, not just the file that makes it one.
            Ok(listed) if listed.protected.iter().any(|name| name == HEAD) => {
                if folder.is_empty() {
                    let why = "which makes it a repository of git itself";
                    return Err(format!("it holds a file `{HEAD}`, {why}"));
                }
                found.push(folder);
            }
            Ok(listed) => {
                found.extend(listed.protected.iter().map(|name| joined(&folder, name)));
                waiting.extend(listed.folders.iter().map(|name| joined(&folder, name)));
            }
            Err(err) if is_gone(&err) => {}
            // Nobody knows what is in it.
            Err(err) if err.kind() == io::ErrorKind::PermissionDenied && !folder.is_empty() => {
                found.push(folder);
            }
            Err(err) => return Err(told(&folder, &err)),
        }
    }
    Ok(found)
}

/// What becomes of a folder that cannot be read.
#[derive(Clone, Copy, PartialEq)]
enum Unreadable {
    /// It stays as it is.
    Refused,
    /// It is made readable, since whoever made it so may have hidden something.
    Opened,
}

/// The names in a folder that matter.
struct Listed {
    protected: Vec<OsString>,
    folders: Vec<OsString>,
    is_whole: bool,
}

impl Default for Listed {
    fn default() -> Listed {
        Listed { protected: Vec::new(), folders: Vec::new(), is_whole: true }
    }
}

/// Looks at as many entries of a folder as are left to be looked at.
fn list(handle: &OwnedFd, unreadable: Unreadable, left: &mut usize) -> io::Result<Listed> {
    let opened = match readable(handle) {
        Err(Errno::ACCESS | Errno::PERM) if unreadable == Unreadable::Opened => {
            make_ours(handle)?;
            readable(handle)?
        }
        opened => opened?,
    };
    let mut listed = Listed::default();
    // The file system says what it takes for this name.
    let is_folder = |name: &OsStr| match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(identity(&stat).2 == FileType::Directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(err) => Err(err),
    };
    if is_folder(HEAD.as_ref())? == Some(false) {
        listed.protected.push(HEAD.into());
    }
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if *left == 0 {
            listed.is_whole = false;
            break;
        }
        *left -= 1;
        if protected(&name.to_string_lossy()).is_some() {
            listed.protected.push(name.to_owned());
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            // Some file systems do not say.
            FileType::Unknown => is_folder(name)? == Some(true),
            FileType::RegularFile
            | FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice => false,
        };
        if is_folder {
            listed.folders.push(name.to_owned());
        }
    }
    Ok(listed)
}

/// Opens a folder whose names can be both read and looked up.
fn readable(handle: &OwnedFd) -> Result<OwnedFd, Errno> {
    // The look at the folder itself needs what a look at anything in it does.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(handle, ".", flags, Mode::empty())
}

/// Lets us, and nobody else, do everything in a folder.
fn make_ours(handle: &OwnedFd) -> Result<(), Errno> {
    // By its number, since a folder that cannot be entered has no name for itself.
    chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::RWXU)
}

/// A handle of a folder, whatever its mode is.
fn handle(root: &OwnedFd, folder: &OsStr) -> io::Result<OwnedFd> {
    match folder.is_empty() {
        true => root.try_clone(),
        false => open(root, folder, OFlags::PATH | OFlags::DIRECTORY),
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
fn open(root: impl AsFd, path: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino, FileType::from_raw_mode(stat.st_mode))
}

/// Gives something a name that means nothing to anybody.
fn aside(root: &OwnedFd, folder: &OsStr, name: &OsStr, random: &Random) -> io::Result<OsString> {
    let parent = handle(root, folder)?;
    let mut refused = Errno::EXIST;
    for _ in 0..ASIDE_TRIES_MAX {
        let harmless = OsString::from(format!("set-aside.{:016x}", random.next_u64()));
        match renameat_with(&parent, name, &parent, &harmless, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(joined(folder, &harmless)),
            Err(err @ (Errno::ACCESS | Errno::PERM)) => {
                refused = err;
                make_ours(&parent)?;
            }
            Err(err) => refused = err,
        }
    }
    Err(refused.into())
}
