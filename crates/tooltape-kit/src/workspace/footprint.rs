//! What a path touches, as the keys that tell which calls of a batch may overlap.

use tooltape::Footprint;

use super::WorkspacePath;

/// All files, wherever they are.
const FILES: &str = "file:";

impl WorkspacePath {
    /// What reading the file or the directory at this path touches: every file.
    ///
    /// A [`Workspace`](crate::Workspace) follows symbolic links to read, and a path does not say
    /// where they lead: to any file of the workspace.
    pub fn reads(&self) -> Footprint {
        Footprint::reads(FILES)
    }

    /// What replacing the file at this path touches: that file.
    ///
    /// A [`Workspace`](crate::Workspace) follows no link to write, so another path is another
    /// file, unless the file system takes two names for one. Where it could, by their case, the
    /// names have one key; where it could in other ways, the key is that of the directory.
    ///
    /// ```
    /// use tooltape_kit::WorkspacePath;
    ///
    /// let writes = |path: &str| path.parse::<WorkspacePath>().unwrap().writes();
    /// assert!(!writes("src/a.rs").conflicts(&writes("src/b.rs")));
    /// assert!(writes("src/a.rs").conflicts(&writes("./src/A.rs")));
    /// assert!(writes("src/a.rs").conflicts(&writes("src/ä.rs")));
    /// ```
    pub fn writes(&self) -> Footprint {
        let names = self.components();
        let plain = names.iter().take_while(|name| is_plain(name));
        let names: Vec<String> = plain.map(|name| name.to_ascii_lowercase()).collect();
        Footprint::writes(format!("{FILES}{}", names.join("/")))
    }
}

/// Whether every file system takes a name for itself, or for one that differs only by its case.
///
/// Some compose letters differently or leave characters out, end a name at a colon, drop dots and
/// spaces at its end, or abbreviate it with a tilde.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| matches!(byte, b' '..=b'}') && byte != b':')
        && !name.ends_with(['.', ' '])
}
