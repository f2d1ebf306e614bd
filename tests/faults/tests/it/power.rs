//! The power of a real file system is cut while a tape is written, and while raw files are.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tooltape::{RunsQuery, SqliteTape};
use tooltape_faults::LoopDisk;

use crate::stage::{append, run_no, said};

/// How often the power is cut.
fn cuts() -> u64 {
    std::env::var("TOOLTAPE_POWER_CUTS").ok().and_then(|it| it.parse().ok()).unwrap_or(20)
}

const WRITERS: u8 = 4;

/// What became of records over all cuts.
#[derive(Debug, Default)]
struct Count {
    acknowledged: u64,
    lost: u64,
}

/// A way to write records that are durable once it says so.
trait Medium: Sync {
    /// How many records of a writer are there, each as it was written.
    fn found(&self, no: u8) -> u64;
    /// Writes one behind so many, and says whether it is durable.
    fn append(&self, no: u8, len: u64) -> bool;
}

impl Medium for SqliteTape {
    fn found(&self, no: u8) -> u64 {
        let mut found = 0;
        // Reading checks the chain.
        while let lines = self.lines(run_no(no), found, 10_000).unwrap()
            && !lines.is_empty()
        {
            found += lines.len() as u64;
        }
        found
    }

    fn append(&self, no: u8, len: u64) -> bool {
        append(self, no, len, vec![said(usize::from(no) * 300)]).is_ok()
    }
}

/// A file for each writer, and nothing between it and the disk.
struct RawFiles(Vec<File>);

impl RawFiles {
    fn open(root: &Path) -> RawFiles {
        let open = |no| {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(root.join(format!("raw-{no}"))).unwrap()
        };
        RawFiles((1..=WRITERS).map(open).collect())
    }

    fn file(&self, no: u8) -> &File {
        &self.0[usize::from(no) - 1]
    }

    /// The bytes of a record: its number, over and over.
    fn record(no: u8, seq: u64) -> Vec<u8> {
        (seq + 1).to_be_bytes().repeat(usize::from(no) * 40)
    }
}

impl Medium for RawFiles {
    fn found(&self, no: u8) -> u64 {
        let is_there = |seq: &u64| {
            let record = RawFiles::record(no, *seq);
            let mut bytes = vec![0; record.len()];
            let read = self.file(no).read_exact_at(&mut bytes, seq * record.len() as u64);
            read.is_ok() && bytes == record
        };
        (0..).take_while(is_there).count() as u64
    }

    fn append(&self, no: u8, len: u64) -> bool {
        let record = RawFiles::record(no, len);
        let written = self.file(no).write_all_at(&record, len * record.len() as u64);
        written.and_then(|()| self.file(no).sync_data()).is_ok()
    }
}

/// Writes and cuts the power, over and over, and counts what was acknowledged and is not there.
fn cut_often<M: Medium>(disk: &LoopDisk, mut open: impl FnMut(&Path) -> M) -> Count {
    let mut count = Count::default();
    let mut lens = [0_u64; WRITERS as usize];
    for cut in 0..=cuts() {
        let medium = open(&disk.root());
        for (no, len) in (1..).zip(&mut lens) {
            let found = medium.found(no);
            count.lost += len.saturating_sub(found);
            *len = found;
        }
        if cut == cuts() {
            break;
        }
        let goal = (cut * 7) % 90;
        let is_over = AtomicBool::new(false);
        let acked = lens.map(AtomicU64::new);
        std::thread::scope(|scope| {
            for (no, acked) in (1..).zip(&acked) {
                let (medium, is_over) = (&medium, &is_over);
                scope.spawn(move || {
                    let mut len = acked.load(Ordering::SeqCst);
                    while medium.append(no, len) {
                        len = acked.fetch_add(1, Ordering::SeqCst) + 1;
                    }
                    is_over.store(true, Ordering::SeqCst);
                });
            }
            let all = || acked.iter().map(|acked| acked.load(Ordering::SeqCst)).sum::<u64>();
            let before = lens.iter().sum::<u64>();
            while all() < before + goal {
                assert!(!is_over.load(Ordering::SeqCst), "a whole disk takes records");
                std::thread::yield_now();
            }
            // What is acknowledged from here on may be so while the disk dies.
            lens = acked.each_ref().map(|acked| acked.load(Ordering::SeqCst));
            disk.cut();
            count.acknowledged += lens.iter().sum::<u64>() - before;
        });
        drop(medium);
        disk.restart();
    }
    count
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_of_a_real_disk_is_cut() {
    // The files have a disk of their own: their syncs would make the tape's journal durable, too.
    let disks = LoopDisk::new().and_then(|tape| Ok((tape, LoopDisk::new()?)));
    let (disk, control) = match disks {
        Ok(disks) => disks,
        Err(why) => {
            let is_required = std::env::var_os("TOOLTAPE_POWER_REQUIRED").is_some();
            assert!(!is_required, "power: not run: {why}");
            return println!("power: not run, this machine does not permit it: {why}");
        }
    };
    // From here on the machine permits it, and whatever does not work is a failure.
    let mut torn = 0;
    let tape = cut_often(&disk, |root| {
        let tape = SqliteTape::options().reserve_per_call(4096).checkpoint_after(40);
        let tape = tape.open(root.join("tape.db")).unwrap();
        torn += u64::from(tape.recovered().torn.is_some());
        tape
    });
    let raw = cut_often(&control, RawFiles::open);
    let fair = match raw.lost {
        0 => "a fair cut",
        _ => "NOT A FAIR CUT: this machine loses what it synced, so it proves nothing of the tape",
    };
    println!(
        "power: cut {} times on ext4, {} acknowledged, {} lost, {torn} torn tails; \
         control, raw files with fdatasync: {} acknowledged, {} lost: {fair}",
        cuts(),
        tape.acknowledged,
        tape.lost,
        raw.acknowledged,
        raw.lost,
    );
    assert!(tape.lost == 0 || raw.lost > 0, "{tape:?} were lost where raw files were not");
    let tape = SqliteTape::open_read_only(disk.root().join("tape.db")).unwrap();
    assert_eq!(tape.runs(&RunsQuery::all()).unwrap().len(), usize::from(WRITERS));
}
