//! Any bytes at all, read strictly, made canonical, and read again.

#![no_main]

#[path = "../../crates/tooltape/tests/it/canon_corpus.rs"]
mod canon_corpus;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| canon_corpus::check(bytes));
