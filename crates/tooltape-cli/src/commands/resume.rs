//! `tooltape resume`.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;

use tooltape::{
    CallNo, Event, FaultKind, InDoubt, Record, Reply, ResumeError, Run, RunError, RunId, RunStatus,
    RunSummary, RunsQuery, Script,
};

use super::Context;
use super::replay::{layers_of, origin};
use super::run::{First, Stage, approve_hint, introduce, script};
use super::runs;
use super::runs::with_nested;
use crate::args::Resume;
use crate::config::Layers;
use crate::escape;
use crate::exit::Exit;
use crate::host::ungranted;
use crate::interrupt::over;
use crate::kept::{Kept, Location};
use crate::origin::Origin;
use crate::out::Format;
use crate::provider::{self, Chosen};
use crate::report::{Problem, Result};
use crate::saved::Saved;
use crate::script::ScriptFile;
use crate::tally::Tally;
use crate::workspace::{Opened, open_folder};

/// How many runs that could be meant are listed.
const CHOICES_MAX: usize = 9;

/// What a recorded run was played with.
pub(super) struct Played {
    pub(super) layers: Layers,
    /// Nothing, where there was no agent.
    pub(super) model: Option<Chosen>,
}

impl Played {
    /// Finds the configuration and the script that a run names; `named` is another script.
    pub(super) fn find(
        context: &Context<'_>,
        origin: &Origin,
        records: &[Record],
        named: Option<&Path>,
    ) -> Result<Played> {
        let gone = origin.config.as_deref().filter(|config| !Path::new(config).exists());
        if let Some(config) = gone {
            // Another configuration would let the run do what it was never allowed to.
            let message = format!("its configuration `{}` is gone", escape::line(config));
            return Err(Problem::new(Exit::Failed, "config.gone", message)
                .hint("put it back; `tooltape show RUN` and `tooltape replay RUN` need it not"));
        }
        let layers = layers_of(context, records)?;
        let is_agent = records.iter().any(|record| matches!(record.event, Event::Asked { .. }));
        let model = match (is_agent, provider::remote(&layers)?) {
            (false, _) => None,
            (true, Some(remote)) if named.is_none() && origin.script.is_none() => {
                Some(Chosen::Http(Box::new(remote)))
            }
            (true, _) => {
                let (script, _) = script(&layers, named_script(named, origin)?)?;
                Some(Chosen::Script(script))
            }
        };
        Ok(Played { layers, model })
    }

    /// The model without the turns that it took: they are on the tape, and are not taken again.
    pub(super) fn rest(model: Chosen, turns: u64) -> Chosen {
        match model {
            Chosen::Script(script) => {
                let rest = script.turns().iter().skip(usize::try_from(turns).unwrap_or(usize::MAX));
                Chosen::Script(Script::new(rest.cloned()))
            }
            Chosen::Http(remote) => Chosen::Http(remote),
        }
    }
}

/// Goes on with a run that crashed or was paused.
pub(super) async fn resume(context: &Context<'_>, args: &Resume) -> Result<Exit> {
    let id = meant(context, &context.location()?, args.run.as_deref())?;
    let kept = context.location()?.open(context.out)?;
    for run in with_nested(&kept, id)? {
        check_own(&kept.summary(run)?)?;
    }
    let (records, broken) = kept.records(id);
    if let Some(problem) = broken {
        return Err(problem);
    }
    let again = again(&records, &args.again).map_err(|problem| problem.run(id))?;
    let origin = origin(&records);
    let Played { layers, model } =
        Played::find(context, &origin, &records, args.script.as_deref())?;
    let workspace = workspace(&origin)?;
    let prepared = context.host.prepare_in(&layers, &workspace)?;
    let run = prepared.run.grant(kept.artifacts()?);
    let stage = Stage { again, ..Stage::new(context, &args.how, kept, id).await };
    let saved = saved_for(&origin, &workspace)?;
    let run = stage.dress(run, prepared.policy, (prepared.setting, saved));
    stage.tape.recall(&records);
    let turns = stage.tape.tally().turns;
    introduce(context, id, &workspace);
    let run = run.resume(id).await.map_err(|err| refused(&stage.kept, id, &err))?;
    let below = stage.kept.tape.in_doubt(id).map_err(|err| stage.kept.problem(&err))?;
    // A run that paused knows what it did.
    let is_doubtful = |call: &InDoubt| {
        let run = stage.kept.summary(call.run);
        call.run != id && run.is_ok_and(|run| run.status != RunStatus::Paused)
    };
    let below: Vec<InDoubt> = below.into_iter().filter(is_doubtful).collect();
    for InDoubt { run, call } in &below {
        context.out.say(&format!("nested    call {call} of run {run} was in doubt"));
    }
    let stage = Stage { below, ..stage };
    match model {
        Some(model) => {
            let agent = stage.agent(&layers, run, Played::rest(model, turns));
            stage.play(agent, First::GoOn, &workspace, None).await
        }
        None => settle(stage, run).await,
    }
}

/// The answers that were saved for the project that a run is of.
pub(super) fn saved_for(origin: &Origin, workspace: &Opened) -> Result<Saved> {
    let config = origin.config.as_deref().unwrap_or(".");
    let saved = Saved::find(Path::new(config), workspace)?;
    // A file that cannot be read is told before anything runs.
    saved.entries()?;
    Ok(saved)
}

/// Refuses to act on what a file said: its approvals, its folders and its policy are not ours.
pub(super) fn check_own(run: &RunSummary) -> Result {
    if !run.imported {
        return Ok(());
    }
    let message = "the run was imported, and nothing is executed on the word of a file";
    Err(Problem::new(Exit::Denied, "run.imported", message)
        .hint("`tooltape show`, `verify`, `replay` and `diff` take it; resume it where it was made")
        .run(run.id))
}

/// The calls to do again; each of them must be open.
fn again(records: &[Record], calls: &[u64]) -> Result<Vec<CallNo>> {
    let mut tally = Tally::default();
    records.iter().for_each(|record| tally.count(&record.event));
    let calls: Vec<CallNo> = calls.iter().copied().map(CallNo).collect();
    match calls.iter().find(|call| !tally.is_open(**call)) {
        None => Ok(calls),
        Some(call) => {
            let message = format!("call {call} is not in doubt, so it is not done again");
            Err(Problem::new(Exit::Usage, "call.undoubted", message)
                .hint("`tooltape show RUN` says which calls started and did not settle"))
        }
    }
}

/// The run that is meant: without a name, the newest that can be resumed.
fn meant(context: &Context<'_>, location: &Location, named: Option<&str>) -> Result<RunId> {
    if let Some(text) = named {
        return location.run(text).map(|(_, run)| run);
    }
    let mut runs = Vec::new();
    if let Some(kept) = location.open_to_read()? {
        for status in [RunStatus::Crashed, RunStatus::Paused] {
            let mut query = RunsQuery::all();
            query.status = Some(status);
            let found = kept.tape.runs(&query).map_err(|err| kept.problem(&err))?;
            runs.extend(found.into_iter().filter(|run| run.parent.is_none() && !run.imported));
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.started_us));
    match runs.as_slice() {
        [] => Err(Problem::new(Exit::Failed, "run.none", "no run crashed or was paused")
            .hint("`tooltape runs` lists the runs")),
        [run] => Ok(run.id),
        [newest, ..] if !(io::stdin().is_terminal() && io::stderr().is_terminal()) => Ok(newest.id),
        runs => chosen(context, &runs[..runs.len().min(CHOICES_MAX)]),
    }
}

/// Lets the person at the terminal choose.
fn chosen(context: &Context<'_>, choices: &[RunSummary]) -> Result<RunId> {
    let table = runs::table(choices);
    for (at, line) in table.lines().enumerate() {
        let no = if at == 0 { " ".to_owned() } else { at.to_string() };
        context.out.prompt(&format!("{no} {line}\n"));
    }
    context.out.prompt("which one? [1] ");
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let no = if line.trim().is_empty() { Ok(1) } else { line.trim().parse::<usize>() };
    match (read, no) {
        (Ok(1..), Ok(no @ 1..)) if no <= choices.len() => Ok(choices[no - 1].id),
        (_, _) => Err(Problem::new(Exit::Usage, "run.unchosen", "no run was chosen")
            .hint("name one: `tooltape resume RUN`")),
    }
}

/// The folder that the run worked in: nothing is copied again.
pub(super) fn workspace(origin: &Origin) -> Result<Opened> {
    let folder = origin.workspace.as_deref().ok_or_else(|| {
        let message = "the run does not say which folder it worked in";
        Problem::new(Exit::Failed, "run.foreign", message)
            .hint("another program wrote it: resume it there, or `tooltape replay` it")
    })?;
    let opened = open_folder(Path::new(folder))?;
    Ok(Opened { copied_from: origin.copied_from.as_ref().map(Into::into), ..opened })
}

/// The script that was named, now or then.
fn named_script(named: Option<&Path>, origin: &Origin) -> Result<Option<ScriptFile>> {
    match (named, origin.script.as_deref()) {
        (Some(path), _) if path == Path::new("-") => ScriptFile::stdin().map(Some),
        (Some(path), _) => ScriptFile::read(path).map(Some),
        (None, Some("-")) => {
            let message = "the script came from stdin, and is not on the tape";
            Err(Problem::new(Exit::Usage, "script.gone", message)
                .hint("give it again: `tooltape resume RUN --script FILE`"))
        }
        (None, Some(path)) => ScriptFile::read(Path::new(path)).map(Some),
        (None, None) => Ok(None),
    }
}

/// Brings the calls of a run without an agent to their end.
pub(super) async fn settle(stage: Stage<'_>, run: Run) -> Result<Exit> {
    let run = Arc::new(run);
    let work = tokio::spawn({
        let run = run.clone();
        async move { run.settle_open().await }
    });
    let waited = stage.stop.wait(work, over(stage.how.timeout), || run.cancel()).await;
    let replies = match waited.done {
        Some(Ok(replies) | Err(RunError::Ended { replies, .. })) => replies,
        Some(Err(err @ RunError::Paused { .. })) => {
            let hint = approve_hint(&stage.context.tape_flag());
            let problem = Problem::new(Exit::Unasked, "approval.needed", err.to_string());
            return Err(problem.hint(hint).run(stage.id));
        }
        Some(Err(err)) => {
            return Err(Problem::new(Exit::Failed, "run.failed", err.to_string()).run(stage.id));
        }
        None => {
            let message = "what was running did not stop";
            return Err(Problem::new(Exit::Failed, "run.abandoned", message).run(stage.id));
        }
    };
    let status = status(&replies);
    let ended = stage.tape.end(status, "call").await;
    ended.map_err(|err| stage.kept.problem(&err).run(stage.id))?;
    if stage.context.out.format == Format::Json && !stage.how.jsonl {
        stage.context.out.json(&replies)?;
    }
    match status {
        "ended" => Ok(Exit::Done),
        _ => {
            let faults = replies.iter().filter_map(|reply| Some((reply, reply.fault.as_ref()?)));
            let messages: Vec<String> =
                faults.map(|(reply, fault)| format!("{}: {}", reply.name, fault.message)).collect();
            let executed = stage.tape.tally().executed();
            Err(Problem::new(Exit::Failed, "call.failed", messages.join("; "))
                .executed(executed)
                .run(stage.id))
        }
    }
}

fn status(replies: &[Reply]) -> &'static str {
    let kinds: Vec<_> = replies.iter().filter_map(|it| Some(it.fault.as_ref()?.kind)).collect();
    match kinds.as_slice() {
        [] => "ended",
        kinds if kinds.contains(&FaultKind::Cancelled) => "cancelled",
        _ => "failed",
    }
}

/// Why a run cannot go on.
pub(super) fn refused(kept: &Kept, run: RunId, err: &ResumeError) -> Box<Problem> {
    let problem = match err {
        ResumeError::Tape(err) => kept.problem(err),
        ResumeError::Run(RunError::Tape(err)) => kept.problem(err),
        ResumeError::Run(RunError::MissingGrants(missing)) => ungranted(missing),
        ResumeError::Ended { .. } => Problem::new(Exit::Failed, "run.ended", err.to_string())
            .hint("`tooltape show RUN` says how; `tooltape fork RUN --at CALL` goes on elsewhere"),
        ResumeError::Nested { .. } => Problem::new(Exit::Failed, "run.nested", err.to_string())
            .hint("`tooltape resume` goes on with the run that started it"),
        err => Problem::new(Exit::Failed, "run.unresumable", err.to_string())
            .hint("`tooltape show RUN` says how far it came"),
    };
    problem.run(run)
}
