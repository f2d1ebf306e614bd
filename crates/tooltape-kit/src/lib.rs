//! Tools in the box.
