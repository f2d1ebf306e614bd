//! What a sandbox and its helper tell each other.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::change::FileChange;
use super::command::{Files, ProcessLimits};
use super::error::Part;
use super::{Limit, SetAside};

/// The helper outside the box, which cares for what is in it.
pub(super) const GUARD: &str = "guard";
/// The helper inside the box, its first process.
pub(super) const INIT: &str = "init";

/// The folder of the workspace, within the box.
pub(super) const WORKSPACE: &str = "/workspace";
/// The helper, within the box.
pub(super) const HELPER: &str = "/run/tooltape";
/// Where programs are, within the box.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// What is to be run, as the helper reads it.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: String,
    pub(super) files: Files,
    pub(super) limits: ProcessLimits,
    pub(super) reports_cwd: bool,
    /// Whether a way out is handed over.
    pub(super) egress: bool,
    pub(super) is_preview: bool,
    /// What builds the walls; nothing where there are none.
    pub(super) bwrap: Option<PathBuf>,
    /// Folders of the host that can be read.
    pub(super) exposed: Vec<PathBuf>,
    /// What the helper is started with, before the words of its own.
    pub(super) helper_args: Vec<String>,
}

impl Request {
    /// Reads it from a file that was handed down.
    pub(super) fn read(mut from: impl Read) -> io::Result<Request> {
        let mut text = Vec::new();
        from.read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// What holds a process, as far as it depends on the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    /// The version of Landlock.
    pub(super) landlock: u32,
    /// Whether the kernel counts the processes of the box.
    pub(super) is_counted: bool,
}

/// What the helper says of the process, one line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Note {
    /// All walls are up.
    Ready(Held),
    /// A wall could not be built.
    Failed { part: Part, why: String },
    /// The workspace cannot be handed over.
    Unusable(String),
    /// The program could not be started.
    Unstarted(String),
    /// It was started, and nobody knows what became of it.
    Lost(String),
    /// It ended by itself.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It was killed for a limit that is watched from within.
    Exceeded(Limit),
    /// The folder that a shell ended in.
    Cwd(String),
    /// What it would change, and whether that is all.
    Changes(Vec<FileChange>, bool),
    /// Protected names that were made.
    SetAside(Vec<SetAside>),
}

impl Note {
    /// Says it, as far as anybody still listens.
    pub(super) fn say(&self, mut to: impl Write) {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        let _ = to.write_all(&line);
    }
}
