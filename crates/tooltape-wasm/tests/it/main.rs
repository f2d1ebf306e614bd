//! The tests of `tooltape-wasm`, through its public interface.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod guest;
mod world;
mod calling;
mod bounds;
mod loading;
mod determinism;
mod caching;
mod outside;
mod functions;
mod running;
mod wasi;
mod limits;
mod hostile;
mod examples;
