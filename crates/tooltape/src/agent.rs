//! The loop: the model takes a turn, the run answers its calls, until it is done.

mod talk;

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use talk::{Answered, Next, Stopped, TURNS_DEFAULT, Talk};

use crate::history::Window;
use crate::id::CallNo;
use crate::model::{Message, Model, ModelError, Turn, again};
use crate::run::{Run, RunError, Said};
use crate::spec::Spec;
use crate::tape::{Event, TurnEvent};
use crate::toolbox::Offer;

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
        let question = self.run().discreet_text(question.into());
        let mut talk = Talk::new(question, self.turns_max);
        let answered = self.begin(&mut talk).await;
        self.end(answered).await
    }

    /// Puts on the tape how the run ended.
    async fn end(&self, answered: Result<Answered, AgentError>) -> Result<Answered, AgentError> {
        // What a tape has no room for, or no power over, is no end: the run can be resumed.
        if answered.is_err() && self.run().was_refused() {
            return answered;
        }
        let (status, stop, answer) = match &answered {
            // The tape says already that it waits.
            Ok(paused) if paused.stop == Stopped::Paused => return answered,
            Ok(answered) => {
                (answered.stop.status(), answered.stop.word().to_owned(), answered.text.clone())
            }
            Err(err) => ("failed", err.to_string(), None),
        };
        self.run().record_last(Event::RunEnded { status, stop, answer }).await?;
        answered
    }

    /// Goes on with the conversation of a run that was [resumed](Run::resume).
    ///
    /// Turns that the model took are not asked for again, calls that were settled are not run
    /// again, and what is left of the last turn is done now.
    pub async fn resume(&self) -> Result<Answered, AgentError> {
        let run = self.run();
        let Some((Said::Asked(question), turns)) = run.said().split_first() else {
            return Err(AgentError::Unasked);
        };
        let mut talk = Talk::new(question.clone(), self.turns_max);
        let mut next = talk.begin();
        for said in turns {
            let Said::Turn(turn, first) = said else { continue };
            let offer = self.offer(&talk);
            next = talk.turn(again(turn));
            if let Next::Calls(proposals) = next {
                let numbers = (*first..).map(CallNo);
                let proposals: BTreeMap<_, _> = numbers.zip(proposals).collect();
                let before = proposals.keys().map(|call| run.settled_before(*call));
                let replies = match before.collect::<Option<Vec<_>>>() {
                    Some(replies) => replies,
                    None => match run.answer_rest(&offer, proposals).await {
                        Ok(replies) => replies,
                        Err(RunError::Paused { .. }) => return Ok(talk.paused()),
                        Err(err) => return self.end(Err(err.into())).await,
                    },
                };
                next = talk.replies(replies);
            }
        }
        let answered = self.drive(&mut talk, next).await;
        self.end(answered).await
    }

    async fn begin(&self, talk: &mut Talk) -> Result<Answered, AgentError> {
        if let Some(Message::User(text)) = talk.messages().first() {
            self.run().record(Event::Asked { text: text.clone() })?;
        }
        let next = talk.begin();
        self.drive(talk, next).await
    }

    async fn drive(&self, talk: &mut Talk, mut next: Next) -> Result<Answered, AgentError> {
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
                    let turn = self.discreet(turn, &offer);
                    let event =
                        TurnEvent::new(turn.text.clone(), &turn.proposals, turn.stop.word())
                            .costing(turn.usage.input_tokens, turn.usage.output_tokens);
                    self.run().record(Event::Turn(event))?;
                    talk.turn(turn)
                }
                // A late call resolves against the offer that advertised it.
                Next::Calls(proposals) => match self.run().answer(&offer, proposals).await {
                    Ok(replies) => talk.replies(replies),
                    Err(RunError::Paused { .. }) => return Ok(talk.paused()),
                    Err(err) => return Err(err.into()),
                },
                Next::Stop(answered) => return Ok(answered),
            };
        }
    }

    /// A turn as it may be written down, and shown to the model again.
    fn discreet(&self, turn: Turn, offer: &Offer) -> Turn {
        let text = turn.text.map(|text| self.run().discreet_text(text));
        let proposals = turn.proposals.into_iter();
        let proposals = proposals.map(|it| self.run().discreet(offer, it)).collect();
        Turn { text, proposals, ..turn }
    }

    fn offer(&self, talk: &Talk) -> Offer {
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
    /// The run was asked nothing before, so there is no conversation to go on with.
    #[error("the run was asked nothing yet: ask it")]
    Unasked,
    /// The run could not go on.
    #[error(transparent)]
    Run(#[from] RunError),
}
