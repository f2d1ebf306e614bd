//! The loop: the model takes a turn, the run answers its calls, until it is done.

mod conversation;
mod drive;
mod limits;
mod mend;
mod nested;
mod stall;
mod steer;
mod step;
mod talk;

use std::borrow::Borrow;
use std::sync::Arc;

pub use conversation::Conversation;
pub use limits::{AgentLimits, Price, REPAIRS_DEFAULT, TURNS_DEFAULT};
pub use mend::mend;
pub(crate) use mend::restored;
pub use nested::{SubAgent, TASK_BYTES_MAX};
use serde_json::Value;
pub use stall::{
    FAILURES_DEFAULT, FRUITLESS_DEFAULT, NUDGES_DEFAULT, Patience, REPEATS_DEFAULT, ROUNDS_DEFAULT,
    TARGETS_DEFAULT,
};
pub use steer::{SAID_BYTES_MAX, SAID_MAX, Steer, SteerError};
pub use step::Step;
pub use talk::{Answered, Next, Stopped, Talk};

use crate::history::Window;
use crate::model::{Choice, Model, ModelError};
use crate::run::{Run, RunError};
use crate::schema::{Checker, SchemaError};
use crate::spec::Spec;

/// Which tools a turn is offered, by the turn's number.
type Gate = dyn Fn(u32, &Spec) -> bool + Send + Sync;
/// Whether a turn must propose a call, by the turn's number.
type Chooser = dyn Fn(u32) -> Choice<'static> + Send + Sync;
/// Who watches.
type Watcher = dyn Fn(Step<'_>) + Send + Sync;

/// A model with a run to act through.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Agent, Proposal, Run, Script, Toolbox, Turn, builtin};
///
/// let toolbox = Toolbox::new(builtin::tools()).unwrap();
/// let model = Script::new([
///     Turn::calls([Proposal::new("c1", "hash", r#"{"text":""}"#)]),
///     Turn::answer("It is af1349b9…"),
/// ]);
/// let answered = Agent::new(model, Run::new(&toolbox)).ask("Hash nothing.").await.unwrap();
/// assert_eq!(answered.text.as_deref(), Some("It is af1349b9…"));
/// # });
/// ```
pub struct Agent<M, R = Run> {
    model: M,
    run: R,
    limits: AgentLimits,
    patience: Patience,
    window: Window,
    price: Option<Price>,
    instructions: Option<Arc<str>>,
    gate: Option<Box<Gate>>,
    chooser: Option<Box<Chooser>>,
    watcher: Option<Box<Watcher>>,
    answer: Option<Checker>,
    steer: Steer,
}

impl<M: Model, R: Borrow<Run>> Agent<M, R> {
    /// Joins the two. The run may be a [`Child`](crate::Child), which makes a sub-agent.
    pub fn new(model: M, run: R) -> Agent<M, R> {
        Agent {
            model,
            run,
            limits: AgentLimits::default(),
            patience: Patience::default(),
            window: Window::default(),
            price: None,
            instructions: None,
            gate: None,
            chooser: None,
            watcher: None,
            answer: None,
            steer: Steer::new(),
        }
    }

    /// Sets how many turns the model may take for one question.
    #[must_use]
    pub fn turns_max(mut self, turns: u32) -> Agent<M, R> {
        self.limits.turns = turns;
        self
    }

    /// Sets all limits of the conversation.
    #[must_use]
    pub fn limits(mut self, limits: AgentLimits) -> Agent<M, R> {
        self.limits = limits;
        self
    }

    /// Sets how long a model that gets nowhere is let go on.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Agent<M, R> {
        self.patience = patience;
        self
    }

    /// Sets how much of a long conversation the model is shown.
    #[must_use]
    pub fn window(mut self, window: Window) -> Agent<M, R> {
        self.window = window;
        self
    }

    /// Says what the model's tokens cost, so that it can be counted and limited.
    #[must_use]
    pub fn price(mut self, price: Price) -> Agent<M, R> {
        self.price = Some(price);
        self
    }

    /// Tells the model what holds for the whole conversation.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> Agent<M, R> {
        self.instructions = Some(instructions.into());
        self
    }

    /// Decides which tools each turn is offered. Turns are counted from 1.
    #[must_use]
    pub fn gate(
        mut self,
        gate: impl Fn(u32, &Spec) -> bool + Send + Sync + 'static,
    ) -> Agent<M, R> {
        self.gate = Some(Box::new(gate));
        self
    }

    /// Decides whether each turn must propose a call. Turns are counted from 1.
    ///
    /// A model that answers all the same is told so, until it has to be mended too often.
    #[must_use]
    pub fn choosing(
        mut self,
        chooser: impl Fn(u32) -> Choice<'static> + Send + Sync + 'static,
    ) -> Agent<M, R> {
        self.chooser = Some(Box::new(chooser));
        self
    }

    /// Watches what happens, step by step. Who watches must not wait.
    #[must_use]
    pub fn watch(mut self, watcher: impl Fn(Step<'_>) + Send + Sync + 'static) -> Agent<M, R> {
        self.watcher = Some(Box::new(watcher));
        self
    }

    /// Wants an answer that is a JSON value of this schema. An answer that does not fit is sent
    /// back, with what is wrong about it.
    pub fn answering(mut self, schema: &Value) -> Result<Agent<M, R>, SchemaError> {
        self.answer = Some(Checker::compile(schema)?);
        Ok(self)
    }

    /// Lets somebody else steer.
    #[must_use]
    pub fn steered_by(mut self, steer: &Steer) -> Agent<M, R> {
        self.steer = steer.clone();
        self
    }

    /// The run.
    pub fn run(&self) -> &Run {
        self.run.borrow()
    }

    /// What steers the conversation, to be handed to somebody else.
    pub fn steer(&self) -> Steer {
        self.steer.clone()
    }

    /// Asks, and goes on until the model answers, a limit is reached, the tools vote to stop or the
    /// run is cancelled. The run ends with it.
    ///
    /// Dropping the future leaves a tape that shows how far it came.
    pub async fn ask(&self, question: impl Into<Arc<str>>) -> Result<Answered, AgentError> {
        let mut conversation = self.open();
        let answered = conversation.ask(question).await;
        conversation.close(answered).await
    }

    /// Begins a conversation in which the user asks more than once.
    pub fn open(&self) -> Conversation<'_, M, R> {
        Conversation::new(self)
    }

    /// Goes on with the conversation of a run that was [resumed](Run::resume), to its end.
    ///
    /// Turns that the model took are not asked for again, calls that were settled are not run
    /// again, and what is left of the last turn is done now.
    pub async fn resume(&self) -> Result<Answered, AgentError> {
        let mut conversation = self.open();
        let answered = conversation.resume().await;
        match answered {
            Err(AgentError::Unasked) => Err(AgentError::Unasked),
            answered => conversation.close(answered).await,
        }
    }
}

/// Why an agent could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model took no turn.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The run was asked nothing before, so there is no conversation to go on with.
    #[error("the run was asked nothing yet: ask it")]
    Unasked,
    /// Another conversation can be recalled only before this one begins.
    #[error("the conversation has begun, so that no other can come before it")]
    Late,
    /// The run could not go on.
    #[error(transparent)]
    Run(#[from] RunError),
}
