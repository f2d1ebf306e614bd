//! Layers that hold attempts back: how many run at once, and how often they start.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tooltape::layer::{Concurrency, Layered, RateLimit, layer_fn};
use tooltape::testing::{Spy, proposals};
use tooltape::{
    Access, Clock, Empty, Live, Proposal, Reply, RunLimits, Spawn, Spec, ToolError, tool_fn, tools,
};

use crate::declaring::{over, reply};
use crate::layers::nap;

/// So many naps of this length.
fn naps(count: usize, ms: u64) -> Vec<Proposal> {
    proposals(&format!("nap {{\"ms\":{ms}}}\n").repeat(count))
}

fn texts(replies: &[Reply]) -> Vec<String> {
    replies.iter().map(|reply| reply.text()).collect()
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_run_at_once_first_come_first_served() {
    let done = Arc::<std::sync::Mutex<Vec<u64>>>::default();
    let noted = done.clone();
    let noting = layer_fn(move |attempt, grants, next| {
        let (noted, no) = (noted.clone(), attempt.call().no().0);
        Box::pin(async move {
            noted.lock().unwrap().push(no);
            next.perform(attempt, grants).await
        })
    });
    let performer = Layered::new(Live).with(Concurrency::new(2)).with(noting);
    let run = over(tools![nap]).performer(performer);
    let before = Instant::now();
    let replies = run.batch(naps(5, 10)).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_millis(30), "two, two and one");
    assert_eq!(texts(&replies), ["10"; 5]);
    assert_eq!(*done.lock().unwrap(), [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn one_layer_may_hold_for_several_runs() {
    let shared = Arc::new(Concurrency::new(1));
    let run = || over(tools![nap]).performer(Layered::new(Live).with(shared.clone()));
    let (one, other) = (run(), run());
    let before = Instant::now();
    tokio::join!(reply(&one, "nap", r#"{"ms":10}"#), reply(&other, "nap", r#"{"ms":10}"#));
    assert_eq!(before.elapsed(), Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn a_recursive_call_takes_no_seat_from_the_calls_of_its_child() {
    let nest = tool_fn(Spec::new("nest", "Runs a child."), async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.start();
        Ok::<_, ToolError>(reply(&child, "nap", r#"{"ms":10}"#).await.text())
    });
    let run = over([nest, nap::tool()]).layer(Concurrency::new(1));
    assert_eq!(reply(&run, "nest", "{}").await.text(), "10");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_attempt_gives_its_seat_back() {
    let run = over(tools![nap]).performer(Layered::new(Live).with(Concurrency::new(1)));
    let mut dropped = Box::pin(run.batch(naps(2, 1_000)));
    assert!(futures_util::poll!(&mut dropped).is_pending());
    drop(dropped);
    assert_eq!(reply(&run, "nap", r#"{"ms":10}"#).await.text(), "10");
}

#[tokio::test(start_paused = true)]
async fn what_waits_too_long_for_a_seat_is_answered_truthfully() {
    let mut limits = RunLimits::default();
    limits.queue = Duration::from_millis(15);
    let performer = Layered::new(Live).with(Concurrency::new(1));
    let run = over(tools![nap]).limits(limits).performer(performer);
    let replies = run.batch(naps(3, 10)).await.unwrap();
    let late = "not executed: the bound `queue` of 15 ms was reached";
    assert_eq!(texts(&replies), ["10", "10", late]);
}

#[tokio::test(start_paused = true)]
async fn a_rate_lets_a_burst_start_and_spreads_the_rest_evenly_in_order() {
    let began = Arc::<std::sync::Mutex<Vec<(u64, u128)>>>::default();
    let (noted, start) = (began.clone(), Instant::now());
    let noting = layer_fn(move |attempt, grants, next| {
        noted.lock().unwrap().push((attempt.call().no().0, start.elapsed().as_millis()));
        next.perform(attempt, grants)
    });
    let rate = RateLimit::wait(2, Duration::from_millis(200));
    let run = over(tools![nap]).performer(Layered::new(Live).with(rate).with(noting));
    run.batch(naps(5, 0)).await.unwrap();
    let began = began.lock().unwrap();
    let calls: Vec<u64> = began.iter().map(|(call, _)| *call).collect();
    assert_eq!(calls, [1, 2, 3, 4, 5], "first come, first served");
    for (at, expected) in [0, 0, 100, 200, 300].into_iter().enumerate() {
        let late = began[at].1 - expected;
        assert!(late <= 3, "call {} began {late} ms late: {began:?}", at + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_may_refuse_with_the_time_to_try_again_on_the_runs_own_clock() {
    let (spy, clock) = (Spy::new("spy", Access::Write), Clock::fixed(Duration::from_secs(1)));
    let rate = RateLimit::refuse(1, Duration::from_millis(100));
    let run = over([spy.tool()]).clock(clock.clone()).performer(Layered::new(Live).with(rate));
    assert!(!reply(&run, "spy", "{}").await.is_error);
    clock.advance(Duration::from_millis(99));
    let refused = reply(&run, "spy", "{}").await;
    assert_eq!(refused.text(), "not executed: too many calls; try again later");
    assert_eq!(refused.fault.as_ref().unwrap().code.as_ref(), "rate.limited");
    clock.advance(Duration::from_millis(1));
    assert!(!reply(&run, "spy", "{}").await.is_error);
    assert_eq!(spy.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_nothing_lets_nothing_start() {
    for rate in [RateLimit::refuse(0, Duration::ZERO), RateLimit::wait(0, Duration::ZERO)] {
        let spy = Spy::new("spy", Access::Read);
        let run = over([spy.tool()]).performer(Layered::new(Live).with(rate));
        assert!(reply(&run, "spy", "{}").await.text().starts_with("not executed: "));
        assert_eq!(spy.calls(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_on_a_clock_that_stands_still_gives_up_waiting() {
    let rate = RateLimit::wait(1, Duration::from_millis(100));
    let clock = Clock::fixed(Duration::from_secs(1));
    let run = over(tools![nap]).clock(clock).layer(rate);
    let replies = run.batch(naps(2, 0)).await.unwrap();
    let late = "not executed: the bound `queue` of 60000 ms was reached";
    assert_eq!(texts(&replies), ["0", late]);
}
