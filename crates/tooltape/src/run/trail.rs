//! What a call has left behind so far, and what it leaves behind if nobody waits for it any more.

use std::borrow::Cow;
use std::sync::Arc;
use std::{iter, mem};

use super::{Run, Scope};
use crate::call::Call;
use crate::fault::{Executed, Fault};
use crate::grant::Life;
use crate::id::CallNo;
use crate::perform::{Passage, Span};
use crate::policy::Verdict;
use crate::proposal::{Facts, Outcome};
use crate::reply::{Draft, Finished, Normal, Reply, render};
use crate::sync::OnceLock;
use crate::tape::{Accepted, Event, Refused, TapeError, Whole};
use crate::tool::Output;

/// What a call has left behind so far.
///
/// Dropping it while the call waits settles the call on the tape: nobody reads the reply, but
/// whoever reads the tape learns what is known.
pub(super) struct Trail<'r> {
    pub(super) unwritten: Unwritten,
    /// What the tool returned, once it did.
    pub(super) output: Option<Output>,
    /// When the last attempt started.
    pub(super) started_us: Option<u64>,
    /// Whether its tool may write anything.
    pub(super) writes_anything: bool,
    /// The span of the last attempt.
    pub(super) span: Span,
    /// Whether the call waits for an answer, perhaps beyond the life of this process.
    pub(super) is_parked: bool,
    /// Whether what it spends was taken from what its run may spend.
    pub(super) reserved: bool,
    pub(super) wait: Wait<'r>,
}

/// Events of a call that are not on the tape yet. Those that every call has need no list.
pub(super) struct Unwritten {
    proposed: bool,
    judged: Option<Judgement>,
    /// What happened between the judgement and the last start, or was refused by the tape.
    others: Vec<Event>,
    started: Option<Start>,
}

struct Judgement {
    verdict: &'static str,
    rule: Cow<'static, str>,
}

/// How an attempt starts.
pub(super) struct Start {
    pub(super) call: CallNo,
    /// Which attempt it is, counted from 1.
    pub(super) attempt: u32,
    /// The moment that a tool with bounded determinism sees.
    pub(super) clock_us: Option<u64>,
}

impl Unwritten {
    /// A call that was proposed, and of which the tape knows nothing.
    #[inline]
    pub(super) fn new() -> Unwritten {
        Unwritten { proposed: true, judged: None, others: Vec::new(), started: None }
    }

    /// The tape knows already that the call was proposed.
    pub(super) fn known(&mut self) {
        self.proposed = false;
    }

    #[inline]
    pub(super) fn judged(&mut self, verdict: &Verdict) {
        self.judged = Some(Judgement { verdict: verdict.word(), rule: verdict.rule().clone() });
    }

    #[inline]
    pub(super) fn started(&mut self, start: Start) {
        self.started = Some(start);
    }

    /// Something else happened.
    pub(super) fn push(&mut self, event: Event) {
        self.others.extend(self.started.take().map(Event::from));
        self.others.push(event);
    }

    /// The judgement and the start, where there are both, and nothing else happened that the tape
    /// must know. They are taken then, and none are left.
    #[inline]
    fn take_all(&mut self) -> Option<(Judgement, Start)> {
        if !self.proposed || self.judged.is_none() || !self.others.is_empty() {
            return None;
        }
        let start = self.started.take()?;
        self.proposed = false;
        self.judged.take().zip(Some(start))
    }

    /// Lists the events in their order. None are left.
    #[inline]
    pub(super) fn list(&mut self, facts: &Facts, events: &mut Vec<Event>) {
        let (proposed, judged) = (mem::take(&mut self.proposed), self.judged.take());
        if proposed || judged.is_some() {
            let facts = Arc::new(facts.clone());
            // Made where they stay: what is moved just after it was made is slow to be moved.
            if proposed {
                events.extend(iter::once_with(|| Event::Proposed(facts.clone())));
            }
            if let Some(judged) = judged {
                events.extend(iter::once_with(|| judged.of(facts)));
            }
        }
        if !self.others.is_empty() {
            events.append(&mut self.others);
        }
        events.extend(self.started.take().into_iter().map(Event::from));
    }

    /// Puts them on the tape. What it refuses is left, but for the start, which is none then.
    #[inline]
    pub(super) fn write(
        &mut self,
        run: &Run,
        facts: &Facts,
        at_us: u64,
    ) -> Result<Accepted, TapeError> {
        let written = run.live().recorder.append_at(at_us, |events| self.list(facts, events));
        written.map_err(|refused| {
            let Refused { err, happened } = *refused;
            self.others = happened;
            err
        })
    }
}

impl Judgement {
    #[inline]
    fn of(self, facts: Arc<Facts>) -> Event {
        let Judgement { verdict, rule } = self;
        Event::Judged { facts, verdict, rule }
    }
}

impl From<Start> for Event {
    #[inline]
    fn from(Start { call, attempt, clock_us }: Start) -> Event {
        Event::Started { call, attempt, clock_us }
    }
}

/// A call that stays open until somebody answers.
pub(super) struct Parked {
    pub(super) draft: Draft,
    /// What is known of it, should nobody answer.
    pub(super) executed: Executed,
    /// Its life, where it waits for a child.
    pub(super) below: Option<Arc<Life>>,
}

/// How a call waits: for a person, for a seat, for its tool or for the disk.
pub(super) struct Wait<'r> {
    pub(super) run: &'r Run,
    pub(super) scope: &'r Scope<'r>,
    pub(super) life: OnceLock<Arc<Life>>,
    /// Whom a reply is owed to, once the call has waited.
    owed: OnceLock<Box<Facts>>,
    /// Whether the tool was reached.
    pub(super) passage: Passage,
}

impl<'r> Trail<'r> {
    #[inline]
    pub(super) fn new(run: &'r Run, scope: &'r Scope<'r>, writes_anything: bool) -> Trail<'r> {
        let (life, owed, passage) = (OnceLock::new(), OnceLock::new(), Passage::default());
        let wait = Wait { run, scope, life, owed, passage };
        let (unwritten, span) = (Unwritten::new(), Span::none());
        let (output, started_us, is_parked, reserved) = (None, None, false, false);
        Trail { unwritten, output, started_us, writes_anything, span, is_parked, reserved, wait }
    }

    /// Puts on the tape what is not there yet.
    #[inline]
    pub(super) fn write(&mut self, facts: &Facts, at_us: u64) -> Result<Accepted, TapeError> {
        self.unwritten.write(self.wait.run, facts, at_us)
    }

    /// The call stays open: nobody is owed a reply before somebody answers.
    pub(super) fn park(&mut self) {
        self.is_parked = true;
        self.wait.close();
    }

    /// The call that stays open.
    pub(super) fn parked(&self, draft: Draft, executed: Executed) -> Parked {
        let below = self.wait.life.get().filter(|life| life.is_parked()).cloned();
        Parked { draft, executed, below }
    }

    /// What may have happened so far.
    pub(super) fn done_by_now(&self) -> Executed {
        match self.started_us {
            Some(_) => Executed::Unknown,
            None => Executed::NotExecuted,
        }
    }

    /// Puts on the tape what is not there yet, and how the call ended. From here on nothing that
    /// still works for the call can say anything behind its end.
    #[inline]
    pub(super) fn settle(
        &mut self,
        facts: &Facts,
        at_us: u64,
        settled: Reply,
    ) -> Result<Accepted, Box<Refused>> {
        self.wait.close();
        let recorder = &self.wait.run.live().recorder;
        if let Some((Judgement { verdict, rule }, start)) = self.unwritten.take_all() {
            let Start { attempt, clock_us, .. } = start;
            let make = || Whole { verdict, rule, attempt, clock_us, settled };
            return recorder.append_whole_at(at_us, (facts.call, attempt), make);
        }
        recorder.append_at(at_us, |events| {
            self.unwritten.list(facts, events);
            events.extend(iter::once_with(|| Event::Settled(settled)));
        })
    }
}

impl Wait<'_> {
    /// The call must wait: from now on it can be cancelled by itself, and is settled if dropped.
    pub(super) fn begin(&self, call: &Call) -> &Arc<Life> {
        let life = self.life.get_or_init(|| {
            let run = self.run.live().context.run;
            let labels = self.run.labels_of(call);
            Life::new((run, call.no()), call.args_hash(), labels, self.scope.token())
        });
        if self.owed.get().is_none() {
            let _ = self.owed.set(Box::new(call.facts().clone()));
            self.run.halts.enter(life);
        }
        life
    }

    /// The tool is done and this is what it did, but the reply is not made yet.
    pub(super) fn owe(&self, facts: &Facts, executed: Executed) {
        self.passage.leave(executed);
        let _ = self.owed.set(Box::new(facts.clone()));
    }

    /// The call is over: whatever still works for it is told, and whom a reply is owed to is said.
    #[inline]
    fn close(&mut self) -> Option<Box<Facts>> {
        if let Some(life) = self.life.get() {
            life.end();
        }
        let owed = self.owed.take()?;
        self.run.halts.leave(owed.call);
        Some(owed)
    }
}

impl Drop for Trail<'_> {
    fn drop(&mut self) {
        let Some(facts) = self.wait.close() else { return };
        let executed = self.wait.passage.executed();
        let fault = Fault::Cancelled { executed, said: None };
        self.wait.run.spent(&facts, executed, self.reserved);
        self.span.failed(fault.code());
        self.wait.run.leave_behind(Draft::new(*facts), fault, &mut self.unwritten, self.started_us);
    }
}

impl Run {
    /// Settles on the tape a call whose reply nobody waits for.
    #[cold]
    pub(super) fn leave_behind(
        &self,
        draft: Draft,
        fault: Fault,
        unwritten: &mut Unwritten,
        started_us: Option<u64>,
    ) {
        let ended_us = self.setup.clock.unix_us();
        let elapsed_us = started_us.map_or(0, |started| ended_us.saturating_sub(started));
        let normal = Normal::of(Outcome::Not(fault), draft.registered.as_deref());
        let settled = render(draft, Finished::of(normal), None, elapsed_us);
        // Nobody is left to tell if the tape refuses; then the call is in doubt, as after a crash.
        let _ = self.live().recorder.append_at(ended_us, |events| {
            unwritten.list(settled.facts(), events);
            events.push(Event::Settled(settled));
        });
    }
}
