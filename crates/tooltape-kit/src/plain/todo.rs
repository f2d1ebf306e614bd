//! `todo`: the plan of a run, kept on its tape.

use serde::{Deserialize, Serialize};
use tooltape::schemars::JsonSchema;
use tooltape::{State, ToolError, input, tool};

/// The most steps of a plan.
pub const STEPS_MAX: usize = 100;
/// The longest step, in bytes.
pub const STEP_BYTES_MAX: usize = 500;

/// How far a step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars", inline)]
#[serde(rename_all = "snake_case")]
pub enum Progressed {
    /// Not begun.
    Open,
    /// Begun.
    Doing,
    /// Done.
    Done,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is to be done.
    pub text: String,
    /// How far it has come: `open`, `doing` or `done`.
    pub status: Progressed,
}

/// The plan of a run: granted as a [`State`], it is noted on the tape with every change, so a run
/// that is resumed still has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub struct Plan {
    /// Its steps, in their order.
    pub steps: Vec<Step>,
}

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct Todo {
    /// All steps of the plan from now on, each with its `text` and `status`. Leave it out to read.
    steps: Option<Vec<Step>>,
}

impl Todo {
    fn check(&self) -> Result<(), String> {
        let steps = self.steps.as_deref().unwrap_or_default();
        if steps.len() > STEPS_MAX {
            let found = steps.len();
            return Err(format!("/steps: found {found} steps, expected at most {STEPS_MAX}"));
        }
        let is_fit =
            |step: &Step| !step.text.trim().is_empty() && step.text.len() <= STEP_BYTES_MAX;
        match steps.iter().position(|step| !is_fit(step)) {
            None => Ok(()),
            Some(at) => {
                let expected = format!("expected a text of 1 to {STEP_BYTES_MAX} bytes");
                Err(format!("/steps/{at}/text: {expected}"))
            }
        }
    }
}

/// Keeps the plan of this run: give all its steps to replace it, or nothing to read it. Mark a step
/// `doing` when you begin it and `done` when it is.
// Nothing outside the run changes, so nobody has to be asked.
#[tool(
    Read,
    exclusive,
    version = "0.1.0",
    output = Plan,
    wall_ms = 5_000,
    output_bytes = 128 << 10
)]
pub(super) async fn todo(args: Todo, plan: State<Plan>) -> Result<Plan, ToolError> {
    if let Some(steps) = args.steps {
        plan.update(|plan| plan.steps = steps)?;
    }
    Ok(plan.get())
}
