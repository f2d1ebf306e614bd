//! The one writer of a run's records.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};

use super::subscribe::Subscribers;
use super::{Ack, Append, Backlog, Event, MemoryTape, Subscription, Tape, TapeError, Whole};
use crate::fault::clip;
use crate::grant::{Clock, Note, Noted, PROGRESS_BYTES_MAX, Stored, Witness};
use crate::id::{CallNo, RunId};
use crate::reply::Redactor;
use crate::sync::{Mutex, MutexGuard};
use crate::tool::BoxFuture;

/// Appends a run's events in one order, each at its place.
pub(crate) struct Recorder {
    tape: Recording,
    run: RunId,
    clock: Clock,
    /// What goes before the first event.
    opening: Event,
    redactor: Redactor,
    pen: Mutex<Pen>,
}

/// The tape that a run is recorded on. All that is written goes through the one primitive of
/// [`Tape`], but for calls that a tape in memory takes as one.
#[derive(Clone)]
pub(crate) struct Recording {
    tape: Arc<dyn Tape>,
    /// The same, where it is in memory and nobody stands between.
    memory: Option<MemoryTape>,
}

impl Recording {
    pub(crate) fn new(tape: impl Tape + 'static) -> Recording {
        let memory = (&tape as &dyn Any).downcast_ref::<MemoryTape>().cloned();
        Recording { tape: Arc::new(tape), memory }
    }
}

impl Deref for Recording {
    type Target = dyn Tape;

    fn deref(&self) -> &(dyn Tape + 'static) {
        &*self.tape
    }
}

/// What whoever writes holds.
#[derive(Default)]
struct Pen {
    /// How many records the run has.
    len: u64,
    /// Where events are listed for the tape; empty in between.
    events: Vec<Event>,
    subscribers: Subscribers,
    /// Whether the tape ever refused something.
    refused: bool,
}

impl Recorder {
    pub(crate) fn new(tape: Recording, run: RunId, clock: Clock, opening: Event) -> Recorder {
        let (redactor, pen) = (Redactor::default(), Mutex::default());
        Recorder { tape, run, clock, opening, redactor, pen }
    }

    /// The same, which writes none of these secrets down.
    pub(crate) fn without(self, redactor: Redactor) -> Recorder {
        Recorder { redactor, ..self }
    }

    /// The same, for a run that has so many records.
    pub(crate) fn after(self, len: u64) -> Recorder {
        self.pen().len = len;
        self
    }

    /// Shows what is appended from now on to somebody.
    pub(crate) fn subscribe(&self, backlog: Backlog) -> Subscription {
        self.pen().subscribers.add(backlog)
    }

    /// Whether the tape ever refused something.
    pub(crate) fn was_refused(&self) -> bool {
        self.pen().refused
    }

    /// Appends an event that happens now.
    pub(crate) fn append(&self, event: Event) -> Ack {
        match self.append_at(self.clock.unix_us(), |events| events.push(event)) {
            Ok(Accepted::Now) => Ack::Now(Ok(())),
            Ok(Accepted::Later(durable)) => Ack::Later(durable),
            Err(refused) => Ack::Now(Err(refused.err)),
        }
    }

    /// Appends the events that `list` lists, which happened at this moment.
    #[inline]
    pub(crate) fn append_at(
        &self,
        at_us: u64,
        list: impl FnOnce(&mut Vec<Event>),
    ) -> Result<Accepted, Box<Refused>> {
        self.write(&mut self.pen(), at_us, list)
    }

    /// Appends all events of a call, which was over at this moment.
    ///
    /// A tape in memory takes them as one, if nobody watches and nothing is hidden: it checks them
    /// as it checks any append, and whoever reads finds the same records.
    #[inline]
    pub(crate) fn append_whole_at(
        &self,
        at_us: u64,
        (call, attempt): (CallNo, u32),
        make: impl FnOnce() -> Whole,
    ) -> Result<Accepted, Box<Refused>> {
        let mut pen = self.pen();
        let is_seen = !pen.subscribers.is_empty() || !self.redactor.is_idle();
        let make = match &self.tape.memory {
            Some(memory) if pen.len > 0 && !is_seen => {
                let (at, keys) = ((self.run, pen.len), Whole::keys(call, attempt));
                match memory.append_whole(at, at_us, keys, make) {
                    Ok(()) => {
                        pen.len += Whole::EVENTS as u64;
                        return Ok(Accepted::Now);
                    }
                    Err(make) => make,
                }
            }
            Some(_) | None => make,
        };
        self.write(&mut pen, at_us, |events| make().list(events))
    }

    /// Appends events by the pen, which is held while the tape accepts them, and never while they
    /// become durable.
    #[inline]
    fn write(
        &self,
        pen: &mut Pen,
        at_us: u64,
        list: impl FnOnce(&mut Vec<Event>),
    ) -> Result<Accepted, Box<Refused>> {
        let Pen { len, events, subscribers, refused } = pen;
        // A tape that panicked may have left some.
        events.clear();
        if *len == 0 {
            events.push(self.opening.clone());
        }
        list(events);
        if !self.redactor.is_idle() {
            events.iter_mut().for_each(|event| event.redact(&self.redactor));
        }
        let (after, longer) = (*len, *len + events.len() as u64);
        let copy = (!subscribers.is_empty()).then(|| events.clone());
        let accepted = match self.tape.append(Append::new(self.run, after, at_us, events)) {
            Ack::Now(Ok(())) => Accepted::Now,
            Ack::Later(durable) => Accepted::Later(durable),
            Ack::Now(Err(err)) => {
                *refused = true;
                return Err(Refused::new(err, events));
            }
        };
        *len = longer;
        if let Some(copy) = copy {
            subscribers.show(self.run, after, at_us, copy);
        }
        Ok(accepted)
    }

    #[inline]
    fn pen(&self) -> MutexGuard<'_, Pen> {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events that the tape took.
pub(crate) enum Accepted {
    /// They are durable.
    Now,
    /// The future says when they are.
    Later(BoxFuture<'static, Result<(), TapeError>>),
}

/// Events that the tape did not take.
pub(crate) struct Refused {
    pub(crate) err: TapeError,
    /// What happened all the same, and is told with what happens next: what was to start did not,
    /// and the run opens with whatever is the first to be taken.
    pub(crate) happened: Vec<Event>,
}

impl Refused {
    #[cold]
    fn new(err: TapeError, events: &mut Vec<Event>) -> Box<Refused> {
        let happened = events.drain(..).filter(|event| match event {
            Event::RunStarted { .. } | Event::Started { .. } => false,
            Event::Asked { .. }
            | Event::Turn(_)
            | Event::Nudged(_)
            | Event::Said { .. }
            | Event::Recalled { .. }
            | Event::Tools { .. }
            | Event::Proposed(_)
            | Event::Judged { .. }
            | Event::CallAsked(_)
            | Event::Answered { .. }
            | Event::Retried { .. }
            | Event::Abandoned { .. }
            | Event::Progress { .. }
            | Event::Emitted { .. }
            | Event::State { .. }
            | Event::RunResumed { .. }
            | Event::RunPaused { .. }
            | Event::Stored { .. }
            | Event::Reconciled { .. }
            | Event::Settled(_)
            | Event::RunEnded { .. } => true,
        });
        let happened = happened.collect();
        Box::new(Refused { err, happened })
    }
}

impl Witness for Recorder {
    fn note(&self, call: CallNo, note: Note) -> Noted {
        let event = match note {
            Note::Progress(text) => Event::Progress { call, text: clip(text, PROGRESS_BYTES_MAX) },
            Note::Emitted { name, value } => Event::Emitted { call, name, value },
            Note::State { name, value, label } => {
                Event::State { call, name: name.into(), value, label }
            }
            Note::Stored { store, key, wrote, stored: Stored { value, label } } => {
                Event::Stored { call, store, key, wrote, value, label }
            }
            Note::Abandoned { attempt } => Event::Abandoned { call, attempt },
        };
        match self.append(event) {
            Ack::Now(Ok(())) => Noted::Durable,
            Ack::Now(Err(_)) => Noted::Refused,
            Ack::Later(durable) => Noted::Later(Box::pin(async { durable.await.is_ok() })),
        }
    }

    fn minds(&self, _: &str) -> bool {
        false
    }
}
