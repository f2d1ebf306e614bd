//! A component is a tool: it is described, called, and its answer is the reply.

use tooltape::{Access, Determinism, Enforced, Executed, FaultKind, Repeat};
use tooltape_wasm::limits::LOG_BYTES_MAX;

use crate::guest::{Guest, escaped};
use crate::world::{called, loaded, toolbox};

/// A guest that answers with this text.
fn answering(name: &'static str, text: &str) -> Guest {
    let more = format!("(data (i32.const 65536) \"{}\")", escaped(text.as_bytes()));
    let body = format!("(call $ok (i32.const 65536) (i32.const {}))", text.len());
    Guest { more, ..Guest::new(name).body(body) }
}

#[test]
fn a_component_answers() {
    let reply = called(&Guest::new("answer"), "{}");
    assert_eq!(reply.text(), "{}");
    assert_eq!((reply.executed, reply.enforced_by), (Executed::Executed, Enforced::Wasm));
    assert!(reply.proven);
}

#[test]
fn a_component_reads_the_canonical_arguments() {
    let guest = Guest::new("echo").body("(call $ok (local.get $at) (local.get $length))");
    let reply = called(&guest, r#" { "b" : 1.0, "a": "\u00e9" } "#);
    assert_eq!(reply.text(), r#"{"a":"é","b":1}"#);
}

#[test]
fn what_is_no_json_is_no_result() {
    for text in ["", "{", "hello", "NaN", "{} {}", "\u{0}"] {
        let reply = called(&answering("bad", text), "{}");
        assert_eq!(&*reply.fault.as_ref().unwrap().code, "output.malformed", "{text:?}");
    }
    let twice = called(&answering("bad", r#"{"a":1,"a":2}"#), "{}");
    assert!(twice.is_error, "{}", twice.text());
}

#[test]
fn a_result_that_breaks_its_schema_is_no_result() {
    let output = Some(r#"{"type":"object","required":["count"]}"#.to_owned());
    let reply = called(&Guest { output: output.clone(), ..Guest::new("bad") }, "{}");
    assert!(reply.is_error, "{}", reply.text());
    let reply = called(&Guest { output, ..answering("good", r#"{"count":3}"#) }, "{}");
    assert_eq!(reply.text(), r#"{"count":3}"#);
}

#[test]
fn a_trap_settles_the_call_and_no_more() {
    for (body, why) in [
        ("unreachable", "wasm `unreachable` instruction executed"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "integer divide by zero"),
        ("(i32.load (i32.const -8))", "out of bounds memory access"),
    ] {
        let reply = called(&Guest::new("trap").body(body), "{}");
        let fault = reply.fault.as_ref().unwrap();
        assert_eq!((fault.kind, &*fault.code), (FaultKind::Failed, "trap"));
        assert_eq!(reply.text(), format!("failed: the component was stopped: wasm trap: {why}"));
    }
}

#[test]
fn a_failure_says_who_acts_next() {
    for (kind, executed, word) in [
        (0, Executed::Executed, FaultKind::Failed),
        (1, Executed::NotExecuted, FaultKind::Failed),
        (2, Executed::NotExecuted, FaultKind::Failed),
        (3, Executed::NotExecuted, FaultKind::Failed),
        (4, Executed::Unknown, FaultKind::Cancelled),
    ] {
        let more = "(data (i32.const 65536) \"no.such\")".to_owned();
        let body = format!(
            "(call $fail (i32.const {kind}) (i64.const 5) (i32.const 65536) (i32.const 7))"
        );
        let reply = called(&Guest { more, ..Guest::new("fail").body(body) }, "{}");
        let fault = reply.fault.as_ref().unwrap();
        assert_eq!((fault.kind, reply.executed), (word, executed), "{kind}");
        assert_eq!(&*fault.code, "no.such");
    }
}

#[test]
fn what_it_imports_decides_its_effects() {
    let effects = |guest: &Guest| {
        let toolbox = toolbox(&loaded(guest));
        let tool = toolbox.get(guest.name).unwrap();
        let effects = &tool.spec().effects;
        (effects.access, effects.determinism, effects.repeat, tool.is_proven())
    };
    let pure = (Access::Pure, Determinism::Deterministic, Repeat::Idempotent, true);
    assert_eq!(effects(&Guest { access: 2, ..Guest::new("boast") }), pure);
    let clock = Guest::new("clock").needs("clock:read:now").imports(
        "wasi:clocks/monotonic-clock@0.2.3",
        "now",
        "(result u64)",
        "(result i64)",
    );
    let bounded = (Access::Pure, Determinism::Bounded, Repeat::Idempotent, true);
    assert_eq!(effects(&clock), bounded);
    let list = |right, access| {
        Guest { access, ..Guest::new("files") }.needs(right).imports(
            "tooltape:tool/files@1.0.0",
            "write",
            "(param \"path\" string) (param \"content\" (list u8)) \
             (result (result (error string)))",
            "(param i32 i32 i32 i32 i32)",
        )
    };
    let read = (Access::Read, Determinism::NonDeterministic, Repeat::Idempotent, false);
    assert_eq!(effects(&list("fs:read:data", 0)), read);
    let write = (Access::Write, Determinism::NonDeterministic, Repeat::Once, false);
    assert_eq!(effects(&list("fs:write:data", 0)), write);
    assert_eq!(effects(&list("fs:read:data", 2)), write);
}

#[test]
fn another_component_is_another_definition() {
    let definition = |guest: &Guest| {
        let toolbox = toolbox(&loaded(guest));
        toolbox.get("same").unwrap().definition()
    };
    let (one, other) = (answering("same", "1"), answering("same", "2"));
    assert_eq!(definition(&one), definition(&answering("same", "1")));
    assert_ne!(definition(&one), definition(&other));
}

#[test]
fn no_call_sees_what_another_left_behind() {
    // It counts up in memory, in a global and in a table, and would answer more than one.
    let more = "(global $count (mut i32) (i32.const 0)) (table $t 1 4 funcref)
        (elem declare func $call)";
    let body = "(global.set $count (i32.add (global.get $count) (i32.const 1)))
        (i32.store (i32.const 100000) (i32.add (i32.load (i32.const 100000)) (i32.const 1)))
        (if (i32.ne (ref.is_null (table.get $t (i32.const 0))) (i32.const 1)) (then unreachable))
        (table.set $t (i32.const 0) (ref.func $call))
        (drop (memory.grow (i32.const 3)))
        (if (i32.load (i32.const 200000)) (then unreachable))
        (i32.store (i32.const 200000) (i32.const 7))
        (call $digits (i64.extend_i32_u (i32.add (global.get $count)
          (i32.load (i32.const 100000)))))";
    let guest = Guest { more: more.into(), ..Guest::new("count").body(body) };
    let toolbox = toolbox(&loaded(&guest));
    crate::world::block(async {
        let run = tooltape::Run::new(&toolbox);
        for _ in 0..200 {
            assert_eq!(crate::world::call(&run, "count", "{}").await.text(), "2");
        }
    });
}

#[test]
fn what_is_logged_is_the_hosts_and_bounded() {
    let body = "(local.set $i (i32.const 1000))
        (loop $again (call $write (i32.const 65536) (i32.const 100))
          (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (call $ok (i32.const 1016) (i32.const 2))";
    let more = format!("(data (i32.const 65536) \"{}\")", "x".repeat(100));
    let guest = Guest { more, ..Guest::new("log").body(body) }.imports(
        "tooltape:tool/log@1.0.0",
        "write",
        "(param \"line\" string)",
        "(param i32 i32)",
    );
    let reply = called(&guest, "{}");
    assert_eq!(reply.text(), "{}");
    let log = reply.details.as_ref().unwrap()["log"].as_str().unwrap().to_owned();
    assert!(log.starts_with("xxx") && log.len() < LOG_BYTES_MAX + 64, "{}", log.len());
    assert!(log.ends_with(&format!("… ({} bytes more)", 101_000 - LOG_BYTES_MAX)), "{log}");
}
