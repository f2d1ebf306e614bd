//! The compiler of components, as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    tooltape_wasm::compile_helper(std::env::args().skip(1))
}
