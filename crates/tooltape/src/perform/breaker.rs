//! A layer that stops calling a tool which keeps failing.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use super::{Attempt, Layer, Next};
use crate::fault::{Executed, ToolError, ToolErrorKind};
use crate::grant::{Clock, Grants};
use crate::id::ToolId;
use crate::sync::{Mutex, MutexGuard};
use crate::tool::{BoxFuture, Output};

/// Stops calling a tool that keeps failing, until some time has passed; each tool by itself.
///
/// After so many failures in a row its calls are refused with the code `breaker.open` and the time
/// after which to try again. Then one call is let through: if it succeeds the tool is called as
/// before, if it fails the time starts again, and meanwhile the others are refused.
///
/// What was not done, what was cancelled and what waits for a person says nothing about the tool.
/// Nor does a call that is dropped from outside; put a [`Timeout`](super::Timeout) inside the
/// breaker to count a tool that hangs.
pub struct Breaker {
    failures_max: u32,
    pause: Duration,
    /// The tools that failed last time.
    tools: Mutex<HashMap<ToolId, State>>,
}

enum State {
    /// It is called, after this many failures in a row.
    Closed { failures: u32 },
    /// It is not called until this moment, in microseconds; then one call finds out.
    Open { until_us: u64 },
    /// One call is finding out.
    Trying,
}

impl Breaker {
    /// Pauses a tool for this long after this many failures in a row, and after at least one.
    pub fn new(failures: u32, pause: Duration) -> Breaker {
        Breaker { failures_max: failures.max(1), pause, tools: Mutex::default() }
    }

    /// Lets a call through, or says how long none is.
    fn enter(&self, tool: &ToolId, clock: Clock) -> Result<Entered<'_>, Duration> {
        let now_us = clock.unix_us();
        let mut tools = self.tools();
        let tries = match tools.get(tool) {
            None | Some(State::Closed { .. }) => false,
            Some(State::Open { until_us }) if *until_us <= now_us => {
                tools.insert(tool.clone(), State::Trying);
                true
            }
            Some(State::Open { until_us }) => {
                return Err(Duration::from_micros(until_us - now_us));
            }
            Some(State::Trying) => return Err(self.pause),
        };
        Ok(Entered { breaker: self, tool: tool.clone(), clock, tries, said: Said::Nothing })
    }

    fn tools(&self) -> MutexGuard<'_, HashMap<ToolId, State>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for Breaker {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let entered = self.enter(attempt.call().tool(), grants.clock());
            let mut entered = entered.map_err(|wait| {
                let told = "the tool failed too often; it is not called for a while";
                ToolError::retry_after(wait, told).code("breaker.open")
            })?;
            let performed = next.perform(attempt, grants).await;
            entered.said = Said::by(&performed);
            performed
        })
    }
}

/// A call that was let through. Dropping it counts what it said.
struct Entered<'b> {
    breaker: &'b Breaker,
    tool: ToolId,
    clock: Clock,
    /// Whether it finds out if the tool works again.
    tries: bool,
    said: Said,
}

/// What a call says about its tool.
enum Said {
    Works,
    Fails,
    Nothing,
}

impl Said {
    fn by(performed: &Result<Output, ToolError>) -> Said {
        match performed {
            Ok(_) => Said::Works,
            Err(err) if err.executed() == Executed::NotExecuted => Said::Nothing,
            Err(err) if err.kind() == ToolErrorKind::Cancelled => Said::Nothing,
            Err(_) => Said::Fails,
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut tools = self.breaker.tools();
        let failures = match tools.get(&self.tool) {
            None => 0,
            Some(State::Closed { failures }) => *failures,
            Some(State::Open { .. } | State::Trying) if self.tries => self.breaker.failures_max,
            // It was let through before the breaker opened, and is too late to say anything.
            Some(State::Open { .. } | State::Trying) => return,
        };
        let now_us = self.clock.unix_us();
        let pause_us = u64::try_from(self.breaker.pause.as_micros()).unwrap_or(u64::MAX);
        let state = match self.said {
            Said::Works => None,
            Said::Nothing if self.tries => Some(State::Open { until_us: now_us }),
            Said::Nothing => return,
            Said::Fails if failures + 1 >= self.breaker.failures_max => {
                Some(State::Open { until_us: now_us.saturating_add(pause_us) })
            }
            Said::Fails => Some(State::Closed { failures: failures + 1 }),
        };
        match state {
            Some(state) => tools.insert(self.tool.clone(), state),
            None => tools.remove(&self.tool),
        };
    }
}
