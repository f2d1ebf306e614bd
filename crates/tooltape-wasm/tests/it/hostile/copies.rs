//! What the host copies for a component takes time and memory that no fuel pays for.

use std::time::{Duration, Instant};

use tooltape::{BoundKind, Reply, Run, RunLimits};
use tooltape_wasm::limits::OUTPUT_BYTES_DEFAULT;
use tooltape_wasm::{Compiler, Wasm, WasmLimits};

use crate::guest::Guest;
use crate::world::{block, call, toolbox, wasm};

/// Takes a text, and does nothing with it.
const TAKER: &str = r#"
  (component $taker
    (core module $m
      (memory (export "mem") 480)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
      (func (export "f") (param i32 i32)))
    (core instance $i (instantiate $m))
    (func (export "f") (param "text" string)
      (canon lift (core func $i "f") string-encoding=utf16 (memory (core memory $i "mem"))
        (realloc (core func $i "realloc")))))
  (instance $taken (instantiate $taker))"#;

/// Hands over a text of many megabytes, again and again, for next to no fuel.
const GIVER: &str = r#"
  (component $giver
    (import "f" (func $f (param "text" string)))
    (core module $libc (memory (export "mem") 480))
    (core instance $libc (instantiate $libc))
    (core func $lowered (canon lower (func $f) string-encoding=utf16
      (memory (core memory $libc "mem"))))
    (core module $m
      (import "" "f" (func $f (param i32 i32)))
      (func $spin
        (loop $again (call $f (i32.const 0) (i32.const 15000000)) (br $again)))
      (func (export "go") (result i32) (call $spin) unreachable)
      BEGIN)
    (core instance $i (instantiate $m (with "" (instance (export "f" (func $lowered))))))
    (func (export "go") (result u32) (canon lift (core func $i "go"))))
  (instance $given (instantiate $giver (with "f" (func $taken "f"))))"#;

/// The longest that anything here may take, on the slowest machine.
const LONGEST: Duration = Duration::from_secs(10);

/// Calls the function `go` of a component within limits.
fn go(text: &str, limits: RunLimits) -> Reply {
    let bytes = wat::parse_str(format!("(component {text})")).unwrap();
    let toolbox = toolbox(&block(wasm().read("copies.wasm", &bytes)).unwrap());
    block(call(&Run::new(&toolbox).limits(limits), "go", "{}"))
}

#[test]
fn texts_between_nested_components_do_not_outlast_the_wall_time() {
    let mut limits = RunLimits::default();
    (limits.wall, limits.fuel) = (Duration::from_millis(300), 900_000_000_000);
    let began = Instant::now();
    let giver = GIVER.replace("BEGIN", "");
    let reply = go(&format!(r#"{TAKER}{giver} (export "go" (func $given "go"))"#), limits);
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!((fault.bound, fault.limit), (Some(BoundKind::Wall), Some(300)), "{fault:?}");
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
}

#[test]
fn texts_between_nested_components_do_not_outlast_the_time_to_describe() {
    let imports = format!("{TAKER}{}", GIVER.replace("BEGIN", "(start $spin)"));
    let guest = Guest { imports, ..Guest::new("talker") };
    let mut limits = WasmLimits::default();
    limits.describe_wall = Duration::from_millis(300);
    let wasm = Wasm::new(Compiler::InProcess, limits).unwrap();
    let began = Instant::now();
    let refused = block(wasm.read("talker.wasm", &guest.wasm())).map(drop).unwrap_err();
    let told = refused.to_string();
    assert!(told.ends_with("it took longer than the bound of 300 ms"), "{told}");
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
}

/// Answers with a list of so many flags or bytes: all of its memory is ones.
fn flood(items: u32, ty: &str) -> String {
    format!(
        r#"{ty} (export $exported "item" (type $item))
  (core module $m
    (memory (export "mem") 100)
    (func (export "go") (result i32)
      (memory.fill (i32.const 1024) (i32.const 255) (i32.const 4000000))
      (i32.store (i32.const 0) (i32.const 1024))
      (i32.store (i32.const 4) (i32.const {items}))
      (i32.const 0)))
  (core instance $i (instantiate $m))
  (func $go (result (list $exported))
    (canon lift (core func $i "go") (memory (core memory $i "mem"))))
  (export "go" (func $go))"#
    )
}

/// A type of 32 flags, each with a short name.
fn flags() -> String {
    let names = ('a'..='z').map(String::from).chain((0..6).map(|index| format!("a{index}")));
    let names = names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" ");
    format!("(type $item (flags {names}))")
}

#[test]
fn a_flood_of_flags_is_stopped_before_it_fills_the_host() {
    let reply = go(&flood(850_000, &flags()), RunLimits::default());
    let fault = reply.fault.as_ref().unwrap();
    let expected = (Some(BoundKind::OutputBytes), Some(OUTPUT_BYTES_DEFAULT));
    assert_eq!((fault.bound, fault.limit), expected, "{fault:?}");
    // Few of them are a result.
    let reply = go(&flood(100, &flags()), RunLimits::default());
    assert_eq!(reply.value.as_ref().unwrap().to_value().as_array().unwrap().len(), 100);
}

#[test]
fn a_flood_of_names_is_stopped_while_it_is_written() {
    // Each is a little in memory, and much as JSON.
    let name = "n".repeat(100);
    let ty = format!(r#"(type $item (record (field "{name}" u8)))"#);
    let reply = go(&flood(80_000, &ty), RunLimits::default());
    let fault = reply.fault.as_ref().unwrap();
    let expected = (Some(BoundKind::OutputBytes), Some(OUTPUT_BYTES_DEFAULT));
    assert_eq!((fault.bound, fault.limit), expected, "{fault:?}");
}
