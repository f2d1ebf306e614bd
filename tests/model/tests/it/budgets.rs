//! Budgets: who spends at once spends no more than there is.

use std::sync::Arc;

use shuttle::future::{self, block_on};
use tooltape::{BoundKind, Effects, Empty, MemoryTape, Name, Spawn, Spec, ToolError, tool_fn};

use crate::stage::{Crowd, batch, check, run, tape_is_whole};

#[test]
fn calls_that_are_made_at_once_in_a_run_and_its_child_stay_within_its_limits() {
    check(|| {
        block_on(async {
            let (crowd, tape) = (Crowd::default(), MemoryTape::default());
            let spec = |name: &str| Spec::new(name, "Counts.").effects(Effects::read());
            let [one, two] = ["one", "two"].map(|name| {
                let crowd = crowd.clone();
                tool_fn(spec(name), move |_: Empty| {
                    crowd.count(name);
                    async { Ok::<_, ToolError>(()) }
                })
            });
            let counted = crowd.clone();
            let nest = tool_fn(Spec::new("nest", "Nests."), move |_: Empty, spawn: Spawn| {
                counted.count("nest");
                async move {
                    let child = spawn.child()?.start();
                    batch(&child, "one {}\ntwo {}").await;
                    Ok::<_, ToolError>(())
                }
            });
            let quota = Name::new("two").unwrap();
            let run = run([one, two, nest], &tape, |limits| limits.run_calls = 4).quota(quota, 1);
            let run = Arc::new(run);
            let batches = ["one {}\ntwo {}", "nest {}", "one {}\ntwo {}"].map(|script| {
                let run = run.clone();
                future::spawn(async move { batch(&run, script).await })
            });
            let mut bounds = Vec::new();
            for batch in batches {
                let replies = batch.await.unwrap();
                let faults = replies.iter().filter_map(|reply| reply.fault.as_ref());
                bounds.extend(faults.map(|fault| fault.bound));
            }
            let known = [Some(BoundKind::RunCalls), Some(BoundKind::ToolCalls)];
            assert!(bounds.iter().all(|bound| known.contains(bound)), "{bounds:?}");
            let ran = |name| crowd.most(|room| room == name);
            assert!(ran("two") <= 1, "over the quota");
            assert!(ran("one") + ran("two") + ran("nest") <= 4, "over the limit of calls");
            tape_is_whole(&tape);
        });
    });
}
