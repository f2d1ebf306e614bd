//! A layer that lets only so many attempts run at once.

use tokio::sync::Semaphore;

use super::{Attempt, Layer, Next};
use crate::fault::ToolError;
use crate::grant::Grants;
use crate::tool::{BoxFuture, Output};

/// Lets at most so many attempts run at once; the others wait, first come, first served.
///
/// Shared in an `Arc`, it holds for several runs together. A recursive call passes it by: its work
/// is done by the calls of its child run, and they would wait for it for ever.
pub struct Concurrency(Semaphore);

impl Concurrency {
    /// At most this many at once, and at least one.
    pub fn new(most: usize) -> Concurrency {
        Concurrency(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)))
    }
}

impl Layer for Concurrency {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        if attempt.call().spec().is_recursive() {
            return next.perform(attempt, grants);
        }
        Box::pin(async move {
            let _seat = self.0.acquire().await.expect("nobody closes the semaphore");
            next.perform(attempt, grants).await
        })
    }
}
