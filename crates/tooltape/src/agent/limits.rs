//! The limits of a conversation: each with a name and a default.

use std::time::Duration;

use crate::model::Usage;

/// The turns that a model may take for one question.
pub const TURNS_DEFAULT: u32 = 32;
/// The turns in a row that may have to be mended.
pub const REPAIRS_DEFAULT: u32 = 5;

/// Limits that hold for a conversation. What a run limits holds beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLimits {
    /// The turns that the model may take for one question.
    pub turns: u32,
    /// The calls that are executed in all. What it proposes beyond them is answered in place, and
    /// ends the conversation.
    pub calls: u64,
    /// The tokens that it may read and write in all, and the models of its sub-agents with it.
    pub tokens: u64,
    /// The tokens that it may write in one turn, where its API can be told.
    pub output_tokens: Option<u64>,
    /// How long one question may take.
    pub wall: Duration,
    /// What all turns may cost, those of sub-agents among them, in millionths of the
    /// [price](Price)'s currency.
    pub cost: u64,
    /// The turns in a row that may have to be mended: calls that cannot be read, and answers that
    /// are none.
    pub repairs: u32,
}

impl Default for AgentLimits {
    fn default() -> AgentLimits {
        AgentLimits {
            turns: TURNS_DEFAULT,
            calls: u64::MAX,
            tokens: u64::MAX,
            output_tokens: None,
            wall: Duration::MAX,
            cost: u64::MAX,
            repairs: REPAIRS_DEFAULT,
        }
    }
}

/// What a model's tokens cost: millionths of some currency for a million of them.
///
/// ```
/// use tooltape::{Price, Usage};
///
/// let price = Price { input: 3_000_000, output: 15_000_000, cached: 300_000 };
/// let usage = Usage { input_tokens: 1_000, output_tokens: 100, cached_tokens: 0 };
/// assert_eq!(price.of(usage), 4_500);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// What it reads.
    pub input: u64,
    /// What it writes.
    pub output: u64,
    /// What it reads and its provider had read before.
    pub cached: u64,
}

impl Price {
    /// What so many tokens cost, in millionths, rounded up.
    pub fn of(&self, usage: Usage) -> u64 {
        let Usage { input_tokens, output_tokens, cached_tokens } = usage;
        let fresh = input_tokens.saturating_sub(cached_tokens);
        let parts =
            [(fresh, self.input), (cached_tokens, self.cached), (output_tokens, self.output)];
        let total: u128 = parts.iter().map(|(n, each)| u128::from(*n) * u128::from(*each)).sum();
        u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}
