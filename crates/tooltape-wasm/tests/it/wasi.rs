//! What standard libraries link of WASI tells nothing, and leads nowhere.

use std::fmt::Write as _;
use std::time::Duration;

use tooltape::{Clock, Random, Reply, Right, Rights, Run};

use crate::guest::Guest;
use crate::world::{block, call, loaded, refused, toolbox};

/// The streams of WASI, in a patch version that nobody here knows by name.
const STREAMS: &str = r#"
  (import "wasi:io/error@0.2.9" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $error-type))
  (import "wasi:io/streams@0.2.9" (instance $streams
    (alias outer 1 $error-type (type $e'))
    (export "error" (type $e (eq $e')))
    (type $s' (variant (case "last-operation-failed" (own $e)) (case "closed")))
    (export "stream-error" (type $s (eq $s')))
    (export "input-stream" (type $in (sub resource)))
    (export "output-stream" (type $out (sub resource)))
    (export "[method]input-stream.blocking-read" (func (param "self" (borrow $in))
      (param "len" u64) (result (result (list u8) (error $s)))))
    (export "[method]output-stream.blocking-write-and-flush" (func
      (param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $s)))))))
  (alias export $streams "output-stream" (type $out))
  (alias export $streams "input-stream" (type $in))
  (import "wasi:cli/stdout@0.2.9" (instance $stdout
    (alias outer 1 $out (type $o')) (export "output-stream" (type $o (eq $o')))
    (export "get-stdout" (func (result (own $o))))))
  (import "wasi:cli/stdin@0.2.9" (instance $stdin
    (alias outer 1 $in (type $o')) (export "input-stream" (type $o (eq $o')))
    (export "get-stdin" (func (result (own $o))))))"#;

/// A guest with these functions of instances, each lowered under its name in the core module.
fn guest(imports: &str, lowered: &[(&str, &str, &str, &str)], body: &str) -> Guest {
    let mut guest = Guest::new("wasi").body(body);
    guest.imports = imports.to_owned();
    for (instance, function, name, core) in lowered {
        let _ = write!(
            guest.imports,
            r#"
  (core func ${name} (canon lower (func ${instance} "{function}")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))"#
        );
        let _ = write!(guest.core_imports, r#" (import "{name}" "f" (func ${name} {core}))"#);
        let _ = write!(guest.with, r#" (with "{name}" (instance (export "f" (func ${name}))))"#);
    }
    guest
}

fn called(guest: &Guest) -> Reply {
    let toolbox = toolbox(&loaded(guest));
    let run = Run::new(&toolbox).rights(Rights::of([Right::ClockRead, Right::RandomRead]));
    let run = run.clock(Clock::fixed(Duration::from_secs(7))).random(Random::seeded([1; 32]));
    block(call(&run, "wasi", "{}"))
}

#[test]
fn what_is_printed_goes_to_the_log() {
    let write = "[method]output-stream.blocking-write-and-flush";
    let lowered = [
        ("stdout", "get-stdout", "out", "(result i32)"),
        ("streams", write, "write", "(param i32 i32 i32 i32)"),
    ];
    let body = "(call $write (call $out) (i32.const 1016) (i32.const 2) (i32.const 512))
        (call $digits (i64.load8_u (i32.const 512)))";
    let reply = called(&guest(STREAMS, &lowered, body));
    assert_eq!(reply.text(), "0");
    assert_eq!(reply.details.as_ref().unwrap()["log"], "{}");
    assert!(reply.proven);
}

#[test]
fn the_input_is_at_its_end() {
    let read = "[method]input-stream.blocking-read";
    let lowered = [
        ("stdin", "get-stdin", "in", "(result i32)"),
        ("streams", read, "read", "(param i32 i64 i32)"),
    ];
    // An error, which is `closed`.
    let body = "(call $read (call $in) (i64.const 9) (i32.const 512))
        (call $digits (i64.add (i64.mul (i64.load8_u (i32.const 512)) (i64.const 10))
          (i64.load8_u (i32.const 516))))";
    assert_eq!(called(&guest(STREAMS, &lowered, body)).text(), "11");
}

#[test]
fn there_is_no_environment_and_no_argument() {
    let imports = r#"(import "wasi:cli/environment@0.2.3" (instance $environment
        (export "get-environment" (func (result (list (tuple string string)))))
        (export "get-arguments" (func (result (list string))))))"#;
    let lowered = [
        ("environment", "get-environment", "vars", "(param i32)"),
        ("environment", "get-arguments", "args", "(param i32)"),
    ];
    let body = "(call $vars (i32.const 512)) (call $args (i32.const 520))
        (call $digits (i64.extend_i32_u (i32.add (i32.load (i32.const 516))
          (i32.load (i32.const 524)))))";
    assert_eq!(called(&guest(imports, &lowered, body)).text(), "0");
}

#[test]
fn an_exit_ends_the_call_and_no_more() {
    let imports = r#"(import "wasi:cli/exit@0.2.3" (instance $exit
        (export "exit" (func (param "status" (result))))))"#;
    let lowered = [("exit", "exit", "exit", "(param i32)")];
    let reply = called(&guest(imports, &lowered, "(call $exit (i32.const 0)) unreachable"));
    assert_eq!(&*reply.fault.as_ref().unwrap().code, "exit");
    assert_eq!(reply.text(), "failed: the component was stopped: it ended itself by `exit`");
}

#[test]
fn the_clock_is_the_runs() {
    let imports = r#"(import "wasi:clocks/monotonic-clock@0.2.3" (instance $clock
        (export "now" (func (result u64)))))"#;
    let lowered = [("clock", "now", "now", "(result i64)")];
    let guest = guest(imports, &lowered, "(call $digits (call $now))");
    assert!(refused(&guest).to_string().contains("`clock:read:now`"));
    assert_eq!(called(&guest.needs("clock:read:now")).text(), "7000000000");
}

#[test]
fn chance_is_the_runs() {
    let imports = r#"(import "wasi:random/insecure-seed@0.2.3" (instance $seed
        (export "insecure-seed" (func (result (tuple u64 u64))))))"#;
    let lowered = [("seed", "insecure-seed", "seed", "(param i32)")];
    let body = "(call $seed (i32.const 512)) (call $digits (i64.shr_u (i64.load (i32.const 512))
        (i64.const 1)))";
    let guest = guest(imports, &lowered, body);
    assert!(refused(&guest).to_string().contains("`random:read:any`"));
    let guest = guest.needs("random:read:any");
    assert_eq!(called(&guest).text(), called(&guest).text());
}

#[test]
fn there_are_no_files() {
    let imports = r#"
  (import "wasi:filesystem/types@0.2.3" (instance $files
    (export "descriptor" (type $d (sub resource)))
    (export "[method]descriptor.sync" (func (param "self" (borrow $d))))
    (export "filesystem-error-code" (func (result u8)))))
  (alias export $files "descriptor" (type $d))
  (import "wasi:filesystem/preopens@0.2.3" (instance $preopens
    (alias outer 1 $d (type $d')) (export "descriptor" (type $d (eq $d')))
    (export "get-directories" (func (result (list (tuple (own $d) string)))))))"#;
    let lowered = [("preopens", "get-directories", "folders", "(param i32)")];
    let body = "(call $folders (i32.const 512))
        (call $digits (i64.load32_u (i32.const 516)))";
    let reply = called(&guest(imports, &lowered, body));
    assert_eq!(reply.text(), "0");
    assert!(reply.proven);
    let lowered = [("files", "filesystem-error-code", "code", "(result i32)")];
    let reply = called(&guest(imports, &lowered, "(call $code)"));
    assert_eq!(&*reply.fault.as_ref().unwrap().code, "import.inert");
    assert_eq!(
        reply.text(),
        "failed: the component was stopped: it called \
         `wasi:filesystem/types@0.2.3#filesystem-error-code`, and there are no files behind that: \
         import `tooltape:tool/files`"
    );
}

#[test]
fn another_wasi_is_refused() {
    let imports = r#"(import "wasi:cli/environment@0.3.0" (instance
        (export "get-arguments" (func (result (list string))))))"#;
    let why = refused(&guest(imports, &[], "(i32.const 0)")).to_string();
    assert!(why.contains("`wasi:cli/environment@0.3.0` (no component is given that)"), "{why}");
}
