//! The clock: the only way in which the runtime and its tools learn the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{CallContext, Grant};

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
    /// Steps of the monotonic clock from one reading of the wall clock, so time never runs back.
    System {
        origin: Instant,
        unix_us: u64,
    },
    Fixed(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock(Source::System { origin: Instant::now(), unix_us: micros(since) })
    }

    /// A clock that stands at this time since the Unix epoch, until somebody advances it.
    pub fn fixed(since_epoch: Duration) -> Clock {
        Clock(Source::Fixed(Arc::new(AtomicU64::new(micros(since_epoch)))))
    }

    /// Moves a fixed clock, and all its clones, forward. The machine's clock moves by itself.
    pub fn advance(&self, by: Duration) {
        match &self.0 {
            Source::System { .. } => {}
            Source::Fixed(unix_us) => {
                unix_us.fetch_add(micros(by), Ordering::SeqCst);
            }
        }
    }

    /// Microseconds since the Unix epoch.
    pub fn unix_us(&self) -> u64 {
        match &self.0 {
            Source::System { origin, unix_us } => unix_us + micros(origin.elapsed()),
            Source::Fixed(unix_us) => unix_us.load(Ordering::SeqCst),
        }
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
