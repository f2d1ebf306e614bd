//! Other tool runtimes, each with the tool `add`, from text to result.

pub(crate) mod agnt;
pub(crate) mod clark;
pub(crate) mod rig;
pub(crate) mod rmcp;

use tokio::runtime::{Builder, Runtime};

/// What a model is told about the tool.
pub(crate) const DESCRIPTION: &str = "Adds two numbers.";

/// How many tools a registry holds.
pub(crate) const TOOLS: usize = 10;

/// A runtime like the one that Tooltape is measured on.
pub(crate) fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a thread can have a runtime")
}
