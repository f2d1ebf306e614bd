//! Prints the board: every figure, what it came to, and what it is held against.

use std::io::{self, Write};
use std::process::ExitCode;

use tooltape_board::{BOARD, Benchmark, Effort, Entry, sandbox, settle};

const USAGE: &str = "usage: board [--json] [--smoke] [FIGURE…]";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(sandbox::HELPER) {
        return tooltape_kit::sandbox_helper(std::env::args().skip(2));
    }
    let mut effort = Effort::FULL;
    let mut json = false;
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1) {
        match &*argument {
            "--json" => json = true,
            "--smoke" => effort = Effort::SMOKE,
            name if BOARD.iter().any(|benchmark| benchmark.figure.name == name) => {
                wanted.push(argument);
            }
            _ => {
                eprintln!("found `{argument}`, expected a figure of the board\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let chosen = |benchmark: &&Benchmark| {
        wanted.is_empty() || wanted.iter().any(|name| name == benchmark.figure.name)
    };
    let board: Vec<_> = BOARD
        .iter()
        .filter(chosen)
        .map(|benchmark| (benchmark, entry(benchmark, effort)))
        .collect();
    match if json { print_json(&board) } else { print_table(&board) } {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("the board could not be written: {err}");
            ExitCode::FAILURE
        }
    }
}

/// Measures a figure, and says on the way what was found.
fn entry(benchmark: &Benchmark, effort: Effort) -> Entry {
    let name = benchmark.figure.name;
    settle(benchmark, effort, |measured| {
        eprintln!("{name} = {:.3}", measured.value);
        measured.rows.iter().for_each(|row| eprintln!("    {row}"));
    })
}

fn print_json(board: &[(&Benchmark, Entry)]) -> io::Result<()> {
    let entries: Vec<_> = board.iter().map(|(_, entry)| entry).collect();
    writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&entries)?)
}

fn print_table(board: &[(&Benchmark, Entry)]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{:<16} {:>9} {:<9} {:>8} {:>9}  met",
        "figure", "value", "unit", "floor", "moonshot"
    )?;
    for (benchmark, entry) in board {
        let Entry { name, value, unit, floor, moonshot, met } = entry;
        let sign = benchmark.figure.better.sign();
        let (floor, moonshot) = (format!("{sign} {floor}"), format!("{sign} {moonshot}"));
        let met = if *met { "yes" } else { "no" };
        writeln!(out, "{name:<16} {value:>9.3} {unit:<9} {floor:>8} {moonshot:>9}  {met}")?;
    }
    Ok(())
}
