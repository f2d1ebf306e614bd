//! Layers: who waits in one is let through, and his time runs from then on.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::future::{self, block_on};
use tooltape::layer::Concurrency;
use tooltape::{Bound, BoundKind, Bounds, Effects, Empty, MemoryTape, Spec, ToolError, tool_fn};

use crate::stage::{batch, check, run, tape_is_whole};

const WALL: Duration = Duration::from_secs(1);

#[test]
fn a_call_that_its_layers_let_pass_runs_out_of_time_from_then_on() {
    check(|| {
        block_on(async {
            let tape = MemoryTape::default();
            let bounds = Bounds { wall: Bound::At(WALL), ..Bounds::default() };
            let spec = Spec::new("hang", "Never ends.").effects(Effects::read()).bounds(bounds);
            let hang = tool_fn(spec, async |_: Empty| {
                pending::<()>().await;
                Ok::<_, ToolError>(())
            });
            let run = Arc::new(run([hang], &tape, |_| {}).layer(Concurrency::new(1)));
            let left = Arc::new(AtomicUsize::new(2));
            let batches = [(); 2].map(|()| {
                let (run, left) = (run.clone(), left.clone());
                future::spawn(async move {
                    let replies = batch(&run, "hang {}").await;
                    left.fetch_sub(1, Ordering::Relaxed);
                    replies[0].fault.as_ref().and_then(|fault| fault.bound)
                })
            });
            // Nothing but its wall time ends a call: one whose clock never starts ends never.
            while left.load(Ordering::Relaxed) > 0 {
                tokio::time::advance(WALL);
                future::yield_now().await;
            }
            for batch in batches {
                assert_eq!(batch.await.unwrap(), Some(BoundKind::Wall));
            }
            assert_eq!(run.running(), 0);
            tape_is_whole(&tape);
        });
    });
}
