//! Goes on with a run after a crash or a pause: nothing that was settled runs again.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::ask::AskedBefore;
use super::drive::Driven;
use super::past::{Begun, Past, Said};
use super::path::Step;
use super::taint::Shown;
use super::trail::{Parked, Trail};
use super::{LiveRun, ResumeError, Run, RunError, Scope, cancelled};
use crate::call::Call;
use crate::fault::{Executed, Fault, FaultKind, ToolError};
use crate::grant::{Grants, Leash, Random, Store};
use crate::id::{CallNo, RunId};
use crate::label::{joined, said};
use crate::perform::unrecorded;
use crate::policy::{Halted, Judged, Pending, Permit, Refused, Verdict};
use crate::proposal::Proposal;
use crate::reply::{Draft, Reply};
use crate::spec::{Access, Found, Repeat};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering;
use crate::tape::{Event, all_records};
use crate::toolbox::Offer;

impl Run {
    /// Goes on with a run of this run's tape, which crashed or was paused.
    ///
    /// It has the same id and the same randomness, and its records, calls, attempts, limits and
    /// states go on from what the tape says. What was settled is not run again. The tape says first
    /// which calls are in doubt: those that started and did not settle. Each of them, once
    /// [`settle_open`](Run::settle_open) or [`Agent::resume`](crate::Agent::resume) comes to it,
    ///
    /// * is attempted again where its tool only reads, is `Idempotent`, or is `Keyed`, then with
    ///   the same [`IdempotencyKey`](crate::IdempotencyKey);
    /// * is looked into by its tool's [`Reconcile`](crate::Reconcile) hook where it is `Once`:
    ///   what happened is not repeated, and what did not is;
    /// * is asked about where that is not known either. Where nobody can be asked, or the answer is
    ///   no, its reply says *unknown*.
    ///
    /// What its children used of its limits is not counted again. Calls of theirs that are in doubt
    /// are known to the tape: `SqliteTape::in_doubt`, `MemoryTape::in_doubt`.
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    /// # runtime.unwrap().block_on(async {
    /// use tooltape::{MemoryTape, Proposal, Run, Toolbox, builtin};
    ///
    /// let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(builtin::tools()).unwrap());
    /// let crashed = Run::new(&toolbox).tape(tape.clone());
    /// crashed.batch(vec![Proposal::new("c1", "echo", r#"{"text":"hi"}"#)]).await.unwrap();
    ///
    /// let run = Run::new(&toolbox).tape(tape).resume(crashed.id()).await.unwrap();
    /// assert_eq!((run.id(), run.in_doubt().len()), (crashed.id(), 0));
    /// # });
    /// ```
    pub async fn resume(self, run: RunId) -> Result<Run, ResumeError> {
        let records = all_records(&*self.setup.tape, run).await?;
        if records.is_empty() {
            return Err(ResumeError::Unknown { run });
        }
        let past = Past::of(&records)?;
        let in_doubt = past.in_doubt();
        let resumed = self.having_done(past)?;
        let (policy, rights) = (resumed.live().policy, resumed.live().holding.rights().clone());
        let (policy, rights) = (Some(policy), Some(Arc::new(rights)));
        resumed.record_last(Event::RunResumed { in_doubt, policy, rights }).await?;
        Ok(resumed)
    }

    /// The same run, which has done this much.
    pub(super) fn having_done(mut self, past: Past) -> Result<Run, ResumeError> {
        if let Some(parent) =
            past.opening.parent.filter(|_| past.opening.parent != self.setup.parent)
        {
            return Err(ResumeError::Nested { parent });
        }
        // What was not executed for want of a tape can be proposed again on a tape that has room.
        let unrecorded = |reply: &&Reply| {
            let bug = reply.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Bug);
            bug && reply.executed == Executed::NotExecuted
        };
        let settled = past.settled.values().filter(|reply| !unrecorded(reply));
        let fatal = settled.into_iter().find_map(|reply| self.ends(reply));
        if let Some(why) = past.ended.clone().or(fatal) {
            return Err(ResumeError::Ended { why });
        }
        for (state, (value, label)) in &past.states {
            let restored = self.setup.grants.restore(state, value, said(label.as_ref()));
            let unlike = |why| ResumeError::State { state: state.clone(), why };
            restored.map_err(unlike)?;
        }
        if let Some(store) = self.setup.grants.get::<Store>() {
            let restored = store.restore(past.opening.run, &past.stored, past.writes);
            restored.map_err(|err| ResumeError::Unstored { why: err.told().to_owned() })?;
        }
        let (past, setup) = (Arc::new(past), &mut self.setup);
        setup.id = Some(past.opening.run);
        setup.random = Random::seeded(past.opening.seed);
        (setup.thread, setup.note) = (past.opening.thread.clone(), past.opening.note.clone());
        setup.past = Some(past.clone());
        setup.label = joined(setup.label.as_ref(), past.label.as_ref());
        self.shown = Shown::new(setup.label.clone(), setup.seen_by.clone());
        if let (Some(label), Some(call)) = (&setup.label, &setup.seen_by) {
            call.saw(label);
        }
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = past.standing.clone();
        // Before its number of calls says that this was done.
        self.check_grants()?;
        self.calls.store(past.calls, Ordering::Relaxed);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = past.open.clone();
        Ok(self)
    }

    /// The calls that were in doubt when the run was resumed.
    pub fn in_doubt(&self) -> Vec<CallNo> {
        self.setup.past.as_ref().map(|past| past.in_doubt()).unwrap_or_default()
    }

    /// Brings the calls to their end that were begun before the run was resumed, and answers them
    /// in the order of their numbers. Once that is done there are none.
    ///
    /// What of a batch had not begun is not on the tape; whoever proposed it proposes it again. An
    /// agent knows its proposals, and does all this by itself.
    pub async fn settle_open(&self) -> Result<Vec<Reply>, RunError> {
        self.answer_rest(&self.offer_all(), BTreeMap::new()).await
    }

    /// What was said in the conversation before, if the run was resumed.
    pub(crate) fn said(&self) -> &[Said] {
        self.setup.past.as_ref().map_or(&[], |past| &past.said)
    }

    /// The reply that a call was given before, as a model reads it now.
    pub(crate) fn settled_before(&self, call: CallNo) -> Option<Reply> {
        let reply = self.setup.past.as_ref()?.settled.get(&call)?.clone();
        Some(self.live().finishing.framed(reply))
    }

    /// Answers what is left of a batch: the calls that were begun, and those that were not.
    pub(crate) async fn answer_rest(
        &self,
        offer: &Offer,
        mut proposals: BTreeMap<CallNo, Proposal>,
    ) -> Result<Vec<Reply>, RunError> {
        self.check_open()?;
        let (offer, scope) = (self.own(offer), Scope::of(self));
        scope.cancellable();
        let mut replies: BTreeMap<CallNo, Reply> = proposals
            .keys()
            .filter_map(|call| Some((*call, self.settled_before(*call)?)))
            .collect();
        let mut counted = replies.values().filter(|reply| used_a_slot(reply)).count() as u64;
        replies.values().for_each(|reply| self.mind(reply, &scope));
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        counted += open.len() as u64;
        let mut running: FuturesUnordered<_> = open
            .into_iter()
            .map(|(call, begun)| {
                let proposal = proposals.remove(&call).unwrap_or_else(|| begun.proposal());
                self.settle_again(call, proposal, begun, &offer, &scope)
            })
            .collect();
        let mut parked = Vec::new();
        while let Some(settled) = running.next().await {
            match settled {
                Ok(reply) => {
                    self.mind(&reply, &scope);
                    replies.insert(reply.call, reply);
                }
                Err(call) => parked.push(call),
            }
        }
        drop(running);
        if !parked.is_empty() && scope.is_over() {
            for call in parked.drain(..) {
                let reply = self.withdraw(call, &scope).await;
                replies.insert(reply.call, reply);
            }
        }
        if !parked.is_empty() {
            return Err(self.pause(&parked, replies.into_values().collect()).await);
        }
        // What did not begin waited for what did, so that it comes behind.
        proposals.retain(|call, _| !replies.contains_key(call));
        let last = proposals.keys().next_back().map_or(0, |call| call.0);
        self.calls.fetch_max(last, Ordering::Relaxed);
        let exceeded = |resolved: &_, counted: &mut u64| self.exceeded(resolved, counted);
        let steps = proposals.into_iter().map(|(call, proposal)| {
            self.resolve_as(call, &offer, proposal, |resolved| exceeded(resolved, &mut counted))
        });
        let mut steps: Vec<Step> = steps.collect();
        if self.setup.hard.contains(&FaultKind::Repair) && steps.iter().any(Step::needs_repair) {
            steps = steps.into_iter().map(Step::given_up).collect();
        }
        let Driven { replies: fresh, parked } = self.drive(steps, &scope).await;
        replies.extend(fresh.into_iter().map(|reply| (reply.call, reply)));
        self.close(Driven { replies: replies.into_values().collect(), parked }).await
    }

    /// Minds what a reply means for the rest of its batch.
    fn mind(&self, reply: &Reply, scope: &Scope<'_>) {
        let toolbox = self.toolbox();
        let aborts = toolbox.get(&reply.name).map(|tool| tool.spec().effects.aborts_siblings);
        drop(toolbox);
        if aborts == Some(true) && reply.is_error {
            scope.token().cancel();
        }
        if let Some(why) = self.ends(reply) {
            self.ended.get_or_init(|| why);
            scope.close();
        }
    }

    /// Brings a call to its end that was begun before.
    async fn settle_again(
        &self,
        no: CallNo,
        proposal: Proposal,
        begun: Begun,
        offer: &Offer,
        scope: &Scope<'_>,
    ) -> Result<Reply, Parked> {
        let mut unlimited = u64::MIN;
        let step = self.resolve_as(no, offer, proposal, |resolved| {
            // What was permitted to start is not beyond a limit now.
            let exceeded = self.exceeded(resolved, &mut unlimited);
            exceeded.filter(|_| begun.started == 0)
        });
        let mut trail = Trail::new(self, scope, step.writes_anything());
        if begun.proposed {
            trail.unwritten.known();
        }
        if begun.is_in_doubt() {
            trail.wait.passage.begin(Executed::Unknown);
        }
        let (draft, performed) = match step.into_resolved() {
            Ok(call) => {
                // What its siblings came to since, its model did not know.
                let call = match &begun.judged_under {
                    Some(context) => call.under(context.clone()),
                    None => call,
                };
                self.conduct_again(call, &begun, &mut trail).await
            }
            Err((draft, _)) if begun.is_in_doubt() => {
                (draft, Err(in_doubt("its tool is gone").into()))
            }
            Err((draft, fault)) => (draft, Err(fault.into())),
        };
        match trail.is_parked {
            false => Ok(self.conclude(draft, performed, &mut trail).await),
            true => {
                let executed = match begun.is_in_doubt() {
                    true => Executed::Unknown,
                    false => trail.done_by_now(),
                };
                Err(trail.parked(draft, executed))
            }
        }
    }

    async fn conduct_again(
        &self,
        call: Call,
        begun: &Begun,
        trail: &mut Trail<'_>,
    ) -> (Draft, Result<(), Box<Fault>>) {
        let draft = Draft::new(call.facts().clone());
        let known = match self.look(&call, begun, trail).await {
            Ok(known) => known,
            Err(fault) => return (draft, Err(fault.into())),
        };
        let doubtful = known == Known::Nothing;
        let permitted = match doubtful {
            false => self.permit_again(call, begun, known, trail).await,
            true => self.ask_again(call, begun, trail).await,
        };
        let before = match known {
            Known::DidNot => Executed::NotExecuted,
            Known::MayRepeat | Known::Nothing => Executed::Unknown,
        };
        match permitted {
            Ok(mut permit) => {
                let next = begun.started + 1;
                let performed = self.perform_from(&mut permit, trail, next, before).await;
                (self.put_aside(permit, next, trail), performed)
            }
            // Whatever is decided now, what the last attempt did stays unknown.
            Err(Halted::Refused(refused)) if before == Executed::Unknown => {
                (draft, Err(in_doubt(&refused.fault.to_string()).into()))
            }
            Err(Halted::Refused(refused)) => (draft, Err(refused.fault.into())),
            Err(Halted::Parked(_)) => {
                trail.park();
                (draft, Err(cancelled(before).into()))
            }
        }
    }

    /// What is known of the attempts that were made. Fails where nothing more may be done.
    async fn look(
        &self,
        call: &Call,
        begun: &Begun,
        trail: &mut Trail<'_>,
    ) -> Result<Known, Fault> {
        let spec = call.spec();
        // A tool that is declared otherwise now says nothing of what was done then.
        let is_other = begun.definition.is_some_and(|it| it != call.definition());
        let once = (spec.effects.repeat == Repeat::Once || is_other)
            && (spec.effects.access == Access::Write || spec.is_recursive());
        if begun.started == 0 {
            return Ok(Known::DidNot);
        }
        if !begun.is_in_doubt() && !is_other {
            // What happens once was tried again only where nothing had happened.
            return Ok(if once { Known::DidNot } else { Known::MayRepeat });
        }
        if !once {
            return Ok(Known::MayRepeat);
        }
        let found = match begun.found {
            Some(found) => found,
            None => self.reconcile(call, begun, trail).await?,
        };
        match found {
            Found::DidNot => Ok(Known::DidNot),
            Found::CannotTell => Ok(Known::Nothing),
            Found::Happened => {
                let lost = ToolError::tell("it was done, but the result was lost in a crash");
                Err(Fault::Failed(lost.code("resume.happened").knowing(Executed::Executed)))
            }
        }
    }

    /// Lets the tool look what became of an attempt, and puts what it found on the tape.
    async fn reconcile(
        &self,
        call: &Call,
        begun: &Begun,
        trail: &mut Trail<'_>,
    ) -> Result<Found, Fault> {
        let Some(hook) = &call.spec().hooks.reconcile else { return Ok(Found::CannotTell) };
        let LiveRun { grants, context, .. } = self.live();
        trail.wait.begin(call);
        let found = {
            let grants = Grants {
                map: grants,
                run: context,
                call: call.no(),
                attempt: begun.started,
                id: call.id(),
                args_hash: &call.facts().args_hash,
                labels: self.labels_of(call),
                frozen_unix_us: None,
                is_write: false, // It looks, and changes nothing.
                needs: hook.needs(),
                cancel: trail.wait.scope.token(),
                life: &trail.wait.life,
                leash: Leash::default(),
                lease: Mutex::new(None),
            };
            let finding = async { hook.find(call.args(), &grants).await };
            let finding = AssertUnwindSafe(finding).catch_unwind();
            let wall = call.spec().bounds.wall.or(self.setup.limits.wall);
            match wall {
                Some(wall) => tokio::time::timeout(wall, finding).await.ok().and_then(Result::ok),
                None => finding.await.ok(),
            }
        };
        // A hook that fails, panics or does not end cannot tell.
        let found = found.and_then(Result::ok).unwrap_or(Found::CannotTell);
        trail.unwritten.push(Event::Reconciled { call: call.no(), found });
        let written = trail.write(call.facts(), self.setup.clock.unix_us());
        written.map_err(|err| unrecorded(err).after(Executed::Unknown))?;
        Ok(found)
    }

    /// Judges a call again, and asks again unless the answer still holds.
    async fn permit_again(
        &self,
        call: Call,
        begun: &Begun,
        known: Known,
        trail: &mut Trail<'_>,
    ) -> Result<Permit, Halted> {
        let said = begun.questions.iter().rev().find(|it| it.question.attempt.is_none());
        let no = said.and_then(|it| it.answer.as_ref()?.as_ref().err());
        match self.judge(call, trail) {
            // A no stands, though a rule would allow it by now.
            Judged::Permitted(permit) => match no {
                None => Ok(permit),
                Some(told) => Err(permit.withdrawn(told.clone()).into()),
            },
            Judged::Refused(refused) => Err(refused.into()),
            Judged::Pending(pending) => {
                let made = if known == Known::MayRepeat { begun.started } else { 0 };
                let before = AskedBefore { questions: &begun.questions, attempt: None, made };
                self.ask(pending, trail, before).await
            }
        }
    }

    /// Asks whether to make another attempt, where nobody knows what the last one did.
    async fn ask_again(
        &self,
        call: Call,
        begun: &Begun,
        trail: &mut Trail<'_>,
    ) -> Result<Permit, Halted> {
        let verdict = self.reserve(&call, self.verdict(&call));
        trail.reserved = !matches!(verdict, Verdict::Deny { .. });
        trail.unwritten.judged(&verdict);
        if let Verdict::Deny { .. } = verdict {
            let fault = in_doubt("the policy lets nobody try again");
            return Err(Refused { call, fault }.into());
        }
        let (questions, attempt) = (&begun.questions[..], Some(begun.started));
        let before = AskedBefore { questions, attempt, made: 0 };
        self.ask(Pending::again(call), trail, before).await
    }
}

/// What is known of the attempts that were made at a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// They did nothing.
    DidNot,
    /// They may have done something that may be done again.
    MayRepeat,
    /// They may have done something that may be done once.
    Nothing,
}

/// Whether a call counted towards the calls of its batch: what is malformed or beyond a limit does
/// not.
fn used_a_slot(reply: &Reply) -> bool {
    reply.fault.as_ref().is_none_or(|fault| match (fault.kind, fault.bound) {
        (FaultKind::Repair, _) => false,
        (_, Some(bound)) => bound.is_time(),
        (_, None) => true,
    })
}

/// The fault of a call that is not tried again, though nobody knows what it did.
fn in_doubt(why: &str) -> Fault {
    let told = "the run stopped while this was being done, and nobody knows whether it happened";
    Fault::InDoubt(ToolError::in_doubt(told).code("resume.in_doubt").because(why.to_owned()))
}
