//! The tests of `tooltape`, through its public interface.

mod data;
mod canon;
mod canon_vectors;
mod schema_suite;
