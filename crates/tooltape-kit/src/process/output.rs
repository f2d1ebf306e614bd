//! What a process leaves behind, as tools return it.

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Enforced, Progress, ToolError};

use super::preview::{Preview, preview};
use crate::sandbox::{
    Command, Connection, Ended, Limit, Sandbox, SandboxError, SetAside, Status, Stream,
};
use crate::workspace::{Workspace, WorkspacePath};

/// What is said where there was no sandbox.
const UNSAFE: &str = "this process ran without a sandbox: it could do whatever the user can";

/// How a process ended, and what it wrote.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Ran {
    /// The code with which it ended by itself: 0 is success.
    exit_code: Option<i32>,
    /// The signal that killed it, where one did.
    signal: Option<i32>,
    /// The limit for which it was killed, where it was: `wall`, `idle`, `output`, `memory` or
    /// `processes`.
    exceeded: Option<Limit>,
    /// What it wrote to its standard output.
    stdout: String,
    /// What it wrote to its standard error.
    stderr: String,
    /// Whether the middle of its standard output is left out.
    stdout_truncated: bool,
    /// Whether the middle of its standard error is left out.
    stderr_truncated: bool,
    /// The folder that it ended in, relative to the workspace: give it as the next `cwd` to go on
    /// there.
    cwd: WorkspacePath,
    /// What it made under protected names such as `.git`, and how that is called now.
    set_aside: Vec<SetAside>,
    /// The connections that it asked for, each with its verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    connections: Vec<Connection>,
    /// How many more connections it asked for, where `connections` does not list them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connections_left_out: Option<u64>,
    /// What it would change, where only that was asked for: nothing of it was done.
    preview: Option<Preview>,
    /// What a reader must know of how it ran.
    warning: Option<String>,
}

/// Runs a command, and tells of it while it runs.
pub(super) async fn ran(
    sandbox: &Sandbox,
    files: &Workspace,
    command: Command,
    progress: &Progress,
) -> Result<Ran, ToolError> {
    let cwd = command.cwd.clone();
    let mut process = sandbox.start(Some(files), command).map_err(SandboxError::tell)?;
    while let Some(chunk) = process.next().await {
        let stream = match chunk.stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let text = String::from_utf8_lossy(&chunk.bytes);
        progress.say(format!("{stream}: {}", text.trim_end_matches('\n')));
    }
    let ended = process.end().await.map_err(SandboxError::tell)?;
    let connections_left_out = Some(ended.connections_left_out).filter(|count| *count > 0);
    let Ended { status, stdout, stderr, cwd: left, set_aside, connections, changes, .. } = ended;
    let (exit_code, signal, exceeded) = match status {
        Status::Exited(code) => (Some(code), None, None),
        Status::Signalled(signal) => (None, Some(signal), None),
        Status::Exceeded(limit) => (None, None, Some(limit)),
        Status::Cancelled => return Err(ToolError::cancelled()),
    };
    let warning = match (sandbox.enforced_by(), set_aside.iter().any(|it| it.now.is_none())) {
        (Enforced::Host, _) => Some(UNSAFE.to_owned()),
        (_, true) => Some("what has a protected name could not be renamed".to_owned()),
        (_, false) => None,
    };
    Ok(Ran {
        exit_code,
        signal,
        exceeded,
        stdout: stdout.text(),
        stderr: stderr.text(),
        stdout_truncated: stdout.is_truncated(),
        stderr_truncated: stderr.is_truncated(),
        cwd: left.and_then(|left| left.parse().ok()).unwrap_or(cwd),
        set_aside,
        connections,
        connections_left_out,
        preview: changes.map(|(changes, is_whole)| preview(files, &changes, is_whole)),
        warning,
    })
}
