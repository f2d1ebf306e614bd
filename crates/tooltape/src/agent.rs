//! The loop: the model takes a turn, the run answers its calls, until it is done.

mod talk;

use std::borrow::{Borrow, Cow};
use std::sync::Arc;

pub use talk::{Answered, Next, Stopped, TURNS_DEFAULT, Talk};

use crate::history::Window;
use crate::model::{Message, Model, ModelError};
use crate::run::{Run, RunError};
use crate::spec::Spec;
use crate::tape::{Event, TurnEvent};

/// Which tools a turn is offered, by the turn's number.
type Gate = dyn Fn(u32, &Spec) -> bool + Send + Sync;

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
    turns_max: u32,
    window: Window,
    gate: Option<Box<Gate>>,
}

impl<M: Model, R: Borrow<Run>> Agent<M, R> {
    /// Joins the two. The run may be a [`Child`](crate::Child), which makes a sub-agent.
    pub fn new(model: M, run: R) -> Agent<M, R> {
        let window = Window::default();
        Agent { model, run, turns_max: TURNS_DEFAULT, window, gate: None }
    }

    /// Sets how many turns the model may take for one question.
    #[must_use]
    pub fn turns_max(mut self, turns: u32) -> Agent<M, R> {
        self.turns_max = turns;
        self
    }

    /// Sets how much of a long conversation the model is shown.
    #[must_use]
    pub fn window(mut self, window: Window) -> Agent<M, R> {
        self.window = window;
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

    /// The run.
    pub fn run(&self) -> &Run {
        self.run.borrow()
    }

    /// Asks, and goes on until the model answers, a limit is reached, the tools vote to stop or the
    /// run is cancelled.
    ///
    /// Dropping the future leaves a tape that shows how far it came.
    pub async fn ask(&self, question: impl Into<Arc<str>>) -> Result<Answered, AgentError> {
        let mut talk = Talk::new(question, self.turns_max);
        let answered = self.drive(&mut talk).await;
        let (status, stop, answer) = match &answered {
            Ok(answered) => {
                (answered.stop.status(), answered.stop.word().to_owned(), answered.text.clone())
            }
            Err(err) => ("failed", err.to_string(), None),
        };
        self.run().record_last(Event::RunEnded { status, stop, answer }).await?;
        answered
    }

    async fn drive(&self, talk: &mut Talk) -> Result<Answered, AgentError> {
        if let Some(Message::User(text)) = talk.messages().first() {
            self.run().record(Event::Asked { text: text.clone() })?;
        }
        let mut next = talk.begin();
        let mut offer = self.offer(talk);
        loop {
            next = match next {
                Next::Model => {
                    offer = self.offer(talk);
                    // Most conversations fit, and then nobody looks at all of them again.
                    let shown = match talk.bytes() <= self.window.bytes {
                        true => Cow::Borrowed(talk.messages()),
                        false => self.window.show(talk.messages(), |name| offer.history(name)),
                    };
                    let turn = tokio::select! {
                        biased;
                        () = self.run().cancelled() => return Ok(talk.cancelled()),
                        turn = self.model.turn(&shown, &offer) => turn?,
                    };
                    let event =
                        TurnEvent::new(turn.text.clone(), &turn.proposals, turn.stop.word());
                    self.run().record(Event::Turn(event))?;
                    talk.turn(turn)
                }
                // A late call resolves against the offer that advertised it.
                Next::Calls(proposals) => talk.replies(self.run().answer(&offer, proposals).await?),
                Next::Stop(answered) => return Ok(answered),
            };
        }
    }

    fn offer(&self, talk: &Talk) -> crate::toolbox::Offer {
        match &self.gate {
            None => self.run().offer_all(),
            Some(gate) => self.run().offer(|spec| gate(talk.turns() + 1, spec)),
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
    /// The run could not go on.
    #[error(transparent)]
    Run(#[from] RunError),
}
