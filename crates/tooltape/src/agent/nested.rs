//! Sub-agents: a tool that gives a task to a model of its own, in a child run.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Agent, AgentError, AgentLimits, Answered, Stopped};
use crate::fault::ToolError;
use crate::model::Model;
use crate::right::Rights;
use crate::run::{BATCH_WALL_DEFAULT, Child, ResumeError, RunError, RunLimits, Spawn, TakenUp};
use crate::spec::{Bound, Repeat, Spec};
use crate::tool::{Input, Tool, tool_fn};

/// The bytes of a task that is given to a sub-agent.
pub const TASK_BYTES_MAX: usize = 64 << 10;

type Keep = dyn Fn(&Spec) -> bool + Send + Sync;

/// A model that other models give tasks to.
///
/// Its runs are [children](Spawn) of the call that gave the task: they have the whole toolbox of
/// the run, with exactly its rights, policy and approver, until they are narrowed here or by the
/// caller, who may name the tools that a task needs. They are on the tape, linked to the call; what
/// they cost is reserved from what the caller has left, and what labels their results, labels the
/// reply. What needs an approval is asked of the caller's approver; where nobody can answer now,
/// the whole tree of runs pauses. Where the caller's run is resumed, after a pause or a crash, the
/// sub-agent goes on from what its own tape says: nothing that it did is done again.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Agent, Proposal, Run, Script, SubAgent, Toolbox, Turn, Verdict, builtin};
///
/// let scout = Script::new([Turn::answer("It is sunny.")]);
/// let scout = SubAgent::new("scout", "Finds things out.", scout);
/// let tools = builtin::tools().into_iter().chain([scout.tool()]);
/// let run = Run::new(&Toolbox::new(tools).unwrap()).policy(|_: &_| Verdict::allow("all"));
/// let replies = run.batch(vec![Proposal::new("c1", "scout", r#"{"task":"Look."}"#)]).await;
/// assert_eq!(replies.unwrap()[0].text(), "It is sunny.");
/// # });
/// ```
pub struct SubAgent {
    name: Arc<str>,
    description: Arc<str>,
    model: Arc<dyn Model>,
    instructions: Option<Arc<str>>,
    keep: Option<Arc<Keep>>,
    rights: Option<Rights>,
    limits: AgentLimits,
    run_limits: RunLimits,
    version: Option<Arc<str>>,
}

impl SubAgent {
    /// A sub-agent under the name of a tool, with what it is good for.
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        model: impl Model + 'static,
    ) -> SubAgent {
        SubAgent {
            name: name.into(),
            description: description.into(),
            model: Arc::new(model),
            instructions: None,
            keep: None,
            rights: None,
            limits: AgentLimits::default(),
            run_limits: RunLimits::default(),
            version: None,
        }
    }

    /// Names its version: approvals of tasks hold as long as it is the same. Whoever changes its
    /// model, instructions or tools changes its version.
    #[must_use]
    pub fn version(mut self, version: impl Into<Arc<str>>) -> SubAgent {
        self.version = Some(version.into());
        self
    }

    /// Tells its model what holds for every task.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> SubAgent {
        self.instructions = Some(instructions.into());
        self
    }

    /// Keeps only the tools that pass.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&Spec) -> bool + Send + Sync + 'static) -> SubAgent {
        self.keep = Some(Arc::new(keep));
        self
    }

    /// Lets it do no more than this, and no more than who calls it.
    #[must_use]
    pub fn rights(mut self, rights: Rights) -> SubAgent {
        self.rights = Some(rights);
        self
    }

    /// Sets the limits of its conversation.
    #[must_use]
    pub fn limits(mut self, limits: AgentLimits) -> SubAgent {
        self.limits = limits;
        self
    }

    /// Lowers the limits of its run.
    #[must_use]
    pub fn run_limits(mut self, limits: RunLimits) -> SubAgent {
        self.run_limits = limits;
        self
    }

    /// The tool that gives it a task.
    pub fn tool(self) -> Arc<dyn Tool> {
        let mut spec = Spec::new(self.name.clone(), self.description.clone());
        // Its calls have bounds of their own, and a model may think for long.
        (spec.bounds.wall, spec.bounds.idle) =
            (Bound::At(BATCH_WALL_DEFAULT), Bound::At(BATCH_WALL_DEFAULT));
        // Another attempt at the call goes on with the child of the first.
        spec.effects.repeat = Repeat::Keyed;
        if let Some(version) = &self.version {
            spec.version = version.clone();
        }
        let agent = Arc::new(self);
        tool_fn(spec, move |task: Task, spawn: Spawn| {
            let agent = agent.clone();
            async move { agent.work(task, &spawn).await }
        })
    }

    async fn work(&self, task: Task, spawn: &Spawn) -> Result<String, ToolError> {
        let mut nested = spawn.child()?.limits(self.run_limits);
        if let Some(keep) = &self.keep {
            nested = nested.only(|spec| keep(spec));
        }
        if let Some(names) = task.tools {
            nested = nested.only(|spec| names.iter().any(|name| **name == *spec.name));
        }
        if let Some(rights) = &self.rights {
            nested = nested.rights(rights);
        }
        let (child, is_begun) = match nested.take_up().await {
            Ok(TakenUp::Fresh(child)) => (child, false),
            Ok(TakenUp::Begun(child)) => (child, true),
            Ok(TakenUp::Ended { status: "ended", answer, .. }) => return Ok(said(answer)),
            Ok(TakenUp::Ended { stop, .. }) => return Err(unanswered(&stop)),
            // Somebody else is at it, or the tape has no room: it can be taken up another time.
            Err(ResumeError::Tape(_) | ResumeError::Run(RunError::Tape(_))) if spawn.park() => {
                return Err(ToolError::cancelled());
            }
            Err(err) => {
                let told = "what the sub-agent did before cannot be taken up";
                return Err(ToolError::in_doubt(told).because(err.to_string()));
            }
        };
        let answered = self.go_on(task.task, child, is_begun).await.map_err(failed)?;
        match (answered.stop, answered.text) {
            (Stopped::Answer | Stopped::Vote, text) => Ok(said(text)),
            (Stopped::Cancelled | Stopped::Interrupted, _) => Err(ToolError::cancelled()),
            (Stopped::Paused, _) => {
                spawn.park();
                Err(ToolError::cancelled())
            }
            (stop, _) => Err(unanswered(stop.word())),
        }
    }

    /// Brings a child to its end.
    async fn go_on(
        &self,
        task: String,
        child: Child,
        is_begun: bool,
    ) -> Result<Answered, AgentError> {
        let mut agent = Agent::new(&*self.model, child).limits(self.limits);
        agent.instructions = self.instructions.clone();
        let resumed = match is_begun {
            true => agent.resume().await,
            false => Err(AgentError::Unasked),
        };
        match resumed {
            Err(AgentError::Unasked) => agent.ask(task).await,
            resumed => resumed,
        }
    }
}

/// What the caller reads of a sub-agent that answered.
fn said(text: Option<Arc<str>>) -> String {
    text.map_or_else(|| "done".to_owned(), |text| text.to_string())
}

/// What the caller reads of a sub-agent that stopped without an answer.
fn unanswered(stop: &str) -> ToolError {
    ToolError::tell(format!("stopped without an answer: {stop}"))
}

/// What the caller reads of a sub-agent that could not go on.
fn failed(err: AgentError) -> ToolError {
    match err {
        AgentError::Model(err) => ToolError::tell(format!("the sub-agent's model: {err}")),
        AgentError::Run(err @ RunError::Ended { .. }) => ToolError::tell(err.to_string()),
        err @ (AgentError::Unasked | AgentError::Late | AgentError::Run(_)) => err.into(),
    }
}

/// A task for a sub-agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Task {
    /// What to do, and all that must be known for it: nothing else of this conversation is.
    task: String,
    /// The only tools that the task needs, by name; all of them unless this is given.
    #[serde(default)]
    tools: Option<Vec<String>>,
}

impl Input for Task {
    fn check(&self) -> Result<(), String> {
        match self.task.len() {
            0 => Err("/task: expected something to do".to_owned()),
            bytes if bytes > TASK_BYTES_MAX => {
                Err(format!("/task: expected at most {TASK_BYTES_MAX} bytes, found {bytes}"))
            }
            _ => Ok(()),
        }
    }
}
