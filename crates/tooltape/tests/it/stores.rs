//! Stores: what tools keep from call to call, each read and write on tape.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tooltape::{
    Access, Ack, Append, BoxFuture, CallNo, Empty, Event, Executed, Fork, MemoryTape, Proposal,
    Record, Reply, Run, RunId, Store, Tape, TapeError, ToolError, Toolbox, Verdict, input, tool,
    tools,
};

#[input]
struct Entry {
    /// The key.
    key: String,
    /// The value.
    value: Option<i64>,
}

/// Keeps a number, and says what was there before.
#[tool(Write)]
async fn remember(entry: Entry, store: Store) -> Result<Option<i64>, ToolError> {
    let notes = store.named("notes")?;
    let before = notes.get(&entry.key).await?;
    match entry.value {
        Some(value) => notes.set(&entry.key, &value).await?,
        None => notes.remove(&entry.key).await?,
    }
    Ok(before)
}

/// Counts up.
#[tool(Write, touches = nothing)]
async fn count(_: Empty, store: Store) -> Result<i64, ToolError> {
    let counters = store.named("counters")?;
    let next = counters.get::<i64>("n").await?.unwrap_or(0) + 1;
    counters.set("n", &next).await?;
    Ok(next)
}

fn nothing(_: &Empty) -> tooltape::Footprint {
    tooltape::Footprint::default()
}

fn run_with(store: Store, thread: Option<&str>, tape: &MemoryTape) -> Run {
    let run = Run::new(&Toolbox::new(tools![remember, count]).unwrap());
    let run = run.grant(store).policy(|_: &_| Verdict::allow("test")).tape(tape.clone());
    match thread {
        Some(thread) => run.thread(thread),
        None => run,
    }
}

async fn call(run: &Run, key: &str, value: Option<i64>) -> Reply {
    let args = json!({"key": key, "value": value}).to_string();
    run.batch(vec![Proposal::new("c", "remember", args)]).await.unwrap().remove(0)
}

fn stored(tape: &MemoryTape, run: RunId) -> Vec<String> {
    let told = |event: Event| match event {
        Event::Stored { store, key, wrote, value, .. } => {
            let verb = if wrote { "wrote" } else { "read" };
            let value = value.map_or("nothing".to_owned(), |value| value.to_string());
            Some(format!("{verb} {store}/{key} {value}"))
        }
        _ => None,
    };
    tape.records(run).into_iter().filter_map(|record| told(record.event)).collect()
}

#[tokio::test]
async fn every_read_and_write_of_a_store_is_on_the_tape_with_its_value() {
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::memory(), Store::sqlite(folder.path().join("store.db")).unwrap()] {
        let tape = MemoryTape::default();
        let run = run_with(store, None, &tape);
        assert_eq!(call(&run, "a", Some(1)).await.text(), "null");
        assert_eq!(call(&run, "a", Some(2)).await.text(), "1");
        assert_eq!(call(&run, "a", None).await.text(), "2");
        let expected = [
            "read notes/a nothing",
            "wrote notes/a 1",
            "read notes/a 1",
            "wrote notes/a 2",
            "read notes/a 2",
            "wrote notes/a nothing",
        ];
        assert_eq!(stored(&tape, run.id()), expected);
        assert_eq!(call(&run, "a", None).await.text(), "null");
    }
}

#[tokio::test]
async fn a_run_sees_its_own_values_and_a_thread_those_of_all_its_runs() {
    let (store, tape) = (Store::memory(), MemoryTape::default());
    let first = run_with(store.clone(), Some("t"), &tape);
    call(&first, "a", Some(1)).await;
    let second = run_with(store.clone(), Some("t"), &tape);
    assert_eq!(call(&second, "a", Some(2)).await.text(), "null", "another run has its own");
    let third = run_with(store.clone().by_thread(), Some("t"), &tape);
    call(&third, "a", Some(3)).await;
    let fourth = run_with(store.clone().by_thread(), Some("t"), &tape);
    assert_eq!(call(&fourth, "a", None).await.text(), "3", "a thread's runs share");
    let other = run_with(store.clone().by_thread(), Some("u"), &tape);
    assert_eq!(call(&other, "a", None).await.text(), "null", "another thread has its own");
    let nowhere = run_with(store.by_thread(), None, &tape);
    let reply = call(&nowhere, "a", Some(1)).await;
    assert!(reply.is_error && reply.text().contains("has none"), "{}", reply.text());
}

#[tokio::test]
async fn values_in_a_file_outlive_the_process_that_set_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let tape = MemoryTape::default();
    let run = run_with(Store::sqlite(&path).unwrap().by_thread(), Some("t"), &tape);
    call(&run, "a", Some(7)).await;
    drop(run);
    let run = run_with(Store::sqlite(&path).unwrap().by_thread(), Some("t"), &tape);
    assert_eq!(call(&run, "a", None).await.text(), "7");
    assert!(Store::sqlite(folder.path()).is_err(), "a folder is no store");
}

#[tokio::test]
async fn a_key_or_a_value_that_is_too_long_is_refused_and_changes_nothing() {
    let notes = Store::memory().named("notes").unwrap();
    let key = "k".repeat(tooltape::limits::STORE_KEY_BYTES_MAX + 1);
    assert!(notes.set(&key, &1).await.is_err());
    let value = "v".repeat(tooltape::limits::STORE_VALUE_BYTES_MAX);
    assert!(notes.set("k", &value).await.is_err());
    assert_eq!(notes.get::<String>("k").await.unwrap(), None);
    assert!(Store::memory().named("no such name").is_err());
}

#[test]
fn a_tool_that_takes_a_store_needs_it_and_is_not_pure() {
    let toolbox = Toolbox::new(tools![count]).unwrap();
    let tool = toolbox.tools().next().unwrap();
    assert_eq!(tool.spec().effects.access, Access::Write);
    let missing = Run::new(&toolbox).missing_grants();
    assert!(missing[0].to_string().contains("Store"), "{}", missing[0]);
}

/// Says that it reads, and writes.
#[tool(Read)]
async fn sneak(entry: Entry, store: Store) -> Result<Option<i64>, ToolError> {
    let notes = store.named("notes")?;
    let before = notes.get(&entry.key).await?;
    match entry.value {
        Some(value) => notes.set(&entry.key, &value).await?,
        None => notes.remove(&entry.key).await?,
    }
    Ok(before)
}

#[tokio::test]
async fn a_tool_that_says_that_it_reads_changes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::memory(), Store::sqlite(folder.path().join("store.db")).unwrap()] {
        let tape = MemoryTape::default();
        let run = Run::new(&Toolbox::new(tools![remember, sneak]).unwrap()).grant(store);
        let run = run.policy(|_: &_| Verdict::allow("test")).tape(tape.clone());
        call(&run, "a", Some(1)).await;
        for args in [r#"{"key":"a","value":2}"#, r#"{"key":"a"}"#] {
            let sneaked = run.batch(vec![Proposal::new("c", "sneak", args)]).await.unwrap();
            assert_eq!(sneaked[0].executed, Executed::NotExecuted);
            let told = "not executed: the store was not changed: the tool says that it only reads";
            assert_eq!(sneaked[0].text(), told);
        }
        assert_eq!(call(&run, "a", Some(3)).await.text(), "1");
        let wrote = stored(&tape, run.id()).into_iter().filter(|it| it.starts_with("wrote"));
        assert_eq!(wrote.collect::<Vec<_>>(), ["wrote notes/a 1", "wrote notes/a 3"]);
    }
}

/// A tape on which something happens just before it takes a write to a store.
#[derive(Clone)]
struct Before {
    tape: MemoryTape,
    write: Arc<dyn Fn() + Send + Sync>,
    /// Whether it keeps the write.
    keeps: bool,
}

impl Tape for Before {
    fn append(&self, append: Append<'_>) -> Ack {
        let is_write = |event: &Event| matches!(event, Event::Stored { wrote: true, .. });
        if !append.events.iter().any(is_write) {
            return self.tape.append(append);
        }
        (self.write)();
        if self.keeps {
            return self.tape.append(append);
        }
        append.events.clear();
        Ack::Later(Box::pin(async { Err(TapeError::Io { why: "the disk is gone".into() }) }))
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        self.tape.read(run, from, most)
    }
}

/// What a store's file has.
fn values(path: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut query = connection.prepare("SELECT key || '=' || value FROM store").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_write_that_the_tape_did_not_keep_is_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let tape = MemoryTape::default();
    let before = Before { tape: tape.clone(), write: Arc::new(|| {}), keeps: false };
    let store = Store::sqlite(&path).unwrap();
    let run = run_with(store.clone(), None, &tape).tape(before);
    let proposal = Proposal::new("c", "remember", r#"{"key":"a","value":1}"#);
    assert!(run.batch(vec![proposal]).await.is_err(), "a tape that lost something takes no more");
    assert_eq!(values(&path), [""; 0]);
    let refused = store.named("notes").unwrap().set("b", &1).await.unwrap_err();
    assert!(refused.told().contains("takes nothing more"), "{}", refused.told());
}

/// A tape that ends where another was cut off.
fn cut(records: &[Record]) -> MemoryTape {
    let tape = MemoryTape::default();
    let mut events: Vec<Event> = records.iter().map(|record| record.event.clone()).collect();
    let append = Append::new(records[0].run, 0, records[0].at_us, &mut events);
    tape.append(append).accepted().unwrap();
    tape
}

#[tokio::test]
async fn after_a_crash_between_a_write_and_its_note_the_file_has_what_the_tape_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let crashed = folder.path().join("crashed");
    fs::create_dir(&crashed).unwrap();
    let (from, to) = (folder.path().to_owned(), crashed.clone());
    let write = move || {
        for name in ["store.db", "store.db-wal"] {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    };
    let tape = MemoryTape::default();
    let before = Before { tape: tape.clone(), write: Arc::new(write), keeps: true };
    let run = run_with(Store::sqlite(&path).unwrap(), None, &tape).tape(before);
    call(&run, "a", Some(1)).await;
    call(&run, "a", Some(2)).await;
    assert_eq!(values(&path), ["a=2"]);
    // The machine stopped at the second write: its file is as it was, its tape has the note or not.
    let records = tape.records(run.id());
    let is_write = |record: &Record| matches!(record.event, Event::Stored { wrote: true, .. });
    let note = records.iter().rposition(is_write).unwrap();
    for (len, expected) in [(note, "a=1"), (note + 1, "a=2")] {
        let again = folder.path().join(format!("again-{len}"));
        fs::create_dir(&again).unwrap();
        for name in ["store.db", "store.db-wal"] {
            fs::copy(crashed.join(name), again.join(name)).unwrap();
        }
        let path = again.join("store.db");
        assert_eq!(values(&path), ["a=1"]);
        let tape = cut(&records[..len]);
        let resumed = run_with(Store::sqlite(&path).unwrap(), None, &tape);
        let resumed = resumed.resume(run.id()).await.unwrap();
        assert_eq!(values(&path), [expected]);
        assert_eq!(resumed.in_doubt(), [CallNo(2)]);
        assert_eq!(call(&resumed, "a", Some(3)).await.text(), expected[2..]);
        assert_eq!(values(&path), ["a=3"]);
        // What is done is not done again.
        drop(resumed);
        let resumed = run_with(Store::sqlite(&path).unwrap(), None, &tape);
        resumed.resume(run.id()).await.unwrap();
        assert_eq!(values(&path), ["a=3"]);
    }
}

#[tokio::test]
async fn a_fork_has_the_values_of_what_it_shares() {
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::memory(), Store::sqlite(folder.path().join("store.db")).unwrap()] {
        let tape = MemoryTape::default();
        let run = run_with(store.clone(), None, &tape);
        call(&run, "a", Some(1)).await;
        let shared = tape.records(run.id()).len() as u64;
        call(&run, "a", Some(2)).await;
        let forked = run_with(store, None, &tape).fork(Fork::of(run.id(), shared)).await.unwrap();
        assert_eq!(call(&forked, "a", Some(3)).await.text(), "1");
        assert_eq!(call(&run, "a", None).await.text(), "2");
    }
}
