//! Polls what others wrote: a tool inside its run, and dropped where a panic hurts nobody.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::Run;
use crate::fault::guarded;
use crate::place;

/// Polls the future of a tool inside its run.
pub(super) async fn within<T>(run: &Run, future: impl Future<Output = T>) -> T {
    let mut future = pin!(Some(future));
    let mut future = Guarded(future.as_mut());
    poll_fn(|context| {
        let _entered = place::enter(&[run.place]);
        Pin::new(&mut future).poll(context)
    })
    .await
}

/// Polls what a host wrote, such as a question.
pub(super) async fn dropped_safely<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(Some(future));
    Guarded(future.as_mut()).await
}

/// A future that somebody else wrote. A destructor of it that panics fails nobody.
struct Guarded<'f, F>(Pin<&'f mut Option<F>>);

impl<F: Future> Future for Guarded<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.0.as_mut().as_pin_mut();
        future.expect("it is there until it is dropped").poll(context)
    }
}

impl<F> Drop for Guarded<'_, F> {
    fn drop(&mut self) {
        // It may not move, so it is dropped where it is.
        guarded(|| self.0.set(None));
    }
}
