//! Asks whether a call may run: now, or on the tape for whoever answers later.

use std::panic::{self, AssertUnwindSafe};
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::FutureExt;

use super::inside::dropped_safely;
use super::past::{Questioned, Standing};
use super::trail::Trail;
use super::{Run, cancelled};
use crate::approve::Question;
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
        match self.ask(pending, trail, None, &[]).await {
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
        attempt: Option<u32>,
        before: &[Questioned],
    ) -> Result<Permit, Halted> {
        let (facts, now_us) = (pending.call().facts().clone(), self.setup.clock.unix_us());
        let (run, policy) = (self.live().context.run, self.live().policy);
        let last = before.iter().rev().find(|it| it.question.attempt == attempt);
        let known =
            last.filter(|it| it.question.holds((run, &facts), (pending.rule(), policy), now_us));
        match (last.map(|it| &it.answer), known.map(|it| &it.answer)) {
            // A no stands, whatever has changed since.
            (Some(Some(Err(told))), _) => return pending.answer(Answer::Deny(told.clone())),
            (_, Some(Some(Ok(())))) => return pending.answer(Answer::Once),
            (_, _) => {}
        }
        let Some(approver) = &self.setup.approver else { return Err(pending.unasked().into()) };
        if let Err(fault) = self.may_start(pending.call(), trail.wait.scope) {
            return Err(pending.failed(fault).into());
        }
        let question = match known {
            Some(known) => known.question.clone(),
            None => {
                let no = u32::try_from(before.len()).unwrap_or(u32::MAX).saturating_add(1);
                let rule = pending.rule_text().clone();
                let until_us = now_us.saturating_add(us(self.setup.limits.approval));
                let asked = Question::new((run, &facts), (no, attempt), (rule, policy), until_us);
                trail.unwritten.push(Event::CallAsked(Box::new(asked.clone())));
                asked
            }
        };
        if !pending.is_exact() && self.is_standing(&pending, now_us) {
            trail.unwritten.push(answered(&question, &Answer::Run));
            return pending.answer(Answer::Run);
        }
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
        let Some(answer) = self.hear(&**approver, &mut pending, &question, trail).await else {
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

    /// Whether somebody approved what this rule asks about this tool for the whole run.
    fn is_standing(&self, pending: &Pending, now_us: u64) -> bool {
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
        pending: &mut Pending,
        question: &Question,
        trail: &mut Trail<'_>,
    ) -> Option<Answer> {
        let life = trail.wait.begin(pending.call());
        let _asking = Asking::new(self);
        // Whoever asks may fail or never end; the call is answered all the same.
        let asking = dropped_safely(async {
            let call = pending.call();
            let preview = match call.spec().hooks.preview {
                Some(_) => Box::pin(self.preview(&call.facts().name, call.args())).await,
                None => None,
            };
            pending.show(self.live().context.run, question.clone(), preview);
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
        let Some(Ok(shown)) = pending.preview() else { return true };
        let call = pending.call();
        let now = Box::pin(self.preview(&call.facts().name, call.args())).await;
        now.is_some_and(|now| now.is_ok_and(|now| now == *shown))
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
