//! Threads that nobody waits for any more: reported, kept apart from others, and silent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tooltape::layer::Timeout;
use tooltape::testing::proposals;
use tooltape::{
    Bound, Bounds, Cancel, Effects, Empty, Event, Executed, MemoryTape, Progress, Repeat, Reply,
    Retry, Run, Spec, State, Tool, ToolError, tool_fn_blocking,
};

use crate::stage::free;

/// A bound that is reached when a test says so: while a thread works, time stands still by itself.
const SHORT: Duration = Duration::from_millis(20);

fn short(spec: Spec) -> Spec {
    spec.bounds(Bounds { wall: Bound::At(SHORT), ..Bounds::default() })
}

/// How many threads of a tool work.
#[derive(Clone, Default)]
struct Watch {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Watch {
    fn begin(&self) {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
    }

    fn end(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// A tool whose threads work until each is released.
fn held(spec: Spec) -> (Watch, mpsc::Sender<()>, Arc<dyn Tool>) {
    let (release, released) = mpsc::channel();
    let watch = Watch::default();
    let (inside, released) = (watch.clone(), Mutex::new(released));
    let tool = tool_fn_blocking(spec, move |_: Empty| {
        inside.begin();
        let _ = released.lock().unwrap().recv();
        inside.end();
        Ok::<_, ToolError>(())
    });
    (watch, release, tool)
}

/// How often a test looks whether a thread did what it should: some seconds.
const YIELDS_MAX: u32 = 10_000_000;

async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..YIELDS_MAX {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to that");
}

/// Lets a batch reach its first bound once a thread works for it.
async fn expired(run: &Run, watch: &Watch, script: &str) -> Vec<Reply> {
    let expiring = async {
        until(|| watch.running() == 1).await;
        tokio::time::advance(SHORT).await;
    };
    tokio::join!(run.batch(proposals(script)), expiring).0.unwrap()
}

/// What happened to the first call from its start on, as the tape names it.
fn told(tape: &MemoryTape, run: &Run) -> Vec<&'static str> {
    let names = tape.records(run.id()).into_iter().filter_map(|record| match record.event {
        Event::Started { .. } => Some("started"),
        Event::Retried { .. } => Some("retried"),
        Event::Abandoned { .. } => Some("abandoned"),
        Event::Settled(_) => Some("settled"),
        Event::Progress { .. } => Some("progress"),
        Event::Emitted { .. } => Some("emitted"),
        Event::State { .. } => Some("state"),
        _ => None,
    });
    names.collect()
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_a_timeout_layer_gave_up_is_reported() {
    let (watch, release, stuck) = held(Spec::new("stuck", "Waits.").effects(Effects::read()));
    let tape = MemoryTape::default();
    let run = free([stuck]).tape(tape.clone()).layer(Timeout::new(SHORT));
    expired(&run, &watch, "stuck {}").await;
    assert_eq!(run.abandoned(), 1);
    assert_eq!(told(&tape, &run), ["started", "abandoned", "settled"]);
    release.send(()).unwrap();
    until(|| run.abandoned() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_of_a_batch_that_was_dropped_is_reported() {
    let (watch, release, stuck) = held(Spec::new("stuck", "Waits."));
    let tape = MemoryTape::default();
    let run = free([stuck]).tape(tape.clone());
    let mut batch = Box::pin(run.batch(proposals("stuck {}")));
    while watch.running() == 0 {
        assert!(futures_util::poll!(&mut batch).is_pending());
        tokio::task::yield_now().await;
    }
    drop(batch);
    assert_eq!(told(&tape, &run), ["started", "abandoned", "settled"]);
    release.send(()).unwrap();
    until(|| run.abandoned() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_was_waited_for_is_not_reported() {
    let (_, release, quick) = held(Spec::new("quick", "Ends."));
    release.send(()).unwrap();
    let tape = MemoryTape::default();
    let run = free([quick]).tape(tape.clone());
    run.batch(proposals("quick {}")).await.unwrap();
    assert_eq!(told(&tape, &run), ["started", "settled"]);
    assert_eq!(run.abandoned(), 0);
}

#[tokio::test(start_paused = true)]
async fn nobody_writes_anything_while_an_abandoned_thread_may() {
    let (watch, release, write) = held(short(Spec::new("write", "Writes.")));
    let tape = MemoryTape::default();
    let run = free([write]).tape(tape.clone());
    let releasing = async {
        until(|| watch.running() == 1).await;
        tokio::time::advance(SHORT).await;
        until(|| told(&tape, &run).contains(&"settled")).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(told(&tape, &run), ["started", "abandoned", "settled"], "the other one waits");
        release.send(()).unwrap();
        release.send(()).unwrap();
    };
    let (replies, ()) = tokio::join!(run.batch(proposals("write {}\nwrite {}")), releasing);
    let replies = replies.unwrap();
    assert_eq!(replies[0].executed, Executed::Unknown);
    assert!(!replies[1].is_error, "{}", replies[1].text());
    assert_eq!(watch.most(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_thread_is_one_of_those_that_its_tool_allows_at_once() {
    let bounds = Bounds { wall: Bound::At(SHORT), concurrency: Bound::At(1), ..Bounds::default() };
    let spec = Spec::new("dial", "Uses the one line.").effects(Effects::read()).bounds(bounds);
    let (watch, release, dial) = held(spec);
    let tape = MemoryTape::default();
    let run = free([dial]).tape(tape.clone());
    expired(&run, &watch, "dial {}").await;
    let mut batch = Box::pin(run.batch(proposals("dial {}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    assert_eq!(told(&tape, &run), ["started", "abandoned", "settled"], "the other one waits");
    release.send(()).unwrap();
    release.send(()).unwrap();
    assert!(!batch.await.unwrap()[0].is_error);
    assert_eq!(watch.most(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_the_end_of_a_call_on_the_tape() {
    let (release, released) = mpsc::channel::<()>();
    let (say, said) = mpsc::channel();
    let released = Mutex::new(released);
    let spec = short(Spec::new("stuck", "Talks on.").effects(Effects::read()));
    let watch = Watch::default();
    let inside = watch.clone();
    let talks = move |_: Empty, progress: Progress, count: State<u32>| {
        count.update(|count| *count += 1)?;
        inside.begin();
        let _ = released.lock().unwrap().recv();
        progress.say("still here");
        progress.emit("late", &1)?;
        let late = count.update(|count| *count += 1);
        say.send(late.unwrap_err().told().to_owned()).unwrap();
        Ok::<_, ToolError>(())
    };
    let (tape, count) = (MemoryTape::default(), State::new(0_u32));
    let run = free([tool_fn_blocking(spec, talks)]).tape(tape.clone()).grant(count.clone());
    expired(&run, &watch, "stuck {}").await;
    release.send(()).unwrap();
    until(|| run.abandoned() == 0).await;
    let refused = said.try_recv().expect("the thread said so before it was done");
    assert_eq!(refused, "the new state could not be recorded: the call is over");
    assert_eq!(count.get(), 1, "and it was not changed");
    assert_eq!(told(&tape, &run), ["started", "state", "abandoned", "settled"]);
}

/// The pause before another attempt is at most this.
const PAUSE: Duration = Duration::from_millis(100);

/// What may be tried three times.
fn repeated(name: &str) -> Spec {
    let effects = Effects { repeat: Repeat::Idempotent, ..Effects::default() };
    let retry = Retry { attempts: 3, pause_ms: 100, pause_ms_max: 100 };
    short(Spec::new(name, "May be repeated.").effects(effects).retry(retry))
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_given_up_is_told_before_the_next_one_starts() {
    let watch = Watch::default();
    let inside = watch.clone();
    let polite = tool_fn_blocking(repeated("polite"), move |_: Empty, cancel: Cancel| {
        inside.begin();
        while !cancel.is_requested() {
            std::thread::yield_now();
        }
        inside.end();
        Err::<(), _>(ToolError::cancelled())
    });
    let tape = MemoryTape::default();
    let run = free([polite]).tape(tape.clone());
    let batch = async {
        let replies = run.batch(proposals("polite {}")).await.unwrap();
        assert_eq!(replies[0].text(), "unknown: the bound `wall` of 20 ms was reached");
    };
    let expiring = async {
        for attempts in 1..=3 {
            until(|| watch.running() == 1).await;
            tokio::time::advance(SHORT).await;
            let abandoned = || told(&tape, &run).iter().filter(|it| **it == "abandoned").count();
            until(|| abandoned() == attempts && run.abandoned() == 0).await;
            tokio::time::advance(PAUSE).await;
        }
    };
    tokio::join!(batch, expiring);
    let of_one = ["started", "abandoned"];
    let all = [&of_one[..], &["retried"], &of_one, &["retried"], &of_one, &["settled"]].concat();
    assert_eq!(told(&tape, &run), all);
    assert_eq!(watch.most(), 1, "attempts at one call that ran at once");
}

#[tokio::test(start_paused = true)]
async fn no_attempt_follows_one_whose_thread_still_works() {
    let (watch, release, stuck) = held(repeated("stuck"));
    let tape = MemoryTape::default();
    let run = free([stuck]).tape(tape.clone());
    let pausing = async {
        until(|| run.abandoned() == 1).await;
        while !told(&tape, &run).contains(&"settled") {
            tokio::time::advance(PAUSE).await;
        }
    };
    let (replies, ()) = tokio::join!(expired(&run, &watch, "stuck {}"), pausing);
    assert_eq!(replies[0].text(), "unknown: the bound `wall` of 20 ms was reached");
    assert_eq!(told(&tape, &run), ["started", "abandoned", "settled"]);
    assert_eq!(watch.most(), 1);
    release.send(()).unwrap();
    until(|| run.abandoned() == 0).await;
}
