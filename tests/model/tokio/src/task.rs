//! Threads that may block, each a thread of the model checker.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use model_std::switch;
use tokio::sync::oneshot;

/// Why a thread has no result.
#[derive(Debug)]
pub struct JoinError(Option<Mutex<Box<dyn Any + Send>>>);

impl JoinError {
    /// Whether it panicked.
    pub fn is_panic(&self) -> bool {
        self.0.is_some()
    }

    /// What it panicked with.
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        let panic = self.0.expect("who asks knows that it panicked");
        panic.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread has no result")
    }
}

impl Error for JoinError {}

/// Runs work on a thread of its own. Dropping the future leaves the thread to itself.
pub fn spawn_blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> impl Future<Output = Result<R, JoinError>> {
    let (sender, receiver) = oneshot::channel();
    shuttle::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        switch();
        // Nobody may be left to hear it.
        let _ = sender.send(result);
    });
    async move {
        match receiver.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(panic)) => Err(JoinError(Some(Mutex::new(panic)))),
            Err(_) => Err(JoinError(None)),
        }
    }
}
