//! Polls what others wrote: a tool inside its run, and dropped where a panic hurts nobody.

use std::future::poll_fn;
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread;

use super::Run;
use crate::fault::{ToolError, guarded};
use crate::perform::Span;
use crate::place;
use crate::tool::{BoxFuture, Output};

/// An attempt at a call that is being made, inside its run. It hurts nobody by a panic.
pub(super) struct Performing<'r> {
    run: &'r Run,
    span: &'r Span,
    future: Option<BoxFuture<'r, Result<Output, ToolError>>>,
    /// Where the output goes.
    output: &'r mut Option<Output>,
}

/// How an attempt ended; its output is in its place.
type Performed = thread::Result<Result<(), ToolError>>;

impl<'r> Performing<'r> {
    #[inline]
    pub(super) fn new(
        run: &'r Run,
        span: &'r Span,
        output: &'r mut Option<Output>,
    ) -> Performing<'r> {
        Performing { run, span, future: None, output }
    }

    /// Begins, and polls once. Whoever begins is inside too: it may panic before its first await.
    #[inline]
    pub(super) async fn begin(
        &mut self,
        begin: impl FnOnce() -> BoxFuture<'r, Result<Output, ToolError>>,
    ) -> Poll<Performed> {
        let mut begin = Some(begin);
        poll_fn(|context| {
            if let Some(begin) = begin.take() {
                return Poll::Ready(self.inside(context, |future| future.insert(begin())));
            }
            Poll::Pending
        })
        .await
    }

    #[inline]
    fn inside<'f>(
        &'f mut self,
        context: &mut Context<'_>,
        future: impl FnOnce(
            &'f mut Option<BoxFuture<'r, Result<Output, ToolError>>>,
        ) -> &'f mut BoxFuture<'r, Result<Output, ToolError>>,
    ) -> Poll<Performed> {
        let Performing { run, span, future: place, output } = self;
        let _entered = place::enter(&[run.place]);
        let poll = || match future(place).as_mut().poll(context) {
            Poll::Ready(Ok(done)) => {
                **output = Some(done);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(err)) => Poll::Ready(Err(err)),
            Poll::Pending => Poll::Pending,
        };
        match span.within(|| panic::catch_unwind(AssertUnwindSafe(poll))) {
            Ok(Poll::Ready(performed)) => Poll::Ready(Ok(performed)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl Future for Performing<'_> {
    type Output = Performed;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Performed> {
        let begun = "what goes on has begun";
        self.get_mut().inside(context, |future| future.as_mut().expect(begun))
    }
}

impl Drop for Performing<'_> {
    #[inline]
    fn drop(&mut self) {
        self.span.within(|| guarded(|| self.future = None));
    }
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
