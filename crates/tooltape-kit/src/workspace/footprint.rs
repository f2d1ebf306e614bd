//! What a path touches, as the keys that tell which calls of a batch may overlap.

use tooltape::Footprint;

use super::WorkspacePath;

/// All files, wherever they are.
const FILES: &str = "file:";

impl WorkspacePath {
    /// What reading the file or the directory at this path touches: that, and all below it.
    ///
    /// A [`Workspace`](crate::Workspace) follows no link for a call, so another path is another
    /// file, unless the file system takes two names for one. Where it could, by their case, the
    /// names have one key; where it could in other ways, the key is that of the directory.
    pub fn reads(&self) -> Footprint {
        Footprint::reads(self.key())
    }

    /// What replacing the file at this path touches: that file, by the same key.
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
        Footprint::writes(self.key())
    }

    /// What writing several files at once touches.
    pub(crate) fn all_written<'p>(paths: impl Iterator<Item = &'p WorkspacePath>) -> Footprint {
        paths.fold(Footprint::none(), |footprint, path| footprint.and_writes(path.key()))
    }

    fn key(&self) -> String {
        let names = self.components();
        let plain = names.iter().take_while(|name| is_plain(name));
        let names: Vec<String> = plain.map(|name| name.to_ascii_lowercase()).collect();
        format!("{FILES}{}", names.join("/"))
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
