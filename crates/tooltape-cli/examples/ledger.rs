//! A program whose effects can be counted: each is a line of a file outside the tape.
//!
//! ```sh
//! export LEDGER=/tmp/ledger
//! cargo run -p tooltape-cli --example ledger -- call book entry=1 --yes
//! kill -9 … in the middle, then: cargo run -p tooltape-cli --example ledger -- resume
//! ```
//!
//! The tools differ in what may be done about a call of which nobody knows what became: nothing, a
//! look, or the same again. Whatever happens to the program, no entry is booked twice.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tooltape::{
    Access, Found, Grant, IdempotencyKey, Proposal, Reconcile, RunEnd, Spawn, Spec, Tool,
    ToolError, input, tool, tool_fn, tools,
};
use tooltape_cli::Cli;

/// The file that counts.
#[derive(Clone)]
struct Ledger(Arc<PathBuf>);
impl Grant for Ledger {}

impl Ledger {
    fn add(&self, line: &str) -> Result<(), ToolError> {
        let mut file = OpenOptions::new().append(true).create(true).open(&*self.0)?;
        Ok(file.write_all(format!("{line}\n").as_bytes())?)
    }

    fn has(&self, line: &str) -> bool {
        fs::read_to_string(&*self.0).unwrap_or_default().lines().any(|it| it == line)
    }
}

#[input]
struct Booking {
    /// What is booked.
    entry: u64,
    /// How long it takes, in milliseconds, half of it before the entry is in the ledger.
    #[serde(default)]
    ms: u64,
}

impl Booking {
    async fn pause(&self) {
        tokio::time::sleep(Duration::from_micros(self.ms * 500)).await;
    }
}

/// Books an entry, once: a second call books it again.
#[tool(Write)]
async fn book(args: Booking, ledger: Ledger) -> Result<String, ToolError> {
    args.pause().await;
    ledger.add(&format!("book {}", args.entry))?;
    args.pause().await;
    Ok(format!("booked {}", args.entry))
}

/// Books an entry under a key, which the ledger takes once.
#[tool(Write, repeat = Keyed)]
async fn book_keyed(
    args: Booking,
    key: IdempotencyKey,
    ledger: Ledger,
) -> Result<String, ToolError> {
    args.pause().await;
    let line = format!("keyed {} {}", args.entry, key.as_str());
    if !ledger.has(&line) {
        ledger.add(&line)?;
    }
    args.pause().await;
    Ok(format!("booked {}", args.entry))
}

/// Books an entry and the one after it, by calls of its own.
#[tool(Write)]
async fn book_both(args: Booking, spawn: Spawn) -> Result<usize, ToolError> {
    let child = spawn.child()?.only(|spec| &*spec.name == "book").start();
    let proposals = [args.entry, args.entry + 1].map(|entry| {
        let args = format!(r#"{{"entry": {entry}, "ms": {}}}"#, args.ms);
        Proposal::new(format!("entry_{entry}"), "book", args)
    });
    let replies = child.batch(proposals.into()).await?;
    child.end(RunEnd::Ended, "booked").await?;
    Ok(replies.iter().filter(|reply| !reply.is_error).count())
}

/// Looks an entry up.
#[tool(Read)]
async fn look_up(args: Booking, ledger: Ledger) -> Result<bool, ToolError> {
    args.pause().await;
    Ok(ledger.has(&format!("book {}", args.entry)))
}

/// A tool that happens once, and can say afterwards whether it did.
fn book_sure() -> Arc<dyn Tool> {
    let spec = Spec::new("book_sure", "Books an entry, and can tell whether it is booked.")
        .access(Access::Write)
        .reconcile(Reconcile::by("is_booked", is_booked));
    tool_fn(spec, async |args: Booking, ledger: Ledger| {
        args.pause().await;
        ledger.add(&format!("sure {}", args.entry))?;
        args.pause().await;
        Ok::<_, ToolError>(format!("booked {}", args.entry))
    })
}

async fn is_booked(args: Booking, ledger: Ledger) -> Result<Found, ToolError> {
    let is_there = ledger.has(&format!("sure {}", args.entry));
    Ok(if is_there { Found::Happened } else { Found::DidNot })
}

fn main() -> ExitCode {
    let tools = tools![book, book_keyed, book_both, look_up];
    let ledger = std::env::var_os("LEDGER").map_or_else(|| "ledger".into(), PathBuf::from);
    Cli::new(tools.into_iter().chain([book_sure()])).grant(Ledger(Arc::new(ledger))).main()
}
