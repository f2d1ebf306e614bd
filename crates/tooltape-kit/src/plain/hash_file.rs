//! `hash_file`: the hash of a file, or of an artifact.

use std::io::{ErrorKind, Read};

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{ArtifactId, Artifacts, Cancel, Clock, Footprint, ToolError, input, tool};

use crate::workspace::{
    EntryKind, Found, Patience, Sight, Workspace, WorkspaceError, WorkspacePath,
};

/// The largest file whose hash is made, in bytes.
pub const HASH_BYTES_MAX: u64 = 4 << 30;

/// How much of a file is read at once.
const BUFFER_BYTES: usize = 64 << 10;

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct HashFile {
    /// The file, relative to the workspace.
    path: Option<WorkspacePath>,
    /// An artifact instead: `artifact:` and 64 hexadecimal digits.
    artifact: Option<String>,
}

impl HashFile {
    fn check(&self) -> Result<(), String> {
        match (&self.path, &self.artifact) {
            (Some(_), None) => Ok(()),
            (None, Some(artifact)) => {
                let id = artifact.parse::<ArtifactId>();
                id.map(drop).map_err(|err| format!("/artifact: {err}"))
            }
            (Some(_), Some(_)) => Err("expected one of `path` and `artifact`, found both".into()),
            (None, None) => Err("expected one of `path` and `artifact`, found neither".into()),
        }
    }
}

/// What `hash_file` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Hashed {
    /// The BLAKE3 hash, as lower-case hexadecimal.
    hash: String,
    /// How many bytes were hashed.
    bytes: u64,
}

/// Returns the BLAKE3 hash of a file of the workspace, or of an artifact, as lower-case
/// hexadecimal: the one that `read_file` returns and `edit_file` expects. For text use `hash`.
#[tool(
    Read,
    filesystem,
    blocking,
    version = "0.1.0",
    needs("fs:read:{path}"),
    touches = path_of,
    output = Hashed,
    wall_ms = 30_000
)]
pub(super) fn hash_file(
    args: HashFile,
    files: Workspace,
    artifacts: Artifacts,
    clock: Clock,
    cancel: Cancel,
) -> Result<Hashed, ToolError> {
    if let Some(artifact) = args.artifact {
        let id: ArtifactId = artifact.parse()?;
        let bytes = artifacts.get_blocking(id).map_err(|err| {
            ToolError::not_done(format!("`{artifact}` cannot be read: {err}")).code("artifact")
        })?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        return Ok(Hashed { hash, bytes: bytes.len() as u64 });
    }
    let path = args.path.unwrap_or_else(WorkspacePath::root);
    let patience = Patience::new(clock, cancel);
    let sight = Sight::all(0);
    let walk = files.walk(&path, sight, patience.clone()).map_err(WorkspaceError::tell)?;
    let is_it = |found: &Found| found.kind == EntryKind::File && found.shown() == path.as_str();
    let Some(found) = walk.take(1).find(is_it) else {
        let (found, expected) = (EntryKind::Dir, EntryKind::File);
        return Err(WorkspaceError::Kind { path, found, expected }.tell());
    };
    files.saw_lines(&found);
    hashed(&path, &found, &patience)
}

fn hashed(path: &WorkspacePath, found: &Found, patience: &Patience) -> Result<Hashed, ToolError> {
    let refused = |err: std::io::Error| {
        let code = if err.kind() == ErrorKind::NotFound { "not_found" } else { "io" };
        ToolError::not_done(format!("`{path}` cannot be read: {err}")).code(code)
    };
    let mut file = found.open().map_err(refused)?;
    let (mut hasher, mut buffer, mut bytes) = (blake3::Hasher::new(), vec![0; BUFFER_BYTES], 0);
    loop {
        let read = file.read(&mut buffer).map_err(refused)?;
        if read == 0 {
            return Ok(Hashed { hash: hasher.finalize().to_hex().to_string(), bytes });
        }
        hasher.update(&buffer[..read]);
        bytes += read as u64;
        if bytes > HASH_BYTES_MAX || patience.is_over() {
            let told = format!("`{path}` is too large to be hashed: {bytes} bytes or more");
            return Err(ToolError::not_done(told).code("too_large"));
        }
    }
}

fn path_of(args: &HashFile) -> Footprint {
    args.path.as_ref().unwrap_or(&WorkspacePath::root()).reads()
}
