//! Drives a conversation: turns, calls, and what somebody says in between.

use std::borrow::{Borrow, Cow};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::sleep;

use super::conversation::Conversation;
use super::stall::Stall;
use super::step::Passing;
use super::{Agent, AgentError, Answered, Next, Step, Stopped};
use crate::canon::{Doc, Limits};
use crate::model::{Choice, Delta, Model, Request, Turn};
use crate::proposal::Proposal;
use crate::run::{Canceller, Run, RunError, Spent};
use crate::schema::Checker;
use crate::tape::{Event, Nudge, Seen, Subscription};
use crate::toolbox::Offer;
use crate::verbatim::Verbatim;

impl<M: Model, R: Borrow<Run>> Conversation<'_, M, R> {
    pub(super) async fn drive(&mut self, mut next: Next) -> Result<Answered, AgentError> {
        loop {
            next = match next {
                Next::Model => self.turn().await?,
                Next::Calls(proposals) => self.calls(proposals).await?,
                Next::Stop(answered) => match self.over(answered)? {
                    Next::Stop(answered) => return Ok(answered),
                    next @ (Next::Model | Next::Calls(_)) => next,
                },
            };
        }
    }

    /// The model takes a turn.
    async fn turn(&mut self) -> Result<Next, AgentError> {
        let agent = self.agent;
        let (run, steer) = (agent.run(), &agent.steer);
        tokio::select! {
            biased;
            () = run.cancelled() => return Ok(Next::Stop(self.talk.cancelled())),
            () = steer.released() => {}
            () = sleep(self.left()) => return Ok(self.stop(Stopped::Time)),
        }
        self.hear()?;
        if let Some(stop) = self.exceeded() {
            return Ok(self.stop(stop));
        }
        self.offer = self.offer_now();
        let nth = self.talk.turns() + 1;
        self.tell(Step::Asked(nth));
        // Most conversations fit, and then nobody looks at all of them again.
        let shown = match self.talk.bytes() <= agent.window.bytes {
            true => Cow::Borrowed(self.talk.messages()),
            false => agent.window.show(self.talk.messages(), |name| self.offer.history(name)),
        };
        let passing = agent.watcher.as_deref().map(|it| Passing::new(it, run.redactor()));
        let listener = |delta: Delta<'_>| passing.iter().for_each(|it| it.pass(delta));
        let mut request = Request::new(&shown, &self.offer)
            .instructed(agent.instructions.as_deref())
            .choosing(self.choice(nth))
            .answering(agent.answer.as_ref().map(Checker::schema))
            .writing_at_most(agent.limits.output_tokens);
        if passing.is_some() {
            request = request.listening(&listener);
        }
        let turn = tokio::select! {
            biased;
            () = run.cancelled() => return Ok(Next::Stop(self.talk.cancelled())),
            () = steer.interrupted() => None,
            () = sleep(self.left()) => {
                return Ok(self.stop(Stopped::Time));
            }
            turn = agent.model.turn(&request) => Some(turn?),
        };
        passing.into_iter().for_each(Passing::finish);
        match turn {
            None => self.interrupted(),
            Some(turn) => {
                let turn = self.discreet(turn);
                self.count(turn.usage);
                run.record(Event::Turn(turn.event()))?;
                self.tell(Step::Turn(&turn));
                Ok(self.talk.turn(turn))
            }
        }
    }

    /// The run answers what the model proposed.
    async fn calls(&mut self, proposals: Vec<Proposal>) -> Result<Next, AgentError> {
        let agent = self.agent;
        let canceller = Canceller::new();
        let most = agent.limits.calls.saturating_sub(self.talk.calls());
        let is_over = proposals.len() as u64 > most;
        let mut is_late = false;
        let replies = {
            let answering = agent.run().answer_some(most, &canceller, &self.offer, proposals);
            let mut answering = pin!(answering);
            let mut late = pin!(sleep(self.left()));
            loop {
                tokio::select! {
                    biased;
                    replies = answering.as_mut() => break replies,
                    () = late.as_mut(), if !is_late => {
                        is_late = true;
                        canceller.cancel();
                    }
                    () = agent.steer.interrupted(), if !canceller.is_cancelled() => {
                        canceller.cancel();
                    }
                    calls = agent.steer.calls() => {
                        calls.into_iter().for_each(|call| agent.run().cancel_call(call));
                    }
                    seen = next_of(&mut self.records) => pass(agent, &seen),
                }
            }
        };
        while let Some(seen) = next_of(&mut self.records).now_or_never() {
            pass(agent, &seen);
        }
        let next = match replies {
            Ok(replies) => self.took(replies),
            Err(RunError::Paused { .. }) => return Ok(Next::Stop(self.talk.paused())),
            Err(err) => return Err(err.into()),
        };
        match next {
            Next::Model if is_late => Ok(self.stop(Stopped::Time)),
            Next::Model if is_over => Ok(self.stop(Stopped::Calls)),
            Next::Model if canceller.is_cancelled() => self.interrupted(),
            Next::Model => self.nudge_if_stalled(),
            next @ (Next::Calls(_) | Next::Stop(_)) => Ok(next),
        }
    }

    /// The conversation is over, unless somebody has something to say about its answer.
    fn over(&mut self, mut answered: Answered) -> Result<Next, AgentError> {
        answered.usage = self.run().ledger().usage();
        answered.cost = self.agent.price.map(|_| self.run().ledger().cost());
        if answered.stop != Stopped::Answer {
            return Ok(Next::Stop(answered));
        }
        if self.hear()? {
            return Ok(self.talk.begin());
        }
        match self.choice(self.talk.turns()) {
            Choice::Auto | Choice::None => {}
            Choice::Required => return self.mend("choice", "Call a tool before you answer."),
            Choice::Tool(name) => {
                return self.mend("choice", &format!("Call `{name}` before you answer."));
            }
        }
        let Some(checker) = &self.agent.answer else { return Ok(Next::Stop(answered)) };
        let text = answered.text.as_deref().unwrap_or_default();
        match fitting(checker, text) {
            Ok(value) => {
                answered.value = Some(value);
                self.repairs = 0;
                Ok(Next::Stop(answered))
            }
            Err(why) => {
                let told = format!("Answer with nothing but JSON that fits its schema: {why}");
                self.mend("answer", &told)
            }
        }
    }

    /// The model did not do what it was asked for, and is told so.
    fn mend(&mut self, why: &'static str, told: &str) -> Result<Next, AgentError> {
        self.repairs += 1;
        if self.repairs > self.agent.limits.repairs {
            return Ok(self.stop(Stopped::Repairs));
        }
        let text = format!("[tooltape] {told}").into();
        self.nudge(Nudge { why, tool: None, times: self.repairs, text })
    }

    /// The model is told if it gets nowhere.
    pub(super) fn nudge_if_stalled(&mut self) -> Result<Next, AgentError> {
        match self.stalled.take() {
            None => Ok(Next::Model),
            Some(Stall::Nudge(nudge)) => self.nudge(nudge),
            Some(Stall::End) => Ok(self.stop(Stopped::Stalled)),
        }
    }

    fn nudge(&mut self, nudge: Nudge) -> Result<Next, AgentError> {
        self.run().record(Event::Nudged(nudge.clone()))?;
        self.tell(Step::Nudged(&nudge));
        self.talk.say(nudge.text);
        Ok(self.talk.begin())
    }

    /// Somebody interrupted the turn: it goes on with what was said, or ends.
    fn interrupted(&mut self) -> Result<Next, AgentError> {
        self.agent.steer.take_interrupt();
        match self.hear()? {
            true => Ok(self.talk.begin()),
            false => Ok(self.stop(Stopped::Interrupted)),
        }
    }

    /// Hears what was said meanwhile, and says whether anything was.
    pub(super) fn hear(&mut self) -> Result<bool, AgentError> {
        let said = self.agent.steer.take_said();
        for text in &said {
            let text = self.run().discreet_text(text.clone());
            self.run().record(Event::Said { text: text.clone() })?;
            self.tell(Step::Said(&text));
            self.talk.say(text);
        }
        Ok(!said.is_empty())
    }

    /// The limit that is reached, if one is.
    fn exceeded(&self) -> Option<Stopped> {
        match self.run().ledger().used_up() {
            Some(Spent::Tokens) => return Some(Stopped::Tokens),
            Some(Spent::Cost) => return Some(Stopped::Cost),
            None => {}
        }
        let reached = [
            (self.repairs > self.agent.limits.repairs, Stopped::Repairs),
            (self.left().is_zero(), Stopped::Time),
        ];
        reached.into_iter().find_map(|(is_reached, stop)| is_reached.then_some(stop))
    }

    fn stop(&self, stop: Stopped) -> Next {
        Next::Stop(self.talk.answered(None, stop))
    }

    fn choice(&self, turn: u32) -> Choice<'static> {
        self.agent.chooser.as_ref().map_or(Choice::Auto, |chooser| chooser(turn))
    }

    pub(super) fn offer_now(&self) -> Offer {
        let offer = match &self.agent.gate {
            None => self.run().offer_all(),
            Some(gate) => self.run().offer(|spec| gate(self.talk.turns() + 1, spec)),
        };
        offer.finding(&self.found)
    }

    /// A turn as it may be written down, and shown to the model again.
    fn discreet(&self, turn: Turn) -> Turn {
        let run = self.run();
        // What its provider signed cannot be changed, so it is kept whole or not at all.
        let is_discreet = |it: &Arc<Verbatim>| it.opaque().all(|json| run.is_discreet(json));
        let verbatim = turn.verbatim.filter(is_discreet);
        let text = turn.text.map(|text| run.discreet_text(text));
        let proposals = turn.proposals.into_iter();
        let proposals = proposals.map(|it| run.discreet(&self.offer, it)).collect();
        Turn { text, proposals, verbatim, ..turn }
    }

    fn tell(&self, step: Step<'_>) {
        if let Some(watcher) = &self.agent.watcher {
            watcher(step);
        }
    }
}

/// An answer as a value, or what is wrong with it.
fn fitting(checker: &Checker, text: &str) -> Result<serde_json::Value, String> {
    let doc = Doc::read(text.trim(), &Limits::default()).map_err(|err| err.to_string())?;
    checker.check(&doc).map_err(|err| err.to_string())?;
    serde_json::from_str(text).map_err(|err| err.to_string())
}

/// What was seen next, by whoever watches.
async fn next_of(records: &mut Option<Subscription>) -> Seen {
    if let Some(subscription) = records {
        if let Some(seen) = subscription.next().await {
            return seen;
        }
        *records = None;
    }
    pending().await
}

/// Passes on what happened with a call.
fn pass<M, R>(agent: &Agent<M, R>, seen: &Seen) {
    if let (Some(watcher), Seen::Record(record)) = (&agent.watcher, seen)
        && record.event.call().is_some()
    {
        watcher(Step::Record(record));
    }
}
