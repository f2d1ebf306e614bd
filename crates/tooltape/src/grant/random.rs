//! Randomness: seeded, so that a run can be replayed.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::{CallContext, Grant};
use crate::sync::atomic::{AtomicU64, Ordering};

/// A stream of random numbers that its seed decides.
///
/// Each call of a run gets a stream of its own, made from the run's seed and the call's number, so
/// that the order in which calls run changes nothing.
///
/// ```
/// use tooltape::Random;
/// assert_eq!(Random::seeded([7; 32]).next_u64(), Random::seeded([7; 32]).next_u64());
/// ```
#[derive(Clone)]
pub struct Random {
    seed: [u8; 32],
    drawn: Arc<AtomicU64>,
}

impl Random {
    /// The stream of this seed.
    pub fn seeded(seed: [u8; 32]) -> Random {
        Random { seed, drawn: Arc::default() }
    }

    /// A stream that nobody can foresee, seeded by the operating system.
    pub fn system() -> Random {
        // The standard library seeds each `RandomState` from the operating system.
        let mut seed = [0; 32];
        for (at, part) in seed.chunks_exact_mut(8).enumerate() {
            part.copy_from_slice(&RandomState::new().hash_one(at).to_le_bytes());
        }
        Random::seeded(seed)
    }

    /// The next number. Clones share one stream.
    pub fn next_u64(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.block();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Fills a buffer.
    pub fn fill(&self, buffer: &mut [u8]) {
        for part in buffer.chunks_mut(32) {
            part.copy_from_slice(&self.block()[..part.len()]);
        }
    }

    fn block(&self) -> [u8; 32] {
        let drawn = self.drawn.fetch_add(1, Ordering::SeqCst);
        *blake3::keyed_hash(&self.seed, &drawn.to_le_bytes()).as_bytes()
    }

    /// One of many streams that this one decides.
    pub(crate) fn nth(&self, nth: u64) -> Random {
        let stream = [*b"nth ....", nth.to_be_bytes()].concat();
        Random::seeded(*blake3::keyed_hash(&self.seed, &stream).as_bytes())
    }

    /// The seed, which the tape keeps.
    pub(crate) fn seed(&self) -> [u8; 32] {
        self.seed
    }
}

impl Grant for Random {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> Random {
        let call = context.info.call().0;
        Random::seeded(*blake3::keyed_hash(&self.seed, &call.to_be_bytes()).as_bytes())
    }
}
