//! The limits of a run: each with a name and a default.

use std::time::Duration;

use crate::canon::Limits;
use crate::grant::{FUEL_DEFAULT, MEMORY_DEFAULT};
use crate::reply::OUTPUT_BYTES_DEFAULT;

/// The wall time of an attempt, unless its tool says otherwise.
pub const WALL_DEFAULT: Duration = Duration::from_secs(60);
/// The tool calls of one batch that are executed.
pub const BATCH_CALLS_DEFAULT: u64 = 128;
/// The tool calls of one run that are executed.
pub const RUN_CALLS_DEFAULT: u64 = 10_000;
/// The deepest nesting of runs.
pub const DEPTH_DEFAULT: u32 = 8;
/// The time that a call may take without saying anything, unless its tool says otherwise.
pub const IDLE_DEFAULT: Duration = Duration::from_secs(300);
/// The wall time of one batch, not counting the time in which somebody is asked.
pub const BATCH_WALL_DEFAULT: Duration = Duration::from_secs(60 * 60);
/// The wall time of one run, not counting the time in which somebody is asked.
pub const RUN_WALL_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
/// The time that a call which takes [`Cancel`](crate::Cancel) has to stop by itself.
pub const CANCEL_GRACE_DEFAULT: Duration = Duration::from_secs(2);
/// The time in which a yes to a question is one.
pub const APPROVAL_DEFAULT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The time that a tape has to make the end of a write durable.
pub const TAPE_WALL_DEFAULT: Duration = Duration::from_secs(60);
/// The calls of one run that run at the same time.
pub const CONCURRENCY_DEFAULT: usize = 64;
/// The promoted and recursive calls of one run that run at the same time.
pub const MUTATIONS_DEFAULT: usize = 8;
/// The threads of one run that blocking tools keep busy.
pub const BLOCKING_DEFAULT: usize = 32;
/// The bytes of arguments and results of one run.
pub const RUN_BYTES_DEFAULT: u64 = 1 << 30;
/// The time that an attempt may wait in the layers around it, before its tool is reached.
pub const QUEUE_DEFAULT: Duration = Duration::from_secs(60);

/// Limits that hold for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// The wall time of an attempt, unless its tool says otherwise.
    pub wall: Duration,
    /// The time that an attempt may wait in the layers around it. Only then does its wall time run.
    pub queue: Duration,
    /// The tool calls of one batch that are executed; those after them are answered in place.
    pub batch_calls: u64,
    /// The tool calls of the run that are executed; those after them are answered in place.
    pub run_calls: u64,
    /// The bytes of arguments and results of the run; calls after them are answered in place.
    pub run_bytes: u64,
    /// The time that a call may take without saying anything, unless its tool says otherwise.
    pub idle: Duration,
    /// The wall time of one batch. While somebody is asked its clock stands still.
    pub batch_wall: Duration,
    /// The wall time of the run. While somebody is asked its clock stands still.
    pub run_wall: Duration,
    /// The time that a cancelled call which takes [`Cancel`](crate::Cancel) has to stop by itself.
    pub cancel_grace: Duration,
    /// The time in which a yes to a question is one. What is answered later is asked again.
    pub approval: Duration,
    /// The time that the tape has to make the end of a write durable. Beyond it the run ends.
    pub tape_wall: Duration,
    /// The calls that run at the same time; at least one may.
    pub concurrency: usize,
    /// The promoted and recursive calls that run at the same time; at least one may.
    pub mutations: usize,
    /// The threads that blocking tools keep busy; at least one may.
    pub blocking: usize,
    /// The deepest nesting of runs.
    pub depth: u32,
    /// The bytes of memory of an attempt where a runtime counts them, unless its tool says
    /// otherwise.
    pub memory: u64,
    /// The fuel of an attempt where a runtime counts it, unless its tool says otherwise.
    pub fuel: u64,
    /// How large arguments may be.
    pub arguments: Limits,
    /// How many bytes of a result a model reads, unless its tool says otherwise.
    pub output_bytes: u64,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits {
            wall: WALL_DEFAULT,
            queue: QUEUE_DEFAULT,
            batch_calls: BATCH_CALLS_DEFAULT,
            run_calls: RUN_CALLS_DEFAULT,
            run_bytes: RUN_BYTES_DEFAULT,
            idle: IDLE_DEFAULT,
            batch_wall: BATCH_WALL_DEFAULT,
            run_wall: RUN_WALL_DEFAULT,
            cancel_grace: CANCEL_GRACE_DEFAULT,
            approval: APPROVAL_DEFAULT,
            tape_wall: TAPE_WALL_DEFAULT,
            concurrency: CONCURRENCY_DEFAULT,
            mutations: MUTATIONS_DEFAULT,
            blocking: BLOCKING_DEFAULT,
            depth: DEPTH_DEFAULT,
            memory: MEMORY_DEFAULT,
            fuel: FUEL_DEFAULT,
            arguments: Limits::default(),
            output_bytes: OUTPUT_BYTES_DEFAULT,
        }
    }
}

impl RunLimits {
    /// Of each limit, the lower one.
    pub(crate) fn meet(self, other: RunLimits) -> RunLimits {
        RunLimits {
            wall: self.wall.min(other.wall),
            queue: self.queue.min(other.queue),
            batch_calls: self.batch_calls.min(other.batch_calls),
            run_calls: self.run_calls.min(other.run_calls),
            run_bytes: self.run_bytes.min(other.run_bytes),
            output_bytes: self.output_bytes.min(other.output_bytes),
            idle: self.idle.min(other.idle),
            batch_wall: self.batch_wall.min(other.batch_wall),
            run_wall: self.run_wall.min(other.run_wall),
            cancel_grace: self.cancel_grace.min(other.cancel_grace),
            approval: self.approval.min(other.approval),
            tape_wall: self.tape_wall.min(other.tape_wall),
            concurrency: self.concurrency.min(other.concurrency),
            mutations: self.mutations.min(other.mutations),
            blocking: self.blocking.min(other.blocking),
            depth: self.depth.min(other.depth),
            memory: self.memory.min(other.memory),
            fuel: self.fuel.min(other.fuel),
            arguments: self.arguments.meet(other.arguments),
        }
    }
}
