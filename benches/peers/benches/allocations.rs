//! What a call of `add` allocates here and elsewhere.

mod peer;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tooltape_board::{ADD_TEXT, Subject, direct, median};

use peer::agnt::Agnt;
use peer::clark::Clark;
use peer::rig::Rig;
use peer::rmcp::Rmcp;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The calls of which the median counts.
const CALLS: usize = 200;

fn main() {
    let subject = Subject::adding_among(peer::TOOLS);
    let run = subject.opened();
    let (agnt, clark, rig, runtime) = (Agnt::new(), Clark::new(), Rig::new(), peer::runtime());
    let rmcp = runtime.block_on(Rmcp::start());
    eprintln!("Allocations of a call:");
    count("direct", || drop(direct(ADD_TEXT)));
    count("tooltape", || subject.call(&run));
    count("agnt-core", || drop(agnt.call(ADD_TEXT)));
    count("clark-agent", || drop(runtime.block_on(clark.call(ADD_TEXT))));
    count("rig-core", || drop(runtime.block_on(rig.call(ADD_TEXT))));
    count("rmcp", || drop(runtime.block_on(rmcp.call(ADD_TEXT))));
}

fn count(name: &str, mut call: impl FnMut()) {
    let calls = (0..CALLS).map(|_| {
        let region = Region::new(ALLOCATOR);
        call();
        let change = region.change();
        (change.allocations + change.reallocations) as f64
    });
    eprintln!("    {name:<16} {:>6}", median(calls.collect::<Vec<_>>()));
}
