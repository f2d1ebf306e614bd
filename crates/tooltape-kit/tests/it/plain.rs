//! The small tools: the time, hashes, the plan of a run, and questions to its user.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tooltape::{
    Access, Artifacts, Clock, Empty, MemoryTape, Rules, Run, Spec, State, Tool, ToolError, Toolbox,
    tool_fn,
};
use tooltape_kit::limits::{ANSWER_BYTES_MAX, QUESTION_BYTES_MAX, STEPS_MAX};
use tooltape_kit::{AskUser, Plan, Workspace, plain_tools};

use crate::ripgrep::value;
use crate::world::{World, call, calls, code};

fn run(world: &World) -> Run {
    run_of(world, [])
}

fn run_of(world: &World, more: impl IntoIterator<Item = Arc<dyn Tool>>) -> Run {
    Run::new(&Toolbox::new(plain_tools().into_iter().chain(more)).unwrap())
        .grant(Workspace::open(world.at("")).unwrap())
        .grant(State::new(Plan::default()))
        .grant(AskUser::nobody())
        .policy(Rules::allow_reads())
}

#[test]
fn now_is_what_the_clock_of_the_run_says() {
    let world = World::new();
    for (seconds, utc, weekday) in [
        (0, "1970-01-01T00:00:00Z", "Thursday"),
        (951_782_399, "2000-02-28T23:59:59Z", "Monday"),
        (951_782_400, "2000-02-29T00:00:00Z", "Tuesday"),
        (951_868_800, "2000-03-01T00:00:00Z", "Wednesday"),
        (1_735_689_599, "2024-12-31T23:59:59Z", "Tuesday"),
        (4_107_542_400, "2100-03-01T00:00:00Z", "Monday"),
        (1_794_841_445, "2026-11-16T15:04:05Z", "Monday"),
    ] {
        let run = run(&world).clock(Clock::fixed(Duration::from_secs(seconds)));
        let now = value(&run, "now", &json!({}));
        let expected = json!({ "utc": utc, "weekday": weekday, "unix_ms": seconds * 1_000 });
        assert_eq!(now, expected);
    }
}

#[test]
fn a_file_or_an_artifact_has_its_hash() {
    let world = World::new();
    world.file("a.txt", "").file("large.bin", vec![7; 9 << 20]).link("a.txt", "link");
    world.link("../outside/canary", "out");
    // An artifact is its run's alone, so a call of the run puts it aside.
    let spec = Spec::new("put", "Puts something aside.").access(Access::Read);
    let put = tool_fn(spec, async |_: Empty, artifacts: Artifacts| {
        let put = artifacts.put(b"put aside".to_vec()).await?;
        Ok::<_, ToolError>(put.id.to_string())
    });
    let run = run_of(&world, [put]);
    let id = value(&run, "put", &json!({}));
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    for (args, bytes) in [
        (json!({ "path": "a.txt" }), Vec::new()),
        (json!({ "path": "large.bin" }), vec![7; 9 << 20]),
    ] {
        let hashed = value(&run, "hash_file", &args);
        assert_eq!(hashed, json!({ "hash": hash(&bytes), "bytes": bytes.len() }), "{args}");
    }
    let hashed = value(&run, "hash_file", &json!({ "artifact": id }));
    assert_eq!(hashed["hash"], hash(b"put aside"));
    assert!(hash(b"").starts_with("af1349b9f5f9a1a6"));
    for (args, expected) in [
        (json!({}), "args.refused"),
        (json!({ "path": "a.txt", "artifact": id }), "args.refused"),
        (json!({ "artifact": "artifact:00" }), "args.refused"),
        (json!({ "artifact": format!("artifact:{}", "0".repeat(64)) }), "artifact"),
        (json!({ "path": "." }), "not_a_file"),
        (json!({ "path": "gone" }), "not_found"),
        (json!({ "path": "link" }), "symlink"),
        (json!({ "path": "out" }), "symlink"),
    ] {
        let reply = call(&run, "hash_file", &args.to_string());
        assert_eq!(code(&reply), expected, "{args}: {}", reply.text());
    }
}

#[test]
fn the_plan_of_a_run_is_still_there_when_it_goes_on() {
    let world = World::new();
    let tape = MemoryTape::default();
    let plan = json!({ "steps": [
        { "text": "look", "status": "done" }, { "text": "mend", "status": "doing" },
    ] });
    let first = run(&world).tape(tape.clone());
    assert_eq!(value(&first, "todo", &json!({})), json!({ "steps": [] }));
    assert_eq!(value(&first, "todo", &plan), plan);
    assert_eq!(value(&first, "todo", &json!({})), plan);
    let id = tape.runs()[0];
    drop(first);
    let resumed = resumed(run(&world).tape(tape), id);
    assert_eq!(value(&resumed, "todo", &json!({})), plan);
    // Another run has a plan of its own.
    assert_eq!(value(&run(&world), "todo", &json!({})), json!({ "steps": [] }));
}

fn resumed(run: Run, id: tooltape::RunId) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(run.resume(id)).unwrap()
}

#[test]
fn a_plan_has_bounds() {
    let world = World::new();
    let run = run(&world);
    let step = |text: &str, status: &str| json!({ "text": text, "status": status });
    for steps in [
        vec![step("a", "open"); STEPS_MAX + 1],
        vec![step(" ", "open")],
        vec![step(&"a".repeat(501), "open")],
        vec![step(&format!("a{}", " ".repeat(500)), "open")],
        vec![step("a", "later")],
        vec![json!({ "text": "a" })],
    ] {
        let reply = call(&run, "todo", &json!({ "steps": steps }).to_string());
        assert!(code(&reply).starts_with("args."), "{}", reply.text());
    }
    assert_eq!(value(&run, "todo", &json!({})), json!({ "steps": [] }));
}

#[test]
fn the_user_is_asked_by_whatever_way_the_host_has() {
    let world = World::new();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let ask = AskUser::by(move |question| {
        seen.lock().unwrap().push((question.text.clone(), question.choices.clone()));
        Box::pin(async move {
            match &*question.text {
                "Which?" => question.choices.last().cloned(),
                "Long?" => Some("é".repeat(ANSWER_BYTES_MAX)),
                _ => None,
            }
        })
    });
    let run = run(&world).grant(ask);
    let args = json!({ "question": "Which?", "choices": ["red", "blue"] });
    assert_eq!(value(&run, "ask_user", &args), json!({ "answer": "blue" }));
    let long = value(&run, "ask_user", &json!({ "question": "Long?" }));
    assert!(long["answer"].as_str().unwrap().len() <= ANSWER_BYTES_MAX + 3);
    let reply = call(&run, "ask_user", r#"{"question":"Nobody?"}"#);
    assert_eq!(code(&reply), "nobody_to_ask");
    assert!(reply.label().is_trusted());
    assert_eq!(asked.lock().unwrap().len(), 3);
    let padded = format!("a{}", " ".repeat(QUESTION_BYTES_MAX));
    for args in [
        json!({ "question": " " }),
        json!({ "question": padded }),
        json!({ "question": "a", "choices": [""] }),
        json!({ "question": "a", "choices": [padded] }),
    ] {
        let reply = call(&run, "ask_user", &args.to_string());
        assert!(code(&reply).starts_with("args."), "{args}: {}", reply.text());
    }
}

#[test]
fn where_nobody_is_there_the_model_reads_so() {
    let world = World::new();
    let reply = call(&run(&world), "ask_user", r#"{"question":"Anybody?"}"#);
    let expected = "not executed: nobody is there to be asked: decide yourself, or say what is \
                    missing";
    assert_eq!((code(&reply), &*reply.text()), ("nobody_to_ask", expected));
}

#[test]
fn what_they_declare_needs_nobody_to_be_asked() {
    let world = World::new();
    let replies = calls(
        &run(&world),
        vec![
            tooltape::Proposal::new("1", "now", "{}"),
            tooltape::Proposal::new("2", "todo", r#"{"steps":[]}"#),
        ],
    );
    assert!(replies.iter().all(|reply| !reply.is_error));
    let pure: Vec<Value> = plain_tools()
        .iter()
        .map(|tool| serde_json::to_value(&tool.spec().effects).unwrap()["access"].clone())
        .collect();
    assert_eq!(pure, ["pure", "read", "read", "read"]);
}
