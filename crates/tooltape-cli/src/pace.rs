//! A model that takes its time.

use std::time::Duration;

use tooltape::{BoxFuture, Model, ModelError, Request, Turn};

/// A model that waits before each turn, so that a person can follow, or interrupt.
pub(crate) struct Paced<M> {
    pub(crate) model: M,
    pub(crate) pace: Duration,
}

impl<M: Model> Model for Paced<M> {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        Box::pin(async move {
            if !self.pace.is_zero() {
                tokio::time::sleep(self.pace).await;
            }
            self.model.turn(request).await
        })
    }
}
