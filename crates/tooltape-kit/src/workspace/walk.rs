//! A walk over all that is below a directory: by handles, in order, and following no link.

use std::ffi::{OsStr, OsString};
use std::io::{self, Error, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::vec;

use cap_std::fs::{Dir, File};
use ignore::Match;
use ignore::overrides::Override;
use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Cancel, Clock};

use super::ignored::{Ignored, Marks};
use super::permit::Links;
use super::{EntryKind, Workspace, WorkspaceError, WorkspacePath, system};

/// The most entries of all directories that one walk comes to.
pub const WALK_ENTRIES_MAX: u64 = 1_000_000;
/// The deepest that a walk goes: each directory on the way holds a handle.
pub const WALK_DEPTH_MAX: usize = 100;
/// The longest that a walk, with what is done on the way, takes; in milliseconds.
pub const WALK_MS_MAX: u64 = 20_000;

/// How many names are read before the time is looked at again.
const NAMES_PER_LOOK: usize = 1_024;

/// Why not everything is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cut {
    /// There is more than `limit`.
    Limit,
    /// What there is has too many bytes.
    Bytes,
    /// There are too many files and directories.
    Entries,
    /// Some directories are too deep.
    Depth,
    /// It would take too long.
    Time,
}

/// How long somebody waits for a walk.
#[derive(Clone)]
pub(crate) struct Patience {
    clock: Clock,
    cancel: Cancel,
    until_us: u64,
}

impl Patience {
    pub(crate) fn new(clock: Clock, cancel: Cancel) -> Patience {
        let until_us = clock.unix_us().saturating_add(WALK_MS_MAX * 1_000);
        Patience { clock, cancel, until_us }
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.is_requested() || self.clock.unix_us() > self.until_us
    }
}

/// What a walk is to come to.
pub(crate) struct Sight {
    /// Whether names that begin with a dot are seen.
    pub(crate) hidden: bool,
    /// Whether what ignore files name is seen.
    pub(crate) ignored: bool,
    /// What else is not seen; by paths from where the walk begins.
    pub(crate) only: Override,
    /// Names that are seen though they begin with a dot.
    pub(crate) dotted: Override,
    /// How many levels of directories are seen.
    pub(crate) depth: usize,
}

/// Something that a walk came to.
pub(crate) struct Found {
    /// The directory that it is in.
    dir: Arc<Dir>,
    name: OsString,
    /// Its path, as whoever walks would write it.
    pub(crate) path: PathBuf,
    pub(crate) kind: EntryKind,
}

impl Found {
    /// Opens it, if it still is a regular file.
    pub(crate) fn open(&self) -> io::Result<File> {
        let file = system::open_file_itself(&self.dir, &self.name)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(ErrorKind::InvalidInput.into()),
        }
    }

    /// Whether both are in the same directory.
    pub(crate) fn is_beside(&self, other: &Found) -> bool {
        Arc::ptr_eq(&self.dir, &other.dir)
    }

    /// Its bytes, if it is a regular file.
    pub(crate) fn size(&self) -> Option<u64> {
        let metadata = self.dir.symlink_metadata(&self.name).ok()?;
        metadata.is_file().then(|| metadata.len())
    }

    /// Its path from a directory above it on, as text.
    pub(crate) fn below(&self, dir: &WorkspacePath) -> String {
        let path = self.path.strip_prefix(dir.as_str()).unwrap_or(&self.path);
        path.to_string_lossy().into_owned()
    }

    /// Its path as text. Bytes that are not UTF-8 are shown as U+FFFD.
    pub(crate) fn shown(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// A walk that is under way.
pub(crate) struct Walk {
    files: Workspace,
    from: WorkspacePath,
    sight: Sight,
    patience: Patience,
    /// Where it began, without links.
    start: PathBuf,
    /// The directories on the way down to where it is.
    frames: Vec<Frame>,
    /// The one file that it begins and ends with.
    only: Option<Found>,
    entries: u64,
    /// What could not be looked into.
    pub(crate) skipped: u64,
    /// Why it did not come to everything.
    pub(crate) cut: Option<Cut>,
    /// What ended it: the right to read was taken back.
    pub(crate) refusal: Option<WorkspaceError>,
}

/// A directory on the way, and what is left of its entries.
struct Frame {
    dir: Arc<Dir>,
    /// The path by which ignore files name it.
    real: PathBuf,
    /// The path by which whoever walks names it.
    path: PathBuf,
    ignored: Arc<Ignored>,
    left: vec::IntoIter<(OsString, EntryKind)>,
}

impl Workspace {
    /// Walks over all that is below a directory, or comes to a file itself.
    ///
    /// The host's own path may lead through links as long as they stay inside. A call's may not,
    /// and below it none is followed.
    pub(crate) fn walk(
        &self,
        from: &WorkspacePath,
        sight: Sight,
        patience: Patience,
    ) -> Result<Walk, WorkspaceError> {
        let refused = |source| WorkspaceError::from_io(from, source);
        let real = match self.may_read(from)? {
            Links::Followed => self.root.canonicalize(from.as_str()).map_err(refused)?,
            Links::NotFollowed => PathBuf::from(from.as_str()),
        };
        // Rules that stand where the call may not look do not hold.
        let sees_all = self.may_read(&WorkspacePath::root()).is_ok();
        let names = real.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let names: Vec<&OsStr> = names.collect();
        let mut walk = Walk {
            files: self.clone(),
            from: from.clone(),
            sight,
            patience,
            start: real.clone(),
            frames: Vec::new(),
            only: None,
            entries: 0,
            skipped: 0,
            cut: None,
            refusal: None,
        };
        let mut dir = system::open_dir_itself(&self.root, ".").map_err(refused)?;
        let (mut ignored, mut real) = (Ignored::nothing(), PathBuf::new());
        for (at, name) in names.iter().enumerate() {
            if sees_all && !walk.sight.ignored {
                ignored = ignored.and(&dir, &real, Marks::ALL);
            }
            real.push(name);
            let kind = EntryKind::of(dir.symlink_metadata(name).map_err(refused)?.file_type());
            if kind == EntryKind::File && at + 1 == names.len() {
                let path = PathBuf::from(from.as_str());
                let name = (*name).to_owned();
                walk.only = Some(Found { dir: dir.into(), name, path, kind });
                return Ok(walk);
            }
            dir = system::open_dir_itself(&dir, name)
                .map_err(|source| unentered(from, kind, at + 1 == names.len(), source))?;
        }
        let path = if from.as_str() == "." { "" } else { from.as_str() };
        walk.start.clone_from(&real);
        walk.enter(dir, real, path.into(), &ignored).map_err(refused)?;
        Ok(walk)
    }
}

/// Says what stands where a directory was expected.
fn unentered(
    path: &WorkspacePath,
    found: EntryKind,
    is_last: bool,
    source: Error,
) -> WorkspaceError {
    let path = path.clone();
    match found {
        EntryKind::Symlink => WorkspaceError::Link { path },
        EntryKind::File | EntryKind::Other if is_last => {
            WorkspaceError::Kind { path, found, expected: EntryKind::Dir }
        }
        EntryKind::File | EntryKind::Other => WorkspaceError::Through { path },
        EntryKind::Dir => WorkspaceError::from_io(&path, source),
    }
}

impl Iterator for Walk {
    type Item = Found;

    /// The next thing that is seen, in the order of paths.
    fn next(&mut self) -> Option<Found> {
        if let Some(only) = self.only.take() {
            return Some(only);
        }
        loop {
            let frame = self.frames.last_mut()?;
            let Some((name, kind)) = frame.left.next() else {
                self.frames.pop();
                continue;
            };
            let real = frame.real.join(&name);
            if !self.sight.shows(&frame.ignored, &self.start, &real, kind) {
                continue;
            }
            let (dir, path) = (frame.dir.clone(), frame.path.join(&name));
            if kind == EntryKind::Dir {
                let ignored = frame.ignored.clone();
                self.descend(&dir, &name, real, &path, &ignored);
            }
            return Some(Found { dir, name, path, kind });
        }
    }
}

impl Walk {
    fn descend(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        real: PathBuf,
        path: &Path,
        ignored: &Arc<Ignored>,
    ) {
        if self.frames.len() >= self.sight.depth {
            if self.sight.depth == WALK_DEPTH_MAX {
                self.cut = self.cut.or(Some(Cut::Depth));
            }
            return;
        }
        if self.patience.is_over() {
            self.cut = Some(Cut::Time);
        }
        if let Some(Cut::Time | Cut::Entries) = self.cut {
            return;
        }
        // What was taken back meanwhile is not walked any further.
        if let Err(refusal) = self.files.may_read(&self.from) {
            self.refusal = Some(refusal);
            self.frames.clear();
            return;
        }
        let entered = system::open_dir_itself(dir, name)
            .and_then(|dir| self.enter(dir, real, path.to_owned(), ignored));
        if entered.is_err() {
            self.skipped += 1;
        }
    }

    /// Reads the names of a directory, and goes on there.
    fn enter(
        &mut self,
        dir: Dir,
        real: PathBuf,
        path: PathBuf,
        ignored: &Arc<Ignored>,
    ) -> io::Result<()> {
        let (mut entries, mut marks) = (Vec::new(), Marks::default());
        for entry in system::names(&dir)? {
            let (name, kind) = entry?;
            marks.note(name.as_encoded_bytes());
            entries.push((name, kind));
            self.entries += 1;
            if self.entries >= WALK_ENTRIES_MAX {
                self.cut = Some(Cut::Entries);
                break;
            }
            if entries.len().is_multiple_of(NAMES_PER_LOOK) && self.patience.is_over() {
                self.cut = Some(Cut::Time);
                break;
            }
        }
        entries.sort_unstable_by(|(name, _), (other, _)| name.cmp(other));
        let ignored = match self.sight.ignored {
            true => ignored.clone(),
            false => ignored.and(&dir, &real, marks),
        };
        let left = entries.into_iter();
        self.frames.push(Frame { dir: dir.into(), real, path, ignored, left });
        Ok(())
    }
}

impl Sight {
    /// Everything, down to a depth.
    pub(crate) fn all(depth: usize) -> Sight {
        let (only, dotted) = (Override::empty(), Override::empty());
        Sight { hidden: true, ignored: true, only, dotted, depth }
    }

    /// Whether something is seen: if it is asked for, as ignore files say, and as it is hidden.
    fn shows(&self, ignored: &Ignored, start: &Path, real: &Path, kind: EntryKind) -> bool {
        let is_dir = kind == EntryKind::Dir;
        let path = real.strip_prefix(start).unwrap_or(real);
        if !self.only.is_empty() && self.only.matched(path, is_dir).is_ignore() {
            return false;
        }
        let name = real.file_name().unwrap_or_default();
        let is_hidden = || {
            name.as_encoded_bytes().starts_with(b".")
                && !self.dotted.matched(name, is_dir).is_whitelist()
        };
        match self.ignored {
            true => self.hidden || !is_hidden(),
            false => match ignored.judge(real, is_dir) {
                Match::Ignore(()) => false,
                Match::Whitelist(()) => true,
                Match::None => self.hidden || !is_hidden(),
            },
        }
    }
}
