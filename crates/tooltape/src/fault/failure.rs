//! What a tool says about its own failure.

use std::time::Duration;
use std::{error, fmt};

use serde_json::Value;

use super::{BoundKind, Exceeded, Executed, guarded};

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
    /// Whether anything happened, where the runtime knows better than whoever failed.
    known: Option<Executed>,
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
    /// It reached a bound.
    Exceeded(Exceeded),
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

    /// It reached a bound, which stands at `limit` in the bound's unit.
    pub fn exceeded(bound: BoundKind, limit: u64, executed: Executed) -> ToolError {
        ToolError::beyond(Exceeded { bound, limit, used: None, executed })
    }

    /// It reached a bound, of which it says how much was used.
    ///
    /// ```
    /// use tooltape::{BoundKind, Exceeded, Executed, ToolError};
    ///
    /// let (bound, executed) = (BoundKind::Fuel, Executed::NotExecuted);
    /// let err = ToolError::beyond(Exceeded { bound, limit: 100, used: Some(100), executed });
    /// assert_eq!(err.told(), "the bound `fuel` of 100 units was reached, 100 units used");
    /// ```
    pub fn beyond(exceeded: Exceeded) -> ToolError {
        ToolError::of(ToolErrorKind::Exceeded(exceeded), Some(exceeded.to_string()))
    }

    fn of(kind: ToolErrorKind, told: Option<String>) -> ToolError {
        let (known, code, details, source) = (None, None, None, None);
        ToolError(Box::new(Failure { kind, known, told, code, details, source }))
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

    /// Its stable code, if it has one.
    pub(crate) fn own_code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The details that only the host reads.
    pub fn host_details(&self) -> Option<&Value> {
        self.0.details.as_ref()
    }

    /// Whether anything happened.
    pub fn executed(&self) -> Executed {
        self.0.known.unwrap_or(match self.0.kind {
            ToolErrorKind::Failed | ToolErrorKind::Fatal => Executed::Executed,
            ToolErrorKind::RetryAfter(_) | ToolErrorKind::NotDone | ToolErrorKind::UserMustAct => {
                Executed::NotExecuted
            }
            ToolErrorKind::InDoubt | ToolErrorKind::Cancelled => Executed::Unknown,
            ToolErrorKind::Exceeded(exceeded) => exceeded.executed,
        })
    }

    /// The same failure, where the runtime knows whether anything happened.
    ///
    /// So nothing that was executed is called undone, for somebody to repeat it.
    pub(crate) fn knowing(mut self, executed: Executed) -> ToolError {
        let kind = match (self.0.kind, executed) {
            (ToolErrorKind::Exceeded(exceeded), _) => {
                ToolErrorKind::Exceeded(Exceeded { executed, ..exceeded })
            }
            (kind @ (ToolErrorKind::Fatal | ToolErrorKind::Cancelled), _) => kind,
            (kind, _) if self.executed() == executed => kind,
            (_, Executed::NotExecuted) => ToolErrorKind::NotDone,
            (_, Executed::Executed) => ToolErrorKind::Failed,
            (_, Executed::Unknown) => ToolErrorKind::InDoubt,
        };
        (self.0.kind, self.0.known) = (kind, Some(executed));
        self
    }
}

impl Drop for Failure {
    fn drop(&mut self) {
        if self.source.is_some() {
            guarded(|| self.source = None);
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
