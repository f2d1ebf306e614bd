//! What attributes declare, and the other ways to make a tool: acceptance 57, 60 and 61.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};
use tooltape::testing::{Spy, play};
use tooltape::{
    Access, Bound, Bounds, Cancel, Clock, Determinism, Effects, Empty, Errors, Grant, History,
    Progress, Random, Reach, RegisterError, Repeat, Retry, RunInfo, Secret, Spec, State, Tool,
    ToolError, Toolbox, Vote, bind, builtin, input, tool, tool_fn, tool_fn_blocking, tools,
};

use crate::declaring::{over, reply};

/// Says nothing about itself.
#[tool]
async fn unmarked(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

#[test]
fn an_unmarked_tool_counts_as_a_write() {
    assert_eq!(unmarked::tool().spec().effects, Effects::default());
    assert_eq!(unmarked::tool().spec().effects.access, Access::Write);
}

/// Declares everything.
#[tool(
    Read,
    name = "everything",
    version = "2.1.0",
    determinism = Bounded,
    repeat = Keyed,
    reach = Network,
    filesystem,
    process,
    spend,
    confirm,
    workspace_root = "src",
    redact,
    exclusive,
    recursive,
    aborts_siblings,
    vote = Advisory,
    counted = false,
    needs("fs:read:src", "net:get:api.example.com"),
    wall_ms = 5_000,
    idle_ms = 2 * 500,
    memory = 64 << 20,
    fuel = unlimited,
    output_bytes = 1_000,
    concurrency = 4,
    attempts = 3,
    pause_ms = 10,
    pause_ms_max = 1_000,
    dedupe_by = "path",
    summarise_by = "path",
    compact,
    pin,
)]
async fn declares(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

#[test]
fn every_safety_declaration_can_be_made_and_read_back() {
    let tool = declares::tool();
    let spec = tool.spec();
    assert_eq!((&*spec.name, &*spec.version), ("everything", "2.1.0"));
    let effects = Effects {
        access: Access::Read,
        determinism: Determinism::Bounded,
        repeat: Repeat::Keyed,
        reach: Reach::Network,
        filesystem: true,
        process: true,
        spend: true,
        confirm: true,
        workspace_root: Some("src".into()),
        redact: true,
        exclusive: true,
        recursive: true,
        aborts_siblings: true,
        vote: Vote::Advisory,
        counted: false,
    };
    assert_eq!(spec.effects, effects);
    let bounds = Bounds {
        wall: Bound::At(Duration::from_secs(5)),
        idle: Bound::At(Duration::from_secs(1)),
        memory: Bound::At(64 << 20),
        fuel: Bound::Unlimited,
        output_bytes: Bound::At(1_000),
        concurrency: Bound::At(4),
    };
    assert_eq!(spec.bounds, bounds);
    assert_eq!(spec.retry, Retry { attempts: 3, pause_ms: 10, pause_ms_max: 1_000 });
    assert_eq!(spec.capabilities, ["fs:read:src", "net:get:api.example.com"]);
    let History { dedupe_by, summarise_by, compact, pin, .. } = &spec.history;
    assert_eq!((dedupe_by.as_deref(), summarise_by.as_deref()), (Some("path"), Some("path")));
    assert!(*compact && *pin);
}

#[test]
fn every_tool_declares_capabilities_side_effect_determinism_and_bounds() {
    let mut tools = Vec::from(tools![unmarked, declares]);
    tools.extend(builtin::tools());
    tools.push(Spy::new("erased", Access::Read).tool());
    for tool in tools {
        let Spec { name, effects, bounds, capabilities, .. } = tool.spec();
        let said = json!({ "effects": effects, "bounds": bounds, "capabilities": capabilities });
        for pointer in ["/effects/access", "/effects/determinism", "/bounds/wall_ms"] {
            let word = said.pointer(pointer).filter(|word| !word.is_null());
            assert!(word.is_some(), "`{name}` says nothing at `{pointer}`");
        }
        assert!(said["capabilities"].is_array(), "`{name}` lists what it needs");
    }
}

#[test]
fn an_access_brings_the_effects_that_go_with_it() {
    /// Reads.
    #[tool(Read)]
    async fn reads(_: Empty) -> Result<(), ToolError> {
        Ok(())
    }
    /// Computes.
    #[tool(Pure)]
    async fn computes(_: Empty) -> Result<(), ToolError> {
        Ok(())
    }
    /// Writes one file.
    #[tool(Write, reach = Local, process = false, spend = false)]
    async fn writes(_: Empty) -> Result<(), ToolError> {
        Ok(())
    }
    assert_eq!(reads::tool().spec().effects, Effects::read());
    assert_eq!(computes::tool().spec().effects, Effects::pure());
    let (process, spend, reach) = (false, false, Reach::Local);
    let narrowed = Effects { process, spend, reach, ..Effects::default() };
    assert_eq!(writes::tool().spec().effects, narrowed);
}

#[doc = include_str!("attributes.rs")]
#[tool(Pure)]
async fn included(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

/// The first line.
///
/// * a list
///     indented
#[doc(alias = "several")]
#[tool(Pure)]
async fn lines(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

#[test]
fn the_doc_comment_is_the_description() {
    let lines = lines::tool();
    assert_eq!(&*lines.spec().description, "The first line.\n\n* a list\n    indented");
    let included = included::tool();
    assert_eq!(&*included.spec().description, include_str!("attributes.rs").trim());
}

mod nested {
    use super::*;

    /// A tool of another module, for this one and its parent.
    #[allow(clippy::unused_async, reason = "a lint level that must stay")]
    #[tool(Pure)]
    pub(in super::super) async fn seen(_: Empty) -> Result<&'static str, ToolError> {
        Ok("seen")
    }

    /// A tool that is not compiled at all, though its types do not exist.
    #[tool(Pure)]
    #[cfg(any())]
    pub(super) async fn absent(_: Missing) -> Result<(), ToolError> {}

    /// A tool that should not be used any more.
    #[tool(Pure)]
    #[deprecated]
    pub(super) async fn old(_: Empty) -> Result<(), ToolError> {
        Ok(())
    }
}

#[tokio::test]
async fn visibility_and_attributes_of_the_function_stay() {
    assert_eq!(nested::seen(Empty {}).await.unwrap(), "seen");
    assert_eq!(play(&over(tools![nested::seen]), "seen {}").await, "c1 seen\n");
    #[expect(deprecated, reason = "registering a deprecated tool warns, and this shows it")]
    let old = tools![nested::old];
    assert_eq!(&*old[0].spec().name, "old");
}

/// A database, whichever it is.
trait Database: Grant {
    fn rows(&self) -> u64;
}

#[derive(Clone)]
struct Fake;

impl Grant for Fake {}

impl Database for Fake {
    fn rows(&self) -> u64 {
        7
    }
}

/// Counts the rows, `PLUS` one or the other.
#[tool(Read)]
async fn count<D: Database, const PLUS: u64>(_: Empty, database: D) -> Result<u64, ToolError> {
    Ok(database.rows() + PLUS)
}

#[tokio::test]
async fn a_generic_tool_is_registered_by_its_instance() {
    let run = over(tools![count<Fake, 1>]).grant(Fake);
    assert_eq!(play(&run, "count {}").await, "c1 8\n");
    assert_eq!(count::<Fake, 0>(Empty {}, Fake).await.unwrap(), 7);
}

#[tokio::test]
async fn a_pure_tool_that_takes_the_world_is_refused_whichever_way_it_was_made() {
    /// Claims to be pure.
    #[tool(Pure)]
    async fn claims<G: Grant>(_: Empty, _: G) -> Result<(), ToolError> {
        Ok(())
    }
    let spec = Spec::new("closure", "Claims to be pure.").access(Access::Pure);
    let closure = tool_fn(spec, async |_: Empty, _: State<u8>| Ok::<_, ToolError>(()));
    for tool in [closure, claims::<Fake>::tool()] {
        let refused = Toolbox::new([tool]).map(|_| ());
        assert!(matches!(refused, Err(RegisterError::Impure { .. })));
    }
    assert!(Toolbox::new(tools![claims<Clock>]).is_ok());
}

#[input]
struct Name {
    name: String,
}

/// Greets somebody, slowly.
#[tool(Pure, blocking)]
fn greet(args: Name, info: RunInfo) -> Result<String, &'static str> {
    match info.run() {
        Some(_) => Ok(format!("hello {}", args.name)),
        None => Err("nobody asked"),
    }
}

#[tokio::test]
async fn a_synchronous_function_is_a_tool_that_runs_on_a_thread_of_its_own() {
    let here = std::thread::current().id();
    let spec = Spec::new("elsewhere", "Says whether it runs elsewhere.").access(Access::Pure);
    let elsewhere = tool_fn_blocking(spec, move |_: Empty, _: Random| {
        Ok::<_, ToolError>(std::thread::current().id() != here)
    });
    let run = over([greet::tool(), elsewhere]);
    let replies = play(&run, "greet {\"name\":\"you\"}\nelsewhere {}").await;
    assert_eq!(replies, "c1 hello you\nc2 true\n");
    let name = "you".to_owned();
    assert_eq!(greet(Name { name }, RunInfo::detached()), Err("nobody asked"));
}

#[tokio::test]
async fn a_blocking_tool_that_panics_is_isolated_like_any_other() {
    let spec = Spec::new("panics", "Panics.");
    let panics = tool_fn_blocking(spec, |args: Name| -> Result<(), ToolError> {
        panic!("planted {}", args.name)
    });
    let reply = reply(&over([panics]), "panics", r#"{"name":"panic"}"#).await;
    assert_eq!(reply.text(), "unknown: the tool panicked; do not repeat it blindly");
    assert_eq!(&*reply.fault.as_ref().unwrap().message, "the tool panicked: panic: planted panic");
}

#[tokio::test]
async fn a_closure_may_capture_and_take_grants() {
    let greeting = Arc::new("hello".to_owned());
    let spec = Spec::new("greet", "Greets somebody.").access(Access::Read);
    let greet = tool_fn(spec, move |args: Name, loud: State<bool>, _: Clock, _: Progress| {
        let greeting = greeting.clone();
        async move {
            let text = format!("{greeting} {}", args.name);
            Ok::<_, ToolError>(if loud.get() { text.to_uppercase() } else { text })
        }
    });
    let needs: Vec<_> = greet.spec().needs.iter().map(|need| need.name()).collect();
    assert_eq!(needs, ["State<bool>", "Clock", "Progress"]);
    let run = over([greet]).grant(State::new(true));
    assert_eq!(play(&run, "greet {\"name\":\"you\"}").await, "c1 HELLO YOU\n");
}

#[test]
fn a_tool_says_what_its_errors_look_like() {
    assert_eq!(greet::tool().spec().errors, Errors::Text);
    assert_eq!(unmarked::tool().spec().errors, Errors::Structured);
}

/// A tool found at run time, that shows the arguments which reach it.
fn found(input: Value) -> Arc<dyn Tool> {
    Spy::new("search", Access::Read).declaring(|spec| spec.input(input)).tool()
}

#[tokio::test]
async fn a_bound_argument_is_hidden_refused_and_filled() {
    let properties = json!({ "query": { "type": "string" }, "key": { "type": "string" } });
    for closed in [true, false] {
        let search = found(json!({
            "type": "object",
            "properties": properties,
            "required": ["query", "key"],
            "additionalProperties": !closed,
        }));
        let search = bind(search, "key", |key: &Secret<String>| json!(key.expose())).unwrap();
        let spec = search.spec();
        assert_eq!(spec.input["required"], json!(["query"]));
        assert!(!spec.input.to_string().contains("key"), "it is hidden: {}", spec.input);
        assert_eq!(spec.needs[0].name(), "Secret<String>");

        let run = over([search]).grant(Secret::new("filled".to_owned()));
        let filled = reply(&run, "search", r#"{"query":"a"}"#).await;
        let value = filled.value.as_ref().unwrap();
        assert_eq!(value.as_str(), r#"{"key":"filled","query":"a"}"#);
        assert_eq!(filled.text(), r#"{"key":"[redacted]","query":"a"}"#);
        let refused = reply(&run, "search", r#"{"query":"a","key":"stolen"}"#).await;
        assert!(refused.text().starts_with("not executed: "), "{}", refused.text());
        assert!(refused.text().contains("unknown field `key`"), "{}", refused.text());
    }
}

#[tokio::test]
async fn a_bound_value_is_filled_after_the_call_was_hashed_and_recorded() {
    let search = found(json!({ "type": "object", "properties": { "key": {} } }));
    let search = bind(search, "key", |key: &Secret<String>| json!(key.expose())).unwrap();
    let tape = tooltape::MemoryTape::default();
    let run = over([search]).grant(Secret::new("filled".to_owned())).tape(tape.clone());
    let reply = reply(&run, "search", "{}").await;
    let before = &tape.records(run.id())[..4];
    assert!(matches!(before[3].event, tooltape::Event::Started { .. }));
    assert!(!serde_json::to_string(before).unwrap().contains("filled"));
    let empty = over([found(json!({ "type": "object" }))]);
    assert_eq!(reply.args_hash, crate::declaring::reply(&empty, "search", "{}").await.args_hash);
}

#[test]
fn binding_what_is_not_there_is_an_error_that_says_so() {
    let search = found(json!({ "type": "object", "properties": { "query": {} } }));
    let bound = bind(search, "key", |_: &Clock| Value::Null);
    expect!["tool `search` has no property `key` at the root of its input schema"]
        .assert_eq(&bound.map(|_| ()).unwrap_err().to_string());
}

/// Takes as much as a tool can.
#[tool(Write)]
async fn takes_eight(
    _: Empty,
    info: RunInfo,
    _: Progress,
    _: Cancel,
    _: Clock,
    _: Random,
    _: Secret<String>,
    state: State<u8>,
    fake: Fake,
) -> Result<(u64, u8, u64), ToolError> {
    Ok((info.call().0, state.get(), fake.rows()))
}

#[tokio::test]
async fn a_tool_takes_up_to_eight_grants() {
    let run = over(tools![takes_eight]);
    let run = run.grant(Secret::new(String::new())).grant(State::new(3_u8)).grant(Fake);
    assert_eq!(play(&run, "takes_eight {}").await, "c1 [1,3,7]\n");
}
