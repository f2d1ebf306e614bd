//! `exec`: one program with its arguments, run in the sandbox without a shell.

use tooltape::{Progress, ToolError, input, tool};

use super::output::{Ran, ran};
use crate::sandbox::{Command, Sandbox, SandboxError};
use crate::workspace::{Workspace, WorkspacePath};

/// The most arguments of a program.
pub const ARGUMENTS_MAX: usize = 4_096;

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct Exec {
    /// The program, then its arguments, each as it is: no shell reads them. A program without a
    /// slash in its name is one of the system's.
    argv: Vec<String>,
    /// The folder to start in, relative to the workspace. The workspace itself where none is given.
    cwd: Option<WorkspacePath>,
}

impl Exec {
    fn check(&self) -> Result<(), String> {
        match self.argv.len() {
            1..=ARGUMENTS_MAX if !self.argv[0].is_empty() => Ok(()),
            1 => Err("/argv/0: found nothing, expected a program".to_owned()),
            found => Err(format!("/argv: found {found} items, expected 1 to {ARGUMENTS_MAX}")),
        }
    }
}

/// Runs a program with these arguments in the workspace, without a shell: nothing in them is
/// expanded. There is no network but, where `HTTP_PROXY` is set, some hosts, no input, and nothing
/// of the machine but its programs; `/tmp` is empty at the start of each call, and what still runs
/// at its end is killed. An exit code other than 0 is a result like any other.
#[tool(
    Write,
    process,
    filesystem,
    untrusted,
    version = "0.1.0",
    repeat = Once,
    reach = Local,
    spend = false,
    needs("process:shell:sandbox"),
    output = Ran,
    wall_ms = 150_000,
    idle_ms = 150_000,
    output_bytes = 1 << 20
)]
pub(super) async fn exec(
    args: Exec,
    files: Workspace,
    sandbox: Sandbox,
    progress: Progress,
) -> Result<Ran, ToolError> {
    sandbox.check(None).map_err(SandboxError::tell)?;
    let command = Command::new(args.argv).cwd(args.cwd.unwrap_or_else(WorkspacePath::root));
    ran(&sandbox, &files, command, &progress).await
}
