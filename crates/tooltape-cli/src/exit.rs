//! How the command ends: one number for each class of ending.

use std::process::ExitCode;

/// The classes of ending. `docs/command-line.md` lists them for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked was done.
    Done,
    /// The program is wrong.
    Unexpected,
    /// The command line, or a file that it names, is not as it must be.
    Usage,
    /// A model's server wants a key, or another one.
    Unauthorised,
    /// A model's server could not be reached, or was too busy.
    Unreachable,
    /// A tool or a run failed, or a thing was not found.
    Failed,
    /// A policy said no.
    Denied,
    /// An approval was needed, and nobody could be asked.
    Unasked,
    /// The arguments do not fit the tool.
    Arguments,
    /// A tape is damaged, or a replay was not as it was recorded.
    Differs,
    /// Time ran out.
    Timeout,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Unexpected => 1,
            Exit::Usage => 2,
            Exit::Unauthorised => 3,
            Exit::Unreachable => 4,
            Exit::Failed => 5,
            Exit::Denied => 6,
            Exit::Unasked => 7,
            Exit::Arguments => 8,
            Exit::Differs => 9,
            Exit::Timeout => 124,
            Exit::Interrupted => 130,
        })
    }
}
