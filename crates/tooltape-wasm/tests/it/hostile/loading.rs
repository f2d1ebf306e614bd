//! What is no tool, and tools that are refused before they are one.

use std::time::Duration;

use tooltape_wasm::{Compiler, Helper, Wasm, WasmLimits};

use super::crafted::{Crafted, Import};
use super::interfaces::{CLOCK, FILES, HTTP, LOG, POLL, RANDOM, STATE, WASI_RANDOM};
use super::{World, ended, refused, small};

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|err| panic!("{err}\n{text}"))
}

fn importing(imports: &'static [Import]) -> Vec<u8> {
    Crafted { imports, ..Crafted::default() }.bytes()
}

#[tokio::test]
async fn what_is_no_component_is_told_apart() {
    let sound = Crafted::default().bytes();
    let with = |more: &[u8]| [sound.as_slice(), more].concat();
    // A custom section of two mebibytes: valid, and too large.
    let padded = with(&[&[0, 0x80, 0x80, 0x80, 1][..], &vec![0; 2 << 20]].concat());
    let preview1 = r#"(module (import "wasi_snapshot_preview1" "fd_renumber"
        (func (param i32 i32) (result i32))))"#;
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("nothing", Vec::new(), "not wasm"),
        ("a text", b"(component)".to_vec(), "not wasm"),
        ("an ELF file", b"\x7fELF\x02\x01\x01".to_vec(), "not wasm"),
        ("half of the first word", b"\0as".to_vec(), "not wasm"),
        ("a component of the future", b"\0asm\x0e\0\x01\0".to_vec(), "not wasm"),
        ("a core module", component("(module)"), "core module"),
        ("a core module with files", component(preview1), "core module"),
        ("a component with nothing in it", component("(component)"), "no tool"),
        ("a component and rubbish", with(&[0xff; 9]), "invalid"),
        ("a component and half a section", with(&[1, 0xff, 0xff, 0xff, 0x0f]), "invalid"),
        ("two components", with(&sound), "invalid"),
        ("more than may be loaded", padded, "too large"),
        ("components in components", nested(5_000), "no tool"),
        ("a tool without `call`", component(HALF), "describe"),
        ("a tool whose `describe` says a number", component(NUMBER), "describe"),
    ];
    let world = World::new();
    for (what, bytes, expected) in &cases {
        let err = world.load(bytes).await.err().unwrap_or_else(|| panic!("{what} was loaded"));
        let end = refused(&err);
        assert!(end.starts_with(&format!("refused as {expected}")), "{what}: `{end}`");
    }
    println!("hostile: {} cases", cases.len());
}

/// Components, each with nothing in it but the next.
fn nested(depth: usize) -> Vec<u8> {
    let mut inside_out = vec![component("(component)")];
    let mut length = inside_out[0].len();
    for _ in 0..depth {
        let mut header = b"\0asm\x0d\0\x01\0\x04".to_vec();
        let mut rest = length;
        while rest >= 0x80 {
            header.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        header.push(u8::try_from(rest).unwrap());
        length += header.len();
        inside_out.push(header);
    }
    inside_out.reverse();
    inside_out.concat()
}

const HALF: &str = r#"(component
    (core module $M (func (export "f") (result i32) (i32.const 0)))
    (core instance $m (instantiate $M))
    (func $f (result u32) (canon lift (core func $m "f")))
    (instance $tool (export "describe" (func $f)))
    (export "tooltape:tool/tool@1.0.0" (instance $tool)))"#;

const NUMBER: &str = r#"(component
    (core module $M (func (export "f") (result i32) (i32.const 0)))
    (core instance $m (instantiate $M))
    (func $f (result u32) (canon lift (core func $m "f")))
    (instance $tool (export "describe" (func $f)) (export "call" (func $f)))
    (export "tooltape:tool/tool@1.0.0" (instance $tool)))"#;

#[tokio::test]
async fn a_component_cut_anywhere_is_refused() {
    let (world, sound) = (World::new(), Crafted::default().bytes());
    let mut whole = Vec::new();
    for length in 0..sound.len() {
        match world.load(&sound[..length]).await {
            Ok(component) => whole.push((length, ended(&world.call(&component).await))),
            Err(err) => assert!(refused(&err).starts_with("refused as"), "{length}: {err}"),
        }
    }
    // Only the names of things, which come last and mean nothing, can be missing.
    assert!(whole.len() <= 1, "{whole:?}");
    assert!(whole.iter().all(|(_, end)| end == "answered 1"), "{whole:?}");
}

#[tokio::test]
async fn imports_that_were_not_declared_are_refused_and_listed() {
    let sockets = Import {
        instance: r#"(import "wasi:sockets/tcp@0.2.6" (instance))
            (import "wasi:http/outgoing-handler@0.2.6" (instance))
            (import "evil:thing/here" (instance))
            (import "wasi:cli/run@0.3.0" (instance))
            (import "plain" (func))"#,
        functions: &[],
    };
    let unknown = importing(Box::leak(Box::new([sockets])));
    let world = World::new();
    let end = refused(&world.load(&unknown).await.err().unwrap());
    for import in ["wasi:sockets/tcp@0.2.6", "wasi:http/", "evil:thing/here", "cli/run", "plain"] {
        assert!(end.starts_with("refused as imports") && end.contains(import), "{import}: {end}");
    }
    let undeclared: [(&'static [Import], &str); 7] = [
        (&[CLOCK], "tooltape:tool/clock"),
        (&[POLL], "wasi:clocks/monotonic-clock"),
        (&[RANDOM], "tooltape:tool/random"),
        (&[WASI_RANDOM], "wasi:random/random"),
        (&[STATE], "tooltape:tool/state"),
        (&[FILES], "tooltape:tool/files"),
        (&[HTTP], "tooltape:tool/http"),
    ];
    for (imports, name) in undeclared {
        let end = refused(&world.load(&importing(imports)).await.err().unwrap());
        assert!(end.starts_with("refused as imports") && end.contains(name), "{name}: {end}");
    }
    println!("hostile: 12 cases");
}

#[tokio::test]
async fn other_worlds_are_refused_by_their_version() {
    let world = World::new();
    for version in ["2.0.0", "1.1.0", "0.9.0", "1.0.0-next"] {
        let end = world.end(&Crafted { world: version, ..Crafted::default() }).await;
        assert!(end.starts_with("refused as world"), "{version}: {end}");
        assert!(end.contains(version), "{version}: {end}");
    }
}

#[tokio::test]
async fn what_could_differ_between_machines_is_no_part_of_wasm_here() {
    let world = World::new();
    let module = |fields: &str| component(&format!("(component (core module {fields}))"));
    let features = [
        ("threads", module("(memory 1 1 shared)")),
        (
            "atomics",
            module(
                "(memory 1 1 shared) (func (param i32) (result i32)
                    (i32.atomic.rmw.add (local.get 0) (i32.const 1)))",
            ),
        ),
        (
            "relaxed SIMD",
            module(
                "(func (param v128 v128 v128) (result v128) (f32x4.relaxed_madd
                    (local.get 0) (local.get 1) (local.get 2)))",
            ),
        ),
        ("memories of 64 bits", module("(memory i64 1)")),
        ("pages of any size", module("(memory 1 (pagesize 1))")),
        ("other stacks", module("(type $f (func)) (type $c (cont $f))")),
    ];
    for (feature, bytes) in &features {
        let end = refused(&world.load(bytes).await.err().unwrap_or_else(|| panic!("{feature}")));
        assert!(end.starts_with("refused as invalid"), "{feature}: {end}");
    }
    println!("hostile: {} cases", features.len());
}

#[tokio::test]
async fn a_tool_that_describes_itself_badly_is_refused() {
    let sound = Crafted::default;
    let named = |name| Crafted { name, ..sound() };
    let schema = |input| Crafted { input, ..sound() };
    let describing = |describe| Crafted { describe, ..sound() };
    let starting = |fields| Crafted { fields, ..sound() };
    let spin = "(loop (br 0)) (unreachable)";
    let (describe, spec) = ("refused as describe", "refused as spec");
    World::new()
        .check(&[
            ("never", describing(spin), describe),
            ("with a trap", describing("(unreachable)"), describe),
            (
                "with all memory",
                describing("(loop (drop (memory.grow (i32.const 1))) (br 0)) (unreachable)"),
                describe,
            ),
            (
                "with a flood of the log",
                Crafted {
                    imports: &[LOG],
                    describe: "(loop (call $log (i32.const 1024) (i32.const 0)) (br 0))
                        (unreachable)",
                    ..sound()
                },
                describe,
            ),
            (
                "never, since it never starts",
                starting("(func $s (loop (br 0))) (start $s)"),
                describe,
            ),
            (
                "with a trap when it starts",
                starting("(func $s (unreachable)) (start $s)"),
                describe,
            ),
            ("deeply when it starts", starting("(func $s (call $s)) (start $s)"), describe),
            ("without a name", named(""), "refused as"),
            ("with a name of two words", named("two words"), "refused as"),
            ("with a name of two lines", named("two\nlines"), "refused as"),
            ("with a name that reads backwards", named("\u{202e}pir"), "refused as"),
            ("with the name of a path", named("../../etc/passwd"), "refused as"),
            ("with a schema that is no JSON", schema("{"), "refused as"),
            ("with a schema of a number", schema("7"), "refused as"),
            ("with a schema of a list", schema(r#"{"type": "array"}"#), spec),
            ("with a type that there is not", schema(r#"{"type": "thing"}"#), spec),
            (
                "with a schema from elsewhere",
                schema(r#"{"type": "object", "$ref": "https://example.com/schema"}"#),
                spec,
            ),
            (
                "with a right to everything",
                Crafted { needs: &["everything"], ..sound() },
                "refused as",
            ),
            (
                "with a right to all files",
                Crafted { needs: &["fs:read:/"], ..sound() },
                "refused as",
            ),
            (
                "with more rights than there are",
                Crafted { needs: &["fs:read:data"; 65], ..sound() },
                "refused as",
            ),
            ("without fuel", Crafted { bounds: [None, None, Some(0), None], ..sound() }, describe),
        ])
        .await;
}

#[tokio::test]
async fn more_instances_memories_and_tables_than_may_be_are_refused() {
    let repeated = |text: &str, count: usize| -> &'static str { text.repeat(count).leak() };
    let instances =
        format!("(core module $Empty) {}", "(core instance (instantiate $Empty))".repeat(200));
    let outer: &'static str = instances.leak();
    let fields = |fields| Crafted { fields, ..Crafted::default() };
    World::new()
        .check(&[
            ("instances", Crafted { outer, ..Crafted::default() }, "refused as"),
            ("memories", fields(repeated("(memory 0)", 20)), "refused as"),
            ("tables", fields(repeated("(table 0 funcref)", 90)), "refused as"),
            ("a table at once", fields("(table 100000 funcref)"), "refused as"),
        ])
        .await;
}

/// A component of which little makes much work: a function of many values that are all needed at
/// its end.
fn bomb() -> Vec<u8> {
    const VALUES: usize = 2_000;
    let locals = "(local i64)".repeat(VALUES);
    let mixes: String = (0..20 * VALUES)
        .map(|step| {
            let (a, b) = (step % VALUES, (step * 7 + 3) % VALUES);
            format!("(local.set {a} (i64.mul (local.get {a}) (local.get {b})))")
        })
        .collect();
    component(&format!("(component (core module (func {locals} (loop {mixes} (br 0)))))"))
}

#[cfg(unix)]
#[tokio::test]
async fn a_compiler_that_is_led_astray_is_stopped() {
    let helper = Helper::new(env!("CARGO_BIN_EXE_tooltape-wasm-compile"), [""; 0]);
    let load = async |bytes: &[u8], change: fn(&mut WasmLimits)| {
        let mut limits = small();
        limits.component_bytes = 16 << 20;
        change(&mut limits);
        let wasm = Wasm::new(Compiler::Helper(helper.clone()), limits).unwrap();
        refused(&wasm.read("bomb", bytes).await.err().unwrap())
    };
    let end = load(&bomb(), |limits| limits.compile_wall = Duration::from_millis(200)).await;
    assert!(end.starts_with("refused as compile") && end.contains("200 ms"), "{end}");
    let end = load(&bomb(), |limits| limits.compile_memory = 32 << 20).await;
    assert!(end.starts_with("refused as compile") && end.contains("memory"), "{end}");
    let sound = Crafted::default().bytes();
    let end = load(&sound, |limits| limits.artifact_bytes = 1_000).await;
    assert!(end.starts_with("refused as compile") && end.contains("1000 bytes"), "{end}");
}
