//! Keeps SQLite's log longer than what is in it, so that a commit finds its blocks on the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// The most bytes by which the log is made longer at a time; that takes as long as a few commits.
const STEP_BYTES_MAX: u64 = 1 << 18;
/// The fewest.
const STEP_BYTES_MIN: u64 = 1 << 16;
/// The bytes that a page usually takes up in the log.
const FRAME_BYTES: u64 = 24 + 4096;

/// The log beside a tape.
///
/// A file that grows with each commit has each sync write down where its new blocks are. One that
/// is long enough, and was written before, has only its bytes written. What is behind the end of
/// the log belongs to no commit, and whoever recovers it passes over that.
pub(super) struct Log(Option<File>);

impl Log {
    /// A log that is left as it is.
    pub(super) fn left_alone() -> Log {
        Log(None)
    }

    /// The log beside a tape that is open.
    pub(super) fn beside(tape: &Path) -> Log {
        let mut path = tape.as_os_str().to_owned();
        path.push("-wal");
        let mut options = OpenOptions::new();
        options.write(true);
        // SQLite follows no link here either.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, no_follow());
        Log(options.open(path).ok())
    }

    /// Whether little is left behind this many pages.
    pub(super) fn is_short(&mut self, pages: u64) -> bool {
        // Metadata would say as much, and have the system note the time of the next write, which
        // the next sync would have to write down.
        let len = self.0.as_mut().and_then(|file| file.seek(SeekFrom::End(0)).ok());
        len.is_some_and(|len| len < pages * FRAME_BYTES + STEP_BYTES_MAX.min(len / 2))
    }

    /// Makes it longer. Only for whoever has the tape locked, so that nobody writes to it.
    pub(super) fn grow(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        let len = file.seek(SeekFrom::End(0))?;
        let blank = vec![0; usize::try_from(step(len)).expect("a step fits into memory")];
        let grown = file.write_all(&blank).and_then(|()| file.sync_data());
        if grown.is_err() {
            file.set_len(len)?;
        }
        grown
    }
}

/// How much is added to a log of this length: a short one may well stay short.
fn step(len: u64) -> u64 {
    len.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX)
}

#[cfg(unix)]
fn no_follow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).expect("the flags of a file are an `int`")
}
