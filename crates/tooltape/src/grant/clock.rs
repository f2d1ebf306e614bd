//! The clock: the only way in which the runtime and its tools learn the time.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::{CallContext, Grant};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Tells the time, as the host grants it.
///
/// A tool that declares `determinism = Bounded` sees one moment for the whole call, which the tape
/// keeps, so that a replay sees it too.
///
/// ```
/// use std::time::Duration;
/// use tooltape::Clock;
///
/// let clock = Clock::fixed(Duration::from_secs(1));
/// clock.advance(Duration::from_millis(5));
/// assert_eq!(clock.unix_us(), 1_005_000);
/// ```
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    /// Steps of the runtime's clock from one reading of the wall clock, so time never runs back,
    /// and stands still where a test pauses the runtime's timers.
    System { origin: Instant, unix_us: u64 },
    /// What it shows, and when it was made: deadlines run even where the shown time stands still.
    Fixed { unix_us: Arc<AtomicU64>, origin: Instant },
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock(Source::System { origin: Instant::now(), unix_us: micros(since) })
    }

    /// A clock that stands at this time since the Unix epoch, until somebody advances it.
    pub fn fixed(since_epoch: Duration) -> Clock {
        let unix_us = Arc::new(AtomicU64::new(micros(since_epoch)));
        Clock(Source::Fixed { unix_us, origin: Instant::now() })
    }

    /// Moves a fixed clock, and all its clones, forward. The machine's clock moves by itself.
    pub fn advance(&self, by: Duration) {
        match &self.0 {
            Source::System { .. } => {}
            Source::Fixed { unix_us, .. } => {
                unix_us.fetch_add(micros(by), Ordering::SeqCst);
            }
        }
    }

    /// Microseconds since the Unix epoch.
    #[inline]
    pub fn unix_us(&self) -> u64 {
        match &self.0 {
            Source::System { origin, unix_us } => unix_us + micros(origin.elapsed()),
            Source::Fixed { unix_us, .. } => unix_us.load(Ordering::SeqCst),
        }
    }

    /// Microseconds on a clock that never stands still, by which deadlines run; `unix_us` is what
    /// was just read.
    pub(crate) fn steady_us(&self, unix_us: u64) -> u64 {
        match &self.0 {
            Source::System { .. } => unix_us,
            Source::Fixed { origin, .. } => micros(origin.elapsed()),
        }
    }

    /// The same, where nothing was read before.
    pub(crate) fn now_us(&self) -> u64 {
        self.steady_us(self.unix_us())
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Grant for Clock {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> Clock {
        match context.frozen_unix_us {
            Some(unix_us) => Clock::fixed(Duration::from_micros(unix_us)),
            None => self,
        }
    }
}
