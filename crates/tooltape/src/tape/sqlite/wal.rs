//! What a crash left at the end of SQLite's log, which SQLite itself passes over in silence.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::error::beside;
use crate::tape::TapeError;

/// Writing that a crash cut off: nobody was told that it was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// How many pages of the log were left out.
    pub frames: u64,
    /// Where in the log they begin, in bytes.
    pub at: u64,
}

/// Which commits the writers of a log synced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Synced {
    /// Each one.
    Each,
    /// Some.
    Some,
}

const HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24;
/// The first word of a log, whose last bit says in which order its checksums read words.
const MAGIC: u32 = 0x377f_0682;
/// The sizes that a page may have.
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 512..=65_536;

/// Looks through the log beside a tape that nobody writes to.
///
/// Where each commit is synced before the next begins, a crash leaves at most one commit undone,
/// and that one last: more after the first bad page means that something durable was damaged.
pub(super) fn inspect(tape: &Path, synced: Synced) -> Result<Option<TornTail>, TapeError> {
    let mut path = tape.as_os_str().to_owned();
    path.push("-wal");
    match File::open(Path::new(&path)) {
        Ok(file) => {
            let log = BufReader::with_capacity(1 << 20, file);
            frames(log, synced).map_err(|err| beside(&err))?
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(beside(&err)),
    }
}

fn frames(mut log: impl Read, synced: Synced) -> io::Result<Result<Option<TornTail>, TapeError>> {
    let mut header = [0; HEADER_BYTES];
    if fill(&mut log, &mut header)? < header.len() {
        return Ok(Ok(None));
    }
    let page = word(&header, 8) as usize;
    let is_log = word(&header, 0) & !1 == MAGIC && PAGE_BYTES.contains(&page);
    let mut sum = Checksum { is_big: word(&header, 0) & 1 == 1, state: (0, 0) };
    sum.add(&header[..24]);
    if !is_log || !page.is_power_of_two() || !sum.is(&header[24..]) {
        let why = "the header of its log is damaged".to_owned();
        return Ok(Err(TapeError::Corrupt { seq: 0, why }));
    }
    let mut frame = vec![0; FRAME_BYTES + page];
    let (mut at, mut good_end, mut is_good) = (HEADER_BYTES as u64, HEADER_BYTES as u64, true);
    let (mut lost, mut lost_commits, mut since_commit) = (0, 0_u32, false);
    loop {
        let bytes = fill(&mut log, &mut frame)?;
        at += bytes as u64;
        let is_current = bytes >= FRAME_BYTES && frame[8..16] == header[16..24];
        if is_good && is_current && bytes == frame.len() {
            sum.add(&frame[..8]);
            sum.add(&frame[FRAME_BYTES..]);
            is_good = sum.is(&frame[16..24]);
        } else {
            is_good = false;
        }
        let is_commit = is_current && word(&frame, 4) != 0;
        lost += u64::from(is_current);
        if is_good && is_commit {
            (good_end, lost) = (at, 0);
        } else if !is_good && is_current {
            since_commit |= lost_commits > 0;
            lost_commits += u32::from(is_commit);
        }
        if bytes < frame.len() {
            break;
        }
    }
    if (lost_commits > 1 || since_commit) && synced == Synced::Each {
        let why = format!("its log is damaged after byte {good_end}, before a later commit");
        return Ok(Err(TapeError::Corrupt { seq: 0, why }));
    }
    Ok(Ok((lost > 0).then_some(TornTail { frames: lost, at: good_end })))
}

/// Fills the buffer, or as much of it as there is.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match log.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
    Ok(filled)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes are four bytes"))
}

/// SQLite's checksum of its log: two sums that each take in the other.
struct Checksum {
    is_big: bool,
    state: (u32, u32),
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let (mut one, mut two) = self.state;
        for pair in bytes.chunks_exact(8) {
            let (first, second) = (word(pair, 0), word(pair, 4));
            let swap = |word: u32| if self.is_big { word } else { word.swap_bytes() };
            one = one.wrapping_add(swap(first)).wrapping_add(two);
            two = two.wrapping_add(swap(second)).wrapping_add(one);
        }
        self.state = (one, two);
    }

    fn is(&self, bytes: &[u8]) -> bool {
        self.state == (word(bytes, 0), word(bytes, 4))
    }
}
