//! What depends on no more than it was given gives the same each time, and a replay proves it.

use std::time::Duration;

use tooltape::{
    Access, Clock, Determinism, MemoryTape, Random, Replay, Right, Rights, Run, Toolbox,
};

use crate::guest::Guest;
use crate::world::{block, call, loaded, toolbox, wasm};

/// Hashes its arguments and some floats, in a loop.
fn worker() -> Guest {
    let body = "(local.set $n (i64.const 1469598103934665603))
        (local.set $i (i32.const 0))
        (loop $again
          (local.set $n (i64.mul (i64.const 1099511628211) (i64.xor (local.get $n)
            (i64.load8_u (i32.add (local.get $at)
              (i32.rem_u (local.get $i) (local.get $length)))))))
          (local.set $n (i64.xor (local.get $n) (i64.reinterpret_f64 (f64.div
            (f64.convert_i32_u (local.get $i)) (f64.const 0)))))
          (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
            (i32.const 2000))))
        (call $digits (local.get $n))";
    Guest::new("worker").body(body)
}

/// Answers with a number of its chance, after a look at the clock.
fn gambler() -> Guest {
    Guest::new("gambler")
        .needs("clock:read:now")
        .needs("random:read:any")
        .imports("tooltape:tool/clock@1.0.0", "now-us", "(result u64)", "(result i64)")
        .imports("wasi:random/random@0.2.0", "get-random-u64", "(result u64)", "(result i64)")
        .body(
            "(call $digits (i64.shr_u (i64.add (call $now-us) (call $get-random-u64))
              (i64.const 1)))",
        )
}

fn rights() -> Rights {
    Rights::of([Right::ClockRead, Right::RandomRead])
}

fn gamble(toolbox: &Toolbox, seconds: u64, seed: u8) -> String {
    let clock = Clock::fixed(Duration::from_secs(seconds));
    let run = Run::new(toolbox).rights(rights()).clock(clock).random(Random::seeded([seed; 32]));
    block(call(&run, "gambler", "{}")).text()
}

#[test]
fn a_thousand_calls_burn_the_same_fuel_and_have_the_same_result() {
    let toolbox = toolbox(&loaded(&worker()));
    let seen = block(async {
        let run = Run::new(&toolbox);
        let mut seen = Vec::new();
        for _ in 0..1_000 {
            let reply = call(&run, "worker", r#"{"text":"hello"}"#).await;
            assert!(!reply.is_error, "{}", reply.text());
            let fuel = reply.details.as_ref().unwrap()["fuel"].as_u64().unwrap();
            seen.push((fuel, reply.result_hash));
        }
        seen.dedup();
        seen
    });
    assert_eq!(seen.len(), 1);
    assert!(seen[0].0 > 2_000);
}

#[test]
fn the_same_moment_and_chance_give_the_same_result() {
    let toolbox = toolbox(&loaded(&gambler()));
    assert_eq!(gamble(&toolbox, 5, 1), gamble(&toolbox, 5, 1));
    assert_ne!(gamble(&toolbox, 5, 1), gamble(&toolbox, 5, 2));
    assert_ne!(gamble(&toolbox, 5, 1), gamble(&toolbox, 6, 1));
}

#[test]
fn a_replay_executes_it_again_and_compares() {
    for guest in [worker(), gambler()] {
        let (toolbox, tape) = (toolbox(&loaded(&guest)), MemoryTape::default());
        block(async {
            let run = Run::new(&toolbox).rights(rights()).tape(tape.clone());
            let reply = call(&run, guest.name, "{}").await;
            assert!(reply.proven && !reply.is_error, "{}", reply.text());
            let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
            assert!(report.is_same(), "{report}");
            assert_eq!((report.calls, report.executed), (1, 1));
        });
    }
}

#[test]
fn a_replay_finds_a_component_that_answers_otherwise() {
    let (tape, recorded) = (MemoryTape::default(), toolbox(&loaded(&Guest::new("answer"))));
    let other = Guest::new("answer").body("(call $digits (i64.const 7))");
    let other = toolbox(&loaded(&other));
    block(async {
        let run = Run::new(&recorded).tape(tape.clone());
        call(&run, "answer", "{}").await;
        let report = Replay::of(&tape, run.id()).with(&other).check().await.unwrap();
        assert!(!report.is_same(), "{report}");
    });
}

#[test]
fn a_bound_that_was_reached_is_reached_again() {
    let guest = Guest { bounds: [None, None, Some(300_000), None], ..Guest::new("spin") };
    let guest = guest.body("(loop $again (br $again)) unreachable");
    let (toolbox, tape) = (toolbox(&loaded(&guest)), MemoryTape::default());
    block(async {
        let run = Run::new(&toolbox).tape(tape.clone());
        call(&run, "spin", "{}").await;
        let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
        assert!(report.is_same(), "{report}");
    });
}

#[test]
fn without_the_right_there_is_no_clock() {
    let toolbox = toolbox(&loaded(&gambler()));
    let run = Run::new(&toolbox).rights(Rights::none());
    let reply = block(call(&run, "gambler", "{}"));
    assert!(reply.is_error, "{}", reply.text());
}

#[test]
fn what_can_hear_that_it_is_cancelled_is_not_proven() {
    let guest = Guest::new("hears").imports(
        "tooltape:tool/cancel@1.0.0",
        "is-requested",
        "(result bool)",
        "(result i32)",
    );
    let toolbox =
        toolbox(&loaded(&guest.body("(call $digits (i64.extend_i32_u (call $is-requested)))")));
    let effects = toolbox.get("hears").unwrap().spec().effects.clone();
    assert_eq!(effects.access, Access::Pure);
    assert_eq!(effects.determinism, Determinism::NonDeterministic);
    let reply = block(call(&Run::new(&toolbox), "hears", "{}"));
    assert_eq!((reply.text().as_str(), reply.proven), ("0", false));
}

#[test]
fn a_plain_function_that_can_hear_that_it_is_cancelled_is_not_proven() {
    let text = r#"(component
        (import "tooltape:tool/cancel@1.0.0" (instance $cancel
          (export "is-requested" (func (result bool)))))
        (core func $is (canon lower (func $cancel "is-requested")))
        (core module $m (import "" "is" (func $is (result i32)))
          (func (export "go") (result i32) (call $is)))
        (core instance $i (instantiate $m (with "" (instance (export "is" (func $is))))))
        (func $go (result bool) (canon lift (core func $i "go")))
        (export "go" (func $go)))"#;
    let component = block(wasm().read("hears.wasm", &wat::parse_str(text).unwrap())).unwrap();
    let reply = block(call(&Run::new(&toolbox(&component)), "go", "{}"));
    assert_eq!((reply.text().as_str(), reply.proven), ("false", false));
}
