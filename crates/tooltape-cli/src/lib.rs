//! The `tooltape` command as a library: any program's tools get the same command line.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use tooltape::{ToolError, input, tool, tools};
//!
//! #[input]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! /// Greets a guest.
//! #[tool(Pure)]
//! async fn greet(args: Greet) -> Result<String, ToolError> {
//!     Ok(format!("Welcome, {}.", args.name))
//! }
//!
//! fn main() -> ExitCode {
//!     tooltape_cli::main(tools![greet])
//! }
//! ```
#![forbid(unsafe_code)]

mod escape;
mod when;
mod exit;
mod program;
mod report;
mod out;
mod args;
mod arguments;
mod model;
mod private;
mod trust;
mod config;
mod script;
mod provider;
mod sub_agents;
mod policy;
mod touches;
mod executables;
#[cfg(feature = "wasm")]
mod components;
#[cfg(not(feature = "wasm"))]
mod no_components;
mod asking;
mod labels;
mod web;
mod copy;
mod secrets;
mod workspace;
mod sandbox;
mod origin;
mod members;
mod card;
mod saved;
mod host;
mod interrupt;
mod approve;
mod kept;
mod tally;
mod reel;
mod progress;
mod tell;
mod live;
mod narrate;
mod pace;
mod refusal;
mod lint;
mod commands;

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use clap::error::ErrorKind;
use tooltape::{Executed, Grant, Tool};

use args::Args;
use commands::{Context, dispatch};
use exit::Exit;
use host::{GrantTo, Host};
#[cfg(not(feature = "wasm"))]
use no_components as components;
use out::{Color, Detail, Format, Out};
use report::{Problem, Result};
use sandbox::Walls;

/// Runs the command line with these tools beside the ones in the box.
///
/// Tools that need more than the built-in grants and a workspace are given it by [`Cli::grant`].
pub fn main(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> ExitCode {
    Cli::new(tools).main()
}

/// A command line with a program's own tools, and what they need.
///
/// ```no_run
/// # use std::process::ExitCode;
/// # use tooltape::Grant;
/// #[derive(Clone)]
/// struct Database;
/// impl Grant for Database {}
///
/// fn main() -> ExitCode {
///     tooltape_cli::Cli::new([]).grant(Database).main()
/// }
/// ```
pub struct Cli {
    tools: Vec<Arc<dyn Tool>>,
    grants: Vec<GrantTo>,
}

impl Cli {
    /// A command line with these tools beside the ones in the box.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Cli {
        Cli { tools: tools.into_iter().collect(), grants: Vec::new() }
    }

    /// Hands the tools a value that they may name. The model never sees it.
    #[must_use]
    pub fn grant(mut self, grant: impl Grant) -> Cli {
        self.grants.push(Box::new(move |run| run.grant(grant.clone())));
        self
    }

    /// Does what the program's arguments say, and tells how it ended.
    pub fn main(self) -> ExitCode {
        if let Some(ended) = sandbox::play_helper().or_else(components::play_compiler) {
            return ended;
        }
        let typed: Vec<OsString> = std::env::args_os().collect();
        match Args::try_parse_from(&typed) {
            Err(err) => usage(&err, &typed).into(),
            Ok(args) => self.obey(&args).into(),
        }
    }

    fn obey(self, args: &Args) -> Exit {
        let is_stream = args.command.is_stream();
        let format = if args.global.json || is_stream { Format::Json } else { Format::Text };
        let detail = match (args.global.quiet, args.global.verbose) {
            (true, _) => Detail::Quiet,
            (false, 0) => Detail::Normal,
            (false, 1..) => Detail::Verbose,
        };
        let color = if args.global.no_color { Color::Never } else { Color::Auto };
        let out = Out::new(format, detail, color);
        // A tool's panic becomes its reply, and one of ours a problem: nothing else is printed.
        panic::set_hook(Box::new(|_| {}));
        let done = panic::catch_unwind(AssertUnwindSafe(|| -> Result<Exit> {
            let walls = if args.global.unsafe_no_sandbox { Walls::Waived } else { Walls::Wanted };
            let host = Host::new(self.tools, self.grants, sandbox::sandbox(walls)?)?;
            dispatch(&Context::new(&host, out, args), args)
        }));
        let problem = match done {
            Ok(Ok(exit)) => return exit,
            Ok(Err(problem)) => problem,
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().copied();
                let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                let message = format!("the command panicked: {}", text.unwrap_or("no reason"));
                Problem::new(Exit::Unexpected, "runtime.bug", message)
                    .hint("please report it")
                    .executed(Executed::Unknown)
            }
        };
        out.problem(&problem);
        problem.exit
    }
}

/// Help goes to stdout; everything else that was typed wrongly is a problem.
fn usage(err: &clap::Error, typed: &[OsString]) -> Exit {
    let is_json = typed.iter().any(|word| word == "--json" || word == "--jsonl");
    let format = if is_json { Format::Json } else { Format::Text };
    let is_plain = typed.iter().any(|word| word == "--no-color");
    let color = if is_plain { Color::Never } else { Color::Auto };
    let out = Out::new(format, Detail::Normal, color);
    if matches!(err.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match out.table(&err.render().ansi().to_string()) {
            Ok(()) => Exit::Done,
            Err(problem) => problem.exit,
        };
    }
    let text = err.render().to_string();
    let text = text.trim_start_matches("error: ").replace('\'', "`");
    let mut parts = text.split("\n\n");
    let words: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
    let message = match err.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a command is missing".to_owned(),
        _ => words.join(" "),
    };
    let tip = parts.find_map(|part| part.trim().strip_prefix("tip: "));
    let hint = tip.unwrap_or("`--help` shows the usage");
    out.problem(&Problem::new(Exit::Usage, "usage.invalid", message).hint(hint));
    Exit::Usage
}
