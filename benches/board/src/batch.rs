//! What calls cost that are proposed together.

use std::time::Duration;

use crate::race::{Effort, Lane, Measured, Racer, median, race};
use crate::subject::{Kind, Subject};

/// The calls of the batch that takes its time, and how many of them run at once.
const SLOW_CALLS: usize = 1_000;
const SLOW_AT_ONCE: usize = 64;
/// How long each of them takes.
const SLOW: Duration = Duration::from_millis(10);
/// How often the slow batch is timed.
const SLOW_ROUNDS: usize = 7;

/// A heap like that of a program which has run for a while: what is freed is used again.
///
/// Otherwise a large batch gives its memory back to the system and asks for it again, each time,
/// and a small one does not: that is no growth of ours. The block that is returned stands at the
/// end of the heap, so that nothing before it is given back.
fn lived_in() -> Box<[u8]> {
    const BLOCK_BYTES: usize = 1 << 10;
    const BLOCKS: usize = 64 << 10;
    let mut blocks: Vec<_> = (0..BLOCKS).map(|_| vec![0; BLOCK_BYTES].into_boxed_slice()).collect();
    blocks.pop().expect("there are some")
}

/// `batch.growth`: a batch of 4,000 ready calls against one of 1,000.
pub fn growth(effort: Effort) -> Measured {
    let _last = lived_in();
    let subject = Subject::adding_among(10);
    let batch = |size: usize| {
        let subject = &subject;
        Racer::timed(format!("tooltape: a batch of {size}"), move |times| {
            let size = size / effort.shrink;
            subject.batches(times * size, size)
        })
    };
    let lanes = race(effort, [batch(1_000), batch(2_000), batch(4_000)]);
    Measured::of(lanes[2].ratio, &lanes)
}

/// `batch.call`: a call in a batch of 1,000 against a call alone.
pub fn call(effort: Effort) -> Measured {
    let subject = Subject::adding_among(10);
    let calls = 1_000 / effort.shrink;
    let batches = |size: usize| {
        let subject = &subject;
        let work = move |times: usize| subject.batches(times * calls, size.min(times * calls));
        Racer::timed(format!("tooltape: {calls} calls, {size} at a time"), work)
    };
    let alone = Racer::timed(format!("tooltape: {calls} calls alone"), |times| {
        subject.calls(times * calls)
    });
    let lanes = race(effort, [alone, batches(10), batches(100), batches(1_000), batches(10_000)]);
    let mut measured = Measured::of(lanes[3].ratio, &lanes);
    measured.rows.extend(ends(effort).iter().map(Lane::row));
    measured
}

/// What it costs that a call can wait, be cancelled and panic, against one that is ready.
fn ends(effort: Effort) -> [Lane; 3] {
    let [ready, waiting, panicking] =
        [Kind::Ready, Kind::Waiting, Kind::Panicking].map(Subject::of);
    race(
        effort,
        [
            Racer::timed("tooltape: a call that is ready", |times| ready.calls(times)),
            Racer::timed("tooltape: one that waits (timer, cancel)", |times| waiting.calls(times)),
            Racer::timed("tooltape: one that panics", |times| panicking.calls(times)),
        ],
    )
}

/// `batch.wall`: 1,000 calls of 10 ms, 64 at a time, against as many timers one after the other as
/// there must be.
pub fn wall(effort: Effort) -> Measured {
    let (calls, rounds) = (SLOW_CALLS / effort.shrink, SLOW_ROUNDS.min(effort.rounds));
    let subject = Subject::sleeping(SLOW, SLOW_AT_ONCE);
    let times: Vec<_> = (0..rounds)
        .map(|_| {
            let floor = subject.sleep(SLOW, calls.div_ceil(SLOW_AT_ONCE));
            let batch = subject.batch(calls);
            // Wall time: what is waited for, not worked on.
            (floor.as_secs_f64() * 1e3, batch.as_secs_f64() * 1e3)
        })
        .collect();
    let floor = median(times.iter().map(|(floor, _)| *floor));
    let batch = median(times.iter().map(|(_, batch)| *batch));
    let rows = vec![
        format!("timers: {} of {SLOW:?} in a row: {floor:.1} ms", calls.div_ceil(SLOW_AT_ONCE)),
        format!("tooltape: {calls} calls of {SLOW:?}, {SLOW_AT_ONCE} at once: {batch:.1} ms"),
    ];
    Measured { value: median(times.iter().map(|(floor, batch)| batch / floor)), rows }
}
