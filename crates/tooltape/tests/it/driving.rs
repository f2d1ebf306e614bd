//! Which calls of a batch overlap, how many at once, and that every one gets its reply.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tooltape::testing::proposals;
use tooltape::{
    Access, Answer, Bound, Bounds, Canceller, Effects, Empty, Event, Executed, Footprint,
    FootprintOf, MemoryTape, Name, Reply, Run, RunError, Spec, ToolError, Toolbox, Verdict,
    tool_fn,
};

use crate::stage::{Stage, free, limited};

pub(crate) fn texts(replies: &[Reply]) -> Vec<String> {
    replies.iter().map(Reply::text).collect()
}

#[tokio::test(start_paused = true)]
async fn never_more_calls_run_at_once_than_the_bound_says() {
    for bound in [1, 2, 5] {
        let stage = Stage::new();
        let run = limited(free([stage.read("read")]), |limits| limits.concurrency = bound);
        let replies = run.batch(proposals(&"read {}\n".repeat(11))).await.unwrap();
        assert!(replies.iter().all(|reply| !reply.is_error));
        assert_eq!((stage.most_at_once(), stage.log().len()), (bound, 11));
        assert_eq!(stage.ms(), 10 * 11usize.div_ceil(bound) as u128, "no seat stays empty");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_says_how_many_of_its_calls_run_at_once() {
    let stage = Stage::new();
    let bounds = Bounds { concurrency: Bound::At(2), ..Bounds::default() };
    let spec = Spec::new("slow", "Reads.").effects(Effects::read()).bounds(bounds);
    let run = free([stage.tool(spec), stage.read("read")]);
    run.batch(proposals(&"slow {}\nread {}\n".repeat(4))).await.unwrap();
    let starts = stage.starts();
    assert_eq!(starts.iter().filter(|start| *start == "slow@0").count(), 2, "{starts:?}");
    assert_eq!(starts.iter().filter(|start| *start == "read@0").count(), 4, "{starts:?}");
    assert_eq!(stage.ms(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_run_pinned_sequential_runs_every_batch_one_call_at_a_time() {
    let stage = Stage::new();
    let run = free([stage.read("read"), stage.file("edit", Access::Write)]).sequential();
    run.batch(proposals("read {}\nedit {\"path\":\"a\"}\nedit {\"path\":\"b\"}\nread {}"))
        .await
        .unwrap();
    assert_eq!(stage.starts(), ["read@0", "edit@10", "edit@20", "read@30"]);
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_call_overlaps_nothing_before_or_after_it() {
    let stage = Stage::new();
    let effects = Effects { exclusive: true, ..Effects::pure() };
    let alone = stage.tool(Spec::new("alone", "Wants the stage.").effects(effects));
    let run = free([stage.read("read"), alone]);
    run.batch(proposals("read {}\nread {}\nalone {}\nread {}\nread {}")).await.unwrap();
    assert_eq!(stage.starts(), ["read@0", "read@0", "alone@10", "read@20", "read@20"]);
}

#[tokio::test(start_paused = true)]
async fn consecutive_reads_overlap() {
    let stage = Stage::new();
    free([stage.read("read")]).batch(proposals("read {}\nread {}\nread {}")).await.unwrap();
    assert_eq!(stage.starts(), ["read@0", "read@0", "read@0"]);
}

#[tokio::test(start_paused = true)]
async fn writes_that_say_nothing_run_alone_and_in_their_order() {
    let stage = Stage::new();
    let run = free([stage.write("a"), stage.write("b"), stage.write("c")]);
    run.batch(proposals("b {\"ms\":30}\na {\"ms\":1}\nc {\"ms\":20}")).await.unwrap();
    assert_eq!(stage.starts(), ["b@0", "a@30", "c@31"]);
}

#[tokio::test]
async fn a_read_after_a_write_sees_the_write_and_one_before_it_does_not() {
    let cell = Arc::new(Mutex::new("old"));
    let (reads, writes) = (cell.clone(), cell);
    let look = tool_fn(Spec::new("look", "Reads.").effects(Effects::read()), move |_: Empty| {
        let cell = reads.clone();
        async move {
            tokio::task::yield_now().await;
            Ok::<_, ToolError>(*cell.lock().unwrap())
        }
    });
    let set = tool_fn(Spec::new("set", "Writes."), move |_: Empty| {
        let cell = writes.clone();
        async move {
            tokio::task::yield_now().await;
            *cell.lock().unwrap() = "new";
            Ok::<_, ToolError>("done")
        }
    });
    let run = free([look, set]);
    let replies = run.batch(proposals("look {}\nset {}\nlook {}")).await.unwrap();
    assert_eq!(texts(&replies), ["old", "done", "new"]);
}

#[tokio::test(start_paused = true)]
async fn writes_to_different_files_overlap_and_writes_to_one_file_do_not() {
    let stage = Stage::new();
    let run = free([stage.file("edit", Access::Write), stage.file("look", Access::Read)]);
    let script = r#"
        edit {"path":"src/a.rs"}
        edit {"path":"src/b.rs"}
        edit {"path":"src/a.rs"}
        look {"path":"src"}
        look {"path":"docs"}
    "#;
    run.batch(proposals(script)).await.unwrap();
    assert_eq!(stage.starts(), ["edit@0", "edit@0", "look@0", "edit@10", "look@20"]);
    assert!(stage.log()[2].args.contains("docs"));
}

#[tokio::test(start_paused = true)]
async fn replies_come_in_the_order_of_the_calls_whatever_ends_first() {
    let stage = Stage::new();
    let run = free([stage.read("read")]);
    let script = "read {\"ms\":30}\nread {\"ms\":10}\nread {\"ms\":20}";
    let replies = run.batch(proposals(script)).await.unwrap();
    assert_eq!(texts(&replies), [r#"{"ms":30}"#, r#"{"ms":10}"#, r#"{"ms":20}"#]);
    let ids: Vec<_> = replies.iter().map(|reply| reply.id.to_string()).collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
}

#[tokio::test(start_paused = true)]
async fn siblings_survive_a_failure_a_panic_and_a_hang() {
    let stage = Stage::new();
    let run = limited(free([stage.read("read")]), |limits| {
        limits.wall = Duration::from_millis(50);
    });
    let script = r#"
        read {"ms":5}
        read {"fail":"no such row"}
        read {"fail":"panic"}
        read {"ms":100000}
        read {"ms":7}
    "#;
    let replies = run.batch(proposals(script)).await.unwrap();
    assert_eq!(
        texts(&replies),
        [
            r#"{"ms":5}"#,
            "failed: no such row",
            "unknown: the tool panicked; do not repeat it blindly",
            "unknown: the bound `wall` of 50 ms was reached",
            r#"{"ms":7}"#,
        ]
    );
    assert_eq!(stage.ms(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_footprint_function_that_panics_fails_its_call_and_no_other() {
    let stage = Stage::new();
    let hook = FootprintOf::args("planted", |_| -> Footprint { panic!("planted") });
    let broken = stage.tool(Spec::new("broken", "Writes.").touches(hook));
    let run = free([broken, stage.read("read")]);
    let replies = run.batch(proposals("read {}\nbroken {}\nread {}")).await.unwrap();
    assert_eq!(replies[1].executed, Executed::NotExecuted);
    assert!(replies[1].is_error && !replies[0].is_error && !replies[2].is_error);
    assert_eq!(stage.starts(), ["read@0", "read@0"]);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_blocks_only_what_waits_for_its_call() {
    let stage = Stage::new();
    let toolbox = Toolbox::new([stage.file("edit", Access::Write), stage.read("read")]).unwrap();
    let answered = Arc::new(Notify::new());
    let answers = answered.clone();
    let run = Run::new(&toolbox)
        .policy(|call: &tooltape::Call| match call.args().as_str().contains("ask") {
            true => Verdict::ask("test"),
            false => Verdict::allow("test"),
        })
        .approver(move |_| {
            let answered = answers.clone();
            Box::pin(async move {
                answered.notified().await;
                Answer::Once
            })
        });
    let run = limited(run, |limits| {
        limits.concurrency = 1;
        limits.wall = Duration::from_millis(100);
        limits.batch_wall = Duration::from_millis(200);
    });
    let script = r#"
        edit {"path":"ask"}
        edit {"path":"b"}
        edit {"path":"c"}
        edit {"path":"ask"}
    "#;
    let answering = async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(stage.starts(), ["edit@0", "edit@10"], "the others did not wait");
        answered.notify_one();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        answered.notify_one();
    };
    let (replies, ()) = tokio::join!(run.batch(proposals(script)), answering);
    assert!(replies.unwrap().iter().all(|reply| !reply.is_error), "no clock ran meanwhile");
    assert_eq!(stage.log().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_aborts_its_siblings_ends_its_batch_and_not_its_run() {
    let stage = Stage::new();
    let effects = Effects { aborts_siblings: true, ..Effects::read() };
    let vital = stage.tool(Spec::new("vital", "Must work.").effects(effects));
    let run = free([vital, stage.read("read"), stage.write("write")]);
    let script = "read {\"ms\":5}\nvital {\"fail\":\"no\"}\nread {\"ms\":90}\nwrite {}";
    let replies = run.batch(proposals(script)).await.unwrap();
    assert_eq!(
        texts(&replies),
        [r#"{"ms":5}"#, "failed: no", "unknown: cancelled", "not executed: cancelled"]
    );
    assert_eq!(stage.ms(), 10, "what ran was told at once");
    let next = run.batch(proposals("vital {}\nread {}")).await.unwrap();
    assert!(next.iter().all(|reply| !reply.is_error), "the next batch is another");
}

#[tokio::test(start_paused = true)]
async fn after_a_fatal_fault_what_runs_ends_and_nothing_more_starts() {
    let (stage, tape) = (Stage::new(), MemoryTape::default());
    let run = free([stage.read("read"), stage.write("write")]).tape(tape.clone());
    let script = "read {\"ms\":50}\nread {\"ms\":20,\"fail\":\"fatal\"}\nwrite {}\nread {}";
    let err = run.batch(proposals(script)).await.unwrap_err();
    let RunError::Ended { replies, .. } = err else { panic!("it is fatal: {err}") };
    assert_eq!(
        texts(&replies),
        [r#"{"ms":50}"#, "failed: planted", "not executed: cancelled", "not executed: cancelled"]
    );
    let settled = |event: &Event| matches!(event, Event::Settled(_));
    let records = tape.records(run.id());
    assert_eq!(records.iter().filter(|record| settled(&record.event)).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_a_limit_are_answered_in_place_and_in_order() {
    let stage = Stage::new();
    let uncounted = Effects { counted: false, ..Effects::read() };
    let free_of_charge = stage.tool(Spec::new("note", "Notes.").effects(uncounted));
    let run = free([stage.read("read"), stage.read("rare"), free_of_charge]);
    let run = limited(run, |limits| limits.batch_calls = 3).quota(Name::new("rare").unwrap(), 1);
    let script = "rare {}\nrare {}\nread nonsense\nread {}\nread {}\nread {}\nnote {}";
    let replies = run.batch(proposals(script)).await.unwrap();
    let bounds: Vec<_> =
        replies.iter().map(|it| it.fault.as_ref().map(|it| it.kind.name())).collect();
    assert_eq!(bounds[0], None);
    assert_eq!(replies[1].text(), "not executed: the bound `tool_calls` of 1 calls was reached");
    assert_eq!(bounds[2], Some("repair"), "which takes no slot");
    assert_eq!((bounds[3], bounds[4]), (None, None));
    assert_eq!(replies[5].text(), "not executed: the bound `batch_calls` of 3 calls was reached");
    assert_eq!(bounds[6], None, "it does not count");
    assert_eq!(stage.log().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_run_stops_calling_once_it_has_used_its_bytes() {
    let stage = Stage::new();
    let run = limited(free([stage.read("read")]), |limits| limits.run_bytes = 10);
    let first = run.batch(proposals("read {\"ms\":1}")).await.unwrap();
    let second = run.batch(proposals("read {\"ms\":1}")).await.unwrap();
    assert!(!first[0].is_error);
    assert_eq!(second[0].text(), "not executed: the bound `run_bytes` of 10 bytes was reached");
}

#[tokio::test(start_paused = true)]
async fn cancelling_one_batch_leaves_the_run_and_its_other_batches() {
    let stage = Stage::new();
    let run = free([stage.read("read")]);
    let (canceller, offer) = (Canceller::new(), run.offer_all());
    let stopped = run.answer_until(&canceller, &offer, proposals("read {\"ms\":90}"));
    let other = run.batch(proposals("read {\"ms\":50}"));
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        canceller.cancel();
    };
    let (stopped, other, ()) = tokio::join!(stopped, other, cancelling);
    assert_eq!(stopped.unwrap()[0].text(), "unknown: cancelled");
    assert_eq!(other.unwrap()[0].text(), r#"{"ms":50}"#);
}
