//! The canonical form, the strict reader and the hashes.
