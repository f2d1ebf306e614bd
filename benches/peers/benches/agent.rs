//! What a call costs in a whole agent loop with a scripted model, here and elsewhere.

mod peer;

use tooltape_board::agent::nanos_per_call;
use tooltape_board::{Effort, median};

/// The calls of one turn, from few to many, and how many turns of it are taken elsewhere.
const CALLS: [(usize, usize); 4] = [(1, 100), (11, 40), (101, 8), (401, 2)];

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let rounds = if smoke { 1 } else { Effort::FULL.rounds / 4 };
    let runtime = peer::runtime();
    eprintln!(
        "One turn of an agent, per call; rig-core has no loop, others build on no Rust of ours:"
    );
    let mut whole = Vec::new();
    for (calls, turns) in CALLS {
        // One after the other, so that what disturbs one disturbs the other.
        let pairs = (0..rounds)
            .map(|_| (nanos_per_call(calls), peer::clark::nanos_per_call(&runtime, calls, turns)));
        let pairs: Vec<_> = pairs.collect();
        let ours = median(pairs.iter().map(|pair| pair.0));
        let clark = median(pairs.iter().map(|pair| pair.1));
        eprintln!("    {calls:>4} calls: tooltape {ours:>9.0} ns, clark-agent {clark:>9.0} ns");
        whole.push([ours, clark].map(|nanos| nanos * calls as f64));
    }
    if let [.., some, many] = whole.as_slice() {
        let [ours, clark] = [0, 1].map(|at| many[at] / some[at]);
        eprintln!("    101 to 401 calls (linear: 4.0): tooltape {ours:.1}, clark-agent {clark:.1}");
    }
}
