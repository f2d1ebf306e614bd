//! What was asked of a disk, in order, and which of it goes wrong.

use std::sync::{Mutex, MutexGuard};

/// Something asked of a disk.
#[derive(Clone, Debug)]
pub enum Op {
    /// A file was made.
    Create(String),
    /// Bytes were written.
    Write { file: String, at: usize, bytes: Vec<u8> },
    /// A file was cut, or made longer.
    Truncate { file: String, len: usize },
    /// A file is to be as it is after the power comes back.
    Sync(String),
    /// That failed, after which the system believes the bytes to be written.
    SyncFailed(String),
    /// A file was removed; perhaps the folder was synced.
    Delete { file: String, is_synced: bool },
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One operation fails.
    Io,
    /// One operation and all after it fail.
    IoFromThen,
    /// One write finds no room.
    Full,
    /// One write and all after it find no room.
    FullFromThen,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Fault; 4] = [Fault::Io, Fault::IoFromThen, Fault::Full, Fault::FullFromThen];
}

/// The disk under one folder.
#[derive(Default)]
pub struct Disk(Mutex<State>);

#[derive(Default)]
struct State {
    log: Vec<Op>,
    /// How much was asked, including what failed.
    asked: usize,
    fault: Option<(usize, Fault)>,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Io,
    Full,
}

impl Disk {
    /// Lets something go wrong at an operation, counted from 0.
    pub fn fail(&self, at: usize, fault: Fault) {
        self.state().fault = Some((at, fault));
    }

    /// Lets nothing go wrong any more.
    pub fn heal(&self) {
        self.state().fault = None;
    }

    /// How much was asked.
    pub fn asked(&self) -> usize {
        self.state().asked
    }

    /// What was done.
    pub fn log(&self) -> Vec<Op> {
        self.state().log.clone()
    }

    /// Does an operation, or fails; `work` is what the real disk does.
    pub(crate) fn perform<T>(&self, op: Op, work: impl FnOnce() -> T) -> Result<T, Failed> {
        let mut state = self.state();
        let at = state.asked;
        state.asked += 1;
        if let Some(failed) = state.fault.and_then(|(first, fault)| fails(fault, first, at, &op)) {
            if let Op::Sync(file) = op {
                state.log.push(Op::SyncFailed(file));
            }
            return Err(failed);
        }
        state.log.push(op);
        // Under the lock, so that the log has the order of the disk.
        Ok(work())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no operation panics")
    }
}

fn fails(fault: Fault, first: usize, at: usize, op: &Op) -> Option<Failed> {
    let takes_room = matches!(op, Op::Write { .. } | Op::Create(_));
    let is_hit = match fault {
        Fault::Io | Fault::Full => at == first,
        Fault::IoFromThen | Fault::FullFromThen => at >= first,
    };
    match fault {
        Fault::Io | Fault::IoFromThen => is_hit.then_some(Failed::Io),
        Fault::Full | Fault::FullFromThen => (is_hit && takes_room).then_some(Failed::Full),
    }
}
