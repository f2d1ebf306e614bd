//! The tests of `tooltape-kit`, through its public interface.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod world;
mod naive;
mod spec;
mod footprint;
mod labels;
mod list_dir;
mod read_file;
mod edit_file;
mod replacing;
mod rights;
mod attacks;
mod special;
mod race;
