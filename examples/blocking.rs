//! A synchronous function as a tool: it runs on a thread of its own, and reports its progress.
//!
//! `cargo run -p tooltape --example blocking`

use std::error::Error;
use std::io::{self, Write};

use tooltape::{Cancel, Event, MemoryTape, Progress, Proposal, Run, ToolError, Toolbox};
use tooltape::{input, tool, tools};

#[input(check)]
struct Range {
    from: u64,
    to: u64,
}

impl Range {
    /// What a schema cannot say. It runs while the call is resolved, before any tool code.
    fn check(&self) -> Result<(), String> {
        match self.from <= self.to {
            true => Ok(()),
            false => Err(format!("`from` is {}, expected at most `to`, {}", self.from, self.to)),
        }
    }
}

/// Counts the primes of a range.
#[tool(Pure, determinism = Deterministic, blocking, wall_ms = 10_000)]
fn count_primes(range: Range, progress: Progress, cancel: Cancel) -> Result<u64, ToolError> {
    let mut count = 0;
    for number in range.from..=range.to {
        if number.is_multiple_of(1_000) {
            if cancel.is_requested() {
                return Err(ToolError::cancelled());
            }
            progress.say(format!("{count} found before {number}"));
        }
        let is_prime = number > 1 && !(2..=number.isqrt()).any(|it| number.is_multiple_of(it));
        count += u64::from(is_prime);
    }
    Ok(count)
}

pub(crate) async fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(tools![count_primes])?).tape(tape.clone());
    for arguments in [r#"{"from": 1000, "to": 2999}"#, r#"{"from": 9, "to": 1}"#] {
        for reply in run.batch(vec![Proposal::new("call_1", "count_primes", arguments)]).await? {
            writeln!(out, "{arguments} => {}", reply.text())?;
        }
    }
    for record in tape.records(run.id()) {
        if let Event::Progress { call, text } = record.event {
            writeln!(out, "progress of {call}: {text}")?;
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    show(&mut io::stdout()).await
}
