//! CPU time of this process: what a busy neighbour does not change.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time that was spent.
pub type Time = Duration;

/// Measures the CPU time that this process spends from here on.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Duration);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        Stopwatch(spent())
    }

    /// The CPU time since the start.
    pub fn elapsed(&self) -> Time {
        spent().saturating_sub(self.0)
    }
}

fn spent() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(spent).expect("CPU time is never negative")
}
