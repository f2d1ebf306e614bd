//! Why a call did not succeed, and who can fix it.

mod failure;

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::{fmt, mem};

use serde::{Deserialize, Serialize};

pub use failure::{ToolError, ToolErrorKind};

/// The most bytes of a message that a model reads for a fault.
pub const TOLD_BYTES_MAX: usize = 2_048;

/// Whether a call's effect happened. Every reply says one of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Executed {
    /// Nothing happened.
    NotExecuted,
    /// The tool ran to its end.
    Executed,
    /// It may have happened; nobody can tell from here.
    Unknown,
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Executed::NotExecuted => "not executed",
            Executed::Executed => "executed",
            Executed::Unknown => "unknown",
        })
    }
}

/// Why a call produced no output. Each variant names who must act next.
#[derive(Debug)]
pub enum Fault {
    /// The model asked badly and may ask again.
    Repair(Repair),
    /// Policy or a human said no.
    Denied(Denied),
    /// The tool tried and failed.
    Failed(ToolError),
    /// A bound was reached.
    Exceeded(Exceeded),
    /// Somebody cancelled the call.
    Cancelled {
        /// Whether anything happened.
        executed: Executed,
        /// What the tool said about it, where it was the tool that stopped.
        said: Option<ToolError>,
    },
    /// The call started, and nobody knows whether it happened.
    InDoubt(ToolError),
    /// The program is wrong; the run must stop.
    Bug {
        /// Whether the effect happened.
        executed: Executed,
        /// What is wrong.
        why: String,
    },
}

/// The kind of a fault, which says who acts next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The model mends its proposal.
    Repair,
    /// Policy or a human said no.
    Denied,
    /// The tool tried and failed.
    Failed,
    /// A bound was reached.
    Exceeded,
    /// Somebody cancelled the call.
    Cancelled,
    /// Somebody finds out whether it happened.
    InDoubt,
    /// The program is mended.
    Bug,
}

impl FaultKind {
    /// The word that events and `--json` print.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Repair => "repair",
            FaultKind::Denied => "denied",
            FaultKind::Failed => "failed",
            FaultKind::Exceeded => "exceeded",
            FaultKind::Cancelled => "cancelled",
            FaultKind::InDoubt => "in_doubt",
            FaultKind::Bug => "bug",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Fault {
    /// Who acts next.
    pub fn kind(&self) -> FaultKind {
        match self {
            Fault::Repair(_) => FaultKind::Repair,
            Fault::Denied(_) => FaultKind::Denied,
            Fault::Failed(_) => FaultKind::Failed,
            Fault::Exceeded(_) => FaultKind::Exceeded,
            Fault::Cancelled { .. } => FaultKind::Cancelled,
            Fault::InDoubt(_) => FaultKind::InDoubt,
            Fault::Bug { .. } => FaultKind::Bug,
        }
    }

    /// A stable code for programs.
    pub fn code(&self) -> &str {
        match self {
            Fault::Repair(repair) => repair.code,
            Fault::Denied(_) => "policy.denied",
            Fault::Exceeded(_) => "bound.exceeded",
            Fault::Bug { .. } => "runtime.bug",
            Fault::Failed(_) => self.own_code().unwrap_or("tool.failed"),
            Fault::Cancelled { .. } => self.own_code().unwrap_or("call.cancelled"),
            Fault::InDoubt(_) => self.own_code().unwrap_or("call.in_doubt"),
        }
    }

    fn own_code(&self) -> Option<&str> {
        self.said().and_then(|err| err.own_code())
    }

    /// What the tool itself said, where it said something.
    pub fn said(&self) -> Option<&ToolError> {
        match self {
            Fault::Failed(err) | Fault::InDoubt(err) => Some(err),
            Fault::Cancelled { said, .. } => said.as_ref(),
            Fault::Repair(_) | Fault::Denied(_) | Fault::Exceeded(_) | Fault::Bug { .. } => None,
        }
    }

    /// Whether anything happened.
    pub fn executed(&self) -> Executed {
        match self {
            Fault::Repair(_) | Fault::Denied(_) => Executed::NotExecuted,
            Fault::Failed(err) => err.executed(),
            Fault::Exceeded(exceeded) => exceeded.executed,
            Fault::Cancelled { executed, .. } => *executed,
            Fault::Bug { executed, .. } => *executed,
            Fault::InDoubt(_) => Executed::Unknown,
        }
    }

    /// The same fault of a call of which this much was known before: what happened stays happened.
    pub(crate) fn after(self, known: Executed) -> Fault {
        if known == Executed::NotExecuted || self.executed() != Executed::NotExecuted {
            return self;
        }
        match self {
            Fault::Failed(err) => Fault::Failed(err.knowing(known)),
            Fault::Exceeded(exceeded) => Fault::Exceeded(Exceeded { executed: known, ..exceeded }),
            Fault::Cancelled { said, .. } => Fault::Cancelled { executed: known, said },
            Fault::Bug { why, .. } => Fault::Bug { executed: known, why },
            Fault::Repair(_) | Fault::Denied(_) | Fault::InDoubt(_) => self,
        }
    }

    /// Whether the run must end.
    pub fn is_fatal(&self) -> bool {
        match self {
            Fault::Failed(err) => err.kind() == ToolErrorKind::Fatal,
            Fault::Bug { .. } => true,
            Fault::Repair(_)
            | Fault::Denied(_)
            | Fault::Exceeded(_)
            | Fault::Cancelled { .. }
            | Fault::InDoubt(_) => false,
        }
    }

    /// What the model reads: truthful about what happened, bounded, never a source error's text.
    pub fn told(&self) -> String {
        clip(self.telling(), TOLD_BYTES_MAX)
    }

    /// What the model reads, before it is bounded: half a secret would not be found any more.
    pub(crate) fn telling(&self) -> String {
        let executed = self.executed();
        match self {
            Fault::Repair(repair) => format!("{executed}: {}", repair.message),
            Fault::Denied(denied) => match &denied.told {
                Some(why) => format!("{executed}: denied: {why}"),
                None => format!("{executed}: denied"),
            },
            Fault::Failed(err) => match executed {
                Executed::Executed => format!("failed: {}", err.told()),
                Executed::NotExecuted | Executed::Unknown => format!("{executed}: {}", err.told()),
            },
            Fault::Exceeded(exceeded) => format!("{executed}: {exceeded}"),
            Fault::Cancelled { .. } => format!("{executed}: cancelled"),
            Fault::InDoubt(err) => format!("{executed}: {}; do not repeat it blindly", err.told()),
            Fault::Bug { .. } => format!("{executed}: the runtime failed"),
        }
    }
}

// What the host reads.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Repair(repair) => f.write_str(&repair.message),
            Fault::Denied(denied) => {
                let why = denied.told.as_deref().unwrap_or("denied");
                write!(f, "{why} (rule `{}`)", denied.rule)
            }
            Fault::Exceeded(exceeded) => exceeded.fmt(f),
            Fault::Cancelled { said: None, .. } => f.write_str("cancelled"),
            Fault::Failed(err) | Fault::Cancelled { said: Some(err), .. } | Fault::InDoubt(err) => {
                fmt::Debug::fmt(err, f)
            }
            Fault::Bug { why, .. } => f.write_str(why),
        }
    }
}

/// What a model must mend before it asks again. Nothing was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// A stable code: `tool.unknown`, `args.malformed`, `args.invalid` and so on.
    pub code: &'static str,
    /// What was found and what was expected, in words that a model can act on.
    pub message: String,
}

impl Repair {
    /// A repair with a stable code.
    pub fn new(code: &'static str, message: impl Into<String>) -> Repair {
        Repair { code, message: message.into() }
    }
}

/// Who said no, and what the model may know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The rule that decided. Always on the tape.
    pub rule: Cow<'static, str>,
    /// What the model reads, where the policy lets it learn from the denial.
    pub told: Option<String>,
    /// Set where somebody would have to be asked and there was nobody.
    pub unasked: bool,
}

/// A bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Which bound.
    pub bound: BoundKind,
    /// Where the bound stands, in the bound's unit.
    pub limit: u64,
    /// How much was used or asked for, where it is known.
    pub used: Option<u64>,
    /// Whether the effect happened.
    pub executed: Executed,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exceeded { bound, limit, used, .. } = self;
        let unit = bound.unit();
        write!(f, "the bound `{}` of {limit} {unit} was reached", bound.name())?;
        match used {
            Some(used) => write!(f, ", {used} {unit} used"),
            None => Ok(()),
        }
    }
}

/// Every bound that can stop a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// Wall time of one attempt.
    Wall,
    /// Time without progress.
    Idle,
    /// Memory of one attempt.
    Memory,
    /// Fuel of one attempt.
    Fuel,
    /// Elements of the tables of one attempt.
    Table,
    /// The stack of one attempt.
    Stack,
    /// Bytes of output.
    OutputBytes,
    /// Attempts at one call.
    Attempts,
    /// Tool calls of one batch.
    BatchCalls,
    /// Tool calls of one run.
    RunCalls,
    /// Calls of one tool in one run.
    ToolCalls,
    /// Wall time of one batch.
    BatchWall,
    /// Wall time of one run.
    RunWall,
    /// Bytes of arguments and results of one run.
    RunBytes,
    /// Nesting of runs.
    Depth,
    /// Time that an attempt waits in the layers around it.
    Queue,
}

impl BoundKind {
    /// The bound's name, as the defaults table and events print it.
    pub fn name(self) -> &'static str {
        match self {
            BoundKind::Wall => "wall",
            BoundKind::Idle => "idle",
            BoundKind::Memory => "memory",
            BoundKind::Fuel => "fuel",
            BoundKind::Table => "table",
            BoundKind::Stack => "stack",
            BoundKind::OutputBytes => "output_bytes",
            BoundKind::Attempts => "attempts",
            BoundKind::BatchCalls => "batch_calls",
            BoundKind::RunCalls => "run_calls",
            BoundKind::ToolCalls => "tool_calls",
            BoundKind::BatchWall => "batch_wall",
            BoundKind::RunWall => "run_wall",
            BoundKind::RunBytes => "run_bytes",
            BoundKind::Depth => "depth",
            BoundKind::Queue => "queue",
        }
    }

    /// Whether it bounds time.
    pub fn is_time(self) -> bool {
        self.unit() == "ms"
    }

    fn unit(self) -> &'static str {
        match self {
            BoundKind::Wall
            | BoundKind::Idle
            | BoundKind::BatchWall
            | BoundKind::RunWall
            | BoundKind::Queue => "ms",
            BoundKind::Memory | BoundKind::Stack | BoundKind::OutputBytes | BoundKind::RunBytes => {
                "bytes"
            }
            BoundKind::Table => "elements",
            BoundKind::Fuel => "units",
            BoundKind::Attempts => "attempts",
            BoundKind::BatchCalls | BoundKind::RunCalls | BoundKind::ToolCalls => "calls",
            BoundKind::Depth => "runs",
        }
    }
}

/// What a panic said. It is for the host alone.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("of another type than text").to_owned();
    guarded(|| drop(panic));
    text
}

/// The text of what others wrote, as far as it can be written.
pub(crate) fn text_of(what: &dyn fmt::Display) -> String {
    let mut text = String::new();
    // Nobody's `Display` may fail more than its own call.
    let writing = AssertUnwindSafe(|| write!(text, "{what}"));
    let why = match panic::catch_unwind(writing) {
        Ok(Ok(())) => return text,
        Ok(Err(fmt::Error)) => "it cannot be written".to_owned(),
        Err(panic) => format!("writing it panicked: {}", panic_text(panic)),
    };
    let gap = if text.is_empty() { "" } else { " " };
    text + gap + "(" + &why + ")"
}

/// Drops what others wrote. A destructor that panics fails nobody.
pub(crate) fn guarded(dropping: impl FnOnce()) {
    if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(dropping)) {
        // Whoever panics with something that panics in turn would never come to an end.
        mem::forget(panic);
    }
}

/// How a text ends that was shortened.
pub(crate) const CLIPPED: &str = " …";

/// Shortens a text to at most `bytes`, at a character boundary, and says so.
pub(crate) fn clip(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub(CLIPPED.len())));
        text.push_str(CLIPPED);
    }
    text
}
