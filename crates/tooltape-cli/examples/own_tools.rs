//! A program with tools of its own gets the whole command line.
//!
//! ```sh
//! export SHELF=Emma,Ulysses
//! cargo run -p tooltape-cli --example own_tools -- tools list
//! cargo run -p tooltape-cli --example own_tools -- call lend title=Emma
//! ```
//!
//! The tools differ in temper, to show what a caller sees of each: one takes a grant and wants to
//! be confirmed, three are slow, one divides by zero, one gives up for good, one says little.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tooltape::{Access, Empty, Grant, Rights, Spec, Tool, ToolError, input, tool, tool_fn, tools};
use tooltape_cli::Cli;

/// The books in the house. Tools name it, and the model never sees it.
#[derive(Clone)]
struct Shelf(Arc<Mutex<Vec<String>>>);
impl Grant for Shelf {
    fn confers(&self) -> Rights {
        Rights::of(["fs:write:@shelf/books".parse().expect("a right")])
    }
}

#[input]
struct Lend {
    /// The book's title.
    title: String,
}

/// Lends a book to a guest.
#[tool(
    Write, version = "1.0.0", confirm, reach = Local, filesystem = false, process = false,
    spend = false, needs("fs:write:@shelf/books"), wall_ms = 1_000
)]
async fn lend(args: Lend, shelf: Shelf) -> Result<String, ToolError> {
    let mut books = shelf.0.lock().unwrap_or_else(PoisonError::into_inner);
    match books.iter().position(|book| *book == args.title) {
        Some(at) => Ok(format!("Here is {}.", books.remove(at))),
        None => Err(ToolError::not_done(format!("`{}` is not here", args.title)).code("not_here")),
    }
}

/// Counts the books.
#[tool(Read, wall_ms = 1_000)]
async fn count(_: Empty, shelf: Shelf) -> Result<usize, ToolError> {
    Ok(shelf.0.lock().unwrap_or_else(PoisonError::into_inner).len())
}

#[input]
struct Rest {
    /// How long, in milliseconds.
    ms: u64,
}

/// Rests for a while.
#[tool(Read)]
async fn rest(args: Rest) -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(args.ms)).await;
    Ok("rested".to_owned())
}

/// Rests for up to an hour.
#[tool(Read, wall_ms = 3_600_000)]
async fn hibernate(args: Rest) -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_millis(args.ms)).await;
    Ok("rested".to_owned())
}

/// Holds its thread for a while, and hears nobody meanwhile.
#[tool(Read)]
async fn brood(args: Rest) -> Result<String, ToolError> {
    std::thread::sleep(Duration::from_millis(args.ms));
    Ok("brooded".to_owned())
}

#[input]
struct Divide {
    /// What is divided.
    a: i64,
    /// By what.
    b: i64,
}

/// Divides whole numbers.
#[tool(Pure, determinism = Deterministic, wall_ms = 1_000)]
async fn divide(args: Divide) -> Result<i64, ToolError> {
    // Division by zero panics, which is answered like any other failure.
    Ok(args.a / args.b)
}

/// Closes the house for good.
#[tool(Read)]
async fn close(_: Empty) -> Result<String, ToolError> {
    Err(ToolError::fatal("the house is closed"))
}

#[input]
struct Mumble {
    words: String,
}

/// A tool from a closure: it says what it hears, or fails in plain text.
fn mumble() -> Arc<dyn Tool> {
    let spec = Spec::new("mumble", "Says what it hears.").access(Access::Pure).needs("mumbling");
    tool_fn(spec, async |args: Mumble| match args.words.as_str() {
        "" => Err("there was nothing to hear"),
        _ => Ok(args.words),
    })
}

fn main() -> ExitCode {
    let tools = tools![lend, count, rest, hibernate, brood, divide, close];
    let cli = Cli::new(tools.into_iter().chain([mumble()]));
    match std::env::var("SHELF") {
        Ok(books) => {
            let books = books.split(',').map(str::to_owned).collect();
            cli.grant(Shelf(Arc::new(Mutex::new(books)))).main()
        }
        // The tools can still be listed; a call says what is missing.
        Err(_) => cli.main(),
    }
}
