//! How fast a recorded run is played again.

use tokio::runtime::Builder;
use tooltape::{
    Determinism, Effects, MemoryTape, Proposal, Replay, Run, Spec, ToolError, Toolbox, tool_fn,
};

use crate::cpu::Stopwatch;
use crate::race::{Effort, Measured, median};
use crate::subject::{ADD_TEXT, Add, add};

/// The calls of the recorded run.
const CALLS: usize = 10_000;
/// The calls of one of its batches.
const BATCH: usize = 100;

/// `replay.rate`: recorded calls per second that are resolved, judged, executed and compared again.
pub fn rate(effort: Effort) -> Measured {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a thread can have a runtime");
    let mut spec = Spec::new("add", "Adds two numbers.").effects(Effects::pure());
    spec.effects.determinism = Determinism::Deterministic;
    let adder = tool_fn(spec, async |args: Add| Ok::<_, ToolError>(add(&args)));
    let toolbox = Toolbox::new([adder]).expect("there is one");
    let tape = MemoryTape::default();
    let run = Run::new(&toolbox).tape(tape.clone());
    runtime.block_on(async {
        for _ in 0..CALLS / BATCH {
            let proposals = (0..BATCH).map(|_| Proposal::new("call_1", "add", ADD_TEXT));
            run.batch(proposals.collect()).await.expect("the tool adds");
        }
    });
    let records = tape.records(run.id());
    let rates = (0..effort.rounds).map(|_| {
        let replay = Replay::of_records(records.clone()).with(&toolbox);
        let watch = Stopwatch::start();
        let report = runtime.block_on(replay.check()).expect("the records can be played");
        let spent = watch.elapsed();
        assert!(report.is_same() && report.executed == CALLS as u64, "{report}");
        CALLS as f64 / (spent.as_nanos() as f64 / 1e9)
    });
    let value = median(rates.collect::<Vec<_>>());
    let micros = 1e6 / value;
    let executed = format!("tooltape: a recorded call, played again {micros:>24.2} µs");
    Measured { value, rows: vec![executed] }
}
