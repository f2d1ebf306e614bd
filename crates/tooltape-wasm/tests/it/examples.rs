//! The components of `examples/wasm`: what they do, and that their sources still make them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::{Value, json};
use tooltape::{BoxFuture, Call, Grant, Proposal, Reply, Rights, Run, ToolError, Toolbox, Verdict};
use tooltape_wasm::{
    Compiler, Component, Files, FolderEntry, HostFiles, HostWeb, Import, ImportKind, Page, Trouble,
    Wasm, WasmLimits, Web,
};

/// The components that are committed.
const NAMES: [&str; 4] = ["check_links", "json_query", "spin", "word_count"];
/// The most bytes of each of them.
const COMPONENT_BYTES_MAX: u64 = 300_000;

/// What a call is to give: each example beside arguments and a reply, as far as it is always so.
fn expected() -> Vec<(&'static str, Value, Value)> {
    let books = r#"{"books": [{"title": "Emma", "price": 8.5}, {"title": "Ulysses"}]}"#;
    let query = "/books/*[/price<10]/title";
    let found = json!([{ "at": "/books/0/title", "value": "Emma" }]);
    let links = json!([
        { "link": "data/books.md", "state": "fine" },
        { "link": "data/gone.md", "state": "broken", "why": "`data/gone.md` is not there" },
        { "link": "https://example.com/", "state": "fine" },
        { "link": "https://example.com/never", "state": "unknown", "why": "no answer" },
        { "link": "../../x", "state": "broken", "why": "leads out" },
    ]);
    let fuel = 100_000_000;
    vec![
        (
            "word_count",
            json!({ "text": "to be\nor not" }),
            json!({ "lines": 2, "words": 4, "characters": 12 }),
        ),
        ("word_count", json!({ "text": "" }), json!({ "lines": 0, "words": 0, "characters": 0 })),
        (
            "json_query",
            json!({ "json": books, "query": query }),
            json!({ "count": 1, "matches": found }),
        ),
        ("json_query", json!({ "json": books, "query": "books" }), json!("query")),
        ("json_query", json!({ "json": "[".repeat(1_000), "query": "" }), json!("json")),
        ("spin", json!({}), json!({ "bound": "fuel", "limit": fuel, "used": fuel })),
        ("check_links", json!({ "path": "data/index.md" }), links),
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wasm")
}

fn wasm() -> Wasm {
    Wasm::new(Compiler::InProcess, WasmLimits::default()).unwrap()
}

/// What came of a call: the value, the bound, or the code of a failure.
async fn call(component: &Component, args: &Value) -> Value {
    let mut toolbox = Toolbox::default();
    component.register(&mut toolbox).unwrap();
    let run = Run::new(&toolbox)
        .grant(HostFiles::new(Shelf))
        .grant(HostWeb::new(Shelf))
        .rights("fs:read:data\nnet:get:example.com".parse().unwrap())
        .policy(|_: &Call| Verdict::allow("everything"));
    let name = component.tools()[0].spec().name.to_string();
    let proposals = vec![Proposal::new("call_1", name, args.to_string())];
    let reply: Reply = run.batch(proposals).await.unwrap().remove(0);
    match (&reply.fault, &reply.value) {
        (Some(fault), _) if fault.bound.is_some() => {
            json!({ "bound": fault.bound, "limit": fault.limit, "used": fault.used })
        }
        (Some(fault), _) => json!(*fault.code),
        (None, value) => serde_json::from_str(&value.as_ref().unwrap().to_string()).unwrap(),
    }
}

#[tokio::test]
async fn the_examples_do_what_they_say_and_import_what_they_use() {
    let wasm = wasm();
    let used = |import: &&Import| import.kind != ImportKind::Quiet;
    for name in NAMES {
        let component = wasm.load(folder().join(format!("{name}.wasm"))).await.unwrap();
        assert!(component.bytes() <= COMPONENT_BYTES_MAX, "{name}: {} bytes", component.bytes());
        let words: Vec<&str> =
            component.imports().iter().filter(used).map(|it| it.kind.word()).collect();
        match name {
            "check_links" => assert_eq!(words, ["cancel", "files", "http", "progress"]),
            _ => assert_eq!(words, [""; 0], "{name}"),
        }
        for (_, args, expected) in expected().into_iter().filter(|(it, ..)| *it == name) {
            assert_eq!(call(&component, &args).await, expected, "{name} {args}");
        }
    }
}

/// What its bounds were chosen for: no query of no document that it takes gets near to them.
#[tokio::test]
async fn json_query_has_fuel_and_memory_for_the_worst_that_it_takes() {
    let component = wasm().load(folder().join("json_query.wasm")).await.unwrap();
    let mut toolbox = Toolbox::default();
    component.register(&mut toolbox).unwrap();
    let bounds = &component.tools()[0].spec().bounds;
    let list = |element: &str| {
        let elements = element.repeat(990_000 / element.len());
        format!("[{elements}0]")
    };
    let flat = list("0,");
    let deep = list(&format!("{}0{},", "[".repeat(120), "]".repeat(120)));
    for (json, query) in [
        (&flat, "/**/*".repeat(31)),
        (&flat, format!("/**{}", "[>=0]".repeat(62))),
        (&deep, format!("/**[{}]", "/0".repeat(61))),
        (&deep, "/**".repeat(63)),
    ] {
        let args = json!({ "json": json, "query": query, "most": 0 }).to_string();
        let proposals = vec![Proposal::new("call_1", "json_query", args)];
        let reply = Run::new(&toolbox).batch(proposals).await.unwrap().remove(0);
        assert!(!reply.is_error, "{query}: {:?}", reply.fault);
        let used = reply.details.as_ref().unwrap();
        for (name, bound) in [("fuel", bounds.fuel), ("memory", bounds.memory)] {
            let (used, bound) = (used[name].as_u64().unwrap(), bound.or(0).unwrap());
            assert!(used < bound / 10 * 6, "{query}: {used} of {bound} {name}");
        }
    }
}

#[tokio::test]
async fn the_sources_of_the_examples_make_the_components_that_are_committed() {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rebuilt");
    // The template for new tools is built with the same dependencies.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let mut build = Command::new(folder().join("build"));
    build.arg(&built).env("CARGO_TARGET_DIR", target).env_remove("RUSTFLAGS");
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wasm = wasm();
    let mut same = 0;
    for name in NAMES {
        let file = format!("{name}.wasm");
        let committed = wasm.load(folder().join(&file)).await.unwrap();
        let rebuilt = wasm.load(built.join(&file)).await.unwrap();
        same += usize::from(committed.hash() == rebuilt.hash());
        assert_eq!(committed.imports(), rebuilt.imports(), "{name}");
        let spec = |component: &Component| {
            let spec = component.tools()[0].spec();
            json!([spec.name, spec.version, spec.description, spec.input, spec.bounds])
        };
        assert_eq!(spec(&committed), spec(&rebuilt), "{name}");
        for (_, args, expected) in expected().into_iter().filter(|(it, ..)| *it == name) {
            assert_eq!(call(&rebuilt, &args).await, expected, "{name} {args}");
        }
        let text = fs::read(built.join(&file)).unwrap();
        let text = String::from_utf8_lossy(&text);
        for variable in ["CARGO_MANIFEST_DIR", "HOME", "CARGO_HOME"] {
            let Ok(path) = env::var(variable) else { continue };
            assert!(!text.contains(&path), "{name} holds the path of `{variable}`");
        }
    }
    println!(
        "rebuilt: {same} of {} components have the very bytes that are committed",
        NAMES.len()
    );
}

#[tokio::test]
async fn a_tool_in_javascript_builds_and_imports_nothing() {
    let folder = folder().join("javascript");
    let output = Command::new(folder.join("build")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let component = wasm().load(folder.join("built/pick_version.wasm")).await.unwrap();
    let kinds = component.imports().iter().map(|import| import.kind);
    assert!(kinds.clone().all(|kind| kind == ImportKind::Quiet), "{:?}", component.imports());
    let args = json!({ "versions": ["1.9.0", "2.0.0", "1.10.0"], "range": "^1.3.0" });
    let picked = json!({ "picked": "1.10.0", "others": ["2.0.0"] });
    for _ in 0..3 {
        assert_eq!(call(&component, &args).await, picked);
    }
    let args = json!({ "versions": ["one"], "range": "*" });
    assert_eq!(call(&component, &args).await, json!("tool.failed"));
    println!("javascript: {} bytes, {:?}", component.bytes(), component.imports());
}

/// A folder with a page in it, and a host with another.
#[derive(Clone)]
struct Shelf;

impl Grant for Shelf {}

impl Files for Shelf {
    fn read<'a>(
        &'a self,
        path: &'a str,
        _: u64,
        _: u32,
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        let page = "[a](books.md) [b](gone.md) [c](https://example.com/) [d](../../x) \
            [e](https://example.com/never)";
        let missing = || ToolError::not_done(format!("`{path}` is not there"));
        let found = match path {
            "data/index.md" => Ok(page.as_bytes().to_vec()),
            "data/books.md" => Ok(b"#".to_vec()),
            _ => Err(missing()),
        };
        Box::pin(async { found })
    }

    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<FolderEntry>, ToolError>> {
        Box::pin(async move { Err(ToolError::not_done(format!("`{path}` is no folder"))) })
    }

    fn write<'a>(&'a self, _: &'a str, _: Vec<u8>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { Err(ToolError::not_done("it is to be read")) })
    }
}

impl Web for Shelf {
    fn get<'a>(
        &'a self,
        url: &'a str,
        _: u32,
        _: &'a Rights,
    ) -> BoxFuture<'a, Result<Page, Trouble>> {
        Box::pin(async move {
            if url.ends_with("/never") {
                return Err(Trouble { message: "no answer".to_owned(), request_sent: true });
            }
            let (url, body) = (url.to_owned(), b"x".to_vec());
            Ok(Page { url, status: 200, content_type: None, body, truncated: true })
        })
    }
}
