//! `tooltape run`.

mod ending;
mod stage;

use std::path::{Path, PathBuf};

use tooltape::{RunId, Script};

pub(super) use ending::approve_hint;
pub(super) use stage::{Cast, First, Stage};

use super::Context;
use crate::args::Run as RunArgs;
use crate::config::Layers;
use crate::escape;
use crate::exit::Exit;
use crate::model::ModelName;
use crate::origin::Origin;
use crate::out::{FAINT, paint};
use crate::program::quoted;
use crate::provider::{self, Chosen};
use crate::report::{Problem, Result};
use crate::script::{ScriptFile, missing};
use crate::workspace::{Copying, Opened};

/// What is asked where neither the configuration nor the script asks.
const ASK_DEFAULT: &str = "Play the script.";

/// What was named on the command line.
struct Named {
    /// The folder or the file of the configuration.
    project: PathBuf,
    /// The script, where it was named itself.
    script: Option<ScriptFile>,
}

/// Runs an agent and prints the run as it happens.
pub(super) async fn run(context: &Context<'_>, args: &RunArgs) -> Result<Exit> {
    let named = named(&args.what)?;
    let layers = context.layers(&named.project)?;
    let (config, is_script) = (named.project, named.script.is_some());
    let (model, question) = chosen(&layers, named.script)?;
    let project = match config.is_file() {
        true => layers.project().unwrap_or(Path::new(".")),
        false => &config,
    };
    let kept = context.location()?.open(context.out)?;
    let prepared = context.host.prepare(&layers, project, Copying::Fresh)?;
    let config = if is_found_by_itself(&config) { project } else { &config };
    let mut origin = Origin::new(config, &prepared.workspace).asking(args.how.model.as_deref());
    if is_script {
        origin = origin.playing(&args.what);
    }
    let cast = Cast { layers: &layers, prepared, origin, model };
    let (stage, agent, workspace) = Stage::open(context, &args.how, kept, cast).await?;
    let what = (!is_stdin(&args.what)).then(|| quoted(&args.what.display().to_string()));
    let again = what.map(|what| format!("run {what} --yes"));
    stage.play(agent, First::Ask(question), &workspace, again.as_deref()).await
}

/// Whether a configuration file is the one that its project's folder stands for.
fn is_found_by_itself(config: &Path) -> bool {
    config.ends_with("tooltape.toml") || config.ends_with(".tooltape/config.toml")
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn named(what: &Path) -> Result<Named> {
    let here = PathBuf::from(".");
    if is_stdin(what) {
        return Ok(Named { project: here, script: Some(ScriptFile::stdin()?) });
    }
    let is_config = what.extension().is_some_and(|extension| extension == "toml");
    match what.metadata() {
        Ok(metadata) if metadata.is_dir() || (is_config && metadata.is_file()) => {
            Ok(Named { project: what.to_owned(), script: None })
        }
        Ok(_) => Ok(Named { project: here, script: Some(ScriptFile::read(what)?) }),
        Err(err) => Err(missing(what, &err)),
    }
}

/// The model to talk with.
pub(super) fn chosen_model(layers: &Layers) -> Result<Chosen> {
    match provider::remote(layers)? {
        Some(remote) => Ok(Chosen::Http(Box::new(remote))),
        None => Ok(Chosen::Script(script(layers, None)?.0)),
    }
}

/// The model to ask, and what to ask it.
pub(super) fn chosen(layers: &Layers, named: Option<ScriptFile>) -> Result<(Chosen, String)> {
    let asked = layers.find("agent.ask", |config| config.agent.ask.clone());
    let Some(remote) = provider::remote(layers)?.filter(|_| named.is_none()) else {
        let (script, question) = script(layers, named)?;
        return Ok((Chosen::Script(script), question));
    };
    match asked {
        Some(found) => Ok((Chosen::Http(Box::new(remote)), found.value)),
        None => Err(Problem::new(Exit::Usage, "config.incomplete", "there is nothing to ask")
            .hint("say `--ask TEXT`, or set `agent.ask`; `tooltape chat` asks you")),
    }
}

/// The script to play, and the question to ask it.
pub(super) fn script(layers: &Layers, named: Option<ScriptFile>) -> Result<(Script, String)> {
    let elsewhere = match provider::named(layers) {
        Some(found) => match &found.value {
            ModelName::ScriptFile(file) => Some(ScriptFile::read(&found.below(file)?)?),
            ModelName::Script | ModelName::Provided(..) | ModelName::Served { .. } => None,
        },
        None => None,
    };
    let script = layers.find("agent.script", |config| config.agent.script.clone());
    let file = match (named.or(elsewhere), script) {
        (Some(file), _) => file,
        (None, Some(found)) => ScriptFile::read(&found.below(&found.value)?)?,
        (None, None) => {
            let message = "there is no script: `agent.script` is not set";
            return Err(Problem::new(Exit::Usage, "config.incomplete", message)
                .hint("name a script, or set `agent.script` in `tooltape.toml`"));
        }
    };
    let script = file.parse()?;
    let asked = layers.find("agent.ask", |config| config.agent.ask.clone());
    let question = match (asked, script.question()) {
        (Some(found), _) => found.value,
        (None, Some(question)) => question.to_owned(),
        (None, None) => ASK_DEFAULT.to_owned(),
    };
    Ok((script, question))
}

pub(super) fn introduce(context: &Context<'_>, id: RunId, workspace: &Opened) {
    let folder = workspace.folder.display().to_string();
    let copied = workspace.copied_from.as_ref().map_or(String::new(), |from| {
        format!(" (a copy of {})", escape::line(&from.display().to_string()))
    });
    let lines = format!("run       {id}\nworkspace {}{copied}", escape::line(&folder));
    context.out.say(&paint(FAINT, lines));
}
