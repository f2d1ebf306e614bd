//! Races: the same work done in several ways, in turn, in one process.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::cpu::{Stopwatch, Time};

/// How much is done for one figure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often every racer has its turn.
    pub rounds: usize,
    /// The CPU time that a turn should take at least.
    pub slice: Duration,
    /// What large inputs are divided by.
    pub shrink: usize,
}

impl Effort {
    /// Enough for figures that can be compared.
    pub const FULL: Effort = Effort { rounds: 61, slice: Duration::from_millis(4), shrink: 1 };
    /// Enough to see that everything still runs.
    pub const SMOKE: Effort = Effort { rounds: 1, slice: Duration::ZERO, shrink: 100 };
}

/// One way of doing the work.
pub struct Racer<'a> {
    name: String,
    work: Box<dyn FnMut(usize) -> Time + 'a>,
}

impl<'a> Racer<'a> {
    /// Does the work by calling a function again and again.
    pub fn new(name: impl Into<String>, mut work: impl FnMut() + 'a) -> Racer<'a> {
        Racer::timed(name, move |times| {
            let watch = Stopwatch::start();
            (0..times).for_each(|_| work());
            watch.elapsed()
        })
    }

    /// Does the work so many times and says itself what that took, so that it may prepare unseen.
    pub fn timed(name: impl Into<String>, work: impl FnMut(usize) -> Time + 'a) -> Racer<'a> {
        Racer { name: name.into(), work: Box::new(work) }
    }

    /// Does the work on a runtime, by awaiting so many calls one after the other.
    pub fn awaited(
        name: impl Into<String>,
        runtime: &'a Runtime,
        calls: usize,
        call: impl AsyncFn() + 'a,
    ) -> Racer<'a> {
        Racer::timed(name, move |times| {
            let watch = Stopwatch::start();
            runtime.block_on(async {
                for _ in 0..times * calls {
                    call().await;
                }
            });
            watch.elapsed()
        })
    }
}

/// How a racer did.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The racer.
    pub name: String,
    /// The median CPU time of doing the work once, in nanoseconds.
    pub nanos: f64,
    /// The median over all rounds of its time through the first racer's.
    pub ratio: f64,
    /// The lower and upper quartile of that.
    pub range: (f64, f64),
}

impl Lane {
    /// One line for a reader.
    pub fn row(&self) -> String {
        let Lane { name, nanos, ratio, range: (low, high) } = self;
        let (time, unit) = match *nanos {
            nanos if nanos < 1e4 => (nanos, "ns"),
            nanos if nanos < 1e7 => (nanos / 1e3, "µs"),
            nanos => (nanos / 1e6, "ms"),
        };
        format!("{name:<44} {time:>9.1} {unit}  {ratio:>7.2} × ({low:.2}–{high:.2})")
    }
}

/// What one measurement found.
pub struct Measured {
    /// The figure's value.
    pub value: f64,
    /// What stands behind it, a line each.
    pub rows: Vec<String>,
}

impl Measured {
    /// A value, and the lanes that it comes from.
    pub fn of<'a>(value: f64, lanes: impl IntoIterator<Item = &'a Lane>) -> Measured {
        Measured { value, rows: lanes.into_iter().map(Lane::row).collect() }
    }
}

/// Lets every racer have its turn in every round, and compares within rounds.
///
/// Who begins moves on from round to round, so that nobody always runs after the same one.
pub fn race<const N: usize>(effort: Effort, mut racers: [Racer<'_>; N]) -> [Lane; N] {
    let times = racers.each_mut().map(|racer| calibrate(racer, effort.slice));
    let mut rounds = vec![[0.0; N]; effort.rounds];
    for (at, round) in rounds.iter_mut().enumerate() {
        for turn in 0..N {
            let turn = (at + turn) % N;
            let spent = (racers[turn].work)(times[turn]);
            round[turn] = spent.as_nanos() as f64 / times[turn] as f64;
        }
    }
    let mut at = 0;
    racers.map(|racer| {
        let nanos = median(rounds.iter().map(|round| round[at]));
        let mut ratios: Vec<_> = rounds.iter().map(|round| round[at] / round[0]).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        at += 1;
        Lane {
            name: racer.name,
            nanos,
            ratio: median(ratios.iter().copied()),
            range: (ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]),
        }
    })
}

/// How often the work is done in one turn.
fn calibrate(racer: &mut Racer<'_>, slice: Duration) -> usize {
    let mut times = 1;
    while (racer.work)(times) < slice {
        times *= 2;
    }
    times
}

/// The middle of some values, or the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}
