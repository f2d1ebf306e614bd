//! A tape that tells what is written on it, as it is written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tooltape::{
    Ack, Append, BoxFuture, CallNo, Event, MemoryTape, Record, Reply, RunId, Tape, TapeError,
    TurnEvent,
};

use crate::escape;
use crate::out::{BAD, Detail, FAINT, GOOD, Out, STRONG, paint};

/// How many characters of arguments, and of a result, a line shows.
const SHOWN_CHARS: usize = 64;
/// How many characters of a refusal a line shows: it says what to mend.
const REFUSAL_CHARS: usize = 240;
/// How many characters of what a model says a line shows.
const SAID_CHARS: usize = 400;

/// A tape in memory that narrates. Clones share it.
#[derive(Clone)]
pub(crate) struct Narrated(Arc<Inner>);

struct Inner {
    tape: MemoryTape,
    out: Out,
    telling: Telling,
    state: Mutex<State>,
    started: watch::Sender<bool>,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Turns and calls, for people.
    Lines,
    /// Calls alone, and of them only those that succeed: the command reports the others.
    Successes,
    /// Every event, for programs.
    Events,
}

#[derive(Default)]
struct State {
    turns: u32,
    calls: BTreeMap<CallNo, Told>,
}

/// What was told to the tape about a call that is not settled.
struct Told {
    arguments: Arc<str>,
    /// The verdict and the rule.
    judged: Option<String>,
}

impl Narrated {
    pub(crate) fn new(out: Out, telling: Telling) -> Narrated {
        let (tape, state) = (MemoryTape::default(), Mutex::default());
        let started = watch::Sender::new(false);
        Narrated(Arc::new(Inner { tape, out, telling, state, started }))
    }

    /// Waits until a call has started.
    pub(crate) async fn started(&self) {
        let mut started = self.0.started.subscribe();
        // The sender is in `self`, so the channel is open and waiting cannot fail.
        let _open = started.wait_for(|started| *started).await;
    }

    /// All records of a run.
    pub(crate) fn records(&self, run: RunId) -> Vec<Record> {
        self.0.tape.records(run)
    }
}

impl Tape for Narrated {
    fn append(&self, append: Append<'_>) -> Ack {
        let places = append.after..;
        let (run, at_us) = (append.run, append.at_us);
        let records: Vec<_> = places
            .zip(append.events.iter())
            .map(|(seq, event)| Record::new(run, seq, at_us, event.clone()))
            .collect();
        let ack = self.0.tape.append(append);
        if !matches!(ack, Ack::Now(Err(_))) {
            let starts = |record: &Record| matches!(record.event, Event::Started { .. });
            if records.iter().any(starts) {
                self.0.started.send_replace(true);
            }
            records.iter().for_each(|record| self.0.tell(record));
        }
        ack
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

impl Inner {
    fn tell(&self, record: &Record) {
        match self.telling {
            Telling::Lines | Telling::Successes => self.tell_person(&record.event),
            // A reader that went away has read enough; the run goes on.
            Telling::Events => drop(self.out.json(record)),
        }
    }

    fn tell_person(&self, event: &Event) {
        match event {
            Event::Asked { text } => {
                let asked = escape::clipped(text, SAID_CHARS);
                self.out.say(&format!("{} {asked}", paint(STRONG, "asked")));
            }
            Event::Turn(turn) => self.tell_turn(turn),
            Event::Proposed(facts) => {
                let told = Told { arguments: facts.arguments.clone(), judged: None };
                self.state().calls.insert(facts.call, told);
            }
            Event::Judged { facts, verdict, rule } => {
                if let Some(told) = self.state().calls.get_mut(&facts.call) {
                    told.judged = Some(format!("{verdict} by {}", escape::line(rule)));
                }
            }
            Event::Answered { call, yes, .. } => {
                if let Some(told) = self.state().calls.get_mut(call) {
                    let answer = if *yes { ", answered yes" } else { ", answered no" };
                    told.judged.get_or_insert_default().push_str(answer);
                }
            }
            Event::Progress { call, text } => {
                let text = escape::clipped(text, SAID_CHARS);
                self.out.say(&paint(FAINT, format!("  … {call} {text}")));
            }
            Event::Retried { call, attempt, message, pause_ms, .. } => {
                let why = escape::clipped(message, SAID_CHARS);
                let line =
                    format!("  … {call} attempt {attempt}: {why}; again after {pause_ms} ms");
                self.out.say(&paint(FAINT, line));
            }
            Event::Abandoned { call, .. } => {
                self.out.say(&paint(FAINT, format!("  … {call} was given up; its thread goes on")));
            }
            Event::Settled(reply) => self.tell_settled(reply),
            // Tools, states and named events are for programs, and the command tells the ends.
            _ => {}
        }
    }

    fn tell_turn(&self, turn: &TurnEvent) {
        let no = {
            let mut state = self.state();
            state.turns += 1;
            state.turns
        };
        let said = match &turn.text {
            // The command prints the answer itself.
            _ if turn.proposals.is_empty() => return,
            Some(text) => escape::clipped(text, SAID_CHARS),
            None => String::new(),
        };
        self.out.say(format!("{} {said}", paint(STRONG, format!("turn {no}"))).trim_end());
    }

    fn tell_settled(&self, reply: &Reply) {
        let told = self.state().calls.remove(&reply.call);
        if self.telling == Telling::Successes && reply.is_error {
            return;
        }
        let is_full = self.out.detail == Detail::Verbose;
        let shown = |text: &str, chars| match is_full {
            true => escape::line(text).into_owned(),
            false => escape::clipped(text, chars),
        };
        let arguments = told.as_ref().map_or("", |told| &told.arguments);
        let (mark, result) = match reply.is_error {
            false => (paint(GOOD, "✓"), shown(&reply.text(), SHOWN_CHARS)),
            true => (paint(BAD, "✗"), shown(&reply.text(), REFUSAL_CHARS)),
        };
        let name = escape::clipped(&reply.name, SHOWN_CHARS);
        let head = format!("  {mark} {} {name} {}", reply.call, shown(arguments, SHOWN_CHARS));
        let head = head.trim_end().to_owned();
        let judged = told.and_then(|told| told.judged);
        let time = (reply.elapsed_us > 0).then(|| elapsed(reply.elapsed_us));
        let faint = judged.into_iter().chain(time).map(|part| paint(FAINT, part));
        let parts: Vec<String> = [head].into_iter().chain(faint).chain([result]).collect();
        self.out.say(&parts.join(" · "));
        if is_full {
            let (args, result) = (reply.args_hash, reply.result_hash);
            self.out.say(&paint(FAINT, format!("    arguments {args}\n    result    {result}")));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is only ever read for what is shown.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time that people can read.
pub(crate) fn elapsed(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}
