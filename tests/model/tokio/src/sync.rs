//! Tokio's own seats and notices, with a switch before each step that others can see.

use std::sync::Arc;

use model_std::switch;
use tokio::sync;
pub use tokio::sync::{AcquireError, TryAcquireError};

/// Tokio's semaphore.
#[derive(Debug)]
pub struct Semaphore(Arc<sync::Semaphore>);

/// A seat, which is given back when it is dropped.
#[derive(Debug)]
pub struct SemaphorePermit<'s>(Option<sync::SemaphorePermit<'s>>);

/// The same, for whoever has no time to borrow.
#[derive(Debug)]
pub struct OwnedSemaphorePermit(#[expect(dead_code, reason = "held")] sync::OwnedSemaphorePermit);

impl Semaphore {
    /// The most seats.
    pub const MAX_PERMITS: usize = sync::Semaphore::MAX_PERMITS;

    /// So many seats.
    pub fn new(permits: usize) -> Semaphore {
        Semaphore(Arc::new(sync::Semaphore::new(permits)))
    }

    /// The seats that are free.
    pub fn available_permits(&self) -> usize {
        switch();
        self.0.available_permits()
    }

    /// So many seats more.
    pub fn add_permits(&self, seats: usize) {
        switch();
        self.0.add_permits(seats);
    }

    /// A seat, if one is free.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        switch();
        self.0.try_acquire().map(Some).map(SemaphorePermit)
    }

    /// A seat, if one is free.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        switch();
        self.0.clone().try_acquire_owned().map(OwnedSemaphorePermit)
    }

    /// Waits for a seat.
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        switch();
        self.0.acquire().await.map(Some).map(SemaphorePermit)
    }

    /// Waits for a seat.
    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        switch();
        self.0.clone().acquire_owned().await.map(OwnedSemaphorePermit)
    }
}

impl SemaphorePermit<'_> {
    /// Does not give it back.
    pub fn forget(mut self) {
        self.0.take().into_iter().for_each(sync::SemaphorePermit::forget);
    }
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        switch();
    }
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        switch();
    }
}

/// Tokio's notice.
#[derive(Debug, Default)]
pub struct Notify(sync::Notify);

impl Notify {
    /// Wakes whoever waits, or the next who does.
    pub fn notify_one(&self) {
        switch();
        self.0.notify_one();
    }

    /// Nobody waits yet.
    pub fn new() -> Notify {
        Notify::default()
    }

    /// Wakes everybody who waits.
    pub fn notify_waiters(&self) {
        switch();
        self.0.notify_waiters();
    }

    /// Waits for the notice.
    pub fn notified(&self) -> sync::futures::Notified<'_> {
        switch();
        self.0.notified()
    }
}
