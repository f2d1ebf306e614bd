//! Layers that remember: the cache of results and the breaker of circuits; acceptance 101.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tooltape::layer::{Breaker, Cache, Layered, Timeout};
use tooltape::testing::{Spy, proposals};
use tooltape::{
    Access, Clock, Determinism, Effects, Empty, Executed, Live, Output, Run, Source, Spec, Tool,
    ToolError, tool_fn, tools,
};

use crate::declaring::{over, reply};
use crate::layers::nap;

/// A pure, deterministic spy.
fn pure(name: &str) -> Spy {
    let effects = Effects { determinism: Determinism::Deterministic, ..Effects::pure() };
    Spy::new(name, Access::Pure).declaring(|spec| spec.effects(effects))
}

fn cached(spy: &Spy, cache: Cache) -> Run {
    over([spy.tool()]).performer(Layered::new(Live).with(cache))
}

#[tokio::test]
async fn a_pure_deterministic_call_is_answered_from_the_cache_and_says_so() {
    let spy = pure("spy");
    let run = cached(&spy, Cache::default());
    let first = reply(&run, "spy", r#"{"a":1,"b":2}"#).await;
    let again = reply(&run, "spy", r#"{ "b":2, "a":1.0 }"#).await;
    assert_eq!((first.source, again.source), (Source::Tool, Source::Cache));
    assert_eq!((first.text(), first.result_hash), (again.text(), again.result_hash));
    assert_eq!(spy.calls(), 1);
    assert_eq!(reply(&run, "spy", r#"{"a":1,"b":3}"#).await.source, Source::Tool);
}

#[tokio::test]
async fn what_is_not_pure_and_deterministic_is_never_cached() {
    let lucky = Effects { determinism: Determinism::NonDeterministic, ..Effects::pure() };
    let bounded = Effects { determinism: Determinism::Bounded, ..Effects::pure() };
    let read = Effects { determinism: Determinism::Deterministic, ..Effects::read() };
    let write = Effects { determinism: Determinism::Deterministic, ..Effects::default() };
    for effects in [lucky, bounded, read, write] {
        let spy = Spy::new("spy", Access::Pure).declaring(|spec| spec.effects(effects));
        let run = cached(&spy, Cache::default());
        reply(&run, "spy", "{}").await;
        assert_eq!(reply(&run, "spy", "{}").await.source, Source::Tool);
        assert_eq!(spy.calls(), 2);
    }
}

#[tokio::test]
async fn a_failure_is_not_cached() {
    let spy = pure("spy").returning(|_| Err(ToolError::tell("no luck")));
    let run = cached(&spy, Cache::default());
    for _ in 0..2 {
        assert_eq!(reply(&run, "spy", "{}").await.text(), "failed: no luck");
    }
    assert_eq!(spy.calls(), 2);
}

#[tokio::test]
async fn another_definition_of_a_tool_has_results_of_its_own() {
    let cache = Arc::new(Cache::default());
    let source = async |spy: Spy| {
        let rights = "net:get:example.com".parse().unwrap();
        let run = over([spy.tool()]).rights(rights);
        let run = run.performer(Layered::new(Live).with(cache.clone()));
        reply(&run, "spy", "{}").await.source
    };
    assert_eq!(source(pure("spy")).await, Source::Tool);
    assert_eq!(source(pure("spy")).await, Source::Cache, "runs share it");
    let needier = pure("spy").declaring(|spec| spec.needs("net:get:example.com"));
    assert_eq!(source(needier).await, Source::Tool);
    assert_eq!(source(pure("spy").declaring(|spec| spec.version("2.0.0"))).await, Source::Tool);
}

#[tokio::test]
async fn a_cache_keeps_what_was_used_last_within_its_entries() {
    let spy = pure("spy");
    let run = cached(&spy, Cache::default().entries(2));
    let source = async |n: u32| reply(&run, "spy", &format!("{{\"n\":{n}}}")).await.source;
    for n in [1, 2, 1, 3] {
        source(n).await;
    }
    assert_eq!((source(1).await, source(3).await), (Source::Cache, Source::Cache));
    assert_eq!(source(2).await, Source::Tool, "it was used least recently");
    let none = cached(&spy, Cache::default().entries(0));
    reply(&none, "spy", "{}").await;
    assert_eq!(reply(&none, "spy", "{}").await.source, Source::Tool);
}

#[tokio::test]
async fn a_cache_keeps_no_more_bytes_than_it_may() {
    let spy = pure("spy").returning(|args| {
        let bytes = args.to_value()["bytes"].as_u64().unwrap_or(0) as usize;
        Ok(Output::text("x".repeat(bytes)))
    });
    let run = cached(&spy, Cache::default().bytes(20_000));
    let source = async |bytes| {
        let arguments = format!("{{\"bytes\":{bytes}}}");
        (reply(&run, "spy", &arguments).await.source, reply(&run, "spy", &arguments).await.source)
    };
    // A text is kept twice: as the value and as content.
    assert_eq!(source(4_000).await, (Source::Tool, Source::Cache));
    assert_eq!(source(6_000).await, (Source::Tool, Source::Cache));
    assert_eq!(source(4_000).await, (Source::Tool, Source::Cache), "it made room for the other");
    assert_eq!(source(30_000).await, (Source::Tool, Source::Tool), "it is too large");
    assert_eq!(source(4_000).await, (Source::Cache, Source::Cache), "which moved nobody out");
}

/// A tool that fails as long as it is told to, and how often it ran.
fn fickle(err: fn() -> Option<ToolError>) -> (Arc<AtomicU32>, Arc<dyn Tool>) {
    let calls = Arc::<AtomicU32>::default();
    let counted = calls.clone();
    let spec = Spec::new("fickle", "Fails at times.").effects(Effects::read());
    let tool = tool_fn(spec, move |_: Empty| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { err().map_or(Ok("fine"), Err) }
    });
    (calls, tool)
}

fn broken() -> Option<ToolError> {
    Some(ToolError::tell("no luck"))
}

#[tokio::test]
async fn a_breaker_opens_after_failures_in_a_row_and_tries_once_after_its_pause() {
    let clock = Clock::fixed(Duration::from_secs(1));
    let (calls, tool) = fickle(broken);
    let breaker = Breaker::new(3, Duration::from_secs(30));
    let run = over([tool]).clock(clock.clone()).performer(Layered::new(Live).with(breaker));
    for _ in 0..3 {
        assert_eq!(reply(&run, "fickle", "{}").await.text(), "failed: no luck");
    }
    let refused = reply(&run, "fickle", "{}").await;
    assert_eq!(refused.fault.as_ref().unwrap().code.as_ref(), "breaker.open");
    assert_eq!(refused.executed, Executed::NotExecuted);
    clock.advance(Duration::from_millis(29_999));
    assert_eq!(reply(&run, "fickle", "{}").await.executed, Executed::NotExecuted);
    clock.advance(Duration::from_millis(1));
    assert_eq!(reply(&run, "fickle", "{}").await.text(), "failed: no luck", "one finds out");
    assert_eq!(reply(&run, "fickle", "{}").await.executed, Executed::NotExecuted);
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_success_closes_a_breaker_and_starts_the_count_again() {
    static FAILS: AtomicU32 = AtomicU32::new(0);
    let clock = Clock::fixed(Duration::from_secs(1));
    let (_, tool) = fickle(|| (FAILS.load(Ordering::SeqCst) > 0).then(|| ToolError::tell("no")));
    let breaker = Breaker::new(2, Duration::from_secs(30));
    let run = over([tool]).clock(clock.clone()).performer(Layered::new(Live).with(breaker));
    let call = async |fails: u32| {
        FAILS.store(fails, Ordering::SeqCst);
        reply(&run, "fickle", "{}").await.executed
    };
    for fails in [1, 0, 1, 0, 1, 1] {
        assert_eq!(call(fails).await, Executed::Executed, "never two in a row before");
    }
    assert_eq!(call(0).await, Executed::NotExecuted);
    clock.advance(Duration::from_secs(30));
    for fails in [0, 1, 0] {
        assert_eq!(call(fails).await, Executed::Executed, "one success closed it");
    }
}

#[tokio::test]
async fn a_breaker_is_of_one_tool() {
    let (_, fickle) = fickle(broken);
    let spy = Spy::new("spy", Access::Read);
    let breaker = Breaker::new(1, Duration::from_secs(30));
    let run = over([fickle, spy.tool()]).performer(Layered::new(Live).with(breaker));
    reply(&run, "fickle", "{}").await;
    assert_eq!(reply(&run, "fickle", "{}").await.executed, Executed::NotExecuted);
    assert_eq!(reply(&run, "spy", "{}").await.executed, Executed::Executed);
}

#[tokio::test]
async fn what_was_not_done_says_nothing_about_the_tool() {
    let refusals: [fn() -> Option<ToolError>; 4] = [
        || Some(ToolError::not_done("not today")),
        || Some(ToolError::user_must_act("log in")),
        || Some(ToolError::retry_after(Duration::ZERO, "later")),
        || Some(ToolError::cancelled()),
    ];
    for refusal in refusals {
        let (calls, tool) = fickle(refusal);
        let breaker = Breaker::new(1, Duration::from_secs(30));
        let run = over([tool]).performer(Layered::new(Live).with(breaker));
        reply(&run, "fickle", "{}").await;
        reply(&run, "fickle", "{}").await;
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn while_one_call_finds_out_the_others_are_refused_and_a_dropped_one_lets_the_next_try() {
    let performer = Layered::new(Live)
        .with(Breaker::new(1, Duration::from_millis(50)))
        .with(Timeout::new(Duration::from_millis(100)));
    let run = over(tools![nap]).performer(performer);
    let hang = "nap {\"ms\":3600000}";
    let told = reply(&run, "nap", r#"{"ms":3600000}"#).await.text();
    assert_eq!(told, "unknown: the bound `wall` of 100 ms was reached");
    tokio::time::advance(Duration::from_millis(51)).await;

    let mut tries = Box::pin(run.batch(proposals(hang)));
    assert!(futures_util::poll!(&mut tries).is_pending());
    let refused = reply(&run, "nap", r#"{"ms":0}"#).await;
    assert_eq!(refused.fault.as_ref().unwrap().code.as_ref(), "breaker.open");
    drop(tries);
    assert_eq!(reply(&run, "nap", r#"{"ms":0}"#).await.text(), "0");
}

#[tokio::test(start_paused = true)]
async fn a_call_let_through_before_a_breaker_opened_changes_nothing_when_it_ends() {
    let breaker = Breaker::new(1, Duration::from_secs(30));
    let run = over(tools![nap]).performer(Layered::new(Live).with(breaker).with(fails_on(1)));
    let (slow, fast) =
        tokio::join!(reply(&run, "nap", r#"{"ms":10}"#), reply(&run, "nap", r#"{"ms":1}"#));
    assert_eq!((slow.text().as_str(), fast.text().as_str()), ("10", "failed: no luck"));
    assert_eq!(reply(&run, "nap", r#"{"ms":0}"#).await.executed, Executed::NotExecuted);
}

/// A layer that fails a nap of this length once it is over.
fn fails_on(ms: u64) -> impl tooltape::layer::Layer + 'static {
    tooltape::layer::layer_fn(move |attempt, grants, next| {
        let fails = attempt.call().args().as_str() == format!("{{\"ms\":{ms}}}");
        Box::pin(async move {
            let output = next.perform(attempt, grants).await;
            if fails { Err(ToolError::tell("no luck")) } else { output }
        })
    })
}
