//! Each bound stops a call by its name, with the amount; what is not set is the run's default.

use std::time::Duration;

use tooltape::{BoundKind, Executed, FaultKind, Reply, Run, RunLimits};
use tooltape_wasm::limits::{OUTPUT_BYTES_DEFAULT, STACK_DEFAULT, TABLE_DEFAULT};

use crate::guest::Guest;
use crate::world::{block, call, called, loaded, toolbox};

/// Never ends.
const SPIN: &str = "(loop $again (br $again)) unreachable";
/// Asks for a page of memory, again and again.
const GROW: &str = "(loop $again (drop (memory.grow (i32.const 1))) (br $again)) unreachable";

/// The bound that a reply names, with its limit and how much was used.
#[track_caller]
fn exceeded(reply: &Reply) -> (BoundKind, u64, u64) {
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!(fault.kind, FaultKind::Exceeded, "{fault:?}");
    (fault.bound.unwrap(), fault.limit.unwrap(), fault.used.unwrap())
}

#[test]
fn a_runaway_loop_is_stopped_by_its_fuel() {
    let guest = Guest { bounds: [None, None, Some(500_000), None], ..Guest::new("spin") };
    let reply = called(&guest.body(SPIN), "{}");
    assert_eq!(exceeded(&reply), (BoundKind::Fuel, 500_000, 500_000));
    // Nothing happened outside.
    assert_eq!(reply.executed, Executed::NotExecuted);
    let told = "not executed: the bound `fuel` of 500000 units was reached, 500000 units used";
    assert_eq!(reply.text(), told);
}

#[test]
fn fuel_that_is_not_set_is_the_runs() {
    let toolbox = toolbox(&loaded(&Guest::new("spin").body(SPIN)));
    let mut limits = RunLimits::default();
    limits.fuel = 12_345;
    let run = Run::new(&toolbox).limits(limits);
    let reply = block(call(&run, "spin", "{}"));
    assert_eq!(exceeded(&reply), (BoundKind::Fuel, 12_345, 12_345));
}

#[test]
fn memory_that_grows_is_stopped_with_what_was_asked_for() {
    let page = 65_536;
    let guest = Guest { bounds: [None, Some(10 * page), None, None], ..Guest::new("grow") };
    let reply = called(&guest.body(GROW), "{}");
    assert_eq!(exceeded(&reply), (BoundKind::Memory, 10 * page, 11 * page));
}

#[test]
fn memory_that_is_not_set_is_the_runs() {
    let toolbox = toolbox(&loaded(&Guest::new("grow").body(GROW)));
    let mut limits = RunLimits::default();
    limits.memory = 1 << 20;
    let reply = block(call(&Run::new(&toolbox).limits(limits), "grow", "{}"));
    assert_eq!(exceeded(&reply), (BoundKind::Memory, 1 << 20, (1 << 20) + 65_536));
    let reply = block(call(&Run::new(&toolbox), "grow", "{}"));
    assert_eq!(exceeded(&reply), (BoundKind::Memory, 64 << 20, (64 << 20) + 65_536));
}

#[test]
fn memory_that_a_component_begins_with_counts() {
    let guest = Guest { bounds: [None, Some(65_536), None, None], ..Guest::new("large") };
    let guest = Guest { pages: 3, ..guest };
    // It cannot even be described with less, but it is described within the default.
    assert_eq!(exceeded(&called(&guest, "{}")), (BoundKind::Memory, 65_536, 3 * 65_536));
}

#[test]
fn growing_beyond_what_a_component_declares_itself_fails_as_the_standard_says() {
    let body = "(call $digits (i64.extend_i32_s (i32.sub (i32.const 0) (memory.grow \
        (memory 1) (i32.const 9)))))";
    let more = "(memory $own 1 2)";
    let body = body.replace("(memory 1)", "$own");
    let reply = called(&Guest { more: more.into(), ..Guest::new("own").body(body) }, "{}");
    assert_eq!(reply.text(), "1");
}

#[test]
fn deep_recursion_is_stopped_by_the_stack() {
    let more = "(func $down (param $n i64) (result i64)
        (i64.add (call $down (i64.add (local.get $n) (i64.const 1))) (local.get $n)))";
    let guest = Guest { more: more.into(), ..Guest::new("down") };
    let reply = called(&guest.body("(call $digits (call $down (i64.const 0)))"), "{}");
    let stack = STACK_DEFAULT as u64;
    assert_eq!(exceeded(&reply), (BoundKind::Stack, stack, stack));
}

#[test]
fn a_table_that_grows_is_stopped_with_what_was_asked_for() {
    let more = "(table $t 10 funcref)";
    let body = "(loop $again (drop (table.grow $t (ref.null func) (i32.const 50000)))
        (br $again)) unreachable";
    let reply = called(&Guest { more: more.into(), ..Guest::new("table").body(body) }, "{}");
    let table = TABLE_DEFAULT as u64;
    assert_eq!(exceeded(&reply), (BoundKind::Table, table, 100_010));
}

#[test]
fn an_output_beyond_its_bound_is_no_result() {
    // All of its memory is one string: quotes at both ends, and nothing but letters between.
    let body = "(drop (memory.grow (i32.const 80)))
        (memory.fill (i32.const 65536) (i32.const 97) (i32.const 5242880))
        (i32.store8 (i32.const 65536) (i32.const 34))
        (i32.store8 (i32.const 5308415) (i32.const 34))
        (call $ok (i32.const 65536) (i32.const 5242880))";
    let reply = called(&Guest::new("flood").body(body), "{}");
    assert_eq!(exceeded(&reply), (BoundKind::OutputBytes, OUTPUT_BYTES_DEFAULT, 5 << 20));

    let body = "(call $ok (i32.const 1016) (i32.const 2))";
    let guest = Guest { bounds: [None, None, None, Some(1)], ..Guest::new("little").body(body) };
    assert_eq!(exceeded(&called(&guest, "{}")), (BoundKind::OutputBytes, 1, 2));
}

#[test]
fn a_call_that_takes_too_long_is_stopped_by_its_wall_time() {
    let bounds = [Some(50), None, Some(900_000_000_000), None];
    let guest = Guest { bounds, ..Guest::new("slow").body(SPIN) };
    let fault = called(&guest, "{}").fault.clone().unwrap();
    assert_eq!((fault.bound, fault.limit), (Some(BoundKind::Wall), Some(50)));
}

#[test]
fn wall_time_that_is_not_set_is_the_runs() {
    let bounds = [None, None, Some(900_000_000_000), None];
    let toolbox = toolbox(&loaded(&Guest { bounds, ..Guest::new("slow").body(SPIN) }));
    let mut limits = RunLimits::default();
    limits.wall = Duration::from_millis(30);
    let reply = block(call(&Run::new(&toolbox).limits(limits), "slow", "{}"));
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!((fault.bound, fault.limit), (Some(BoundKind::Wall), Some(30)));
}

#[test]
fn bulk_operations_cost_what_they_do() {
    // Each fill writes 64 KiB, and is one instruction.
    let body = "(loop $again
        (memory.fill (i32.const 65536) (i32.const 1) (i32.const 65536)) (br $again)) unreachable";
    let guest = Guest { bounds: [None, None, Some(1_000_000), None], ..Guest::new("fill") };
    let reply = called(&guest.body(body), "{}");
    assert_eq!(exceeded(&reply), (BoundKind::Fuel, 1_000_000, 1_000_000));
}

#[test]
fn host_calls_cost_fuel_by_their_bytes() {
    let say = |bytes: u32| {
        let body = format!(
            "(call $write (i32.const 4096) (i32.const {bytes}))
            (call $ok (i32.const 1016) (i32.const 2))"
        );
        let guest = Guest::new("say").imports(
            "tooltape:tool/log@1.0.0",
            "write",
            "(param \"line\" string)",
            "(param i32 i32)",
        );
        let reply = called(&guest.body(body), "{}");
        reply.details.clone().unwrap()["fuel"].as_u64().unwrap()
    };
    assert_eq!(say(1_010) - say(10), 1_000);
}

#[test]
fn a_flood_of_host_calls_lets_others_run() {
    let body = "(loop $again (call $write (i32.const 4096) (i32.const 1)) (br $again)) unreachable";
    let bounds = [Some(50), None, Some(900_000_000_000), None];
    let guest = Guest { bounds, ..Guest::new("flood").body(body) }.imports(
        "tooltape:tool/log@1.0.0",
        "write",
        "(param \"line\" string)",
        "(param i32 i32)",
    );
    let fault = called(&guest, "{}").fault.clone().unwrap();
    assert_eq!(fault.bound, Some(BoundKind::Wall));
}
