//! The program's tools and grants, and the runs made of them.

use std::path::Path;
use std::sync::Arc;

use tooltape::{Clock, Missing, Random, Rights, Run, RunId, Tool, Toolbox};

use crate::config::{Found, Layers, Rank};
use crate::exit::Exit;
use crate::origin::Origin;
use crate::policy::{Stated, StatedRights};
use crate::report::{Problem, Result};
use crate::touches;
use crate::workspace::{self, Copying, Opened};

/// Hands a run something that the program's tools need.
pub(crate) type GrantTo = Box<dyn Fn(Run) -> Run>;

/// What the program brings along.
pub(crate) struct Host {
    tools: Toolbox,
    grants: Vec<GrantTo>,
}

/// What a run is made of.
pub(crate) struct Prepared {
    pub(crate) id: RunId,
    pub(crate) run: Run,
    pub(crate) policy: Stated,
    pub(crate) workspace: Opened,
}

/// A run that works in a folder, and the policy to give it.
pub(crate) struct InPlace {
    pub(crate) run: Run,
    pub(crate) policy: Stated,
}

/// What a run is played again with.
pub(crate) struct Rehearsal {
    pub(crate) run: Run,
    pub(crate) policy: Stated,
    pub(crate) toolbox: Toolbox,
}

impl Host {
    /// The tools in the box, and behind them the program's own.
    pub(crate) fn new(
        own: impl IntoIterator<Item = Arc<dyn Tool>>,
        grants: Vec<GrantTo>,
    ) -> Result<Host> {
        let builtin = tooltape::builtin::tools().into_iter();
        let builtin = builtin.chain([tooltape::builtin::read_artifact()]);
        let tools = builtin.chain(tooltape_kit::tools()).chain(own);
        let tools = Toolbox::new(tools).map_err(|err| {
            Problem::new(Exit::Unexpected, "tool.refused", err.to_string())
                .hint("mend the tool's declaration in the program that brings it")
        })?;
        Ok(Host { tools, grants })
    }

    /// The tools that the configuration leaves.
    pub(crate) fn toolbox(&self, layers: &Layers) -> Result<Toolbox> {
        for name in layers.all("tools.allow", |config| config.tools.allow.as_ref()) {
            self.check_named(&name)?;
        }
        let mut toolbox = self.tools.clone();
        for allowed in layers.narrowed("tools.allow", |config| config.tools.allow.clone()) {
            let unnamed = |name: &&str| !allowed.value.iter().any(|allowed| allowed == name);
            for name in self.tools.names().filter(unnamed) {
                toolbox.remove(name);
            }
        }
        for disabled in layers.all("tools.disable", |config| config.tools.disable.as_ref()) {
            self.check_named(&disabled)?;
            toolbox.remove(disabled.value);
        }
        touches::apply(layers, &self.tools, &mut toolbox)?;
        Ok(toolbox)
    }

    /// A mistyped name must not leave a tool where none should be.
    fn check_named(&self, name: &Found<'_, &String>) -> Result {
        // A user's lists are for all programs, and not every program has every tool.
        let is_known = self.tools.get(name.value).is_some() || name.layer.rank() == Rank::User;
        match is_known {
            true => Ok(()),
            false => Err(name.problem(None, format!("there is no tool named `{}`", name.value))),
        }
    }

    /// Whether the program has this tool, whatever the configuration says.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tools.get(name).is_some()
    }

    /// A run as the configuration wants it, and the policy to give it.
    pub(crate) fn prepare(
        &self,
        layers: &Layers,
        project: &Path,
        copying: Copying,
    ) -> Result<Prepared> {
        let id = new_id();
        let workspace = workspace::open(layers, project, id, copying)?;
        let InPlace { run, policy } = self.prepare_in(layers, &workspace)?;
        let run = run.known_as(id).note(Origin::new(project, &workspace).note());
        Ok(Prepared { id, run, policy, workspace })
    }

    /// What the handles of a run confer, before anybody narrows it.
    pub(crate) fn conferred(
        &self,
        layers: &Layers,
        project: &Path,
        copying: Copying,
    ) -> Result<Rights> {
        let workspace = workspace::open(layers, project, new_id(), copying)?;
        let run = Run::new(&self.toolbox(layers)?).grant(workspace.grant.clone());
        Ok(self.grants.iter().fold(run, |run, grant| grant(run)).held())
    }

    /// A run that is to work in a workspace that is there.
    pub(crate) fn prepare_in(&self, layers: &Layers, workspace: &Opened) -> Result<InPlace> {
        let toolbox = self.toolbox(layers)?;
        let policy = Stated::new(layers, &self.tools)?;
        let run = Run::new(&toolbox).clock(Clock::system()).grant(workspace.grant.clone());
        let run = self.grants.iter().fold(run, |run, grant| grant(run));
        let run = StatedRights::new(layers)?.give(run);
        Ok(InPlace { run, policy })
    }
}

impl Host {
    /// A run that will only be played again, and the policy to give it.
    pub(crate) fn rehearse(&self, layers: &Layers) -> Result<Rehearsal> {
        let toolbox = self.toolbox(layers)?;
        let policy = Stated::new(layers, &self.tools)?;
        let run = self.grants.iter().fold(Run::new(&toolbox), |run, grant| grant(run));
        Ok(Rehearsal { run, policy, toolbox })
    }
}

/// An id that no other run has.
pub(crate) fn new_id() -> RunId {
    let mut entropy = [0; 10];
    Random::system().fill(&mut entropy);
    RunId::new(Clock::system().unix_us() / 1_000, entropy)
}

/// Says all at once what the tools of a run need and nobody granted. This begins the run, so it
/// comes last.
pub(crate) fn check_grants(run: &Run) -> Result {
    match run.missing_grants().as_slice() {
        [] => Ok(()),
        missing => Err(ungranted(missing)),
    }
}

/// The problem that nobody granted what some tools need.
pub(crate) fn ungranted(missing: &[Missing]) -> Box<Problem> {
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let message = format!("{}, which nobody granted", missing.join(", "));
    Problem::new(Exit::Unexpected, "grants.missing", message)
        .hint("grant it with `tooltape_cli::Cli::grant`, or disable the tool")
}
