//! What is to be run, and within which limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::SandboxError;
use crate::workspace::WorkspacePath;

/// The most bytes of arguments and variables together.
pub const ARGV_BYTES_MAX: usize = 1 << 20;
/// The most bytes that a process is given to read.
pub const STDIN_BYTES_MAX: usize = 16 << 20;
/// How long a process may run.
pub const WALL_DEFAULT: Duration = Duration::from_secs(120);
/// How long a process may be silent.
pub const IDLE_DEFAULT: Duration = Duration::from_secs(120);
/// How long a process may compute, each for itself.
pub const CPU_DEFAULT: Duration = Duration::from_secs(600);
/// The most memory of all processes together, in bytes.
pub const MEMORY_BYTES_DEFAULT: u64 = 4 << 30;
/// The least memory that can be asked for, in bytes: less holds no program.
pub const MEMORY_BYTES_MIN: u64 = 128 << 20;
/// The most processes and threads at once.
pub const PROCESSES_DEFAULT: u32 = 512;
/// The most bytes that a process may write to each of its streams before it is killed.
pub const OUTPUT_BYTES_DEFAULT: u64 = 16 << 20;
/// The bytes of each stream that are kept: so many of its beginning and end together.
pub const KEPT_BYTES_DEFAULT: usize = 64 << 10;
/// The most bytes of a file that a process writes.
pub const FILE_WRITTEN_BYTES_DEFAULT: u64 = 2 << 30;
/// The most files that a process has open.
pub const OPEN_FILES_DEFAULT: u64 = 1_024;
/// The most bytes of temporary files.
pub const SCRATCH_BYTES_DEFAULT: u64 = 512 << 20;

/// How much of the workspace a process sees, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// Nothing.
    None,
    /// All of it, to be read.
    Read,
    /// All of it, to be read and written, but for protected names.
    Write,
}

/// What is to be run.
///
/// ```
/// use tooltape_kit::{Command, Files};
///
/// let command = Command::new(["git", "status"]).files(Files::Read);
/// assert_eq!(command.argv, ["git", "status"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Command {
    /// The program and its arguments. A program without a `/` in it is looked for where the
    /// system's programs are, and never in the workspace.
    pub argv: Vec<String>,
    /// The folder to start in.
    pub cwd: WorkspacePath,
    /// What the process can read; nothing but an end where none is given.
    pub stdin: Vec<u8>,
    /// Variables beside those that every process has.
    pub env: Vec<(String, String)>,
    /// How much of the workspace it sees.
    pub files: Files,
    /// How much of everything it may use.
    pub limits: ProcessLimits,
    /// Whether it only seems to change the workspace, so that it can be seen what it would do.
    pub is_preview: bool,
    /// Whether it is a shell that leaves the folder of its end in [`Command::CWD_FILE`].
    pub reports_cwd: bool,
}

impl Command {
    /// Where a shell leaves the folder that it ended in.
    pub const CWD_FILE: &str = "/tmp/.tooltape-cwd";

    /// A program and its arguments, in the workspace, which it may write.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Command {
        Command {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: WorkspacePath::root(),
            stdin: Vec::new(),
            env: Vec::new(),
            files: Files::Write,
            limits: ProcessLimits::default(),
            is_preview: false,
            reports_cwd: false,
        }
    }

    /// Starts in this folder.
    pub fn cwd(mut self, cwd: WorkspacePath) -> Command {
        self.cwd = cwd;
        self
    }

    /// Reads this.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Command {
        self.stdin = bytes.into();
        self
    }

    /// Has this variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Command {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sees so much of the workspace.
    pub fn files(mut self, files: Files) -> Command {
        self.files = files;
        self
    }

    /// Has these limits.
    pub fn limits(mut self, limits: ProcessLimits) -> Command {
        self.limits = limits;
        self
    }

    /// Changes nothing but a copy in memory, and lists what it has changed there.
    pub fn previewing(mut self) -> Command {
        self.is_preview = true;
        self
    }

    /// Is a shell, of which it matters where it ends.
    pub fn reporting_cwd(mut self) -> Command {
        self.reports_cwd = true;
        self
    }

    /// Refuses what no process can be given.
    pub(super) fn check(&self) -> Result<(), SandboxError> {
        let refused = |why: String| Err(SandboxError::Command(why));
        let pairs = self.env.iter().flat_map(|(name, value)| [name, value]);
        let bytes: usize = self.argv.iter().chain(pairs.clone()).map(|text| text.len() + 1).sum();
        if self.argv.first().is_none_or(String::is_empty) {
            return refused("found no program, expected one as the first of `argv`".to_owned());
        }
        if bytes > ARGV_BYTES_MAX {
            return refused(format!("found {bytes} bytes, expected at most {ARGV_BYTES_MAX}"));
        }
        if self.stdin.len() > STDIN_BYTES_MAX {
            let bytes = self.stdin.len();
            return refused(format!(
                "found {bytes} bytes to read, expected at most {STDIN_BYTES_MAX}"
            ));
        }
        if self.argv.iter().chain(pairs).any(|text| text.contains('\0')) {
            return refused("found a NUL character, expected text without one".to_owned());
        }
        match self.env.iter().find(|(name, _)| name.is_empty() || name.contains('=')) {
            Some((name, _)) => refused(format!("`{name}` is no name of a variable")),
            None => Ok(()),
        }
    }
}

/// How much a process and all that it starts may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Time in all.
    pub wall: Duration,
    /// Time without output.
    pub idle: Duration,
    /// Time of computing, each process for itself.
    pub cpu: Duration,
    /// Memory in bytes, of all together; at least [`MEMORY_BYTES_MIN`].
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u32,
    /// Bytes written to each of the two streams.
    pub output_bytes: u64,
    /// Bytes that are kept of each of the two streams.
    pub kept_bytes: usize,
    /// Bytes of a file that it writes.
    pub file_bytes: u64,
    /// Files that a process has open.
    pub open_files: u64,
    /// Bytes of temporary files.
    pub scratch_bytes: u64,
}

impl Default for ProcessLimits {
    fn default() -> ProcessLimits {
        ProcessLimits {
            wall: WALL_DEFAULT,
            idle: IDLE_DEFAULT,
            cpu: CPU_DEFAULT,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            processes: PROCESSES_DEFAULT,
            output_bytes: OUTPUT_BYTES_DEFAULT,
            kept_bytes: KEPT_BYTES_DEFAULT,
            file_bytes: FILE_WRITTEN_BYTES_DEFAULT,
            open_files: OPEN_FILES_DEFAULT,
            scratch_bytes: SCRATCH_BYTES_DEFAULT,
        }
    }
}
