//! What a call has left behind so far, and what it leaves behind if nobody waits for it any more.

use std::sync::Arc;

use super::{Run, Scope};
use crate::call::{Call, Facts, Outcome};
use crate::fault::{Executed, Fault};
use crate::grant::Life;
use crate::perform::{Passage, Span};
use crate::reply::{Finished, Normal, render};
use crate::sync::OnceLock;
use crate::tape::Event;

/// What a call has left behind so far.
///
/// Dropping it while the call waits settles the call on the tape: nobody reads the reply, but
/// whoever reads the tape learns what is known.
pub(super) struct Trail<'r> {
    /// Events that are not on the tape yet.
    pub(super) events: Vec<Event>,
    /// When the last attempt started.
    pub(super) started_us: Option<u64>,
    /// Whether its tool may write anything.
    pub(super) writes_anything: bool,
    /// The span of the last attempt.
    pub(super) span: Span,
    pub(super) wait: Wait<'r>,
}

/// How a call waits: for a person, for a seat, for its tool or for the disk.
pub(super) struct Wait<'r> {
    pub(super) run: &'r Run,
    pub(super) scope: &'r Scope<'r>,
    pub(super) life: OnceLock<Arc<Life>>,
    /// Whom a reply is owed to, once the call has waited.
    owed: OnceLock<Arc<Facts>>,
    /// Whether the tool was reached.
    pub(super) passage: Passage,
}

impl<'r> Trail<'r> {
    pub(super) fn new(run: &'r Run, scope: &'r Scope<'r>, writes_anything: bool) -> Trail<'r> {
        let (life, owed, passage) = (OnceLock::new(), OnceLock::new(), Passage::default());
        let wait = Wait { run, scope, life, owed, passage };
        // Most calls are proposed, judged and started before anything reaches the tape.
        let (events, span) = (Vec::with_capacity(3), Span::none());
        Trail { events, started_us: None, writes_anything, span, wait }
    }

    /// The call was settled.
    pub(super) fn close(&mut self) {
        self.wait.close();
    }
}

impl Wait<'_> {
    /// The call must wait: from now on it can be cancelled by itself, and is settled if dropped.
    pub(super) fn begin(&self, call: &Call) -> &Arc<Life> {
        let life = self.life.get_or_init(|| {
            let run = self.run.live().context.run;
            Life::new(run, call.no(), call.args_hash(), self.scope.token())
        });
        if self.owed.set(call.facts().clone()).is_ok() {
            self.run.halts.enter(life);
        }
        life
    }

    /// The tool is done and this is what it did, but the reply is not made yet.
    pub(super) fn owe(&self, facts: &Arc<Facts>, executed: Executed) {
        self.passage.leave(executed);
        let _ = self.owed.set(facts.clone());
    }

    /// The call is over: whatever still works for it is told, and whom a reply is owed to is said.
    fn close(&mut self) -> Option<Arc<Facts>> {
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
        self.span.failed(fault.code());
        self.wait.run.leave_behind(facts, fault, &mut self.events, self.started_us);
    }
}

impl Run {
    /// Settles on the tape a call whose reply nobody waits for.
    pub(super) fn leave_behind(
        &self,
        facts: Arc<Facts>,
        fault: Fault,
        events: &mut Vec<Event>,
        started_us: Option<u64>,
    ) {
        let ended_us = self.setup.clock.unix_us();
        let elapsed_us = started_us.map_or(0, |started| ended_us.saturating_sub(started));
        let normal = Normal::of(Outcome::Not(fault), facts.registered.as_deref());
        events.push(Event::Settled(render(facts, Finished::of(normal), elapsed_us)));
        // Nobody is left to tell if the tape refuses; then the call is in doubt, as after a crash.
        let _ = self.live().recorder.append_at(ended_us, events).accepted();
    }
}
