//! What it costs to run a program where it can do no harm.

use std::process::Command as Plain;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tooltape_kit::{Command, Helper, Sandbox, Status, Workspace};

use crate::race::{Effort, Measured, median};

/// The argument by which this program is the helper of a sandbox.
pub const HELPER: &str = "__sandbox";

/// The programs of one round, each way.
const RUNS: usize = 20;

/// `sandbox.spawn`: the median time of a program in the sandbox, over that of a plain one.
pub fn spawn(effort: Effort) -> Measured {
    let here = std::env::current_exe().expect("this program is a file");
    let sandbox = Sandbox::new(Helper::new(here, [HELPER])).expect("the sandbox works here");
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let files = Workspace::open(folder.path()).expect("a folder can be opened");
    let runtime = Builder::new_current_thread().build().expect("a thread can have a runtime");
    let (mut plain, mut boxed) = (Vec::new(), Vec::new());
    // Side by side, so that what else the machine does troubles both.
    for _ in 0..RUNS * effort.rounds {
        plain.push(timed(|| {
            let status = Plain::new("/bin/true").status().expect("`/bin/true` is there");
            assert!(status.success());
        }));
        boxed.push(timed(|| run(&runtime, &sandbox, &files)));
    }
    let (plain, boxed) = (median(plain), median(boxed));
    let row = |what: &str, millis: f64| format!("{what:<44} {millis:>12.2} ms");
    let rows = vec![row("direct: /bin/true", plain), row("tooltape: in the sandbox", boxed)];
    Measured { value: boxed - plain, rows }
}

fn run(runtime: &Runtime, sandbox: &Sandbox, files: &Workspace) {
    let process = sandbox.start(Some(files), Command::new(["/bin/true"]));
    let process = process.expect("the sandbox starts programs");
    let ended = runtime.block_on(process.end()).expect("it ends");
    assert_eq!(ended.status, Status::Exited(0));
}

/// Milliseconds on the wall: most of it is spent in other processes.
fn timed(run: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    run();
    begun.elapsed().as_secs_f64() * 1e3
}
