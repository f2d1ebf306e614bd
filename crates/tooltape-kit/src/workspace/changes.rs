//! Several changes at once: all of them, or none.

use cap_std::fs::Dir;
use tooltape::Random;

use super::change::sync_all;
use super::original::Original;
use super::place::Place;
use super::unfinished::{Unfinished, aside};
use super::{Workspace, WorkspaceError, WorkspacePath, check_size, system};

/// Changes of several files. Nothing happens before [`Changes::make`].
pub(crate) struct Changes {
    files: Workspace,
    changes: Vec<Change>,
}

/// What is to happen to one file.
enum Change {
    Create { place: Place, bytes: Vec<u8>, mode: Option<u32> },
    Replace { original: Original, bytes: Vec<u8>, mode: u32 },
    Remove { original: Original },
}

/// A change that is ready to be made by a single rename.
struct Ready {
    change: Change,
    /// The name beside the file: of its new content before the rename, of the old one after.
    beside: String,
    /// What removes that name again, as long as it is the new content's.
    unfinished: Option<Unfinished>,
}

impl Changes {
    pub(crate) fn new(files: &Workspace) -> Changes {
        Changes { files: files.clone(), changes: Vec::new() }
    }

    /// A file is to be created where nothing is, perhaps as a program.
    pub(crate) fn create(
        &mut self,
        path: &WorkspacePath,
        bytes: Vec<u8>,
        is_executable: bool,
    ) -> Result<(), WorkspaceError> {
        let place = self.files.vacant(path)?;
        let mode = match is_executable {
            false => None,
            true => {
                let mode = system::new_mode(&place.parent).map_err(|err| place.refused(err))?;
                Some(system::executable(mode, true))
            }
        };
        self.changes.push(Change::Create { place, bytes, mode });
        Ok(())
    }

    /// A file is to be replaced; it may become a program, or cease to be one.
    pub(crate) fn replace(
        &mut self,
        original: Original,
        bytes: Vec<u8>,
        is_executable: Option<bool>,
    ) {
        let mode = mode_of(&original, is_executable);
        self.changes.push(Change::Replace { original, bytes, mode });
    }

    /// A file is to be removed.
    pub(crate) fn remove(&mut self, original: Original) {
        self.changes.push(Change::Remove { original });
    }

    /// A file is to be at another path, where nothing is, and may hold something else there.
    pub(crate) fn rename(
        &mut self,
        original: Original,
        to: &WorkspacePath,
        bytes: Vec<u8>,
        is_executable: Option<bool>,
    ) -> Result<(), WorkspaceError> {
        let (place, mode) = (self.files.vacant(to)?, Some(mode_of(&original, is_executable)));
        self.changes.push(Change::Create { place, bytes, mode });
        self.remove(original);
        Ok(())
    }

    /// Makes all changes. Until the last of them is made each can be taken back.
    pub(crate) fn make(self, random: &Random) -> Result<(), WorkspaceError> {
        let Changes { files, changes } = self;
        for change in &changes {
            change.check_permitted(&files)?;
        }
        let ready = changes.into_iter().map(|change| change.prepare(random));
        let mut ready: Vec<Ready> = ready.collect::<Result<_, _>>()?;
        for ready in &mut ready {
            ready.change.check_unchanged(&files)?;
        }
        for at in 0..ready.len() {
            if let Err(err) = ready[at].apply(&files) {
                return Err(taken_back(&mut ready[..at], err));
            }
        }
        let synced = sync_all(ready.iter().map(|ready| ready.change.whereabouts()));
        for ready in &ready {
            ready.clear(&files);
        }
        synced
    }
}

/// The error that ended several changes, once those before it are taken back.
fn taken_back(made: &mut [Ready], err: WorkspaceError) -> WorkspaceError {
    let (mut left, mut failed) = (Vec::new(), None);
    // One that stays as it is does not keep the others from being as they were.
    for ready in made.iter_mut().rev() {
        if let Err(source) = ready.take_back() {
            left.push((ready.change.place().path.clone(), ready.old_path()));
            failed = failed.or(Some(source));
        }
    }
    match failed {
        None => err,
        Some(source) => WorkspaceError::Torn { cause: err.to_string(), left, source },
    }
}

impl Change {
    fn whereabouts(&self) -> (&WorkspacePath, &Dir) {
        let place = self.place();
        (&place.path, &place.parent)
    }

    fn place(&self) -> &Place {
        match self {
            Change::Create { place, .. } => place,
            Change::Replace { original, .. } | Change::Remove { original } => &original.place,
        }
    }

    fn check_permitted(&self, files: &Workspace) -> Result<(), WorkspaceError> {
        let path = &self.place().path;
        files.may_write(path)?;
        match self {
            Change::Create { bytes, .. } | Change::Replace { bytes, .. } => {
                check_size(path, bytes.len() as u64)?;
                files.seen.writing(path, bytes)
            }
            Change::Remove { .. } => Ok(()),
        }
    }

    fn prepare(self, random: &Random) -> Result<Ready, WorkspaceError> {
        let unfinished = match &self {
            Change::Create { place, bytes, mode } => Some(place.beside(bytes, *mode, random)?),
            Change::Replace { original, bytes, mode } => {
                Some(original.beside(bytes, *mode, random)?)
            }
            Change::Remove { .. } => None,
        };
        let name = unfinished.as_ref().map(|unfinished| unfinished.name.clone());
        let beside = name.unwrap_or_else(|| aside(random));
        Ok(Ready { change: self, beside, unfinished })
    }

    fn check_unchanged(&mut self, files: &Workspace) -> Result<(), WorkspaceError> {
        match self {
            Change::Create { place, .. } => place.check_vacant(files),
            Change::Replace { original, .. } | Change::Remove { original } => {
                original.check_unchanged()
            }
        }
    }
}

impl Ready {
    /// Makes the change. What it displaced is checked once more: nobody else's work gets lost.
    fn apply(&mut self, files: &Workspace) -> Result<(), WorkspaceError> {
        let (beside, place) = (&self.beside, self.change.place());
        let (parent, name) = (&place.parent, &place.name);
        let made = match self.change {
            Change::Create { .. } => system::rename_new(parent, beside, parent, name),
            Change::Replace { .. } => system::exchange(parent, beside, name).map(|()| None),
            Change::Remove { .. } => system::rename_new(parent, name, parent, beside),
        };
        let both_names = made.map_err(|source| files.not_appeared(place, source))?;
        match (&self.change, both_names) {
            (Change::Remove { .. }, Some(source)) => {
                let _ = parent.remove_file(beside);
                return Err(place.refused(source));
            }
            // The new file has its name, and the other is tried once more.
            (Change::Create { .. } | Change::Replace { .. }, Some(_)) => {
                drop(self.unfinished.take());
            }
            // From here on the name is that of the old content, which is not to be dropped.
            (Change::Create { .. } | Change::Replace { .. } | Change::Remove { .. }, None) => {
                self.unfinished.take().map(Unfinished::leave);
            }
        }
        let displaced = match &mut self.change {
            Change::Create { .. } => Ok(()),
            Change::Replace { original, .. } | Change::Remove { original } => {
                original.check_is_at(&self.beside)
            }
        };
        displaced.map_err(|err| taken_back(std::slice::from_mut(self), err))
    }

    /// Takes the change back, and removes what was new.
    fn take_back(&mut self) -> std::io::Result<()> {
        let (beside, place) = (&self.beside, self.change.place());
        let (parent, name) = (&place.parent, &place.name);
        match self.change {
            Change::Create { .. } => parent.remove_file(name),
            Change::Replace { .. } => {
                system::exchange(parent, beside, name)?;
                // The new content, under a name that means nothing to anybody.
                let _ = parent.remove_file(beside);
                Ok(())
            }
            Change::Remove { .. } => system::rename_new(parent, beside, parent, name).map(|_| ()),
        }
    }

    /// Where the old content is as long as the change is not taken back, if there was any.
    fn old_path(&self) -> Option<WorkspacePath> {
        match self.change {
            Change::Create { .. } => None,
            Change::Replace { .. } | Change::Remove { .. } => {
                self.change.place().path_beside(&self.beside)
            }
        }
    }

    /// Removes what was old. The change is made whether that succeeds or not.
    fn clear(&self, files: &Workspace) {
        let place = self.change.place();
        match self.change {
            Change::Create { .. } => files.seen.written(&place.path),
            Change::Replace { .. } => {
                files.seen.written(&place.path);
                let _ = place.parent.remove_file(&self.beside);
            }
            Change::Remove { .. } => {
                let _ = place.parent.remove_file(&self.beside);
            }
        }
    }
}

fn mode_of(original: &Original, is_executable: Option<bool>) -> u32 {
    let mode = system::kept_mode(&original.metadata);
    is_executable.map_or(mode, |is_executable| system::executable(mode, is_executable))
}
