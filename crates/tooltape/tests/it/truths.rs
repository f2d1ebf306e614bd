//! What a reply says is true, and clocks and cancels keep their word, where that is hard to keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tooltape::layer::layer_fn;
use tooltape::testing::proposals;
use tooltape::{
    Answer, Bound, BoundKind, Bounds, Call, Effects, Empty, Event, Executed, MemoryTape, Repeat,
    Retry, Run, RunId, Spawn, Spec, Tool, ToolError, Toolbox, Verdict, tool_fn,
};

use crate::driving::texts;
use crate::stage::{Stage, free, gated, limited};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn reading(name: &str) -> Spec {
    Spec::new(name, "Test.").effects(Effects::read())
}

fn count(tape: &MemoryTape, run: RunId, of: fn(&Event) -> bool) -> usize {
    tape.records(run).iter().filter(|record| of(&record.event)).count()
}

/// Somebody who takes so long to say yes to `asks`.
fn asking(run: Run, ms: u64) -> Run {
    run.policy(|call: &Call| match call.tool().name().as_str().starts_with("asks") {
        true => Verdict::ask("test"),
        false => Verdict::allow("test"),
    })
    .approver(move |_| {
        Box::pin(async move {
            tokio::time::sleep(MS(ms)).await;
            Answer::Once
        })
    })
}

#[tokio::test]
async fn a_call_dropped_while_its_result_is_finished_has_an_end_on_the_tape() {
    let big = tool_fn(Spec::new("big", "Test."), async |_: Empty| {
        Ok::<_, ToolError>("x".repeat(200_000))
    });
    let tape = MemoryTape::default();
    let run = free([big]).tape(tape.clone());
    let mut batch = Box::pin(run.batch(proposals("big {}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    drop(batch);
    assert_eq!(count(&tape, run.id(), |it| matches!(it, Event::Started { .. })), 1);
    assert_eq!(count(&tape, run.id(), |it| matches!(it, Event::Settled(_))), 1);
}

#[tokio::test(start_paused = true)]
async fn a_layer_cannot_say_that_what_ran_was_not_executed() {
    let ran = Arc::new(AtomicU32::new(0));
    let counted = ran.clone();
    let retry = Retry { attempts: 3, pause_ms: 1, pause_ms_max: 10 };
    let pay = tool_fn(Spec::new("pay", "Pays.").retry(retry), move |_: Empty| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, ToolError>("paid") }
    });
    let run = free([pay]).layer(layer_fn(|attempt, grants, next| {
        Box::pin(async move {
            let _done = next.perform(attempt, grants).await?;
            Err(ToolError::not_done("the result was too late"))
        })
    }));
    let replies = run.batch(proposals("pay {}")).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1, "a `Once` tool ran again");
    assert_ne!(replies[0].executed, Executed::NotExecuted, "{}", replies[0].text());
}

fn counting(spec: Spec) -> (Arc<AtomicU32>, Arc<dyn Tool>) {
    let ran = Arc::new(AtomicU32::new(0));
    let counted = ran.clone();
    let tool = tool_fn(spec, move |_: Empty| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, ToolError>("done") }
    });
    (ran, tool)
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_cancelled_before_its_start_is_durable_never_runs() {
    let (ran, write) = counting(Spec::new("write", "Writes."));
    let (gate, tape) = gated(false);
    let run = free([write]).tape(tape);
    let mut batch = Box::pin(run.batch(proposals("write {}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    run.cancel();
    gate.send(true).unwrap();
    let replies = batch.await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 0, "it ran after the cancel: {:?}", texts(&replies));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_never_becomes_durable_ends_with_the_deadline_or_the_cancel() {
    let (_, write) = counting(Spec::new("write", "Writes."));
    let (_gate, tape) = gated(false);
    let run = limited(free([write]), |limits| limits.batch_wall = MS(100));
    let run = run.tape(tape);
    let batch = tokio::time::timeout(Duration::from_secs(3600), run.batch(proposals("write {}")));
    assert!(batch.await.is_ok(), "the batch hangs");
}

#[tokio::test(start_paused = true)]
async fn the_batch_clock_stands_still_while_somebody_is_asked() {
    let stage = Stage::new();
    let run = asking(free([stage.read("asks"), stage.read("read")]), 500);
    let run = limited(run, |limits| limits.batch_wall = MS(100));
    let replies = run.batch(proposals("asks {}\nread {\"ms\":200}")).await.unwrap();
    assert!(replies.iter().all(|it| !it.is_error), "{:?}", texts(&replies));
}

#[tokio::test(start_paused = true)]
async fn questions_at_the_same_time_stop_the_clock_once() {
    let stage = Stage::new();
    let run = asking(free([stage.read("asks")]), 1000);
    let run = limited(run, |limits| limits.run_wall = MS(100));
    run.batch(proposals(&"asks {\"ms\":1}\n".repeat(10))).await.unwrap();
    // About one second was spent asking and 1 ms running: 99 ms are left.
    tokio::time::sleep(MS(5000)).await;
    let replies = run.batch(proposals("asks {\"ms\":0}")).await.unwrap();
    let bound = replies[0].fault.as_ref().and_then(|fault| fault.bound);
    assert_eq!(bound, Some(BoundKind::RunWall), "{:?}", texts(&replies));
}

#[tokio::test(start_paused = true)]
async fn the_wall_time_of_a_call_stands_still_while_its_child_asks() {
    let stage = Stage::new();
    let nest = tool_fn(Spec::new("nest", "Test."), async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.start();
        let replies = child.batch(proposals("asks {}")).await?;
        Ok::<_, ToolError>(replies[0].text())
    });
    let run = asking(free([nest, stage.read("asks")]), 90_000);
    let replies = run.batch(proposals("nest {}")).await.unwrap();
    assert!(!replies[0].is_error, "{:?}", texts(&replies));
}

#[tokio::test(start_paused = true)]
async fn a_fatal_fault_withdraws_what_is_still_asked() {
    let stage = Stage::new();
    let run = free([stage.read("asks"), stage.read("read")])
        .policy(|call: &Call| match call.tool().name().as_str() {
            "asks" => Verdict::ask("test"),
            _ => Verdict::allow("test"),
        })
        .approver(|_| Box::pin(std::future::pending()));
    let batch = run.batch(proposals("asks {}\nread {\"fail\":\"fatal\"}"));
    let ended = tokio::time::timeout(Duration::from_secs(100_000), batch).await;
    assert!(ended.is_ok(), "every call was settled but one that never starts, and nobody is told");
}

#[tokio::test(start_paused = true)]
async fn promoted_writes_overlap_as_promised() {
    let stage = Stage::new();
    let mut toolbox = Toolbox::new([stage.write("write")]).unwrap();
    toolbox.promote("write").unwrap();
    let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test"));
    run.batch(proposals("write {}\nwrite {}")).await.unwrap();
    assert!(stage.overlapped("write", "write"), "{:?}", stage.starts());
}

fn failing(first: fn() -> ToolError, then: fn() -> ToolError) -> (Arc<AtomicU32>, Arc<dyn Tool>) {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let effects = Effects { repeat: Repeat::Idempotent, ..Effects::default() };
    let retry = Retry { attempts: 3, pause_ms: 10, pause_ms_max: 10_000 };
    let tool =
        tool_fn(Spec::new("push", "Test.").effects(effects).retry(retry), move |_: Empty| {
            let no = counted.fetch_add(1, Ordering::SeqCst);
            async move { Err::<(), _>(if no == 0 { first() } else { then() }) }
        });
    (tries, tool)
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_heeded_after_an_attempt_that_failed() {
    let later = || ToolError::retry_after(Duration::from_secs(5), "busy");
    let (tries, tool) = failing(|| ToolError::tell("no"), later);
    let started = tokio::time::Instant::now();
    free([tool]).batch(proposals("push {}")).await.unwrap();
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    assert!(started.elapsed() >= Duration::from_secs(5), "waited {:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_tool_is_tried_again_after_doubt_and_then_not_done() {
    let (tries, tool) =
        failing(|| ToolError::in_doubt("no answer"), || ToolError::not_done("busy"));
    free([tool]).batch(proposals("push {}")).await.unwrap();
    assert_eq!(tries.load(Ordering::SeqCst), 3, "of three attempts");
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_in_a_run_that_ended() {
    let stage = Stage::new();
    let run = free([stage.write("write"), stage.read("read")]);
    let other = run.batch(proposals("write {\"ms\":50}\nwrite {\"ms\":50}\nwrite {\"ms\":50}"));
    let fatal = run.batch(proposals("read {\"ms\":5,\"fail\":\"fatal\"}"));
    let (other, fatal) = tokio::join!(other, fatal);
    assert!(fatal.is_err());
    let late = stage.log().iter().filter(|span| span.from_ms > 5).count();
    assert_eq!(late, 0, "{late} calls started after the run ended: {}", other.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_slow_disk_does_not_use_up_the_wall_time_of_a_tool() {
    let stage = Stage::new();
    let bounds = Bounds { wall: Bound::At(MS(100)), ..Bounds::default() };
    let write = stage.tool(Spec::new("write", "Writes.").bounds(bounds));
    let (gate, tape) = gated(false);
    let run = free([write]).tape(tape);
    let opening = async {
        tokio::time::sleep(MS(150)).await;
        gate.send(true).unwrap();
    };
    let (replies, ()) = tokio::join!(run.batch(proposals("write {\"ms\":10}")), opening);
    let replies = replies.unwrap();
    assert!(!replies[0].is_error, "{:?}", texts(&replies));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_not_done_and_is_dropped_in_its_pause_was_not_executed() {
    let retry = Retry { attempts: 3, pause_ms: 1000, pause_ms_max: 1000 };
    let busy = tool_fn(Spec::new("busy", "Test.").retry(retry), async |_: Empty| {
        Err::<(), _>(ToolError::not_done("busy"))
    });
    let tape = MemoryTape::default();
    let run = free([busy]).tape(tape.clone());
    let batch = tokio::time::timeout(MS(20), run.batch(proposals("busy {}"))).await;
    assert!(batch.is_err());
    let executed = tape.records(run.id()).iter().find_map(|record| match &record.event {
        Event::Settled(reply) => Some(reply.executed),
        _ => None,
    });
    assert_eq!(executed, Some(Executed::NotExecuted));
}

#[tokio::test]
async fn a_cancel_of_a_call_that_is_over_or_not_there_changes_nothing() {
    let (_, quick) = counting(reading("quick"));
    let run = free([quick]);
    run.cancel_call(tooltape::CallNo(2));
    let replies = run.batch(proposals("quick {}\nquick {}")).await.unwrap();
    assert!(replies.iter().all(|it| !it.is_error), "{:?}", texts(&replies));
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_drops_a_tool_it_let_pass_cannot_call_it_undone() {
    let stage = Stage::new();
    let run = free([stage.write("write")]).layer(layer_fn(|attempt, grants, next| {
        Box::pin(async move {
            let performing = next.perform(attempt, grants);
            match tokio::time::timeout(MS(5), performing).await {
                Ok(done) => done,
                Err(_) => Err(ToolError::not_done("too slow")),
            }
        })
    }));
    let replies = run.batch(proposals("write {\"ms\":50}")).await.unwrap();
    assert_eq!(stage.log().len(), 1);
    assert_eq!(replies[0].executed, Executed::Unknown, "{:?}", texts(&replies));
}

#[tokio::test]
async fn the_claim_of_a_call_that_takes_spawn_is_recursive() {
    let claims = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = claims.clone();
    let nest =
        tool_fn(Spec::new("nest", "Test."), async |_: Empty, _: Spawn| Ok::<_, ToolError>(()));
    let run = Run::new(&Toolbox::new([nest]).unwrap()).policy(move |call: &Call| {
        seen.lock().unwrap().push(tooltape::Claim::of(call).unwrap());
        Verdict::allow("test")
    });
    run.batch(proposals("nest {}")).await.unwrap();
    assert!(claims.lock().unwrap()[0].recursive);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_about_what_cannot_start_any_more() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let stage = Stage::new();
    let run = asking(free([stage.write("write"), stage.write("asks")]), 1).approver(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Answer::Once })
    });
    let run = limited(run, |limits| limits.batch_wall = MS(100));
    let cancelling = async {
        tokio::time::sleep(MS(5)).await;
        run.cancel_call(tooltape::CallNo(2));
    };
    let (replies, ()) = tokio::join!(run.batch(proposals("write {}\nasks {}")), cancelling);
    assert_eq!(replies.unwrap()[1].text(), "not executed: cancelled");
    let cancelled = asked.swap(0, Ordering::SeqCst);
    let replies = run.batch(proposals("write {\"ms\":500}\nasks {}")).await.unwrap();
    assert!(replies[1].text().contains("batch_wall"), "{:?}", texts(&replies));
    assert_eq!((cancelled, asked.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test]
async fn a_layer_that_panics_is_not_called_the_tool() {
    let (_, quick) = counting(Spec::new("quick", "Test."));
    let run = free([quick]).layer(layer_fn(|attempt, grants, next| {
        Box::pin(async move {
            let _done = next.perform(attempt, grants).await;
            panic!("planted")
        })
    }));
    let replies = run.batch(proposals("quick {}")).await.unwrap();
    assert!(!replies[0].text().contains("the tool panicked"), "{}", replies[0].text());
    assert_eq!(replies[0].executed, Executed::Executed);
}
