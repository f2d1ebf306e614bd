//! What is tried again, how often, after how long, and what never is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tooltape::testing::proposals;
use tooltape::{
    Bound, Bounds, Cancel, Effects, Empty, Event, Executed, IdempotencyKey, MemoryTape, Random,
    Repeat, Retry, RunLimits, Spec, Tool, ToolError, tool_fn,
};

use crate::stage::free;

/// A tool that fails so, until its last attempt.
fn flaky(repeat: Repeat, fails: u32, error: fn() -> ToolError) -> (Arc<AtomicU32>, Arc<dyn Tool>) {
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = attempts.clone();
    let effects = Effects { repeat, ..Effects::default() };
    let retry = Retry { attempts: 3, pause_ms: 100, pause_ms_max: 1_000 };
    let spec = Spec::new("flaky", "Fails at first.").effects(effects).retry(retry);
    let tool = tool_fn(spec, move |_: Empty| {
        let attempt = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { if attempt > fails { Ok(attempt) } else { Err(error()) } }
    });
    (attempts, tool)
}

async fn attempts(repeat: Repeat, error: fn() -> ToolError) -> u32 {
    let (attempts, tool) = flaky(repeat, 2, error);
    free([tool]).batch(proposals("flaky {}")).await.ok();
    attempts.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn only_what_may_happen_twice_is_tried_again() {
    let failed = || ToolError::tell("no");
    assert_eq!(attempts(Repeat::Idempotent, failed).await, 3);
    assert_eq!(attempts(Repeat::Keyed, failed).await, 3);
    assert_eq!(attempts(Repeat::Once, failed).await, 1);
    let in_doubt = || ToolError::in_doubt("no answer");
    assert_eq!(attempts(Repeat::Idempotent, in_doubt).await, 3);
    assert_eq!(attempts(Repeat::Once, in_doubt).await, 1);
    let panics: fn() -> ToolError = || panic!("planted");
    assert_eq!(attempts(Repeat::Idempotent, panics).await, 3);
    assert_eq!(attempts(Repeat::Once, panics).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_says_that_nothing_happened_is_tried_again_whatever_it_is() {
    assert_eq!(attempts(Repeat::Once, || ToolError::not_done("busy")).await, 3);
    let later = || ToolError::retry_after(Duration::from_millis(5), "busy");
    assert_eq!(attempts(Repeat::Once, later).await, 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_person_must_mend_or_what_ends_the_run_is_never_tried_again() {
    for error in
        [|| ToolError::user_must_act("log in"), || ToolError::fatal("gone"), ToolError::cancelled]
    {
        assert_eq!(attempts(Repeat::Idempotent, error).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_on_the_tape_and_only_the_last_ends_the_call() {
    let (_, tool) = flaky(Repeat::Idempotent, 2, || ToolError::tell("no").code("db.busy"));
    let tape = MemoryTape::default();
    let run = free([tool]).tape(tape.clone()).random(Random::seeded([7; 32]));
    let replies = run.batch(proposals("flaky {}")).await.unwrap();
    assert_eq!(replies[0].text(), "3");
    let seen: Vec<_> = tape
        .records(run.id())
        .iter()
        .filter_map(|record| match &record.event {
            Event::Started { attempt, .. } => Some(format!("started {attempt}")),
            Event::Retried { attempt, code, .. } => Some(format!("failed {attempt} {code}")),
            Event::Settled(_) => Some("settled".to_owned()),
            _ => None,
        })
        .collect();
    let expected =
        ["started 1", "failed 1 db.busy", "started 2", "failed 2 db.busy", "started 3", "settled"];
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn the_pause_doubles_varies_with_the_seed_and_heeds_what_the_tool_asks_for() {
    let pauses = async |seed: u8, error: fn() -> ToolError| {
        let (_, tool) = flaky(Repeat::Idempotent, 2, error);
        let tape = MemoryTape::default();
        let run = free([tool]).tape(tape.clone()).random(Random::seeded([seed; 32]));
        run.batch(proposals("flaky {}")).await.unwrap();
        let pauses = tape.records(run.id()).into_iter().filter_map(|record| match record.event {
            Event::Retried { pause_ms, .. } => Some(pause_ms),
            _ => None,
        });
        pauses.collect::<Vec<_>>()
    };
    let first = pauses(1, || ToolError::tell("no")).await;
    assert!((50..=100).contains(&first[0]) && (100..=200).contains(&first[1]), "{first:?}");
    assert_eq!(first, pauses(1, || ToolError::tell("no")).await, "the seed decides");
    assert_ne!(first, pauses(2, || ToolError::tell("no")).await);
    let asked = pauses(1, || ToolError::retry_after(Duration::from_millis(700), "busy")).await;
    assert_eq!(asked, [700, 700]);
    let too_long = pauses(1, || ToolError::retry_after(Duration::from_secs(60), "busy")).await;
    assert!(too_long.is_empty(), "the model can wait better than a call");
}

#[tokio::test(start_paused = true)]
async fn the_idempotency_key_is_the_same_for_every_attempt_and_for_no_other_call() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = keys.clone();
    let effects = Effects { repeat: Repeat::Keyed, ..Effects::default() };
    let retry = Retry { attempts: 2, ..Retry::default() };
    let spec = Spec::new("pay", "Pays.").effects(effects).retry(retry);
    let pay = tool_fn(spec, move |_: Empty, key: IdempotencyKey| {
        seen.lock().unwrap().push(key.to_string());
        async { Err::<(), _>(ToolError::in_doubt("no answer")) }
    });
    let run = free([pay]);
    run.batch(proposals("pay {}\npay {}")).await.unwrap();
    let keys = keys.lock().unwrap();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[2] == keys[3] && keys[0] != keys[2], "{keys:?}");
    assert_eq!(keys[0].len(), 64);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_or_a_deadline_ends_the_pause_and_the_reply_says_what_is_known() {
    let (tried, tool) = flaky(Repeat::Idempotent, 2, || ToolError::not_done("busy"));
    let mut limits = RunLimits::default();
    limits.batch_wall = Duration::from_millis(20);
    let replies = free([tool]).limits(limits).batch(proposals("flaky {}")).await.unwrap();
    assert_eq!(replies[0].executed, Executed::NotExecuted);
    assert_eq!(replies[0].text(), "not executed: the bound `batch_wall` of 20 ms was reached");
    assert_eq!(tried.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_attempt_may_have_done_is_not_denied_by_a_later_one() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let effects = Effects { repeat: Repeat::Idempotent, ..Effects::default() };
    let retry = Retry { attempts: 2, pause_ms: 1, pause_ms_max: 10 };
    let spec = Spec::new("push", "Pushes.").effects(effects).retry(retry);
    let push = tool_fn(spec, move |_: Empty| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            Err::<(), _>(match first {
                true => ToolError::in_doubt("no answer"),
                false => ToolError::not_done("busy"),
            })
        }
    });
    let replies = free([push]).batch(proposals("push {}")).await.unwrap();
    assert_eq!(tries.load(Ordering::SeqCst), 2);
    assert_eq!(replies[0].executed, Executed::Unknown);
    assert_eq!(replies[0].text(), "unknown: busy");
}

#[tokio::test(start_paused = true)]
async fn what_an_attempt_left_running_is_told_before_the_next_one_starts() {
    let tasks = Arc::new(Mutex::new(Vec::<Cancel>::new()));
    let seen = tasks.clone();
    let effects = Effects { repeat: Repeat::Idempotent, ..Effects::default() };
    let retry = Retry { attempts: 3, pause_ms: 100, pause_ms_max: 1_000 };
    let bounds = Bounds { wall: Bound::At(Duration::from_millis(20)), ..Bounds::default() };
    let spec = Spec::new("hang", "Hangs.").effects(effects).retry(retry).bounds(bounds);
    let hang = tool_fn(spec, move |_: Empty, cancel: Cancel| {
        let mut tasks = seen.lock().unwrap();
        assert!(tasks.iter().all(Cancel::is_requested), "earlier attempts were told");
        assert!(!cancel.is_requested(), "and this one was not");
        tasks.push(cancel);
        async { std::future::pending::<Result<(), ToolError>>().await }
    });
    let replies = free([hang]).batch(proposals("hang {}")).await.unwrap();
    assert_eq!(replies[0].text(), "unknown: the bound `wall` of 20 ms was reached");
    assert_eq!(tasks.lock().unwrap().len(), 3);
    assert!(tasks.lock().unwrap().iter().all(Cancel::is_requested));
}
