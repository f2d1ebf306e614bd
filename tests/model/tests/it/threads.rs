//! Threads that may outlive their calls: each is counted while it does, and never longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::future::{self, block_on};
use shuttle::thread;
use tokio::sync::Notify;
use tooltape::{
    Bound, BoundKind, Bounds, Effects, Empty, MemoryTape, Run, Spec, ToolError, tool_fn_blocking,
};

use crate::stage::{Crowd, all_succeeded, batch, check, dawdle, run, tape_is_whole, unless};

const WALL: Duration = Duration::from_secs(1);

/// A run with one thread, whose tool `block` works on it.
fn blocking(crowd: &Crowd, tape: &MemoryTape) -> Arc<Run> {
    let crowd = crowd.clone();
    let bounds = Bounds { wall: Bound::At(WALL), ..Bounds::default() };
    let spec = Spec::new("block", "Keeps a thread busy.").effects(Effects::read()).bounds(bounds);
    let block = tool_fn_blocking(spec, move |_: Empty| {
        let _thread = crowd.enter("thread");
        thread::yield_now();
        Ok::<_, ToolError>(())
    });
    Arc::new(run([block], tape, |limits| limits.blocking = 1))
}

/// Looks at the count while others work. It never counts more than the calls that were made: one
/// that is just being left may be counted a moment longer than its thread works, none below zero.
fn watch(run: &Arc<Run>, calls: usize) -> future::JoinHandle<()> {
    let run = run.clone();
    future::spawn(async move {
        for _ in 0..6 {
            let count = run.abandoned();
            assert!(count <= calls, "{count} threads were counted, of {calls} calls");
            future::yield_now().await;
        }
    })
}

/// What must hold when all is over, whatever became of it.
async fn is_quiet(run: &Run, crowd: &Crowd, tape: &MemoryTape) {
    // There is one seat, so this one starts when the last thread is done.
    all_succeeded(&batch(run, "block {}").await);
    assert_eq!(run.abandoned(), 0, "a thread that is done is still counted");
    assert_eq!(run.running(), 0);
    assert_eq!(crowd.most(|_| true), 1, "two threads on one seat");
    tape_is_whole(tape);
}

#[test]
fn a_thread_whose_call_was_dropped_is_counted_until_it_ends_and_never_below_zero() {
    check(|| {
        block_on(async {
            let (crowd, tape) = (Crowd::default(), MemoryTape::default());
            let run = blocking(&crowd, &tape);
            let watcher = watch(&run, 2);
            let tasks = [(); 2].map(|()| {
                let (run, gone) = (run.clone(), Arc::new(Notify::default()));
                let leave = gone.clone();
                let leaver = future::spawn(async move {
                    dawdle().await;
                    leave.notify_one();
                });
                let task = future::spawn(async move {
                    unless(&gone, batch(&run, "block {}")).await;
                });
                [leaver, task]
            });
            for task in tasks.into_iter().flatten() {
                task.await.unwrap();
            }
            watcher.await.unwrap();
            is_quiet(&run, &crowd, &tape).await;
        });
    });
}

#[test]
fn a_deadline_that_meets_the_end_of_a_thread_answers_once_and_truly() {
    static LATE: AtomicUsize = AtomicUsize::new(0);
    check(|| {
        block_on(async {
            let (crowd, tape) = (Crowd::default(), MemoryTape::default());
            let run = blocking(&crowd, &tape);
            let watcher = watch(&run, 1);
            let clock = future::spawn(async {
                dawdle().await;
                tokio::time::advance(WALL);
            });
            let replies = batch(&run, "block {}").await;
            if let Some(fault) = &replies[0].fault {
                assert_eq!(fault.bound, Some(BoundKind::Wall), "{fault:?}");
                LATE.fetch_add(1, Ordering::Relaxed);
            }
            clock.await.unwrap();
            watcher.await.unwrap();
            is_quiet(&run, &crowd, &tape).await;
        });
    });
    assert!(LATE.load(Ordering::Relaxed) > 0, "no schedule was late");
}
