//! Room on the disk that is kept for the results of what has started.

use std::fs::File;
use std::io;

/// The bytes kept free beside a tape for the end of its runs.
pub const RESERVE_BYTES_MIN: u64 = 4 << 20;
/// The bytes kept free, besides, for the result of each call that has started.
pub const RESERVE_CALL_BYTES: u64 = 1 << 20;

/// Growing takes this much at a time, so that most calls start without a word to the system.
const STEP_CALLS: u64 = 8;

/// A file that only takes up room.
pub(super) struct Reserve {
    file: File,
    bytes: u64,
    least: u64,
    per_call: u64,
    /// Whether room was given back that is not there again.
    spent: bool,
}

impl Reserve {
    /// Takes up the least room, in a file that is empty.
    pub(super) fn new(file: File, least: u64, per_call: u64) -> Reserve {
        let mut reserve = Reserve { file, bytes: 0, least, per_call, spent: false };
        reserve.spent = reserve.grow(least).is_err();
        reserve
    }

    /// Makes sure of the room for this many started calls.
    pub(super) fn cover(&mut self, calls: u64) -> io::Result<()> {
        let bytes = self.least + calls * self.per_call;
        if self.spent || bytes > self.bytes {
            let step = calls.next_multiple_of(STEP_CALLS) * self.per_call;
            // A little less will do where there is no more.
            self.grow(self.least + step).or_else(|_| self.grow(bytes))?;
            self.spent = false;
        }
        Ok(())
    }

    /// Whether the disk was full, and still is.
    pub(super) fn is_spent(&mut self, calls: u64) -> bool {
        self.spent && self.cover(calls).is_err()
    }

    /// Gives room back to the disk: what no started call needs, then everything. False if there is
    /// nothing to give.
    pub(super) fn give_back(&mut self, calls: u64) -> bool {
        let kept = calls * self.per_call;
        let kept = if self.bytes > kept { kept } else { 0 };
        if self.bytes == 0 || self.file.set_len(kept).is_err() {
            return false;
        }
        self.bytes = kept;
        self.spent = true;
        true
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        match take(&self.file, self.bytes, bytes) {
            Ok(()) => {
                self.bytes = bytes;
                Ok(())
            }
            Err(err) => {
                // Some of it may have been taken.
                self.file.set_len(self.bytes)?;
                Err(err)
            }
        }
    }
}

/// Makes a file take up room, from one length to another.
#[cfg(target_os = "linux")]
fn take(file: &File, from: u64, to: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), from, to - from) {
        Err(rustix::io::Errno::OPNOTSUPP) => fill(file, from, to),
        done => Ok(done?),
    }
}

/// Makes a file take up room, from one length to another.
#[cfg(not(target_os = "linux"))]
fn take(file: &File, from: u64, to: u64) -> io::Result<()> {
    fill(file, from, to)
}

/// Writes what cannot be had without writing.
fn fill(mut file: &File, from: u64, to: u64) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(from))?;
    io::copy(&mut io::repeat(0xff).take(to - from), &mut file)?;
    file.flush()?;
    file.sync_data()
}
