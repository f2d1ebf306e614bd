//! Time that moves only when somebody moves it, so that a wake-up which got lost stays lost.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use model_std::switch;

thread_local! {
    // The tasks of one schedule share a thread of the machine, and no switch happens in here.
    static TIMERS: RefCell<Timers> = const { RefCell::new(Timers::new()) };
}

struct Timers {
    now: Duration,
    made: u64,
    waiting: BTreeMap<u64, (Duration, Waker)>,
}

impl Timers {
    const fn new() -> Timers {
        Timers { now: Duration::ZERO, made: 0, waiting: BTreeMap::new() }
    }
}

/// Begins time anew, for a new schedule.
pub fn restart() {
    TIMERS.set(Timers::new());
}

/// Moves time forward.
pub fn advance(by: Duration) {
    switch();
    let due = TIMERS.with_borrow_mut(|timers| {
        timers.now += by;
        let now = timers.now;
        timers.waiting.extract_if(.., |_, (at, _)| *at <= now).collect::<Vec<_>>()
    });
    due.into_iter().for_each(|(_, (_, waker))| waker.wake());
}

/// A moment since the schedule began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// The present.
    pub fn now() -> Instant {
        Instant(TIMERS.with_borrow(|timers| timers.now))
    }

    /// How long ago it was.
    pub fn elapsed(&self) -> Duration {
        Instant::now().0.saturating_sub(self.0)
    }
}

/// Waits until time was moved so far.
pub fn sleep(duration: Duration) -> Sleep {
    let (at, id) = TIMERS.with_borrow_mut(|timers| {
        timers.made += 1;
        (timers.now.saturating_add(duration), timers.made)
    });
    Sleep { at, id }
}

/// Waits until a moment.
#[derive(Debug)]
pub struct Sleep {
    at: Duration,
    id: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        TIMERS.with_borrow_mut(|timers| {
            if timers.now >= self.at {
                return Poll::Ready(());
            }
            timers.waiting.insert(self.id, (self.at, context.waker().clone()));
            Poll::Pending
        })
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        TIMERS.with_borrow_mut(|timers| timers.waiting.remove(&self.id));
    }
}

/// The time was up.
#[derive(Debug)]
pub struct Elapsed;

/// Waits for a future, for so long at most.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    tokio::select! {
        biased;
        output = future => Ok(output),
        () = sleep(duration) => Err(Elapsed),
    }
}
