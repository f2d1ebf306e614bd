//! What calls cost that are proposed together.

use crate::race::{Effort, Measured, Racer, race};
use crate::subject::Subject;

/// `batch.growth`: a batch of 4,000 ready calls against one of 1,000.
pub fn growth(effort: Effort) -> Measured {
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
    let size = 1_000 / effort.shrink;
    let alone = |times| subject.calls(times * size);
    let together = |times| subject.batches(times * size, size);
    let lanes = race(
        effort,
        [
            Racer::timed(format!("tooltape: {size} calls alone"), alone),
            Racer::timed(format!("tooltape: {size} calls in one batch"), together),
        ],
    );
    Measured::of(lanes[1].ratio, &lanes)
}
