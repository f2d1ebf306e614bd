//! Why a call did not succeed, and who can fix it.

use std::borrow::Cow;
use std::time::Duration;
use std::{error, fmt};

use serde::Serialize;
use serde_json::Value;

/// The most bytes of a message that a model reads for a fault.
pub const TOLD_BYTES_MAX: usize = 2_048;

/// Whether a call's effect happened. Every reply says one of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
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

impl Fault {
    /// The fault's kind, as events and `--json` print it.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Repair(_) => "repair",
            Fault::Denied(_) => "denied",
            Fault::Failed(_) => "failed",
            Fault::Exceeded(_) => "exceeded",
            Fault::Cancelled { .. } => "cancelled",
            Fault::InDoubt(_) => "in_doubt",
            Fault::Bug { .. } => "bug",
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
        self.said().and_then(|err| err.0.code.as_deref())
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
        let executed = self.executed();
        let text = match self {
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
        };
        clip(text, TOLD_BYTES_MAX)
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
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
    /// Bytes of output.
    OutputBytes,
    /// Attempts at one call.
    Attempts,
    /// Tool calls of one batch.
    BatchCalls,
    /// Tool calls of one run.
    RunCalls,
}

impl BoundKind {
    /// The bound's name, as the defaults table and events print it.
    pub fn name(self) -> &'static str {
        match self {
            BoundKind::Wall => "wall",
            BoundKind::Idle => "idle",
            BoundKind::Memory => "memory",
            BoundKind::Fuel => "fuel",
            BoundKind::OutputBytes => "output_bytes",
            BoundKind::Attempts => "attempts",
            BoundKind::BatchCalls => "batch_calls",
            BoundKind::RunCalls => "run_calls",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            BoundKind::Wall | BoundKind::Idle => "ms",
            BoundKind::Memory | BoundKind::OutputBytes => "bytes",
            BoundKind::Fuel => "units",
            BoundKind::Attempts => "attempts",
            BoundKind::BatchCalls | BoundKind::RunCalls => "calls",
        }
    }
}

/// A tool's failure: what the model may read, and what only the host may read.
///
/// `?` turns any error into one whose text the model never sees:
///
/// ```
/// use tooltape::ToolError;
///
/// fn port(text: &str) -> Result<u16, ToolError> {
///     if text.is_empty() {
///         return Err(ToolError::tell("no port given").code("port.missing"));
///     }
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(port("").unwrap_err().told(), "no port given");
/// assert_eq!(port("x").unwrap_err().told(), "the tool failed");
/// assert_eq!(format!("{:?}", port("x").unwrap_err()), "invalid digit found in string");
/// ```
pub struct ToolError(Box<Failure>);

/// What a tool says about its failure; boxed, so that a result which is none stays small.
struct Failure {
    kind: ToolErrorKind,
    told: Option<String>,
    code: Option<String>,
    details: Option<Value>,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

/// What a tool says about its own failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// It ran and failed.
    Failed,
    /// Nothing was done; it may be tried again after this long.
    RetryAfter(Duration),
    /// Nothing was done.
    NotDone,
    /// It may have been done.
    InDoubt,
    /// It stopped because it was cancelled.
    Cancelled,
    /// Nothing was done, and nothing will be until a person acts.
    UserMustAct,
    /// It failed, and the run must end.
    Fatal,
}

impl ToolError {
    /// A failure that the model should read.
    pub fn tell(message: impl Into<String>) -> ToolError {
        ToolError::of(ToolErrorKind::Failed, Some(message.into()))
    }

    /// Nothing was done; the same call may be tried again after `wait`.
    pub fn retry_after(wait: Duration, message: impl Into<String>) -> ToolError {
        ToolError::of(ToolErrorKind::RetryAfter(wait), Some(message.into()))
    }

    /// Nothing was done.
    pub fn not_done(message: impl Into<String>) -> ToolError {
        ToolError::of(ToolErrorKind::NotDone, Some(message.into()))
    }

    /// It may have been done: the request left, and no answer came back.
    pub fn in_doubt(message: impl Into<String>) -> ToolError {
        ToolError::of(ToolErrorKind::InDoubt, Some(message.into()))
    }

    /// It stopped because it was cancelled.
    pub fn cancelled() -> ToolError {
        ToolError::of(ToolErrorKind::Cancelled, Some("cancelled".into()))
    }

    /// Nothing was done, and nothing will be until a person acts, such as by logging in.
    pub fn user_must_act(message: impl Into<String>) -> ToolError {
        ToolError::of(ToolErrorKind::UserMustAct, Some(message.into()))
    }

    /// It failed, and going on makes no sense: the run ends.
    pub fn fatal(message: impl Into<String>) -> ToolError {
        ToolError::of(ToolErrorKind::Fatal, Some(message.into()))
    }

    fn of(kind: ToolErrorKind, told: Option<String>) -> ToolError {
        ToolError(Box::new(Failure { kind, told, code: None, details: None, source: None }))
    }

    /// A failure whose text only the host reads.
    pub(crate) fn hidden(source: Box<dyn error::Error + Send + Sync>) -> ToolError {
        ToolError::of(ToolErrorKind::Failed, None).because(source)
    }

    /// Adds a stable code, for programs.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> ToolError {
        self.0.code = Some(code.into());
        self
    }

    /// Adds details that only the host reads.
    #[must_use]
    pub fn details(mut self, details: Value) -> ToolError {
        self.0.details = Some(details);
        self
    }

    /// Adds the error behind this one, which only the host reads.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn error::Error + Send + Sync>>) -> ToolError {
        self.0.source = Some(source.into());
        self
    }

    /// What the model reads. A source error is never shown unless the tool says so.
    pub fn told(&self) -> &str {
        self.0.told.as_deref().unwrap_or("the tool failed")
    }

    /// What the tool chose to tell the model, if it chose anything.
    pub(crate) fn chosen(&self) -> Option<&str> {
        self.0.told.as_deref()
    }

    /// What the tool says about its failure.
    pub fn kind(&self) -> ToolErrorKind {
        self.0.kind
    }

    /// The details that only the host reads.
    pub fn host_details(&self) -> Option<&Value> {
        self.0.details.as_ref()
    }

    /// Whether anything happened.
    pub fn executed(&self) -> Executed {
        match self.0.kind {
            ToolErrorKind::Failed | ToolErrorKind::Fatal => Executed::Executed,
            ToolErrorKind::RetryAfter(_) | ToolErrorKind::NotDone | ToolErrorKind::UserMustAct => {
                Executed::NotExecuted
            }
            ToolErrorKind::InDoubt | ToolErrorKind::Cancelled => Executed::Unknown,
        }
    }
}

// `ToolError` does not implement `Error`, so that `?` can convert anything that does.
impl<E: error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(source: E) -> ToolError {
        ToolError::hidden(Box::new(source))
    }
}

// What the host reads.
impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.told, &self.0.source) {
            (Some(told), Some(source)) => write!(f, "{told}: {source}"),
            (None, Some(source)) => write!(f, "{source}"),
            (_, None) => f.write_str(self.told()),
        }
    }
}

/// Shortens a text to at most `bytes`, at a character boundary, and says so.
pub(crate) fn clip(mut text: String, bytes: usize) -> String {
    const MARK: &str = " …";
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub(MARK.len())));
        text.push_str(MARK);
    }
    text
}
