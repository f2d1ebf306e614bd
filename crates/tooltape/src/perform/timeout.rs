//! A layer that gives up waiting.

use std::time::Duration;

use super::{Attempt, Layer, Next};
use crate::fault::{BoundKind, ToolError};
use crate::grant::Grants;
use crate::tool::{BoxFuture, Output};

/// Gives up an attempt that takes too long, and says which bound it was.
///
/// The time runs for all that is further in, other layers included. Of several timeouts, and of the
/// tool's own wall time, the shortest counts. What is given up is dropped where it waits.
pub struct Timeout(Duration);

impl Timeout {
    /// Waits for at most this long.
    pub fn new(limit: Duration) -> Timeout {
        Timeout(limit)
    }
}

impl Layer for Timeout {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let passage = attempt.passage();
        Box::pin(async move {
            let performing = next.perform(attempt, grants);
            tokio::time::timeout(self.0, performing).await.unwrap_or_else(|_| {
                let limit = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
                Err(ToolError::exceeded(BoundKind::Wall, limit, passage.executed()))
            })
        })
    }
}
