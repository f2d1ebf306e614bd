//! Tools that run processes in the sandbox.

mod exec;
mod preview;
mod output;
mod shell;
mod executable;

use std::sync::Arc;

use tooltape::Tool;

pub use exec::ARGUMENTS_MAX;
pub use executable::{
    DESCRIBE_WALL, EXECUTABLE_OUTPUT_BYTES_MAX, EXECUTABLE_WALL_DEFAULT, EXECUTABLE_WALL_MAX,
    Executable, ExecutableError, MANIFEST_BYTES_MAX, Manifest, ManifestBounds, ManifestEffects,
    PROGRAM_BYTES_MAX,
};
pub use preview::PATCH_BYTES_MAX;

/// The tools that run processes: `shell` and `exec`.
///
/// Each of them needs a [`Sandbox`](crate::Sandbox) and a [`Workspace`](crate::Workspace).
pub fn tools() -> [Arc<dyn Tool>; 2] {
    tooltape::tools![shell::shell, exec::exec]
}
