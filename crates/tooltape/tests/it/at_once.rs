//! What is done at once is done as it is otherwise: flat arguments, and pure functions.

#![expect(dead_code, reason = "what was read is shown by `Debug` alone")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::select;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tooltape::{
    Access, Event, Input, MemoryTape, Proposal, Reply, Run, Spec, Tool, ToolError, Toolbox, tool_fn,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    One,
    Two,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Wrapped(i64);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Closed {
    a: Option<i64>,
    b: Option<String>,
    c: Option<u8>,
    d: Option<f64>,
    e: Option<Word>,
    f: Option<bool>,
    g: Option<char>,
    h: Option<Wrapped>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Open {
    a: f32,
    b: Option<()>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "b")]
enum Tagged {
    One { a: i8 },
    Two { a: Option<Wrapped>, c: Option<u64> },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("type" = "object"))]
#[serde(untagged)]
enum Either {
    Number { a: u16 },
    Text { a: String },
    Any(BTreeMap<String, Value>),
}

impl Input for Closed {
    fn check(&self) -> Result<(), String> {
        match self.a {
            Some(13) => Err("13 is refused".to_owned()),
            Some(_) | None => Ok(()),
        }
    }
}

impl Input for Open {}
impl Input for Tagged {}
impl Input for Either {}

/// A tool that says how it understood its arguments.
fn echo<I: Input + Debug>(name: &'static str) -> Arc<dyn Tool> {
    let spec = Spec::new(name, "Says what it was sent.").access(Access::Pure);
    tool_fn(spec, async |args: I| Ok::<_, ToolError>(format!("{args:?}")))
}

fn answered(run: &Run, proposals: Vec<Proposal>) -> Vec<Reply> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run.batch(proposals)).unwrap()
}

fn texts() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] =
        &["", "One", "Two", "one", "two", "x", "é", "a\"b", "line\n", "\u{10ffff}", "null"];
    prop_oneof![select(WORDS).prop_map(Value::from), ".{0,12}".prop_map(Value::from)]
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => texts(),
        4 => select(&[0, 1, 13, -1, 127, 128, 255, 256, 65_536][..]).prop_map(Value::from),
        2 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!([1])),
        1 => Just(json!({ "a": 1 })),
    ]
}

fn objects() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let names = prop_oneof![9 => "[a-h]", 1 => "[a-h\"$\\\\é]{0,9}"];
    btree_map(names, values(), 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_space_in_flat_arguments_changes_nothing_but_the_way_they_are_read(object in objects()) {
        let text = json!(object).to_string();
        let spaced = format!("{{ {}", &text[1..]);
        let tools =
            [echo::<Closed>("closed"), echo::<Open>("open"), echo::<Tagged>("tagged"),
             echo::<Either>("either")];
        let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let run = Run::new(&Toolbox::new(tools).unwrap());
        for name in names {
            let sent = [&text, &spaced].map(|text| Proposal::new("c", &*name, text.as_str()));
            let replies = answered(&run, sent.into());
            let [flat, other] = &replies[..] else { panic!("one reply each") };
            let seen = |it: &Reply| (it.text(), it.args.clone(), it.result_hash);
            prop_assert_eq!(seen(flat), seen(other), "{}: {}", name, text);
        }
    }
}

fn kinds(tape: &MemoryTape, run: &Run) -> Vec<Value> {
    let records = tape.records(run.id());
    records.iter().map(|record| json!(record.event)["type"].clone()).collect()
}

#[test]
fn a_pure_function_that_is_ready_at_once_leaves_the_same_records() {
    let tape = MemoryTape::default();
    let toolbox = Toolbox::new([echo::<Closed>("closed")]).unwrap();
    let run = Run::new(&toolbox).tape(tape.clone());
    answered(&run, vec![Proposal::new("c1", "closed", r#"{"a":1}"#)]);
    let expected = ["run.started", "call.proposed", "call.judged", "call.started", "call.settled"];
    assert_eq!(kinds(&tape, &run), expected);
}

#[test]
fn a_pure_function_that_waits_is_on_the_tape_before_it_does() {
    let tape = MemoryTape::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (at_start, watched) = (seen.clone(), tape.clone());
    let spec = Spec::new("slow", "Waits a moment.").access(Access::Pure);
    let tool = tool_fn(spec, move |_: tooltape::Empty| {
        let (at_start, watched) = (at_start.clone(), watched.clone());
        async move {
            tokio::task::yield_now().await;
            let records = watched.runs().into_iter().flat_map(|run| watched.records(run));
            let starts = |event: &Event| matches!(event, Event::Started { .. });
            at_start.lock().unwrap().extend(records.map(|record| starts(&record.event)));
            Ok::<_, ToolError>(())
        }
    });
    let run = Run::new(&Toolbox::new([tool]).unwrap()).tape(tape.clone());
    answered(&run, vec![Proposal::new("c1", "slow", "{}")]);
    assert_eq!(*seen.lock().unwrap(), [false, false, false, true]);
}

#[test]
fn a_pure_function_that_is_tried_again_leaves_each_start_before_what_came_of_it() {
    let tape = MemoryTape::default();
    let tried = Arc::new(Mutex::new(0));
    let counted = tried.clone();
    let mut spec = Spec::new("shaky", "Fails once.").access(Access::Pure);
    spec.retry.attempts = 2;
    spec.effects.repeat = tooltape::Repeat::Idempotent;
    let tool = tool_fn(spec, move |_: tooltape::Empty| {
        let mut tried = counted.lock().unwrap();
        *tried += 1;
        let done = if *tried > 1 { Ok(()) } else { Err(ToolError::tell("not yet")) };
        async move { done }
    });
    let run = Run::new(&Toolbox::new([tool]).unwrap()).tape(tape.clone());
    answered(&run, vec![Proposal::new("c1", "shaky", "{}")]);
    let expected = [
        "run.started",
        "call.proposed",
        "call.judged",
        "call.started",
        "call.retried",
        "call.started",
        "call.settled",
    ];
    assert_eq!(kinds(&tape, &run), expected);
}
