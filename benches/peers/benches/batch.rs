//! What 100 calls of `add` cost that a model proposes together, here and elsewhere, in one process.

mod peer;

use std::hint::black_box;

use tooltape_board::{ADD_TEXT, Effort, Racer, Subject, direct, race};

use peer::agnt::Agnt;
use peer::clark::Clark;
use peer::rig::Rig;
use peer::rmcp::Rmcp;

/// The calls of a batch.
const CALLS: usize = 100;

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let effort = if smoke { Effort::SMOKE } else { Effort::FULL };
    let (subject, agnt, clark, rig) =
        (Subject::adding_among(peer::TOOLS), Agnt::new(), Clark::new(), Rig::new());
    let runtime = peer::runtime();
    let rmcp = runtime.block_on(Rmcp::start());
    let lanes = race(
        effort,
        [
            Racer::new("direct: from_str, add, to_string", || {
                (0..CALLS).for_each(|_| drop(black_box(direct(black_box(ADD_TEXT)))));
            }),
            Racer::timed("tooltape: one batch, the whole path", |times| {
                subject.batches(times * CALLS, CALLS)
            }),
            Racer::new("agnt-core: one by one", || {
                (0..CALLS).for_each(|_| drop(black_box(agnt.call(black_box(ADD_TEXT)))));
            }),
            Racer::awaited("clark-agent: one by one", &runtime, CALLS, async || {
                black_box(clark.call(black_box(ADD_TEXT)).await);
            }),
            Racer::awaited("rig-core: one by one", &runtime, CALLS, async || {
                black_box(rig.call(black_box(ADD_TEXT)).await);
            }),
            Racer::awaited("rmcp: one by one, over a pipe", &runtime, CALLS, async || {
                black_box(rmcp.call(black_box(ADD_TEXT)).await);
            }),
        ],
    );
    eprintln!("A batch of {CALLS}; executors of the peers are private, so their calls are looped:");
    lanes.iter().for_each(|lane| eprintln!("    {}", lane.row()));
}
