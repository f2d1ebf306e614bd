//! Layers around attempts: their order, what they may do, what stays true; acceptance 58, 88, 89.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tooltape::layer::{
    Breaker, Cache, Concurrency, Layer, Layered, Next, RateLimit, Timeout, layer_fn, only,
};
use tooltape::testing::{Spy, perform_conforms, play, proposals};
use tooltape::{
    Access, Answer, Attempt, Block, BoundKind, BoxFuture, Call, Determinism, Effects, Event,
    Executed, FaultKind, Grants, Live, MemoryTape, Output, Reach, Run, RunError, RunLimits, Spec,
    Tool, ToolError, Toolbox, Verdict, input, tool, tool_fn, tools,
};

use crate::declaring::{over, reply};

#[input]
pub(crate) struct Nap {
    ms: u64,
}

/// Reads nothing, for a while.
#[tool(Read)]
pub(crate) async fn nap(args: Nap) -> Result<u64, ToolError> {
    tokio::time::sleep(Duration::from_millis(args.ms)).await;
    Ok(args.ms)
}

type Log = Arc<Mutex<Vec<String>>>;

/// A layer that notes when an attempt comes in and when its result goes out.
fn noting(log: &Log, name: &'static str) -> impl Layer + 'static {
    let log = log.clone();
    layer_fn(move |attempt, grants, next| {
        let log = log.clone();
        Box::pin(async move {
            log.lock().unwrap().push(format!("{name} in"));
            let output = next.perform(attempt, grants).await;
            log.lock().unwrap().push(format!("{name} out"));
            output
        })
    })
}

#[tokio::test]
async fn layers_compose_in_the_order_of_registration() {
    let log = Log::default();
    let performer = Layered::new(Live).with(noting(&log, "outer")).with(noting(&log, "inner"));
    let run = over(tools![nap]).performer(performer);
    reply(&run, "nap", r#"{"ms":0}"#).await;
    assert_eq!(*log.lock().unwrap(), ["outer in", "inner in", "inner out", "outer out"]);
}

/// Refuses what starts processes, from what the tool declares.
async fn sandboxed_only(
    attempt: Attempt<'_>,
    grants: &Grants<'_>,
    next: Next<'_>,
) -> Result<Output, ToolError> {
    if attempt.call().spec().effects.process {
        return Err(ToolError::not_done("it needs a sandbox").code("sandbox.required"));
    }
    next.perform(attempt, grants).await
}

#[tokio::test]
async fn from_metadata_alone_a_policy_asks_or_allows_and_a_layer_requires_a_sandbox() {
    let shell = Spy::new("shell", Access::Write);
    let quiet = Effects { process: false, confirm: true, ..Effects::default() };
    let send = Spy::new("send", Access::Write).declaring(|spec| spec.effects(quiet));
    let far = Effects { reach: Reach::Network, process: false, ..Effects::read() };
    let fetch = Spy::new("fetch", Access::Read).declaring(|spec| spec.effects(far));
    let policy = |call: &Call| match &call.spec().effects {
        effects if effects.confirm => Verdict::ask("confirm"),
        effects if effects.reach == Reach::Network && effects.access == Access::Read => {
            Verdict::deny("only near", "only near")
        }
        _ => Verdict::allow("near"),
    };
    let toolbox = Toolbox::new([shell.tool(), send.tool(), fetch.tool()]).unwrap();
    let run = Run::new(&toolbox)
        .policy(policy)
        .approver(|_| Box::pin(async { Answer::Once }))
        .performer(Layered::new(Live).with(sandboxed_only));
    let replies = run.batch(proposals("shell {}\nsend {}\nfetch {}")).await.unwrap();
    let codes = replies.iter().map(|reply| reply.fault.as_ref().map(|fault| fault.code.as_ref()));
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes, [Some("sandbox.required"), None, Some("policy.denied")]);
    assert_eq!(replies[0].text(), "not executed: it needs a sandbox");
    assert_eq!((shell.calls(), send.calls(), fetch.calls()), (0, 1, 0));
}

#[tokio::test]
async fn a_layered_performer_keeps_every_promise_of_a_performer() {
    let log = Log::default();
    perform_conforms(|| Layered::new(Live)).await;
    perform_conforms(|| {
        let around = async |attempt: Attempt<'_>, grants: &Grants<'_>, next: Next<'_>| {
            next.perform(attempt, grants).await
        };
        Layered::new(Live).with(noting(&log, "it")).with(around).with(Arc::new(ByHand))
    })
    .await;
}

/// A layer that somebody wrote by hand.
struct ByHand;

impl Layer for ByHand {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        next.perform(attempt, grants)
    }
}

#[tokio::test]
async fn a_layer_may_be_for_some_tools_only() {
    let (spy, other) = (Spy::new("spy", Access::Read), Spy::new("other", Access::Read));
    let refuse = layer_fn(|_, _, _| Box::pin(async { Err(ToolError::not_done("no")) }));
    let performer = Layered::new(Live).with(only(|spec: &Spec| &*spec.name == "spy", refuse));
    let run = over([spy.tool(), other.tool()]).performer(performer);
    assert_eq!(play(&run, "spy {}\nother {}").await, "c1 not executed: no\nc2 {}\n");
    assert_eq!((spy.calls(), other.calls()), (0, 1));
}

#[tokio::test]
async fn a_layer_may_change_what_comes_back() {
    let shout = layer_fn(|attempt, grants, next: Next<'_>| {
        Box::pin(async move {
            let output = next.perform(attempt, grants).await?;
            Ok(output.block(Block::text("and more")))
        })
    });
    let run =
        over([Spy::new("spy", Access::Read).tool()]).performer(Layered::new(Live).with(shout));
    assert_eq!(play(&run, "spy {}").await, "c1 and more\n");
}

#[tokio::test]
async fn a_panic_in_a_layer_settles_its_call_only() {
    let spy = Spy::new("spy", Access::Write);
    let early = layer_fn(|attempt, grants, next: Next<'_>| {
        assert_ne!(attempt.call().args().as_str(), r#"{"n":1}"#, "a test panic");
        next.perform(attempt, grants)
    });
    let late = layer_fn(|attempt, grants, next: Next<'_>| {
        let fails = attempt.call().args().as_str() == r#"{"n":2}"#;
        Box::pin(async move {
            let output = next.perform(attempt, grants).await;
            assert!(!fails, "a test panic");
            output
        })
    });
    let run = over([spy.tool()]).performer(Layered::new(Live).with(early).with(late));
    let script = "spy {\"n\":1}\nspy {\"n\":2}\nspy {\"n\":3}";
    let replies = run.batch(proposals(script)).await.unwrap();
    let executed: Vec<_> = replies.iter().map(|reply| reply.executed).collect();
    assert_eq!(executed, [Executed::NotExecuted, Executed::Executed, Executed::Executed]);
    assert_eq!(replies[1].text(), "failed: executed, but the result was lost");
    let code = |at: usize| replies[at].fault.as_ref().unwrap().code.to_string();
    assert_eq!([code(0), code(1)], ["layer.panicked", "layer.panicked"]);
    assert_eq!(spy.calls(), 2);
}

#[tokio::test]
async fn what_no_layer_let_pass_is_not_executed_whatever_the_layer_says() {
    for (err, fatal) in [
        (ToolError::tell as fn(&'static str) -> ToolError, false),
        (ToolError::in_doubt, false),
        (ToolError::not_done, false),
        (ToolError::fatal, true),
    ] {
        let spy = Spy::new("spy", Access::Write);
        let lying = layer_fn(move |_, _, _| Box::pin(async move { Err(err("not today")) }));
        let run = over([spy.tool()]).performer(Layered::new(Live).with(lying));
        let reply = match run.batch(proposals("spy {}")).await {
            Ok(mut replies) if !fatal => replies.remove(0),
            Err(RunError::Ended { mut replies, .. }) if fatal => replies.remove(0),
            _ => panic!("a fatal fault ends the run, and no other does"),
        };
        assert_eq!(reply.text(), "not executed: not today");
        assert_eq!((reply.executed, spy.calls()), (Executed::NotExecuted, 0));
    }
}

/// A layer that holds every attempt for so long.
fn holding(ms: u64) -> impl Layer + 'static {
    layer_fn(move |attempt, grants, next: Next<'_>| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            next.perform(attempt, grants).await
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_tools_wall_time_starts_when_the_layers_let_it_pass() {
    let mut limits = RunLimits::default();
    (limits.wall, limits.queue) = (Duration::from_millis(50), Duration::from_secs(1));
    let run = || over(tools![nap]).limits(limits);
    let held = run().performer(Layered::new(Live).with(holding(900)));
    assert_eq!(reply(&held, "nap", r#"{"ms":40}"#).await.text(), "40");
    let told = reply(&held, "nap", r#"{"ms":60}"#).await.text();
    assert_eq!(told, "unknown: the bound `wall` of 50 ms was reached");
    let hung = run().performer(Layered::new(Live).with(holding(5_000)));
    let told = reply(&hung, "nap", r#"{"ms":0}"#).await.text();
    assert_eq!(told, "not executed: the bound `queue` of 1000 ms was reached");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_that_a_layer_still_holds_is_not_executed() {
    let run = over(tools![nap]).performer(Layered::new(Live).with(holding(900)));
    let mut batch = Box::pin(run.batch(proposals("nap {\"ms\":0}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    run.cancel();
    assert_eq!(batch.await.unwrap()[0].text(), "not executed: cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_holds_for_a_tool_that_ignores_it_and_names_the_bound() {
    let timeout = || Layered::new(Live).with(Timeout::new(Duration::from_millis(100)));
    let run = over(tools![nap]).performer(timeout());
    let before = tokio::time::Instant::now();
    let given_up = reply(&run, "nap", r#"{"ms":3600000}"#).await;
    assert_eq!(before.elapsed(), Duration::from_millis(100));
    assert_eq!(given_up.text(), "unknown: the bound `wall` of 100 ms was reached");
    let fault = given_up.fault.as_ref().unwrap();
    let bound = (fault.kind, fault.bound, fault.limit);
    assert_eq!(bound, (FaultKind::Exceeded, Some(BoundKind::Wall), Some(100)));
    assert_eq!(reply(&run, "nap", r#"{"ms":99}"#).await.text(), "99");

    let shorter = timeout().with(Timeout::new(Duration::from_millis(10)));
    let run = over(tools![nap]).performer(shorter);
    let told = reply(&run, "nap", r#"{"ms":3600000}"#).await.text();
    assert_eq!(told, "unknown: the bound `wall` of 10 ms was reached");

    let around_a_queue = over(tools![nap]).performer(timeout().with(holding(900)));
    let told = reply(&around_a_queue, "nap", r#"{"ms":0}"#).await.text();
    assert_eq!(told, "not executed: the bound `wall` of 100 ms was reached");
}

#[tokio::test(start_paused = true)]
async fn an_exceeded_bound_is_logged_and_stops_the_call_and_the_result_names_it() {
    let mut limits = RunLimits::default();
    (limits.wall, limits.queue) = (Duration::from_millis(50), Duration::from_millis(20));
    let held = only(|spec: &Spec| &*spec.name == "held", holding(900));
    let timed = only(|spec: &Spec| &*spec.name == "timed", Timeout::new(Duration::from_millis(5)));
    let seen = Arc::<Seen>::default();
    let tools = ["held", "timed", "slow"].map(|name| watched(name, Effects::read(), &seen));
    let tape = MemoryTape::default();
    let run = over(tools).limits(limits).tape(tape.clone());
    let run = run.performer(Layered::new(Live).with(held).with(timed));
    let script = "held {\"n\":1}\ntimed {\"n\":1000}\nslow {\"n\":1000}";
    run.batch(proposals(script)).await.unwrap();
    let logged = tape.records(run.id()).into_iter().filter_map(|record| match record.event {
        Event::Settled(reply) => reply.fault.as_ref().map(|fault| {
            let name = reply.name.to_string();
            (name, fault.bound.unwrap().name(), fault.limit.unwrap(), reply.executed)
        }),
        _ => None,
    });
    let logged: Vec<_> = logged.collect();
    let expected = [
        ("timed".to_owned(), "wall", 5, Executed::Unknown),
        ("held".to_owned(), "queue", 20, Executed::NotExecuted),
        ("slow".to_owned(), "wall", 50, Executed::Unknown),
    ];
    assert_eq!(logged, expected);
    assert_eq!(*seen.began.lock().unwrap(), ["timed1000", "slow1000"]);
}

/// The most calls that ran at once, and the order in which they began.
#[derive(Default)]
struct Seen {
    now: AtomicUsize,
    most: AtomicUsize,
    began: Mutex<Vec<String>>,
}

fn watched(name: &str, effects: Effects, seen: &Arc<Seen>) -> Arc<dyn Tool> {
    #[input]
    struct Any {
        n: u32,
    }
    let (seen, spec) = (seen.clone(), Spec::new(name, "Gives way.").effects(effects));
    let name = name.to_owned();
    tool_fn(spec, move |any: Any| {
        let (seen, name) = (seen.clone(), name.clone());
        async move {
            seen.began.lock().unwrap().push(format!("{name}{}", any.n));
            let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
            seen.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(any.n.into())).await;
            seen.now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, ToolError>(any.n)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn registering_layers_never_changes_concurrency() {
    async fn overlaps(performer: Layered) -> (usize, Vec<String>, Duration) {
        let seen = Arc::<Seen>::default();
        let pure = Effects { determinism: Determinism::Deterministic, ..Effects::pure() };
        let tools = [
            watched("read", Effects::read(), &seen),
            watched("write", Effects::default(), &seen),
            watched("pure", pure, &seen),
        ];
        let run = over(tools).performer(performer);
        let script = "read {\"n\":1}\nread {\"n\":2}\npure {\"n\":3}\npure {\"n\":3}\n\
            write {\"n\":4}\nread {\"n\":5}\npure {\"n\":6}\nwrite {\"n\":7}\nwrite {\"n\":8}";
        let before = tokio::time::Instant::now();
        run.batch(proposals(script)).await.unwrap();
        let began = seen.began.lock().unwrap().clone();
        (seen.most.load(Ordering::SeqCst), began, before.elapsed())
    }
    let plain = overlaps(Layered::new(Live)).await;
    assert_eq!(plain.0, 5, "reads overlap, and what is pure overlaps anything");
    let hour = Duration::from_secs(3_600);
    let all = Layered::new(Live)
        .with(noting(&Log::default(), "it"))
        .with(Breaker::new(3, hour))
        .with(Cache::default())
        .with(RateLimit::wait(1_000, hour))
        .with(Concurrency::new(1_000))
        .with(Timeout::new(hour));
    assert_eq!(overlaps(all).await, plain);
}
