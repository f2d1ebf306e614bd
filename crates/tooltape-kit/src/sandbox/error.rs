//! Why a process was not run.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use tooltape::{Refusal, ToolError};

/// One part of the sandbox, all of which it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// An operating system that has what it takes.
    Platform,
    /// The program that makes namespaces and mounts.
    Bubblewrap,
    /// Namespaces without privileges.
    Namespaces,
    /// Rules on files that a process cannot shed.
    Landlock,
    /// A filter on system calls.
    Seccomp,
    /// Limits on memory, files and processes.
    Limits,
    /// Our own program, within.
    Helper,
}

impl Part {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Part::Platform => "platform",
            Part::Bubblewrap => "bubblewrap",
            Part::Namespaces => "namespaces",
            Part::Landlock => "landlock",
            Part::Seccomp => "seccomp",
            Part::Limits => "limits",
            Part::Helper => "helper",
        }
    }

    /// How to get it.
    pub fn hint(self) -> &'static str {
        match self {
            Part::Platform => "run it on Linux, or in a Linux container or virtual machine",
            Part::Bubblewrap => "install it: `apt-get install bubblewrap`",
            Part::Namespaces => {
                "allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1` or \
                 `kernel.apparmor_restrict_unprivileged_userns=0`; a container needs \
                 `--security-opt seccomp=unconfined` or privileges of its own"
            }
            Part::Landlock => {
                "use Linux 5.13 or later with `landlock` in `/sys/kernel/security/lsm`; it is \
                 added by `lsm=` on the kernel's command line"
            }
            Part::Seccomp => "use a kernel with `CONFIG_SECCOMP_FILTER`, on x86-64 or aarch64",
            Part::Limits => "raise the hard limits of the process (`ulimit -H`)",
            Part::Helper => "reinstall `tooltape`: it starts itself within the sandbox",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a process was not run. Only [`SandboxError::Lost`] leaves open whether it was, and after
/// [`SandboxError::Left`] it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A part of the sandbox is missing or does not work, so nothing is run.
    #[error("there is no sandbox, since `{part}` does not work: {why}; {}", .part.hint())]
    Missing {
        /// Which.
        part: Part,
        /// What was found.
        why: String,
    },
    /// The command is none that can be run.
    #[error("the command cannot be run: {0}")]
    Command(String),
    /// The program could not be started.
    #[error("`{program}` could not be started: {why}")]
    Program {
        /// The program.
        program: String,
        /// What the operating system said.
        why: String,
    },
    /// The workspace cannot be handed to a process.
    #[error("the workspace cannot be handed to a process: {0}")]
    Workspace(String),
    /// The run of the call may not run processes, or may not any more.
    #[error("no process may be run: {0}")]
    Withheld(Box<Refusal>),
    /// The operating system refused what every process needs.
    #[error("the process could not be started: {0}")]
    Io(#[from] io::Error),
    /// The process ran, and what it made under protected names may still be in its place.
    #[error("the process left protected names that could not be renamed: look at {0} first")]
    Left(String),
    /// What became of the process is not known.
    #[error("the process was lost: {0}")]
    Lost(String),
}

impl SandboxError {
    pub(super) fn missing(part: Part, why: impl Into<String>) -> SandboxError {
        SandboxError::Missing { part, why: why.into() }
    }

    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            SandboxError::Missing { .. } => "sandbox_missing",
            SandboxError::Command(_) => "not_a_command",
            SandboxError::Program { .. } => "program_not_started",
            SandboxError::Workspace(_) => "workspace_unavailable",
            SandboxError::Withheld(_) => "withheld",
            SandboxError::Io(_) => "io",
            SandboxError::Left(_) => "protected_left",
            SandboxError::Lost(_) => "lost",
        }
    }

    /// The same refusal as a tool returns it: the model reads why, and whether anything was done.
    pub fn tell(self) -> ToolError {
        let (told, code) = (self.to_string(), self.code());
        match self {
            SandboxError::Left(_) => ToolError::tell(told).code(code),
            SandboxError::Lost(_) => ToolError::in_doubt(told).code(code),
            SandboxError::Missing { .. } => ToolError::not_done(told).code(code),
            SandboxError::Command(_)
            | SandboxError::Program { .. }
            | SandboxError::Workspace(_)
            | SandboxError::Withheld(_)
            | SandboxError::Io(_) => ToolError::not_done(told).code(code),
        }
    }
}
