//! What must be true of every run that was resumed.

use std::collections::{BTreeMap, BTreeSet};

use tooltape::{CallNo, Event, Executed, MemoryTape, Record, Replay, RunId, Toolbox, Turn, verify};

use super::ledger::{Ledger, tools};

/// The tape is whole, tells of all doubt, and has one reply for every proposal.
pub(super) async fn check_tape(tape: &MemoryTape, id: RunId, before: &[Record], turns: &[Turn]) {
    let records = tape.records(id);
    verify(&records, tape.head(id).unwrap()).unwrap();
    let Event::RunResumed { in_doubt, .. } = &records[before.len()].event else {
        panic!("it says first that it was resumed: {:?}", records[before.len()].event);
    };
    assert_eq!(*in_doubt, doubtful(before), "every call in doubt is told");
    let mut settled: BTreeMap<CallNo, u32> = BTreeMap::new();
    let mut proposed: BTreeMap<CallNo, u32> = BTreeMap::new();
    let mut keys = BTreeSet::new();
    let mut ended = BTreeSet::new();
    for record in &records {
        if let Some(key) = record.event.key() {
            assert!(keys.insert(key.to_string()), "{key} twice");
        }
        if let Some(call) = record.event.call() {
            assert!(!ended.contains(&call), "nothing follows the end of a call");
        }
        match &record.event {
            Event::Settled(reply) => {
                *settled.entry(reply.call).or_default() += 1;
                ended.insert(reply.call);
            }
            Event::Proposed(facts) => *proposed.entry(facts.call).or_default() += 1,
            _ => {}
        }
    }
    let calls = turns.iter().map(|turn| turn.proposals.len() as u64).sum::<u64>();
    let once: BTreeMap<_, _> = (1..=calls).map(|call| (CallNo(call), 1)).collect();
    if matches!(records.last().unwrap().event, Event::RunEnded { status: "ended", .. }) {
        assert_eq!((&settled, &proposed), (&once, &once), "one reply for every proposal");
    }
    assert_eq!(settled, proposed);
    let asked = records.iter().filter(|it| matches!(it.event, Event::Turn(_))).count();
    assert!(asked <= turns.len(), "no turn is asked for twice");
    check_replayed(tape, id).await;
}

/// A run that was resumed can be played again too.
async fn check_replayed(tape: &MemoryTape, id: RunId) {
    let toolbox = Toolbox::new(tools(&Ledger::new())).unwrap();
    let replay = Replay::of(tape, id).with(&toolbox).policy(super::judge);
    let report = replay.check().await.unwrap();
    assert!(report.is_same(), "{report}");
    assert_eq!(report.tape.head(id).unwrap(), tape.head(id).unwrap());
}

/// The calls that started, and of which the records do not say what became.
fn doubtful(records: &[Record]) -> Vec<CallNo> {
    let mut open = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::Started { call, .. } => drop(open.insert(*call, true)),
            Event::Retried { call, .. } => drop(open.insert(*call, false)),
            Event::Settled(reply) => drop(open.remove(&reply.call)),
            _ => {}
        }
    }
    open.into_iter().filter(|(_, doubt)| *doubt).map(|(call, _)| call).collect()
}

/// What must happen once happened once, and what the tape says of it is true.
pub(super) fn check_ledger(ledger: &Ledger, records: &[Record]) {
    let mut times: BTreeMap<u64, (&str, usize)> = BTreeMap::new();
    let mut keys: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for effect in ledger.effects() {
        times.entry(effect.id).or_insert((effect.tool, 0)).1 += 1;
        keys.entry(effect.id).or_default().insert(effect.key);
    }
    assert!(keys.values().all(|keys| keys.len() == 1), "the key of a call never changes");
    let mut permitted = BTreeSet::new();
    for record in records {
        match &record.event {
            Event::Answered { call, yes: true, attempt: Some(_), .. } => {
                permitted.insert(*call);
            }
            Event::Settled(reply) => {
                let Some(args) = &reply.args else { continue };
                let id = args.to_value()["id"].as_u64().unwrap();
                let (tool, times) = times.get(&id).copied().unwrap_or((&reply.name, 0));
                let at_most_once = ["once", "keyed", "checked"].contains(&tool);
                if at_most_once && !permitted.contains(&reply.call) {
                    assert!(times <= 1, "`{tool}` {id} happened {times} times");
                }
                if tool != "look" {
                    match reply.executed {
                        Executed::NotExecuted => assert_eq!(times, 0, "`{tool}` {id}"),
                        Executed::Executed => assert!(times > 0, "`{tool}` {id}"),
                        Executed::Unknown => {}
                    }
                }
            }
            _ => {}
        }
    }
}
