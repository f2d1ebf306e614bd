//! The tape in a SQLite file among others who read, lock, link and remove what is beside it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tooltape::{Append, Erase, Event, RunId, RunStatus, RunsQuery, SqliteTape, Tape, TapeError};

use crate::sqlite::{append, run_no, said, scratch, started};

fn ended(status: &'static str) -> Event {
    Event::RunEnded { status, stop: "done".into(), answer: None }
}

fn noted(note: serde_json::Value) -> Event {
    Event::RunStarted {
        seed: "00".into(),
        thread: None,
        depth: 0,
        parent: None,
        canon: "jcs-int/1",
        note: Some(Arc::new(note)),
        fork: None,
        policy: None,
        rights: None,
        label: None,
    }
}

fn other(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

#[tokio::test]
async fn a_record_may_say_anything_of_numbers_that_look_like_its_place() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    let note = json!({"run": run_no(9).to_string(), "seq": 20});
    append(&tape, 1, 0, vec![said("a"), said("b"), noted(note)]).await.unwrap();
    assert_eq!(tape.read(run_no(1), 0, 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_tape_is_the_same_by_whatever_name_it_is_called() {
    let folder = scratch();
    let (path, link) = (folder.path().join("tape.db"), folder.path().join("link.db"));
    let first = SqliteTape::open(&path).unwrap();
    append(&first, 1, 0, vec![said("a")]).await.unwrap();
    symlink(&path, &link).unwrap();
    let second = SqliteTape::open(&link).unwrap();
    assert!(second.recovered().is_clean());
    let refused = append(&second, 1, 1, vec![said("b")]).await.unwrap_err();
    assert!(matches!(refused, TapeError::Locked { .. }), "{refused}");
    let reader = SqliteTape::open_read_only(&link).unwrap();
    assert_eq!(reader.runs(&RunsQuery::all()).unwrap()[0].status, RunStatus::Running);
    symlink(folder.path().join("nowhere"), folder.path().join("lost.db")).unwrap();
    let lost = SqliteTape::open(folder.path().join("lost.db")).err().unwrap();
    assert!(lost.to_string().contains("lost.db"), "{lost}");
}

#[tokio::test]
async fn a_writer_outlives_the_file_beside_the_tape() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    let first = SqliteTape::open(&path).unwrap();
    append(&first, 1, 0, vec![said("a")]).await.unwrap();
    fs::remove_file(folder.path().join("tape.db-writer1")).unwrap();
    let second = SqliteTape::open(&path).unwrap();
    let refused = append(&second, 1, 1, vec![said("b")]).await.unwrap_err();
    assert!(matches!(refused, TapeError::Locked { .. }), "{refused}");
    append(&first, 1, 1, vec![said("b")]).await.expect("it is still the writer");
    drop(first);
    append(&second, 1, 2, vec![said("c")]).await.expect("whoever is gone holds nothing");
}

#[tokio::test]
async fn another_process_is_the_writer_for_as_long_as_it_has_the_tape_open() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    let tape = SqliteTape::open(&path).unwrap();
    append(&tape, 1, 0, vec![said("a")]).await.unwrap();
    // Somebody with the tape open, in whose name the run is then written.
    let file = fs::File::open(&path).unwrap();
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(file).spawn().expect("`cat` is there");
    let pid = child.id();
    let host = "(SELECT host FROM writers LIMIT 1)";
    let theirs = format!(
        "INSERT INTO writers (no, pid, host, since_us, durable) VALUES (77, {pid}, {host}, 0, 1);
         UPDATE runs SET writer = 77"
    );
    other(&path).execute_batch(&theirs).unwrap();
    let second = SqliteTape::open(&path).unwrap();
    let refused = append(&second, 1, 1, vec![said("b")]).await.unwrap_err();
    assert!(refused.to_string().contains(&format!("process {pid} ")), "{refused}");
    drop(child.stdin.take());
    child.wait().unwrap();
    append(&second, 1, 1, vec![said("b")]).await.expect("it is gone");
}

#[tokio::test]
async fn whoever_finds_their_place_taken_loses_that_run_and_no_other() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    let tape = SqliteTape::open(&path).unwrap();
    append(&tape, 1, 0, vec![said("a")]).await.unwrap();
    append(&tape, 2, 0, vec![said("a")]).await.unwrap();
    let theirs = "INSERT INTO events (id, at_us, type, body, content, hash)
                  SELECT id + 1, at_us, type, body, content, hash FROM events WHERE run = 1";
    assert_eq!(other(&path).execute(theirs, []).unwrap(), 1);
    let (mut one, mut two) = (vec![said("b")], vec![said("b")]);
    let acks = [
        tape.append(Append::new(run_no(2), 1, 7, &mut two)),
        tape.append(Append::new(run_no(1), 1, 7, &mut one)),
    ];
    let [two, one] = acks;
    assert_eq!(one.durable().await, Err(TapeError::Conflict { expected: 1, found: 2 }));
    assert_eq!(two.durable().await, Ok(()));
    append(&tape, 2, 2, vec![said("c")]).await.expect("the tape goes on");
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_waited_for_and_poisons_nothing() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    let options = SqliteTape::options().busy_wait(Duration::from_millis(5));
    let tape = options.open(&path).unwrap();
    append(&tape, 1, 0, vec![said("a")]).await.unwrap();
    let other = other(&path);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = append(&tape, 1, 1, vec![said("b")]).await.unwrap_err();
    assert!(matches!(refused, TapeError::Locked { .. }), "{refused}");
    other.execute_batch("COMMIT").unwrap();
    append(&tape, 1, 1, vec![said("b")]).await.expect("nothing of it was written");
    assert_eq!(tape.head(run_no(1)).unwrap().len, 2);
}

#[tokio::test]
async fn nobody_waits_for_a_reader_to_close_or_to_erase() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    // Whoever waited for the reader would wait for as long as the test may take.
    let options = SqliteTape::options().busy_wait(Duration::from_secs(3600));
    let tape = options.open(&path).unwrap();
    append(&tape, 1, 0, vec![said("a"), ended("ended")]).await.unwrap();
    let reader = other(&path);
    reader.execute_batch("BEGIN").unwrap();
    let _: i64 = reader.query_row("SELECT count(*) FROM runs", [], |row| row.get(0)).unwrap();
    tape.erase(run_no(1), Erase::Records).unwrap();
    append(&tape, 2, 0, vec![said("b")]).await.expect("the tape goes on");
    drop(tape);
    drop(reader);
    assert_eq!(SqliteTape::open(&path).unwrap().runs(&RunsQuery::all()).unwrap().len(), 2);
}

#[tokio::test]
async fn files_beside_the_tape_are_new_and_private() {
    let folder = scratch();
    let (path, victim) = (folder.path().join("tape.db"), folder.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, folder.path().join("tape.db-writer1")).unwrap();
    let tape = SqliteTape::open(&path).unwrap();
    append(&tape, 1, 0, vec![said("a")]).await.unwrap();
    for name in ["tape.db", "tape.db-wal", "tape.db-shm", "tape.db-writer2"] {
        let found = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
        assert_eq!(found.nlink(), 1);
    }
    drop(tape);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    drop(SqliteTape::open(&path).unwrap());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[tokio::test]
async fn a_closed_tape_is_read_where_nothing_can_be_made_beside_it() {
    let folder = scratch();
    let path = folder.path().join("a tape %3f?.db");
    append(&SqliteTape::open(&path).unwrap(), 1, 0, vec![said("a")]).await.unwrap();
    // SQLite follows no link here, so that it cannot have the file that it wants.
    symlink("nowhere", folder.path().join("a tape %3f?.db-shm")).unwrap();
    let tape = SqliteTape::open_read_only(&path).unwrap();
    assert_eq!(tape.read(run_no(1), 0, 10).await.unwrap().len(), 1);
    assert_eq!(tape.runs(&RunsQuery::all()).unwrap()[0].status, RunStatus::Crashed);
    fs::write(folder.path().join("a tape %3f?.db-wal"), "there is more").unwrap();
    let hidden = SqliteTape::open_read_only(&path).err();
    assert!(hidden.is_some(), "what is in the log is not passed over");
}

#[tokio::test]
async fn a_run_that_is_taken_up_again_at_once_keeps_its_last_summary() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    let mut acks = Vec::new();
    for round in 0..20 {
        for no in 1..=8 {
            let resumed = Event::RunResumed { in_doubt: Vec::new(), policy: None, rights: None };
            let mut events = vec![resumed, started(round), ended("failed")];
            acks.push(tape.append(Append::new(run_no(no), round * 3, 7, &mut events)));
        }
    }
    for no in 1..=8 {
        let mut events =
            vec![Event::RunResumed { in_doubt: Vec::new(), policy: None, rights: None }];
        acks.push(tape.append(Append::new(run_no(no), 60, 7, &mut events)));
    }
    for ack in acks {
        ack.durable().await.unwrap();
    }
    for run in tape.runs(&RunsQuery::all()).unwrap() {
        assert_eq!((run.status, run.in_doubt), (RunStatus::Running, 20));
    }
}

#[tokio::test]
async fn every_artifact_that_a_record_speaks_of_is_counted() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    let hash = |digit: &str| digit.repeat(64);
    let (one, two, three) = (hash("1"), hash("2"), hash("a"));
    let nested = json!({ "deep": [format!("{{\"uri\":\"artifact:{two}\"}}")] });
    let said = said(&format!("see artifact:{one}, artifact:12 and artifact:é"));
    append(&tape, 1, 0, vec![said, noted(nested), ended("ended")]).await.unwrap();
    append(&tape, 2, 0, vec![crate::sqlite::said(&format!("artifact:{three}"))]).await.unwrap();
    let expected = [&one, &two, &three].map(|hash| hash.parse().unwrap());
    assert_eq!(tape.artifacts().unwrap(), BTreeSet::from(expected));
    tape.erase(run_no(1), Erase::Payloads).unwrap();
    assert_eq!(tape.artifacts().unwrap(), BTreeSet::from([three.parse().unwrap()]));
}

#[tokio::test]
async fn what_is_left_of_an_erased_run_is_taken_in_elsewhere() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("a.db")).unwrap();
    let run: RunId = run_no(1);
    append(&tape, 1, 0, vec![said("a"), started(1), ended("ended")]).await.unwrap();
    let whole = tape.lines(run, 0, 10).unwrap();
    let head = tape.erase(run, Erase::Payloads).unwrap().unwrap();
    let lines = tape.lines(run, 0, 10).unwrap();
    assert_eq!(tape.import(lines.clone()), Ok(0), "it is here already");
    let elsewhere = SqliteTape::open(folder.path().join("b.db")).unwrap();
    assert_eq!(elsewhere.import(lines[..1].to_vec()), Ok(1), "a first page");
    assert_eq!(elsewhere.import(lines.clone()), Ok(2));
    assert_eq!(elsewhere.import(lines.clone()), Ok(0));
    assert_eq!(elsewhere.lines(run, 0, 10).unwrap(), lines);
    assert_eq!(elsewhere.head(run).unwrap(), head);
    assert_eq!(elsewhere.runs(&RunsQuery::all()).unwrap()[0].status, RunStatus::Erased);
    let known = SqliteTape::open(folder.path().join("c.db")).unwrap();
    assert_eq!(known.import(whole[..2].to_vec()), Ok(2));
    assert_eq!(known.import(lines[..2].to_vec()), Ok(0), "the hashes are the same");
    assert_eq!(known.import(lines), Err(TapeError::Erased { seq: 2 }));
    assert_eq!(known.import(whole), Ok(1), "and the rest is refused for no other reason");
}

#[tokio::test]
async fn a_run_from_elsewhere_that_did_not_end_is_not_taken_for_one_that_crashed_here() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("a.db")).unwrap();
    let paused = Event::RunPaused { why: "a question".into() };
    append(&tape, 1, 0, vec![said("a"), started(1)]).await.unwrap();
    append(&tape, 2, 0, vec![said("a"), paused]).await.unwrap();
    append(&tape, 3, 0, vec![said("a"), ended("failed")]).await.unwrap();
    let elsewhere = SqliteTape::open(folder.path().join("b.db")).unwrap();
    for no in 1..=3 {
        let lines = tape.lines(run_no(no), 0, 10).unwrap();
        assert_eq!(elsewhere.import(lines[..1].to_vec()), Ok(1), "a first page");
        assert_eq!(elsewhere.import(lines), Ok(1));
    }
    let status = |no: u8| {
        let mut query = RunsQuery::all();
        query.id = Some(run_no(no));
        elsewhere.runs(&query).unwrap()[0].status
    };
    let expected = [RunStatus::Imported, RunStatus::Imported, RunStatus::Failed];
    assert_eq!([1, 2, 3].map(status), expected);
    for none in [RunStatus::Crashed, RunStatus::Paused] {
        let mut query = RunsQuery::all();
        query.status = Some(none);
        assert!(elsewhere.runs(&query).unwrap().is_empty(), "{none}");
    }
    let resumed = Event::RunResumed { in_doubt: Vec::new(), policy: None, rights: None };
    append(&elsewhere, 1, 2, vec![resumed]).await.expect("whoever names it may go on with it");
    assert_eq!(status(1), RunStatus::Running);
    let lines = tape.lines(run_no(1), 0, 10).unwrap();
    assert_eq!(tape.import(lines), Ok(0));
    assert_eq!(tape.runs(&RunsQuery::all()).unwrap().len(), 3);
}
