//! The commands, one file each.

mod approve;
mod call;
mod chat;
mod completions;
mod config;
mod doctor;
mod init;
mod policy;
mod run;
mod runs;
mod saved;
mod show;
mod tail;
mod replay;
mod resume;
mod fork;
mod diff;
mod verify;
mod export;
mod record_test;
mod tools;
mod tools_add;
mod trust;

use std::path::{Path, PathBuf};

use tooltape::Answer;

use crate::args::{
    Approve, Args, Command, ConfigCommand, Pair, PolicyCommand, RunsCommand, SavedCommand, Tools,
};
use crate::config::Layers;
use crate::exit::Exit;
use crate::host::Host;
use crate::kept::Location;
use crate::out::Out;
use crate::program::quoted;
use crate::report::{Problem, Result};

/// What every command is given.
pub(crate) struct Context<'a> {
    pub(crate) host: &'a Host,
    pub(crate) out: Out,
    flags: Vec<Pair>,
    tape: Option<PathBuf>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(host: &'a Host, out: Out, args: &Args) -> Context<'a> {
        let Args { global, command } = args;
        let folder = global.workspace.iter();
        let workspace =
            folder.map(|folder| Pair { name: "workspace".into(), value: folder.clone() });
        // `fork` has a `--set` of its own.
        let set = global.set.iter().filter(|_| !matches!(command, Command::Fork(_)));
        let (model, ask) = match command {
            Command::Run(run) => (&run.how.model, &run.ask),
            Command::Chat(chat) => (&chat.how.model, &None),
            Command::Resume(resume) => (&resume.how.model, &None),
            Command::Fork(fork) => (&fork.how.model, &None),
            _ => (&None, &None),
        };
        let short = |name: &str, value: &Option<String>| {
            value.clone().map(|value| Pair { name: name.into(), value })
        };
        let short = [short("agent.model", model), short("agent.ask", ask)];
        let flags = set.cloned().chain(workspace).chain(short.into_iter().flatten()).collect();
        Context { host, out, flags, tape: global.tape.clone() }
    }

    /// The flag that another command needs to find the same tape, with a space before it.
    pub(crate) fn tape_flag(&self) -> String {
        let tape = self.tape.as_ref();
        tape.map_or(String::new(), |tape| {
            format!(" --tape {}", quoted(&tape.display().to_string()))
        })
    }

    /// Where the tape is.
    pub(crate) fn location(&self) -> Result<Location> {
        Location::find(self.tape.as_deref())
    }

    /// The same, with the model that a run was started with, unless another is named now.
    pub(crate) fn layers_asking(&self, project: &Path, model: Option<String>) -> Result<Layers> {
        let name = "agent.model".to_owned();
        let is_named = self.flags.iter().any(|pair| pair.name == name);
        let then = model.filter(|_| !is_named).map(|value| Pair { name, value });
        let flags: Vec<Pair> = then.into_iter().chain(self.flags.iter().cloned()).collect();
        Layers::read(&flags, project)
    }

    /// The layers of the configuration for a project.
    pub(crate) fn layers(&self, project: &Path) -> Result<Layers> {
        Layers::read(&self.flags, project)
    }
}

/// Does what was typed.
pub(crate) fn dispatch(context: &Context<'_>, args: &Args) -> Result<Exit> {
    match &args.command {
        Command::Run(run) => block_on(run::run(context, run))?,
        Command::Chat(chat) => block_on(chat::chat(context, chat))?,
        Command::Call(call) => block_on(call::call(context, call))?,
        Command::Runs(runs) => match &runs.command {
            None => runs::list(context, &runs.filter),
            Some(RunsCommand::Ls(filter)) => runs::list(context, filter),
            Some(RunsCommand::Rm(rm)) => runs::remove(context, rm),
            Some(RunsCommand::Gc { yes }) => runs::collect(context, *yes),
        },
        Command::Resume(resume) => block_on(resume::resume(context, resume))?,
        Command::Approve(Approve::Ls) => block_on(approve::list(context))?,
        Command::Approve(Approve::Show { id }) => block_on(approve::show(context, id))?,
        Command::Approve(Approve::Yes(yes)) => block_on(approve::allow(context, yes))?,
        Command::Approve(Approve::Saved(SavedCommand::Ls)) => saved::list(context),
        Command::Approve(Approve::Saved(SavedCommand::Rm { names })) => {
            saved::forget(context, names)
        }
        Command::Approve(Approve::No { id, tell }) => {
            let why = tell.clone().unwrap_or_else(|| "somebody said no".to_owned());
            block_on(approve::deny(context, id, Answer::Deny(why)))?
        }
        Command::Fork(fork) => block_on(fork::fork(context, fork))?,
        Command::Diff(diff) => diff::diff(context, diff),
        Command::RecordTest(test) => record_test::record_test(context, test),
        Command::Show(show) => show::show(context, show),
        Command::Tail(tail) => block_on(tail::tail(context, tail))?,
        Command::Replay(replay) => block_on(replay::replay(context, replay))?,
        Command::Verify(verify) => verify::verify(context, verify).map_err(Problem::of_files),
        Command::Export(export) => export::export(context, export).map_err(Problem::of_files),
        Command::Import { file } => export::import(context, file).map_err(Problem::of_files),
        Command::Tools(Tools::List) => tools::list(context),
        Command::Tools(Tools::Show { name }) => tools::show(context, name),
        Command::Tools(Tools::Add { program }) => block_on(tools_add::add(context, program))?,
        Command::Tools(Tools::Lint { provider, deny }) => tools::lint(context, provider, *deny),
        Command::Tools(Tools::Export { provider }) => tools::export(context, *provider),
        Command::Policy(PolicyCommand::Check) => policy::check(context),
        Command::Policy(PolicyCommand::Explain(what)) => block_on(policy::explain(context, what))?,
        Command::Trust(args) => trust::trust(context, args),
        Command::Init(init) => init::init(context, init),
        Command::Config(ConfigCommand::Explain { key }) => config::explain(context, key.as_deref()),
        Command::Config(ConfigCommand::Schema) => config::schema(context),
        Command::Doctor => doctor::doctor(context),
        Command::Completions { shell } => completions::completions(context, *shell),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|err| {
        let message = format!("the runtime could not start: {err}");
        Problem::new(Exit::Unexpected, "runtime.failed", message)
    })?;
    let done = runtime.block_on(future);
    // What was abandoned may never end, and nobody waits for it.
    runtime.shutdown_background();
    Ok(done)
}
