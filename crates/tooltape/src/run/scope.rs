//! What ends calls before their time: cancelling, and the deadlines of a batch and of its run.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{LiveRun, Run, RunLimits};
use crate::fault::{BoundKind, Exceeded, Executed};
use crate::grant::{Life, Token};
use crate::id::CallNo;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
pub struct Canceller(pub(super) Token);

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
    own: OnceLock<Token>,
    /// When its first call could start, less what was asked until then; `NOT_BEGUN` before.
    began_us: AtomicU64,
    /// Whether nothing more starts.
    over: AtomicBool,
    closed: Notify,
}

/// Says that no call of a batch could start yet.
const NOT_BEGUN: u64 = u64::MAX;

impl<'r> Scope<'r> {
    /// A batch that ends with its run.
    pub(super) fn of(run: &'r Run) -> Scope<'r> {
        let (began_us, over) = (AtomicU64::new(NOT_BEGUN), AtomicBool::new(false));
        Scope { run, own: OnceLock::new(), began_us, over, closed: Notify::new() }
    }

    /// From now on the batch can be cancelled by itself, with this.
    pub(super) fn cancellable(&self) -> &Token {
        self.own.get_or_init(|| self.run.setup.cancel.child())
    }

    pub(super) fn token(&self) -> &Token {
        self.own.get().unwrap_or(&self.run.setup.cancel)
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
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
            || self.run.ended.get().is_some()
            || self.token().is_cancelled()
    }

    /// How much time is left at this moment, and which bound says so.
    pub(super) fn left(&self, now_us: u64) -> Left {
        let limits = &self.run.setup.limits;
        let (run_us, batch_us) = self.began(now_us);
        let ran_us = now_us.saturating_add(self.run.live().ran_us);
        let of_run = Left::new(BoundKind::RunWall, limits.run_wall, ran_us, run_us);
        let of_batch = Left::new(BoundKind::BatchWall, limits.batch_wall, now_us, batch_us);
        if of_batch.time < of_run.time { of_batch } else { of_run }
    }

    /// The bound that is reached at this moment, if one is.
    #[inline]
    pub(super) fn over_at(&self, now_us: u64) -> Option<Left> {
        let LiveRun { walls, ran_us, .. } = self.run.live();
        let (run_us, batch_us) = self.began(now_us);
        let over = now_us.saturating_add(*ran_us).saturating_sub(run_us) >= walls.run_us
            || now_us.saturating_sub(batch_us) >= walls.batch_us;
        over.then(|| self.left(now_us))
    }

    /// When the run and the batch began, had nobody been asked anything.
    ///
    /// A batch begins when its first call could start. The time in which somebody is asked does
    /// not count.
    #[inline]
    fn began(&self, now_us: u64) -> (u64, u64) {
        let live = self.run.live();
        let (run_us, asked_us) = (live.began_us, live.asked.total_us(now_us));
        let mut began_us = self.began_us.load(Ordering::Relaxed);
        if began_us == NOT_BEGUN {
            // All calls of a batch are polled by one task, so nobody else sets it meanwhile.
            began_us = now_us.wrapping_sub(asked_us);
            self.began_us.store(began_us, Ordering::Relaxed);
        }
        (run_us + asked_us, began_us.wrapping_add(asked_us))
    }
}

/// The longest that a run and a batch may take, in microseconds.
pub(super) struct Walls {
    run_us: u64,
    batch_us: u64,
}

impl Walls {
    pub(super) fn new(limits: &RunLimits) -> Walls {
        let us = |limit: Duration| {
            let us = limit.as_nanos().div_ceil(1_000);
            u64::try_from(us).unwrap_or(u64::MAX)
        };
        Walls { run_us: us(limits.run_wall), batch_us: us(limits.batch_wall) }
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
}

#[derive(Default)]
struct State {
    cancelled: HashSet<CallNo>,
    waiting: HashMap<CallNo, Arc<Life>>,
}

impl Halts {
    /// Cancels a call. Its number is kept, since nobody here knows whether the call is over.
    ///
    /// No more numbers are kept than the run made calls.
    pub(super) fn cancel(&self, call: CallNo) {
        let mut state = self.state();
        self.any.store(true, Ordering::SeqCst);
        state.cancelled.insert(call);
        if let Some(life) = state.waiting.get(&call) {
            life.cancel().cancel();
        }
    }

    #[inline]
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
