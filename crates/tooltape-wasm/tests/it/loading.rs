//! What is no tool is refused when it is loaded, with a word that says why.

use std::fs;
use std::time::Duration;

use tooltape_wasm::{Compiler, Helper, Wasm, WasmError, WasmLimits};

use crate::guest::Guest;
use crate::world::{block, loaded, refused, wasm};

#[track_caller]
fn check(refused: &WasmError, expected: &str) {
    assert_eq!(refused.to_string(), expected);
}

/// Why these bytes are no component.
fn unread(bytes: &[u8]) -> WasmError {
    block(wasm().read("it.wasm", bytes)).map(drop).expect_err("it should be refused")
}

#[test]
fn what_is_no_wasm_is_refused() {
    let expected = "`it.wasm` is no WASM, expected a component in the binary format";
    for bytes in [&b""[..], b"hello", b"\0as", b"\0asm", b"\0asm\x02\0\0\0", b"(component)"] {
        check(&unread(bytes), expected);
    }
}

#[test]
fn a_core_module_is_refused_with_what_to_do() {
    let refused = unread(&wat::parse_str("(module)").unwrap());
    check(
        &refused,
        "`it.wasm` is a core module, expected a component: build it for `wasm32-wasip2`, or make \
         one of it with `wasm-tools component new`",
    );
}

#[test]
fn a_damaged_component_is_refused() {
    let wasm = Guest::new("cut").wasm();
    let refused = unread(&wasm[..wasm.len() / 2]);
    assert!(matches!(refused, WasmError::Invalid { .. }), "{refused}");
}

#[test]
fn a_component_that_does_nothing_is_refused() {
    let refused = unread(&wat::parse_str("(component)").unwrap());
    check(&refused, "`it.wasm` exports neither `tooltape:tool/tool` nor a function");
}

#[test]
fn another_version_of_the_world_is_refused() {
    for version in ["2.0.0", "1.1.0", "0.9.0"] {
        let export: &'static str = format!("tooltape:tool/tool@{version}").leak();
        check(
            &refused(&Guest { export, ..Guest::new("newer") }),
            &format!(
                "`newer` is made for `tooltape:tool/tool@{version}`, expected `tooltape:tool` in a \
                 version up to 1.0"
            ),
        );
    }
    loaded(&Guest { export: "tooltape:tool/tool@1.0.7", ..Guest::new("patched") });
}

#[test]
fn a_newer_import_is_refused() {
    let guest = Guest::new("newer").imports(
        "tooltape:tool/log@1.3.0",
        "write",
        "(param \"line\" string)",
        "(param i32 i32)",
    );
    assert!(matches!(refused(&guest), WasmError::World { .. }));
}

#[test]
fn imports_that_nobody_gives_are_refused_with_the_whole_list() {
    let guest = Guest::new("reach")
        .imports("wasi:sockets/tcp@0.2.0", "connect", "", "")
        .imports("wasi:http/outgoing-handler@0.2.0", "handle", "", "")
        .imports("evil:host/shell@1.0.0", "run", "", "");
    check(
        &refused(&guest),
        "`reach` imports more than it may: `evil:host/shell@1.0.0` (no component is given that), \
         `wasi:http/outgoing-handler@0.2.0` (no component is given that), \
         `wasi:sockets/tcp@0.2.0` (no component is given that)",
    );
}

#[test]
fn imports_that_are_not_declared_are_refused_with_the_whole_list() {
    let guest = Guest::new("sneak")
        .imports("tooltape:tool/clock@1.0.0", "now-us", "(result u64)", "(result i64)")
        .imports("tooltape:tool/random@1.0.0", "next-u64", "(result u64)", "(result i64)");
    check(
        &refused(&guest),
        "`sneak` imports more than it may: `tooltape:tool/clock@1.0.0` (it does not declare the \
         right `clock:read:now`), `tooltape:tool/random@1.0.0` (it does not declare the right \
         `random:read:any`)",
    );
}

#[test]
fn state_is_not_for_what_says_that_it_is_pure() {
    let state = |access| {
        Guest { access, ..Guest::new("keep") }.imports(
            "tooltape:tool/state@1.0.0",
            "delete",
            "(param \"key\" string) (result (result (error string)))",
            "(param i32 i32 i32)",
        )
    };
    check(
        &refused(&state(0)),
        "`keep` imports more than it may: `tooltape:tool/state@1.0.0` (it does not declare the \
         access `read` or `write`)",
    );
    loaded(&state(1));
}

#[test]
fn an_import_of_another_type_is_refused() {
    let guest = Guest::new("odd").needs("clock:read:now").imports(
        "tooltape:tool/clock@1.0.0",
        "now-us",
        "(result u32)",
        "(result i32)",
    );
    assert!(matches!(refused(&guest), WasmError::Invalid { .. }));
    let guest = Guest::new("odd").needs("clock:read:now").imports(
        "tooltape:tool/clock@1.0.0",
        "tomorrow",
        "(result u64)",
        "(result i64)",
    );
    assert!(matches!(refused(&guest), WasmError::Invalid { .. }));
}

#[test]
fn a_bad_schema_is_refused() {
    let guest = Guest { input: "{".to_owned(), ..Guest::new("bad") };
    let why = "EOF while parsing an object at line 1 column 1";
    check(&refused(&guest), &format!("`bad` does not describe itself: `input` is no JSON: {why}"));
    for (input, output) in [
        (r#"{"type":"string"}"#, None),
        (r#"{"type":"object","properties":{"a":{"type":"nonsense"}}}"#, None),
        (r#"{"type":"object"}"#, Some(r#"{"type":7}"#)),
    ] {
        let output = output.map(str::to_owned);
        let refused = refused(&Guest { input: input.to_owned(), output, ..Guest::new("bad") });
        assert!(matches!(refused, WasmError::Spec { .. }), "{refused}");
    }
    let long = format!("{{\"type\":\"object\",\"title\":\"{}\"}}", "x".repeat(2 << 20));
    let guest = Guest { input: long, pages: 64, ..Guest::new("bad") };
    assert!(refused(&guest).to_string().contains("`input` has 2097"), "{}", refused(&guest));
    let guest = Guest { output: Some("3".to_owned()), ..Guest::new("bad") };
    let expected = "`bad` does not describe itself: `output` is no schema, expected an object";
    check(&refused(&guest), expected);
}

#[test]
fn a_bad_name_or_version_is_refused() {
    assert!(matches!(refused(&Guest::new("no name")), WasmError::Spec { .. }));
    let guest = Guest { version: "first", ..Guest::new("named") };
    assert!(matches!(refused(&guest), WasmError::Spec { .. }));
}

#[test]
fn needs_must_be_rights_that_a_component_can_use() {
    check(
        &refused(&Guest::new("bad").needs("process:run:/bin/sh")),
        "`bad` does not describe itself: `needs` names `process:run:/bin/sh`, which no component \
         can use",
    );
    let refused = refused(&Guest::new("bad").needs("everything"));
    assert!(matches!(refused, WasmError::Describe { .. }), "{refused}");
}

#[test]
fn bounds_beyond_all_measure_are_refused() {
    let bounds = [None, None, Some(u64::MAX), None];
    check(
        &refused(&Guest { bounds, ..Guest::new("greedy") }),
        "`greedy` does not describe itself: `bounds.fuel` is 18446744073709551615, expected 1 to \
         1000000000000",
    );
    let bounds = [Some(0), None, None, None];
    let expected =
        "`greedy` does not describe itself: `bounds.wall-ms` is 0, expected 1 to 3600000";
    check(&refused(&Guest { bounds, ..Guest::new("greedy") }), expected);
}

#[test]
fn describing_that_traps_or_never_returns_is_refused() {
    check(
        &refused(&Guest { describe: Some("unreachable"), ..Guest::new("trap") }),
        "`trap` does not describe itself: the component was stopped: wasm trap: wasm \
         `unreachable` instruction executed",
    );
    let endless = "(loop $again (br $again)) unreachable";
    check(
        &refused(&Guest { describe: Some(endless), ..Guest::new("endless") }),
        "`endless` does not describe itself: the bound `fuel` of 100000000 units was reached, \
         100000000 units used",
    );
    let (mut limits, wall) = (WasmLimits::default(), Duration::from_millis(20));
    (limits.describe_wall, limits.describe_fuel) = (wall, u64::MAX);
    let wasm = Wasm::new(Compiler::InProcess, limits).unwrap();
    let guest = Guest { describe: Some(endless), ..Guest::new("endless") };
    let refused = block(wasm.read("endless", &guest.wasm())).map(drop).unwrap_err();
    check(&refused, "`endless` does not describe itself: it took longer than the bound of 20 ms");
    let nowhere = Guest { describe: Some("i32.const 100000000"), ..Guest::new("nowhere") };
    assert!(matches!(crate::world::refused(&nowhere), WasmError::Describe { .. }));
}

#[test]
fn a_call_of_another_type_is_refused() {
    let ty = r#"(param "arguments" string) (result u32)"#;
    let refused = refused(&Guest { ty, ..Guest::new("odd") });
    assert!(matches!(refused, WasmError::Describe { .. }), "{refused}");
}

#[test]
fn what_runs_when_a_component_begins_is_bounded_too() {
    let more = "(func $start (loop $again (br $again))) (start $start)";
    let refused = refused(&Guest { more: more.into(), ..Guest::new("start") });
    assert!(refused.to_string().contains("the bound `fuel`"), "{refused}");
}

#[test]
fn features_that_are_off_are_refused() {
    for (what, module) in [
        ("threads", r#"(module (memory 1 1 shared))"#),
        ("memory64", r#"(module (memory i64 1))"#),
        (
            "relaxed SIMD",
            r#"(module (func (result v128) (i8x16.relaxed_swizzle
                (v128.const i64x2 0 0) (v128.const i64x2 0 0))))"#,
        ),
        (
            "GC",
            r#"(module (type $s (struct (field i32))) (func (result (ref $s))
            (struct.new $s (i32.const 1))))"#,
        ),
        ("exceptions", r#"(module (tag $e) (func (throw $e)))"#),
    ] {
        let text = format!("(component (core {}", module.trim_start_matches('('));
        let wasm = wat::parse_str(format!("{text})")).unwrap();
        assert!(matches!(unread(&wasm), WasmError::Invalid { .. }), "{what}");
    }
}

#[test]
fn files_that_are_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let load = |path: &std::path::Path| block(wasm().load(path)).map(drop).unwrap_err();
    assert!(matches!(load(folder.path()), WasmError::Unreadable { .. }));
    assert!(matches!(load(&folder.path().join("none")), WasmError::Unreadable { .. }));
    #[cfg(unix)]
    assert!(matches!(load("/dev/zero".as_ref()), WasmError::Unreadable { .. }));
    let path = folder.path().join("large.wasm");
    fs::write(&path, Guest::new("large").wasm()).unwrap();
    let mut limits = WasmLimits::default();
    limits.component_bytes = 100;
    let wasm = Wasm::new(Compiler::InProcess, limits).unwrap();
    let refused = block(wasm.load(&path)).map(drop).unwrap_err();
    assert!(matches!(refused, WasmError::TooLarge { limit: 100, .. }), "{refused}");
}

#[test]
fn a_component_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tool.wasm");
    let guest = Guest::new("tool").needs("clock:read:now").imports(
        "tooltape:tool/clock@1.0.0",
        "now-us",
        "(result u64)",
        "(result i64)",
    );
    fs::write(&path, guest.wasm()).unwrap();
    let component = block(wasm().load(&path)).unwrap();
    assert_eq!(component.name(), path.display().to_string());
    assert_eq!(component.hash(), blake3::hash(&guest.wasm()).to_hex().as_str());
    assert_eq!(component.bytes(), guest.wasm().len() as u64);
    let imports: Vec<_> =
        component.imports().iter().map(|it| (it.to_string(), it.kind.word())).collect();
    let expected = [("tooltape:tool/clock@1.0.0", "clock"), ("tooltape:tool/types@1.0.0", "quiet")];
    assert_eq!(imports, expected.map(|(name, word)| (name.to_owned(), word)));
    assert_eq!(component.tools().len(), 1);
    assert!(!component.is_from_cache());
}

#[test]
fn a_file_that_is_known_by_its_hash_is_loaded_and_any_other_is_not_even_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known.wasm");
    fs::write(&path, Guest::new("known").wasm()).unwrap();
    let component = block(wasm().load(&path)).unwrap();
    let hash = component.hash();
    assert_eq!(block(wasm().load_known(&path, hash)).unwrap().hash(), hash);

    // Nobody is there to compile it, and nobody is asked to.
    let nobody = Compiler::Helper(Helper::new("/nonexistent/compiler", [""; 0]));
    let nobody = Wasm::new(nobody, WasmLimits::default()).unwrap();
    fs::write(&path, Guest::new("other").wasm()).unwrap();
    let changed = block(nobody.load_known(&path, hash)).map(drop).unwrap_err();
    let other = loaded(&Guest::new("other"));
    let (name, found) = (path.display(), other.hash());
    check(&changed, &format!("`{name}` has changed: its hash is `{found}`, expected `{hash}`"));
    assert!(matches!(changed, WasmError::Changed { .. }));
    let compiled = block(nobody.load_known(&path, found)).map(drop).unwrap_err();
    assert!(matches!(compiled, WasmError::Compile { .. }), "{compiled}");
}
