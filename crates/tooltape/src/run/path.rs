//! The path of a call: each stage takes what the one before it made, and there is one exit.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use futures_util::FutureExt;

use super::inside::dropped_safely;
use super::trail::Trail;
use super::{Run, Scope, cancelled};
use crate::batch::Claim;
use crate::call::{Call, Facts, Outcome, Proposal, Resolved, kept};
use crate::fault::{BoundKind, Exceeded, Executed, Fault};
use crate::grant::Asked;
use crate::id::CallNo;
use crate::perform::unrecorded;
use crate::policy::{self, Answer, Judged, Pending, Permit, Refused};
use crate::reply::{Finished, Normal, Reply, render};
use crate::spec::Access;
use crate::tape::{Ack, Event, TapeError};
use crate::tool::Output;
use crate::toolbox::{Offer, Reading, Repairs};

/// A proposal that was resolved, or could not be.
pub(super) struct Step {
    resolved: Result<Call, Box<Unresolved>>,
    /// What the call touches. What will not run touches nothing.
    claim: Option<Claim>,
    /// Whether it may write anything at all.
    writes_anything: bool,
}

struct Unresolved {
    facts: Arc<Facts>,
    fault: Fault,
}

impl Step {
    /// What the call touches, for whoever orders the batch.
    pub(super) fn take_claim(&mut self) -> Option<Claim> {
        self.claim.take()
    }

    /// Whether the failure of the call cancels the rest of its batch.
    pub(super) fn aborts_siblings(&self) -> bool {
        self.resolved.as_ref().is_ok_and(|call| call.spec().effects.aborts_siblings)
    }

    /// Whether the model must mend its proposal.
    pub(super) fn needs_repair(&self) -> bool {
        self.resolved.as_ref().is_err_and(|it| matches!(it.fault, Fault::Repair(_)))
    }

    /// The same step, whose call will not start any more.
    pub(super) fn given_up(self) -> Step {
        let resolved = self.resolved.and_then(|call| {
            let (facts, fault) = (call.into_facts(), cancelled(Executed::NotExecuted));
            Err(Box::new(Unresolved { facts, fault }))
        });
        Step { resolved, claim: None, ..self }
    }
}

/// The most bytes of a name that no tool has which the tape and the reply keep.
pub const NAME_KEPT_BYTES_MAX: usize = 256;

impl Run {
    /// Proposal to call. Nothing is recorded or performed here.
    #[inline]
    pub(super) fn resolve(&self, offer: &Offer, proposal: Proposal, counted: &mut u64) -> Step {
        let no = self.next_call();
        let resolved = offer.resolve(&proposal, &self.setup.reading).map_err(Fault::Repair);
        let resolved = resolved.and_then(|it| self.prepared(it, offer, no, &proposal));
        let resolved = resolved.and_then(|resolved| self.within_limits(resolved, counted));
        let bytes = self.setup.limits.arguments.bytes;
        let resolved = match resolved {
            Ok(resolved) => Ok(Call::new(no, proposal, resolved, bytes)),
            Err(fault) => {
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
                    repairs: Vec::new(),
                    registered,
                    id: proposal.id,
                    arguments: kept(proposal.arguments.into_text(), bytes),
                };
                Err(Box::new(Unresolved { facts: Arc::new(facts), fault }))
            }
        };
        let (resolved, claim) = match resolved.map(claimed) {
            Ok(Ok((call, claim))) => (Ok(call), Some(claim)),
            Ok(Err(unresolved)) | Err(unresolved) => (Err(unresolved), None),
        };
        let writes_anything =
            claim.as_ref().is_some_and(|claim| claim.footprint.is_unknown_write());
        Step { resolved, claim, writes_anything }
    }

    /// Lets the host change the arguments.
    fn prepared(
        &self,
        resolved: Resolved,
        offer: &Offer,
        no: CallNo,
        proposal: &Proposal,
    ) -> Result<Resolved, Fault> {
        let bytes = self.setup.limits.arguments.bytes;
        let call = |it| Call::new(no, proposal.clone(), it, bytes);
        // Repairs are for what a model wrote.
        let reading = Reading { repairs: Repairs::default(), ..self.setup.reading };
        self.setup.stages.prepare(resolved, call, |args| {
            let (id, name) = (proposal.id.clone(), proposal.name.clone());
            offer.resolve(&Proposal::new(id, name, args.to_string()), &reading)
        })
    }

    /// Calls beyond a limit are answered in place, in order; malformed ones never use a slot.
    fn within_limits(&self, resolved: Resolved, counted: &mut u64) -> Result<Resolved, Fault> {
        if !resolved.registered.spec().effects.counted {
            return Ok(resolved);
        }
        let exceeded = |bound, limit| {
            let executed = Executed::NotExecuted;
            Err(Fault::Exceeded(Exceeded { bound, limit, used: None, executed }))
        };
        let most = self.setup.limits.batch_calls;
        if *counted >= most {
            return exceeded(BoundKind::BatchCalls, most);
        }
        let (tool, bytes) = (resolved.registered.id().name(), resolved.args.as_str().len());
        if let Err((bound, limit)) = self.live().budget.take(tool, bytes as u64) {
            return exceeded(bound, limit);
        }
        *counted += 1;
        Ok(resolved)
    }

    /// Settles on the tape a call that never began, and whose reply nobody waits for.
    pub(super) fn give_up(&self, step: Step) {
        let Err(unresolved) = step.given_up().resolved else { return };
        let Unresolved { facts, fault } = *unresolved;
        let mut events = vec![Event::Proposed(facts.clone())];
        self.leave_behind(facts, fault, &mut events, None);
    }

    /// The only exit: whatever happened, it is recorded, rendered and returned here.
    pub(super) async fn settle(&self, step: Step, scope: &Scope<'_>) -> Reply {
        let Step { resolved, writes_anything, .. } = step;
        let mut trail = Trail::new(self, scope, writes_anything);
        let facts = match &resolved {
            Ok(call) => call.facts(),
            Err(unresolved) => &unresolved.facts,
        };
        trail.events.push(Event::Proposed(facts.clone()));
        let (facts, performed) = match resolved {
            Ok(call) => self.conduct(call, &mut trail).await,
            Err(unresolved) => (unresolved.facts, Err(unresolved.fault)),
        };
        let access = facts.registered.as_ref().map(|tool| tool.spec().effects.access);
        let outcome = Outcome::from(performed);
        let ended_us = self.setup.clock.unix_us();
        let elapsed_us = trail.started_us.map_or(0, |started| ended_us.saturating_sub(started));
        let normal = Normal::of(outcome, facts.registered.as_deref());
        let (call, finishing) = (facts.call, &self.live().finishing);
        let spec = facts.registered.as_ref().map(|tool| tool.spec());
        let finished = match finishing.is_needless(&normal, spec) {
            true => Finished::of(normal),
            // Boxed, because most calls never come here.
            false => {
                trail.wait.owe(&facts, normal.executed());
                Box::pin(finishing.finish(normal, call, spec)).await
            }
        };
        let reply = render(facts, finished, elapsed_us);
        self.live().budget.spend(reply.bytes());
        trail.span.settled(&reply);
        trail.events.push(Event::Settled(reply.recorded()));
        // From here on nothing that still works for the call can say anything behind its end.
        trail.close();
        let ack = self.live().recorder.append_at(ended_us, &mut trail.events);
        // What was done must be on the tape for good before anybody goes on.
        let matters = access == Some(Access::Write) && reply.executed != Executed::NotExecuted;
        let recorded = if matters { self.durable(ack).await } else { ack.accepted() };
        match recorded {
            Ok(()) => reply,
            Err(err) => {
                let why = format!("the reply could not be recorded: {err}");
                let executed = reply.executed;
                reply.replaced_by(Fault::Bug { executed, why })
            }
        }
    }

    /// Waits until the end of a call is durable, but not for ever.
    async fn durable(&self, ack: Ack) -> Result<(), TapeError> {
        let most = self.setup.limits.tape_wall;
        match ack {
            Ack::Now(recorded) => recorded,
            Ack::Later(durable) => tokio::time::timeout(most, durable).await.unwrap_or_else(|_| {
                Err(TapeError::Poisoned { why: format!("it was not durable within {most:?}") })
            }),
        }
    }

    /// Call to output. Each stage takes what the one before it made.
    async fn conduct(
        &self,
        call: Call,
        trail: &mut Trail<'_>,
    ) -> (Arc<Facts>, Result<Output, Fault>) {
        let permitted = match self.judge(call, trail) {
            Judged::Permitted(permit) => Ok(permit),
            Judged::Pending(pending) => self.ask(pending, trail).await,
            Judged::Refused(refused) => Err(refused),
        };
        match permitted {
            Ok(mut permit) => {
                let performed = self.perform(&mut permit, trail).await;
                (permit.into_facts(), performed)
            }
            Err(Refused { call, fault }) => (call.into_facts(), Err(fault)),
        }
    }

    fn judge(&self, call: Call, trail: &mut Trail<'_>) -> Judged {
        let verdict = policy::judge(&*self.setup.policy, &call);
        trail.events.push(Event::judged(&call, &verdict));
        verdict.apply(call)
    }

    /// Asks whether the call may run. No seat is held meanwhile, and no clock moves.
    async fn ask(&self, pending: Pending, trail: &mut Trail<'_>) -> Result<Permit, Refused> {
        let Some(approver) = &self.setup.approver else { return Err(pending.unasked()) };
        if let Err(fault) = self.may_start(pending.call(), trail.wait.scope) {
            return Err(pending.failed(fault));
        }
        // Whoever looks at the tape meanwhile sees what is being asked.
        let (_, ack) = self.live().recorder.append(&mut trail.events);
        if let Err(err) = ack.accepted() {
            return Err(pending.failed(unrecorded(err)));
        }
        let life = trail.wait.begin(pending.call());
        let _asking = Asking::new(self);
        // Whoever asks may fail or never end; the call is answered all the same.
        let asking = panic::catch_unwind(AssertUnwindSafe(|| approver(&pending)));
        let asking = dropped_safely(async { AssertUnwindSafe(asking?).catch_unwind().await });
        let asked = tokio::select! {
            biased;
            asked = asking => Some(asked),
            () = life.cancel().cancelled() => None,
            () = trail.wait.scope.closed() => None,
        };
        let Some(asked) = asked else {
            return Err(pending.failed(cancelled(Executed::NotExecuted)));
        };
        let answer = asked.unwrap_or_else(|_| Answer::Deny("the question failed".to_owned()));
        let call = pending.call().no();
        let (yes, told) = match &answer {
            Answer::Once => (true, None),
            Answer::Deny(told) => (false, Some(told.clone())),
        };
        trail.events.push(Event::Answered { call, yes, told });
        pending.answer(answer)
    }
}

/// A question that is open: no clock of the run, its parents and their calls moves.
struct Asking<'r>(&'r Run);

impl<'r> Asking<'r> {
    fn new(run: &'r Run) -> Asking<'r> {
        let now_us = run.setup.clock.now_us();
        run.whose_clocks().for_each(|asked| asked.begin(now_us));
        Asking(run)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let now_us = self.0.setup.clock.now_us();
        self.0.whose_clocks().for_each(|asked| asked.end(now_us));
    }
}

impl Run {
    /// Whose clocks stand still while somebody is asked in this run.
    fn whose_clocks(&self) -> impl Iterator<Item = &Asked> {
        self.setup.asked_of.iter().chain([&self.live().asked]).map(|asked| &**asked)
    }
}

/// What a call touches. A footprint function that fails fails its call, and no other.
fn claimed(call: Call) -> Result<(Call, Claim), Box<Unresolved>> {
    match Claim::of(&call) {
        Ok(claim) => Ok((call, claim)),
        Err(err) => {
            Err(Box::new(Unresolved { facts: call.into_facts(), fault: Fault::Failed(err) }))
        }
    }
}
