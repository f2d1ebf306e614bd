//! What is around the tools of a storm: a layer that holds calls, and a disk that is slow.

use std::time::Duration;

use tooltape::layer::Next;
use tooltape::{
    Ack, Append, Attempt, BoxFuture, Grants, MemoryTape, Output, Record, RunId, Tape, TapeError,
    ToolError,
};

/// Holds an attempt for as long as its arguments say, and turns some back.
pub(super) async fn hold(
    attempt: Attempt<'_>,
    grants: &Grants<'_>,
    next: Next<'_>,
) -> Result<Output, ToolError> {
    let args = attempt.call().args().to_value();
    if let Some(ms @ 1..) = args["hold"].as_u64() {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if args["turned_back"] == true {
        return Err(ToolError::not_done("planted"));
    }
    next.perform(attempt, grants).await
}

/// A tape whose records become durable only after a while, where a storm has such a disk.
pub(super) struct Disk {
    pub(super) tape: MemoryTape,
    pub(super) ms: Option<u64>,
}

impl Tape for Disk {
    fn append(&self, append: Append) -> Ack {
        let ack = self.tape.append(append);
        match self.ms {
            None => ack,
            Some(ms) => Ack::Later(Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                ack.durable().await
            })),
        }
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        self.tape.read(run, from, most)
    }
}
