//! The one writer of a run's records.

use std::sync::{Arc, PoisonError};

use super::subscribe::Subscribers;
use super::{Ack, Append, Backlog, Event, Subscription, Tape};
use crate::fault::clip;
use crate::grant::{Clock, Note, PROGRESS_BYTES_MAX, Witness};
use crate::id::{CallNo, RunId};
use crate::sync::{Mutex, MutexGuard};

/// Appends a run's events in one order, each at its place.
pub(crate) struct Recorder {
    tape: Arc<dyn Tape>,
    run: RunId,
    clock: Clock,
    /// What goes before the first event.
    opening: Event,
    state: Mutex<State>,
}

struct State {
    /// How many records the run has.
    len: u64,
    subscribers: Subscribers,
}

impl Recorder {
    pub(crate) fn new(tape: Arc<dyn Tape>, run: RunId, clock: Clock, opening: Event) -> Recorder {
        let state = Mutex::new(State { len: 0, subscribers: Subscribers::default() });
        Recorder { tape, run, clock, opening, state }
    }

    /// Shows what is appended from now on to somebody.
    pub(crate) fn subscribe(&self, backlog: Backlog) -> Subscription {
        self.state().subscribers.add(backlog)
    }

    /// Appends events, and says when. None are left unless the tape refused them.
    #[inline]
    pub(crate) fn append(&self, events: &mut Vec<Event>) -> (u64, Ack) {
        let at_us = self.clock.unix_us();
        (at_us, self.append_at(at_us, events))
    }

    /// Appends events that happened at this moment.
    pub(crate) fn append_at(&self, at_us: u64, events: &mut Vec<Event>) -> Ack {
        // Held while the tape accepts the events, never while they become durable.
        let mut state = self.state();
        let after = state.len;
        if after == 0 {
            events.insert(0, self.opening.clone());
        }
        let len = after + events.len() as u64;
        let copy = state.subscribers.copy(events);
        let ack = self.tape.append(Append::new(self.run, after, at_us, events));
        match &ack {
            // What happened is told with what happens next; what was to start did not, and the
            // run opens with whatever is the first to be taken.
            Ack::Now(Err(_)) => events.retain(|event| match event {
                Event::RunStarted { .. } | Event::Started { .. } => false,
                Event::Asked { .. }
                | Event::Turn(_)
                | Event::Tools { .. }
                | Event::Proposed(_)
                | Event::Judged { .. }
                | Event::Answered { .. }
                | Event::Retried { .. }
                | Event::Abandoned { .. }
                | Event::Progress { .. }
                | Event::Emitted { .. }
                | Event::State { .. }
                | Event::Settled(_)
                | Event::RunEnded { .. } => true,
            }),
            Ack::Now(Ok(())) | Ack::Later(_) => {
                state.len = len;
                state.subscribers.show(self.run, after, at_us, copy);
                events.clear();
            }
        }
        ack
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Recorder {
    fn note(&self, call: CallNo, note: Note) -> bool {
        let event = match note {
            Note::Progress(text) => Event::Progress { call, text: clip(text, PROGRESS_BYTES_MAX) },
            Note::Emitted { name, value } => Event::Emitted { call, name, value },
            Note::State { name, value } => Event::State { call, name, value },
            Note::Abandoned { attempt } => Event::Abandoned { call, attempt },
        };
        let (_, ack) = self.append(&mut vec![event]);
        ack.accepted().is_ok()
    }
}
