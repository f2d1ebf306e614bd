//! How calls end in a replay: executed again, refused again, or as the tape says.

use super::{NOBODY, Player, Stand, judged};
use crate::fault::{Executed, Fault, FaultKind};
use crate::id::CallNo;
use crate::policy::Permit;
use crate::replay::compare::is_same;
use crate::replay::fate::{is_fate, is_unasked};
use crate::replay::{REPLAY_WALL_DEFAULT, ReplayError, Stage};
use crate::reply::Reply;
use crate::spec::{Access, Determinism};
use crate::tape::{Event, READ_RECORDS_MAX, Record, Tape};
use crate::tool::Source;

/// How a call ends.
pub(super) enum Ended {
    /// What happens now in place of the recorded end.
    Alike(Option<Event>, Stage),
    /// Before that it said something else than was recorded.
    SaidOther(Box<Record>, Event),
}

impl Player<'_> {
    pub(super) async fn settle(&mut self, recorded: &Reply) -> Result<Ended, ReplayError> {
        let stand = self.take_stand(recorded.call).unwrap_or(Stand::Served);
        self.proposals.remove(&recorded.call);
        self.spent(recorded.call, recorded.executed);
        self.run.spent_below(recorded.spent());
        self.report.calls += 1;
        if let Stand::Resolved(call) = &stand
            && !is_fate(recorded)
        {
            // It was refused then, and comes further now.
            self.turns.settled(recorded);
            let verdict = self.run.judge_again(call);
            return Ok(Ended::Alike(Some(judged(call, &verdict)), Stage::Resolve));
        }
        let (reply, stage) = match stand {
            Stand::Started { permit, attempt, clock_us } if self.runs_again(&permit, recorded) => {
                let is_live = self.is_live(&permit);
                let reply = self.perform(permit, attempt, clock_us).await?;
                self.report.executed += 1;
                let says = self.hear(recorded.call).await?;
                let from_tool = |reply: &Reply| reply.source != Source::Cache;
                if !is_live && from_tool(recorded) && from_tool(&reply) {
                    let now = Event::Settled(reply.clone().lasting_like(recorded));
                    match self.unlike(recorded.call, says, now) {
                        Some((Some(then), now)) => {
                            self.turns.settled(recorded);
                            return Ok(Ended::SaidOther(then.into(), now));
                        }
                        Some((None, now)) => {
                            self.turns.settled(recorded);
                            return Ok(Ended::Alike(Some(now), Stage::Tool));
                        }
                        None => {}
                    }
                }
                (Some(reply.lasting_like(recorded)), Stage::Tool)
            }
            stand => {
                self.report.served += 1;
                self.served(stand, recorded).await
            }
        };
        let reply = reply.unwrap_or_else(|| recorded.clone());
        self.turns.settled(&reply);
        Ok(Ended::Alike(Some(Event::Settled(reply)), stage))
    }

    /// What a call said since somebody looked.
    async fn hear(&mut self, call: CallNo) -> Result<Vec<Event>, ReplayError> {
        let mut says = Vec::new();
        loop {
            let page = self.says.read(self.first.run, self.heard, READ_RECORDS_MAX).await?;
            if page.is_empty() {
                return Ok(says);
            }
            self.heard += page.len() as u64;
            let events = page.into_iter().map(|record| record.event);
            says.extend(events.filter(|event| event.call() == Some(call) && is_said(event)));
        }
    }

    /// The first thing that a call says now and did not say then, or the other way round, beside
    /// the record in whose place it is; nothing was recorded in place of what comes last.
    fn unlike(
        &mut self,
        call: CallNo,
        says: Vec<Event>,
        end: Event,
    ) -> Option<(Option<Record>, Event)> {
        let said = self.said.remove(&call).unwrap_or_default();
        let mut says = says.into_iter();
        for then in said {
            match says.next() {
                Some(now) if is_same(&then.event, &now) => {}
                Some(now) => return Some((Some(then), now)),
                None => return Some((Some(then), end)),
            }
        }
        says.next().map(|now| (None, now))
    }

    /// The reply of a call that is not executed. Without one, the tape's holds.
    async fn served(&self, stand: Stand, recorded: &Reply) -> (Option<Reply>, Stage) {
        match stand {
            Stand::Refused(draft, Some(fault)) => {
                let stage = match fault {
                    Fault::Denied(_) => Stage::Policy,
                    _ => Stage::Resolve,
                };
                let reply = match is_fate(recorded) {
                    // Before anything was decided, the time was up.
                    true => recorded.again(draft),
                    false => self.run.finish_again(draft, Err(fault)).await.lasting_like(recorded),
                };
                (Some(reply), stage)
            }
            Stand::Refused(draft, None) => (Some(recorded.again(draft)), Stage::Resolve),
            Stand::Pending(pending) if is_unasked(recorded) => {
                let refused = pending.unasked();
                let draft = refused.call.into_draft();
                let reply = self.run.finish_again(draft, Err(refused.fault)).await;
                (Some(reply.lasting_like(recorded)), Stage::Policy)
            }
            Stand::Pending(pending) => {
                let draft = pending.failed(NOBODY).call.into_draft();
                (Some(recorded.again(draft)), Stage::Policy)
            }
            Stand::Permitted(permit) | Stand::Started { permit, .. } => {
                (Some(recorded.again(permit.into_draft())), Stage::Tool)
            }
            Stand::Resolved(call) => (Some(recorded.again(call.into_draft())), Stage::Resolve),
            Stand::Served => (None, Stage::Tool),
        }
    }

    fn is_live(&self, permit: &Permit) -> bool {
        self.plan.live.contains(permit.call().tool().name())
    }

    /// Whether a call is executed again: what is pure and was executed, and what is to be live.
    fn runs_again(&self, permit: &Permit, recorded: &Reply) -> bool {
        if self.is_live(permit) {
            return true;
        }
        let effects = &permit.call().spec().effects;
        let provable = effects.access == Access::Pure
            && match effects.determinism {
                Determinism::Deterministic | Determinism::Bounded => true,
                Determinism::NonDeterministic => false,
            };
        let code = recorded.fault.as_ref().map(|fault| (fault.kind, &*fault.code));
        // What a bound or a cancel ended, time decided; what was not executed is not.
        let ran = match code {
            None => recorded.source != Source::Mock,
            Some((FaultKind::Failed, _)) => recorded.executed == Executed::Executed,
            Some((FaultKind::InDoubt, code)) => code == "tool.panicked",
            Some(_) => false,
        };
        provable && ran
    }

    async fn perform(
        &self,
        mut permit: Permit,
        attempt: u32,
        clock_us: Option<u64>,
    ) -> Result<Reply, ReplayError> {
        let missing = self.run.missing_for(permit.call().spec());
        if !missing.is_empty() {
            return Err(ReplayError::MissingGrants(missing));
        }
        let own = self.run.wall_of(permit.call().spec());
        let wall = match self.plan.wall {
            _ if self.is_live(&permit) => own,
            None => Some(own.unwrap_or(REPLAY_WALL_DEFAULT)),
            Some(most) => Some(own.map_or(most, |own| own.min(most))),
        };
        let performed = self.run.perform_again(&mut permit, attempt, clock_us, wall).await;
        Ok(self.run.finish_again(permit.into_draft(), performed).await)
    }
}

/// Whether a call says it while it runs.
fn is_said(event: &Event) -> bool {
    matches!(
        event,
        Event::Progress { .. } | Event::Emitted { .. } | Event::State { .. } | Event::Stored { .. }
    )
}
