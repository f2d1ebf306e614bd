//! The labels of what lies somewhere, kept beside it.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, PoisonError};

use super::Label;
use crate::canon::{Canon, Domain, Hash};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The most places whose labels are kept in memory; what is beyond them is untrusted.
pub const LABELLED_MAX: usize = 1 << 20;
/// The most bytes of a label's file.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The source of what has a label that cannot be read.
const UNREADABLE: &str = "a label that cannot be read";
/// The source of what has no label for want of room.
const UNKEPT: &str = "more labelled places than are kept";

/// The labels of files, artifacts or values, each by the name of its place. Clones share them.
///
/// What somebody writes has the label of whatever they had seen, and whoever reads it has seen
/// that. A place that has no label is trusted and public. A label that cannot be read says that its
/// place is untrusted.
///
/// ```
/// use tooltape::{Label, Labels};
///
/// let labels = Labels::memory();
/// labels.add("notes.txt", &Label::untrusted("web_fetch"))?;
/// assert!(!labels.of("notes.txt").is_trusted());
/// labels.set("notes.txt", &Label::default())?;
/// assert!(labels.of("notes.txt").is_trusted());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Labels(Arc<Kept>);

enum Kept {
    Memory(Mutex<Memory>),
    Folder(Folder),
}

#[derive(Default)]
struct Memory {
    labels: BTreeMap<Hash, Arc<Label>>,
    is_full: bool,
}

impl Labels {
    /// Labels in memory, as long as the last clone lives.
    pub fn memory() -> Labels {
        Labels(Arc::new(Kept::Memory(Mutex::default())))
    }

    /// Labels as files of a folder, which is made once there is one. Several processes may share
    /// it: each only ever adds to what a place is labelled, until somebody replaces what is there.
    pub fn in_dir(path: impl Into<PathBuf>) -> Labels {
        Labels(Arc::new(Kept::Folder(Folder(path.into()))))
    }

    /// Whether no place has a label.
    pub fn is_empty(&self) -> bool {
        match &*self.0 {
            Kept::Memory(memory) => {
                let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                memory.labels.is_empty() && !memory.is_full
            }
            // One that nobody may look into may hold some.
            Kept::Folder(Folder(root)) => matches!(root.try_exists(), Ok(false)),
        }
    }

    /// The label of a place.
    pub fn of(&self, place: &str) -> Label {
        let key = key(place);
        match &*self.0 {
            Kept::Memory(memory) => {
                let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                match memory.labels.get(&key) {
                    Some(label) => Label::clone(label),
                    None if memory.is_full => Label::untrusted(UNKEPT),
                    None => Label::default(),
                }
            }
            Kept::Folder(folder) => folder.of(key),
        }
    }

    /// Adds to what a place is labelled, before what has this label is written there.
    pub fn add(&self, place: &str, label: &Label) -> io::Result<()> {
        if label.is_plain() {
            return Ok(());
        }
        match &*self.0 {
            Kept::Memory(memory) => {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                let (key, kept) = (key(place), memory.labels.len());
                match memory.labels.get_mut(&key) {
                    Some(before) => *before = Arc::new(Label::clone(before).join(label)),
                    None if kept >= LABELLED_MAX => memory.is_full = true,
                    None => drop(memory.labels.insert(key, Arc::new(label.clone()))),
                }
                Ok(())
            }
            Kept::Folder(folder) => folder.add(key(place), label),
        }
    }

    /// Labels a place anew, once all that was there before was replaced by what has this label.
    pub fn set(&self, place: &str, label: &Label) -> io::Result<()> {
        self.add(place, label)?;
        match &*self.0 {
            Kept::Memory(memory) => {
                let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                match label.is_plain() {
                    true => drop(memory.labels.remove(&key(place))),
                    false => {
                        let before = memory.labels.get_mut(&key(place));
                        before.into_iter().for_each(|before| *before = Arc::new(label.clone()));
                    }
                }
                Ok(())
            }
            Kept::Folder(folder) => folder.keep_only(key(place), label),
        }
    }
}

fn key(place: &str) -> Hash {
    Hash::of(Domain::Label, place.as_bytes())
}

/// A folder with a folder for each place, with a file for each label that was added to it.
struct Folder(PathBuf);

impl Folder {
    fn of(&self, key: Hash) -> Label {
        match self.read(key) {
            Ok(label) => label,
            Err(err) if err.kind() == ErrorKind::NotFound => Label::default(),
            Err(_) => Label::untrusted(UNREADABLE),
        }
    }

    fn read(&self, key: Hash) -> io::Result<Label> {
        let mut label = Label::default();
        for entry in fs::read_dir(self.place(key))? {
            let entry = entry?;
            // What does not have the name of a label was never finished.
            if entry.file_name().to_str().is_some_and(|name| name.parse::<Hash>().is_ok()) {
                match read_label(&entry.path()) {
                    // Somebody replaced it meanwhile, and left another before.
                    Err(err) if err.kind() == ErrorKind::NotFound => {}
                    read => label = label.join(&read?),
                }
            }
        }
        Ok(label)
    }

    fn add(&self, key: Hash, label: &Label) -> io::Result<()> {
        let (folder, text) = (self.place(key), text_of(label)?);
        let file = folder.join(name_of(&text));
        if file.exists() {
            return Ok(());
        }
        private(DirBuilder::new().recursive(true)).create(&folder)?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let no = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = folder.join(format!("new-{}-{no}", process::id()));
        let mut new = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
        let written = new.write_all(text.as_bytes()).and_then(|()| new.sync_all());
        let placed = written.and_then(|()| fs::rename(&unfinished, &file));
        if placed.is_err() {
            // The first failure is the one to report.
            let _ = fs::remove_file(&unfinished);
        }
        placed?;
        [folder.as_path(), &self.0].into_iter().try_for_each(sync)
    }

    fn keep_only(&self, key: Hash, label: &Label) -> io::Result<()> {
        let kept = name_of(&text_of(label)?);
        let entries = match fs::read_dir(self.place(key)) {
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_str() != Some(&kept) || label.is_plain() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn place(&self, key: Hash) -> PathBuf {
        self.0.join(key.to_string())
    }
}

fn read_label(path: &Path) -> io::Result<Label> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("not the file of a label"));
    }
    let text = fs::read_to_string(path)?;
    match path.file_name().is_some_and(|name| *name == *name_of(&text)) {
        true => Ok(serde_json::from_str(&text)?),
        false => Err(io::Error::other("not what was written")),
    }
}

fn text_of(label: &Label) -> io::Result<String> {
    Ok(Canon::of(label).map_err(io::Error::other)?.as_str().to_owned())
}

fn name_of(text: &str) -> String {
    Hash::of(Domain::Label, text.as_bytes()).to_string()
}

#[cfg(unix)]
fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    builder.mode(0o700)
}

#[cfg(not(unix))]
fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder
}

/// Makes the names in a folder durable, where the system can.
fn sync(folder: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}
