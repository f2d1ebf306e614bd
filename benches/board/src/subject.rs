//! The call that is measured: `add(a, b)`, directly and on the whole path.

use std::hint::black_box;
use std::panic;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tooltape::{Access, Proposal, Reply, Run, RunLimits, Spec, ToolError, Toolbox, input, tool_fn};

use crate::cpu::{Stopwatch, Time};

/// The calls that one run makes before another takes over.
///
/// A memory tape keeps what happened, so a run that went on for ever would measure how memory is
/// found. Opening a run is not timed; giving its memory back is.
const CALLS_PER_RUN: usize = 1_000;

/// The arguments of the measured call, as a model writes them.
pub const ADD_TEXT: &str = r#"{"a":2,"b":40}"#;

/// Two numbers.
#[input]
pub struct Add {
    /// The first.
    pub a: i64,
    /// The second.
    pub b: i64,
}

/// Adds two numbers.
pub fn add(args: &Add) -> i64 {
    args.a.wrapping_add(args.b)
}

/// What everything is measured against: text in, text out, and nothing between.
pub fn direct(text: &str) -> String {
    let args: Add = serde_json::from_str(text).expect("the arguments fit");
    serde_json::to_string(&add(&args)).expect("a number serialises")
}

/// A toolbox of so many adders: `add`, and others before and behind it.
pub fn toolbox(tools: usize) -> Toolbox {
    let adder = |at| {
        let name = if at == tools / 2 { "add".to_owned() } else { format!("add_{at}") };
        let spec = Spec::new(name, "Adds two numbers.").access(Access::Pure);
        tool_fn(spec, async |args: Add| Ok::<_, ToolError>(add(&args)))
    };
    Toolbox::new((0..tools).map(adder)).expect("the names differ")
}

/// How a call comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At once.
    Ready,
    /// After it gave way once.
    Waiting,
    /// With a panic.
    Panicking,
}

/// A runtime, a toolbox and a proposal: all that a call needs.
pub struct Subject {
    runtime: Runtime,
    toolbox: Toolbox,
    proposal: Proposal,
    limits: RunLimits,
    fails: bool,
}

impl Subject {
    /// Calls of `add` among so many tools.
    pub fn adding_among(tools: usize) -> Subject {
        Subject::new(toolbox(tools), Proposal::new("call_1", "add", ADD_TEXT))
    }

    /// Calls of this proposal. It was decoded before, so that making it is not timed.
    pub fn new(toolbox: Toolbox, proposal: Proposal) -> Subject {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a thread can have a runtime");
        let mut limits = RunLimits::default();
        limits.batch_calls = u64::MAX;
        limits.run_calls = u64::MAX;
        Subject { runtime, toolbox, proposal, limits, fails: false }
    }

    /// Calls that end so.
    pub fn of(kind: Kind) -> Subject {
        let spec = Spec::new("add", "Adds two numbers.").access(Access::Pure);
        let tool = tool_fn(spec, move |args: Add| async move {
            match kind {
                Kind::Ready => {}
                Kind::Waiting => tokio::task::yield_now().await,
                // The hook would write to the terminal.
                Kind::Panicking => panic::resume_unwind(Box::new("planted")),
            }
            Ok::<_, ToolError>(add(&args))
        });
        let toolbox = Toolbox::new([tool]).expect("one name");
        let subject = Subject::new(toolbox, Proposal::new("call_1", "add", ADD_TEXT));
        Subject { fails: kind == Kind::Panicking, ..subject }
    }

    /// Calls that take so long, so many at once.
    pub fn sleeping(time: Duration, at_once: usize) -> Subject {
        let spec = Spec::new("add", "Adds two numbers.").access(Access::Pure);
        let tool = tool_fn(spec, move |args: Add| async move {
            tokio::time::sleep(time).await;
            Ok::<_, ToolError>(add(&args))
        });
        let toolbox = Toolbox::new([tool]).expect("one name");
        let mut subject = Subject::new(toolbox, Proposal::new("call_1", "add", ADD_TEXT));
        subject.limits.concurrency = at_once;
        subject
    }

    /// Sleeps so often, one after the other, on the runtime of the calls; returns how long it took.
    pub fn sleep(&self, time: Duration, times: usize) -> Duration {
        let start = Instant::now();
        self.runtime.block_on(async {
            for _ in 0..times {
                tokio::time::sleep(time).await;
            }
        });
        start.elapsed()
    }

    /// Makes so many calls in one batch, and says how long that took; opening the run is not timed.
    pub fn batch(&self, calls: usize) -> Duration {
        let run = self.opened();
        let start = Instant::now();
        black_box(self.runtime.block_on(self.answer(&run, vec![self.proposal.clone(); calls])));
        start.elapsed()
    }

    /// Makes so many calls one after the other, each a batch of its own.
    pub fn calls(&self, times: usize) -> Time {
        self.calls_of(times, || self.proposal.clone())
    }

    /// Makes calls of proposals that are made just before.
    pub fn calls_of(&self, times: usize, proposal: impl Fn() -> Proposal) -> Time {
        self.on_fresh_runs(times, CALLS_PER_RUN, async |run, times| {
            for _ in 0..times {
                black_box(self.answer(run, vec![proposal()]).await);
            }
        })
    }

    /// Makes so many calls in batches of a size.
    pub fn batches(&self, times: usize, size: usize) -> Time {
        self.on_fresh_runs(times, size, async |run, times| {
            black_box(self.answer(run, vec![self.proposal.clone(); times]).await);
        })
    }

    /// Makes one call on a run.
    pub fn call(&self, run: &Run) {
        black_box(self.runtime.block_on(self.answer(run, vec![self.proposal.clone()])));
    }

    /// A run that has made its first call, which is when it checks what its tools need.
    pub fn opened(&self) -> Run {
        let run = Run::new(&self.toolbox).limits(self.limits);
        self.call(&run);
        run
    }

    fn on_fresh_runs(&self, times: usize, per_run: usize, work: impl AsyncFn(&Run, usize)) -> Time {
        let mut spent = Time::ZERO;
        for from in (0..times).step_by(per_run) {
            let run = self.opened();
            let watch = Stopwatch::start();
            self.runtime.block_on(work(&run, per_run.min(times - from)));
            drop(run);
            spent += watch.elapsed();
        }
        spent
    }

    async fn answer(&self, run: &Run, proposals: Vec<Proposal>) -> Vec<Reply> {
        let replies = run.batch(proposals).await.expect("the run goes on");
        let as_planned = |reply: &Reply| reply.is_error == self.fails;
        assert!(replies.iter().all(as_planned), "every call ends as planned");
        replies
    }
}
