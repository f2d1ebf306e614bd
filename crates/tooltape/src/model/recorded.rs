//! A model that takes the turns it took before.

use std::sync::Arc;

use super::{Model, ModelError, Request, Turn, TurnStop, Usage, script};
use crate::sync::atomic::AtomicUsize;
use crate::tape::{Event, Record, TurnEvent};
use crate::tool::BoxFuture;

/// A model served from a tape: it says again what the records say it said.
#[derive(Debug)]
pub struct Recorded {
    question: Option<Arc<str>>,
    turns: Vec<Turn>,
    taken: AtomicUsize,
}

impl Recorded {
    /// Gathers the turns of a run.
    pub fn new(records: &[Record]) -> Recorded {
        let mut recorded =
            Recorded { question: None, turns: Vec::new(), taken: AtomicUsize::new(0) };
        for record in records {
            match &record.event {
                Event::Asked { text } => {
                    recorded.question.get_or_insert_with(|| text.clone());
                }
                Event::Turn(turn) => recorded.turns.push(again(turn)),
                Event::RunStarted { .. }
                | Event::Nudged(_)
                | Event::Said { .. }
                | Event::Recalled { .. }
                | Event::RunResumed { .. }
                | Event::RunPaused { .. }
                | Event::Stored { .. }
                | Event::Reconciled { .. }
                | Event::Retried { .. }
                | Event::Abandoned { .. }
                | Event::Tools { .. }
                | Event::Proposed { .. }
                | Event::Judged { .. }
                | Event::CallAsked(_)
                | Event::Answered { .. }
                | Event::Started { .. }
                | Event::Progress { .. }
                | Event::Emitted { .. }
                | Event::State { .. }
                | Event::Settled(_)
                | Event::RunEnded { .. } => {}
            }
        }
        recorded
    }

    /// What the run was asked first.
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }
}

/// The turn that an event tells of.
pub(crate) fn again(turn: &TurnEvent) -> Turn {
    let stop = [TurnStop::Done, TurnStop::Length, TurnStop::Refused, TurnStop::Cut];
    let TurnEvent { input_tokens, output_tokens, cached_tokens, .. } = *turn;
    Turn {
        text: turn.text.clone(),
        proposals: turn.proposals.iter().map(|proposal| proposal.proposal()).collect(),
        stop: stop.into_iter().find(|stop| stop.word() == turn.stop).unwrap_or(TurnStop::Cut),
        usage: Usage { input_tokens, output_tokens, cached_tokens },
        verbatim: turn.verbatim.clone(),
    }
}

impl Model for Recorded {
    fn turn<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        Box::pin(async move { script::next(&self.turns, &self.taken) })
    }
}
