//! What a call of `add` costs here and elsewhere, against the bare function, in one process.

mod peer;

use std::hint::black_box;

use tooltape_board::{ADD_TEXT, Effort, Racer, Subject, direct, race};

use peer::agnt::Agnt;
use peer::clark::Clark;
use peer::rig::Rig;
use peer::rmcp::Rmcp;

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
                black_box(direct(black_box(ADD_TEXT)));
            }),
            Racer::timed("tooltape: the whole path", |times| subject.calls(times)),
            Racer::new("agnt-core: lookup, typed parse", || {
                black_box(agnt.call(black_box(ADD_TEXT)));
            }),
            Racer::awaited("clark-agent: lookup, coercion, typed parse", &runtime, 1, async || {
                black_box(clark.call(black_box(ADD_TEXT)).await);
            }),
            Racer::awaited("rig-core: typed parse", &runtime, 1, async || {
                black_box(rig.call(black_box(ADD_TEXT)).await);
            }),
            Racer::awaited("rmcp: a client and a server, over a pipe", &runtime, 1, async || {
                black_box(rmcp.call(black_box(ADD_TEXT)).await);
            }),
        ],
    );
    eprintln!("The peers do less than the whole path, but for rmcp, which does something else:");
    lanes.iter().for_each(|lane| eprintln!("    {}", lane.row()));
}
