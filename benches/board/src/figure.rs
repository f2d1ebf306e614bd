//! The figures of the board: what each is called, and what it is held against.

use serde::Serialize;

use crate::race::{Effort, Measured, median};
#[cfg(feature = "wasm")]
use crate::wasm;
use crate::{agent, batch, canon, dispatch, kit, policy, replay, sandbox, schema, sse, tape};

/// How often a figure that misses its floor is measured again.
const AGAIN: usize = 3;

/// A figure and its goals.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// Which way is good.
    pub better: Better,
    /// What it must reach.
    pub floor: f64,
    /// Where it is going.
    pub moonshot: f64,
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

impl Better {
    /// The sign between a figure and its goal.
    pub fn sign(self) -> char {
        match self {
            Better::Lower => '≤',
            Better::Higher => '≥',
        }
    }

    fn met(self, value: f64, goal: f64) -> bool {
        match self {
            Better::Lower => value <= goal,
            Better::Higher => value >= goal,
        }
    }
}

/// A figure and the way to measure it.
pub struct Benchmark {
    /// The figure.
    pub figure: Figure,
    /// Measures it once.
    pub measure: fn(Effort) -> Measured,
}

/// A line of the board, as programs read it.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// The figure.
    pub name: &'static str,
    /// What was measured.
    pub value: f64,
    /// What it counts.
    pub unit: &'static str,
    /// What it must reach.
    pub floor: f64,
    /// Where it is going.
    pub moonshot: f64,
    /// Whether the floor is reached.
    pub met: bool,
}

/// Measures a figure; one that misses is measured again, and the median of all counts.
pub fn settle(benchmark: &Benchmark, effort: Effort, mut tell: impl FnMut(&Measured)) -> Entry {
    let Figure { name, unit, better, floor, moonshot } = benchmark.figure;
    let mut measure = || {
        let measured = (benchmark.measure)(effort);
        tell(&measured);
        measured.value
    };
    let mut values = vec![measure()];
    if !better.met(values[0], floor) {
        values.extend((0..AGAIN).map(|_| measure()));
    }
    let value = (median(values) * 1e3).round() / 1e3;
    Entry { name, value, unit, floor, moonshot, met: better.met(value, floor) }
}

const fn ratio(name: &'static str, floor: f64, moonshot: f64) -> Figure {
    Figure { name, unit: "×", better: Better::Lower, floor, moonshot }
}

const fn count(name: &'static str, floor: f64, moonshot: f64) -> Figure {
    Figure { name, unit: "per call", better: Better::Lower, floor, moonshot }
}

const fn micros(name: &'static str, floor: f64, moonshot: f64) -> Figure {
    Figure { name, unit: "µs", better: Better::Lower, floor, moonshot }
}

const fn millis(name: &'static str, floor: f64, moonshot: f64) -> Figure {
    Figure { name, unit: "ms", better: Better::Lower, floor, moonshot }
}

#[cfg(feature = "wasm")]
const fn kib(name: &'static str, floor: f64, moonshot: f64) -> Figure {
    Figure { name, unit: "KiB", better: Better::Lower, floor, moonshot }
}

const fn share(name: &'static str, floor: f64, moonshot: f64) -> Figure {
    Figure { name, unit: "×", better: Better::Higher, floor, moonshot }
}

const fn rate(name: &'static str, floor: f64, moonshot: f64) -> Figure {
    Figure { name, unit: "per second", better: Better::Higher, floor, moonshot }
}

/// Every figure whose part is built.
pub const BOARD: &[Benchmark] = &[
    Benchmark { figure: ratio("dispatch.full", 10.0, 3.6), measure: dispatch::full },
    Benchmark { figure: ratio("dispatch.tools", 1.1, 1.0), measure: dispatch::tools },
    Benchmark { figure: count("dispatch.allocs", 10.0, 3.0), measure: dispatch::allocs },
    Benchmark { figure: ratio("schema.validate", 4.5, 1.3), measure: schema::validate },
    Benchmark { figure: count("schema.compiles", 0.0, 0.0), measure: schema::compiles },
    Benchmark { figure: ratio("canon.hash", 3.0, 1.25), measure: canon::hash },
    Benchmark { figure: micros("policy.judge", 50.0, 10.0), measure: policy::judge },
    Benchmark { figure: ratio("batch.growth", 4.4, 4.0), measure: batch::growth },
    Benchmark { figure: ratio("batch.call", 1.3, 1.0), measure: batch::call },
    Benchmark { figure: ratio("batch.wall", 1.05, 1.02), measure: batch::wall },
    Benchmark { figure: ratio("agent.growth", 1.2, 1.0), measure: agent::growth },
    Benchmark { figure: ratio("agent.call", 1.2, 1.0), measure: agent::call },
    Benchmark { figure: share("sse.decode", 2.5, 4.0), measure: sse::decode },
    Benchmark { figure: ratio("sse.growth", 25.0, 16.0), measure: sse::growth },
    Benchmark { figure: ratio("sse.argument", 25.0, 16.0), measure: sse::argument },
    Benchmark { figure: ratio("tape.single", 1.3, 1.05), measure: tape::single },
    Benchmark { figure: share("tape.group", 0.5, 0.85), measure: tape::group },
    Benchmark { figure: ratio("tape.nosync", 8.0, 1.5), measure: tape::nosync },
    Benchmark { figure: rate("tape.verify", 300_000.0, 1_000_000.0), measure: tape::verify },
    Benchmark { figure: rate("replay.rate", 50_000.0, 500_000.0), measure: replay::rate },
    Benchmark { figure: ratio("kit.grep", 1.3, 1.0), measure: kit::grep },
    Benchmark { figure: ratio("kit.glob", 1.3, 1.0), measure: kit::glob },
    Benchmark { figure: micros("kit.read", 1_000.0, 300.0), measure: kit::read },
    Benchmark { figure: millis("sandbox.spawn", 20.0, 8.0), measure: sandbox::spawn },
    #[cfg(feature = "wasm")]
    Benchmark { figure: share("wasm.call", 20.0, 60.0), measure: wasm::call },
    #[cfg(feature = "wasm")]
    Benchmark { figure: share("wasm.load", 50.0, 200.0), measure: wasm::load },
    #[cfg(feature = "wasm")]
    Benchmark { figure: kib("wasm.idle", 4_096.0, 1_024.0), measure: wasm::idle },
];
