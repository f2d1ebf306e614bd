//! The stages that a host adds to the path of a call: prepare, before and after.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use serde_json::Value;

use super::{Attempt, Perform};
use crate::call::Call;
use crate::fault::{Executed, Fault, Repair, ToolError, panic_text};
use crate::grant::Grants;
use crate::proposal::{RepairStep, Resolved};
use crate::tool::Output;

/// May change the arguments of a call, before it is hashed and judged.
pub(crate) type Prepare = dyn Fn(&Call) -> Option<Value> + Send + Sync;
/// May refuse an attempt whose start is on the tape.
pub(crate) type Before = dyn Fn(&Call) -> Result<(), ToolError> + Send + Sync;
/// May change what a tool returned, before its output schema checks it.
pub(crate) type After = dyn Fn(&Call, Output) -> Result<Output, ToolError> + Send + Sync;

/// What a host does to calls on their way, each in the order of registration.
///
/// A panic in any of it fails that call only.
#[derive(Clone, Default)]
pub(crate) struct Stages {
    pub(crate) prepare: Vec<Arc<Prepare>>,
    pub(crate) before: Vec<Arc<Before>>,
    pub(crate) after: Vec<Arc<After>>,
}

impl Stages {
    /// Whether any hook may change the arguments.
    #[inline]
    pub(crate) fn prepares(&self) -> bool {
        !self.prepare.is_empty()
    }

    /// Whether any hook goes before or after an attempt.
    #[inline]
    pub(crate) fn surround(&self) -> bool {
        !self.before.is_empty() || !self.after.is_empty()
    }

    /// Lets the hooks change the arguments. What they change is resolved again, and says so.
    pub(crate) fn prepare(
        &self,
        mut resolved: Resolved,
        call: impl Fn(Resolved) -> Call,
        resolve: impl Fn(&Value) -> Result<Resolved, Repair>,
    ) -> Result<Resolved, Fault> {
        for hook in &self.prepare {
            let before = call(resolved);
            let changed = isolated(|| hook(&before));
            let changed = changed.map_err(|panic| unprepared("prepare.panicked", panic))?;
            resolved = match changed {
                None => before.into_resolved(),
                Some(args) => {
                    let again = resolve(&args);
                    let again = again.map_err(|it| unprepared("prepare.invalid", it.message))?;
                    let same = again.args == *before.args();
                    let repairs = before.into_resolved().repairs;
                    let prepared = (!same).then_some(RepairStep::Prepared);
                    Resolved { repairs: repairs.into_iter().chain(prepared).collect(), ..again }
                }
            };
        }
        Ok(resolved)
    }

    /// Performs an attempt between the hooks before and after it.
    pub(crate) async fn perform<'a>(
        &self,
        performer: &'a dyn Perform,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
    ) -> Result<Output, ToolError> {
        let call = attempt.call();
        for hook in &self.before {
            // A hook that comes first knows nothing of what the tool did.
            let refused = isolated(|| hook(call)).unwrap_or_else(|panic| {
                let err = ToolError::not_done("the call was refused").code("before.panicked");
                Err(err.because(panic))
            });
            refused.map_err(|err| err.knowing(Executed::NotExecuted))?;
        }
        let mut output = performer.perform(attempt.entered(), grants).await?;
        for hook in &self.after {
            let changed = isolated(|| hook(call, output)).unwrap_or_else(|panic| {
                let err = ToolError::tell("executed, but the result was lost");
                Err(err.code("after.panicked").because(panic))
            });
            // Whatever a hook says of it, the tool has run.
            output = changed.map_err(|err| err.knowing(Executed::Executed))?;
        }
        Ok(output)
    }
}

/// Runs a hook of the host's; a panic becomes its text.
fn isolated<T>(hook: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(hook))
        .map_err(|panic| format!("panic: {}", panic_text(panic)))
}

/// The model is not to blame for what a hook did, so it has nothing to mend.
fn unprepared(code: &str, why: String) -> Fault {
    let told = "the arguments could not be prepared";
    Fault::Failed(ToolError::not_done(told).code(code).because(why))
}
