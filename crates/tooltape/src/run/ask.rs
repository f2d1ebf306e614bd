//! Asks whether a call may run: now, or on the tape for whoever answers later.

use std::panic::{self, AssertUnwindSafe};
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::FutureExt;

use super::inside::dropped_safely;
use super::past::{Questioned, Standing};
use super::trail::Trail;
use super::{LiveRun, Run, cancelled};
use crate::approve::{Previewed, Question, shown};
use crate::call::Call;
use crate::fault::{Executed, Fault};
use crate::grant::Asked;
use crate::perform::unrecorded;
use crate::policy::{Answer, Approver, Halted, Pending, Permit, Refused};
use crate::reply::Draft;
use crate::tape::{Accepted, Event};

impl Run {
    /// Asks, and takes a call that may run to its output, which is left in the trail.
    pub(super) async fn inquire(
        &self,
        pending: Pending,
        trail: &mut Trail<'_>,
    ) -> (Draft, Result<(), Box<Fault>>) {
        match self.ask(pending, trail, AskedBefore::default()).await {
            Ok(mut permit) => {
                let performed = self.perform(&mut permit, trail).await;
                (self.put_aside(permit, 1, trail), performed)
            }
            Err(Halted::Refused(Refused { call, fault })) => (call.into_draft(), Err(fault.into())),
            Err(Halted::Parked(call)) => {
                // It is taken again once somebody has answered.
                self.spent(call.facts(), Executed::NotExecuted, trail.reserved);
                trail.reserved = false;
                trail.park();
                (call.into_draft(), Err(cancelled(Executed::NotExecuted).into()))
            }
        }
    }

    /// Asks whether the call may run. No seat is held meanwhile, and no clock moves.
    ///
    /// What was asked `before` is not asked again as long as it holds.
    pub(super) async fn ask(
        &self,
        mut pending: Pending,
        trail: &mut Trail<'_>,
        before: AskedBefore<'_>,
    ) -> Result<Permit, Halted> {
        if let Some(Some(Err(told))) = before.last().map(|it| &it.answer) {
            // A no stands, whatever has changed since.
            return pending.answer(Answer::Deny(told.clone()));
        }
        let facts = pending.call().facts().clone();
        let (run, policy) = (self.live().context.run, self.live().policy);
        let is_standing = !pending.is_exact() && self.is_standing(&pending);
        let is_seen = self.setup.approver.is_some() && !is_standing;
        let (known, preview) = match self.recall(&pending, is_seen, trail, before).await {
            Ok(recalled) => recalled,
            Err(fault) => return Err(pending.failed(fault).into()),
        };
        if let Some(Some(Ok(()))) = known.map(|it| &it.answer) {
            return pending.answer(Answer::Once);
        }
        let now_us = self.setup.clock.unix_us();
        let approver = self.setup.approver.as_ref().filter(|_| !is_standing);
        if approver.is_none() && !is_standing {
            return Err(pending.unasked().into());
        }
        if let Err(fault) = self.may_start(pending.call(), trail.wait.scope) {
            return Err(pending.failed(fault).into());
        }
        let question = match known {
            Some(known) => known.question.clone(),
            None => {
                let rule = pending.rule_text().clone();
                let until_us = now_us.saturating_add(us(self.setup.limits.approval));
                let (which, shown) = ((before.next(), before.attempt), shown(preview.as_ref()));
                let (call, asks) = ((run, &facts), (rule, policy));
                let asked = Question::new(call, which, asks, (shown, until_us));
                trail.unwritten.push(Event::CallAsked(Box::new(asked.clone())));
                asked
            }
        };
        let Some(approver) = approver else {
            trail.unwritten.push(answered(&question, &Answer::Run));
            return pending.answer(Answer::Run);
        };
        pending.show(run, question.clone(), preview);
        // From here on the call waits, and is settled if nobody waits for it any more.
        trail.wait.begin(pending.call());
        // Whatever becomes of this process, the tape has the question before anybody reads it.
        let written = match trail.write(&facts, now_us) {
            Ok(Accepted::Now) => Ok(()),
            Ok(Accepted::Later(durable)) => self.durable(durable).await,
            Err(err) => Err(err),
        };
        if let Err(err) = written {
            return Err(pending.failed(unrecorded(err)).into());
        }
        let Some(answer) = self.hear(&**approver, &pending, trail).await else {
            return Err(pending.failed(cancelled(Executed::NotExecuted)).into());
        };
        let is_late = self.setup.clock.unix_us() >= question.until_us;
        let answer = match weighed(answer, pending.is_exact(), is_late) {
            // The calls that started this run cannot wait beyond the life of their process.
            Answer::Later if !self.setup.can_pause => return Err(pending.unasked().into()),
            Answer::Later => return pending.answer(Answer::Later),
            answer => answer,
        };
        if answer == Answer::Run {
            let definition = facts.definition();
            let (rule, until_us) = (question.rule.clone(), question.until_us);
            let standing = Standing { definition, rule, policy, until_us };
            self.standing.lock().unwrap_or_else(PoisonError::into_inner).push(standing);
        }
        trail.unwritten.push(answered(&question, &answer));
        pending.answer(answer)
    }

    /// What was asked before and still holds, and what the call would change, where somebody is to
    /// see that or it was shown with the question. Fails where the call is cancelled meanwhile.
    async fn recall<'b>(
        &self,
        pending: &Pending,
        is_seen: bool,
        trail: &Trail<'_>,
        before: AskedBefore<'b>,
    ) -> Result<(Option<&'b Questioned>, Option<Previewed>), Fault> {
        let (call, LiveRun { context, policy, .. }) = (pending.call(), self.live());
        let asks = (pending.rule(), *policy);
        let holds = |it: &&Questioned| {
            let now_us = self.setup.clock.unix_us();
            it.question.holds((context.run, call.facts()), asks, now_us)
        };
        let known = before.last().filter(holds);
        // What an attempt since then did, it was allowed to do.
        let is_bound = known.is_some_and(|it| it.started >= before.made);
        let is_answered = known.is_some_and(|it| it.answer.is_some());
        if !is_bound && (!is_seen || is_answered) {
            return Ok((known, None));
        }
        let preview = self.look_ahead(call, trail).await?;
        let is_same = |it: &&Questioned| it.question.showed(preview.as_ref());
        // The time may be up by now.
        let known = known.filter(holds).filter(|it| !is_bound || is_same(it));
        Ok((known, preview))
    }

    /// Whether somebody approved what this rule asks about this tool for the whole run.
    fn is_standing(&self, pending: &Pending) -> bool {
        let now_us = self.setup.clock.unix_us();
        let standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let this = (Some(pending.call().definition()), pending.rule(), self.live().policy);
        standing
            .iter()
            .filter(|it| now_us < it.until_us)
            .any(|it| (it.definition, &*it.rule, it.policy) == this)
    }

    /// Waits for an answer; there is none where the call is cancelled meanwhile.
    async fn hear(
        &self,
        approver: &Approver,
        pending: &Pending,
        trail: &mut Trail<'_>,
    ) -> Option<Answer> {
        let life = trail.wait.begin(pending.call());
        let _asking = Asking::new(self);
        // Whoever asks may fail or never end; the call is answered all the same.
        let asking = dropped_safely(async {
            let asking = panic::catch_unwind(AssertUnwindSafe(|| approver(pending)));
            AssertUnwindSafe(asking?).catch_unwind().await
        });
        let asked = tokio::select! {
            biased;
            asked = asking => asked,
            () = life.cancel().cancelled() => return None,
            () = trail.wait.scope.closed() => return None,
        };
        let answer = asked.unwrap_or_else(|_| Answer::Deny("the question failed".to_owned()));
        Some(match answer {
            Answer::Deny(_) | Answer::Later => answer,
            Answer::Once | Answer::Run | Answer::Saved(_) => {
                match self.is_as_shown(pending).await {
                    true => answer,
                    false => {
                        let told = "what was shown has changed since it was asked about";
                        Answer::Deny(format!("{told}: look at it, and propose it again"))
                    }
                }
            }
        })
    }

    /// Whether the call would still do what whoever was asked could see.
    async fn is_as_shown(&self, pending: &Pending) -> bool {
        let before = shown(pending.preview());
        let call = pending.call();
        before.is_none() || {
            let now = Box::pin(self.preview(&call.facts().name, call.args())).await;
            shown(now.as_ref()) == before
        }
    }

    /// What the call would change, where its tool shows that. Fails where the call is cancelled
    /// meanwhile. No clock moves.
    async fn look_ahead(&self, call: &Call, trail: &Trail<'_>) -> Result<Option<Previewed>, Fault> {
        if call.spec().hooks.preview.is_none() {
            return Ok(None);
        }
        let life = trail.wait.begin(call);
        let _asking = Asking::new(self);
        tokio::select! {
            biased;
            () = life.cancel().cancelled() => Err(cancelled(Executed::NotExecuted)),
            () = trail.wait.scope.closed() => Err(cancelled(Executed::NotExecuted)),
            preview = Box::pin(self.preview(&call.facts().name, call.args())) => Ok(preview),
        }
    }
}

/// What was asked about a call before.
#[derive(Clone, Copy, Default)]
pub(super) struct AskedBefore<'b> {
    pub(super) questions: &'b [Questioned],
    /// The attempt that is in doubt, where the question is whether to make another.
    pub(super) attempt: Option<u32>,
    /// The last attempt that may itself have changed what a preview shows.
    pub(super) made: u32,
}

impl<'b> AskedBefore<'b> {
    /// The last question of this kind.
    fn last(&self) -> Option<&'b Questioned> {
        self.questions.iter().rev().find(|it| it.question.attempt == self.attempt)
    }

    /// The number of the next question.
    fn next(&self) -> u32 {
        u32::try_from(self.questions.len()).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// What an answer comes to.
fn weighed(answer: Answer, is_exact: bool, is_late: bool) -> Answer {
    match answer {
        Answer::Once | Answer::Run | Answer::Saved(_) if is_late => {
            Answer::Deny("the answer came after the question had expired".to_owned())
        }
        // Whoever saved it could not know what made this question an exact one.
        Answer::Saved(_) if is_exact => {
            Answer::Deny("no saved answer is good for this question".to_owned())
        }
        Answer::Run if is_exact => Answer::Once,
        answer => answer,
    }
}

pub(super) fn answered(question: &Question, answer: &Answer) -> Event {
    let (yes, holds, told, by) = match answer {
        Answer::Once => (true, "once", None, None),
        Answer::Run => (true, "run", None, None),
        Answer::Saved(by) => (true, "once", None, Some(by.as_str().into())),
        Answer::Deny(told) => (false, "once", Some(told.clone()), None),
        Answer::Later => (false, "once", None, None),
    };
    let Question { call, question, attempt, approval, .. } = *question;
    Event::Answered { call, question, approval, yes, holds, told, attempt, by }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
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
