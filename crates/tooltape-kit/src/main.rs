//! The helper of the sandbox, as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    tooltape_kit::sandbox_helper(std::env::args().skip(1))
}
