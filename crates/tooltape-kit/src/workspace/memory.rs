//! A workspace for tests: a private folder that disappears.

use std::path::{Path, PathBuf};

use tooltape::Random;

use super::{Workspace, WorkspaceError, system};

/// Where folders are kept in memory, on systems that have it.
const MEMORY: &str = "/dev/shm";

/// A folder that is removed with the last handle to it.
pub(super) struct Scratch(PathBuf);

impl Workspace {
    /// Opens an empty workspace that disappears with its last clone.
    ///
    /// It is a real folder, so everything behaves as it does elsewhere: new, private to this user,
    /// under a random name in the memory file system `/dev/shm`, or in the folder for temporary
    /// files where there is none. It stays behind if the process is killed.
    ///
    /// ```
    /// use tooltape::Random;
    /// use tooltape_kit::Workspace;
    ///
    /// let files = Workspace::in_memory().unwrap();
    /// files.write(&"a.txt".parse().unwrap(), b"one", &Random::system()).unwrap();
    /// assert_eq!(files.read(&"a.txt".parse().unwrap()).unwrap(), b"one");
    /// ```
    pub fn in_memory() -> Result<Workspace, WorkspaceError> {
        let memory = Path::new(MEMORY);
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = above.join(format!("tooltape-{:016x}", Random::system().next_u64()));
        let refused = |source| WorkspaceError::Root { folder: folder.clone(), source };
        system::create_private_dir(&folder).map_err(refused)?;
        let scratch = Scratch(folder.clone());
        let mut workspace = Workspace::open(&folder)?;
        workspace.scratch = Some(scratch.into());
        Ok(workspace)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is a private folder under a name that says whose it is.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
