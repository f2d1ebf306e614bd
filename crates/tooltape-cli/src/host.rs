//! The program's tools and grants, and the runs made of them.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use tooltape::{
    Clock, Grant, Missing, Random, RegisterError, Right, Rights, Rules, Run, RunId, Secret, State,
    Tool, Toolbox,
};
use tooltape_kit::{Plan, Sandbox};

use crate::asking;
use crate::card::Setting;
use crate::components::{self, Components};
use crate::config::{Found, Layers, Rank};
use crate::executables;
use crate::exit::Exit;
use crate::labels;
use crate::origin::Origin;
use crate::policy::{StatedRights, stated};
use crate::report::{Problem, Result};
use crate::saved::Saved;
use crate::secrets::{self, Secrets};
use crate::sub_agents;
use crate::touches;
use crate::web;
use crate::workspace::{self, Copying, Opened};

/// Hands a run something that the program's tools need.
pub(crate) type GrantTo = Box<dyn Fn(Run) -> Run>;

/// What the program brings along.
pub(crate) struct Host {
    tools: Toolbox,
    grants: Vec<GrantTo>,
    sandbox: Sandbox,
    components: Components,
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
        sandbox: Sandbox,
    ) -> Result<Host> {
        let builtin = tooltape::builtin::tools().into_iter();
        let builtin = builtin.chain([tooltape::builtin::read_artifact()]);
        let kit = tooltape_kit::tools().into_iter().chain(tooltape_kit::process_tools());
        let kit = kit.chain(tooltape_kit::plain_tools()).chain(tooltape_kit::web_tools());
        let tools = builtin.chain(kit).chain(own);
        let refused = |err: RegisterError| {
            Problem::new(Exit::Unexpected, "tool.refused", err.to_string())
                .hint("mend the tool's declaration in the program that brings it")
        };
        let tools = Toolbox::new(tools).map_err(refused)?;
        let (components, secrets) = (Components::default(), OnceCell::new());
        Ok(Host { tools, grants, sandbox, components, secrets })
    }

    /// The program's tools, and those that the configuration adds.
    fn all_tools(&self, layers: &Layers) -> Result<Toolbox> {
        let mut tools = self.tools.clone();
        let sandbox = self.sandbox.clone().network(web::http(layers)?);
        for tool in tooltape_kit::process_tools() {
            let vouched = sandbox.vouch(&mut tools, &tool.spec().name);
            vouched.expect("tools of our own are registered and stay well-formed");
        }
        let mut tools = executables::added(layers, tools, &self.sandbox)?;
        self.components.add(layers, &mut tools)?;
        sub_agents::add(layers, &mut tools)?;
        Ok(tools)
    }

    /// The tools that the configuration leaves.
    pub(crate) fn toolbox(&self, layers: &Layers) -> Result<Toolbox> {
        let tools = self.all_tools(layers)?;
        for name in layers.all("tools.allow", |config| config.tools.allow.as_ref()) {
            check_named(&tools, &name)?;
        }
        let mut toolbox = tools.clone();
        for allowed in layers.narrowed("tools.allow", |config| config.tools.allow.clone()) {
            let unnamed = |name: &&str| !allowed.value.iter().any(|allowed| allowed == name);
            for name in tools.names().filter(unnamed) {
                toolbox.remove(name);
            }
        }
        for disabled in layers.all("tools.disable", |config| config.tools.disable.as_ref()) {
            check_named(&tools, &disabled)?;
            toolbox.remove(disabled.value);
        }
        touches::apply(layers, &tools, &mut toolbox)?;
        Ok(toolbox)
    }

    /// The components that the configuration named so far.
    pub(crate) fn components(&self) -> &Components {
        &self.components
    }

    /// Where processes run.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
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
        let run = unread(self.reaching(layers, run, None)?, layers)?;
        Ok(self.grants.iter().fold(run, |run, grant| grant(run)).held())
    }

    /// The same for a run that executes nothing: no secret is read for it, and nothing is copied.
    pub(crate) fn sketch(&self, layers: &Layers, project: &Path) -> Result<Prepared> {
        let id = new_id();
        let workspace = workspace::open(layers, project, id, Copying::Unneeded)?;
        let InPlace { run, policy, setting } = self.assemble(layers, &workspace, None)?;
        let saved = Saved::find(project, &workspace)?;
        Ok(Prepared { id, run: run.known_as(id), policy, workspace, setting, saved })
    }

    /// A run that is to work in a workspace that is there.
    pub(crate) fn prepare_in(&self, layers: &Layers, workspace: &Opened) -> Result<InPlace> {
        self.assemble(layers, workspace, Some(self.secrets(layers)?))
    }

    fn assemble(
        &self,
        layers: &Layers,
        workspace: &Opened,
        secrets: Option<&Secrets>,
    ) -> Result<InPlace> {
        let toolbox = self.toolbox(layers)?;
        let policy = stated(layers, &self.all_tools(layers)?)?;
        let granted = || -> Result<Run> {
            let files = labels::labelled(layers, workspace.grant.clone())?;
            let run = Run::new(&toolbox).clock(Clock::system()).grant(files.clone());
            let run = components::helped(run, files, web::http(layers)?);
            let run = run.redact(sub_agents::redactor(layers));
            let run = self.reaching(layers, helped(run), secrets)?;
            let run = match secrets {
                Some(secrets) => secrets.give(run, layers)?,
                None => unread(run, layers)?,
            };
            let run = labels::telling(layers, run)?;
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
    /// A run with its ways to others: the web, and processes that may ask as much.
    fn reaching(&self, layers: &Layers, run: Run, secrets: Option<&Secrets>) -> Result<Run> {
        let http = web::http(layers)?;
        let sandbox = self.sandbox.clone().network(http.clone());
        let sandbox = secrets::brokered(layers, sandbox, secrets)?;
        let run = run.grant(http).grant(sandbox);
        let has_components = layers.all("tools.wasm", |it| it.tools.wasm.as_ref()).next().is_some();
        Ok(if has_components { run.grant(Given) } else { run })
    }

    /// A run that will only be played again, and the policy to give it.
    pub(crate) fn rehearse(&self, layers: &Layers) -> Result<Rehearsal> {
        let toolbox = self.toolbox(layers)?;
        let policy = stated(layers, &self.all_tools(layers)?)?;
        let run = helped(Run::new(&toolbox));
        let run = self.grants.iter().fold(run, |run, grant| grant(run));
        let run = labels::telling(layers, stricter(layers, run))?;
        Ok(Rehearsal { run, policy, toolbox })
    }
}

/// What components may use if they say so: a clock that stands for a call, and chance that follows
/// from a seed.
#[derive(Clone)]
struct Given;

impl Grant for Given {
    fn confers(&self) -> Rights {
        Rights::of([Right::ClockRead, Right::RandomRead])
    }
}

/// The run, with a plan of its own and somebody to ask.
fn helped(run: Run) -> Run {
    run.grant(State::new(Plan::default())).grant(asking::person())
}

/// A mistyped name must not leave a tool where none should be.
fn check_named(tools: &Toolbox, name: &Found<'_, &String>) -> Result {
    // A user's lists are for all programs, and not every program has every tool.
    let is_known = tools.get(name.value).is_some() || name.layer.rank() == Rank::User;
    match is_known {
        true => Ok(()),
        false => Err(name.problem(None, format!("there is no tool named `{}`", name.value))),
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
