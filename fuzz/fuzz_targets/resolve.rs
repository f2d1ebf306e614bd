//! Any bytes at all as the arguments of a call.

#![no_main]

#[path = "../../crates/tooltape/tests/it/resolve_corpus.rs"]
mod resolve_corpus;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| resolve_corpus::check(bytes));
