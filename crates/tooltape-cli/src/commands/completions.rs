//! `tooltape completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Context;
use crate::args::Args;
use crate::exit::Exit;
use crate::program;
use crate::report::Result;

/// Prints the completions of a shell.
pub(super) fn completions(context: &Context<'_>, shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), program::name(), &mut script);
    context.out.data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
