//! What a durable record costs, beside the least that a disk charges for one.

use std::fs::File;
use std::future::Future;
use std::hint::black_box;
use std::io::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tooltape::{Append, Event, Hash, Head, Line, Record, RunId, SqliteTape, Tape};

use crate::cpu::Stopwatch;
use crate::race::{Effort, Measured, Racer, median, race};

/// About how long a record is.
const RECORD_BYTES: usize = 500;
/// The tasks that write at once.
const WRITERS: u8 = 32;

fn folder() -> TempDir {
    tempfile::tempdir().expect("there is a folder for files that go away")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts")
}

fn event() -> Event {
    Event::Asked { text: "x".repeat(RECORD_BYTES - 135).into() }
}

fn run(no: u64) -> RunId {
    let mut random = [0; 10];
    random[..8].copy_from_slice(&no.to_be_bytes());
    RunId::new(1, random)
}

async fn append(tape: &SqliteTape, run: RunId, after: u64) {
    let ack = tape.append(Append::new(run, after, 7, &mut vec![event()]));
    ack.durable().await.expect("the disk takes a record");
}

/// `tape.single`: the median wall time of one durable record, against a raw append and sync.
pub fn single(effort: Effort) -> Measured {
    let folder = folder();
    let tape = SqliteTape::open(folder.path().join("tape.db")).expect("a tape opens");
    let mut file = File::create(folder.path().join("raw")).expect("a file opens");
    let (runtime, bytes) = (runtime(), vec![b'x'; RECORD_BYTES]);
    let (mut raw, mut ours, mut len) = (Vec::new(), Vec::new(), 0);
    let mut raw_once = || {
        let start = Instant::now();
        file.write_all(&bytes).and_then(|()| file.sync_data()).expect("the disk takes bytes");
        start.elapsed().as_secs_f64()
    };
    // In turn, so that both meet the same disk.
    for _ in 0..effort.rounds * 32 {
        raw.push(raw_once());
        let start = Instant::now();
        runtime.block_on(append(&tape, run(1), len));
        ours.push(start.elapsed().as_secs_f64());
        len += 1;
    }
    let (raw, ours) = (median(raw), median(ours));
    let row = |name: &str, secs: f64| format!("{name:<44} {:>9.1} µs", secs * 1e6);
    let rows = vec![row("raw: append and fdatasync", raw), row("tooltape: durable append", ours)];
    Measured { value: ours / raw, rows }
}

/// `tape.group`: durable records per second of 32 writers, through those of a raw file with the
/// same group commit.
pub fn group(effort: Effort) -> Measured {
    let events = (16_000 / effort.shrink as u64).max(64);
    let folder = folder();
    let (mut raw, mut ours, mut one_run) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..effort.rounds.div_ceil(12) {
        let at = |name: &str| folder.path().join(format!("{round}.{name}"));
        raw.push(rate(events, || grouped_raw(&at("raw"), events)));
        let tape = SqliteTape::open(at("db")).expect("a tape opens");
        ours.push(rate(events, || grouped(&tape, events)));
        one_run.push(rate(events, || in_one_run(&tape, events)));
    }
    let ratios = raw.iter().zip(&ours).map(|(raw, ours)| ours / raw);
    let value = median(ratios.collect::<Vec<_>>());
    let row = |name: &str, rates: Vec<f64>| format!("{name:<44} {:>9.0} /s", median(rates));
    let rows = vec![
        row("raw: 32 tasks, one writer, fdatasync", raw),
        row("tooltape: 32 tasks, 32 runs", ours),
        row("tooltape: 32 tasks, one run", one_run),
    ];
    Measured { value, rows }
}

fn rate(events: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    events as f64 / start.elapsed().as_secs_f64()
}

/// Lets every writer do its share.
fn by_all<F: Future<Output = ()> + 'static>(work: impl Fn(u8) -> F) {
    let local = tokio::task::LocalSet::new();
    runtime().block_on(local.run_until(async {
        let mut tasks = JoinSet::new();
        for no in 0..WRITERS {
            tasks.spawn_local(work(no));
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("no writer panics");
        }
    }));
}

fn grouped(tape: &SqliteTape, events: u64) {
    by_all(|no| {
        let tape = tape.clone();
        async move {
            for after in 0..events / u64::from(WRITERS) {
                append(&tape, run(u64::from(no)), after).await;
            }
        }
    });
}

fn in_one_run(tape: &SqliteTape, events: u64) {
    let next = std::rc::Rc::new(std::cell::Cell::new(0));
    by_all(|_| {
        let (tape, next) = (tape.clone(), next.clone());
        async move {
            for _ in 0..events / u64::from(WRITERS) {
                let after = next.replace(next.get() + 1);
                append(&tape, run(1_000), after).await;
            }
        }
    });
}

/// A record for a raw file, and whom to tell.
type Waiting = (Vec<u8>, oneshot::Sender<()>);

fn grouped_raw(path: &std::path::Path, events: u64) {
    let mut file = File::create(path).expect("a file opens");
    let (jobs, waiting) = mpsc::channel::<Waiting>();
    let writer = std::thread::spawn(move || {
        let (mut bytes, mut acks) = (Vec::new(), Vec::new());
        while let Ok(first) = waiting.recv() {
            for (record, ack) in std::iter::once(first).chain(waiting.try_iter()) {
                bytes.extend(record);
                acks.push(ack);
            }
            file.write_all(&bytes).and_then(|()| file.sync_data()).expect("the disk takes bytes");
            bytes.clear();
            acks.drain(..).for_each(|ack: oneshot::Sender<()>| ack.send(()).unwrap_or_default());
        }
    });
    by_all(|_| {
        let jobs = jobs.clone();
        async move {
            for _ in 0..events / u64::from(WRITERS) {
                let (ack, durable) = oneshot::channel();
                jobs.send((vec![b'x'; RECORD_BYTES], ack)).expect("the writer waits");
                durable.await.expect("the writer answers");
            }
        }
    });
    drop(jobs);
    writer.join().expect("the writer does not panic");
}

/// `tape.nosync`: CPU time of a record that need not be durable, against a raw write.
pub fn nosync(effort: Effort) -> Measured {
    let folder = folder();
    let options = SqliteTape::options().not_durable();
    let tape = options.open(folder.path().join("tape.db")).expect("a tape opens");
    let mut file = File::create(folder.path().join("raw")).expect("a file opens");
    let bytes = vec![b'x'; RECORD_BYTES];
    let mut runs = 0;
    let effort = Effort { slice: effort.slice * 8, ..effort };
    let lanes = race(
        effort,
        [
            Racer::new("raw: write", || file.write_all(&bytes).expect("the disk takes bytes")),
            Racer::timed("tooltape: append", |times| {
                runs += 1;
                let watch = Stopwatch::start();
                for after in 0..times as u64 {
                    let ack = tape.append(Append::new(run(runs), after, 7, &mut vec![event()]));
                    ack.accepted().expect("there is room in the queue");
                }
                // Waits until all is written.
                let head = tape.head(run(runs)).expect("the tape is read");
                assert_eq!(head.len, times as u64);
                watch.elapsed()
            }),
        ],
    );
    Measured::of(lanes[1].ratio, &lanes)
}

/// `tape.verify`: records per second of CPU whose text, place and hashes are checked.
pub fn verify(effort: Effort) -> Measured {
    let lines = lines(20_000 / effort.shrink as u64);
    let mut rates = Vec::new();
    for _ in 0..effort.rounds.div_ceil(6) {
        let watch = Stopwatch::start();
        for line in &lines {
            let (previous, content, hash) = (line.previous(), line.content(), line.hash());
            black_box(Line::stored(black_box(line.body()), previous, content, hash))
                .expect("the line is good");
        }
        rates.push(lines.len() as f64 / watch.elapsed().as_secs_f64());
    }
    Measured { value: median(rates), rows: vec![large(1_000_000 / effort.shrink as u64)] }
}

fn lines(len: u64) -> Vec<Line> {
    let mut previous: Hash = Head::empty().hash;
    let records = (0..len).map(|seq| Record::new(run(1), seq, 7, event()));
    let lines = records.map(|record| {
        let line = Line::of(&record, previous).expect("a record has a text");
        previous = line.hash();
        line
    });
    lines.collect()
}

/// How long it takes to open a large tape whose writer died, and to check all of it.
fn large(len: u64) -> String {
    let (folder, left) = (folder(), self::folder());
    let options = SqliteTape::options().not_durable();
    let tape = options.open(folder.path().join("tape.db")).expect("a tape opens");
    for after in 0..len {
        let ack = tape.append(Append::new(run(1), after, 7, &mut vec![event()]));
        ack.accepted().expect("there is room in the queue");
        if after % 100_000 == 99_999 {
            tape.head(run(1)).expect("the tape is read");
        }
    }
    assert_eq!(tape.head(run(1)).expect("the tape is read").len, len);
    // What a process leaves that is killed.
    for entry in std::fs::read_dir(folder.path()).expect("the folder is there").flatten() {
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), left.path().join(entry.file_name())).expect("room");
        }
    }
    drop(tape);
    let start = Instant::now();
    let tape = SqliteTape::open(left.path().join("tape.db")).expect("the tape is whole");
    assert_eq!(tape.recovered().dead.len(), 1);
    let opened = start.elapsed();
    let (start, mut from) = (Instant::now(), 0);
    while from < len {
        from += tape.lines(run(1), from, 10_000).expect("the chain holds").len() as u64;
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (opened, checked) = (ms(opened), ms(start.elapsed()));
    format!("{len} records: opened and recovered in {opened:.0} ms, all checked in {checked:.0} ms")
}
