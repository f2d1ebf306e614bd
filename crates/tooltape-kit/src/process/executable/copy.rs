//! A copy of a program that nobody changes between the look at it and the run.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tooltape::Random;

/// The program, alone in a folder that ends with this.
pub(super) struct Copied {
    folder: PathBuf,
    program: PathBuf,
}

impl Copied {
    /// Writes the bytes of a program under its own name, to be read and run by anybody.
    pub(super) fn new(bytes: &[u8], name: &Path) -> io::Result<Copied> {
        let folder = format!("tooltape-{:016x}", Random::system().next_u64());
        let folder = std::env::temp_dir().canonicalize()?.join(folder);
        builder(0o755).create(&folder)?;
        let program = folder.join(name.file_name().unwrap_or_default());
        let copied = Copied { folder, program };
        let mut file = options(0o555).write(true).create_new(true).open(&copied.program)?;
        file.write_all(bytes)?;
        Ok(copied)
    }

    /// The folder that holds nothing else.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // What is left behind is a copy in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(unix)]
fn builder(mode: u32) -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = DirBuilder::new();
    builder.mode(mode);
    builder
}

#[cfg(unix)]
fn options(mode: u32) -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.mode(mode);
    options
}

#[cfg(not(unix))]
fn builder(_: u32) -> DirBuilder {
    DirBuilder::new()
}

#[cfg(not(unix))]
fn options(_: u32) -> OpenOptions {
    OpenOptions::new()
}
