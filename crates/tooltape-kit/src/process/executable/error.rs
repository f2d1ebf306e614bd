//! Why a program is no tool.

use std::io;
use std::path::PathBuf;

use super::PROGRAM_BYTES_MAX;
use crate::sandbox::SandboxError;

/// Why a program is no tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableError {
    /// A file could not be read.
    #[error("`{}` cannot be read: {}", .path.display(), .source)]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The program is no regular file, or too large.
    #[error(
        "`{}` is no program, expected a file of 1 to {PROGRAM_BYTES_MAX} bytes", .path.display()
    )]
    NoProgram {
        /// The program.
        path: PathBuf,
    },
    /// Nobody may execute the program, and its manifest names no interpreter.
    #[error(
        "`{}` may not be executed: `chmod +x` it, or name an interpreter in `argv`",
        .path.display()
    )]
    NotExecutable {
        /// The program.
        path: PathBuf,
    },
    /// The interpreter that the program names is not there.
    #[error(
        "`{}` names the interpreter `{interpreter}`, which is not there", .path.display()
    )]
    NoInterpreter {
        /// The program.
        path: PathBuf,
        /// The interpreter, as its first line has it.
        interpreter: String,
    },
    /// There is no manifest.
    #[error("there is no manifest `{}`", .path.display())]
    NoManifest {
        /// Where it was expected.
        path: PathBuf,
    },
    /// The manifest is none.
    #[error("`{}` is no manifest: {why}", .path.display())]
    Manifest {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The program does not say what it is.
    #[error("`{} --describe` printed no manifest: {why}", .path.display())]
    Undescribed {
        /// The program.
        path: PathBuf,
        /// What it did instead.
        why: String,
    },
    /// There is no sandbox to ask it in.
    #[error(transparent)]
    Sandbox(SandboxError),
}
