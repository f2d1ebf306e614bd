//! The conversation of a recorded run, gone through again by the loop that every agent uses.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::{Next, Talk, restored};
use crate::id::CallNo;
use crate::model::Turn;
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::tape::{Event, Recalled};

/// The conversation of a run. A run without a model has none.
#[derive(Default)]
pub(super) struct Turns {
    talk: Option<Talk>,
    next: Option<Next>,
    /// Whether the run ended since.
    is_over: bool,
    /// The proposals of the last turn that were not met yet.
    proposed: BTreeMap<CallNo, Proposal>,
    /// The calls of the last turn, and what became of them.
    replies: BTreeMap<CallNo, Option<Reply>>,
}

impl Turns {
    /// The model was asked something.
    pub(super) fn asked(&mut self, text: &Arc<str>) -> Option<Event> {
        // How many turns it may take is not on the tape; where they ran out, the tape says so.
        match &mut self.talk {
            Some(talk) if !self.is_over => self.next = Some(talk.ask(text.clone())),
            _ => {
                let talk = Talk::new(text.clone(), u32::MAX);
                *self = Turns { next: Some(talk.begin()), talk: Some(talk), ..Turns::default() };
            }
        }
        None
    }

    /// The conversation goes on from another.
    pub(super) fn recalled(&mut self, messages: &[Recalled]) -> Option<Event> {
        let talk = Talk::after(restored(messages), u32::MAX);
        *self = Turns { talk: Some(talk), ..Turns::default() };
        None
    }

    /// Somebody said something to the model. When is the host's choice.
    pub(super) fn said(&mut self, text: &Arc<str>) -> Option<Event> {
        if let Some(talk) = &mut self.talk {
            talk.say(text.clone());
            self.next = Some(Next::Model);
        }
        None
    }

    /// The run ended: what is asked now is asked anew.
    pub(super) fn run_ended(&mut self) {
        self.is_over = true;
    }

    /// The model took a turn, after so many calls. Returns what happens now where it would not.
    pub(super) fn turn(&mut self, turn: Turn, calls: u64) -> Option<Event> {
        let ended = self.ended();
        let talk = self.talk.as_mut()?;
        let next = talk.turn(turn);
        if let Next::Calls(proposals) = &next {
            let numbers = (calls + 1..).map(CallNo);
            self.proposed = numbers.zip(proposals.iter().cloned()).collect();
            self.replies = self.proposed.keys().map(|no| (*no, None)).collect();
        }
        self.next = Some(next);
        ended
    }

    /// The proposal that became the call of this number.
    pub(super) fn proposal(&mut self, no: CallNo) -> Option<Proposal> {
        self.proposed.remove(&no)
    }

    /// A call came to its end.
    pub(super) fn settled(&mut self, reply: &Reply) {
        let Some(place) = self.replies.get_mut(&reply.call) else { return };
        *place = Some(reply.clone());
        if self.replies.values().all(Option::is_some)
            && let Some(talk) = &mut self.talk
        {
            let replies = std::mem::take(&mut self.replies);
            self.next = Some(talk.replies(replies.into_values().flatten().collect()));
        }
    }

    /// How the conversation ends now, if it does.
    pub(super) fn ended(&self) -> Option<Event> {
        match &self.next {
            Some(Next::Stop(answered)) => {
                let stop = answered.stop;
                Some(ending(stop.status(), stop.word(), answered.text.clone()))
            }
            Some(Next::Model | Next::Calls(_)) | None => None,
        }
    }

    /// Whether a model takes part.
    pub(super) fn is_some(&self) -> bool {
        self.talk.is_some()
    }
}

/// The end of a run.
pub(super) fn ending(status: &'static str, stop: &str, answer: Option<Arc<str>>) -> Event {
    Event::RunEnded { status, stop: stop.to_owned(), answer }
}
