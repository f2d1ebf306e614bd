//! Twenty ways to use a tape.

use tooltape::Erase;

use crate::stage::Stage;

/// A name, after how many pages the log is copied, and what is done.
pub(crate) type Workload = (&'static str, u64, fn(&mut Stage));

/// Pages that none of them reaches.
const NEVER: u64 = 1 << 20;

pub(crate) const ALL: [Workload; 20] = [
    ("a new tape", NEVER, |_| {}),
    ("one record", NEVER, |stage| stage.say(1, 1, 10)),
    ("records one by one", NEVER, |stage| stage.say(1, 30, 100)),
    ("large records", NEVER, |stage| stage.say(1, 6, 20_000)),
    ("records of every size", NEVER, |stage| {
        (0..14).for_each(|power| stage.say(1, 1, 1 << power));
    }),
    ("calls", NEVER, |stage| (1..12).for_each(|call| stage.call(1, call))),
    ("calls that stay open", NEVER, |stage| {
        (1..12).for_each(|call| stage.start(1, call));
        stage.call(1, 20);
    }),
    ("many runs", NEVER, |stage| (1..20).for_each(|no| stage.say(no, 1, 50))),
    ("runs in turn", NEVER, |stage| {
        (0..6).for_each(|_| (1..6).for_each(|no| stage.say(no, 1, 300)));
    }),
    ("a burst to one run", NEVER, |stage| stage.burst(1..2, 60, 80)),
    ("bursts to many runs", NEVER, |stage| {
        (0..4).for_each(|_| stage.burst(1..12, 2, 200));
    }),
    ("the log is copied often", 8, |stage| stage.say(1, 25, 700)),
    ("the log is copied at each commit", 0, |stage| {
        (1..8).for_each(|call| stage.call(1, call));
        stage.say(2, 6, 5_000);
    }),
    ("bursts while the log is copied", 16, |stage| {
        (0..5).for_each(|_| stage.burst(1..8, 2, 900));
    }),
    ("runs that end", NEVER, |stage| {
        for no in 1..8 {
            stage.call(no, 1);
            stage.end(no);
        }
    }),
    ("closed and opened again", NEVER, |stage| {
        for _ in 0..4 {
            stage.say(1, 3, 100);
            stage.open();
            stage.call(2, u64::from(stage.disk.asked() as u32));
        }
    }),
    ("payloads are erased", NEVER, |stage| {
        stage.say(1, 5, 400);
        stage.say(2, 5, 400);
        stage.end(1);
        stage.erase(1, Erase::Payloads);
        stage.say(2, 5, 400);
    }),
    ("records are erased", 12, |stage| {
        stage.say(1, 5, 3_000);
        stage.say(2, 5, 400);
        stage.end(1);
        stage.erase(1, Erase::Records);
        stage.say(2, 5, 400);
    }),
    ("runs are imported", NEVER, |stage| {
        stage.say(1, 3, 100);
        stage.import(2, 40);
        stage.say(1, 3, 100);
        stage.import(3, 5);
    }),
    ("everything at once", 20, |stage| {
        stage.burst(1..5, 4, 250);
        stage.read(2);
        (1..5).for_each(|call| stage.call(6, call));
        stage.end(3);
        stage.erase(3, Erase::Records);
        stage.open();
        stage.import(8, 10);
        stage.burst(1..3, 3, 6_000);
        stage.read(1);
        stage.start(6, 9);
    }),
];
