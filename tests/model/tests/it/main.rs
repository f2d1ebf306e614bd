//! The runtime under a model checker: its real sources, under thousands of schedules each.

mod budgets;
mod cancelling;
mod layers;
mod pools;
mod stage;
mod taping;
mod threads;
