//! What a run may do: no policy gives what it does not hold, and no child has more.

use serde_json::json;
use tooltape::{
    Access, Event, Executed, Grant, MemoryTape, Proposal, Replay, Reply, Rights, Run, Spawn, Spec,
    Tool, ToolError, Toolbox, Verdict, tool_fn,
};

use crate::stage::Stage;

fn rights(text: &str) -> Rights {
    text.parse().unwrap()
}

fn allow_all() -> impl Fn(&tooltape::Call) -> Verdict + Send + Sync + 'static {
    |_: &tooltape::Call| Verdict::allow("all")
}

fn writer(stage: &Stage) -> std::sync::Arc<dyn Tool> {
    stage.tool(Spec::new("put", "Puts.").needs("fs:write:{path}"))
}

async fn put(run: &Run, path: &str) -> Reply {
    let text = json!({ "path": path }).to_string();
    run.batch(vec![Proposal::new("c1", "put", text)]).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_missing_right_denies_the_call_and_the_tool_does_not_run() {
    let stage = Stage::new();
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new([writer(&stage)]).unwrap());
    // Empty is nothing, and no policy gives what is not held.
    let run = Run::new(&toolbox).tape(tape.clone()).policy(allow_all());
    let denied = put(&run, "src/a").await;
    assert_eq!((denied.executed, stage.log().len()), (Executed::NotExecuted, 0));
    assert!(denied.text().contains("fs:write:src/a"), "{}", denied.text());
    let judged = tape.records(run.id()).into_iter().find_map(|record| match record.event {
        Event::Judged { verdict, rule, .. } => Some((verdict, rule.into_owned())),
        _ => None,
    });
    assert_eq!(judged, Some(("deny", "rights".to_owned())));
    let replay = Replay::of_records(tape.records(run.id())).with(&toolbox).policy(allow_all());
    assert!(replay.check().await.unwrap().divergences.is_empty());
}

#[tokio::test]
async fn a_scoped_right_covers_what_is_below_it_and_not_what_is_above_or_beside_it() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([writer(&stage)]).unwrap();
    let held = rights("fs:write:src\n!fs:write:src/keys");
    let run = Run::new(&toolbox).rights(held).policy(allow_all());
    let mut ran = Vec::new();
    for path in
        ["src", "src/a.rs", ".", "src-evil", "lib/a.rs", "src/keys/a", "../src/a", "", "/src"]
    {
        if !put(&run, path).await.is_error {
            ran.push(path);
        }
    }
    // The whole of `src` has the keys in it.
    assert_eq!(ran, ["src/a.rs"]);
    assert_eq!(stage.log().len(), 1);
}

#[tokio::test]
async fn a_list_of_paths_needs_the_right_to_each() {
    let stage = Stage::new();
    let tool = stage.tool(Spec::new("put", "Puts.").needs("fs:write:{path}"));
    let toolbox = Toolbox::new([tool]).unwrap();
    let run = Run::new(&toolbox).rights(rights("fs:write:src")).policy(allow_all());
    let mut ran = Vec::new();
    for path in [
        json!(["src/a", "src/b"]),
        json!(["src/a", "lib/b"]),
        json!(["src/a", "../b"]),
        json!(["src/a", 1]),
        json!([["src/a"]]),
        json!([]),
    ] {
        let text = json!({ "path": path }).to_string();
        let replies = run.batch(vec![Proposal::new("c1", "put", text)]).await.unwrap();
        if !replies[0].is_error {
            ran.push(path.to_string());
        }
    }
    // What is no list of paths needs all files.
    assert_eq!(ran, [r#"["src/a","src/b"]"#]);
}

#[tokio::test]
async fn what_is_no_right_is_held_by_nobody() {
    let stage = Stage::new();
    for needs in ["fs:read", "shelf:take:books", "fs:read:*", "net:get:{host}"] {
        let tool = stage.tool(Spec::new("put", "Puts.").needs(needs));
        let toolbox = Toolbox::new([tool]).unwrap();
        let held = rights("fs:read:.\nfs:write:.\nnet:any:*.example.com");
        let run = Run::new(&toolbox).rights(held).policy(allow_all());
        assert!(put(&run, "a").await.is_error, "{needs}");
    }
    assert_eq!(stage.log().len(), 0);
}

/// A handle to files.
#[derive(Clone)]
struct Files;

impl Grant for Files {
    fn confers(&self) -> Rights {
        rights("fs:write:.")
    }
}

#[tokio::test]
async fn a_handle_is_the_right_to_use_it_unless_the_host_says_less() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([writer(&stage)]).unwrap();
    let granted = || Run::new(&toolbox).grant(Files).policy(allow_all());
    assert!(!put(&granted(), "a").await.is_error);
    assert!(put(&granted().rights(Rights::none()), "a").await.is_error);
    assert!(put(&granted().rights(rights("fs:write:b")), "a").await.is_error);
}

#[tokio::test]
async fn a_child_has_no_more_than_its_parent_and_loses_it_with_it() {
    let stage = Stage::new();
    let spec = || Spec::new("delegate", "Delegates.").access(Access::Write);
    let delegate = tool_fn(spec(), async |args: Delegate, spawn: Spawn| {
        let child = spawn.child()?.rights(&rights(&args.asks)).start();
        let text = json!({ "path": args.path }).to_string();
        let replies = child.batch(vec![Proposal::new("c", "put", text)]).await;
        let reply = replies.map_err(|err| ToolError::tell(err.to_string()))?.remove(0);
        Ok::<_, ToolError>(reply.text())
    });
    let toolbox = Toolbox::new([delegate, writer(&stage)]).unwrap();
    let run = Run::new(&toolbox).rights(rights("fs:write:src")).policy(allow_all());
    let ask = async |asks: &str, path: &str| {
        let text = json!({ "asks": asks, "path": path }).to_string();
        run.batch(vec![Proposal::new("c1", "delegate", text)]).await.unwrap();
        stage.log().len()
    };
    assert_eq!(ask("fs:write:.", "src/a").await, 1, "what both allow");
    assert_eq!(ask("fs:write:.", "lib/a").await, 1, "a child cannot ask for more");
    assert_eq!(ask("fs:write:src/b", "src/a").await, 1, "and may ask for less");
    assert_eq!(ask("fs:read:.", "src/a").await, 1, "to read is not to write");
    run.revoke();
    assert!(put(&run, "src/a").await.is_error);
    assert_eq!(stage.log().len(), 1, "what is revoked is gone");
}

#[tooltape::input]
struct Delegate {
    /// What the child asks for.
    asks: String,
    /// What it writes.
    path: String,
}
