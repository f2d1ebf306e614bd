//! What ends calls before their time: cancelling, and the deadlines of a batch and of its run.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Run;
use crate::fault::{BoundKind, Exceeded, Executed};
use crate::grant::Life;
use crate::id::CallNo;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, OnceLock};

/// Cancels a run, a batch or what else it was handed to.
///
/// ```
/// use tooltape::Canceller;
///
/// let canceller = Canceller::new();
/// canceller.clone().cancel();
/// assert!(canceller.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Canceller(pub(super) CancellationToken);

impl Canceller {
    /// Cancels nothing yet.
    pub fn new() -> Canceller {
        Canceller::default()
    }

    /// Cancels: what is queued never starts, what runs is told, and every call gets its reply.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether somebody cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// One batch: what cancels it, and since when it runs.
pub(super) struct Scope<'r> {
    run: &'r Run,
    /// Set where the batch can be cancelled without its run.
    own: Option<CancellationToken>,
    began: OnceLock<Began>,
    /// Whether nothing more starts.
    over: AtomicBool,
    closed: Notify,
}

struct Began {
    at_us: u64,
    asked_us: u64,
}

impl<'r> Scope<'r> {
    /// A batch that ends with its run.
    pub(super) fn of(run: &'r Run) -> Scope<'r> {
        let (over, closed) = (AtomicBool::new(false), Notify::new());
        run.halts.open();
        Scope { run, own: None, began: OnceLock::new(), over, closed }
    }

    /// The same, where the batch can be cancelled by itself.
    pub(super) fn cancellable(mut self) -> Scope<'r> {
        if self.own.is_none() {
            self.own = Some(self.run.setup.cancel.child_token());
        }
        self
    }

    pub(super) fn token(&self) -> &CancellationToken {
        self.own.as_ref().unwrap_or(&self.run.setup.cancel)
    }

    /// Nothing more of the batch starts, and nobody waits any more to start.
    pub(super) fn close(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.closed.notify_waiters();
    }

    /// Waits until nothing more of the batch starts.
    pub(super) async fn closed(&self) {
        let mut closed = pin!(self.closed.notified());
        // From here on no call of `close` is missed.
        closed.as_mut().enable();
        if !self.over.load(Ordering::SeqCst) {
            closed.await;
        }
    }

    /// Whether nothing more of the batch starts.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
            || self.run.ended.get().is_some()
            || self.token().is_cancelled()
    }

    /// How much time is left at this moment, and which bound says so.
    ///
    /// A batch begins when its first call could start. The time in which somebody is asked does
    /// not count.
    pub(super) fn left(&self, now_us: u64) -> Left {
        let (limits, live) = (&self.run.setup.limits, self.run.live());
        let asked_us = live.asked.total_us(now_us);
        let began = self.began.get_or_init(|| Began { at_us: now_us, asked_us });
        let run_us = live.began_us + asked_us;
        let of_run = Left::new(BoundKind::RunWall, limits.run_wall, now_us, run_us);
        let batch_us = began.at_us + asked_us.saturating_sub(began.asked_us);
        let of_batch = Left::new(BoundKind::BatchWall, limits.batch_wall, now_us, batch_us);
        if of_batch.time < of_run.time { of_batch } else { of_run }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.run.halts.close();
    }
}

/// The time that is left until a deadline.
#[derive(Clone, Copy)]
pub(super) struct Left {
    pub(super) bound: BoundKind,
    pub(super) limit: Duration,
    pub(super) time: Duration,
}

impl Left {
    /// What is left of `limit` that began to run at a moment.
    pub(super) fn new(bound: BoundKind, limit: Duration, now_us: u64, began_us: u64) -> Left {
        let spent = Duration::from_micros(now_us.saturating_sub(began_us));
        Left { bound, limit, time: limit.saturating_sub(spent) }
    }

    /// The earlier of two deadlines.
    pub(super) fn or(self, other: Option<Left>) -> Left {
        match other {
            Some(other) if other.time < self.time => other,
            Some(_) | None => self,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.time.is_zero()
    }

    pub(super) fn exceeded(&self, executed: Executed) -> Exceeded {
        let limit = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        Exceeded { bound: self.bound, limit, used: None, executed }
    }
}

/// The calls that somebody cancelled one by one, and those that can be told.
#[derive(Default)]
pub(super) struct Halts {
    any: AtomicBool,
    state: Mutex<State>,
    /// The batches that are under way.
    batches: AtomicUsize,
}

#[derive(Default)]
struct State {
    cancelled: HashSet<CallNo>,
    waiting: HashMap<CallNo, Arc<Life>>,
}

impl Halts {
    /// A batch begins.
    fn open(&self) {
        self.batches.fetch_add(1, Ordering::SeqCst);
    }

    /// A batch is over. With the last one, nothing is left that could be cancelled.
    fn close(&self) {
        if self.batches.fetch_sub(1, Ordering::SeqCst) == 1 && self.any.load(Ordering::SeqCst) {
            let mut state = self.state();
            if self.batches.load(Ordering::SeqCst) == 0 {
                state.cancelled.clear();
                self.any.store(false, Ordering::SeqCst);
            }
        }
    }

    /// Cancels a call of a batch that is under way.
    pub(super) fn cancel(&self, call: CallNo) {
        let mut state = self.state();
        if self.batches.load(Ordering::SeqCst) == 0 {
            return;
        }
        self.any.store(true, Ordering::SeqCst);
        state.cancelled.insert(call);
        if let Some(life) = state.waiting.get(&call) {
            life.cancel().cancel();
        }
    }

    pub(super) fn is_cancelled(&self, call: CallNo) -> bool {
        self.any.load(Ordering::SeqCst) && self.state().cancelled.contains(&call)
    }

    /// The call waits, and can be told from now on.
    pub(super) fn enter(&self, life: &Arc<Life>) {
        let mut state = self.state();
        if state.cancelled.contains(&life.call()) {
            life.cancel().cancel();
        }
        state.waiting.insert(life.call(), life.clone());
    }

    /// The call does not wait any more.
    pub(super) fn leave(&self, call: CallNo) {
        self.state().waiting.remove(&call);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
