//! The sandbox of the command line: its helper is the very same program.

use std::process::ExitCode;

use tooltape_kit::{Helper, Sandbox, sandbox_helper};

use crate::exit::Exit;
use crate::report::{Problem, Result};

/// The first argument of the program where it is the helper of a sandbox.
const WORD: &str = "__sandbox";

/// Whether a user said that there shall be no sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walls {
    Wanted,
    Waived,
}

/// Plays the helper, if that is what the program was started for.
pub(crate) fn play_helper() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let is_helper = args.next().is_some_and(|word| word == WORD);
    let words = args.map(|word| word.to_string_lossy().into_owned());
    is_helper.then(|| sandbox_helper(words))
}

/// How a sandbox starts this program as its helper.
pub(crate) fn helper() -> Result<Helper> {
    let program = std::env::current_exe().map_err(|err| {
        let message = format!("the program does not find itself: {err}");
        Problem::new(Exit::Unexpected, "sandbox.helper", message)
    })?;
    Ok(Helper::new(program, [WORD]))
}

/// The sandbox of all runs. It is looked for when the first process is to be started.
pub(crate) fn sandbox(walls: Walls) -> Result<Sandbox> {
    Ok(match walls {
        Walls::Wanted => Sandbox::when_needed(helper()?),
        Walls::Waived => Sandbox::unsafe_without(helper()?),
    })
}
