//! The thread of a blocking tool: what it holds, and what is known once nobody waits for it.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::{CallContext, Note};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The seats of a call that keeps a thread busy. They are given back when the thread is done,
/// however long ago its call was answered: what it may still write, nobody else may.
pub(crate) struct Lease {
    seats: Vec<OwnedSemaphorePermit>,
    abandoned: Arc<AtomicUsize>,
}

impl Lease {
    pub(crate) fn new(seats: Vec<OwnedSemaphorePermit>, abandoned: Arc<AtomicUsize>) -> Lease {
        Lease { seats, abandoned }
    }

    /// Splits it between the thread that works for an attempt and whoever waits for it.
    pub(super) fn split(self, context: CallContext, attempt: u32) -> (Work, Vigil) {
        let Lease { seats, abandoned } = self;
        let over = Arc::new(AtomicBool::new(false));
        context.life.thread_begins();
        let vigil = Vigil {
            over: over.clone(),
            abandoned: abandoned.clone(),
            context: context.clone(),
            attempt,
        };
        (Work { over, abandoned, context, _seats: seats }, vigil)
    }
}

/// Held by the thread that works.
pub(crate) struct Work {
    over: Arc<AtomicBool>,
    abandoned: Arc<AtomicUsize>,
    context: CallContext,
    _seats: Vec<OwnedSemaphorePermit>,
}

/// Held by whoever waits for the thread. Dropped early, it reports that the thread was given up.
pub(crate) struct Vigil {
    over: Arc<AtomicBool>,
    abandoned: Arc<AtomicUsize>,
    context: CallContext,
    attempt: u32,
}

// Of the two, the one that ends second knows whether the thread outlived its call.
impl Drop for Work {
    fn drop(&mut self) {
        self.context.life.thread_ends();
        if self.over.swap(true, Ordering::SeqCst) {
            self.abandoned.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        // Counted first, so that the count never passes through zero from below.
        self.abandoned.fetch_add(1, Ordering::SeqCst);
        if self.over.swap(true, Ordering::SeqCst) {
            self.abandoned.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        // A tape that refuses this refuses the call's end too, and there it is reported.
        let _ = self.context.note(Note::Abandoned { attempt: self.attempt });
        self.context.cancel.cancel();
    }
}
