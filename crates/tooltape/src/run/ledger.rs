//! What the models of a run and of all runs below it cost, and what they may cost.

use std::iter;
use std::sync::Arc;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tape::Usage;

/// What models cost. What is counted here is counted for everybody above.
pub(crate) struct Ledger {
    input: AtomicU64,
    output: AtomicU64,
    cached: AtomicU64,
    /// In millionths, where prices are known.
    cost: AtomicU64,
    tokens_max: AtomicU64,
    cost_max: AtomicU64,
    above: Option<Arc<Ledger>>,
}

/// What the models of a run and of those below it may cost no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
}

impl Ledger {
    pub(super) fn new(above: Option<Arc<Ledger>>) -> Arc<Ledger> {
        let zero = || AtomicU64::new(0);
        Arc::new(Ledger {
            input: zero(),
            output: zero(),
            cached: zero(),
            cost: zero(),
            tokens_max: AtomicU64::new(u64::MAX),
            cost_max: AtomicU64::new(u64::MAX),
            above,
        })
    }

    /// Lets the models of the run and of those below it cost no more than this.
    pub(crate) fn limit(&self, tokens: u64, cost: u64) {
        self.tokens_max.store(tokens, Ordering::SeqCst);
        self.cost_max.store(cost, Ordering::SeqCst);
    }

    /// A model took a turn.
    pub(crate) fn add(&self, usage: Usage, cost: u64) {
        for ledger in self.lineage() {
            ledger.input.fetch_add(usage.input_tokens, Ordering::SeqCst);
            ledger.output.fetch_add(usage.output_tokens, Ordering::SeqCst);
            ledger.cached.fetch_add(usage.cached_tokens, Ordering::SeqCst);
            ledger.cost.fetch_add(cost, Ordering::SeqCst);
        }
    }

    /// What the run and those below it cost.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input.load(Ordering::SeqCst),
            output_tokens: self.output.load(Ordering::SeqCst),
            cached_tokens: self.cached.load(Ordering::SeqCst),
        }
    }

    /// The same in millionths.
    pub(crate) fn cost(&self) -> u64 {
        self.cost.load(Ordering::SeqCst)
    }

    /// What is used up, for the run or for one above it.
    pub(crate) fn used_up(&self) -> Option<Spent> {
        self.lineage().find_map(|ledger| {
            let Usage { input_tokens, output_tokens, .. } = ledger.usage();
            let tokens = input_tokens.saturating_add(output_tokens);
            if tokens >= ledger.tokens_max.load(Ordering::SeqCst) {
                return Some(Spent::Tokens);
            }
            (ledger.cost() >= ledger.cost_max.load(Ordering::SeqCst)).then_some(Spent::Cost)
        })
    }

    /// This one, and all above it.
    fn lineage(&self) -> impl Iterator<Item = &Ledger> {
        iter::successors(Some(self), |ledger| ledger.above.as_deref())
    }
}
