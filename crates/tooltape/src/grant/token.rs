//! What cancels a run, a batch or a call, and all that is part of it.

use std::iter;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::sync::atomic::{AtomicBool, Ordering};

/// A cancellation. Clones share it, and what is made from it is cancelled with it.
///
/// Every call asks whether it happened, so asking takes no lock; waiting for it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Token(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Whether it was cancelled itself.
    cancelled: AtomicBool,
    parent: Option<Token>,
    waking: CancellationToken,
}

impl Token {
    /// A token that is cancelled with this one.
    pub(crate) fn child(&self) -> Token {
        let (parent, waking) = (Some(self.clone()), self.0.waking.child_token());
        Token(Arc::new(Inner { cancelled: AtomicBool::new(false), parent, waking }))
    }

    /// Cancels it, and wakes whoever waits for that.
    pub(crate) fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.waking.cancel();
    }

    /// Whether it is cancelled, by itself or with what it is part of.
    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        let mut lineage = iter::successors(Some(self), |token| token.0.parent.as_ref());
        lineage.any(|token| token.0.cancelled.load(Ordering::SeqCst))
    }

    /// Waits until it is cancelled.
    pub(crate) async fn cancelled(&self) {
        self.0.waking.cancelled().await;
    }
}
