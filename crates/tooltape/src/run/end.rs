//! Ends a run that no agent ends.

use super::{Run, RunError};
use crate::tape::Event;

/// How a run ends that no agent ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It did what it was for.
    Ended,
    /// It did not.
    Failed,
    /// Somebody wanted it no longer.
    Cancelled,
}

impl RunEnd {
    /// The word that the tape has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunEnd::Ended => "ended",
            RunEnd::Failed => "failed",
            RunEnd::Cancelled => "cancelled",
        }
    }
}

impl Run {
    /// Ends the run on its tape: a run that no [`Agent`](crate::Agent) ends is `running` there for
    /// as long as its process lives, and `crashed` after that.
    ///
    /// Wait for its calls first. Once it returns, the end is durable and the run takes no more
    /// calls; a second end is refused, and nothing is recorded.
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    /// # runtime.unwrap().block_on(async {
    /// use tooltape::{Proposal, Run, RunEnd, Toolbox, builtin};
    ///
    /// let run = Run::new(&Toolbox::new(builtin::tools()).unwrap());
    /// run.batch(vec![Proposal::new("c1", "hash", r#"{"text":""}"#)]).await.unwrap();
    /// run.end(RunEnd::Ended, "hashed").await.unwrap();
    /// assert!(run.batch(Vec::new()).await.is_err());
    /// # });
    /// ```
    pub async fn end(&self, end: RunEnd, why: impl Into<String>) -> Result<(), RunError> {
        self.check_open()?;
        let (status, stop) = (end.as_str(), why.into());
        let closed = format!("{status}: {stop}");
        if self.ended.set(closed.clone()).is_err() {
            return Err(RunError::Closed { why: closed });
        }
        self.record_last(Event::RunEnded { status, stop, answer: None }).await
    }
}
