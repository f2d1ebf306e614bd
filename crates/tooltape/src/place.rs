//! Knows inside the tools of which runs a thread is, so that none waits for a seat it holds itself.

use std::cell::RefCell;
// A counter that outlives every schedule, and on which none depends.
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::thread_local;

thread_local! {
    /// The runs whose tools this thread is in, outermost first.
    static HERE: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// One run, as a place that threads are in. No two runs of a process are the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Place(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether this thread is in a tool of the run, or of a child of it.
    pub(crate) fn is_here(self) -> bool {
        HERE.with(|here| here.borrow().contains(&self))
    }
}

/// Where this thread is, for another that works for it.
pub(crate) fn here() -> Vec<Place> {
    HERE.with(|here| here.borrow().clone())
}

/// This thread is in these places too, until what is returned is dropped.
#[must_use]
pub(crate) fn enter(places: &[Place]) -> Entered {
    HERE.with(|here| {
        let mut here = here.borrow_mut();
        let before = here.len();
        // One by one: it is nearly always one.
        places.iter().for_each(|place| here.push(*place));
        Entered { before }
    })
}

pub(crate) struct Entered {
    before: usize,
}

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.with(|here| here.borrow_mut().truncate(self.before));
    }
}
