//! The tape in a SQLite file: what is opened, who writes, and what is found again.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use tempfile::TempDir;
use tooltape::testing::Spy;
use tooltape::{
    Access, Append, CallNo, Event, Head, Proposal, Rules, Run, RunId, RunStatus, RunsQuery,
    SqliteTape, Tape, TapeError, Toolbox,
};

pub(crate) fn scratch() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn said(text: &str) -> Event {
    Event::Asked { text: text.into() }
}

pub(crate) fn started(call: u64) -> Event {
    Event::Started { call: CallNo(call), attempt: 1, clock_us: None }
}

pub(crate) fn run_no(no: u8) -> RunId {
    RunId::new(u64::from(no), [no; 10])
}

pub(crate) async fn append(
    tape: &SqliteTape,
    no: u8,
    after: u64,
    mut events: Vec<Event>,
) -> Result<(), TapeError> {
    tape.append(Append::new(run_no(no), after, 7, &mut events)).durable().await
}

/// Copies a tape as a machine leaves it whose power is cut: nobody has it open.
pub(crate) fn cut(from: &Path, to: &Path) -> PathBuf {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let _ = fs::remove_file(to.join("tape.db-shm"));
    to.join("tape.db")
}

#[tokio::test]
async fn a_run_outlives_the_handle_that_wrote_it() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    let tape = SqliteTape::open(&path).unwrap();
    append(&tape, 1, 0, vec![said("a"), started(1)]).await.unwrap();
    let head = tape.head(run_no(1)).unwrap();
    drop(tape);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["tape.db"], "a closed tape is one file");
    let tape = SqliteTape::open(&path).unwrap();
    assert!(tape.recovered().is_clean());
    assert_eq!(tape.head(run_no(1)).unwrap(), head);
    let records = tape.read(run_no(1), 0, 10).await.unwrap();
    let found = records.iter().try_fold(Head::empty(), Head::then).unwrap();
    assert_eq!(found, head, "what is read again leads to the same head");
    append(&tape, 1, 2, vec![said("b")]).await.expect("the run goes on");
    let again = append(&tape, 1, 3, vec![started(1)]).await.unwrap_err();
    assert_eq!(again.to_string(), "`started:1:1` is on the tape already");
}

#[tokio::test]
async fn a_key_of_an_earlier_life_is_taken_before_the_run_is_known() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    append(&SqliteTape::open(&path).unwrap(), 1, 0, vec![started(1)]).await.unwrap();
    let tape = SqliteTape::open(&path).unwrap();
    let again = append(&tape, 1, 1, vec![started(1)]).await.unwrap_err();
    assert_eq!(again.to_string(), "`started:1:1` is on the tape already");
    append(&tape, 1, 1, vec![started(2)]).await.expect("whoever was refused may try again");
    let empty = SqliteTape::open(folder.path().join("b.db")).unwrap();
    let late = append(&empty, 1, 3, vec![said("")]);
    assert_eq!(late.await, Err(TapeError::Conflict { expected: 3, found: 0 }));
}

#[tokio::test]
async fn a_read_sees_what_was_accepted() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    for seq in 0..100 {
        let mut events = vec![said("x")];
        let ack = tape.append(Append::new(run_no(1), seq, 7, &mut events));
        ack.accepted().unwrap();
        assert!(events.is_empty());
        let records = tape.read(run_no(1), seq, 10).await.unwrap();
        assert_eq!(records.len(), 1, "record {seq} was accepted");
    }
}

#[tokio::test]
async fn what_is_no_tape_is_left_alone_and_named() {
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let check = |name: &str, expected: Expect| {
        let before = fs::read(at(name)).ok();
        let errors = [SqliteTape::open(at(name)).err(), SqliteTape::open_read_only(at(name)).err()];
        let shown = errors.map(|err| err.map_or("opened".to_owned(), |err| err.to_string()));
        assert_eq!(shown[0], shown[1], "whether it is opened to be read or written");
        let shown = shown[0].replace(folder.path().to_str().unwrap(), "…");
        expected.assert_eq(&shown);
        assert_eq!(fs::read(at(name)).ok(), before, "`{name}` was changed");
    };
    fs::write(at("text"), "hello, this is a text of some length").unwrap();
    check("text", expect!["this is no tape: it is no SQLite database; nothing was changed"]);
    fs::write(at("lines"), "{\"format\":\"tooltape.tape/1\"}\n").unwrap();
    check(
        "lines",
        expect!["this is no tape: it is text, perhaps a tape to import; nothing was changed"],
    );
    let other = rusqlite::Connection::open(at("other")).unwrap();
    other.execute_batch("CREATE TABLE notes (text)").unwrap();
    check("other", expect!["this is no tape: it has a table `notes`; nothing was changed"]);
    other.execute_batch("PRAGMA application_id = 252006673").unwrap();
    check(
        "other",
        expect!["this is no tape: its application id is `0x0f055111`; nothing was changed"],
    );
    fs::create_dir(at("folder")).unwrap();
    check("folder", expect!["this is no tape: `…/folder` is a folder"]);
    check(
        "none/tape.db",
        expect!["the tape cannot be used: there is no folder `…/none` for `…/none/tape.db`"],
    );
    drop(SqliteTape::open(at("newer")).unwrap());
    let newer = rusqlite::Connection::open(at("newer")).unwrap();
    newer.execute_batch("PRAGMA user_version = 7; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    check(
        "newer",
        expect!["the tape has version 7, and this program reads up to 1: use a newer one"],
    );
    let missing = SqliteTape::open_read_only(at("gone")).err().unwrap();
    assert!(missing.to_string().contains("there is no file"), "{missing}");
    fs::write(at("empty"), "").unwrap();
    let empty = SqliteTape::open_read_only(at("empty")).err().unwrap();
    assert!(empty.to_string().contains("it is empty"), "{empty}");
    SqliteTape::open(at("empty")).expect("an empty file becomes a tape");
}

#[tokio::test]
async fn a_tape_that_may_only_be_read_is_read_and_refuses_the_rest() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    append(&SqliteTape::open(&path).unwrap(), 1, 0, vec![said("a")]).await.unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    assert_eq!(SqliteTape::open(&path).err(), Some(TapeError::ReadOnly));
    let tape = SqliteTape::open_read_only(&path).unwrap();
    assert_eq!(tape.read(run_no(1), 0, 10).await.unwrap().len(), 1);
    assert_eq!(append(&tape, 1, 1, vec![said("b")]).await, Err(TapeError::ReadOnly));
    assert_eq!(tape.import(Vec::new()), Err(TapeError::ReadOnly));
}

#[tokio::test]
async fn a_run_has_one_writer_and_the_second_learns_who() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    let (first, second) = (SqliteTape::open(&path).unwrap(), SqliteTape::open(&path).unwrap());
    append(&first, 1, 0, vec![said("a")]).await.unwrap();
    let refused = append(&second, 1, 1, vec![said("b")]).await.unwrap_err();
    let holder = match &refused {
        TapeError::Locked { holder } => holder.as_str(),
        other => panic!("{other}"),
    };
    assert!(holder.starts_with(&format!("process {} on `", std::process::id())), "{holder}");
    append(&second, 2, 0, vec![said("c")]).await.expect("another run has another writer");
    let reader = SqliteTape::open_read_only(&path).unwrap();
    assert_eq!(
        reader.read(run_no(2), 0, 10).await.unwrap().len(),
        1,
        "readers are never locked out"
    );
    assert_eq!(reader.runs(&RunsQuery::all()).unwrap()[0].status, RunStatus::Running);
    drop(first);
    append(&second, 1, 1, vec![said("b")]).await.expect("whoever is gone holds nothing");
}

#[tokio::test]
async fn a_run_that_ended_is_let_go() {
    let folder = scratch();
    let path = folder.path().join("tape.db");
    let (first, second) = (SqliteTape::open(&path).unwrap(), SqliteTape::open(&path).unwrap());
    let ended = Event::RunEnded { status: "ended", stop: "done".into(), answer: None };
    append(&first, 1, 0, vec![said("a"), ended]).await.unwrap();
    append(&second, 1, 2, vec![said("b")]).await.expect("nobody holds what has ended");
    let refused = append(&first, 1, 3, vec![said("c")]).await.unwrap_err();
    assert!(matches!(refused, TapeError::Locked { .. }), "{refused}");
}

#[tokio::test]
async fn a_writer_that_died_is_reported_once_and_its_runs_have_crashed() {
    let (folder, after) = (scratch(), scratch());
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    append(&tape, 1, 0, vec![started(1)]).await.unwrap();
    let path = cut(folder.path(), after.path());
    let found = SqliteTape::open(&path).unwrap();
    let dead = &found.recovered().dead;
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].pid, dead[0].runs.as_slice()), (std::process::id(), &[run_no(1)][..]));
    assert_eq!(found.recovered().torn, None);
    let summary = &found.runs(&RunsQuery::all()).unwrap()[0];
    assert_eq!((summary.status, summary.in_doubt), (RunStatus::Crashed, 1));
    let mut crashed = RunsQuery::all();
    crashed.status = Some(RunStatus::Crashed);
    assert_eq!(found.runs(&crashed).unwrap().len(), 1);
    append(&found, 1, 1, vec![said("on")]).await.expect("the run is taken over");
    assert_eq!(found.runs(&crashed).unwrap().len(), 0);
    drop(found);
    assert!(SqliteTape::open(&path).unwrap().recovered().is_clean());
}

#[tokio::test]
async fn a_torn_tail_is_cut_and_reported_and_other_damage_is_corrupt() {
    let (folder, after) = (scratch(), scratch());
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    for seq in 0..5 {
        append(&tape, 1, seq, vec![said("a text that is long enough")]).await.unwrap();
    }
    let path = cut(folder.path(), after.path());
    let mut log = fs::read(after.path().join("tape.db-wal")).unwrap();
    let frame = 4096 + 24;
    let check = |log: &[u8]| {
        let (one, two) = (scratch(), after.path());
        let path = cut(two, one.path());
        fs::write(one.path().join("tape.db-wal"), log).unwrap();
        let opened = SqliteTape::open(path);
        opened.map(|tape| (tape.recovered().torn, tape.head(run_no(1)).unwrap().len))
    };
    assert_eq!(check(&log).unwrap(), (None, 5));
    let blank = log.iter().rev().take_while(|byte| **byte == 0).count();
    assert!(blank > frame, "the log is longer than what is in it");
    let end = 32 + (log.len() - 32 - blank).next_multiple_of(frame);
    let mut flipped = log.clone();
    flipped[end - 50] ^= 1;
    assert_eq!(check(&flipped).unwrap().0.unwrap().frames, 2, "a commit has two pages");
    flipped[end..].fill(0xff);
    assert_eq!(check(&flipped).unwrap().0.unwrap().frames, 2, "what is behind it is passed over");
    log.truncate(end);
    assert_eq!(check(&log).unwrap(), (None, 5));
    let (torn, len) = check(&log[..end - 100]).unwrap();
    assert_eq!((torn.unwrap().frames, len), (2, 4), "the last commit was cut off");
    let (torn, len) = check(&log[..end - 2 * frame]).unwrap();
    assert_eq!((torn, len), (None, 4), "nobody can see what was never there");
    for at in [4, 60, 32 + frame + 100, end - 3 * frame] {
        let mut flipped = log.clone();
        flipped[at] ^= 1;
        let err = check(&flipped).unwrap_err();
        assert!(matches!(err, TapeError::Corrupt { .. }), "bit flip at {at}: {err}");
    }
    drop(SqliteTape::open(path).unwrap());
}

#[tokio::test]
async fn damage_to_a_record_is_named_with_its_place() {
    for (damage, place) in [
        ("UPDATE events SET body = replace(body, 'two', 'six') WHERE seq = 1", 1),
        ("UPDATE events SET hash = zeroblob(32) WHERE seq = 2", 2),
        ("UPDATE events SET content = hash WHERE seq = 0", 0),
        ("DELETE FROM events WHERE seq = 1", 1),
        ("UPDATE events SET id = id + 1 WHERE seq = 2", 2),
        ("UPDATE events SET body = 'x' WHERE seq = 2", 2),
        ("UPDATE events SET body = body || ' ' WHERE seq = 2", 2),
        ("UPDATE runs SET id = '00000000-0009-7909-8909-090909090909'", 0),
    ] {
        let folder = scratch();
        let path = folder.path().join("tape.db");
        let tape = SqliteTape::open(&path).unwrap();
        append(&tape, 1, 0, vec![said("one"), said("two"), said("three")]).await.unwrap();
        drop(tape);
        let other = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(other.execute(damage, []).unwrap(), 1, "{damage}");
        drop(other);
        let tape = SqliteTape::open_read_only(&path).unwrap();
        let run = tape.find("last").unwrap()[0];
        match tape.read(run, 0, 10).await {
            Err(TapeError::Corrupt { seq, .. }) => assert_eq!(seq, place, "{damage}"),
            other => panic!("{damage}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_whole_run_is_recorded_and_summed_up() {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    let spy = Spy::new("spy", Access::Write);
    let toolbox = Toolbox::new([spy.tool()]).unwrap();
    let run = Run::new(&toolbox).policy(Rules::deny_all().allow("spy")).tape(tape.clone());
    let calls = ["spy", "spy", "other"].map(|name| Proposal::new(name, name, "{}")).to_vec();
    run.batch(calls).await.unwrap();
    let summary = tape.runs(&RunsQuery::all()).unwrap().remove(0);
    assert_eq!((summary.id, summary.status), (run.id(), RunStatus::Running));
    assert_eq!((summary.calls, summary.errors, summary.in_doubt), (3, 1, 0));
    assert_eq!(summary.tools, ["other", "spy"]);
    let lines = tape.lines(run.id(), 0, 1000).unwrap();
    assert_eq!(lines.len() as u64, summary.len);
    assert_eq!(lines.last().unwrap().hash(), summary.head);
    let settled = lines.iter().filter(|line| line.body().contains(r#""type":"call.settled""#));
    assert_eq!(settled.count(), 3);
}
