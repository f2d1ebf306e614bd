//! Starts a run that shares the beginning of another, and goes its own way from there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::ResumeError;
use super::Run;
use super::begin::hold;
use super::past::{Begun, Opening, Past};
use crate::grant::Random;
use crate::id::{CallNo, RunId};
use crate::policy;
use crate::tape::{
    Append, Event, ForkPoint, ProposalEvent, Record, TapeError, TurnEvent, all_records,
};

/// A place in a recorded run, and what shall be other from there on.
///
/// ```
/// use tooltape::{CallNo, Fork, RunId, serde_json::json};
///
/// let run = RunId::new(1, [7; 10]);
/// let fork = Fork::of(run, 12).edit(CallNo(3), json!({ "path": "b.txt" }));
/// ```
#[derive(Clone, Debug)]
pub struct Fork {
    run: RunId,
    at: u64,
    edits: BTreeMap<CallNo, Value>,
}

impl Fork {
    /// Shares the first `at` records of a run.
    pub fn of(run: RunId, at: u64) -> Fork {
        Fork { run, at, edits: BTreeMap::new() }
    }

    /// Gives a call that is not settled at that place other arguments.
    #[must_use]
    pub fn edit(mut self, call: CallNo, arguments: Value) -> Fork {
        self.edits.insert(call, arguments);
        self
    }
}

impl Run {
    /// A new run that shares the beginning of one on this run's tape.
    ///
    /// What was settled before the place is taken over, and does not happen again. What was not is
    /// begun anew by [`settle_open`](Run::settle_open) or [`Agent::resume`](crate::Agent::resume),
    /// live and with other arguments where the fork says so: the run that it comes from may have
    /// done it too.
    pub async fn fork(mut self, fork: Fork) -> Result<Run, ResumeError> {
        let records = all_records(&*self.setup.tape, fork.run).await?;
        let first = records.first().ok_or(ResumeError::Unknown { run: fork.run })?;
        let opening = Opening::of(first)?;
        if let Some(parent) = opening.parent {
            return Err(ResumeError::Nested { parent });
        }
        let Shared { mut events, open } = Shared::of(&records, &fork)?;
        let at_us = self.setup.clock.unix_us();
        let mut entropy = [0; 10];
        // The seed is shared, so the id needs other randomness.
        Random::system().fill(&mut entropy);
        let run = self.setup.id.unwrap_or_else(|| RunId::new(at_us / 1_000, entropy));
        rebind(&mut events, run);
        if let Some(Event::RunStarted { policy, rights, .. }) = events.first_mut() {
            *policy = Some(Box::new(policy::version(&*self.setup.policy, self.setup.strict)));
            *rights = Some(Arc::new(hold(&self.setup).rights().clone()));
        }
        let places = (0..).zip(&events);
        let shared = places.map(|(seq, event)| Record::new(run, seq, at_us, event.clone()));
        let mut past = Past::of(&shared.collect::<Vec<_>>())?;
        past.calls = past.calls.max(open.keys().next_back().map_or(0, |call| call.0));
        past.open = open;
        past.ended = None;
        // What somebody approved for the other run is not approved for this one.
        past.standing.clear();
        let ack = self.setup.tape.append(Append::new(run, 0, at_us, &mut events));
        ack.durable().await?;
        self.setup.id = Some(run);
        self.having_done(past)
    }
}

/// What a fork takes over from the run that it comes from.
struct Shared {
    events: Vec<Event>,
    /// What had begun, and is begun anew.
    open: BTreeMap<CallNo, Begun>,
}

impl Shared {
    fn of(records: &[Record], fork: &Fork) -> Result<Shared, ResumeError> {
        let at = usize::try_from(fork.at).unwrap_or(usize::MAX);
        let before = records.get(..at).filter(|before| !before.is_empty());
        let before = before.ok_or_else(|| TapeError::Corrupt {
            seq: fork.at,
            why: format!("the run has {} records, of which one must be shared", records.len()),
        })?;
        let settled: BTreeSet<CallNo> =
            before.iter().filter_map(Record::settled).map(|it| it.call).collect();
        if let Some(call) = fork.edits.keys().find(|call| settled.contains(call)) {
            return Err(ResumeError::Edited { call: *call });
        }
        let (mut events, mut calls, mut by_model) = (Vec::new(), 0, false);
        for record in before {
            let mut event = record.event.clone();
            match &mut event {
                Event::RunStarted { fork: point, .. } => {
                    *point = Some(Box::new(ForkPoint { run: record.run, seq: fork.at }));
                }
                Event::Turn(turn) => {
                    by_model = true;
                    edit(turn, calls, &fork.edits);
                }
                Event::Proposed(facts) => calls = calls.max(facts.call.0),
                // It goes on from here, whatever became of the other.
                Event::RunEnded { .. } | Event::RunResumed { .. } | Event::RunPaused { .. } => {
                    continue;
                }
                _ => {}
            }
            if event.call().is_none_or(|call| settled.contains(&call)) {
                events.push(event);
            }
        }
        let mut open = BTreeMap::new();
        // A model's proposals are in its turn; those of a host are in its calls alone.
        let begun = records.iter().take(at.saturating_add(1)).filter(|_| !by_model);
        for record in begun {
            if let Event::Proposed(facts) = &record.event
                && !settled.contains(&facts.call)
            {
                let edited = fork.edits.get(&facts.call).map(Value::to_string);
                open.insert(facts.call, Begun::anew(facts, edited));
            }
        }
        let mut editable: BTreeSet<CallNo> = open.keys().copied().collect();
        editable.extend(proposed(before).difference(&settled));
        match fork.edits.keys().find(|call| !editable.contains(call)) {
            None => Ok(Shared { events, open }),
            Some(call) => {
                Err(ResumeError::NoCall { call: *call, calls: editable.into_iter().collect() })
            }
        }
    }
}

/// Makes the questions that are taken over those of this run: they are told, and asked no more.
fn rebind(events: &mut [Event], run: RunId) {
    let (mut judged, mut approvals) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        match event {
            Event::Judged { facts, .. } => drop(judged.insert(facts.call, facts.clone())),
            Event::CallAsked(question) => {
                if let Some(facts) = judged.get(&question.call) {
                    let approval = question.approval_of(run, facts);
                    approvals.insert(question.approval, approval);
                    question.approval = approval;
                }
            }
            Event::Answered { approval, .. } => {
                *approval = approvals.get(approval).copied().unwrap_or(*approval);
            }
            _ => {}
        }
    }
}

/// The calls that a model proposed in its turns, made or not.
fn proposed(records: &[Record]) -> BTreeSet<CallNo> {
    let (mut calls, mut proposed) = (0, BTreeSet::new());
    for record in records {
        match &record.event {
            Event::Turn(turn) => {
                let numbers = (calls + 1..).map(CallNo);
                proposed.extend(numbers.zip(turn.proposals.iter()).map(|(call, _)| call));
            }
            Event::Proposed(facts) => calls = calls.max(facts.call.0),
            _ => {}
        }
    }
    proposed
}

/// Edits the proposals of a turn that comes after so many calls.
fn edit(turn: &mut TurnEvent, calls: u64, edits: &BTreeMap<CallNo, Value>) {
    let edited = (calls + 1..).map(CallNo).zip(turn.proposals.iter());
    let edited = edited.map(|(call, proposal)| match edits.get(&call) {
        None => proposal.clone(),
        Some(arguments) => {
            let (arguments, error) = (arguments.to_string().into(), None);
            ProposalEvent { arguments, error, ..proposal.clone() }
        }
    });
    turn.proposals = edited.collect();
}
