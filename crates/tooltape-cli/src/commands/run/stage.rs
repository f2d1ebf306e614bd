//! What an agent plays on: the tape that tells, who is asked, and how it is stopped.

use std::sync::Arc;

use tooltape::{
    Agent, AgentError, AgentLimits, Answered, CallNo, InDoubt, Model, Patience, Rules, Run, RunId,
};

use super::ending::{Answer, Summary, conclude, problem};
use super::introduce;
use crate::approve::{Asked, Desk, Unasked};
use crate::args::How;
use crate::card::Setting;
use crate::commands::Context;
use crate::config::Layers;
use crate::exit::Exit;
use crate::host::{Prepared, check_grants};
use crate::interrupt::{Stop, Waited, over};
use crate::kept::Kept;
use crate::live::Live;
use crate::narrate::{Narrated, Telling};
use crate::origin::Origin;
use crate::out::Format;
use crate::pace::Paced;
use crate::provider::Chosen;
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

/// Who plays: a run as it was prepared, where it comes from, and its model.
pub(crate) struct Cast<'l> {
    pub(crate) layers: &'l Layers,
    pub(crate) prepared: Prepared,
    pub(crate) origin: Origin,
    pub(crate) model: Chosen,
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

    /// The stage of a new run, with its agent, and the folder that it works in.
    pub(crate) async fn open(
        context: &'a Context<'a>,
        how: &'a How,
        kept: Kept,
        cast: Cast<'_>,
    ) -> Result<(Stage<'a>, Agent<Paced<Chosen>>, Opened)> {
        let Cast { layers, prepared, origin, model } = cast;
        let Prepared { id, run, policy, workspace, setting, saved } = prepared;
        let run = run.note(origin.note()).grant(kept.artifacts()?);
        // A file that cannot be read is told before anything runs.
        saved.entries()?;
        let stage = Stage::new(context, how, kept, id).await;
        let agent = stage.agent(layers, stage.dress(run, policy, (setting, saved)), model);
        check_grants(agent.run())?;
        introduce(context, id, &workspace);
        Ok((stage, agent, workspace))
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
            again: self.again.iter().map(|call| (self.id, *call)).collect(),
        };
        Asked::new(self.how.yes).approve(run, desk)
    }

    /// Joins a run with the model that it asks.
    pub(crate) fn agent(&self, layers: &Layers, run: Run, model: Chosen) -> Agent<Paced<Chosen>> {
        let live = Live::new(self.context.out, model.name(), self.how.jsonl);
        self.tape.show(&live);
        let mut limits = AgentLimits::default();
        if let Some(turns) = layers.find("agent.turns", |config| config.agent.turns) {
            limits.turns = turns.value.get();
        }
        if let Some(tokens) = layers.find("agent.tokens", |config| config.agent.tokens) {
            limits.tokens = tokens.value.get().into();
        }
        let patience = match &model {
            // A script does what it says, and is not stuck before it is over.
            Chosen::Script(_) => {
                Patience { repeats: 0, rounds: 0, fruitless: 0, ..Patience::default() }
            }
            Chosen::Http(_) => Patience::default(),
        };
        let model = Paced { model, pace: self.how.pace.unwrap_or_default() };
        let agent = Agent::new(model, run).limits(limits).patience(patience);
        let agent = agent.watch(move |step| live.see(step));
        match layers.find("agent.instructions", |config| config.agent.instructions.clone()) {
            Some(found) => agent.instructions(found.value),
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
        let waiting = self.stop.wait(work, over(self.how.timeout), cancel);
        let waited = tokio::select! {
            waited = waiting => waited,
            never = self.tape.renew() => match never {},
        };
        self.tape.clear();
        self.end(&waited, workspace, again)
    }

    /// Tells how a session went, whose turns were told already.
    pub(crate) fn finish(
        self,
        answered: std::result::Result<Answered, AgentError>,
    ) -> Result<Exit> {
        let Stage { context, kept, id, tape, below, .. } = self;
        let waited = Waited { done: Some(answered), cause: None };
        let summary = Summary::new(id, &kept.path, tape.tally(), below, None);
        if context.out.format == Format::Json {
            context.out.json(&summary)?;
        }
        match problem(&kept, &summary, &waited, &context.tape_flag()) {
            Some(problem) => Err(problem),
            None => Ok(Exit::Done),
        }
    }

    fn end(self, waited: &Waited<Answer>, workspace: &Opened, again: Option<&str>) -> Result<Exit> {
        let Stage { context, how, kept, id, tape, below, .. } = self;
        let summary = Summary::new(id, &kept.path, tape.tally(), below, waited.cause);
        match (how.jsonl, context.out.format, &summary.answer) {
            (true, _, _) => {}
            (false, Format::Json, _) => context.out.json(&summary)?,
            (false, Format::Text, Some(answer)) => context.out.data(answer)?,
            (false, Format::Text, None) => {}
        }
        match problem(&kept, &summary, waited, &context.tape_flag()) {
            Some(problem) => Err(problem),
            None => {
                conclude(context.out, &summary, workspace, again, &context.tape_flag());
                Ok(Exit::Done)
            }
        }
    }
}
