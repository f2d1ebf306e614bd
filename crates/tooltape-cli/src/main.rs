//! The `tooltape` command.

fn main() -> std::process::ExitCode {
    tooltape_cli::main([])
}
