//! The one writer of a run's records.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Ack, Append, Event, Tape};
use crate::grant::{Clock, Note, Witness};
use crate::id::{CallNo, RunId};

/// Appends a run's events in one order, each at its place.
pub(crate) struct Recorder {
    tape: Arc<dyn Tape>,
    run: RunId,
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    /// How many records the run has.
    len: u64,
    /// What goes before the first event.
    opening: Option<Event>,
}

impl Recorder {
    pub(crate) fn new(tape: Arc<dyn Tape>, run: RunId, clock: Clock, opening: Event) -> Recorder {
        let state = Mutex::new(State { len: 0, opening: Some(opening) });
        Recorder { tape, run, clock, state }
    }

    /// Appends events, of which none are left, and says when.
    pub(crate) fn append(&self, events: &mut Vec<Event>) -> (u64, Ack) {
        let at_us = self.clock.unix_us();
        (at_us, self.append_at(at_us, events))
    }

    /// Appends events that happened at this moment.
    pub(crate) fn append_at(&self, at_us: u64, events: &mut Vec<Event>) -> Ack {
        // Held while the tape accepts the events, never while they become durable.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opening) = &state.opening {
            events.insert(0, opening.clone());
        }
        let after = state.len;
        let len = after + events.len() as u64;
        let ack = self.tape.append(Append::new(self.run, after, at_us, events));
        if !matches!(ack, Ack::Now(Err(_))) {
            state.len = len;
            state.opening = None;
        }
        events.clear();
        ack
    }
}

impl Witness for Recorder {
    fn note(&self, call: CallNo, note: Note) -> bool {
        let event = match note {
            Note::Progress(text) => Event::Progress { call, text },
            Note::Emitted { name, value } => Event::Emitted { call, name, value },
            Note::State { name, value } => Event::State { call, name, value },
        };
        let (_, ack) = self.append(&mut vec![event]);
        ack.accepted().is_ok()
    }
}
