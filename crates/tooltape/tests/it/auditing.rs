//! A tape in a SQLite file is held against itself: each column, each row, and the file.

use std::fs;

use serde_json::json;
use tempfile::TempDir;
use tooltape::{
    Agent, Audit, Damage, Erase, Line, Proposal, Run, RunId, RunsQuery, Script, SqliteTape,
    TapeWriter, Toolbox, Turn, Verify, builtin, read_tape,
};

use crate::sqlite::scratch;

/// A tape on which a run had calls, one refused, one with an artifact, and another run one call.
async fn taped() -> (TempDir, [RunId; 2]) {
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    let run = || Run::new(&toolbox).tape(tape.clone());
    let first = run().thread("t").note(json!({"b": 1.0, "a": [2]}));
    let long = json!({"text": "long ".repeat(20_000)}).to_string();
    let calls = [("hash", r#"{"text":"a"}"#), ("ekho", "{}"), ("echo", &long)];
    let calls = calls.map(|(name, args)| Proposal::new("c", name, args));
    let replies = first.batch(calls.to_vec()).await.unwrap();
    assert!(replies[1].is_error && !replies[2].artifacts.is_empty());
    let second = run();
    second.batch(vec![Proposal::new("c", "hash", r#"{"text":"b"}"#)]).await.unwrap();
    (folder, [first.id(), second.id()])
}

fn audit(folder: &TempDir) -> Audit {
    let tape = SqliteTape::open_read_only(folder.path().join("tape.db")).unwrap();
    tape.audit(|_, _, _| Ok(())).unwrap()
}

fn alter(folder: &TempDir, sql: &str) {
    let connection = rusqlite::Connection::open(folder.path().join("tape.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn what_a_column_says_that_its_record_does_not_is_damage_of_that_run_alone() {
    let (folder, [first, second]) = taped().await;
    assert_eq!(audit(&folder).damage, []);
    let sound = fs::read(folder.path().join("tape.db")).unwrap();
    let first_no = "(SELECT no FROM runs WHERE thread = 't')";
    let in_events =
        |set: &str| format!("UPDATE events SET {set} WHERE run = {first_no} AND seq = 4");
    let in_runs = |set: &str| format!("UPDATE runs SET {set} WHERE thread = 't'");
    let of_run = |sql: &str| format!("{sql} run = {first_no}");
    let altered = [
        (in_events("type = 'run.ended'"), 4, "`type` says `run.ended`"),
        (in_events("call = 77"), 4, "`call` says `77`"),
        (in_events("tool = 'rm'"), 4, "`tool` says `rm`"),
        (in_events("key = 'settled:9'"), 4, "`key` says `settled:9`"),
        (in_events("at_us = 1"), 4, "`at_us` says `1`"),
        (in_runs("status = 'ended'"), 11, "`status` says `ended`"),
        (in_runs("started_us = 1"), 11, "`started_us` says `1`"),
        (in_runs("parent = id"), 11, "`parent` says"),
        (in_runs("note = '{}'"), 11, "`note` says `{}`"),
        (in_runs("calls = 2"), 11, "`calls` says `2`, and what was recorded says `3`"),
        (in_runs("errors = 0"), 11, "`errors` says `0`, and what was recorded says `1`"),
        (in_runs("open = 1"), 11, "`open` says `1`, and what was recorded says `0`"),
        (in_runs("status = 'nonsense'"), 11, "`status` says `nonsense`"),
        (of_run("DELETE FROM tools WHERE tool = 'hash' AND"), 11, "speak of `hash`, and `tools`"),
        (of_run("DELETE FROM artifacts WHERE"), 11, "and `artifacts` does not"),
        (of_run("DELETE FROM events WHERE seq > 8 AND"), 9, "and its records do not"),
        (of_run("DELETE FROM events WHERE"), 0, "it has no records"),
        (of_run("DELETE FROM events WHERE seq = 3 AND"), 3, "before record 4 is missing"),
    ];
    for (sql, seq, why) in altered {
        fs::write(folder.path().join("tape.db"), &sound).unwrap();
        alter(&folder, &sql);
        let Audit { damage, verified, .. } = audit(&folder);
        let [Damage { run, seq: found, why: told, .. }] = &damage[..] else {
            panic!("{sql}: {damage:#?}")
        };
        assert_eq!((*run, *found), (Some(first), seq), "{sql}: {told}");
        assert!(told.contains(why), "{sql}: {told}");
        assert!(verified.heads.contains_key(&second), "{sql}: the other run is checked");
    }
    fs::write(folder.path().join("tape.db"), &sound).unwrap();
    assert_eq!(audit(&folder).damage, []);
}

#[tokio::test]
async fn records_without_a_run_and_runs_without_an_id_are_damage_of_their_own() {
    let (folder, [first, second]) = taped().await;
    let sound = fs::read(folder.path().join("tape.db")).unwrap();
    alter(&folder, "DELETE FROM runs WHERE thread = 't'");
    let Audit { damage, verified, .. } = audit(&folder);
    let orphan = damage.iter().find(|it| it.run == Some(first)).unwrap();
    assert!(orphan.why.contains("`events` has 11 records of it"), "{orphan}");
    assert!(damage.iter().any(|it| it.why.starts_with("`tools` speaks of run number")));
    assert!(damage.iter().any(|it| it.why.starts_with("`artifacts` speaks of run number")));
    assert_eq!(verified.heads.keys().collect::<Vec<_>>(), [&second]);
    fs::write(folder.path().join("tape.db"), &sound).unwrap();
    alter(&folder, "UPDATE runs SET id = 'nobody' WHERE thread = 't'");
    let Audit { damage, verified, .. } = audit(&folder);
    assert_eq!(damage.len(), 1, "{damage:#?}");
    assert!(damage[0].to_string().ends_with("has the id `nobody`, which is none"), "{}", damage[0]);
    assert_eq!(verified.runs, 1);
}

#[tokio::test]
async fn an_index_that_lacks_what_its_table_has_is_damage_of_the_file() {
    let (folder, _) = taped().await;
    // The index is made without its keys, and said to have them.
    alter(
        &folder,
        "CREATE TABLE old AS SELECT sql FROM sqlite_schema WHERE name = 'events_by_key';
         DROP INDEX events_by_key;
         CREATE UNIQUE INDEX events_by_key ON events (id >> 32, key) WHERE key IS NULL;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = (SELECT sql FROM old) WHERE name = 'events_by_key';
         PRAGMA writable_schema = OFF;
         DROP TABLE old;",
    );
    let Audit { damage, verified, .. } = audit(&folder);
    assert!(damage[0].why.starts_with("SQLite says of the file: "), "{damage:#?}");
    assert!(damage.iter().all(|it| it.run.is_none()), "{damage:#?}");
    assert_eq!(verified.runs, 2, "what can be read is still checked");
}

#[tokio::test]
async fn erased_imported_and_resumed_runs_are_no_damage() {
    let (folder, [first, second]) = taped().await;
    let path = folder.path().join("tape.db");
    let tape = SqliteTape::open(&path).unwrap();
    let lines = tape.lines(second, 0, 100).unwrap();
    let elsewhere = SqliteTape::open(folder.path().join("other.db")).unwrap();
    elsewhere.import(lines[..3].to_vec()).unwrap();
    elsewhere.import(lines).unwrap();
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    let run = || Run::new(&toolbox).tape(tape.clone());
    let resumed = run().resume(second).await.unwrap();
    resumed.batch(vec![Proposal::new("c", "hash", r#"{"text":"c"}"#)]).await.unwrap();
    let agent = Agent::new(Script::new(["a", "b"].map(Turn::answer)), run());
    agent.ask("one").await.unwrap();
    agent.ask("two").await.unwrap();
    assert_eq!(tape.audit(|_, _, _| Ok(())).unwrap().damage, []);
    let erased = tape.erase(first, Erase::Payloads).unwrap();
    let gone = agent.run().id();
    drop((agent, resumed));
    let tape = reopened(tape, &path);
    tape.erase(gone, Erase::Records).unwrap();
    elsewhere.import(tape.lines(first, 0, 100).unwrap()).unwrap();
    for tape in [&tape, &elsewhere] {
        let Audit { damage, verified, .. } = tape.audit(|_, _, _| Ok(())).unwrap();
        assert_eq!(damage, []);
        assert_eq!((verified.erased, verified.heads.get(&first)), (11, erased.as_ref()));
    }
    let tombstones = tape.audit_run(gone, |_, _, _| Ok(())).unwrap().tombstones;
    assert_eq!(tombstones.into_keys().collect::<Vec<_>>(), [gone]);
}

/// The tape as somebody else finds it.
fn reopened(tape: SqliteTape, path: &std::path::Path) -> SqliteTape {
    drop(tape);
    SqliteTape::open(path).unwrap()
}

#[tokio::test]
async fn what_is_looked_for_in_each_line_may_be_missed() {
    let (folder, [first, _]) = taped().await;
    let tape = SqliteTape::open_read_only(folder.path().join("tape.db")).unwrap();
    let refuse = |run: RunId, len: u64, _: &Line| match (run == first, len) {
        (true, 3) => Err("not this one".to_owned()),
        _ => Ok(()),
    };
    let damage = tape.audit(refuse).unwrap().damage;
    assert_eq!(damage.len(), 1);
    let Damage { run, seq, why, .. } = &damage[0];
    assert_eq!((*run, *seq, why.as_str()), (Some(first), 2, "not this one"));
}

#[tokio::test]
async fn an_exported_tape_of_the_first_version_is_read_and_written_byte_for_byte() {
    let tapes = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tapes");
    let old = tapes.join("v1.tape.jsonl");
    if !old.exists() {
        let folder = scratch();
        fs::copy(tapes.join("v1.db"), folder.path().join("tape.db")).unwrap();
        fs::write(&old, exported(&SqliteTape::open(folder.path().join("tape.db")).unwrap()))
            .unwrap();
        panic!("`{}` was missing and has been made: look at it and commit it", old.display());
    }
    let file = fs::read(&old).unwrap();
    let (mut lines, mut verify) = (Vec::new(), Verify::default());
    let read = read_tape(&file[..], |line| {
        lines.push(line);
        Ok(())
    });
    let read = read.unwrap();
    assert_eq!((read.verified.runs, read.verified.calls, read.torn), (1, 2, None));
    lines.iter().for_each(|line| verify.line(line).unwrap());
    verify.end(&[(lines[0].place().unwrap().0, read.heads[0].head.head())]).unwrap();
    let folder = scratch();
    let tape = SqliteTape::open(folder.path().join("tape.db")).unwrap();
    assert_eq!(tape.import(lines.clone()).unwrap(), lines.len());
    assert_eq!(tape.audit(|_, _, _| Ok(())).unwrap().damage, []);
    assert_eq!(exported(&tape), file);
}

fn exported(tape: &SqliteTape) -> Vec<u8> {
    let mut writer = TapeWriter::new(Vec::new()).unwrap();
    for run in tape.runs(&RunsQuery::all()).unwrap() {
        tape.lines(run.id, 0, 10_000).unwrap().iter().for_each(|line| writer.line(line).unwrap());
    }
    writer.end(|_| {}).unwrap()
}
