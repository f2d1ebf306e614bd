//! The limits of a run: each with a name and a default.

use std::time::Duration;

use crate::canon::Limits;

/// The wall time of an attempt, unless its tool says otherwise.
pub const WALL_DEFAULT: Duration = Duration::from_secs(60);
/// The tool calls of one batch that are executed.
pub const BATCH_CALLS_DEFAULT: u64 = 128;
/// The tool calls of one run that are executed.
pub const RUN_CALLS_DEFAULT: u64 = 10_000;
/// The deepest nesting of runs.
pub const DEPTH_DEFAULT: u32 = 8;

/// Limits that hold for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// The wall time of an attempt, unless its tool says otherwise.
    pub wall: Duration,
    /// The tool calls of one batch that are executed; those after them are answered in place.
    pub batch_calls: u64,
    /// The tool calls of the run that are executed; those after them are answered in place.
    pub run_calls: u64,
    /// The deepest nesting of runs.
    pub depth: u32,
    /// How large arguments may be.
    pub arguments: Limits,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits {
            wall: WALL_DEFAULT,
            batch_calls: BATCH_CALLS_DEFAULT,
            run_calls: RUN_CALLS_DEFAULT,
            depth: DEPTH_DEFAULT,
            arguments: Limits::default(),
        }
    }
}
