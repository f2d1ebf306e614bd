//! What happened in a run, counted as it happens.

use std::collections::BTreeSet;
use std::sync::Arc;

use tooltape::{CallNo, Event, Executed, TurnEvent, Usage};

/// The counts of one run. It is true at every moment, whatever the run comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) usage: Usage,
    /// Whether a call was denied because nobody could be asked.
    pub(crate) unasked: bool,
    /// The calls of which nobody knew what became when the run was resumed.
    pub(crate) in_doubt: Vec<CallNo>,
    /// How it ended, if it did.
    pub(crate) end: Option<End>,
    running: BTreeSet<CallNo>,
    settled: Option<Executed>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) status: &'static str,
    pub(crate) stop: String,
    pub(crate) answer: Option<Arc<str>>,
}

impl Tally {
    /// Something happened.
    pub(crate) fn count(&mut self, event: &Event) {
        match event {
            Event::Turn(turn) => {
                self.turns += 1;
                let TurnEvent { input_tokens, output_tokens, cached_tokens, .. } = *turn;
                self.usage.add(Usage { input_tokens, output_tokens, cached_tokens });
            }
            Event::Started { call, .. } => {
                self.running.insert(*call);
            }
            Event::Settled(reply) => {
                self.running.remove(&reply.call);
                self.calls += 1;
                self.errors += u64::from(reply.is_error);
                self.unasked |= reply.fault.as_ref().is_some_and(|fault| fault.unasked);
                self.settled = Some(match (reply.executed, self.settled) {
                    (Executed::Unknown, _) | (_, Some(Executed::Unknown)) => Executed::Unknown,
                    (Executed::Executed, _) | (_, Some(Executed::Executed)) => Executed::Executed,
                    (Executed::NotExecuted, _) => Executed::NotExecuted,
                });
            }
            Event::RunResumed { in_doubt, .. } => {
                self.in_doubt.clone_from(in_doubt);
                self.end = None;
            }
            Event::RunPaused { why } => {
                self.end = Some(End { status: "paused", stop: why.clone(), answer: None });
            }
            Event::RunEnded { status, stop, answer } => {
                let (stop, answer) = (stop.clone(), answer.clone());
                self.end = Some(End { status, stop, answer });
            }
            _ => {}
        }
    }

    /// Whether a call started and did not settle.
    pub(crate) fn is_open(&self, call: CallNo) -> bool {
        self.running.contains(&call)
    }

    /// Whether anything was executed: unknown as soon as it is of one call.
    pub(crate) fn executed(&self) -> Executed {
        match self.running.is_empty() {
            true => self.settled.unwrap_or(Executed::NotExecuted),
            false => Executed::Unknown,
        }
    }
}
