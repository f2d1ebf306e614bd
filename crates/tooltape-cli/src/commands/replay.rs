//! `tooltape replay`.

use std::path::Path;

use tooltape::{Divergence, Event, Name, Record, Replay, ReplayError, Report};

use super::Context;
use super::resume::check_own;
use super::runs::agreed;
use crate::args::Replay as ReplayArgs;
use crate::config::Layers;
use crate::escape;
use crate::exit::Exit;
use crate::host::Rehearsal;
use crate::origin::Origin;
use crate::out::{BAD, Format, paint};
use crate::reel::Reel;
use crate::report::{Problem, Result};

/// Plays a run again without effects, and names what differs.
pub(super) async fn replay(context: &Context<'_>, args: &ReplayArgs) -> Result<Exit> {
    let location = context.location()?;
    if !args.live.is_empty() {
        let (kept, run) = location.run(&args.run)?;
        check_own(&kept.summary(run)?)?;
    }
    let reel = Reel::read(&location, &args.run)?;
    let (run, records) = (reel.id, reel.whole()?);
    let origin = origin(&records);
    let layers = layers_of(context, &records)?;
    let Rehearsal { run: rehearsed, policy, toolbox } = context.host.rehearse(&layers)?;
    let live = live(context, args, &toolbox, &origin)?;
    let mut rehearsed = rehearsed.policy(policy);
    if let (false, Some(folder)) = (live.is_empty(), &origin.workspace) {
        let workspace = crate::workspace::open_folder(Path::new(folder))?;
        rehearsed = rehearsed.grant(workspace.grant);
    }
    let mut replay = Replay::of_records(records).through(rehearsed);
    replay = live.into_iter().fold(replay, Replay::live);
    if args.all {
        replay = replay.report_all();
    }
    replay = args.from.into_iter().fold(replay, Replay::from);
    replay = args.to.into_iter().fold(replay, Replay::to);
    if let Some(kept) = location.open_to_read()?.filter(|kept| kept.artifacts_folder().is_dir()) {
        replay = replay.artifacts(&kept.artifacts()?);
    }
    let report = replay.check().await.map_err(|err| unplayed(&location.path, &err).run(run))?;
    match context.out.format {
        Format::Json => context.out.json(&report)?,
        Format::Text => context.out.table(&escape::text(&report.to_string()))?,
    }
    match report.is_same() {
        true => Ok(Exit::Done),
        false => Err(differs(&report)),
    }
}

/// The tools that are executed for real. Nobody does so by accident.
fn live(
    context: &Context<'_>,
    args: &ReplayArgs,
    toolbox: &tooltape::Toolbox,
    origin: &Origin,
) -> Result<Vec<Name>> {
    let mut live = Vec::new();
    for name in &args.live {
        let tool = toolbox.get(name).ok_or_else(|| {
            let message = format!("there is no tool `{}` to execute", escape::line(name));
            Problem::new(Exit::Failed, "tool.unknown", message)
                .hint("`tooltape tools list` lists the tools")
        })?;
        live.push(tool.id().name().clone());
    }
    if live.is_empty() {
        return Ok(live);
    }
    let names: Vec<&str> = live.iter().map(Name::as_str).collect();
    let place = origin.workspace.as_deref().unwrap_or("nowhere");
    let warning = format!(
        "LIVE: {} will be executed for real, in {}; what it writes, it writes again",
        names.join(", "),
        escape::line(place),
    );
    context.out.say(&paint(BAD, warning));
    match args.yes || agreed(context, "execute it for real?")? {
        true => Ok(live),
        false => Err(Problem::new(Exit::Denied, "replay.refused", "nothing was played")),
    }
}

/// Where a recorded run came from.
pub(super) fn origin(records: &[Record]) -> Origin {
    match records.first().map(|record| &record.event) {
        Some(Event::RunStarted { note, .. }) => Origin::read(note.as_deref()),
        _ => Origin::default(),
    }
}

/// The configuration that a recorded run names, or else that of the current folder.
pub(super) fn layers_of(context: &Context<'_>, records: &[Record]) -> Result<Layers> {
    let Origin { config, model, .. } = origin(records);
    let config = config.filter(|config| Path::new(config).exists());
    context.layers_asking(Path::new(config.as_deref().unwrap_or(".")), model)
}

/// Why a run could not be played.
fn unplayed(tape: &Path, err: &ReplayError) -> Box<Problem> {
    match err {
        ReplayError::Tape(err) => crate::kept::problem(tape, err),
        ReplayError::MissingGrants(_) => {
            Problem::new(Exit::Unexpected, "grants.missing", err.to_string())
                .hint("grant it with `tooltape_cli::Cli::grant`, or disable the tool")
        }
        err => Problem::new(Exit::Failed, "replay.failed", err.to_string())
            .hint("`tooltape show RUN` says what there is"),
    }
}

fn differs(report: &Report) -> Box<Problem> {
    let message = match (report.divergences.as_slice(), report.missing_artifacts.len()) {
        ([], artifacts) => format!("{artifacts} artifacts of the run are missing"),
        ([first, rest @ ..], _) => {
            let Divergence { seq, pointer, .. } = first;
            let more = match rest.len() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let pointer = if pointer.is_empty() { "/" } else { pointer };
            format!("the replay differs from the record at record {seq}, `{pointer}`{more}")
        }
    };
    Problem::new(Exit::Differs, "replay.diverged", message)
        .hint("the report on stdout names likely causes; nothing was changed")
        .run(report.run)
}
