//! How many calls run at once: seats that a call takes just before it starts.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::RunLimits;
use super::gate::{Gate, Seat};
use crate::grant::Lease;
use crate::id::Name;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// What all runs of one tree share.
pub(super) struct Tree {
    /// Held by a write that may touch anything, wherever in the tree it is made.
    writes: Arc<Semaphore>,
}

impl Tree {
    pub(super) fn new() -> Arc<Tree> {
        Arc::new(Tree { writes: Arc::new(Semaphore::new(1)) })
    }
}

/// The seats of one run. A child has its own, so that no nesting can wait for itself.
pub(super) struct Pools {
    all: Gate,
    mutations: Semaphore,
    blocking: Arc<Semaphore>,
    by_tool: Mutex<HashMap<Name, Arc<Semaphore>>>,
    abandoned: Arc<AtomicUsize>,
    seats: usize,
}

/// Which seats a call needs.
pub(super) struct Wants<'c> {
    /// The tool, and how many of its calls may run at once, where it says so.
    pub(super) of_tool: Option<(&'c Name, u64)>,
    /// Whether it is a promoted or a recursive call.
    pub(super) mutation: bool,
    /// Whether it keeps a thread busy.
    pub(super) thread: bool,
    /// Whether it may write anything, and no child run of it does the writing.
    pub(super) writes_anything: bool,
}

impl Wants<'_> {
    /// Whether it needs the one seat that every call needs, and no other.
    fn is_plain(&self) -> bool {
        self.of_tool.is_none() && !self.mutation && !self.thread && !self.writes_anything
    }
}

/// The seats that a call has. Dropping them gives them back, but for those that are in the lease:
/// those are the thread's.
pub(super) struct Seats<'p> {
    _seat: Seat<'p>,
    /// Those that few calls need.
    others: Option<Box<Others<'p>>>,
}

struct Others<'p> {
    _mutation: Option<SemaphorePermit<'p>>,
    _guards: [Option<OwnedSemaphorePermit>; 2],
    lease: Option<Lease>,
}

impl Seats<'_> {
    /// The seats of the thread, which are the thread's from now on.
    #[inline]
    pub(super) fn take_lease(&mut self) -> Option<Lease> {
        self.others.as_mut()?.lease.take()
    }
}

impl Pools {
    pub(super) fn new(limits: &RunLimits) -> Pools {
        let seats = |seats: usize| Semaphore::new(seats.clamp(1, Semaphore::MAX_PERMITS));
        let all = Gate::new(limits.concurrency);
        Pools {
            seats: all.free(),
            all,
            mutations: seats(limits.mutations),
            blocking: Arc::new(seats(limits.blocking)),
            by_tool: Mutex::default(),
            abandoned: Arc::default(),
        }
    }

    /// The calls that hold a seat.
    pub(super) fn running(&self) -> usize {
        self.seats - self.all.free()
    }

    /// The threads whose calls were answered before they were done.
    pub(super) fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// The seats, if all of them are free.
    #[inline]
    pub(super) fn try_take<'p>(&'p self, tree: &'p Tree, wants: &Wants<'_>) -> Option<Seats<'p>> {
        match wants.is_plain() {
            true => Some(Seats { _seat: self.all.try_take()?, others: None }),
            false => self.try_take_all(tree, wants),
        }
    }

    fn try_take_all<'p>(&'p self, tree: &'p Tree, wants: &Wants<'_>) -> Option<Seats<'p>> {
        let of_tool = match wants.of_tool {
            Some((tool, most)) => Some(self.of_tool(tool, most).try_acquire_owned().ok()?),
            None => None,
        };
        let mutation = match wants.mutation {
            true => Some(self.mutations.try_acquire().ok()?),
            false => None,
        };
        let thread = match wants.thread {
            true => Some(self.blocking.clone().try_acquire_owned().ok()?),
            false => None,
        };
        let seat = self.all.try_take()?;
        let write = match wants.writes_anything {
            true => Some(tree.writes.clone().try_acquire_owned().ok()?),
            false => None,
        };
        Some(self.seats(mutation, seat, thread, [of_tool, write]))
    }

    /// Waits for the seats, first come, first served.
    ///
    /// They are taken in one order. The last is the one that runs of other levels hold too: whoever
    /// has it has all, and runs no child, so it ends without waiting for anybody.
    pub(super) async fn take<'p>(&'p self, tree: &'p Tree, wants: &Wants<'_>) -> Seats<'p> {
        const OPEN: &str = "the pools of a run are never closed";
        let of_tool = match wants.of_tool {
            Some((tool, most)) => Some(self.of_tool(tool, most).acquire_owned().await.expect(OPEN)),
            None => None,
        };
        let mutation = match wants.mutation {
            true => Some(self.mutations.acquire().await.expect(OPEN)),
            false => None,
        };
        let thread = match wants.thread {
            true => Some(self.blocking.clone().acquire_owned().await.expect(OPEN)),
            false => None,
        };
        let seat = self.all.take().await;
        let write = match wants.writes_anything {
            true => Some(tree.writes.clone().acquire_owned().await.expect(OPEN)),
            false => None,
        };
        self.seats(mutation, seat, thread, [of_tool, write])
    }

    /// `guards` keep others out of what the call does, so a thread holds them until it is done.
    fn seats<'p>(
        &self,
        mutation: Option<SemaphorePermit<'p>>,
        seat: Seat<'p>,
        thread: Option<OwnedSemaphorePermit>,
        guards: [Option<OwnedSemaphorePermit>; 2],
    ) -> Seats<'p> {
        let (guards, lease) = match thread {
            Some(thread) => {
                let seats = guards.into_iter().flatten().chain([thread]).collect();
                ([None, None], Some(Lease::new(seats, self.abandoned.clone())))
            }
            None => (guards, None),
        };
        let others = Others { _mutation: mutation, _guards: guards, lease };
        Seats { _seat: seat, others: Some(Box::new(others)) }
    }

    fn of_tool(&self, tool: &Name, most: u64) -> Arc<Semaphore> {
        let mut by_tool = self.by_tool.lock().unwrap_or_else(PoisonError::into_inner);
        let seats = by_tool.entry(tool.clone()).or_insert_with(|| {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)))
        });
        seats.clone()
    }
}
