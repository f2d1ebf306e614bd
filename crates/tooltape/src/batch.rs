//! Which calls of a batch may overlap: pure arithmetic on what they declare.

/// How many calls the next wave of a batch has; 0 if none are left.
///
/// Each call that is left says whether it overlaps no other. The calls of a wave may overlap; the
/// waves follow each other.
pub(crate) fn wave(alone: impl Iterator<Item = bool> + Clone) -> usize {
    let together = alone.clone().take_while(|alone| !alone).count();
    together.max(alone.take(1).count())
}
