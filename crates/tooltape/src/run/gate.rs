//! Seats that are taken and given back without a lock, as long as nobody waits for one.

use tokio::sync::Semaphore;

use crate::sync::atomic::{AtomicU64, Ordering};

/// So many seats, first come, first served.
pub(super) struct Gate {
    /// The free seats, and how many wait. While somebody waits, none is free to anybody else.
    state: AtomicU64,
    /// The seats that were given to those who wait.
    handed: Semaphore,
}

/// A seat, which is given back when it is dropped.
pub(super) struct Seat<'g>(&'g Gate);

/// One more who waits, above the free seats.
const WAITER: u64 = 1 << 32;

/// The most seats.
const SEATS_MAX: usize = u32::MAX as usize;

impl Gate {
    /// So many seats, and at least one.
    pub(super) fn new(seats: usize) -> Gate {
        let state = AtomicU64::new(seats.clamp(1, SEATS_MAX) as u64);
        Gate { state, handed: Semaphore::new(0) }
    }

    /// The seats that nobody has.
    pub(super) fn free(&self) -> usize {
        let free = self.state.load(Ordering::SeqCst) % WAITER;
        free as usize + self.handed.available_permits()
    }

    /// A seat, if one is free and nobody waits.
    #[inline]
    pub(super) fn try_take(&self) -> Option<Seat<'_>> {
        self.change(taken).then(|| Seat(self))
    }

    /// Waits for a seat. Dropping the future leaves the queue.
    pub(super) async fn take(&self) -> Seat<'_> {
        let next = |state| Some(taken(state).unwrap_or(state + WAITER));
        let was = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        if was.is_ok_and(|was| taken(was).is_none()) {
            let _waiting = Waiting(self);
            self.handed.acquire().await.expect("a gate is never closed").forget();
        }
        Seat(self)
    }

    #[inline]
    fn give_back(&self) {
        if !self.change(|state| (state < WAITER).then(|| state + 1)) {
            self.hand();
        }
    }

    /// Gives a seat to whoever waits longest.
    #[cold]
    fn hand(&self) {
        self.handed.add_permits(1);
        self.gather();
    }

    /// Frees what was handed to nobody, since whoever waited has left.
    fn gather(&self) {
        while self.state.load(Ordering::SeqCst) < WAITER {
            let Ok(seat) = self.handed.try_acquire() else { return };
            seat.forget();
            self.give_back();
        }
    }

    #[inline]
    fn change(&self, change: impl Fn(u64) -> Option<u64>) -> bool {
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).is_ok()
    }
}

/// The state after a seat was taken, where one is free to anybody.
#[inline]
fn taken(state: u64) -> Option<u64> {
    (1..WAITER).contains(&state).then(|| state - 1)
}

impl Drop for Seat<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// Somebody who waits for a seat.
struct Waiting<'g>(&'g Gate);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_sub(WAITER, Ordering::SeqCst);
        self.0.gather();
    }
}
