//! How long somebody was asked, which no deadline counts.

use std::sync::PoisonError;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// How long somebody was asked: the moments at which at least one question was open.
#[derive(Default)]
pub(crate) struct Asked {
    /// Whether anybody ever was.
    any: AtomicBool,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    questions: u32,
    since_us: u64,
    total_us: u64,
}

impl Asked {
    /// A question begins.
    pub(crate) fn begin(&self, now_us: u64) {
        let mut open = self.open();
        if open.questions == 0 {
            open.since_us = now_us;
        }
        open.questions += 1;
        self.any.store(true, Ordering::Relaxed);
    }

    /// A question ends.
    pub(crate) fn end(&self, now_us: u64) {
        let mut open = self.open();
        open.questions -= 1;
        if open.questions == 0 {
            open.total_us += now_us.saturating_sub(open.since_us);
        }
    }

    /// How long somebody was asked until now.
    pub(crate) fn total_us(&self, now_us: u64) -> u64 {
        if !self.any.load(Ordering::Relaxed) {
            return 0;
        }
        let open = self.open();
        let running = if open.questions == 0 { 0 } else { now_us.saturating_sub(open.since_us) };
        open.total_us + running
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
