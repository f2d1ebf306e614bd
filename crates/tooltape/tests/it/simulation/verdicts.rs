//! What must be true of every storm: of its replies, and of what its tape says.

use std::collections::{BTreeMap, BTreeSet};

use tooltape::{
    BoundKind, CallNo, Event, Executed, MemoryTape, Record, Reply, Run, Seen, Subscription, verify,
};

use super::plan::Plan;
use super::world::World;

/// Every proposal has one reply, with its id, in its place; and none waited for ever.
pub(super) fn check_replies(plan: &Plan, replies: &[Reply]) {
    assert_eq!(replies.len(), plan.batch.len());
    for (planned, reply) in plan.batch.iter().zip(replies) {
        assert_eq!(*planned.id, *reply.id);
        assert_eq!(planned.tool, &*reply.name);
        check_not_stuck(plan, reply);
        let truth = match reply.executed {
            Executed::NotExecuted => "not executed: ",
            Executed::Unknown => "unknown: ",
            Executed::Executed => continue,
        };
        assert!(reply.text().starts_with(truth), "{}", reply.text());
    }
}

/// A deadlock would end at the deadline of its batch, which is far beyond anything planned unless
/// the storm has a deadline of its own.
fn check_not_stuck(plan: &Plan, reply: &Reply) {
    let fault = reply.fault.as_ref();
    let stuck = match fault.and_then(|fault| fault.bound) {
        Some(BoundKind::RunWall) => true,
        Some(BoundKind::BatchWall) => fault.and_then(|fault| fault.limit) != plan.batch_wall_ms,
        Some(_) | None => false,
    };
    assert!(!stuck, "`{}` {} was stuck: {}", reply.name, reply.call.0, reply.text());
}

/// What the tape says of one call.
#[derive(Default)]
struct Told<'t> {
    proposed: usize,
    judged: usize,
    started: u32,
    retried: u32,
    settled: Vec<&'t Reply>,
}

/// Checks what the tape says of every run, and returns how the calls ended.
pub(super) fn check_tape(
    tape: &MemoryTape,
    run: &Run,
    plan: &Plan,
    world: &World,
    replies: Option<&[Reply]>,
) -> BTreeSet<String> {
    let records = tape.records(run.id());
    if let Some(replies) = replies {
        let settled: BTreeMap<_, _> = records.iter().filter_map(settled).collect();
        assert_eq!(settled.len(), plan.batch.len());
        for (reply, told) in replies.iter().zip(settled.values()) {
            assert_eq!(reply.text(), told.text(), "the tape says what the caller was told");
        }
    }
    let mut ends = BTreeSet::new();
    for nested in tape.runs() {
        let records = tape.records(nested);
        check_run(&records, plan, world);
        verify(&records, tape.head(nested).unwrap()).unwrap();
        ends.extend(records.iter().filter_map(settled).map(|(_, reply)| end_of(reply)));
    }
    ends
}

/// How a call ended: whether it was executed, and what stopped it.
fn end_of(reply: &Reply) -> String {
    let fault = reply.fault.as_ref();
    match fault.map(|fault| fault.bound.map_or(fault.kind.name(), BoundKind::name)) {
        None => reply.executed.to_string(),
        Some(why) => format!("{}: {why}", reply.executed),
    }
}

fn settled(record: &Record) -> Option<(CallNo, &Reply)> {
    match &record.event {
        Event::Settled(reply) => Some((reply.call, reply)),
        _ => None,
    }
}

fn check_run(records: &[Record], plan: &Plan, world: &World) {
    assert!(matches!(records[0].event, Event::RunStarted { .. }));
    let mut calls: BTreeMap<CallNo, Told<'_>> = BTreeMap::new();
    for record in &records[1..] {
        let no = record.event.call().expect("only calls happen here");
        let told = calls.entry(no).or_default();
        assert!(told.settled.is_empty(), "nothing follows the end of a call: {:?}", record.event);
        match &record.event {
            Event::Proposed(_) => told.proposed += 1,
            Event::Judged { .. } => told.judged += 1,
            Event::Started { attempt, .. } => {
                assert_eq!((told.started + 1, told.retried), (*attempt, told.started));
                told.started = *attempt;
            }
            Event::Retried { attempt, .. } => {
                assert_eq!(told.started, *attempt);
                told.retried += 1;
            }
            Event::Progress { .. } => assert!(told.started > 0),
            Event::CallAsked(_) | Event::Answered { .. } => {
                assert_eq!((told.judged, told.started), (1, 0));
            }
            Event::Settled(reply) => told.settled.push(reply),
            other => panic!("this happens in no storm: {other:?}"),
        }
    }
    let numbers: Vec<_> = calls.keys().map(|no| no.0).collect();
    assert_eq!(numbers, (1..=calls.len() as u64).collect::<Vec<_>>(), "no call is missing");
    for (no, told) in &calls {
        assert_eq!((told.proposed, told.settled.len()), (1, 1), "call {}", no.0);
        let reply = told.settled[0];
        check_not_stuck(plan, reply);
        check_truth(world, reply, told);
        if told.started == 0 {
            assert_eq!(reply.executed, Executed::NotExecuted, "call {}", no.0);
            assert!(reply.is_error);
        }
    }
}

/// What the tape says was executed is what the world saw.
fn check_truth(world: &World, reply: &Reply, told: &Told<'_>) {
    // What could not be read has no arguments, and never reaches a tool.
    let truth = match &reply.args {
        Some(args) => world.truth(&args.to_value()),
        None => Executed::NotExecuted,
    };
    let (name, text, attempts) = (&reply.name, reply.text(), told.started);
    assert_eq!(reply.executed, truth, "`{name}`, attempt {attempts}: {text}");
}

/// A slow subscriber saw everything but progress, in its order, and was told how much it missed.
pub(super) async fn check_seen(mut watching: Subscription, records: &[Record]) {
    let (mut seen, mut missed) = (Vec::new(), 0);
    while let Some(next) = watching.next().await {
        match next {
            Seen::Record(record) => seen.push(record.seq),
            Seen::Missed { progress } => missed += progress,
            other => panic!("the backlog is large enough: {other:?}"),
        }
    }
    assert!(seen.is_sorted());
    let is_progress = |seq: &u64| {
        let event = &records[*seq as usize].event;
        matches!(event, Event::Progress { .. } | Event::Emitted { .. })
    };
    let all = 0..records.len() as u64;
    let lost: Vec<_> = all.filter(|seq| seen.binary_search(seq).is_err()).collect();
    assert!(lost.iter().all(is_progress), "only progress may be lost");
    assert_eq!(lost.len() as u64, missed, "and it is counted");
}
