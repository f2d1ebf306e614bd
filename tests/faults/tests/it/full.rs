//! A disk without room refuses what is new, and takes the results of what has started.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use tooltape::{Event, SqliteTape, TapeError};
use tooltape_faults::TinyDisk;

use crate::stage::{append, said, settled, started};

const DISK_BYTES: u64 = 4 << 20;
const RESERVE: u64 = 64 << 10;

/// Fills the disk up.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write(&[1; 512]).is_ok() {}
}

#[test]
fn a_full_disk_refuses_what_is_new_and_takes_the_results_of_what_has_started() {
    let disk = match TinyDisk::new(DISK_BYTES) {
        Ok(disk) => disk,
        Err(why) => return println!("full: not run, no small disk can be mounted: {why}"),
    };
    let options = SqliteTape::options().reserve_per_call(RESERVE);
    let tape = options.clone().open(disk.root().join("tape.db")).unwrap();
    append(&tape, 1, 0, vec![started(1), started(2), started(3)]).unwrap();
    let ballast = disk.root().join("ballast");
    fill(&ballast);
    let mut len = 3;
    let refused = loop {
        match append(&tape, 1, len, vec![said(2_000)]) {
            Ok(()) => len += 1,
            Err(err) => break err,
        }
        assert!(len < 10_000, "the disk never was full");
    };
    assert!(matches!(refused, TapeError::Full { .. }), "{refused}");
    let refused = append(&tape, 1, len, vec![started(4)]).unwrap_err();
    assert!(matches!(refused, TapeError::Full { .. }), "nothing new starts: {refused}");
    let refused = append(&tape, 2, 0, vec![started(1)]).unwrap_err();
    assert!(matches!(refused, TapeError::Full { .. }), "in another run neither: {refused}");
    for call in [1, 2, 3] {
        append(&tape, 1, len, vec![settled(call)]).expect("what has started may settle");
        len += 1;
    }
    fs::remove_file(&ballast).unwrap();
    append(&tape, 1, len, vec![started(4), said(100)]).expect("there is room again");
    append(&tape, 1, len + 2, vec![settled(4)]).unwrap();
    let ended = Event::RunEnded { status: "ended", stop: "done".into(), answer: None };
    append(&tape, 1, len + 3, vec![ended]).unwrap();
    let lines = tape.lines(crate::stage::run_no(1), 0, 10_000).unwrap();
    assert_eq!(lines.len() as u64, len + 4);
    println!("full: run, {len} records on a disk of {DISK_BYTES} bytes");
}

#[test]
fn a_tape_is_opened_on_a_full_disk_and_can_be_read() {
    let disk = match TinyDisk::new(DISK_BYTES) {
        Ok(disk) => disk,
        Err(why) => return println!("full: not run, no small disk can be mounted: {why}"),
    };
    let (path, ballast) = (disk.root().join("tape.db"), disk.root().join("ballast"));
    let options = SqliteTape::options().reserve_per_call(RESERVE);
    append(&options.clone().open(&path).unwrap(), 1, 0, vec![started(1)]).unwrap();
    fill(&ballast);
    let refused = options.clone().open(&path).err();
    assert!(refused.is_none_or(|err| matches!(err, TapeError::Full { .. } | TapeError::Io { .. })));
    fs::remove_file(&ballast).unwrap();
    let tape = options.open(&path).unwrap();
    assert_eq!(tape.lines(crate::stage::run_no(1), 0, 10).unwrap().len(), 1);
}
