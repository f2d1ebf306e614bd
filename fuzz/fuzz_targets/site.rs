//! Any bytes at all as the address of a page.

#![no_main]

#[path = "../../crates/tooltape/tests/it/site_corpus.rs"]
mod site_corpus;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| site_corpus::check(bytes));
