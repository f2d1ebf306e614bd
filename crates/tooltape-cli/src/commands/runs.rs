//! `tooltape runs`.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::time::{Duration, SystemTime};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::json;
use tooltape::{Artifact, Clock, Erase, Head, RunId, RunStatus, RunSummary, RunsQuery};

use super::Context;
use crate::args::{Filter, Rm};
use crate::escape;
use crate::exit::Exit;
use crate::kept::Kept;
use crate::out::{FAINT, Format, paint};
use crate::report::{Problem, Result};
use crate::tell::elapsed;
use crate::when;

/// How old an artifact must be before it is thrown away: a run that goes on may be about to refer
/// to it.
const GRACE: Duration = Duration::from_secs(60 * 60);
/// How many runs are read at a time.
const PAGE: usize = 1_000;
/// How deeply nested runs are followed.
const DEPTH_MAX: usize = 64;

/// A run as `--json` lists it.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    summary: &'a RunSummary,
    started: String,
    last: String,
}

/// A run that was erased.
#[derive(Serialize)]
struct Erased {
    id: RunId,
    erased: &'static str,
    len: u64,
    head: tooltape::Hash,
}

/// Lists runs, the newest first.
pub(super) fn list(context: &Context<'_>, filter: &Filter) -> Result<Exit> {
    let (runs, is_more) = match context.location()?.open_to_read()? {
        Some(kept) => select(&kept, filter)?,
        None => (Vec::new(), false),
    };
    match context.out.format {
        Format::Json => {
            let row = |summary| Row {
                summary,
                started: when::rfc3339(summary.started_us),
                last: when::rfc3339(summary.last_us),
            };
            context.out.json(&runs.iter().map(row).collect::<Vec<_>>())?;
        }
        Format::Text if runs.is_empty() => context.out.say("there are no such runs"),
        Format::Text => context.out.table(&table(&runs))?,
    }
    if is_more {
        context.out.say(&paint(FAINT, format!("and more; `--limit {}`", filter.limit * 2)));
    }
    Ok(Exit::Done)
}

/// The runs that are wanted, and whether there are more.
fn select(kept: &Kept, filter: &Filter) -> Result<(Vec<RunSummary>, bool)> {
    let mut query = RunsQuery::all();
    query.status = filter.status;
    query.tool.clone_from(&filter.tool);
    let now_us = Clock::system().unix_us();
    query.since_us = filter.since.map(|since| since.unix_us(now_us));
    query.limit = Some(PAGE);
    let mut runs = Vec::new();
    loop {
        let page = kept.tape.runs(&query).map_err(|err| kept.problem(&err))?;
        query.before = page.last().map(|run| run.id);
        let is_last = page.len() < PAGE;
        runs.extend(page.into_iter().filter(|run| filter.nested || run.parent.is_none()));
        if is_last || runs.len() > filter.limit {
            let is_more = runs.len() > filter.limit;
            runs.truncate(filter.limit);
            return Ok((runs, is_more));
        }
    }
}

pub(super) fn table(runs: &[RunSummary]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["RUN", "STATUS", "STARTED (UTC)", "TOOK", "CALLS", "ERRORS", "TOOLS"]);
    for run in runs {
        let doubt = match run.in_doubt {
            0 => String::new(),
            in_doubt => format!(", {in_doubt} in doubt"),
        };
        table.add_row([
            run.id.to_string(),
            format!("{}{doubt}", run.status),
            when::plain(run.started_us),
            elapsed(run.last_us - run.started_us),
            run.calls.to_string(),
            run.errors.to_string(),
            escape::line(&run.tools.join(", ")).into_owned(),
        ]);
    }
    table.to_string()
}

/// Erases runs, and the runs that their calls started.
pub(super) fn remove(context: &Context<'_>, args: &Rm) -> Result<Exit> {
    let location = context.location()?;
    if location.open_to_read()?.is_none() {
        location.run(&args.runs[0])?;
    }
    let kept = location.open(context.out)?;
    let mut runs = Vec::new();
    for text in &args.runs {
        runs.extend(with_nested(&kept, kept.run(text)?)?);
    }
    let mut seen = BTreeSet::new();
    runs.retain(|run| seen.insert(*run));
    let (what, word) = match args.payloads {
        true => (Erase::Payloads, "payloads"),
        false => (Erase::Records, "records"),
    };
    let question = format!("erase the {word} of {} for good?", counted(runs.len(), "run"));
    if !args.yes && !agreed(context, &question)? {
        return Err(Problem::new(Exit::Denied, "runs.kept", "nothing was erased"));
    }
    let mut erased = Vec::new();
    for id in runs {
        let head = kept.tape.erase(id, what).map_err(|err| kept.problem(&err).run(id))?;
        let Head { len, hash } = head.unwrap_or_else(Head::empty);
        erased.push(Erased { id, erased: word, len, head: hash });
    }
    match context.out.format {
        Format::Json => context.out.json(&erased)?,
        Format::Text => {
            for Erased { id, len, head, .. } in &erased {
                let line = format!("erased the {word} of {id}; {len} records had the head {head}");
                context.out.table(&line)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// A run, and behind it those that it started, the oldest first.
pub(super) fn with_nested(kept: &Kept, run: RunId) -> Result<Vec<RunId>> {
    fn add(kept: &Kept, run: RunId, depth: usize, runs: &mut Vec<RunId>) -> Result {
        runs.push(run);
        let mut query = RunsQuery::all();
        query.parent = Some(run);
        let nested = kept.tape.runs(&query).map_err(|err| kept.problem(&err))?;
        let mut nested = nested.iter().rev().filter(|_| depth > 0);
        nested.try_for_each(|nested| add(kept, nested.id, depth - 1, runs))
    }
    let mut runs = Vec::new();
    add(kept, run, DEPTH_MAX, &mut runs)?;
    Ok(runs)
}

/// Asks the person at the terminal, if there is one.
pub(super) fn agreed(context: &Context<'_>, question: &str) -> Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let message = format!("nobody can be asked: {question}");
        return Err(
            Problem::new(Exit::Unasked, "approval.needed", message).hint("say yes with `--yes`")
        );
    }
    context.out.prompt(&format!("{question} [y/N] "));
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    Ok(read.is_ok() && ["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}

/// How many of something there are.
pub(super) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Throws away what is kept beside the tape and no run refers to; or only says what that is.
pub(super) fn collect(context: &Context<'_>, yes: bool) -> Result<Exit> {
    let none = || (Vec::new(), "remove");
    let (artifacts, word) = match context.location()?.open_to_read()? {
        Some(kept) if kept.artifacts_folder().is_dir() => sweep(&kept, yes)?,
        Some(_) | None => none(),
    };
    let bytes: u64 = artifacts.iter().map(|artifact| artifact.bytes).sum();
    match context.out.format {
        Format::Json => {
            let listed: Vec<_> = artifacts
                .iter()
                .map(|artifact| json!({ "id": artifact.id, "bytes": artifact.bytes }))
                .collect();
            let document = json!({ "artifacts": listed, "bytes": bytes, "removed": yes });
            context.out.json(&document)?;
        }
        Format::Text => {
            for Artifact { id, bytes } in &artifacts {
                context.out.table(&format!("{id} {bytes}"))?;
            }
            let count = counted(artifacts.len(), "artifact");
            context.out.say(&format!("{word} {count}, {bytes} bytes"));
            if !yes && !artifacts.is_empty() {
                context.out.say("nothing was removed; `--yes` does it");
            }
        }
    }
    Ok(Exit::Done)
}

/// When the oldest run started that is running: what it made it may refer to only at its end.
fn oldest_running(kept: &Kept) -> Result<SystemTime> {
    let mut query = RunsQuery::all();
    query.status = Some(RunStatus::Running);
    let mut oldest = SystemTime::now();
    loop {
        let page = kept.tape.runs(&query).map_err(|err| kept.problem(&err))?;
        let Some(last) = page.last() else { return Ok(oldest) };
        query.before = Some(last.id);
        oldest = SystemTime::UNIX_EPOCH + Duration::from_micros(last.started_us);
    }
}

fn sweep(kept: &Kept, yes: bool) -> Result<(Vec<Artifact>, &'static str)> {
    let artifacts = kept.artifacts()?;
    // Looked at before the tape, so that what is referred to meanwhile is younger.
    let before = (SystemTime::now() - GRACE).min(oldest_running(kept)?);
    let referred = kept.tape.artifacts().map_err(|err| kept.problem(&err))?;
    let swept = match yes {
        true => artifacts.sweep(&referred, before).map(|swept| (swept, "removed")),
        false => artifacts.unreferred(&referred, before).map(|found| (found, "would remove")),
    };
    swept.map_err(|err| {
        Problem::new(Exit::Failed, "artifacts.unusable", err.to_string())
            .hint("what was not removed is as it was")
    })
}
