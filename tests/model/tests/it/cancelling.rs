//! Cancelling: whenever it comes, it reaches its call.

use std::sync::Arc;

use shuttle::future::{self, block_on, yield_now};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use tooltape::{CallNo, Cancel, Effects, Empty, MemoryTape, Reply, Run, Spec, ToolError, tool_fn};

use crate::stage::{batch, check, dawdle, run, tape_is_whole};

/// A run with one seat, whose tool `wait` ends only when it is cancelled; and whether it began.
fn waiting(tape: &MemoryTape) -> (Arc<Run>, Arc<AtomicBool>) {
    let spec = Spec::new("wait", "Waits for ever.").effects(Effects::read());
    let began = Arc::new(AtomicBool::new(false));
    let begins = began.clone();
    let wait = tool_fn(spec, move |_: Empty, cancel: Cancel| {
        begins.store(true, Ordering::SeqCst);
        async move {
            cancel.requested().await;
            Err::<(), _>(ToolError::cancelled())
        }
    });
    (Arc::new(run([wait], tape, |limits| limits.concurrency = 1)), began)
}

fn all_cancelled(replies: &[Reply]) {
    let kinds: Vec<_> =
        replies.iter().map(|reply| reply.fault.as_ref().map(|fault| fault.kind)).collect();
    assert!(kinds.iter().all(|kind| *kind == Some(tooltape::FaultKind::Cancelled)), "{kinds:?}");
}

#[test]
fn a_cancel_of_one_call_is_never_lost_however_early_or_late_it_comes() {
    check(|| {
        block_on(async {
            let tape = MemoryTape::default();
            let (run, began) = waiting(&tape);
            let cancels = [1, 2].map(|call| {
                let (run, began) = (run.clone(), began.clone());
                future::spawn(async move {
                    // Before it, nobody has these numbers.
                    while !began.load(Ordering::SeqCst) {
                        yield_now().await;
                    }
                    run.cancel_call(CallNo(call));
                })
            });
            // One runs and one is queued; a cancel that got lost leaves its call there for ever.
            all_cancelled(&batch(&run, "wait {}\nwait {}").await);
            for cancel in cancels {
                cancel.await.unwrap();
            }
            assert_eq!(run.running(), 0);
            tape_is_whole(&tape);
        });
    });
}

#[test]
fn a_cancel_of_the_run_reaches_every_call_of_every_batch() {
    check(|| {
        block_on(async {
            let tape = MemoryTape::default();
            let (run, _) = waiting(&tape);
            let batches = [(); 2].map(|()| {
                let run = run.clone();
                future::spawn(async move { all_cancelled(&batch(&run, "wait {}\nwait {}").await) })
            });
            dawdle().await;
            run.cancel();
            for batch in batches {
                batch.await.unwrap();
            }
            assert_eq!(run.running(), 0);
            tape_is_whole(&tape);
        });
    });
}
