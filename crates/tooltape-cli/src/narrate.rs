//! A tape that tells what is written on it, as it is written.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tooltape::{Ack, Append, BoxFuture, Clock, Event, Record, RunId, Tape, TapeError};

use crate::live::Live;
use crate::out::Out;
use crate::tally::Tally;
use crate::tell::Teller;

/// How many appends wait to be printed before the run waits for whoever reads.
const APPENDS_WAITING_MAX: usize = 1_024;

/// A tape that narrates. Clones share it.
#[derive(Clone)]
pub(crate) struct Narrated(Arc<Inner>);

struct Inner {
    tape: Box<dyn Tape>,
    run: RunId,
    out: Out,
    state: Mutex<State>,
    started: watch::Sender<bool>,
    /// What is put into the note of the run as it begins.
    noted: OnceLock<(&'static str, Value)>,
    /// Who prints events once they are durable.
    printer: Option<mpsc::SyncSender<Appended>>,
    /// The line that says what is being waited for.
    live: OnceLock<Live>,
}

/// Records that a tape accepted.
struct Appended {
    records: Vec<Record>,
    ack: Ack,
    durable: oneshot::Sender<Result<(), TapeError>>,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Turns and calls, for people.
    Lines,
    /// Calls alone, and of them only those that succeed: the command reports the others.
    Successes,
    /// Every event, for programs, once it is durable.
    Events,
}

struct State {
    /// How many records the run has.
    len: u64,
    teller: Teller,
    tally: Tally,
}

impl Narrated {
    /// Tells of `run`, and of the runs that it starts. Must be called within the runtime.
    pub(crate) fn new(
        tape: impl Tape + 'static,
        run: RunId,
        out: Out,
        telling: Telling,
    ) -> Narrated {
        let printer = (telling == Telling::Events).then(|| print(out));
        let teller = Teller::new(out.detail, telling == Telling::Successes);
        let state = Mutex::new(State { len: 0, teller, tally: Tally::default() });
        let started = watch::Sender::new(false);
        let tape = Box::new(tape);
        let noted = OnceLock::new();
        let live = OnceLock::new();
        Narrated(Arc::new(Inner { tape, run, out, state, started, noted, printer, live }))
    }

    /// Puts this into the note of the run as it begins, beside what is there.
    pub(crate) fn note(&self, key: &'static str, value: Value) {
        self.0.noted.get_or_init(|| (key, value));
    }

    /// Tells this line, too, and takes it away before anything else is said.
    pub(crate) fn show(&self, live: &Live) {
        self.0.live.get_or_init(|| live.clone());
    }

    /// Renews the line that says what is being waited for, if there is one.
    pub(crate) async fn renew(&self) -> Infallible {
        match self.0.live.get() {
            Some(live) => live.renew().await,
            None => std::future::pending().await,
        }
    }

    /// Whether somebody is asked something at the terminal.
    pub(crate) fn is_asking(&self) -> bool {
        self.0.live.get().is_some_and(Live::is_asking)
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.0.live.get().into_iter().for_each(Live::clear);
    }

    /// Waits until a call has started.
    pub(crate) async fn started(&self) {
        let mut started = self.0.started.subscribe();
        // The sender is in `self`, so the channel is open and waiting cannot fail.
        let _open = started.wait_for(|started| *started).await;
    }

    /// Counts what happened before this command.
    pub(crate) fn recall(&self, records: &[Record]) {
        let mut state = self.0.state();
        for record in records {
            // What was told then is not told again; what goes on is told from where it was.
            drop(state.teller.tell(record));
            state.tally.count(&record.event);
            state.len = record.seq + 1;
        }
    }

    /// Ends a run that no agent ends.
    pub(crate) async fn end(&self, status: &'static str, stop: &str) -> Result<(), TapeError> {
        let end = Event::RunEnded { status, stop: stop.to_owned(), answer: None };
        let after = self.0.state().len;
        let at_us = Clock::system().unix_us();
        self.append(Append::new(self.0.run, after, at_us, &mut vec![end])).durable().await
    }

    /// What happened in the run.
    pub(crate) fn tally(&self) -> Tally {
        self.0.state().tally.clone()
    }
}

impl Tape for Narrated {
    fn append(&self, append: Append<'_>) -> Ack {
        self.0.annotate(append.run, append.events);
        let places = append.after..;
        let (run, at_us) = (append.run, append.at_us);
        let records: Vec<_> = places
            .zip(append.events.iter())
            .map(|(seq, event)| Record::new(run, seq, at_us, event.clone()))
            .collect();
        let ack = self.0.tape.append(append);
        if matches!(ack, Ack::Now(Err(_))) {
            return ack;
        }
        self.0.count(&records);
        let Some(printer) = &self.0.printer else {
            return self.0.clone().tell_all(records, ack);
        };
        let (durable, is_durable) = oneshot::channel();
        match printer.send(Appended { records, ack, durable }) {
            Ok(()) => Ack::Later(Box::pin(async move {
                is_durable.await.unwrap_or_else(|_| Err(unprinted()))
            })),
            Err(mpsc::SendError(_)) => Ack::Now(Err(unprinted())),
        }
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        self.0.tape.read(run, from, most)
    }
}

/// Prints events in their order, each once it is durable: whoever reads one may rely on it.
fn print(out: Out) -> mpsc::SyncSender<Appended> {
    let (sender, appends) = mpsc::sync_channel::<Appended>(APPENDS_WAITING_MAX);
    let runtime = Handle::current();
    thread::spawn(move || {
        for Appended { records, ack, durable } in appends {
            let done = runtime.block_on(ack.durable());
            if done.is_ok() {
                // A reader that went away has read enough; the run goes on.
                records.iter().for_each(|record| drop(out.json(record)));
            }
            // Whoever appended may not be waiting.
            let _ = durable.send(done);
        }
    });
    sender
}

fn unprinted() -> TapeError {
    TapeError::Poisoned { why: "the thread that prints events is gone".into() }
}

impl Inner {
    fn annotate(&self, run: RunId, events: &mut [Event]) {
        let Some((key, value)) = self.noted.get().filter(|_| run == self.run) else { return };
        if let Some(Event::RunStarted { note: Some(note), .. }) = events.first_mut()
            && let Some(note) = Arc::make_mut(note).as_object_mut()
        {
            note.insert((*key).to_owned(), value.clone());
        }
    }

    /// Tells what a tape accepted; that a run goes on, once it is sure that it may.
    fn tell_all(self: Arc<Self>, records: Vec<Record>, ack: Ack) -> Ack {
        let resumes = |record: &Record| matches!(record.event, Event::RunResumed { .. });
        match ack {
            Ack::Later(ack) if records.iter().any(resumes) => Ack::Later(Box::pin(async move {
                ack.await?;
                records.iter().for_each(|record| self.tell(record));
                Ok(())
            })),
            ack @ (Ack::Later(_) | Ack::Now(_)) => {
                records.iter().for_each(|record| self.tell(record));
                ack
            }
        }
    }

    fn count(&self, records: &[Record]) {
        let starts = |record: &Record| matches!(record.event, Event::Started { .. });
        if records.iter().any(starts) {
            self.started.send_replace(true);
        }
        let mut state = self.state();
        for record in records.iter().filter(|record| record.run == self.run) {
            state.tally.count(&record.event);
            state.len = record.seq + 1;
        }
    }

    fn tell(&self, record: &Record) {
        if let Some(live) = self.live.get() {
            live.record(record.run, &record.event);
        }
        let lines = self.state().teller.tell(record);
        lines.iter().for_each(|line| self.out.say(line));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is only ever read for what is shown.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
