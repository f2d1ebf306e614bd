//! How much money a run and its children have spent of what they may.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, PoisonError};

use super::Run;
use crate::call::Call;
use crate::fault::Executed;
use crate::grant::Life;
use crate::policy::Verdict;
use crate::proposal::Facts;
use crate::reply::Reply;
use crate::right::{Amount, Currency, Holding, Refusal, Right, SpendScope};
use crate::sync::{Mutex, MutexGuard};

/// What was spent of what a run may spend. What a child spends, its parent spends too.
///
/// A right to spend is a right to spend so much in all, not so much with each call.
pub(super) struct Spending {
    holding: Holding,
    parent: Option<Arc<Spending>>,
    /// In millionths.
    spent: Mutex<BTreeMap<Currency, u64>>,
}

impl Spending {
    pub(super) fn new(holding: Holding, parent: Option<Arc<Spending>>) -> Arc<Spending> {
        Arc::new(Spending { holding, parent, spent: Mutex::default() })
    }

    /// Takes all of it, from the run and from all above it; or says who withholds it, and takes
    /// nothing from anybody.
    fn reserve(&self, wanted: &[SpendScope], now_us: u64) -> Result<(), Refusal> {
        // Held while the parents are asked, always child before parent.
        let mut spent = self.spent();
        let mut after = spent.clone();
        for SpendScope { currency, most } in wanted {
            let total = after.entry(*currency).or_default();
            *total = total.saturating_add(most.millionths().get());
            let most = NonZeroU64::new(*total).map_or(*most, Amount::of_millionths);
            let right = Right::Spend(SpendScope { currency: *currency, most });
            self.holding.check(&right, now_us)?;
        }
        if let Some(parent) = &self.parent {
            parent.reserve(wanted, now_us)?;
        }
        *spent = after;
        Ok(())
    }

    /// Gives back what was not spent after all.
    fn release(&self, wanted: &[SpendScope]) {
        let mut spent = self.spent();
        for SpendScope { currency, most } in wanted {
            let total = spent.entry(*currency).or_default();
            *total = total.saturating_sub(most.millionths().get());
        }
        drop(spent);
        if let Some(parent) = &self.parent {
            parent.release(wanted);
        }
    }

    /// Counts what was spent already, whether or not it may be.
    pub(super) fn count(&self, wanted: &[SpendScope]) {
        let mut spent = self.spent();
        for SpendScope { currency, most } in wanted {
            let total = spent.entry(*currency).or_default();
            *total = total.saturating_add(most.millionths().get());
        }
        drop(spent);
        if let Some(parent) = &self.parent {
            parent.count(wanted);
        }
    }

    fn spent(&self) -> MutexGuard<'_, BTreeMap<Currency, u64>> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    /// The verdict on a call, which is a denial where too little is left of what it would spend.
    #[inline]
    pub(super) fn reserve(&self, call: &Call, verdict: Verdict) -> Verdict {
        match (call.facts().spends(), &verdict) {
            ([], _) | (_, Verdict::Deny { .. }) => verdict,
            (spends, Verdict::Allow { .. } | Verdict::Ask { .. }) => {
                let now_us = self.setup.clock.unix_us();
                match self.live().spending.reserve(spends, now_us) {
                    Ok(()) => verdict,
                    Err(refusal) => Verdict::deny("rights", format!("{refusal}, in all")),
                }
            }
        }
    }

    /// The reply, with what the children of its call spent: whoever resumes the run must know.
    #[inline]
    pub(super) fn with_spent(&self, reply: Reply, life: Option<&Arc<Life>>) -> Reply {
        let Some(spent) = life.and_then(|life| life.spent()) else { return reply };
        if let Some(call) = &self.setup.seen_by {
            call.spend(&spent);
        }
        reply.having_spent(spent)
    }

    /// A call is over that did this; what it would have spent was reserved, or was not.
    #[inline]
    pub(super) fn spent(&self, facts: &Facts, executed: Executed, reserved: bool) {
        let spends = facts.spends();
        if spends.is_empty() {
            return;
        }
        if let (Some(call), Executed::Executed | Executed::Unknown) =
            (&self.setup.seen_by, executed)
        {
            call.spend(spends);
        }
        match (reserved, executed) {
            (true, Executed::NotExecuted) => self.live().spending.release(spends),
            (false, Executed::Executed | Executed::Unknown) => self.live().spending.count(spends),
            (true, Executed::Executed | Executed::Unknown) | (false, Executed::NotExecuted) => {}
        }
    }
}
