//! What a call reads and writes: the keys, and the hook that computes them.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::json;
use tooltape::limits::{FOOTPRINT_KEYS_MAX, RESOURCE_BYTES_MAX, RESOURCE_SEGMENTS_MAX};
use tooltape::{
    Access, Canon, Fault, Footprint, FootprintOf, Registered, Resource, Secret, Spec, Tool,
    ToolError, bind, input, tool, tool_fn,
};

fn key(text: &str) -> Resource {
    Resource::parse(text).unwrap()
}

#[test]
fn a_key_covers_itself_and_what_is_below_it() {
    let covers = |one: &str, other: &str| key(one).covers(&key(other));
    assert!(covers("file:src", "file:src") && covers("file:src", "file:src/a.rs"));
    assert!(covers("file:", "file:src/a.rs") && covers("file:", "file:"));
    assert!(!covers("file:src", "file:src2") && !covers("file:src/a.rs", "file:src"));
    assert!(!covers("file:", "db:") && !covers("file:src", "file:"));
    assert!(Resource::everything().covers(&key("db:")));
    assert!(!key("db:").covers(&Resource::everything()));
    assert!(key("db:").overlaps(&Resource::everything()));
    assert!(key("file:a").overlaps(&key("file:a/b")) && !key("file:a").overlaps(&key("file:b")));
}

#[test]
fn a_key_that_could_mean_two_things_is_refused() {
    let check = |text: &str, expected: Expect| {
        expected.assert_eq(&Resource::parse(text).unwrap_err().to_string());
    };
    check("src", expect!["`src` has no domain; a resource key is like `file:src/a.rs`"]);
    check(":src", expect!["`` is no domain; expected lower case letters, digits, `-`, `_` or `.`"]);
    check(
        "File:src",
        expect!["`File` is no domain; expected lower case letters, digits, `-`, `_` or `.`"],
    );
    check(
        "file:a/../b",
        expect!["`file:a/../b` has a segment `..`; no segment may be empty, `.` or `..`"],
    );
    check(
        "file:./b",
        expect!["`file:./b` has a segment `.`; no segment may be empty, `.` or `..`"],
    );
    for empty in ["file:/", "file:/a", "file:a/", "file:a//b"] {
        let err = Resource::parse(empty).unwrap_err().to_string();
        assert!(err.contains("has a segment ``"), "{err}");
    }
    check("file:a\u{1b}\n", expect![[r"`file:a\u{1b}\n` holds a control character"]]);
    let (long, deep) = ("a".repeat(RESOURCE_BYTES_MAX), "a/".repeat(RESOURCE_SEGMENTS_MAX));
    check(
        &format!("file:{long}"),
        expect!["a resource key of 4101 bytes; at most 4096 are allowed"],
    );
    check(
        &format!("file:{deep}a"),
        expect!["a resource key of 65 segments; at most 64 are allowed"],
    );
    assert!(Resource::parse(&long.replacen("aaaaa", "file:", 1)).is_ok());
    assert!(Resource::parse(&format!("file:{}", deep.trim_end_matches('/'))).is_ok());
}

#[test]
fn what_cannot_be_known_is_everything() {
    assert!(Footprint::writes("file:../a").is_unknown_write());
    assert_eq!(Footprint::reads("file:a//b"), Footprint::everything(Access::Read));
    let many = |count: usize| {
        (0..count).fold(Footprint::none(), |footprint, number| {
            footprint.and_writes(format!("file:{number}"))
        })
    };
    assert!(!many(FOOTPRINT_KEYS_MAX).is_unknown_write());
    assert!(many(FOOTPRINT_KEYS_MAX + 1).is_unknown_write());
    assert!(many(FOOTPRINT_KEYS_MAX + 1).read_keys().is_empty());
    // Once everything, always everything.
    assert!(Footprint::writes("nonsense").and_writes("file:a").is_unknown_write());
}

#[test]
fn a_footprint_without_keys_conflicts_with_nothing() {
    let [pure, read, write] =
        [Access::Pure, Access::Read, Access::Write].map(Footprint::everything);
    assert!(pure.is_none() && !pure.conflicts(&write) && !write.conflicts(&pure));
    assert!(!read.conflicts(&read) && read.conflicts(&write) && write.conflicts(&write));
    assert!(write.conflicts(&Footprint::reads("file:a")));
}

#[input]
struct Copy {
    from: String,
    to: String,
}

fn paths_of(args: &Copy) -> Footprint {
    assert_ne!(args.from, "panic", "as it was told");
    Footprint::reads(format!("file:{}", args.from)).and_writes(format!("file:{}", args.to))
}

fn copy(access: Access) -> Arc<dyn Tool> {
    let spec = Spec::new("copy", "Copies a file.").access(access);
    let spec = spec.touches(FootprintOf::input("paths_of", paths_of));
    tool_fn(spec, async |_: Copy| Ok::<_, ToolError>(()))
}

fn canon(from: &str, to: &str) -> Canon {
    Canon::of(&json!({ "from": from, "to": to })).unwrap()
}

fn footprint(tool: Arc<dyn Tool>, args: &Canon) -> Result<Footprint, ToolError> {
    let read = tool.spec().hooks.read.clone().unwrap();
    let registered = Registered::new(tool).unwrap();
    let footprint = registered.footprint(args, None)?;
    // What resolving read, and what the hook would read itself, are the same.
    assert_eq!(registered.footprint(args, Some(&read(args).unwrap()))?, footprint);
    Ok(footprint)
}

#[test]
fn a_hook_computes_the_footprint_from_the_arguments() {
    let footprint = footprint(copy(Access::Write), &canon("a", "b/c")).unwrap();
    assert_eq!(footprint, Footprint::reads("file:a").and_writes("file:b/c"));
}

mod paths {
    pub(super) fn of(args: &super::Copy) -> tooltape::Footprint {
        super::paths_of(args)
    }
}

/// Copies a file.
#[tool(Write, touches = paths_of)]
async fn declared(_: Copy) -> Result<(), ToolError> {
    Ok(())
}

/// Copies a file.
#[tool(Write, blocking, touches = paths::of)]
fn declared_elsewhere(_: Copy) -> Result<(), ToolError> {
    Ok(())
}

#[test]
fn an_attribute_names_a_plain_function_that_computes_the_footprint() {
    let names = [(declared::tool(), "paths_of"), (declared_elsewhere::tool(), "paths::of")];
    for (tool, name) in names {
        assert_eq!(tool.spec().hooks.footprint.as_ref().unwrap().name(), name);
        let footprint = footprint(tool, &canon("a", "b/c")).unwrap();
        assert_eq!(footprint, Footprint::reads("file:a").and_writes("file:b/c"));
    }
}

#[test]
fn a_hook_may_work_on_the_arguments_as_json() {
    let to = |args: &Canon| match args.to_value()["to"].as_str() {
        Some(to) => Footprint::writes(format!("file:{to}")),
        None => Footprint::everything(Access::Write),
    };
    let spec = Spec::new("copy", "Copies a file.").touches(FootprintOf::args("to", to));
    let tool = tool_fn(spec, async |_: Copy| Ok::<_, ToolError>(()));
    let footprint = footprint(tool, &canon("a", "b")).unwrap();
    assert_eq!(footprint, Footprint::writes("file:b"));
}

#[test]
fn a_tool_without_a_hook_touches_everything_by_its_access() {
    for access in [Access::Pure, Access::Read, Access::Write] {
        let spec = Spec::new("copy", "Copies a file.").access(access);
        let tool = tool_fn(spec, async |_: Copy| Ok::<_, ToolError>(()));
        let footprint = footprint(tool, &canon("a", "b")).unwrap();
        assert_eq!(footprint, Footprint::everything(access));
    }
}

#[test]
fn a_tool_that_only_reads_and_says_what_it_writes_is_taken_to_write_everything() {
    assert!(footprint(copy(Access::Read), &canon("a", "b")).unwrap().is_unknown_write());
}

#[test]
fn a_pure_tool_touches_nothing_whatever_its_hook_says() {
    assert!(footprint(copy(Access::Pure), &canon("panic", "b")).unwrap().is_none());
}

#[test]
fn a_hook_that_panics_fails_its_call_before_anything_is_executed() {
    let err = footprint(copy(Access::Write), &canon("panic", "b")).unwrap_err();
    let host = format!("{err:?}");
    assert!(host.contains("`paths_of` panicked: ") && host.contains("as it was told"), "{host}");
    let fault = Fault::Failed(err);
    assert_eq!(fault.code(), "footprint.panicked");
    expect!["not executed: what the call would touch is not known"].assert_eq(&fault.told());
}

#[test]
fn a_hook_on_another_type_than_the_tools_makes_it_touch_everything() {
    #[input]
    struct Other {
        #[expect(dead_code, reason = "it is only read")]
        path: String,
    }
    let spec = Spec::new("copy", "Copies a file.").access(Access::Read);
    let hook = FootprintOf::input("other", |_: &Other| Footprint::none());
    let tool = tool_fn(spec.touches(hook), async |_: Copy| Ok::<_, ToolError>(()));
    let footprint = footprint(tool, &canon("a", "b")).unwrap();
    assert_eq!(footprint, Footprint::everything(Access::Read));
}

#[test]
fn a_bound_tool_loses_the_hook_that_would_miss_the_hidden_argument() {
    let fill = |to: &Secret<String>| to.expose().clone().into();
    let bound = bind(copy(Access::Write), "to", fill).unwrap();
    assert!(bound.spec().hooks.footprint.is_none());
}

#[test]
fn a_hook_is_no_part_of_the_definition() {
    let hash = |tool| Registered::new(tool).unwrap().definition();
    let plain = Spec::new("copy", "Copies a file.");
    let plain = tool_fn(plain, async |_: Copy| Ok::<_, ToolError>(()));
    assert_eq!(hash(plain), hash(copy(Access::Write)));
}

#[tokio::test]
async fn a_tool_that_lies_about_its_footprint_is_found_out_by_a_recorder() {
    use tooltape::testing::{Touches, proposals};
    let says_a = || FootprintOf::args("says_a", |_: &Canon| Footprint::writes("file:a"));
    let tool = |name: &str, touched: &'static [&'static str]| {
        let spec = Spec::new(name, "Writes.").touches(says_a());
        tool_fn(spec, move |_: tooltape::Empty, touches: Touches| {
            touched.iter().for_each(|key| touches.writes(key));
            async { Ok::<_, ToolError>(()) }
        })
    };
    let (touches, tape) = (Touches::default(), tooltape::MemoryTape::default());
    let run =
        crate::stage::free([tool("honest", &["file:a/b", "file:a"]), tool("liar", &["file:b"])])
            .grant(touches.clone())
            .tape(tape.clone());
    run.batch(proposals("honest {}\nliar {}")).await.unwrap();
    assert_eq!(touches.lies(&tape.records(run.id())), ["call 2 of `liar` wrote `file:b`"]);
}
