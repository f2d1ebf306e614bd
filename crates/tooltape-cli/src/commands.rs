//! The commands, one file each.

mod call;
mod completions;
mod config;
mod init;
mod run;
mod tools;

use std::path::Path;

use crate::args::{Args, Command, ConfigCommand, Global, Pair, Tools};
use crate::config::Layers;
use crate::exit::Exit;
use crate::host::Host;
use crate::out::Out;
use crate::report::{Problem, Result};

/// What every command is given.
pub(crate) struct Context<'a> {
    pub(crate) host: &'a Host,
    pub(crate) out: Out,
    flags: Vec<Pair>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(host: &'a Host, out: Out, global: &Global) -> Context<'a> {
        let folder = global.workspace.iter();
        let workspace =
            folder.map(|folder| Pair { name: "workspace".into(), value: folder.clone() });
        Context { host, out, flags: global.set.iter().cloned().chain(workspace).collect() }
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
        Command::Call(call) => block_on(call::call(context, call))?,
        Command::Tools(Tools::List) => tools::list(context),
        Command::Tools(Tools::Show { name }) => tools::show(context, name),
        Command::Tools(Tools::Lint { provider, deny }) => tools::lint(context, provider, *deny),
        Command::Tools(Tools::Export { provider }) => tools::export(context, *provider),
        Command::Init(init) => init::init(context, &init.folder),
        Command::Config(ConfigCommand::Explain { key }) => config::explain(context, key.as_deref()),
        Command::Config(ConfigCommand::Schema) => config::schema(context),
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
