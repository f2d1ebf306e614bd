//! Systems without what a sandbox is made of, where none is made.

use std::path::PathBuf;
use std::process::ExitCode;

use super::command::{Command, Files};
use super::error::{Part, SandboxError};
use super::{Process, Sandbox};
use crate::workspace::Workspace;

/// There is nothing that holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held;

/// There is nothing to stop.
pub(super) struct Stop;

fn missing() -> SandboxError {
    SandboxError::missing(Part::Platform, format!("found `{}`", std::env::consts::OS))
}

pub(super) fn bwrap() -> Result<PathBuf, SandboxError> {
    Err(missing())
}

pub(super) fn probe(_: &Sandbox) -> Result<Held, SandboxError> {
    Err(missing())
}

pub(super) fn start(
    _: &Sandbox,
    _: Option<&Workspace>,
    _: Files,
    _: Command,
) -> Result<Process, SandboxError> {
    Err(missing())
}

pub(super) fn parts(_: Option<&Sandbox>) -> Vec<(Part, String)> {
    vec![(Part::Platform, String::new())]
}

pub(super) fn help(_: Vec<String>) -> ExitCode {
    ExitCode::FAILURE
}
