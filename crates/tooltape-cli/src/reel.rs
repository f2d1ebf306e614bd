//! A run as it is read back: from the tape, or from an exported file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use tooltape::limits::READ_RECORDS_MAX;
use tooltape::{
    Event, Line, Record, RunId, RunStatus, RunSummary, RunsQuery, TapeError, read_tape,
};

use crate::escape;
use crate::exit::Exit;
use crate::kept::{Kept, Location, problem};
use crate::report::{Problem, Result};
use crate::tally::Tally;

/// How deeply nested runs are followed.
const DEPTH_MAX: usize = 64;
/// How an exported tape's name ends.
pub(crate) const EXTENSION: &str = ".tape.jsonl";

/// What can be read of a run.
pub(crate) struct Reel {
    pub(crate) id: RunId,
    /// The records that are sound.
    pub(crate) records: Vec<Record>,
    /// Why there are no more, where there should be.
    pub(crate) broken: Option<Box<Problem>>,
    /// How the run is; of an exported one, only what its records say.
    pub(crate) status: RunStatus,
    /// When it started, in microseconds since the Unix epoch.
    pub(crate) started_us: u64,
    /// The runs that its calls started.
    pub(crate) nested: Vec<Reel>,
}

impl Reel {
    /// Reads a run and those that it started. `text` names it, or an exported tape.
    pub(crate) fn read(location: &Location, text: &str) -> Result<Reel> {
        if is_file(text) {
            return Reel::exported(Path::new(text));
        }
        let (kept, run) = location.run(text)?;
        Reel::kept(&kept, &kept.summary(run)?, DEPTH_MAX)
    }

    /// Reads a run of a tape.
    fn kept(kept: &Kept, summary: &RunSummary, depth: usize) -> Result<Reel> {
        let RunSummary { id, status, started_us, .. } = *summary;
        let (records, broken) = kept.records(id);
        let mut query = RunsQuery::all();
        query.parent = Some(id);
        let nested = match depth {
            0 => Vec::new(),
            1.. => kept.tape.runs(&query).map_err(|err| kept.problem(&err))?,
        };
        let nested = nested.iter().rev().map(|nested| Reel::kept(kept, nested, depth - 1));
        let nested = nested.collect::<Result<_>>()?;
        Ok(Reel { id, records, broken, status, started_us, nested })
    }

    /// Reads the runs of an exported tape; the first one is the one that is meant.
    fn exported(path: &Path) -> Result<Reel> {
        let mut reels: Vec<Reel> = Vec::new();
        let read = read_lines(path, |line| {
            let record = line.record()?;
            match reels.last_mut().filter(|reel| reel.id == record.run) {
                Some(reel) => reel.records.push(record),
                None => reels.push(Reel {
                    id: record.run,
                    started_us: record.at_us,
                    records: vec![record],
                    broken: None,
                    status: RunStatus::Crashed,
                    nested: Vec::new(),
                }),
            }
            Ok(())
        });
        let broken = read.err();
        for reel in &mut reels {
            reel.status = ended(&reel.records);
        }
        let mut reels = reels.into_iter();
        match (reels.next(), broken) {
            (Some(first), broken) => Ok(Reel { broken, nested: reels.collect(), ..first }),
            (None, Some(broken)) => Err(broken),
            (None, None) => {
                let err = TapeError::Foreign { why: "it holds no run".into() };
                Err(problem(path, &err))
            }
        }
    }

    /// What happened in it.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.records.iter().for_each(|record| tally.count(&record.event));
        tally
    }

    /// The runs that a call started.
    pub(crate) fn nested_in(&self, call: tooltape::CallNo) -> impl Iterator<Item = &Reel> {
        self.nested.iter().filter(move |reel| match reel.records.first().map(|it| &it.event) {
            Some(Event::RunStarted { parent: Some(parent), .. }) => {
                parent.run == self.id && parent.call == call
            }
            _ => false,
        })
    }

    /// All records, or why there are not all.
    pub(crate) fn whole(self) -> Result<Vec<Record>> {
        match self.broken {
            None => Ok(self.records),
            Some(broken) => Err(broken),
        }
    }
}

impl Kept {
    /// What the tape says first of a run.
    pub(crate) fn summary(&self, run: RunId) -> Result<RunSummary> {
        let mut query = RunsQuery::all();
        query.id = Some(run);
        let runs = self.tape.runs(&query).map_err(|err| self.problem(&err))?;
        let gone = || {
            let message = format!("the run `{run}` is not on the tape any more");
            Problem::new(Exit::Failed, "run.unknown", message)
                .hint("`tooltape runs` lists the runs")
        };
        runs.into_iter().next().ok_or_else(gone)
    }

    /// The records of a run, and why there are no more where there should be.
    pub(crate) fn records(&self, run: RunId) -> (Vec<Record>, Option<Box<Problem>>) {
        let mut records = Vec::new();
        let read = self.each_line(
            run,
            |_, err| err,
            |line| {
                records.push(line.record()?);
                Ok(())
            },
        );
        (records, read.err().map(|err| self.problem(&err).run(run)))
    }

    /// Hands over each line of a run in its order, until one is not sound; `unread` says what it
    /// means that the one at this place cannot be read.
    pub(crate) fn each_line<E>(
        &self,
        run: RunId,
        unread: impl FnOnce(u64, TapeError) -> E,
        mut take: impl FnMut(Line) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut from, mut most) = (0, READ_RECORDS_MAX);
        loop {
            match self.tape.lines(run, from, most) {
                Ok(page) if page.is_empty() => return Ok(()),
                Ok(page) => {
                    from += page.len() as u64;
                    page.into_iter().try_for_each(&mut take)?;
                }
                // What is sound of a page that is not is found in smaller pages.
                Err(TapeError::Corrupt { .. }) if most > 1 => most = (most / 8).max(1),
                Err(err) => return Err(unread(from, err)),
            }
        }
    }
}

/// Hands over each sound line of an exported tape.
pub(crate) fn read_lines(
    path: &Path,
    take: impl FnMut(Line) -> std::result::Result<(), TapeError>,
) -> Result<tooltape::TapeRead> {
    let shown = escape::line(&path.display().to_string()).into_owned();
    let file = File::open(path).map_err(|err| {
        Problem::new(Exit::Failed, "file.missing", format!("`{shown}` cannot be read: {err}"))
            .hint("name an exported tape, such as `run.tape.jsonl`")
    })?;
    read_tape(BufReader::new(file), take).map_err(|damage| {
        let hint = match damage.sound {
            0 => "nothing of it can be read; nothing was changed".to_owned(),
            sound => format!("its first {sound} records are sound; nothing was changed"),
        };
        Problem::new(Exit::Differs, "tape.corrupt", format!("`{shown}`: {damage}")).hint(hint)
    })
}

/// Whether a text names an exported tape rather than a run.
pub(crate) fn is_file(text: &str) -> bool {
    text.ends_with(".jsonl") || text.contains(['/', '\\'])
}

fn ended(records: &[Record]) -> RunStatus {
    match records.last().map(|record| &record.event) {
        Some(Event::RunEnded { status, .. }) => status.parse().unwrap_or(RunStatus::Ended),
        Some(Event::RunPaused { .. }) => RunStatus::Paused,
        _ => RunStatus::Crashed,
    }
}
