//! A conversation between a user, a model and a run, as far as it has come.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::mend::{Discreet, mend, recalled, restored};
use super::stall::{Stall, Stalls};
use super::{Agent, AgentError, Answered, Next, Stopped, Talk};
use crate::builtin;
use crate::fault::FaultKind;
use crate::id::{CallNo, Name};
use crate::label::Label;
use crate::model::{Message, Model, Usage, again};
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::run::{Run, RunError, Said};
use crate::tape::{Backlog, Event, Nudge, Subscription};
use crate::toolbox::Offer;

/// A conversation in which the user may ask more than once.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Agent, Run, Script, Toolbox, Turn};
///
/// let model = Script::new([Turn::answer("Hello."), Turn::answer("Goodbye.")]);
/// let agent = Agent::new(model, Run::new(&Toolbox::default()));
/// let mut conversation = agent.open();
/// conversation.ask("Say hello.").await.unwrap();
/// let last = conversation.ask("And now?").await;
/// let last = conversation.close(last).await.unwrap();
/// assert_eq!((last.text.as_deref(), last.turns), (Some("Goodbye."), 2));
/// # });
/// ```
pub struct Conversation<'a, M, R = Run> {
    pub(super) agent: &'a Agent<M, R>,
    pub(super) talk: Talk,
    stalls: Stalls,
    /// The turns in a row that had to be mended.
    pub(super) repairs: u32,
    /// The deferred tools that the model has found, as it found them.
    pub(super) found: Vec<Name>,
    /// What is to be done about the last batch, if it got nowhere.
    pub(super) stalled: Option<Stall>,
    /// What the last turn was offered. A late call resolves against it.
    pub(super) offer: Offer,
    pub(super) records: Option<Subscription>,
    /// When the question was asked.
    began_us: u64,
}

impl<'a, M: Model, R: Borrow<Run>> Conversation<'a, M, R> {
    pub(super) fn new(agent: &'a Agent<M, R>) -> Conversation<'a, M, R> {
        agent.run().ledger().limit(agent.limits.tokens, agent.limits.cost);
        let records = agent.watcher.as_ref().map(|_| agent.run().subscribe(Backlog::default()));
        Conversation {
            agent,
            talk: Talk::after(Vec::new(), agent.limits.turns),
            stalls: Stalls::new(agent.patience),
            repairs: 0,
            found: Vec::new(),
            stalled: None,
            offer: agent.run().offer_all(),
            records,
            began_us: agent.run().now_us(),
        }
    }

    /// Everything said so far.
    pub fn messages(&self) -> &[Message] {
        self.talk.messages()
    }

    /// Goes on from a conversation that took place elsewhere, [mended](crate::mend) where no
    /// provider would take it. It comes before the first question.
    ///
    /// Nobody here knows what its results were made from, so that they are labelled untrusted.
    pub fn recall(&mut self, messages: Vec<Message>) -> Result<(), AgentError> {
        if !self.messages().is_empty() {
            return Err(AgentError::Late);
        }
        let offer = self.run().offer_all();
        let messages = recalled(&mend(messages), &Discreet { run: self.run(), offer: &offer });
        self.run().show_label(&Label::untrusted("history"));
        self.run().record(Event::Recalled { messages: messages.clone() })?;
        self.talk = Talk::after(restored(&messages), self.agent.limits.turns);
        Ok(())
    }

    /// Asks, and goes on until the model answers, a limit is reached, the tools vote to stop or
    /// somebody interrupts or cancels. The run goes on.
    pub async fn ask(&mut self, question: impl Into<Arc<str>>) -> Result<Answered, AgentError> {
        // What was said before the question comes before it; the first question opens the run.
        if !self.messages().is_empty() {
            self.hear()?;
        }
        let question = self.run().discreet_text(question.into());
        self.run().record(Event::Asked { text: question.clone() })?;
        self.began_us = self.run().now_us();
        // What interrupted nothing is not meant for this question.
        self.agent.steer.take_interrupt();
        self.stalls = Stalls::new(self.agent.patience);
        let next = self.talk.ask(question);
        self.drive(next).await
    }

    /// Goes on with the conversation of a run that was [resumed](Run::resume).
    pub async fn resume(&mut self) -> Result<Answered, AgentError> {
        let said = self.run().said().to_vec();
        if !said.iter().any(|said| matches!(said, Said::Asked(_))) {
            return Err(AgentError::Unasked);
        }
        let mut next = Next::Model;
        for said in said {
            match said {
                Said::Recalled(messages) => {
                    self.talk = Talk::after(restored(&messages), self.agent.limits.turns);
                }
                Said::Asked(text) => {
                    self.stalls = Stalls::new(self.agent.patience);
                    next = self.talk.ask(text);
                }
                Said::Meanwhile(text) => {
                    self.talk.say(text);
                    next = self.talk.begin();
                }
                Said::Nudged(nudge) => {
                    self.nudged_before(&nudge);
                    self.talk.say(nudge.text);
                    next = self.talk.begin();
                }
                Said::Turn(turn, first) => {
                    self.stalled = None;
                    self.offer = self.offer_now();
                    let turn = again(&turn);
                    self.count(turn.usage);
                    next = self.talk.turn(turn);
                    if let Next::Calls(proposals) = next {
                        let proposals = (first..).map(CallNo).zip(proposals).collect();
                        next = match self.answer_rest(proposals).await? {
                            Some(replies) => self.took(replies),
                            None => return self.drive(Next::Stop(self.talk.paused())).await,
                        };
                    }
                }
            }
        }
        if let Next::Model = next {
            next = self.nudge_if_stalled()?;
        }
        self.drive(next).await
    }

    /// The model was told something, as the tape says.
    fn nudged_before(&mut self, nudge: &Nudge) {
        match nudge.why {
            "answer" | "choice" => self.repairs = nudge.times,
            _ => {
                if self.stalled.take().is_none() {
                    self.stalls.told();
                }
            }
        }
    }

    /// Counts what a turn cost, for everybody above, too.
    pub(super) fn count(&self, usage: Usage) {
        let cost = self.agent.price.map_or(0, |price| price.of(usage));
        self.run().ledger().add(usage, cost);
    }

    /// What calls of a turn before came to, or come to now. `None` where somebody must answer.
    async fn answer_rest(
        &mut self,
        proposals: BTreeMap<CallNo, Proposal>,
    ) -> Result<Option<Vec<Reply>>, AgentError> {
        let run = self.run();
        let before = proposals.keys().map(|call| run.settled_before(*call));
        match before.collect::<Option<Vec<_>>>() {
            Some(replies) => Ok(Some(replies)),
            None => match run.answer_rest(&self.offer, proposals).await {
                Ok(replies) => Ok(Some(replies)),
                Err(RunError::Paused { .. }) => Ok(None),
                Err(err) => Err(err.into()),
            },
        }
    }

    /// Puts on the tape how the run ended; or that it is paused, where its model could not be
    /// reached.
    pub async fn close(
        self,
        answered: Result<Answered, AgentError>,
    ) -> Result<Answered, AgentError> {
        // What a tape has no room for, or no power over, is no end: the run can be resumed.
        if answered.is_err() && self.run().was_refused() {
            return answered;
        }
        // Whoever gave a task is told that it failed, and may give it again.
        if let Err(AgentError::Model(err)) = &answered
            && err.is_passing()
            && !self.run().is_nested()
        {
            self.run().record_last(Event::RunPaused { why: err.to_string() }).await?;
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

    /// The replies are in the conversation, and what follows from them is known.
    pub(super) fn took(&mut self, replies: Vec<Reply>) -> Next {
        let is_repair = |reply: &Reply| {
            reply.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Repair)
        };
        match replies.iter().all(is_repair) {
            true => self.repairs += 1,
            false => self.repairs = 0,
        }
        for name in replies.iter().flat_map(found) {
            if !self.found.contains(&name) {
                self.found.push(name);
            }
        }
        self.stalled = self.stalls.see(&replies);
        self.talk.replies(replies)
    }

    /// How much time is left for the question.
    pub(super) fn left(&self) -> Duration {
        let spent = self.run().now_us().saturating_sub(self.began_us);
        self.agent.limits.wall.saturating_sub(Duration::from_micros(spent))
    }

    pub(super) fn run(&self) -> &'a Run {
        self.agent.run()
    }
}

/// The tools that a search has found.
fn found(reply: &Reply) -> Vec<Name> {
    if *reply.name != *builtin::TOOL_SEARCH || reply.is_error {
        return Vec::new();
    }
    let value = reply.value.as_ref().and_then(|it| serde_json::from_str(it.as_str()).ok());
    let hits: Vec<builtin::Hit> = value.unwrap_or_default();
    hits.iter().filter_map(|hit| Name::new(&hit.name).ok()).collect()
}
