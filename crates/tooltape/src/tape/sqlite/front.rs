//! Takes appends on the thread of the caller, and decides at once whether they fit.

use std::collections::{BTreeSet, HashMap};
use std::sync::{PoisonError, mpsc};

use tokio::sync::oneshot;

use super::super::memory::Taken;
use super::reserve::Reserve;
use super::writer::{Appended, Job};
use crate::id::{CallNo, RunId};
use crate::sync::{Mutex, MutexGuard};
use crate::tape::{Ack, Append, Event, Key, Record, TapeError};

/// The most events that are accepted and not on the disk.
pub const QUEUE_EVENTS_MAX: usize = 1 << 18;
/// The most runs that one handle writes to at a time.
pub const RUNS_HELD_MAX: usize = 1 << 16;
/// The most records of a run.
pub const RUN_RECORDS_MAX: u64 = 1 << 32;

/// What the callers and the writer share.
pub(super) struct Front {
    state: Mutex<State>,
    jobs: mpsc::Sender<Job>,
}

struct State {
    /// Why nothing is taken any more.
    shut: Option<TapeError>,
    runs: HashMap<RunId, Reel>,
    /// How often a run was taken in hand.
    claims: u64,
    /// How many events are on their way to the disk.
    queued: usize,
    /// How many calls have started and not settled.
    open: u64,
    reserve: Reserve,
    /// Whether the writer needs the room that was kept, so that nobody may take it again.
    is_giving: bool,
}

/// What decides whether an append to a run fits.
struct Reel {
    claim: u64,
    len: u64,
    taken: Taken,
    open: BTreeSet<CallNo>,
    /// Whether the writer has found the run to be as the caller thinks.
    is_certain: bool,
}

impl Front {
    pub(super) fn new(reserve: Reserve, jobs: mpsc::Sender<Job>) -> Front {
        let state = State {
            shut: None,
            runs: HashMap::new(),
            claims: 0,
            queued: 0,
            open: 0,
            reserve,
            is_giving: false,
        };
        Front { state: Mutex::new(state), jobs }
    }

    pub(super) fn append(&self, append: Append<'_>) -> Ack {
        // Held while a job is sent, so that jobs go in the order of their places.
        let mut state = self.state();
        if append.events.is_empty() {
            return Ack::Now(state.fits(&append));
        }
        if let Err(err) = state.accept(&append) {
            return Ack::Now(Err(err));
        }
        let (ack, durable) = oneshot::channel();
        let job = state.job(append, ack);
        if self.jobs.send(job).is_err() {
            return Ack::Now(Err(gone()));
        }
        drop(state);
        Ack::Later(Box::pin(async move {
            // The writer answers every job, and is gone only if it panicked.
            durable.await.unwrap_or_else(|_| Err(gone()))
        }))
    }

    /// Gives the writer something else to do, after all that was accepted before.
    pub(super) fn send(&self, job: Job) -> Result<(), TapeError> {
        let state = self.state();
        if let Some(err) = &state.shut {
            return Err(err.clone());
        }
        self.jobs.send(job).map_err(|_| gone())
    }

    /// What the writer did is no longer queued.
    pub(super) fn done(&self, events: usize) {
        let mut state = self.state();
        state.queued -= events;
        state.is_giving = false;
    }

    /// The run is as the caller thinks, and these keys are taken.
    pub(super) fn claimed(&self, run: RunId, claim: u64, keys: Vec<Key>, open: &BTreeSet<CallNo>) {
        let mut state = self.state();
        let Some(reel) = state.runs.get_mut(&run).filter(|reel| reel.claim == claim) else {
            return;
        };
        for key in keys {
            // Taken on the way here too, where the writer has just refused it.
            let _ = reel.taken.take(key);
        }
        reel.is_certain = true;
        let before = reel.open.len();
        reel.open.extend(open);
        let more = reel.open.len() - before;
        state.open += more as u64;
        // What started in an earlier life of the run may settle on whatever room there is.
        if more > 0 && !state.is_giving {
            let open = state.open;
            let _ = state.reserve.cover(open);
        }
    }

    /// The run is not as the caller thinks: whoever writes to it next starts anew.
    pub(super) fn let_go(&self, run: RunId, claim: u64) {
        let mut state = self.state();
        if state.runs.get(&run).is_some_and(|reel| reel.claim == claim) {
            state.forget(run);
        }
        // After the last job that counts on the claim. Nobody is left to tell if it is not taken.
        let _ = self.jobs.send(Job::Forget(claim));
    }

    /// Gives kept room back to the disk. False if there is none.
    pub(super) fn give_back(&self) -> bool {
        let mut state = self.state();
        state.is_giving = true;
        let open = state.open;
        state.reserve.give_back(open)
    }

    /// Takes nothing any more, for the reason that came first.
    pub(super) fn shut(&self, err: TapeError) -> TapeError {
        self.state().shut.get_or_insert(err).clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each append is checked before anything is changed, so a panic leaves no half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fits(&self, append: &Append<'_>) -> Result<(), TapeError> {
        match self.runs.get(&append.run) {
            Some(reel) if reel.len != append.after => {
                Err(TapeError::Conflict { expected: append.after, found: reel.len })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Takes the events in, or changes nothing.
    fn accept(&mut self, append: &Append<'_>) -> Result<(), TapeError> {
        if let Some(err) = &self.shut {
            return Err(err.clone());
        }
        self.fits(append)?;
        self.has_room(append)?;
        let claims = &mut self.claims;
        let is_new = !self.runs.contains_key(&append.run);
        let reel = self.runs.entry(append.run).or_insert_with(|| {
            *claims += 1;
            Reel::new(*claims, append.after)
        });
        if let Err(err) = reel.taken.take_all(append.events) {
            if is_new {
                self.runs.remove(&append.run);
            }
            return Err(err);
        }
        reel.len += append.events.len() as u64;
        let before = reel.open.len() as u64;
        reel.count(append.events);
        self.open = self.open - before + reel.open.len() as u64;
        self.queued += append.events.len();
        Ok(())
    }

    /// Whether there is room for the events, and for the results of what they start.
    fn has_room(&mut self, append: &Append<'_>) -> Result<(), TapeError> {
        let full = |why: String| Err(TapeError::Full { why });
        let events = append.events.len();
        if self.queued + events > QUEUE_EVENTS_MAX {
            return full(format!(
                "{} events wait for the disk, at most {QUEUE_EVENTS_MAX}",
                self.queued
            ));
        }
        if append.after + events as u64 > RUN_RECORDS_MAX {
            return full(format!("the run has {RUN_RECORDS_MAX} records"));
        }
        if !self.runs.contains_key(&append.run) && self.runs.len() >= RUNS_HELD_MAX {
            return full(format!("{RUNS_HELD_MAX} runs are written to at once"));
        }
        // What starts and settles at once is over, and no new work.
        let settles = |call: CallNo| {
            let mut keys = append.events.iter().filter_map(Event::key);
            keys.any(|key| key == Key::Settled(call))
        };
        let is_open = |event: &&Event| match event {
            Event::Started { call, .. } => !settles(*call),
            _ => false,
        };
        let starts = append.events.iter().filter(is_open).count() as u64;
        if starts > 0
            && !self.is_giving
            && let Err(err) = self.reserve.cover(self.open + starts)
        {
            return full(format!("no room for the results of what starts: {err}"));
        }
        let is_over = |event: &Event| event.call().is_some_and(settles);
        if append.events.iter().any(|event| is_new_work(event) && !is_over(event))
            && (self.is_giving || self.reserve.is_spent(self.open))
        {
            return full("the disk is full, and what is left is kept for what has started".into());
        }
        Ok(())
    }

    /// What the writer is to do. The list is left empty.
    fn job(&mut self, append: Append<'_>, ack: oneshot::Sender<Result<(), TapeError>>) -> Job {
        let Append { run, after, at_us, events } = append;
        let reel = self.runs.get(&run).expect("it has just been taken in");
        let (claim, is_certain) = (reel.claim, reel.is_certain);
        // Whoever answers a question that a paused run waits for is perhaps somebody else.
        let leaves =
            |event: &Event| matches!(event, Event::RunEnded { .. } | Event::RunPaused { .. });
        let is_last = events.iter().any(leaves);
        if is_last {
            self.forget(run);
        }
        let records = (after..).zip(events.drain(..));
        let records = records.map(|(seq, event)| Record::new(run, seq, at_us, event)).collect();
        Job::Append(Appended { run, claim, is_certain, is_last, records, ack })
    }

    fn forget(&mut self, run: RunId) {
        if let Some(reel) = self.runs.remove(&run) {
            self.open -= reel.open.len() as u64;
        }
    }
}

impl Reel {
    fn new(claim: u64, len: u64) -> Reel {
        Reel { claim, len, taken: Taken::default(), open: BTreeSet::new(), is_certain: false }
    }

    /// Counts the calls that have started and not settled.
    fn count(&mut self, events: &[Event]) {
        for event in events {
            match event.key() {
                Some(Key::Started(call, _)) => {
                    self.open.insert(call);
                }
                Some(Key::Settled(call)) => {
                    self.open.remove(&call);
                }
                Some(Key::Answered(..)) | None => {}
            }
        }
    }
}

/// Whether an event is about something new; what is under way may end on a full disk.
fn is_new_work(event: &Event) -> bool {
    match event {
        Event::RunStarted { .. }
        | Event::Asked { .. }
        | Event::Turn(_)
        | Event::Nudged(_)
        | Event::Said { .. }
        | Event::Recalled { .. }
        | Event::Started { .. }
        | Event::Progress { .. }
        | Event::Emitted { .. }
        | Event::State { .. }
        | Event::Stored { .. } => true,
        Event::RunResumed { .. }
        | Event::RunPaused { .. }
        | Event::Tools { .. }
        | Event::Proposed(_)
        | Event::Judged { .. }
        | Event::CallAsked(_)
        | Event::Answered { .. }
        | Event::Retried { .. }
        | Event::Abandoned { .. }
        | Event::Reconciled { .. }
        | Event::Settled(_)
        | Event::RunEnded { .. } => false,
    }
}

pub(super) fn gone() -> TapeError {
    TapeError::Poisoned { why: "the writer of the tape is gone".into() }
}
