//! What an agent plays on: the tape that tells, who is asked, and how it is stopped.

use std::sync::Arc;

use tooltape::{Agent, CallNo, InDoubt, Model, Rules, Run, RunId, Script};

use super::ending::{Summary, conclude, problem};
use crate::approve::{Asked, Desk, Unasked};
use crate::args::How;
use crate::card::Setting;
use crate::commands::Context;
use crate::config::Layers;
use crate::exit::Exit;
use crate::interrupt::{Stop, over};
use crate::kept::Kept;
use crate::narrate::{Narrated, Telling};
use crate::out::Format;
use crate::pace::Paced;
use crate::report::Result;
use crate::saved::Saved;
use crate::workspace::Opened;

/// Where one run of an agent is played.
pub(crate) struct Stage<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) how: &'a How,
    pub(crate) kept: Kept,
    pub(crate) id: RunId,
    pub(crate) tape: Narrated,
    pub(crate) stop: Stop,
    /// The calls that are done again, though they may have happened.
    pub(crate) again: Vec<CallNo>,
    /// The calls of nested runs that were in doubt when the run was resumed.
    pub(crate) below: Vec<InDoubt>,
}

/// What the agent does first.
pub(crate) enum First {
    /// It is asked this.
    Ask(String),
    /// It goes on with its conversation.
    GoOn,
}

impl<'a> Stage<'a> {
    /// From here on, Ctrl-C cancels the run.
    pub(crate) async fn new(
        context: &'a Context<'a>,
        how: &'a How,
        kept: Kept,
        id: RunId,
    ) -> Stage<'a> {
        let telling = if how.jsonl { Telling::Events } else { Telling::Lines };
        let tape = Narrated::new(kept.tape.clone(), id, context.out, telling);
        let stop = Stop::listen().await;
        Stage { context, how, kept, id, tape, stop, again: Vec::new(), below: Vec::new() }
    }

    /// Gives a run its policy, its tape, and somebody to ask.
    pub(crate) fn dress(&self, run: Run, policy: Rules, desk: (Setting, Saved)) -> Run {
        let run = run.policy(policy).tape(self.tape.clone());
        let (setting, saved) = desk;
        let desk = Desk {
            out: self.context.out,
            stop: &self.stop,
            setting,
            saved,
            unasked: Unasked::Waits,
            again: self.again.clone(),
        };
        Asked::new(self.how.yes).approve(run, desk)
    }

    /// Joins a run with the script that it plays.
    pub(crate) fn agent(&self, layers: &Layers, run: Run, script: Script) -> Agent<Paced<Script>> {
        let model = Paced { model: script, pace: self.how.pace.unwrap_or_default() };
        let agent = Agent::new(model, run);
        match layers.find("agent.turns", |config| config.agent.turns) {
            Some(turns) => agent.turns_max(turns.value.get()),
            None => agent,
        }
    }

    /// Plays, and tells how it went.
    pub(crate) async fn play<M: Model + 'static>(
        self,
        agent: Agent<M>,
        first: First,
        workspace: &Opened,
        again: Option<&str>,
    ) -> Result<Exit> {
        let agent = Arc::new(agent);
        let work = tokio::spawn({
            let agent = agent.clone();
            async move {
                match first {
                    First::Ask(question) => agent.ask(question).await,
                    First::GoOn => agent.resume().await,
                }
            }
        });
        let cancel = || agent.run().cancel();
        let waited = self.stop.wait(work, over(self.how.timeout), cancel).await;
        let Stage { context, how, kept, id, tape, below, .. } = self;
        let summary = Summary::new(id, &kept.path, tape.tally(), below, waited.cause);
        match (how.jsonl, context.out.format, &summary.answer) {
            (true, _, _) => {}
            (false, Format::Json, _) => context.out.json(&summary)?,
            (false, Format::Text, Some(answer)) => context.out.data(answer)?,
            (false, Format::Text, None) => {}
        }
        match problem(&kept, &summary, &waited, &context.tape_flag()) {
            Some(problem) => Err(problem),
            None => {
                conclude(context.out, &summary, workspace, again, &context.tape_flag());
                Ok(Exit::Done)
            }
        }
    }
}
