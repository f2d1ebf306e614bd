//! A layer that lets attempts start only so often.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter, clock};
use tokio::sync::Semaphore;

use super::{Attempt, Layer, Next};
use crate::fault::ToolError;
use crate::grant::Grants;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tool::{BoxFuture, Output};

/// Lets attempts start only so often, by the run's clock.
///
/// As many as the rate names may start at once; then they are spread evenly. Shared in an `Arc`, it
/// holds for several runs together.
pub struct RateLimit {
    /// None where nothing may start at all.
    limiter: Option<Limiter>,
    now: Now,
    /// Where those who wait stand in line; none where nobody waits.
    line: Option<Semaphore>,
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, Now, NoOpMiddleware<Duration>>;

impl RateLimit {
    /// Lets `attempts` start in each `period`; the others wait, first come, first served.
    ///
    /// The run's limit `queue` bounds how long.
    pub fn wait(attempts: u32, period: Duration) -> RateLimit {
        RateLimit { line: Some(Semaphore::new(1)), ..RateLimit::refuse(attempts, period) }
    }

    /// Lets `attempts` start in each `period`, and refuses the others with the code `rate.limited`
    /// and the time after which to try again.
    pub fn refuse(attempts: u32, period: Duration) -> RateLimit {
        let now = Now::default();
        let limiter = NonZeroU32::new(attempts).map(|burst| {
            let step = (period / attempts).max(Duration::from_nanos(1));
            let quota = Quota::with_period(step).expect("a step is never zero");
            RateLimiter::direct_with_clock(quota.allow_burst(burst), now.clone())
        });
        RateLimit { limiter, now, line: None }
    }

    /// Takes a start, or says how long it is until there is one.
    fn take(&self, grants: &Grants<'_>) -> Result<(), Duration> {
        let now = self.now.set(grants.clock().unix_us());
        let limiter = self.limiter.as_ref().ok_or(Duration::MAX)?;
        limiter.check().map_err(|not_until| not_until.wait_time_from(now))
    }
}

impl Layer for RateLimit {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let turn = match &self.line {
                Some(line) => Some(line.acquire().await.expect("nobody closes the line")),
                None => None,
            };
            while let Err(wait) = self.take(grants) {
                if turn.is_none() {
                    let told = "too many calls; try again later";
                    return Err(ToolError::retry_after(wait, told).code("rate.limited"));
                }
                tokio::time::sleep(wait).await;
            }
            drop(turn);
            next.perform(attempt, grants).await
        })
    }
}

/// The latest moment that some run's clock showed, in microseconds: it never runs back.
#[derive(Clone, Default)]
struct Now(Arc<AtomicU64>);

impl Now {
    fn set(&self, unix_us: u64) -> Duration {
        let before = self.0.fetch_max(unix_us, Ordering::Relaxed);
        Duration::from_micros(before.max(unix_us))
    }
}

impl clock::Clock for Now {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}
