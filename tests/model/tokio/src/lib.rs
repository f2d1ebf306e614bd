//! What the runtime takes from tokio, scheduled by the model checker.
#![forbid(unsafe_code)]

pub mod sync;
pub mod task;
pub mod time;

pub use tokio::select;
