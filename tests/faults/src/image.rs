//! What a disk has after its power was cut in the middle of something.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crate::Op;

/// The least that a disk writes whole.
const SECTOR: usize = 512;

/// What becomes of writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// None of them is there.
    Drop,
    /// They are there up to some sector.
    Tear,
    /// Some of their sectors are there.
    Reorder,
    /// They are there in any order, some of them again after later ones.
    Duplicate,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 4] = [Mode::Drop, Mode::Tear, Mode::Reorder, Mode::Duplicate];
}

/// The files that are there when the power comes back.
#[derive(Clone, Default, Hash)]
pub struct Image(BTreeMap<String, Vec<u8>>);

impl Image {
    /// Tells images apart.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Puts the files into a folder.
    pub fn write(&self, folder: &Path) {
        for (name, bytes) in &self.0 {
            fs::write(folder.join(name), bytes).expect("the folder takes files");
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Create(file) => drop(self.0.entry(file.clone()).or_default()),
            Op::Write { file, at, bytes } => {
                let content = self.0.entry(file.clone()).or_default();
                content.resize(content.len().max(at + bytes.len()), 0);
                content[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Op::Truncate { file, len } => self.0.entry(file.clone()).or_default().resize(*len, 0),
            Op::Delete { file, .. } => drop(self.0.remove(file)),
            Op::Sync(_) | Op::SyncFailed(_) => {}
        }
    }
}

/// Plays back what was asked of a disk.
#[derive(Default)]
pub struct Replay {
    synced: Image,
    /// What was done since then and may be there or not, in order.
    pending: Vec<Op>,
    /// Files whose name is in the folder for good.
    named: BTreeSet<String>,
}

impl Replay {
    /// A disk on which all of this was done.
    pub fn of(log: &[Op]) -> Replay {
        let mut replay = Replay::default();
        log.iter().for_each(|op| replay.step(op));
        replay
    }

    /// One more operation.
    pub fn step(&mut self, op: &Op) {
        match op {
            Op::Sync(file) => self.sync(file),
            // The system holds what it could not write for written.
            Op::SyncFailed(file) => {
                self.pending.retain(|op| !is_content_of(op, file));
            }
            Op::Delete { file, is_synced } => {
                self.named.remove(file);
                self.pending.push(op.clone());
                if *is_synced {
                    self.sync_folder();
                }
            }
            Op::Create(_) | Op::Write { .. } | Op::Truncate { .. } => self.pending.push(op.clone()),
        }
    }

    fn sync(&mut self, file: &str) {
        // The first sync of a new file is also one of the folder, as SQLite does it.
        if !self.named.contains(file) {
            self.sync_folder();
        }
        let (done, rest) = self.pending.drain(..).partition(|op| is_content_of(op, file));
        self.pending = rest;
        let done: Vec<Op> = done;
        done.iter().for_each(|op| self.synced.apply(op));
    }

    /// Makes the making and the removing of files last.
    fn sync_folder(&mut self) {
        let mut rest = Vec::new();
        for op in std::mem::take(&mut self.pending) {
            match &op {
                Op::Create(file) => {
                    self.named.insert(file.clone());
                    self.synced.apply(&op);
                }
                Op::Delete { file, .. } => {
                    rest.retain(|earlier| !is_content_of(earlier, file));
                    self.synced.apply(&op);
                }
                Op::Write { .. } | Op::Truncate { .. } | Op::Sync(_) | Op::SyncFailed(_) => {
                    rest.push(op);
                }
            }
        }
        self.pending = rest;
    }

    /// What is there if the power is cut now.
    pub fn cut(&self, mode: Mode, seed: u64) -> Image {
        let mut random = Random(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut image = self.synced.clone();
        let pending = self.pending.iter().flat_map(sectors).collect::<Vec<_>>();
        let torn = random.below(pending.len() + 1);
        let mut lost = BTreeSet::new();
        let mut kept: Vec<&Op> = Vec::new();
        for (at, op) in pending.iter().enumerate() {
            let is_kept = match mode {
                Mode::Drop => false,
                Mode::Tear => at < torn,
                Mode::Reorder => random.below(2) == 0,
                Mode::Duplicate => true,
            };
            // What is written to a file that has no name is not to be found.
            match op {
                Op::Create(file) | Op::Delete { file, .. } if !is_kept => {
                    lost.insert(file);
                }
                op if is_kept && !file_of(op).is_some_and(|file| lost.contains(file)) => {
                    kept.push(op);
                }
                _ => {}
            }
        }
        if mode == Mode::Duplicate {
            let writes = kept.iter().filter(|op| matches!(op, Op::Write { .. }));
            let twice: Vec<&Op> = writes.filter(|_| random.below(3) == 0).copied().collect();
            for op in twice {
                let first = kept.iter().position(|it| std::ptr::eq(*it, op)).unwrap_or(0);
                let after = first + 1 + random.below(kept.len() - first);
                // Not past the end of the file's life.
                let life = kept[first..].iter().position(|it| {
                    matches!(it, Op::Delete { .. } | Op::Truncate { .. })
                        && file_of(it) == file_of(op)
                });
                kept.insert(life.map_or(after, |life| after.min(first + life)), op);
            }
        }
        kept.into_iter().for_each(|op| image.apply(op));
        image
    }
}

fn file_of(op: &Op) -> Option<&String> {
    match op {
        Op::Create(file)
        | Op::Write { file, .. }
        | Op::Truncate { file, .. }
        | Op::Delete { file, .. } => Some(file),
        Op::Sync(_) | Op::SyncFailed(_) => None,
    }
}

/// Whether an operation changes what is in the file.
fn is_content_of(op: &Op, name: &str) -> bool {
    match op {
        Op::Write { file, .. } | Op::Truncate { file, .. } => file == name,
        Op::Create(_) | Op::Sync(_) | Op::SyncFailed(_) | Op::Delete { .. } => false,
    }
}

/// An operation in the pieces that a disk does whole.
fn sectors(op: &Op) -> Vec<Op> {
    let Op::Write { file, at, bytes } = op else { return vec![op.clone()] };
    let mut pieces = Vec::new();
    let (mut at, mut rest) = (*at, bytes.as_slice());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(SECTOR - at % SECTOR));
        pieces.push(Op::Write { file: file.clone(), at, bytes: piece.to_vec() });
        at += piece.len();
        rest = after;
    }
    pieces
}

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 1).expect("64 bits") % bound.max(1)
    }
}
