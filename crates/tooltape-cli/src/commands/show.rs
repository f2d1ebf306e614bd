//! `tooltape show`.

mod log;
mod timeline;

use serde::Serialize;
use tooltape::{Event, Record, RunId, RunStatus};

use super::Context;
use super::runs::counted;
use crate::args::Show;
use crate::escape;
use crate::exit::Exit;
use crate::origin::Origin;
use crate::out::{BAD, FAINT, Format, GOOD, STRONG, paint};
use crate::reel::Reel;
use crate::report::Result;
use crate::tell::{Teller, elapsed};
use crate::when;

/// How many characters of an answer the list shows.
const ANSWER_CHARS: usize = 400;

/// A run as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    id: RunId,
    status: RunStatus,
    started: String,
    turns: u64,
    calls: u64,
    errors: u64,
    /// Why it can be read no further.
    broken: Option<&'a str>,
    events: &'a [Record],
    nested: Vec<Document<'a>>,
}

impl<'a> Document<'a> {
    fn new(reel: &'a Reel) -> Document<'a> {
        let tally = reel.tally();
        Document {
            id: reel.id,
            status: reel.status,
            started: when::rfc3339(reel.started_us),
            turns: tally.turns,
            calls: tally.calls,
            errors: tally.errors,
            broken: reel.broken.as_ref().map(|problem| problem.message.as_str()),
            events: &reel.records,
            nested: reel.nested.iter().map(Document::new).collect(),
        }
    }
}

/// Shows a run.
pub(super) fn show(context: &Context<'_>, args: &Show) -> Result<Exit> {
    let reel = Reel::read(&context.location()?, &args.run)?;
    let out = context.out;
    match (out.format, args.timeline, args.log, args.full) {
        (Format::Json, ..) => out.json(&Document::new(&reel))?,
        (Format::Text, true, ..) => out.table(&timeline::draw(&reel))?,
        (Format::Text, _, true, _) => out.table(&log::lines(&reel).join("\n"))?,
        (Format::Text, _, _, true) => {
            reel.records.iter().try_for_each(|record| out.pretty(record))?;
        }
        (Format::Text, false, false, false) => {
            let mut lines = header(&reel);
            lines.extend(tree(context, &reel));
            out.table(&lines.join("\n"))?;
        }
    }
    // What can be read was shown; what cannot is reported.
    match reel.broken {
        Some(problem) => Err(problem),
        None => Ok(Exit::Done),
    }
}

/// A run as one document.
pub(super) fn document(reel: &Reel) -> Document<'_> {
    Document::new(reel)
}

/// What somebody wants to know first.
pub(super) fn header(reel: &Reel) -> Vec<String> {
    let (tally, note) = (reel.tally(), note(reel));
    let is_bad = [RunStatus::Failed, RunStatus::Crashed].contains(&reel.status);
    let style = match reel.status == RunStatus::Ended {
        true => GOOD,
        false if is_bad => BAD,
        false => STRONG,
    };
    let took = reel.records.last().map_or(0, |last| last.at_us.saturating_sub(reel.started_us));
    let counts = format!(
        "{}, {}, {} refused or failed, {}",
        counted(tally.turns as usize, "turn"),
        counted(tally.calls as usize, "call"),
        tally.errors,
        counted(reel.records.len(), "record"),
    );
    let mut lines = vec![
        format!("run       {} {}", reel.id, paint(style, reel.status)),
        format!("started   {} UTC, took {}", when::plain(reel.started_us), elapsed(took)),
        format!("has       {counts}"),
    ];
    let mut place = |name: &str, text: &Option<String>| {
        if let Some(text) = text {
            lines.push(paint(FAINT, format!("{name:9} {}", escape::line(text))));
        }
    };
    place("config", &note.config);
    place("workspace", &note.workspace);
    if let Some(Event::RunStarted { fork: Some(fork), .. }) =
        reel.records.first().map(|it| &it.event)
    {
        place("fork of", &Some(format!("{} at record {}", fork.run, fork.seq)));
    }
    lines
}

/// The run in lines, with the runs that its calls started below them.
fn tree(context: &Context<'_>, reel: &Reel) -> Vec<String> {
    let mut teller = Teller::new(context.out.detail, false);
    let mut lines = Vec::new();
    for record in &reel.records {
        lines.extend(teller.tell(record));
        if let Event::Settled(reply) = &record.event {
            lines.extend(below(context, reel, reply.call));
        }
    }
    lines.extend(teller.unsettled());
    let settled = |call| {
        let is_it =
            |record: &Record| matches!(&record.event, Event::Settled(reply) if reply.call == call);
        reel.records.iter().any(is_it)
    };
    let started = reel.records.iter().filter_map(|record| match record.event {
        Event::Started { call, attempt: 1, .. } if !settled(call) => Some(call),
        _ => None,
    });
    lines.extend(started.flat_map(|call| below(context, reel, call)));
    if let Some(end) = reel.tally().end {
        let answer = end.answer.as_deref().unwrap_or("");
        let answer = escape::clipped(answer, ANSWER_CHARS);
        let how = format!("{} by {}", end.status, escape::clipped(&end.stop, ANSWER_CHARS));
        lines.push(format!("{} {answer}", paint(STRONG, how)).trim_end().to_owned());
    }
    lines
}

fn below(context: &Context<'_>, reel: &Reel, call: tooltape::CallNo) -> Vec<String> {
    let nested = reel.nested_in(call).flat_map(|nested| {
        let head = format!("    └ run {} {}", nested.id, nested.status);
        let lines = tree(context, nested).into_iter().map(|line| format!("      {line}"));
        std::iter::once(paint(FAINT, head)).chain(lines).collect::<Vec<_>>()
    });
    nested.collect()
}

fn note(reel: &Reel) -> Origin {
    match reel.records.first().map(|record| &record.event) {
        Some(Event::RunStarted { note, .. }) => Origin::read(note.as_deref()),
        _ => Origin::default(),
    }
}
