//! What cancelling does to calls that are queued, run or are done, and what the tape says of them.

use std::time::Duration;

use tooltape::testing::proposals;
use tooltape::{
    CallNo, Cancel, Effects, Event, Executed, MemoryTape, Reply, Run, RunId, Spec, verify,
};

use crate::driving::texts;
use crate::stage::{Stage, free};

const MS: fn(u64) -> Duration = Duration::from_millis;

async fn after(ms: u64, act: impl FnOnce()) {
    tokio::time::sleep(MS(ms)).await;
    act();
}

/// What the tape says became of each call, in the order of their numbers.
fn settled(tape: &MemoryTape, run: RunId) -> Vec<(u64, String)> {
    let replies = tape.records(run).into_iter().filter_map(|record| match record.event {
        Event::Settled(reply) => Some((reply.call.0, reply.text())),
        _ => None,
    });
    let mut replies: Vec<_> = replies.collect();
    replies.sort();
    replies
}

fn cooperative(stage: &Stage) -> Run {
    let hears = Spec::new("hears", "Stops when told.").effects(Effects::read()).takes::<Cancel>();
    free([stage.tool(hears), stage.read("read"), stage.write("write")])
}

#[tokio::test(start_paused = true)]
async fn a_cooperative_tool_stops_promptly_queued_calls_never_start_and_each_gets_its_reply() {
    let stage = Stage::new();
    let run = cooperative(&stage);
    let script = "hears {\"ms\":900,\"hears\":true}\nread {\"ms\":900}\nread {\"ms\":5}\nwrite {}";
    let (replies, ()) = tokio::join!(run.batch(proposals(script)), after(20, || run.cancel()));
    let replies = replies.unwrap();
    assert_eq!(
        texts(&replies),
        ["unknown: cancelled", "unknown: cancelled", r#"{"ms":5}"#, "not executed: cancelled"]
    );
    assert_eq!(stage.ms(), 20);
    assert!(stage.log().iter().all(|span| span.tool != "write"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_can_hear_it_has_a_moment_to_say_how_far_it_came() {
    let stage = Stage::new();
    let run = cooperative(&stage);
    let script = "hears {\"ms\":50}\nhears {\"ms\":900000}";
    let (replies, ()) = tokio::join!(run.batch(proposals(script)), after(20, || run.cancel()));
    assert_eq!(texts(&replies.unwrap()), [r#"{"ms":50}"#, "unknown: cancelled"]);
    assert_eq!(stage.ms(), 2_020, "which ends");
}

#[tokio::test]
async fn a_result_that_exists_beats_a_late_cancel() {
    let stage = Stage::new();
    let run = std::sync::Arc::new(free([stage.read("read")]));
    let mut batch = Box::pin(run.batch(proposals("read {\"ms\":0}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    tokio::time::sleep(MS(5)).await;
    run.cancel();
    assert_eq!(texts(&batch.await.unwrap()), [r#"{"ms":0}"#], "both were ready");
    let next = run.batch(proposals("read {}")).await.unwrap();
    assert_eq!(texts(&next), ["not executed: cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn one_call_can_be_cancelled_by_its_number_whether_it_runs_or_waits() {
    let stage = Stage::new();
    let run = free([stage.read("read"), stage.write("write")]);
    let script = "read {\"ms\":50}\nread {\"ms\":900}\nwrite {}\nwrite {}";
    let cancelling = after(20, || {
        run.cancel_call(CallNo(2));
        run.cancel_call(CallNo(4));
    });
    let (replies, ()) = tokio::join!(run.batch(proposals(script)), cancelling);
    assert_eq!(
        texts(&replies.unwrap()),
        [r#"{"ms":50}"#, "unknown: cancelled", "{}", "not executed: cancelled"]
    );
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_call_that_is_over_or_not_made_yet_stops_nobody() {
    let stage = Stage::new();
    let run = free([stage.read("read")]);
    run.batch(proposals("read {}")).await.unwrap();
    [1, 2, 3].into_iter().for_each(|call| run.cancel_call(CallNo(call)));
    let replies = run.batch(proposals("read {\"ms\":5}\nread {\"ms\":5}")).await.unwrap();
    assert_eq!(texts(&replies), [r#"{"ms":5}"#, r#"{"ms":5}"#]);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_batch_leaves_a_tape_that_says_of_every_call_what_is_known() {
    let (stage, tape) = (Stage::new(), MemoryTape::default());
    let run = free([stage.read("read"), stage.write("write")]).tape(tape.clone());
    let script = "read {\"ms\":900}\nread {\"ms\":5}\nwrite {}\nnobody {}";
    let batch = tokio::time::timeout(MS(20), run.batch(proposals(script))).await;
    assert!(batch.is_err(), "it was dropped");
    let unknown = "not executed: unknown tool `nobody`";
    let expected = [
        (1, "unknown: cancelled".to_owned()),
        (2, r#"{"ms":5}"#.to_owned()),
        (3, "not executed: cancelled".to_owned()),
    ];
    let settled = settled(&tape, run.id());
    assert_eq!(settled[..3], expected);
    assert!(settled[3].1.starts_with(unknown), "{settled:?}");
    verify(&tape.records(run.id()), tape.head(run.id()).unwrap()).unwrap();
    let next = run.batch(proposals("read {\"ms\":1}")).await.unwrap();
    assert_eq!(texts(&next), [r#"{"ms":1}"#], "and the run goes on");
}

#[tokio::test(start_paused = true)]
async fn every_started_call_has_exactly_one_end_on_the_tape_however_it_ends() {
    let (stage, tape) = (Stage::new(), MemoryTape::default());
    let bounds = tooltape::Bounds { wall: tooltape::Bound::At(MS(30)), ..Default::default() };
    let slow = stage.tool(Spec::new("slow", "Hangs.").effects(Effects::read()).bounds(bounds));
    let run = free([slow, stage.read("read")]).tape(tape.clone());
    let script = r#"
        read {}
        read {"fail":"no"}
        read {"fail":"panic"}
        slow {"ms":900}
        read {"ms":900}
    "#;
    let (replies, ()) = tokio::join!(run.batch(proposals(script)), after(60, || run.cancel()));
    let executed: Vec<_> = replies.unwrap().iter().map(|reply: &Reply| reply.executed).collect();
    use Executed::{Executed as Done, Unknown};
    assert_eq!(executed, [Done, Done, Unknown, Unknown, Unknown]);
    let records = tape.records(run.id());
    for call in 1..=5 {
        let count = |of: fn(&Event) -> bool| {
            let of_call = |event: &Event| event.call() == Some(CallNo(call)) && of(event);
            records.iter().filter(|record| of_call(&record.event)).count()
        };
        assert_eq!(count(|event| matches!(event, Event::Started { .. })), 1);
        assert_eq!(count(|event| matches!(event, Event::Settled(_))), 1);
    }
}
