//! What stands in for spans where the feature `tracing` is off: nothing.

use crate::call::Call;
use crate::id::RunId;
use crate::reply::{Redactor, Reply};

/// Which spans a run makes: none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spans {}

impl Spans {
    pub(crate) fn of(self, _: RunId, _: &Call, _: u32, _: &Redactor) -> Span {
        Span
    }
}

/// No span.
pub(crate) struct Span;

impl Span {
    pub(crate) fn none() -> Span {
        Span
    }

    #[inline]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    pub(crate) fn failed(&self, _: &str) {}

    pub(crate) fn settled(&self, _: &Reply) {}
}
