//! Calls run side by side, are cancelled in the middle, and leave nothing behind.

use std::time::Duration;

use tooltape::{Proposal, Reply, Run, RunLimits};
use tooltape_wasm::{Compiler, Wasm, WasmLimits};

use crate::guest::Guest;
use crate::world::{block, call, loaded, toolbox};

/// A guest that never ends, and could burn for ever.
fn endless() -> Guest {
    let bounds = [None, None, Some(1_000_000_000_000), None];
    Guest { bounds, ..Guest::new("endless").body("(loop $again (br $again)) unreachable") }
}

/// The turns after which a call runs for sure: each of its slices gives the others theirs.
const TURNS: usize = 20;

/// The reply to a call that is cancelled while it runs.
async fn cancelled(run: &Run, tool: &str) -> Reply {
    let cancel = async {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        run.cancel();
    };
    let (reply, ()) = tokio::join!(call(run, tool, "{}"), cancel);
    reply
}

#[test]
fn a_cancelled_call_stops_in_the_middle() {
    let toolbox = toolbox(&loaded(&endless()));
    let reply = block(cancelled(&Run::new(&toolbox), "endless"));
    assert_eq!(&*reply.fault.as_ref().unwrap().code, "call.cancelled");
}

#[test]
fn a_component_can_hear_that_it_was_cancelled() {
    let body = "(loop $again (br_if $again (i32.eqz (call $is-requested))))
        (call $fail (i32.const 4) (i64.const 0) (i32.const 1016) (i32.const 2))";
    let bounds = [None, None, Some(1_000_000_000_000), None];
    let guest = Guest { bounds, ..Guest::new("hears").body(body) }.imports(
        "tooltape:tool/cancel@1.0.0",
        "is-requested",
        "(result bool)",
        "(result i32)",
    );
    let toolbox = toolbox(&loaded(&guest));
    let reply = block(cancelled(&Run::new(&toolbox), "hears"));
    // It had the last word, and its own code.
    assert_eq!(&*reply.fault.as_ref().unwrap().code, "{}");
}

#[test]
fn progress_is_heard() {
    let body = "(call $say (i32.const 1016) (i32.const 2))
        (call $ok (i32.const 1016) (i32.const 2))";
    let guest = Guest::new("says").body(body).imports(
        "tooltape:tool/progress@1.0.0",
        "say",
        "(param \"text\" string)",
        "(param i32 i32)",
    );
    let (toolbox, tape) = (toolbox(&loaded(&guest)), tooltape::MemoryTape::default());
    block(async {
        let run = Run::new(&toolbox).tape(tape.clone());
        call(&run, "says", "{}").await;
        let replay = tooltape::Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
        assert!(replay.is_same(), "{replay}");
    });
}

#[test]
fn a_thousand_calls_run_side_by_side() {
    let body = "(local.set $i (i32.const 100000))
        (loop $again (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (call $ok (local.get $at) (local.get $length))";
    let toolbox = toolbox(&loaded(&Guest::new("busy").body(body)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut limits = RunLimits::default();
        (limits.batch_calls, limits.concurrency) = (1_000, 1_000);
        let run = Run::new(&toolbox).limits(limits);
        let proposal =
            |no: usize| Proposal::new(&*no.to_string(), "busy", format!("{{\"n\":{no}}}"));
        let replies = run.batch((0..1_000).map(proposal).collect()).await.unwrap();
        for (no, reply) in replies.iter().enumerate() {
            assert_eq!(reply.text(), format!("{{\"n\":{no}}}"));
        }
    });
}

#[test]
fn more_calls_than_there_is_room_for_wait() {
    let mut limits = WasmLimits::default();
    limits.calls = 2;
    let wasm = Wasm::new(Compiler::InProcess, limits).unwrap();
    assert!(wasm.is_pooled());
    let guest = Guest::new("waits");
    let toolbox = toolbox(&block(wasm.read("waits", &guest.wasm())).unwrap());
    block(async {
        let run = Run::new(&toolbox);
        let proposal = |no: usize| Proposal::new(&*no.to_string(), "waits", "{}");
        let replies = run.batch((0..100).map(proposal).collect()).await.unwrap();
        assert!(replies.iter().all(|reply| reply.text() == "{}"));
    });
}

#[test]
fn where_there_is_no_room_for_a_pool_calls_map_their_own_memory() {
    let mut limits = WasmLimits::default();
    limits.calls = u32::MAX / 256;
    let wasm = Wasm::new(Compiler::InProcess, limits).unwrap();
    assert!(!wasm.is_pooled());
    let toolbox = toolbox(&block(wasm.read("alone", &Guest::new("alone").wasm())).unwrap());
    assert_eq!(block(call(&Run::new(&toolbox), "alone", "{}")).text(), "{}");
}

#[test]
fn a_call_that_ends_badly_frees_its_place() {
    let mut limits = WasmLimits::default();
    limits.calls = 1;
    let wasm = Wasm::new(Compiler::InProcess, limits).unwrap();
    let trap =
        toolbox(&block(wasm.read("t", &Guest::new("t").body("unreachable").wasm())).unwrap());
    let endless = toolbox(&block(wasm.read("endless", &endless().wasm())).unwrap());
    let answers = toolbox(&block(wasm.read("a", &Guest::new("a").wasm())).unwrap());
    block(async {
        for _ in 0..10 {
            assert!(call(&Run::new(&trap), "t", "{}").await.is_error);
            let mut limits = RunLimits::default();
            limits.wall = Duration::from_millis(5);
            let run = Run::new(&endless).limits(limits);
            assert!(call(&run, "endless", "{}").await.is_error);
            assert_eq!(call(&Run::new(&answers), "a", "{}").await.text(), "{}");
        }
    });
}
