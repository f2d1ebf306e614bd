//! The path of a call: each stage takes what the one before it made, and there is one exit.

use std::sync::{Arc, PoisonError};

use super::trail::{Parked, Trail, Unwritten};
use super::{Run, Scope, cancelled};
use crate::batch::Claim;
use crate::call::Call;
use crate::canon::Peek;
use crate::fault::{BoundKind, Exceeded, Executed, Fault, ToolError};
use crate::id::CallNo;
use crate::label::{Label, joined};
use crate::policy::{self, Judged, Permit, Refused, Verdict};
use crate::proposal::{Facts, MoreFacts, Outcome, Proposal, Resolved, kept};
use crate::reply::{Draft, Finished, Normal, Reply, render, render_plain};
use crate::spec::{Access, Requirement};
use crate::tape::{self, Accepted, Event, TapeError};
use crate::tool::BoxFuture;
use crate::toolbox::{Offer, Reading, Repairs, telling};

/// A proposal that was resolved, or could not be.
pub(super) struct Step {
    resolved: Result<Call, Box<Unresolved>>,
    /// What the call touches. What will not run touches nothing.
    claim: Option<Claim>,
    /// Whether it may write anything at all.
    writes_anything: bool,
}

/// A step that waits for no other.
pub(super) struct Ready {
    resolved: Result<Call, Box<Unresolved>>,
    writes_anything: bool,
}

struct Unresolved {
    draft: Draft,
    fault: Fault,
}

impl Step {
    #[inline]
    fn of(resolved: Result<Call, Box<Unresolved>>) -> Step {
        let call = match resolved {
            Ok(call) => call,
            Err(unresolved) => return Step::not(unresolved),
        };
        match Claim::of(&call) {
            Ok(claim) => {
                let writes_anything = claim.footprint.is_unknown_write();
                Step { resolved: Ok(call), claim: Some(claim), writes_anything }
            }
            // A footprint function that fails fails its call, and no other.
            Err(err) => Step::not(Unresolved::of(call, err)),
        }
    }

    /// What the call touches, for whoever orders the batch.
    pub(super) fn take_claim(&mut self) -> Option<Claim> {
        self.claim.take()
    }

    /// The step, once nobody asks any more what it touches.
    #[inline]
    pub(super) fn without_claim(self) -> Ready {
        Ready { resolved: self.resolved, writes_anything: self.writes_anything }
    }

    /// Whether the failure of the call cancels the rest of its batch.
    pub(super) fn aborts_siblings(&self) -> bool {
        self.resolved.as_ref().is_ok_and(|call| call.effects().aborts_siblings)
    }

    /// Whether the model must mend its proposal.
    pub(super) fn needs_repair(&self) -> bool {
        self.resolved.as_ref().is_err_and(|it| matches!(it.fault, Fault::Repair(_)))
    }

    /// Whether it may write anything at all.
    pub(super) fn writes_anything(&self) -> bool {
        self.writes_anything
    }

    /// The call, or what is known of the proposal and why it is none.
    pub(super) fn into_resolved(self) -> Result<Call, (Draft, Fault)> {
        self.resolved.map_err(|unresolved| (unresolved.draft, unresolved.fault))
    }

    /// The same step, whose call will not start any more.
    pub(super) fn given_up(self) -> Step {
        match self.resolved {
            Ok(call) => {
                let (draft, fault) = (call.into_draft(), cancelled(Executed::NotExecuted));
                Step::not(Box::new(Unresolved { draft, fault }))
            }
            Err(_) => self,
        }
    }

    /// A call that will not start.
    #[cold]
    fn not(unresolved: Box<Unresolved>) -> Step {
        Step { resolved: Err(unresolved), claim: None, writes_anything: false }
    }
}

impl Ready {
    #[cold]
    fn not(unresolved: Box<Unresolved>) -> Ready {
        Ready { resolved: Err(unresolved), writes_anything: false }
    }
}

impl Unresolved {
    /// A call of which nobody can say what it touches.
    fn of(call: Call, err: ToolError) -> Box<Unresolved> {
        Box::new(Unresolved { draft: call.into_draft(), fault: Fault::Failed(err) })
    }
}

/// The most bytes of a name that no tool has which the tape and the reply keep.
pub const NAME_KEPT_BYTES_MAX: usize = 256;

impl Run {
    /// Proposal to call. Nothing is recorded or performed here.
    #[inline]
    pub(super) fn resolve(&self, offer: &Offer, proposal: Proposal, counted: &mut u64) -> Step {
        Step::of(self.called(offer, proposal, counted))
    }

    /// The same for the call of this number, with limits of the caller's.
    pub(super) fn resolve_as(
        &self,
        no: CallNo,
        offer: &Offer,
        proposal: Proposal,
        exceeds: impl FnOnce(&Resolved) -> Option<Exceeded>,
    ) -> Step {
        Step::of(self.call_as(no, offer, proposal, exceeds))
    }

    /// The same for a call that waits for no other, so that only its own seats matter.
    #[inline]
    pub(super) fn resolve_alone(
        &self,
        offer: &Offer,
        proposal: Proposal,
        counted: &mut u64,
    ) -> Ready {
        let resolved = self.called(offer, proposal, counted);
        let pure = |call: &Call| call.effects().access == Access::Pure;
        match resolved {
            Ok(call) if !pure(&call) => match call.footprint() {
                Ok(footprint) => {
                    Ready { writes_anything: footprint.is_unknown_write(), resolved: Ok(call) }
                }
                Err(err) => Ready::not(Unresolved::of(call, err)),
            },
            resolved => Ready { resolved, writes_anything: false },
        }
    }

    #[inline]
    fn called(
        &self,
        offer: &Offer,
        proposal: Proposal,
        counted: &mut u64,
    ) -> Result<Call, Box<Unresolved>> {
        let no = self.next_call();
        self.call_as(no, offer, proposal, |resolved| self.exceeded(resolved, counted))
    }

    /// The call of this number, with limits of the caller's.
    #[inline]
    fn call_as(
        &self,
        no: CallNo,
        offer: &Offer,
        proposal: Proposal,
        exceeds: impl FnOnce(&Resolved) -> Option<Exceeded>,
    ) -> Result<Call, Box<Unresolved>> {
        let mut proposal = proposal;
        if !self.redactor().is_idle() {
            proposal = self.discreet(offer, proposal);
        }
        match self.resolved(offer, no, &proposal, exceeds) {
            Ok(it) => {
                let bytes = self.setup.limits.arguments.bytes;
                Ok(Call::new(no, proposal, it, self.shown.label(), bytes))
            }
            Err(fault) => Err(self.unresolved(offer, no, proposal, *fault)),
        }
    }

    #[inline]
    fn resolved(
        &self,
        offer: &Offer,
        no: CallNo,
        proposal: &Proposal,
        exceeds: impl FnOnce(&Resolved) -> Option<Exceeded>,
    ) -> Result<Resolved, Box<Fault>> {
        let mut resolved = match offer.resolve_at_once(proposal, &self.setup.reading) {
            Some(resolved) => resolved,
            None => {
                let resolved = offer.resolve(proposal, &self.setup.reading);
                resolved.map_err(|repair| Box::new(Fault::Repair(repair)))?
            }
        };
        if self.setup.stages.prepares() {
            resolved = self.prepared(resolved, offer, no, proposal)?;
        }
        let redactor = &self.live().finishing.redactor;
        if !redactor.is_idle() && redactor.finds_in_json(resolved.args.as_str()) {
            return Err(Box::new(Fault::Repair(telling())));
        }
        match exceeds(&resolved) {
            None => Ok(resolved),
            Some(exceeded) => Err(Box::new(Fault::Exceeded(exceeded))),
        }
    }

    #[cold]
    fn unresolved(
        &self,
        offer: &Offer,
        no: CallNo,
        proposal: Proposal,
        fault: Fault,
    ) -> Box<Unresolved> {
        let registered = offer.find(&proposal.name).cloned();
        let name = match &registered {
            Some(registered) => registered.id().name().to_arc(),
            None => kept(proposal.name.clone(), NAME_KEPT_BYTES_MAX),
        };
        let facts = Facts {
            call: no,
            name,
            args_hash: proposal.raw_hash(),
            args: None,
            more: MoreFacts { context: self.shown.label(), ..MoreFacts::default() }.kept(),
            registered,
            id: proposal.id,
            arguments: kept(proposal.arguments.into_text(), self.setup.limits.arguments.bytes),
        };
        Box::new(Unresolved { draft: Draft::new(facts), fault })
    }

    /// Lets the host change the arguments.
    #[cold]
    fn prepared(
        &self,
        resolved: Resolved,
        offer: &Offer,
        no: CallNo,
        proposal: &Proposal,
    ) -> Result<Resolved, Box<Fault>> {
        let bytes = self.setup.limits.arguments.bytes;
        let call = |it| Call::new(no, proposal.clone(), it, self.shown.label(), bytes);
        // Repairs are for what a model wrote.
        let reading = Reading { repairs: Repairs::default(), ..self.setup.reading };
        let prepared = self.setup.stages.prepare(resolved, call, |args| {
            let (id, name) = (proposal.id.clone(), proposal.name.clone());
            offer.resolve(&Proposal::new(id, name, args.to_string()), &reading)
        });
        prepared.map_err(Box::new)
    }

    /// Calls beyond a limit are answered in place, in order; malformed ones never use a slot.
    #[inline]
    pub(super) fn exceeded(&self, resolved: &Resolved, counted: &mut u64) -> Option<Exceeded> {
        if !resolved.registered.effects().counted {
            return None;
        }
        let exceeded = |bound, limit| {
            let executed = Executed::NotExecuted;
            Some(Exceeded { bound, limit, used: None, executed })
        };
        let most = self.setup.limits.batch_calls;
        if *counted >= most {
            return exceeded(BoundKind::BatchCalls, most);
        }
        let (tool, bytes) = (resolved.registered.id().name(), resolved.args.as_bytes().len());
        if let Err((bound, limit)) = self.live().budget.take(tool, bytes as u64) {
            return exceeded(bound, limit);
        }
        *counted += 1;
        None
    }

    /// Settles on the tape a call that never began, and whose reply nobody waits for.
    pub(super) fn give_up(&self, step: Step) {
        let Err(unresolved) = step.given_up().resolved else { return };
        let Unresolved { draft, fault } = *unresolved;
        self.leave_behind(draft, fault, &mut Unwritten::new(), None);
    }

    /// The only exit: whatever happened, it is recorded, rendered and returned here.
    ///
    /// The step is resolved here too, since whatever a future is handed is moved before it is used;
    /// and what few calls wait for is boxed.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` moves its arguments once more")]
    pub(super) fn settle(
        &self,
        resolve: impl FnOnce() -> Ready,
        scope: &Scope<'_>,
    ) -> impl Future<Output = Result<Reply, Parked>> {
        async move {
            let Ready { resolved, writes_anything } = resolve();
            let mut trail = Trail::new(self, scope, writes_anything);
            let (draft, performed) = match resolved {
                Ok(call) => match self.judge(call, &mut trail) {
                    Judged::Permitted(mut permit) => {
                        let performed = self.perform(&mut permit, &mut trail).await;
                        (self.put_aside(permit, 1, &mut trail), performed)
                    }
                    Judged::Pending(pending) => Box::pin(self.inquire(pending, &mut trail)).await,
                    Judged::Refused(Refused { call, fault }) => {
                        (call.into_draft(), Err(fault.into()))
                    }
                },
                Err(unresolved) => (unresolved.draft, Err(unresolved.fault.into())),
            };
            match trail.is_parked {
                false => Ok(self.conclude(draft, performed, &mut trail).await),
                true => Err(trail.parked(draft, trail.done_by_now())),
            }
        }
    }

    /// Records, renders and returns what became of a call. What its tool returned is in its trail.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` moves its arguments once more")]
    pub(super) fn conclude(
        &self,
        draft: Draft,
        performed: Result<(), Box<Fault>>,
        trail: &mut Trail<'_>,
    ) -> impl Future<Output = Reply> {
        async move {
            let ended_us = self.setup.clock.unix_us();
            let elapsed_us = trail.started_us.map_or(0, |started| ended_us.saturating_sub(started));
            let label = self.label_of(&draft, trail);
            let finishing = &self.live().finishing;
            let plain = trail.output.as_mut().filter(|output| finishing.is_plain(output, &draft));
            let reply = match plain {
                Some(output) => render_plain(draft, output, label, elapsed_us),
                None => Box::pin(self.finish(draft, performed, (label, elapsed_us), trail)).await,
            };
            let reply = self.with_spent(self.endorsed(reply), trail.wait.life.get());
            self.live().budget.spend(reply.bytes());
            self.spent(reply.facts(), reply.executed, trail.reserved);
            trail.span.settled(&reply);
            match trail.settle(reply.facts(), ended_us, reply.recorded()) {
                Ok(Accepted::Now) => reply,
                recorded => Box::pin(self.recorded(reply, recorded)).await,
            }
        }
    }

    /// The reply, once it is on the tape as well as it must be, or that it could not get there.
    async fn recorded(
        &self,
        reply: Reply,
        accepted: Result<Accepted, Box<tape::Refused>>,
    ) -> Reply {
        let access = reply.facts().registered.as_ref().map(|tool| tool.effects().access);
        // What was done must be on the tape for good before anybody goes on.
        let matters = access == Some(Access::Write) && reply.executed != Executed::NotExecuted;
        let recorded = match accepted {
            Ok(Accepted::Later(durable)) if matters => self.durable(durable).await,
            Ok(Accepted::Now | Accepted::Later(_)) => Ok(()),
            Err(refused) => Err(refused.err),
        };
        match recorded {
            Ok(()) => reply,
            Err(err) => {
                let why = format!("the reply could not be recorded: {err}");
                let executed = reply.executed;
                reply.replaced_by(Fault::Bug { executed, why })
            }
        }
    }

    /// Outcome to reply, where that takes more than a look.
    async fn finish(
        &self,
        draft: Draft,
        performed: Result<(), Box<Fault>>,
        (label, elapsed_us): (Option<Arc<Label>>, u64),
        trail: &mut Trail<'_>,
    ) -> Reply {
        let outcome = match performed {
            Ok(()) => Outcome::Done(trail.output.take().expect("a tool that returned left it")),
            Err(fault) => Outcome::Not(*fault),
        };
        let normal = Normal::of(outcome, draft.registered.as_deref());
        let finishing = &self.live().finishing;
        let spec = draft.registered.as_ref().map(|tool| tool.spec());
        let finished = match finishing.is_needless(&normal, spec) {
            true => Finished::of(normal),
            false => {
                trail.wait.owe(&draft, normal.executed());
                // What is put aside may hold whatever the model was shown.
                let kept = joined(draft.context_kept(), label.as_ref());
                finishing.finish(normal, draft.call, spec, kept).await
            }
        };
        render(draft, finished, label, elapsed_us)
    }

    /// Waits until the end of a call is durable, but not for ever.
    pub(super) async fn durable(
        &self,
        durable: BoxFuture<'static, Result<(), TapeError>>,
    ) -> Result<(), TapeError> {
        let most = self.setup.limits.tape_wall;
        tokio::time::timeout(most, durable).await.unwrap_or_else(|_| {
            Err(TapeError::Poisoned { why: format!("it was not durable within {most:?}") })
        })
    }

    /// The call that was performed. It is put aside where a child of it waits for an answer.
    #[inline]
    pub(super) fn put_aside(&self, permit: Permit, attempt: u32, trail: &mut Trail<'_>) -> Draft {
        let draft = permit.into_draft();
        if trail.wait.life.get().is_some_and(|life| life.is_parked()) {
            // It is permitted again with the next attempt.
            self.spent(&draft, Executed::NotExecuted, trail.reserved);
            trail.reserved = false;
            let now_us = self.setup.clock.unix_us();
            // Should the tape refuse it, the call is in doubt, as after a crash.
            trail.unwritten.push(Event::put_aside(draft.call, attempt));
            let _ = trail.write(&draft, now_us);
            trail.park();
        }
        draft
    }

    pub(super) fn judge(&self, call: Call, trail: &mut Trail<'_>) -> Judged {
        let mut verdict = self.verdict(&call);
        if !call.facts().spends().is_empty() {
            verdict = self.reserve(&call, verdict);
        }
        trail.reserved = !matches!(verdict, Verdict::Deny { .. });
        trail.unwritten.judged(&verdict);
        verdict.apply(call)
    }

    /// What becomes of a call: no policy gives what the run does not hold.
    #[inline]
    pub(super) fn verdict(&self, call: &Call) -> Verdict {
        let requires = call.registered().requires();
        if !requires.is_empty() || call.effects().workspace_root.is_some() {
            let withheld = self.withheld(call, requires).or_else(|| policy::outside(call));
            if let Some(denied) = withheld {
                return denied;
            }
        }
        let mut verdict = policy::judge(&*self.setup.policy, call);
        // Each of these is for few calls, and no verdict on another is moved for it.
        if self.setup.strict {
            verdict = verdict.strictly(call);
        }
        if let Some(label) = call.facts().context_kept() {
            verdict = self.setup.taint.judge(label, call, self.setup.strict, verdict);
        }
        verdict
    }

    /// The denial of a call that needs what the run does not hold.
    fn withheld(&self, call: &Call, requires: &[Requirement]) -> Option<Verdict> {
        let now_us = self.setup.clock.unix_us();
        let holding = &*self.holding.lock().unwrap_or_else(PoisonError::into_inner);
        let holding = holding.as_ref().unwrap_or(&self.live().holding);
        let args = Peek::new(call.args());
        requires.iter().find_map(|required| match required.of(&args) {
            Err(err) => Some(Verdict::deny("rights", format!("nobody holds this right: {err}"))),
            Ok(mut rights) => {
                let refusal = rights.find_map(|right| holding.check(&right, now_us).err())?;
                Some(Verdict::deny("rights", refusal.to_string()))
            }
        })
    }
}
