//! Stores: what tools keep from call to call, each read and write on tape.

use serde_json::json;
use tooltape::{
    Access, Empty, Event, MemoryTape, Proposal, Reply, Run, RunId, Store, ToolError, Toolbox,
    Verdict, input, tool, tools,
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
