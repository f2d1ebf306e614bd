//! Where the tape is, what is kept beside it, and which of its runs is meant.

use std::fs;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;
use tooltape::{Artifacts, Recovered, RunId, RunsQuery, SqliteTape, TapeError};

use crate::escape;
use crate::exit::Exit;
use crate::out::Out;
use crate::report::{Problem, Result};

/// How many runs are named where several could be meant.
const NAMED_MAX: usize = 5;

/// Where a tape is, whether or not there is one.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) path: PathBuf,
    /// Whether the user named it.
    is_named: bool,
}

/// A tape that is open.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) tape: SqliteTape,
    pub(crate) path: PathBuf,
}

impl Location {
    /// The tape that the user named, or else the one that all commands of this user share.
    pub(crate) fn find(named: Option<&Path>) -> Result<Location> {
        if let Some(path) = named {
            return Ok(Location { path: path.to_owned(), is_named: true });
        }
        let data = Xdg::new().map(|xdg| xdg.data_dir()).map_err(|_| {
            Problem::new(Exit::Usage, "tape.homeless", "there is no folder for the tape")
                .hint("set `HOME` or `XDG_DATA_HOME`, or name a tape with `--tape FILE`")
        })?;
        Ok(Location { path: data.join("tooltape/runs.db"), is_named: false })
    }

    /// A tape that the user named.
    pub(crate) fn named(path: &Path) -> Location {
        Location { path: path.to_owned(), is_named: true }
    }

    /// Opens the tape to write on it. It is made if it is not there.
    pub(crate) fn open(&self, out: Out) -> Result<Kept> {
        if let (false, Some(folder)) = (self.is_named, self.path.parent()) {
            make_private(folder).map_err(|err| {
                let why = format!("`{}`: {err}", folder.display());
                problem(&self.path, &TapeError::Io { why })
            })?;
        }
        let kept = self.kept(SqliteTape::open(&self.path))?;
        tell(out, kept.tape.recovered());
        Ok(kept)
    }

    /// Opens the tape to read what is on it, if there is one.
    pub(crate) fn open_to_read(&self) -> Result<Option<Kept>> {
        let is_missing = self.path.symlink_metadata().is_err();
        match is_missing && !self.is_named {
            true => Ok(None),
            false => self.kept(SqliteTape::open_read_only(&self.path)).map(Some),
        }
    }

    /// Opens the tape to read a run, and finds the run.
    pub(crate) fn run(&self, text: &str) -> Result<(Kept, RunId)> {
        match self.open_to_read()? {
            Some(kept) => kept.run(text).map(|run| (kept, run)),
            None => Err(unknown(text, "there are no runs yet")),
        }
    }

    fn kept(&self, opened: std::result::Result<SqliteTape, TapeError>) -> Result<Kept> {
        let path = self.path.clone();
        match opened {
            Ok(tape) => Ok(Kept { tape, path }),
            Err(err) => Err(problem(&path, &err)),
        }
    }
}

impl Kept {
    /// The artifacts of the tape's runs.
    pub(crate) fn artifacts(&self) -> Result<Artifacts> {
        let folder = self.artifacts_folder();
        Artifacts::in_dir(&folder).map_err(|err| {
            let message = format!("`{}` cannot be used: {err}", folder.display());
            Problem::new(Exit::Failed, "artifacts.unusable", message)
                .hint("artifacts are kept beside the tape: name another with `--tape FILE`")
        })
    }

    /// Where they are.
    pub(crate) fn artifacts_folder(&self) -> PathBuf {
        let mut folder = self.path.clone().into_os_string();
        folder.push(".artifacts");
        folder.into()
    }

    /// The run that is meant: by its id, the beginning of one, or `last`.
    pub(crate) fn run(&self, text: &str) -> Result<RunId> {
        let runs = self.tape.find(text).map_err(|err| self.problem(&err))?;
        match runs.as_slice() {
            [run] => Ok(*run),
            [] => {
                let newest = RunsQuery::all();
                let is_empty = self.tape.runs(&newest).is_ok_and(|runs| runs.is_empty());
                let found = if is_empty { "there are no runs yet" } else { "no run begins so" };
                Err(unknown(text, found))
            }
            [..] => {
                let named: Vec<String> =
                    runs.iter().take(NAMED_MAX).map(|run| format!("`{run}`")).collect();
                let more = runs.len().saturating_sub(NAMED_MAX);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                let message = format!("`{}` begins {} runs", escape::line(text), runs.len());
                Err(Problem::new(Exit::Failed, "run.ambiguous", message)
                    .hint(format!("write more of it: {}{more}", named.join(", "))))
            }
        }
    }

    /// What went wrong with the tape.
    pub(crate) fn problem(&self, err: &TapeError) -> Box<Problem> {
        problem(&self.path, err)
    }
}

fn unknown(text: &str, found: &str) -> Box<Problem> {
    let message = format!("there is no run `{}`: {found}", escape::line(text));
    Problem::new(Exit::Failed, "run.unknown", message)
        .hint("`tooltape runs` lists the runs; `last` is the newest")
}

/// Says what opening a tape found out of order.
fn tell(out: Out, recovered: &Recovered) {
    if let Some(torn) = recovered.torn {
        out.say(&format!(
            "tape      {} pages that a crash cut off were left out; none was acknowledged",
            torn.frames
        ));
    }
    for dead in recovered.dead.iter().filter(|dead| !dead.runs.is_empty()) {
        let runs: Vec<String> = dead.runs.iter().map(ToString::to_string).collect();
        let host = escape::line(&dead.host);
        out.say(&format!(
            "tape      process {} on {host} ended without closing it, in run {}",
            dead.pid,
            runs.join(", ")
        ));
    }
}

/// A tape that does not do what it must, as the command reports it.
pub(crate) fn problem(path: &Path, err: &TapeError) -> Box<Problem> {
    let shown = escape::line(&path.display().to_string()).into_owned();
    let (exit, code, hint) = match err {
        TapeError::Corrupt { .. } => (
            Exit::Differs,
            "tape.corrupt",
            "`tooltape verify` says what can still be trusted; other runs, and the records \
             before it, can still be read; nothing was changed",
        ),
        TapeError::Erased { .. } => (
            Exit::Failed,
            "run.erased",
            "its hashes are still there, and `tooltape verify RUN` checks them",
        ),
        TapeError::Newer { .. } => (
            Exit::Failed,
            "tape.newer",
            "nothing was changed; use a newer `tooltape`, or another tape with `--tape FILE`",
        ),
        TapeError::Locked { .. } => (
            Exit::Failed,
            "run.locked",
            "`tooltape show RUN` and `tooltape tail -f RUN` read it meanwhile",
        ),
        TapeError::Full { .. } => (
            Exit::Failed,
            "tape.full",
            "what is recorded is safe and can be read; make room, then `tooltape resume`",
        ),
        TapeError::ReadOnly => (
            Exit::Failed,
            "tape.read_only",
            "it can still be read; to write, name another tape with `--tape FILE`",
        ),
        TapeError::Foreign { .. } => (
            Exit::Failed,
            "tape.foreign",
            "name a tape with `--tape FILE`; `tooltape import FILE` takes in exported ones",
        ),
        TapeError::Conflict { .. } | TapeError::KeyTaken { .. } => (
            Exit::Failed,
            "run.conflict",
            "somebody else wrote to the run; `tooltape show RUN` says what",
        ),
        TapeError::Io { .. } => {
            (Exit::Failed, "tape.unusable", "name a tape that you may use with `--tape FILE`")
        }
        TapeError::Poisoned { .. } => (
            Exit::Failed,
            "tape.poisoned",
            "what was acknowledged is on it; see that the disk is well, then `tooltape resume`",
        ),
        _ => (Exit::Failed, "tape.failed", "`tooltape verify` looks for the cause"),
    };
    Problem::new(exit, code, format!("{err} (`{shown}`)")).hint(hint)
}

/// Makes a folder that only its owner can enter: a tape holds what tools read.
fn make_private(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
