//! What a path touches, as the keys that tell which calls of a batch may overlap.

use tooltape::Footprint;

use super::WorkspacePath;

/// All files, wherever they are.
const FILES: &str = "file:";

/// The files of a folder whose rules hold for a search below it.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// The most folders above a search whose files are keys of their own; a footprint has 64 keys.
const ABOVE_MAX: usize = 16;

impl WorkspacePath {
    /// What reading the file or the directory at this path touches: that, and all below it.
    ///
    /// A [`Workspace`](crate::Workspace) follows no link for a call, so another path is another
    /// file, unless the file system takes two names for one. Where it could, by their case, the
    /// names have one key; where it could in other ways, the key is that of the directory.
    pub fn reads(&self) -> Footprint {
        Footprint::reads(self.key())
    }

    /// What searching below this path touches: that, and the ignore files of the folders above.
    pub(crate) fn searches(&self) -> Footprint {
        let names = self.components();
        if names.len() > ABOVE_MAX {
            return WorkspacePath::root().reads();
        }
        let above = (0..names.len()).map(|depth| names[..depth].join("/"));
        let files = above.flat_map(|dir| IGNORE_FILES.map(|name| format!("./{dir}/{name}")));
        let paths = files.map(|path| path.replace("//", "/").parse::<WorkspacePath>());
        paths.fold(self.reads(), |footprint, path| match path {
            Ok(path) => footprint.and_reads(path.key()),
            // Too long to be a path, and so to be there.
            Err(_) => footprint,
        })
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
