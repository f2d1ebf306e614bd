//! What is asked of a tape in a SQLite file: lists, imports, erasing, old versions.

use std::fs;
use std::path::Path;

use tooltape::testing::Spy;
use tooltape::{
    Access, CallNo, Erase, Event, InDoubt, MemoryTape, Parent, Proposal, Rules, Run, RunStatus,
    RunsQuery, SqliteTape, Tape, TapeError, Toolbox,
};

use crate::sqlite::{append, run_no, said, scratch, started};

fn ended(status: &'static str) -> Event {
    Event::RunEnded { status, stop: "done".into(), answer: None }
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_by_what_is_asked() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    for no in 1..=5 {
        let mut events = vec![said("a")];
        events
            .extend(["ended", "failed", "cancelled"].get(usize::from(no) - 1).map(|it| ended(it)));
        let append = tooltape::Append::new(run_no(no), 0, u64::from(no) * 10, &mut events);
        tape.append(append).durable().await.unwrap();
    }
    let paused = Event::RunPaused { why: "a question".into() };
    append(&tape, 4, 1, vec![paused]).await.unwrap();
    let check = |change: &dyn Fn(&mut RunsQuery), expected: &[u8]| {
        let mut query = RunsQuery::all();
        change(&mut query);
        let found: Vec<_> = tape.runs(&query).unwrap().into_iter().map(|run| run.id).collect();
        assert_eq!(found, expected.iter().map(|no| run_no(*no)).collect::<Vec<_>>(), "{query:?}");
    };
    check(&|_| {}, &[5, 4, 3, 2, 1]);
    check(&|query| query.limit = Some(2), &[5, 4]);
    check(&|query| query.before = Some(run_no(4)), &[3, 2, 1]);
    check(&|query| query.since_us = Some(30), &[5, 4, 3]);
    check(&|query| query.until_us = Some(30), &[2, 1]);
    check(&|query| query.parent = Some(run_no(1)), &[]);
    check(&|query| query.tool = Some("spy".into()), &[]);
    let by_status = [
        (RunStatus::Ended, 1),
        (RunStatus::Failed, 2),
        (RunStatus::Cancelled, 3),
        (RunStatus::Paused, 4),
        (RunStatus::Running, 5),
    ];
    for (status, no) in by_status {
        check(&|query| query.status = Some(status), &[no]);
        assert_eq!(status.to_string().parse(), Ok(status));
    }
    assert_eq!(tape.find("last").unwrap(), [run_no(5)]);
    assert_eq!(tape.find(&run_no(3).to_string()).unwrap(), [run_no(3)]);
    assert_eq!(tape.find("00000000-0003").unwrap(), [run_no(3)]);
    assert_eq!(tape.find("0000").unwrap().len(), 5);
    assert!(tape.find("no*").unwrap().is_empty());
}

#[tokio::test]
async fn lines_are_taken_in_once_and_only_where_they_fit() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("a.db")).unwrap();
    append(&tape, 1, 0, vec![said("a"), started(1), said("b")]).await.unwrap();
    append(&tape, 2, 0, vec![said("c")]).await.unwrap();
    let mut lines = tape.lines(run_no(1), 0, 10).unwrap();
    lines.extend(tape.lines(run_no(2), 0, 10).unwrap());
    let other = SqliteTape::open(folder.path().join("b.db")).unwrap();
    assert_eq!(other.import(lines[..2].to_vec()), Ok(2), "a first page");
    assert_eq!(other.import(lines.clone()), Ok(2), "what is here already is not taken twice");
    for no in [1, 2] {
        assert_eq!(other.head(run_no(no)).unwrap(), tape.head(run_no(no)).unwrap());
    }
    let summaries = other.runs(&RunsQuery::all()).unwrap();
    assert_eq!((summaries[1].in_doubt, summaries[1].status), (1, RunStatus::Imported));
    let gap = SqliteTape::open(folder.path().join("c.db")).unwrap();
    let missing = gap.import(lines[1..].to_vec()).unwrap_err();
    assert_eq!(missing, TapeError::Conflict { expected: 1, found: 0 });
    assert!(gap.runs(&RunsQuery::all()).unwrap().is_empty(), "all or none");
    append(&gap, 1, 0, vec![said("another beginning")]).await.unwrap();
    let differs = gap.import(lines[..1].to_vec()).unwrap_err();
    assert_eq!(differs, TapeError::Conflict { expected: 0, found: 1 });
}

#[tokio::test]
async fn what_is_erased_is_gone_from_the_file_and_leaves_its_head() {
    for what in [Erase::Payloads, Erase::Records] {
        let folder = scratch();
        let path = folder.path().join("tape.db");
        let tape = SqliteTape::open(&path).unwrap();
        append(&tape, 1, 0, vec![said("a word: xylophone")]).await.unwrap();
        append(&tape, 2, 0, vec![said("kept")]).await.unwrap();
        let locked = tape.erase(run_no(1), what).unwrap_err();
        assert!(matches!(locked, TapeError::Locked { .. }), "it is being written");
        append(&tape, 1, 1, vec![ended("ended")]).await.unwrap();
        let head = tape.head(run_no(1)).unwrap();
        assert_eq!(tape.erase(run_no(1), what).unwrap(), Some(head));
        assert_eq!(tape.erase(run_no(9), what).unwrap(), None);
        assert_eq!(tape.head(run_no(1)).unwrap(), head, "the tombstone has it");
        let mut erased = RunsQuery::all();
        erased.status = Some(RunStatus::Erased);
        assert_eq!(tape.runs(&erased).unwrap()[0].len, 2);
        let read = tape.read(run_no(1), 0, 10).await;
        match what {
            Erase::Payloads => assert_eq!(read.unwrap_err(), TapeError::Erased { seq: 0 }),
            Erase::Records => assert!(read.unwrap().is_empty()),
        }
        let late = append(&tape, 1, 2, vec![said("more")]).await.unwrap_err();
        assert!(matches!(late, TapeError::Conflict { .. }), "{late}");
        assert_eq!(tape.read(run_no(2), 0, 10).await.unwrap().len(), 1);
        drop(tape);
        for entry in fs::read_dir(folder.path()).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(9).any(|word| word == b"xylophone"), "{what:?}");
        }
    }
}

#[tokio::test]
async fn every_released_version_of_a_tape_is_opened_and_goes_on() {
    let tapes = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tapes");
    let latest = tapes.join("v1.db");
    if !latest.exists() {
        make(&latest).await;
        panic!("`{}` was missing and has been made: look at it and commit it", latest.display());
    }
    let mut opened = 0;
    for entry in fs::read_dir(&tapes).unwrap() {
        let old = entry.unwrap().path();
        if old.extension().is_none_or(|it| it != "db") {
            continue;
        }
        let folder = scratch();
        let path = folder.path().join("tape.db");
        fs::copy(&old, &path).unwrap();
        let tape = SqliteTape::open(&path).unwrap_or_else(|err| panic!("{}: {err}", old.display()));
        let summary = tape.runs(&RunsQuery::all()).unwrap().remove(0);
        assert_eq!((summary.calls, summary.tools.as_slice()), (2, &["spy".to_owned()][..]));
        let records = tape.read(summary.id, 0, 1000).await.unwrap();
        assert_eq!(records.len() as u64, summary.len);
        let mut events = vec![said("it goes on")];
        let append = tooltape::Append::new(summary.id, summary.len, 7, &mut events);
        tape.append(append).durable().await.unwrap();
        opened += 1;
    }
    assert!(opened >= 1, "`{}` has a tape of each version", tapes.display());
}

async fn make(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let tape = SqliteTape::open(path).unwrap();
    let toolbox = Toolbox::new([Spy::new("spy", Access::Write).tool()]).unwrap();
    let run = Run::new(&toolbox).policy(Rules::deny_all().allow("spy")).tape(tape.clone());
    let calls = ["c1", "c2"].map(|id| Proposal::new(id, "spy", "{}")).to_vec();
    run.batch(calls).await.unwrap();
}

#[tokio::test]
async fn the_calls_in_doubt_of_nested_runs_are_those_of_the_run_above() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    let memory = MemoryTape::default();
    let opened = |parent: Option<u8>| Event::RunStarted {
        seed: "00".into(),
        thread: None,
        depth: 0,
        parent: parent.map(|no| Box::new(Parent { run: run_no(no), call: CallNo(1) })),
        canon: "jcs-int/1",
        note: None,
        fork: None,
        policy: None,
        rights: None,
        label: None,
    };
    // The last one is of nobody here, and the fourth says that it started itself.
    let runs = [(1, None, 2), (2, Some(1), 1), (3, Some(2), 1), (4, Some(4), 1), (5, Some(9), 1)];
    for (no, parent, calls) in runs {
        let events = || {
            let calls = (1..=calls).map(started);
            std::iter::once(opened(parent)).chain(calls).collect::<Vec<_>>()
        };
        append(&tape, no, 0, events()).await.unwrap();
        let mut events = events();
        let append = tooltape::Append::new(run_no(no), 0, 7, &mut events);
        memory.append(append).accepted().unwrap();
    }
    let expected = [(1, 1), (1, 2), (2, 1), (3, 1)];
    let expected = expected.map(|(no, call)| InDoubt { run: run_no(no), call: CallNo(call) });
    assert_eq!(tape.in_doubt(run_no(1)).unwrap(), expected);
    assert_eq!(memory.in_doubt(run_no(1)), expected);
    assert_eq!(tape.in_doubt(run_no(4)).unwrap().len(), 1);
    assert_eq!(memory.in_doubt(run_no(4)).len(), 1);
    assert_eq!(tape.in_doubt(run_no(9)).unwrap(), []);
}
