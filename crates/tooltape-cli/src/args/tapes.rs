//! What can be typed about runs that are on a tape.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Subcommand, ValueEnum, ValueHint};
use tooltape::RunStatus;

use super::{DURATION_MAX, Pair, duration, pair};
use crate::when::Moment;

/// How many runs are listed unless told.
const RUNS_DEFAULT: usize = 50;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, the newest first
    Ls(Filter),
    /// Erase runs; a tombstone with the head of each stays
    Rm(Rm),
    /// Remove artifacts that no run of the tape refers to; without `--yes`, only list them
    Gc {
        /// Remove them
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only runs with this status
    #[arg(long, value_name = "STATUS", value_parser = statuses())]
    pub(crate) status: Option<RunStatus>,
    /// Only runs that called this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only runs that started since then: `2h`, `3d`, `2026-11-16`, `2026-11-16T01:47:11Z`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Moment>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = RUNS_DEFAULT)]
    pub(crate) limit: usize,
    /// Also runs that were started by calls of other runs
    #[arg(long)]
    pub(crate) nested: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rm {
    /// The runs: ids, beginnings of ids, or `last`
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Erase what the records say, and keep their hashes, so that `verify` still holds the chain
    #[arg(long)]
    pub(crate) payloads: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("view"))]
pub(crate) struct Show {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// Draw when each call waited and ran
    #[arg(long, group = "view")]
    pub(crate) timeline: bool,
    /// One line for each event
    #[arg(long, group = "view")]
    pub(crate) log: bool,
    /// Every event with all that it says
    #[arg(long, group = "view")]
    pub(crate) full: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// A run, a tape, or an exported tape; the whole tape unless told
    #[arg(value_name = "RUN|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) what: Option<String>,
    /// An exported head that the run must lead to
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) head: Option<PathBuf>,
    /// The public key that must have signed the heads, in 64 hexadecimal digits
    #[arg(long, value_name = "HEX")]
    pub(crate) key: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The file; stdout unless told
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The form; what the file's name ends with decides unless told
    #[arg(long)]
    pub(crate) format: Option<ExportFormat>,
    /// Write the run's head to this file, to be kept elsewhere
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) head: Option<PathBuf>,
    /// Sign the head with the secret key in this file: 64 hexadecimal digits
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath)]
    pub(crate) sign: Option<PathBuf>,
}

/// The forms of an exported run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// `.tape.jsonl`: every byte held by a hash; can be verified and imported.
    Tape,
    /// `.json`: one document, for programs.
    Json,
    /// `.script.jsonl`: what the model said, as a script that plays it again without the model.
    Script,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tail {
    /// The run; the newest one unless told
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// Wait for more until the run ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print each event, one JSON object a line
    #[arg(long, conflicts_with = "json")]
    pub(crate) jsonl: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// The run: its id, the beginning of it, `last`, or an exported tape
    #[arg(value_name = "RUN|FILE")]
    pub(crate) run: String,
    /// Go on after a difference, and report all
    #[arg(long)]
    pub(crate) all: bool,
    /// Count differences from this record on
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// End with this record
    #[arg(long, value_name = "SEQ")]
    pub(crate) to: Option<u64>,
    /// DANGEROUS: execute this tool for real; what it writes, it writes again
    #[arg(long, value_name = "TOOL")]
    pub(crate) live: Vec<String>,
    /// Do not ask before `--live`
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The run; the newest that crashed or was paused unless told
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// The script to go on with, where it came from stdin or is elsewhere now
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) script: Option<PathBuf>,
    /// DANGEROUS: do this call again, though it may have happened; `--yes` never says so
    #[arg(long, value_name = "CALL")]
    pub(crate) again: Vec<u64>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Fork {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The call that is made anew; calls are numbered from 1
    #[arg(long, value_name = "CALL")]
    pub(crate) at: u64,
    /// An argument of that call; strings are taken as they are, all else is JSON
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) set: Vec<Pair>,
    #[command(flatten)]
    pub(crate) how: How,
}

/// How an agent goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// Print each event as it happens, one JSON object a line
    #[arg(long, conflicts_with = "json")]
    pub(crate) jsonl: bool,
    /// The model, such as `openai:MODEL` or `http://127.0.0.1:8080/v1`: short for `--set
    /// agent.model=…`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Wait this long before each turn of a script, such as `500ms`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) pace: Option<Duration>,
    /// Cancel the run after this long, such as `2m`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Answer every question whether a call may run with yes; what is denied stays denied
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// A run, or an exported tape
    #[arg(value_name = "RUN_A")]
    pub(crate) a: String,
    /// Another
    #[arg(value_name = "RUN_B")]
    pub(crate) b: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RecordTest {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR", default_value = "tests")]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    /// What the test is called
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// An expression for the tools, where the program has tools of its own
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) tools: Option<String>,
}

fn statuses() -> impl clap::builder::TypedValueParser<Value = RunStatus> {
    use clap::builder::{PossibleValuesParser, TypedValueParser as _};
    PossibleValuesParser::new(RunStatus::ALL.map(RunStatus::as_str))
        .map(|status| status.parse().expect("the parser takes only statuses"))
}

fn moment(text: &str) -> Result<Moment, String> {
    if let Some(moment) = Moment::read(text) {
        return Ok(moment);
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let ago = match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        None => duration(text),
    };
    ago.map(Moment::Ago).map_err(|_| {
        let hours = DURATION_MAX.as_secs() / 3_600;
        format!(
            "expected a time such as `2h` (up to {hours}), `3d`, `2026-11-16` or \
                 `2026-11-16T01:47:11Z`"
        )
    })
}
