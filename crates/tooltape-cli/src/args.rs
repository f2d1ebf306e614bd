//! What can be typed.

mod tapes;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use tooltape::dialect::Dialect;

use crate::when::lifetime;

pub(crate) use tapes::{
    Diff, Export, ExportFormat, Filter, Fork, How, RecordTest, Replay, Resume, Rm, Runs,
    RunsCommand, Show, Tail, Verify,
};

/// The longest time that can be given.
const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The tool runtime for AI agents: every call is typed, permitted, bounded, and on tape.
#[derive(Debug, Parser)]
#[command(name = "tooltape", version, max_term_width = 100, infer_subcommands = false)]
#[command(after_help = "Exit codes: 0 done · 1 unexpected · 2 usage · 3 key wanted · \
    4 unreachable · 5 failed or not found · \
    6 denied · 7 approval needed · 8 invalid arguments · 9 damaged or diverged · 124 timeout · \
    130 interrupted")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Global {
    /// Print one JSON document on stdout, and a problem as one JSON line on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Narrate nothing; problems are still reported
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Narrate everything in full
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print no colours; `NO_COLOR`, `CLICOLOR_FORCE` and `TERM=dumb` are honoured, too
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Set a key of the configuration, such as `agent.turns=8`
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) set: Vec<Pair>,
    /// The folder that file tools work in: short for `--set workspace=DIR`
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<String>,
    /// Run processes without a sandbox: they may do whatever you may, and every result says so
    #[arg(long, global = true)]
    pub(crate) unsafe_no_sandbox: bool,
    /// The tape; `$XDG_DATA_HOME/tooltape/runs.db` unless told
    #[arg(long, global = true, env = "TOOLTAPE_TAPE", value_name = "FILE")]
    #[arg(hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) tape: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent and print the run as it happens
    Run(Run),
    /// Talk with an agent: line by line, with Ctrl-C to interrupt it
    Chat(Chat),
    /// Make one call through the whole path and print its reply
    Call(Call),
    /// List, erase and tidy up after runs
    Runs(Runs),
    /// Show a run: a compact list, a timeline, a log, or every event
    Show(Show),
    /// Print a run's events, and with `-f` wait for more
    Tail(Tail),
    /// Play a run again without effects, and name the first difference
    Replay(Replay),
    /// Go on with a run that crashed or was paused
    Resume(Resume),
    /// List and answer what paused runs ask
    #[command(subcommand)]
    Approve(Approve),
    /// Start a new run from a call of another, with other arguments
    Fork(Fork),
    /// Compare two runs, call by call
    Diff(Diff),
    /// Check a run, a tape or an exported tape: every hash, and what it refers to
    Verify(Verify),
    /// Write a run to a file
    Export(Export),
    /// Take in an exported tape
    Import {
        /// The file, such as `run.tape.jsonl`
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Write an offline test that plays a run again and passes as it stands
    RecordTest(RecordTest),
    /// List, show, check and export tools
    #[command(subcommand)]
    Tools(Tools),
    /// Check the policy, and explain what it decides
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Let a project's configuration, as it is now, decide about what is beyond its workspace
    Trust(Trust),
    /// Write a `tooltape.toml` and a script to start from
    Init(Init),
    /// Explain the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Say what the sandbox can do on this machine, and how to get the rest
    Doctor,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl Command {
    /// Whether it prints one JSON object a line.
    pub(crate) fn is_stream(&self) -> bool {
        match self {
            Command::Run(run) => run.how.jsonl,
            Command::Chat(chat) => chat.how.jsonl,
            Command::Tail(tail) => tail.jsonl,
            Command::Resume(resume) => resume.how.jsonl,
            Command::Fork(fork) => fork.how.jsonl,
            _ => false,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// A folder with a `tooltape.toml`, a script, or `-` for a script on stdin
    #[arg(value_name = "DIR|FILE|-", value_hint = ValueHint::AnyPath, default_value = ".")]
    pub(crate) what: PathBuf,
    /// What to ask: short for `--set agent.ask=TEXT`
    #[arg(long, value_name = "TEXT")]
    pub(crate) ask: Option<String>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Chat {
    /// A folder, with a `tooltape.toml` or without
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) how: How,
}

/// A tool and its arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct What {
    /// The tool
    pub(crate) name: String,
    /// Arguments; strings are taken as they are, all else is JSON
    #[arg(value_name = "NAME=VALUE", value_parser = OsStringValueParser::new().try_map(typed))]
    pub(crate) pairs: Vec<Typed>,
    /// All arguments as one JSON object, or `-` to read it from stdin
    #[arg(long, value_name = "JSON|-", conflicts_with = "pairs")]
    pub(crate) args_json: Option<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) what: What,
    /// Check the arguments and show what the policy would decide; execute nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Give up after this long, such as `5s`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Keep the tape in memory, where it ends with the command
    #[arg(long, conflicts_with = "tape")]
    pub(crate) no_tape: bool,
    /// Answer the question whether the call may run with yes; what is denied stays denied
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approve {
    /// List the questions that wait for an answer, the oldest first
    Ls,
    /// Show one question: the call, what it would change, and what bounds it
    Show {
        /// The question: its id, or the beginning of one
        id: String,
    },
    /// Let the call run: exactly this one, once
    Yes(Yes),
    /// Do not let the call run
    No {
        /// The question: its id, or the beginning of one
        id: String,
        /// Why, for the model to read
        #[arg(long, value_name = "WHY")]
        tell: Option<String>,
    },
    /// The answers that you saved for this project
    #[command(subcommand)]
    Saved(SavedCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Yes {
    /// The question: its id, or the beginning of one
    pub(crate) id: String,
    /// Also whatever the same rule asks about the same tool until the run ends
    #[arg(long)]
    pub(crate) run: bool,
    /// Also the same call in every run of this project, until the answer expires
    #[arg(long, conflicts_with = "run")]
    pub(crate) always: bool,
    /// Where it holds
    #[arg(long, requires = "always", default_value = "repo", value_parser = ["repo"])]
    pub(crate) scope: String,
    /// A text argument that may be another; all else must be equal
    #[arg(long, value_name = "NAME=GLOB", requires = "always", value_parser = pair)]
    pub(crate) pattern: Vec<Pair>,
    /// How long it holds, such as `8h` or `7d`; 30 days unless told
    #[arg(long = "for", value_name = "TIME", requires = "always", value_parser = lifetime)]
    pub(crate) lifetime: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SavedCommand {
    /// List them, the oldest first
    Ls,
    /// Forget some: no run takes them from here on
    Rm {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check the rules and their examples, and name those that never decide
    Check,
    /// Say what a call would come to, by which rule, file and line, and what else matches
    Explain(What),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools
    List,
    /// Show all that a tool declares
    Show {
        /// The tool
        name: String,
    },
    /// Make a program a tool: show what it asks for, and write it into `tooltape.toml`
    Add {
        /// The program, below the folder of `tooltape.toml`
        #[arg(value_hint = ValueHint::FilePath)]
        program: PathBuf,
    },
    /// Say what providers would refuse or lose, and what the tools leave undeclared
    Lint {
        /// Only for this provider; may be given more than once
        #[arg(long, value_name = "PROVIDER", value_parser = dialects())]
        provider: Vec<Dialect>,
        /// Exit with 5 if there is a finding as bad as this, or worse
        #[arg(long, value_name = "LEVEL", num_args = 0..=1, default_missing_value = "warning")]
        deny: Option<Level>,
    },
    /// Print the tools as a provider's API takes them
    Export {
        /// The provider's dialect
        #[arg(long, value_name = "PROVIDER", value_parser = dialects())]
        provider: Dialect,
    },
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    Note,
    Warning,
    Error,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// The project's folder, or its configuration
    #[arg(default_value = ".", value_hint = ValueHint::AnyPath)]
    pub(crate) project: PathBuf,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) withdraw: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The folder; it is made if it is not there
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// What to start from
    #[arg(long, value_enum, default_value_t = Template::Agent)]
    pub(crate) template: Template,
}

/// What a project starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// A configuration, and a script that an agent plays
    Agent,
    /// A tool in Rust that becomes a WASM component
    Wasm,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print each key's value, and the file and line, variable or flag that set it
    Explain {
        /// Only this key
        key: Option<String>,
    },
    /// Print the JSON Schema of `tooltape.toml`
    Schema,
}

/// `NAME=VALUE`, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// An argument of a call, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Pair(Pair),
    /// `NAME=VALUE` that is not UTF-8.
    Unreadable {
        /// With a replacement for what cannot be read.
        text: String,
        error: String,
    },
}

fn typed(text: OsString) -> Result<Typed, String> {
    match String::from_utf8(text.into_encoded_bytes()) {
        Ok(text) => pair(&text).map(Typed::Pair),
        Err(err) => {
            let text = String::from_utf8_lossy(err.as_bytes()).into_owned();
            pair(&text)?;
            Ok(Typed::Unreadable { text, error: err.utf8_error().to_string() })
        }
    }
}

fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok(Pair { name: name.to_owned(), value: value.to_owned() })
        }
        Some(_) | None => Err("expected `NAME=VALUE`".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let expected = "expected a number with `ms`, `s`, `m` or `h`, such as `500ms`";
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| expected.to_owned())?;
    let duration = Duration::from_millis(number.saturating_mul(unit_ms));
    if duration > DURATION_MAX {
        return Err(format!("expected at most {} hours", DURATION_MAX.as_secs() / 3_600));
    }
    Ok(duration)
}

fn dialects() -> impl clap::builder::TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(Dialect::ALL.map(Dialect::name))
        .map(|name| name.parse::<Dialect>().expect("the parser takes only names of dialects"))
}
