//! The power of a real file system is cut while a tape is written.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tooltape::{RunsQuery, SqliteTape};
use tooltape_faults::LoopDisk;

use crate::stage::{append, run_no, said};

/// How often the power is cut.
fn cuts() -> u64 {
    std::env::var("TOOLTAPE_POWER_CUTS").ok().and_then(|it| it.parse().ok()).unwrap_or(20)
}

const WRITERS: u8 = 4;

#[test]
fn nothing_acknowledged_is_lost_when_the_power_of_a_real_disk_is_cut() {
    let disk = match LoopDisk::new() {
        Ok(disk) => disk,
        Err(why) => {
            let is_required = std::env::var_os("TOOLTAPE_POWER_REQUIRED").is_some();
            assert!(!is_required, "power: not run: {why}");
            return println!("power: not run, this machine does not permit it: {why}");
        }
    };
    // From here on the machine permits it, and whatever does not work is a failure.
    let (mut acknowledged, mut torn) = (0, 0);
    let mut lens = [0_u64; WRITERS as usize];
    for cut in 0..cuts() {
        let path = disk.root().join("tape.db");
        let tape = SqliteTape::options().reserve_per_call(4096).checkpoint_after(40);
        let tape = tape.open(&path).unwrap();
        torn += u64::from(tape.recovered().torn.is_some());
        for (no, len) in (1..).zip(&mut lens) {
            let found = tape.head(run_no(no)).unwrap().len;
            assert!(found >= *len, "run {no} has {found} records, {len} were acknowledged");
            *len = found;
        }
        let goal = (cut * 7) % 90;
        let is_over = AtomicBool::new(false);
        let acked = lens.map(AtomicU64::new);
        std::thread::scope(|scope| {
            for (no, acked) in (1..).zip(&acked) {
                let (tape, is_over) = (&tape, &is_over);
                scope.spawn(move || {
                    let mut len = acked.load(Ordering::SeqCst);
                    while append(tape, no, len, vec![said(usize::from(no) * 300)]).is_ok() {
                        len = acked.fetch_add(1, Ordering::SeqCst) + 1;
                    }
                    is_over.store(true, Ordering::SeqCst);
                });
            }
            let all = || acked.iter().map(|acked| acked.load(Ordering::SeqCst)).sum::<u64>();
            let before = lens.iter().sum::<u64>();
            while all() < before + goal {
                assert!(!is_over.load(Ordering::SeqCst), "a tape on a whole disk takes records");
                std::thread::yield_now();
            }
            // What is acknowledged from here on may be so while the disk dies.
            lens = acked.each_ref().map(|acked| acked.load(Ordering::SeqCst));
            disk.cut();
            acknowledged += lens.iter().sum::<u64>() - before;
        });
        drop(tape);
        disk.restart();
    }
    let tape = SqliteTape::open_read_only(disk.root().join("tape.db")).unwrap();
    for (no, len) in (1..).zip(lens) {
        let mut found = 0;
        // Reading checks the chain.
        while let lines = tape.lines(run_no(no), found, 10_000).unwrap()
            && !lines.is_empty()
        {
            found += lines.len() as u64;
        }
        assert!(found >= len, "run {no} has {found} records, {len} were acknowledged");
    }
    assert_eq!(tape.runs(&RunsQuery::all()).unwrap().len(), usize::from(WRITERS));
    drop(tape);
    println!(
        "power: cut {} times on ext4, {acknowledged} acknowledged, 0 lost, {torn} torn tails",
        cuts()
    );
}
