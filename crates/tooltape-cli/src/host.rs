//! The program's tools and grants, and the runs made of them.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use tooltape::{Clock, Missing, Random, Rights, Rules, Run, RunId, Secret, Tool, Toolbox};

use crate::card::Setting;
use crate::config::{Found, Layers, Rank};
use crate::exit::Exit;
use crate::labels;
use crate::origin::Origin;
use crate::policy::{StatedRights, stated};
use crate::report::{Problem, Result};
use crate::saved::Saved;
use crate::secrets::Secrets;
use crate::touches;
use crate::workspace::{self, Copying, Opened};

/// Hands a run something that the program's tools need.
pub(crate) type GrantTo = Box<dyn Fn(Run) -> Run>;

/// What the program brings along.
pub(crate) struct Host {
    tools: Toolbox,
    grants: Vec<GrantTo>,
    /// What the configuration names, once it was read.
    secrets: OnceCell<Secrets>,
}

/// What a run is made of.
pub(crate) struct Prepared {
    pub(crate) id: RunId,
    pub(crate) run: Run,
    pub(crate) policy: Rules,
    pub(crate) workspace: Opened,
    pub(crate) setting: Setting,
    pub(crate) saved: Saved,
}

/// A run that works in a folder, and the policy to give it.
pub(crate) struct InPlace {
    pub(crate) run: Run,
    pub(crate) policy: Rules,
    /// What whoever is asked about its calls is shown of it.
    pub(crate) setting: Setting,
}

/// What a run is played again with.
pub(crate) struct Rehearsal {
    pub(crate) run: Run,
    pub(crate) policy: Rules,
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
        Ok(Host { tools, grants, secrets: OnceCell::new() })
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
        // Nothing is copied for a run that lacks a secret.
        self.secrets(layers)?;
        let workspace = workspace::open(layers, project, id, copying)?;
        let InPlace { run, policy, setting } = self.prepare_in(layers, &workspace)?;
        let run = run.known_as(id).note(Origin::new(project, &workspace).note());
        let saved = Saved::find(project, &workspace)?;
        Ok(Prepared { id, run, policy, workspace, setting, saved })
    }

    /// The secrets of the configuration, which are read once.
    fn secrets(&self, layers: &Layers) -> Result<&Secrets> {
        if let Some(secrets) = self.secrets.get() {
            return Ok(secrets);
        }
        let secrets = Secrets::read(layers)?;
        Ok(self.secrets.get_or_init(|| secrets))
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
        let run = unread(run, layers)?;
        Ok(self.grants.iter().fold(run, |run, grant| grant(run)).held())
    }

    /// The same for a run that executes nothing: no secret is read for it, and nothing is copied.
    pub(crate) fn sketch(&self, layers: &Layers, project: &Path) -> Result<Prepared> {
        let id = new_id();
        let workspace = workspace::open(layers, project, id, Copying::Unneeded)?;
        let InPlace { run, policy, setting } =
            self.assemble(layers, &workspace, |run| unread(run, layers))?;
        let saved = Saved::find(project, &workspace)?;
        Ok(Prepared { id, run: run.known_as(id), policy, workspace, setting, saved })
    }

    /// A run that is to work in a workspace that is there.
    pub(crate) fn prepare_in(&self, layers: &Layers, workspace: &Opened) -> Result<InPlace> {
        self.assemble(layers, workspace, |run| self.secrets(layers)?.give(run, layers))
    }

    fn assemble(
        &self,
        layers: &Layers,
        workspace: &Opened,
        give_secrets: impl Fn(Run) -> Result<Run>,
    ) -> Result<InPlace> {
        let toolbox = self.toolbox(layers)?;
        let policy = stated(layers, &self.tools)?;
        let granted = || -> Result<Run> {
            let files = labels::labelled(layers, workspace.grant.clone())?;
            let run = Run::new(&toolbox).clock(Clock::system()).grant(files);
            let run = labels::telling(layers, give_secrets(run)?)?;
            let run = self.grants.iter().fold(run, |run, grant| grant(run));
            Ok(stricter(layers, StatedRights::new(layers)?.give(run)))
        };
        // To say what a run holds is to begin it, so another says it.
        let (run, held) = (granted()?, granted()?.held());
        let setting = Setting { folder: workspace.folder.clone(), held };
        Ok(InPlace { run, policy, setting })
    }
}

impl Host {
    /// A run that will only be played again, and the policy to give it.
    pub(crate) fn rehearse(&self, layers: &Layers) -> Result<Rehearsal> {
        let toolbox = self.toolbox(layers)?;
        let policy = stated(layers, &self.tools)?;
        let run = self.grants.iter().fold(Run::new(&toolbox), |run, grant| grant(run));
        let run = labels::telling(layers, stricter(layers, run))?;
        Ok(Rehearsal { run, policy, toolbox })
    }
}

/// The run, as strict as the configuration wants it.
fn stricter(layers: &Layers, run: Run) -> Run {
    match layers.policy_strict() {
        Some(found) if found.value => run.strict(),
        Some(_) | None => run,
    }
}

/// A run with every secret of the configuration but what it is, which does not matter to what may
/// be done with it.
fn unread(run: Run, layers: &Layers) -> Result<Run> {
    Ok(Secrets::names(layers)?.into_iter().fold(run, |run, name| {
        let given = run.secret(name, Secret::new(b"\0 unread \0".to_vec()));
        given.expect("it has a name, and is a text")
    }))
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
    let secret = missing.iter().find_map(|missing| missing.need.secret());
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let message = format!("{}, which nobody granted", missing.join(", "));
    if let Some(name) = secret {
        let what =
            format!("write `[secrets.{name}]` and `env = \"VARIABLE\"`, or `file` or `command`");
        let place = "into your own configuration, `~/.config/tooltape/config.toml`";
        return Problem::new(Exit::Usage, "secret.missing", message)
            .hint(format!("{what}, {place}, or disable the tool"));
    }
    Problem::new(Exit::Unexpected, "grants.missing", message)
        .hint("grant it with `tooltape_cli::Cli::grant`, or disable the tool")
}
