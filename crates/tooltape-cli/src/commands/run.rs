//! `tooltape run`.

mod ending;
mod stage;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tooltape::{RunId, Script, ScriptError};

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
use crate::report::{Excerpt, Problem, Result};
use crate::workspace::{Copying, Opened};

/// The most bytes of a script.
const SCRIPT_BYTES_MAX: u64 = 16 << 20;
/// What is asked where neither the configuration nor the script asks.
const ASK_DEFAULT: &str = "Play the script.";

/// What was named on the command line.
struct Named {
    /// The folder or the file of the configuration.
    project: PathBuf,
    /// The script, where it was named itself.
    script: Option<ScriptFile>,
}

pub(super) struct ScriptFile {
    name: String,
    text: String,
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
        return Ok(Named { project: here, script: Some(script_stdin()?) });
    }
    let is_config = what.extension().is_some_and(|extension| extension == "toml");
    match what.metadata() {
        Ok(metadata) if metadata.is_dir() || (is_config && metadata.is_file()) => {
            Ok(Named { project: what.to_owned(), script: None })
        }
        Ok(_) => Ok(Named { project: here, script: Some(script_file(what)?) }),
        Err(err) => Err(missing(what, &err)),
    }
}

fn missing(path: &Path, err: &io::Error) -> Box<Problem> {
    let message = format!("`{}` cannot be read: {err}", path.display());
    Problem::new(Exit::Failed, "file.missing", message)
        .hint("name a folder with a `tooltape.toml`, or a script; `tooltape init DIR` makes both")
}

pub(super) fn script_file(path: &Path) -> Result<ScriptFile> {
    let name = path.display().to_string();
    let metadata = path.metadata().map_err(|err| missing(path, &err))?;
    // To open a pipe is to wait for whoever writes to it.
    if !metadata.is_file() {
        return Err(Problem::new(
            Exit::Usage,
            "script.unreadable",
            format!("`{name}` is not a file"),
        )
        .hint("name a plain file, or `-` for a script on stdin"));
    }
    let mut file = File::open(path).map_err(|err| missing(path, &err))?;
    Ok(ScriptFile { text: text(&mut file, &name)?, name })
}

/// A script that comes from stdin.
pub(super) fn script_stdin() -> Result<ScriptFile> {
    let name = "stdin".to_owned();
    let text = text(&mut io::stdin().lock(), &name)?;
    Ok(ScriptFile { name, text })
}

fn text(from: &mut dyn Read, name: &str) -> Result<String> {
    let mut text = String::new();
    let unreadable = |why: String| {
        Problem::new(Exit::Usage, "script.unreadable", format!("`{name}` {why}"))
            .hint("a script is text, one JSON object a line: see docs/script-format.md")
    };
    match from.take(SCRIPT_BYTES_MAX + 1).read_to_string(&mut text) {
        Err(err) => Err(unreadable(format!("cannot be read: {err}"))),
        Ok(_) if text.len() as u64 > SCRIPT_BYTES_MAX => {
            Err(unreadable(format!("has more than {SCRIPT_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
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
            ModelName::ScriptFile(file) => Some(script_file(&found.below(file)?)?),
            ModelName::Script | ModelName::Provided(..) | ModelName::Served { .. } => None,
        },
        None => None,
    };
    let script = layers.find("agent.script", |config| config.agent.script.clone());
    let file = match (named.or(elsewhere), script) {
        (Some(file), _) => file,
        (None, Some(found)) => script_file(&found.below(&found.value)?)?,
        (None, None) => {
            let message = "there is no script: `agent.script` is not set";
            return Err(Problem::new(Exit::Usage, "config.incomplete", message)
                .hint("name a script, or set `agent.script` in `tooltape.toml`"));
        }
    };
    let script = Script::parse(&file.text).map_err(|err| unplayable(&file, &err))?;
    let asked = layers.find("agent.ask", |config| config.agent.ask.clone());
    let question = match (asked, script.question()) {
        (Some(found), _) => found.value,
        (None, Some(question)) => question.to_owned(),
        (None, None) => ASK_DEFAULT.to_owned(),
    };
    Ok((script, question))
}

fn unplayable(file: &ScriptFile, err: &ScriptError) -> Box<Problem> {
    let ScriptFile { name, text } = file;
    let start: usize = text.split_inclusive('\n').take(err.line - 1).map(str::len).sum();
    let at = text.floor_char_boundary((start + err.column.saturating_sub(1)).min(text.len()));
    let span = at..text.ceil_char_boundary((at + 1).min(text.len()));
    let label = err.message.clone();
    let excerpt = Excerpt { name: name.clone(), text: text.clone(), span, label };
    Problem::new(Exit::Usage, "script.invalid", format!("{name}: {err}"))
        .hint("one JSON object a line: see docs/script-format.md")
        .excerpt(Some(excerpt))
}

pub(super) fn introduce(context: &Context<'_>, id: RunId, workspace: &Opened) {
    let folder = workspace.folder.display().to_string();
    let copied = workspace.copied_from.as_ref().map_or(String::new(), |from| {
        format!(" (a copy of {})", escape::line(&from.display().to_string()))
    });
    let lines = format!("run       {id}\nworkspace {}{copied}", escape::line(&folder));
    context.out.say(&paint(FAINT, lines));
}
