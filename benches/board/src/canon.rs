//! What the canonical form and its hash cost.

use std::hint::black_box;

use serde_json::Value;
use tooltape::{Canon, Doc, Domain, Hash, Limits};

use crate::corpus::{orders, text};
use crate::race::{Effort, Lane, Measured, Racer, race};

/// `canon.hash`: a text's canonical form and the hash of it, against writing the same value.
///
/// The value is the worst of three sizes, for a text whose keys are not yet in order.
pub fn hash(effort: Effort) -> Measured {
    let lanes = [1_000, 100_000, 10_000_000].map(|bytes| compare(effort, bytes / effort.shrink));
    let worst = lanes.iter().map(|[_, as_written, ..]| as_written.ratio).fold(0.0, f64::max);
    Measured::of(worst, lanes.as_flattened())
}

fn compare(effort: Effort, bytes: usize) -> [Lane; 4] {
    let corpus = orders(bytes);
    let written = text(&corpus);
    let value: Value = serde_json::from_str(&written).expect("the text is JSON");
    let canonical = Canon::of(&corpus).expect("the corpus has a canonical form");
    let named = |what: &str| format!("{what}, {} bytes", written.len());
    race(
        effort,
        [
            Racer::new(named("serde_json: to_string"), || {
                black_box(serde_json::to_string(black_box(&value))).expect("a value serialises");
            }),
            Racer::new(named("tooltape: text as written"), || {
                black_box(hash_of(black_box(&written)));
            }),
            Racer::new(named("tooltape: text already canonical"), || {
                black_box(hash_of(black_box(canonical.as_str())));
            }),
            Racer::new(named("tooltape: any value that serialises"), || {
                let canonical = Canon::of(black_box(&value)).expect("it has a canonical form");
                black_box(Hash::of(Domain::Content, canonical.as_str().as_bytes()));
            }),
        ],
    )
}

fn hash_of(text: &str) -> Hash {
    let doc = Doc::read(text, &Limits::RESULT).expect("the text is JSON");
    Hash::of(Domain::Content, doc.canonical().as_str().as_bytes())
}
