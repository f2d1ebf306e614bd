//! `shell`: a command line, run by a shell in the sandbox.

use tooltape::{Progress, ToolError, input, tool};

use super::output::{Ran, ran};
use crate::sandbox::{Command, Sandbox, SandboxError};
use crate::workspace::{Workspace, WorkspacePath};

/// Runs its first argument, and leaves behind where that ended.
///
/// The command is data to it: nothing in here is put together from text.
const SCRIPT: &str = r#"trap 'pwd -P >"$TOOLTAPE_CWD"' EXIT; eval "$1""#;
/// The shells that are looked for, the best first.
const SHELLS: &str =
    "if [ -x /bin/bash ]; then exec /bin/bash \"$@\"; else exec /bin/sh \"$@\"; fi";

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct Shell {
    /// The command line, as a shell reads it.
    command: String,
    /// The folder to start in, relative to the workspace. The workspace itself where none is given.
    cwd: Option<WorkspacePath>,
    /// Whether to change nothing, and only show what would change.
    preview: Option<bool>,
}

impl Shell {
    fn check(&self) -> Result<(), String> {
        match self.command.trim().is_empty() {
            true => Err("/command: found nothing, expected a command line".to_owned()),
            false => Ok(()),
        }
    }
}

/// Runs a command line in a shell, in the workspace. There is no network but, where `HTTP_PROXY`
/// is set, some hosts, no input, and nothing of the machine but its programs; `/tmp` is empty at
/// the start of each call, and what still runs at its end is killed. An exit code other than 0 is
/// a result like any other. Return `cwd` as the next `cwd` to stay in a folder. With `preview`,
/// files only seem to change, and `preview` returns what would; `apply_patch` does it, with the
/// `paths` and the `patch` of that.
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
pub(super) async fn shell(
    args: Shell,
    files: Workspace,
    sandbox: Sandbox,
    progress: Progress,
) -> Result<Ran, ToolError> {
    sandbox.check(None).map_err(SandboxError::tell)?;
    let argv = ["/bin/sh", "-c", SHELLS, "sh", "-c", SCRIPT, "sh", &args.command];
    let command = Command::new(argv)
        .cwd(args.cwd.unwrap_or_else(WorkspacePath::root))
        .env("TOOLTAPE_CWD", Command::CWD_FILE)
        .reporting_cwd();
    let command = match args.preview {
        Some(true) => command.previewing(),
        Some(false) | None => command,
    };
    ran(&sandbox, &files, command, &progress).await
}
