//! How calls end in a replay: executed again, refused again, or as the tape says.

use super::{NOBODY, Player, Stand, judged};
use crate::fault::{Executed, Fault, FaultKind};
use crate::policy::Permit;
use crate::replay::fate::{is_fate, is_unasked};
use crate::replay::{ReplayError, Stage};
use crate::reply::Reply;
use crate::spec::{Access, Determinism};
use crate::tape::Event;
use crate::tool::Source;

impl Player<'_> {
    pub(super) async fn settle(
        &mut self,
        recorded: &Reply,
    ) -> Result<(Option<Event>, Stage), ReplayError> {
        let stand = self.calls.remove(&recorded.call).unwrap_or(Stand::Served);
        self.proposals.remove(&recorded.call);
        self.report.calls += 1;
        if let Stand::Resolved(call) = &stand
            && !is_fate(recorded)
        {
            // It was refused then, and comes further now.
            self.turns.settled(recorded);
            let verdict = self.run.judge_again(call);
            return Ok((Some(judged(call, &verdict)), Stage::Resolve));
        }
        let (reply, stage) = match stand {
            Stand::Started { permit, attempt, clock_us } if self.runs_again(&permit, recorded) => {
                let reply = self.perform(permit, attempt, clock_us).await?;
                self.report.executed += 1;
                (Some(reply.lasting_like(recorded)), Stage::Tool)
            }
            stand => {
                self.report.served += 1;
                self.served(stand, recorded).await
            }
        };
        let reply = reply.unwrap_or_else(|| recorded.clone());
        self.turns.settled(&reply);
        Ok((Some(Event::Settled(reply)), stage))
    }

    /// The reply of a call that is not executed. Without one, the tape's holds.
    async fn served(&self, stand: Stand, recorded: &Reply) -> (Option<Reply>, Stage) {
        match stand {
            Stand::Refused(facts, Some(fault)) => {
                let stage = match fault {
                    Fault::Denied(_) => Stage::Policy,
                    _ => Stage::Resolve,
                };
                let reply = match is_fate(recorded) {
                    // Before anything was decided, the time was up.
                    true => recorded.again(facts),
                    false => self.run.finish_again(facts, Err(fault)).await.lasting_like(recorded),
                };
                (Some(reply), stage)
            }
            Stand::Refused(facts, None) => (Some(recorded.again(facts)), Stage::Resolve),
            Stand::Pending(pending) if is_unasked(recorded) => {
                let refused = pending.unasked();
                let facts = refused.call.into_facts();
                let reply = self.run.finish_again(facts, Err(refused.fault)).await;
                (Some(reply.lasting_like(recorded)), Stage::Policy)
            }
            Stand::Pending(pending) => {
                let facts = pending.failed(NOBODY).call.into_facts();
                (Some(recorded.again(facts)), Stage::Policy)
            }
            Stand::Permitted(permit) | Stand::Started { permit, .. } => {
                (Some(recorded.again(permit.into_facts())), Stage::Tool)
            }
            Stand::Resolved(call) => (Some(recorded.again(call.into_facts())), Stage::Resolve),
            Stand::Served => (None, Stage::Tool),
        }
    }

    /// Whether a call is executed again: what is pure and was executed, and what is to be live.
    fn runs_again(&self, permit: &Permit, recorded: &Reply) -> bool {
        let call = permit.call();
        if self.plan.live.contains(call.tool().name()) {
            return true;
        }
        let effects = &call.spec().effects;
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
        let performed = self.run.perform_again(&mut permit, attempt, clock_us).await;
        Ok(self.run.finish_again(permit.into_facts(), performed).await)
    }
}
