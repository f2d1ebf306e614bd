//! The tape: whoever writes at once, the records have one order and no gap.

use std::sync::Arc;

use shuttle::future::{self, block_on};
use shuttle::thread;
use tooltape::{
    Access, Effects, Empty, MemoryTape, Progress, Spec, ToolError, tool_fn, tool_fn_blocking,
};

use crate::stage::{all_succeeded, batch, check, in_order, run, tape_is_whole};

#[test]
fn records_that_are_written_at_once_have_one_order_and_no_gap() {
    check(|| {
        block_on(async {
            let tape = MemoryTape::default();
            let spec = |name: &str| Spec::new(name, "Says what it does.").effects(Effects::read());
            let say = tool_fn(spec("say"), async |_: Empty, progress: Progress| {
                progress.say("one");
                future::yield_now().await;
                progress.say("two");
                Ok::<_, ToolError>(())
            });
            // The thread writes while its call waits.
            let shout = tool_fn_blocking(spec("shout"), |_: Empty, progress: Progress| {
                progress.say("one");
                thread::yield_now();
                progress.say("two");
                Ok::<_, ToolError>(())
            });
            // The tape keeps what it does as one.
            let spec = Spec::new("hum", "Says nothing.").access(Access::Pure);
            let hum = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>(()));
            let run = Arc::new(run([say, shout, hum], &tape, |_| {}));
            let scripts =
                ["say {}\nsay {}", "shout {}\nsay {}", "shout {}", "hum {}", "hum {}\nhum {}"];
            let writers = scripts.map(|script| {
                let run = run.clone();
                future::spawn(async move { all_succeeded(&batch(&run, script).await) })
            });
            let reader = {
                let (run, tape) = (run.clone(), tape.clone());
                future::spawn(async move {
                    let mut read = 0;
                    for _ in 0..3 {
                        let records = tape.records(run.id());
                        assert!(records.len() >= read, "records were lost");
                        read = records.len();
                        if read > 0 {
                            in_order(&records);
                        }
                        future::yield_now().await;
                    }
                })
            };
            for task in writers.into_iter().chain([reader]) {
                task.await.unwrap();
            }
            let (calls, hums) = (5, 3);
            let of_calls = calls * (3 + 2 + 1) + hums * (3 + 1);
            assert_eq!(tape.records(run.id()).len(), 1 + of_calls);
            tape_is_whole(&tape);
        });
    });
}
