//! What somebody who watches an agent sees, as it happens.

use std::sync::PoisonError;

use crate::model::{Delta, Turn};
use crate::reply::{RedactedText, Redactor};
use crate::sync::Mutex;
use crate::tape::{Nudge, Record};

/// One step of an agent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// The model is asked for a turn, counted from 1.
    Asked(u32),
    /// More of what the model says.
    Text(&'a str),
    /// More of what it thinks, where its provider tells.
    Reasoning(&'a str),
    /// It begins to propose a call: the place in the turn, counted from 0, and the tool's name.
    Call(usize, &'a str),
    /// What was said so far in this turn was cut off, and the turn begins anew.
    Again,
    /// The model took its turn: what it said and proposed, why it stopped and what it cost.
    Turn(&'a Turn),
    /// Something happened with one of its calls: it was judged, somebody is asked about it, it
    /// says something, it is settled.
    Record(&'a Record),
    /// The user said something while the model was at work.
    Said(&'a str),
    /// The model was told that it gets nowhere, or that its answer does not fit.
    Nudged(&'a Nudge),
}

/// Passes on what a model says just now, without the secrets in it.
pub(super) struct Passing<'a> {
    watcher: &'a (dyn Fn(Step<'_>) + Send + Sync),
    redactor: &'a Redactor,
    flows: Mutex<Flows>,
}

/// What it says and what it thinks. A secret may come in pieces.
struct Flows {
    text: RedactedText,
    reasoning: RedactedText,
}

impl<'a> Passing<'a> {
    pub(super) fn new(
        watcher: &'a (dyn Fn(Step<'_>) + Send + Sync),
        redactor: &'a Redactor,
    ) -> Passing<'a> {
        let flows = Flows { text: redactor.stream(), reasoning: redactor.stream() };
        Passing { watcher, redactor, flows: Mutex::new(flows) }
    }

    pub(super) fn pass(&self, delta: Delta<'_>) {
        let tell = |step: Step<'_>| (self.watcher)(step);
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        match delta {
            Delta::Text(text) => match flows.text.push(text) {
                text if text.is_empty() => {}
                text => tell(Step::Text(&text)),
            },
            Delta::Reasoning(text) => match flows.reasoning.push(text) {
                text if text.is_empty() => {}
                text => tell(Step::Reasoning(&text)),
            },
            Delta::Call(at, name) => tell(Step::Call(at, &self.redactor.redact(name))),
            Delta::Arguments(..) => {}
            Delta::Again => {
                *flows = Flows { text: self.redactor.stream(), reasoning: self.redactor.stream() };
                tell(Step::Again);
            }
        }
    }

    /// The turn is over: what was held back comes now.
    pub(super) fn finish(self) {
        let Flows { text, reasoning } =
            self.flows.into_inner().unwrap_or_else(PoisonError::into_inner);
        for step in [Step::Reasoning(&reasoning.finish()), Step::Text(&text.finish())] {
            if let Step::Text(text) | Step::Reasoning(text) = step
                && !text.is_empty()
            {
                (self.watcher)(step);
            }
        }
    }
}
