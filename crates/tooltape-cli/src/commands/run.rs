//! `tooltape run`.

mod ending;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tooltape::{Agent, RunId, Script, ScriptError};

use ending::{Summary, conclude, problem};

use super::Context;
use crate::approve::Asked;
use crate::args::Run as RunArgs;
use crate::config::{Layers, ModelWord};
use crate::escape;
use crate::exit::Exit;
use crate::host::{Prepared, check_grants};
use crate::interrupt::{Stop, over};
use crate::narrate::{Narrated, Telling};
use crate::out::{FAINT, Format, paint};
use crate::pace::Paced;
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

struct ScriptFile {
    name: String,
    text: String,
}

/// Runs an agent and prints the run as it happens.
pub(super) async fn run(context: &Context<'_>, args: &RunArgs) -> Result<Exit> {
    let named = named(&args.what)?;
    let layers = context.layers(&named.project)?;
    let (script, question) = script(&layers, named.script)?;
    let project = match named.project.is_file() {
        true => layers.project().unwrap_or(Path::new(".")).to_owned(),
        false => named.project,
    };
    let Prepared { id, run, policy, workspace } =
        context.host.prepare(&layers, &project, Copying::Fresh)?;
    let telling = if args.jsonl { Telling::Events } else { Telling::Lines };
    let (tape, stop) = (Narrated::new(context.out, telling), Stop::listen().await);
    let run = run.policy(policy).tape(tape.clone());
    let run = Asked::new(args.yes).approve(run, context.out, &stop);
    let model = Paced { model: script, pace: args.pace.unwrap_or_default() };
    let mut agent = Agent::new(model, run);
    if let Some(turns) = layers.find("agent.turns", |config| config.agent.turns) {
        agent = agent.turns_max(turns.value.get());
    }
    check_grants(agent.run())?;
    introduce(context, id, &workspace);
    let agent = Arc::new(agent);
    let work = tokio::spawn({
        let agent = agent.clone();
        async move { agent.ask(question).await }
    });
    let waited = stop.wait(work, over(args.timeout), || agent.run().cancel()).await;
    let records = tape.records(id);
    let summary = Summary::new(id, &records, &waited);
    match (args.jsonl, context.out.format, &summary.answer) {
        (true, _, _) => {}
        (false, Format::Json, _) => context.out.json(&summary)?,
        (false, Format::Text, Some(answer)) => context.out.data(answer)?,
        (false, Format::Text, None) => {}
    }
    match problem(&summary, &records, &waited) {
        Some(problem) => Err(problem),
        None => {
            conclude(context.out, args, &summary, &workspace);
            Ok(Exit::Done)
        }
    }
}

fn named(what: &Path) -> Result<Named> {
    let here = PathBuf::from(".");
    if what == Path::new("-") {
        let name = "stdin".to_owned();
        let text = text(&mut io::stdin().lock(), &name)?;
        return Ok(Named { project: here, script: Some(ScriptFile { name, text }) });
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

fn script_file(path: &Path) -> Result<ScriptFile> {
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

/// The script to play, and the question to ask it.
fn script(layers: &Layers, named: Option<ScriptFile>) -> Result<(Script, String)> {
    let file = match (named, layers.find("agent.script", |config| config.agent.script.clone())) {
        (Some(file), _) => file,
        (None, Some(found)) => script_file(&found.below(&found.value)?)?,
        (None, None) => {
            let message = "there is no script: `agent.script` is not set";
            return Err(Problem::new(Exit::Usage, "config.incomplete", message)
                .hint("name a script, or set `agent.script` in `tooltape.toml`"));
        }
    };
    let model = layers.find("agent.model", |config| config.agent.model);
    match model.map_or(ModelWord::Script, |found| found.value) {
        ModelWord::Script => {}
    }
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

fn introduce(context: &Context<'_>, id: RunId, workspace: &Opened) {
    let folder = workspace.folder.display().to_string();
    let copied = workspace.copied_from.as_ref().map_or(String::new(), |from| {
        format!(" (a copy of {})", escape::line(&from.display().to_string()))
    });
    let lines = format!("run       {id}\nworkspace {}{copied}", escape::line(&folder));
    context.out.say(&paint(FAINT, lines));
}
