//! The path of a call: each stage takes what the one before it made, and there is one exit.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;

use super::{LiveRun, Run};
use crate::call::{Address, Call, Outcome, Proposal, Resolved};
use crate::fault::{BoundKind, Exceeded, Executed, Fault, ToolError, ToolErrorKind, clip};
use crate::grant::Grants;
use crate::perform::Attempt;
use crate::policy::{self, Answer, Judged, Pending, Permit, Refused};
use crate::reply::{Reply, render};
use crate::spec::{Access, Determinism};
use crate::tape::{Event, TapeError};
use crate::tool::Output;
use crate::toolbox::Offer;

/// A proposal that was resolved, or could not be.
pub(super) struct Step {
    resolved: Result<Box<Call>, Box<Unresolved>>,
    /// What the tape keeps of the arguments as the model wrote them.
    arguments: Arc<str>,
}

struct Unresolved {
    to: Address,
    fault: Fault,
}

impl Step {
    /// Whether the call overlaps no other. What will not run may overlap anything.
    pub(super) fn is_alone(&self) -> bool {
        self.resolved.as_ref().is_ok_and(|call| {
            let effects = &call.spec().effects;
            effects.exclusive || effects.access == Access::Write
        })
    }

    /// Whether the model must mend its proposal.
    pub(super) fn needs_repair(&self) -> bool {
        self.resolved.as_ref().is_err_and(|it| matches!(it.fault, Fault::Repair(_)))
    }

    /// The same step, whose call will not start any more.
    pub(super) fn given_up(self) -> Step {
        let resolved = self.resolved.and_then(|call| {
            let (to, fault) = (call.into_address(), cancelled(Executed::NotExecuted));
            Err(Box::new(Unresolved { to, fault }))
        });
        Step { resolved, ..self }
    }
}

/// The most bytes of a name that no tool has which the tape and the reply keep.
pub const NAME_KEPT_BYTES_MAX: usize = 256;

impl Run {
    /// Proposal to call. Nothing is recorded or performed here.
    pub(super) fn resolve(&self, offer: &Offer, proposal: Proposal, counted: &mut u64) -> Step {
        let no = self.next_call();
        let resolved = offer.resolve(&proposal, &self.reading).map_err(Fault::Repair);
        let resolved = resolved.and_then(|resolved| self.within_limits(resolved, counted));
        let resolved = match resolved {
            Ok(resolved) => Ok(Call::new(no, &proposal, resolved)),
            Err(fault) => {
                let tool = offer.find(&proposal.name).cloned();
                let name = match &tool {
                    Some(tool) => tool.id().name().as_str().into(),
                    None => kept(&proposal.name, NAME_KEPT_BYTES_MAX),
                };
                let (id, args_hash) = (proposal.id.clone(), proposal.raw_hash());
                let to = Address { call: no, id, name, tool, args_hash };
                Err(Box::new(Unresolved { to, fault }))
            }
        };
        Step { resolved, arguments: kept(proposal.text(), self.limits.arguments.bytes) }
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
        if *counted >= self.limits.batch_calls {
            return exceeded(BoundKind::BatchCalls, self.limits.batch_calls);
        }
        if self.counted.fetch_add(1, Ordering::Relaxed) >= self.limits.run_calls {
            return exceeded(BoundKind::RunCalls, self.limits.run_calls);
        }
        *counted += 1;
        Ok(resolved)
    }

    /// The only exit: whatever happened, it is recorded, rendered and returned here.
    pub(super) async fn settle(&self, step: Step) -> Reply {
        let Step { resolved, arguments } = step;
        let mut trail = Trail::new();
        let (call, id, name) = match &resolved {
            Ok(call) => (call.no(), call.id().clone(), call.name().clone()),
            Err(unresolved) => {
                let to = &unresolved.to;
                (to.call, to.id.clone(), to.name.clone())
            }
        };
        trail.events.push(Event::Proposed { call, id, name, arguments });
        let (to, performed) = match resolved {
            Ok(call) => self.conduct(call, &mut trail).await,
            Err(unresolved) => (unresolved.to, Err(unresolved.fault)),
        };
        let access = to.tool.as_ref().map(|tool| tool.spec().effects.access);
        let outcome = Outcome::from(performed);
        let ended_us = self.clock.unix_us();
        let elapsed_us = trail.started_us.map_or(0, |started| ended_us.saturating_sub(started));
        let reply = render(to, outcome, elapsed_us);
        trail.events.push(Event::Settled(reply.clone()));
        let ack = self.live().recorder.append_at(ended_us, &mut trail.events);
        let recorded = match access {
            Some(Access::Write) => ack.durable().await,
            Some(Access::Pure | Access::Read) | None => ack.accepted(),
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

    /// Call to output. Each stage takes what the one before it made.
    async fn conduct(
        &self,
        call: Box<Call>,
        trail: &mut Trail,
    ) -> (Address, Result<Output, Fault>) {
        let permitted = match self.judge(call, trail) {
            Judged::Permitted(permit) => Ok(permit),
            Judged::Pending(pending) => self.ask(pending, trail).await,
            Judged::Refused(refused) => Err(refused),
        };
        match permitted {
            Ok(mut permit) => {
                let performed = self.attempt(&mut permit, trail).await;
                (permit.into_address(), performed)
            }
            Err(Refused { call, fault }) => (call.into_address(), Err(fault)),
        }
    }

    fn judge(&self, call: Box<Call>, trail: &mut Trail) -> Judged {
        let verdict = policy::judge(&*self.policy, &call);
        trail.events.push(Event::judged(&call, &verdict));
        verdict.apply(call)
    }

    async fn ask(&self, pending: Pending, trail: &mut Trail) -> Result<Permit, Refused> {
        let Some(approver) = &self.approver else { return Err(pending.unasked()) };
        // Whoever looks at the tape meanwhile sees what is being asked.
        let (_, ack) = self.live().recorder.append(&mut trail.events);
        if let Err(err) = ack.accepted() {
            return Err(pending.failed(unrecorded(err)));
        }
        // Whoever asks may fail or never end; the call is answered all the same.
        let asking = panic::catch_unwind(AssertUnwindSafe(|| approver(&pending)));
        let asking = async { AssertUnwindSafe(asking?).catch_unwind().await };
        let asked = tokio::select! {
            biased;
            asked = asking => asked,
            () = self.cancel.cancelled() => {
                return Err(pending.failed(cancelled(Executed::NotExecuted)));
            }
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

    async fn attempt(&self, permit: &mut Permit, trail: &mut Trail) -> Result<Output, Fault> {
        if self.cancel.is_cancelled() {
            return Err(cancelled(Executed::NotExecuted));
        }
        let LiveRun { grants, context, recorder } = self.live();
        let spec = permit.call().spec();
        let bounded = spec.effects.determinism == Determinism::Bounded;
        let frozen_unix_us = bounded.then(|| self.clock.unix_us());
        let wall = spec.bounds.wall.or(self.limits.wall);
        let events = &mut trail.events;
        let attempt = Attempt::start(permit, 1, recorder, frozen_unix_us, events);
        let attempt = attempt.await.map_err(unrecorded)?;
        trail.started_us = Some(attempt.started_us());
        let (call, id) = (attempt.call().no(), attempt.call().id());
        let grants = Grants { map: grants, run: context, call, id, frozen_unix_us };
        // The performer is called inside, so that a panic before its first await is caught too.
        let performing = async { self.performer.perform(attempt, &grants).await };
        let performed = self.bounded(AssertUnwindSafe(performing).catch_unwind(), wall).await?;
        performed.map_err(panicked)?.map_err(failed)
    }

    /// Waits for a future, at most for `wall`, and only until the run is cancelled.
    ///
    /// What is ready at once costs no timer, and a finished result beats a late cancel.
    async fn bounded<T>(
        &self,
        future: impl Future<Output = T>,
        wall: Option<Duration>,
    ) -> Result<T, Fault> {
        let mut future = pin!(future);
        if let Poll::Ready(ready) = futures_util::poll!(future.as_mut()) {
            return Ok(ready);
        }
        let deadline = async {
            match wall {
                Some(wall) => tokio::time::sleep(wall).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = future => Ok(done),
            () = self.cancel.cancelled() => Err(cancelled(Executed::Unknown)),
            () = deadline => Err(Fault::Exceeded(Exceeded {
                bound: BoundKind::Wall,
                limit: wall.map_or(0, |wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)),
                used: None,
                executed: Executed::Unknown,
            })),
        }
    }
}

/// What a call has left behind so far.
struct Trail {
    /// Events that are not on the tape yet.
    events: Vec<Event>,
    started_us: Option<u64>,
}

impl Trail {
    fn new() -> Trail {
        // Most calls are proposed, judged and started before anything reaches the tape.
        Trail { events: Vec::with_capacity(3), started_us: None }
    }
}

fn unrecorded(err: TapeError) -> Fault {
    let why = format!("the call could not be recorded: {err}");
    Fault::Bug { executed: Executed::NotExecuted, why }
}

fn cancelled(executed: Executed) -> Fault {
    Fault::Cancelled { executed, said: None }
}

fn failed(err: ToolError) -> Fault {
    match err.kind() {
        ToolErrorKind::InDoubt => Fault::InDoubt(err),
        ToolErrorKind::Cancelled => Fault::Cancelled { executed: err.executed(), said: Some(err) },
        ToolErrorKind::Failed
        | ToolErrorKind::RetryAfter(_)
        | ToolErrorKind::NotDone
        | ToolErrorKind::UserMustAct
        | ToolErrorKind::Fatal => Fault::Failed(err),
    }
}

/// A panic may strike anywhere, so nobody knows what was done. Its text is for the host alone.
fn panicked(panic: Box<dyn Any + Send>) -> Fault {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let why = format!("panic: {}", text.unwrap_or("of another type than text"));
    Fault::InDoubt(ToolError::in_doubt("the tool panicked").code("tool.panicked").because(why))
}

/// A text, or as much of it as is kept.
fn kept(text: &Arc<str>, bytes: usize) -> Arc<str> {
    if text.len() <= bytes { text.clone() } else { clip(text.to_string(), bytes).into() }
}
