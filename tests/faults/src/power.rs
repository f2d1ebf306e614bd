//! A real file system whose power can be cut: ext4 on a file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::ioctl::{Setter, ioctl};
use tempfile::TempDir;

/// `EXT4_IOC_SHUTDOWN`, which is `_IOR('X', 125, __u32)`.
const SHUTDOWN: rustix::ioctl::Opcode = 0x8004_587d;
/// Neither the journal nor anything else is written any more.
const NOLOGFLUSH: u32 = 2;
/// The bytes of the file system.
const DISK_BYTES: u64 = 48 << 20;

/// A disk with ext4 on it.
pub struct LoopDisk {
    folder: TempDir,
}

impl LoopDisk {
    /// Makes one, or says why this machine has none.
    pub fn new() -> Result<LoopDisk, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root may mount a disk".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|err| err.to_string())?;
        let disk = LoopDisk { folder };
        let file = File::create(disk.file()).map_err(|err| err.to_string())?;
        file.set_len(DISK_BYTES).map_err(|err| err.to_string())?;
        std::fs::create_dir(disk.root()).map_err(|err| err.to_string())?;
        run(Command::new("mkfs.ext4").arg("-q").arg(disk.file()))?;
        disk.mount()?;
        Ok(disk)
    }

    /// Where its files are.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.file()).arg(self.root()))
    }

    /// Cuts the power: from here on everything fails, and what was not synced is lost.
    pub fn cut(&self) {
        let root = File::open(self.root()).expect("a mounted folder opens");
        // SAFETY: the call reads a `u32`, as its number says.
        let cut = unsafe { ioctl(&root, Setter::<SHUTDOWN, u32>::new(NOLOGFLUSH)) };
        cut.expect("ext4 can be shut down");
    }

    /// Lets the power come back.
    pub fn restart(&self) {
        self.unmount().expect("nobody uses the disk");
        self.mount().expect("what could be mounted can be mounted again");
    }

    fn unmount(&self) -> Result<(), String> {
        run(Command::new("umount").arg(self.root()))
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // The folder cannot be removed while it is mounted.
        let _ = self.unmount();
    }
}

/// A disk in memory of so many bytes, or why there is none.
pub struct TinyDisk {
    folder: TempDir,
}

impl TinyDisk {
    /// Makes one.
    pub fn new(bytes: u64) -> Result<TinyDisk, String> {
        let folder = tempfile::tempdir().map_err(|err| err.to_string())?;
        let size = format!("size={bytes}");
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "tmpfs", "-o", &size, "tooltape"]).arg(folder.path()))?;
        Ok(TinyDisk { folder })
    }

    /// Where its files are.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        // The folder cannot be removed while it is mounted.
        let _ = run(Command::new("umount").arg(self.folder.path()));
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|err| format!("{:?}: {err}", command.get_program()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(said.trim().to_owned()) }
}
