//! Layers: what a host puts around every attempt, in one order.

use std::any::{Any as _, TypeId};
use std::sync::Arc;

use super::{Attempt, Live, Perform};
use crate::fault::{Executed, ToolError};
use crate::grant::Grants;
use crate::spec::Spec;
use crate::tool::{BoxFuture, Output};

/// Goes around attempts: may wait, refuse, answer in the tool's place, or change what comes back.
///
/// It sees what the tool declares (`attempt.call().spec()`). It gets each attempt once, with its
/// start on the tape, so it cannot run a tool twice; a refusal is a [`ToolError::not_done`] with a
/// code of its own. A panic in it settles that call only. An async function is a layer:
///
/// ```
/// use tooltape::layer::{Layered, Next};
/// use tooltape::{Attempt, Grants, Live, Output, ToolError};
///
/// async fn no_spending(
///     attempt: Attempt<'_>,
///     grants: &Grants<'_>,
///     next: Next<'_>,
/// ) -> Result<Output, ToolError> {
///     if attempt.call().spec().effects.spend {
///         return Err(ToolError::not_done("nothing may be bought").code("spend.refused"));
///     }
///     next.perform(attempt, grants).await
/// }
///
/// let performer = Layered::new(Live).with(no_spending);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no layer",
    note = "a layer is an `async fn(Attempt<'_>, &Grants<'_>, Next<'_>) -> \
            Result<Output, ToolError>`, a closure given to `layer_fn`, or an `impl Layer`"
)]
pub trait Layer: Send + Sync {
    /// Goes around one attempt. Dropping the future abandons it.
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// The layers further in, and the performer behind them.
#[derive(Clone, Copy)]
struct Inward<'a> {
    layers: &'a [Arc<dyn Layer>],
    performer: &'a dyn Perform,
}

/// What happened where the tool returned something.
const DONE: Executed = Executed::Executed;

/// What a layer goes around: the layers further in, then the performer. It is used once.
pub struct Next<'a>(Inward<'a>);

impl<'a> Next<'a> {
    /// Lets the attempt pass.
    pub fn perform(
        self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let Next(Inward { layers, performer }) = self;
        match layers.split_first() {
            Some((layer, layers)) => {
                layer.around(attempt, grants, Next(Inward { layers, performer }))
            }
            None => Box::pin(async move {
                let passage = attempt.passage();
                passage.enter();
                let performed = performer.perform(attempt, grants).await;
                // Only who performed it knows what happened; no layer can say otherwise.
                passage.leave(performed.as_ref().map_or_else(ToolError::executed, |_| DONE));
                performed
            }),
        }
    }
}

/// A performer with layers around it. The first layer is the outermost.
///
/// ```
/// use std::time::Duration;
/// use tooltape::layer::{Breaker, Layered, Timeout};
/// use tooltape::{Live, Run, Toolbox, builtin};
///
/// // The breaker counts what the timeout cut short.
/// let performer = Layered::new(Live)
///     .with(Breaker::new(5, Duration::from_secs(30)))
///     .with(Timeout::new(Duration::from_secs(2)));
/// let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).performer(performer);
/// ```
#[derive(Clone)]
pub struct Layered {
    layers: Vec<Arc<dyn Layer>>,
    performer: Arc<dyn Perform>,
    /// Whether the performer is [`Live`].
    live: bool,
}

impl Layered {
    /// The performer, with no layer around it.
    pub fn new(performer: impl Perform + 'static) -> Layered {
        let live = performer.type_id() == TypeId::of::<Live>();
        Layered { layers: Vec::new(), performer: Arc::new(performer), live }
    }

    /// Whether nobody stands between a run and its tools.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.live && self.layers.is_empty()
    }

    /// Puts a layer around the performer, inside the layers that are there.
    #[must_use]
    pub fn with(mut self, layer: impl Layer + 'static) -> Layered {
        self.layers.push(Arc::new(layer));
        self
    }

    /// The same layers around another performer.
    pub(crate) fn around(self, performer: impl Perform + 'static) -> Layered {
        Layered { layers: self.layers, ..Layered::new(performer) }
    }
}

impl Perform for Layered {
    #[inline]
    fn perform<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        if self.is_live() {
            return attempt.run(grants);
        }
        if self.layers.is_empty() {
            return self.performer.perform(attempt, grants);
        }
        let passage = attempt.passage();
        passage.hold();
        let inward = Inward { layers: &self.layers, performer: &*self.performer };
        Box::pin(async move {
            let performed = Next(inward).perform(attempt, grants).await;
            // Whatever a layer says of it: what never passed was not executed, what it dropped is
            // unknown, and what came back is as the tool said.
            performed.map_err(|err| err.knowing(passage.of_attempt()))
        })
    }
}

// A layer that several runs share, such as one cache or one rate for all of them.
impl<L: Layer + ?Sized> Layer for Arc<L> {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        (**self).around(attempt, grants, next)
    }
}

/// An async function that is a layer. One that captures something goes through [`layer_fn`].
#[doc(hidden)]
pub trait LayerFn<'a>: Send + Sync {
    type Future: Future<Output = Result<Output, ToolError>> + Send + 'a;

    fn go(&'a self, attempt: Attempt<'a>, grants: &'a Grants<'a>, next: Next<'a>) -> Self::Future;
}

impl<'a, F, Fut> LayerFn<'a> for F
where
    F: Fn(Attempt<'a>, &'a Grants<'a>, Next<'a>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Output, ToolError>> + Send + 'a,
{
    type Future = Fut;

    fn go(&'a self, attempt: Attempt<'a>, grants: &'a Grants<'a>, next: Next<'a>) -> Fut {
        self(attempt, grants, next)
    }
}

#[diagnostic::do_not_recommend]
impl<F: for<'a> LayerFn<'a>> Layer for F {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(self.go(attempt, grants, next))
    }
}

/// A closure as a layer, which may hold what it needs.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tooltape::layer::{Layered, layer_fn};
///
/// let attempts = Arc::new(AtomicU64::new(0));
/// let counted = attempts.clone();
/// let performer = Layered::new(tooltape::Live).with(layer_fn(move |attempt, grants, next| {
///     counted.fetch_add(1, Ordering::Relaxed);
///     next.perform(attempt, grants)
/// }));
/// ```
pub fn layer_fn<F>(around: F) -> F
where
    F: for<'a> Fn(
            Attempt<'a>,
            &'a Grants<'a>,
            Next<'a>,
        ) -> BoxFuture<'a, Result<Output, ToolError>>
        + Send
        + Sync,
{
    around
}

/// A layer for some tools only: the others pass it by.
///
/// ```
/// use std::time::Duration;
/// use tooltape::Reach;
/// use tooltape::layer::{Layered, RateLimit, only};
///
/// let slow = RateLimit::wait(10, Duration::from_secs(1));
/// let performer = Layered::new(tooltape::Live)
///     .with(only(|spec| spec.effects.reach == Reach::Network, slow));
/// ```
pub fn only(picks: impl Fn(&Spec) -> bool + Send + Sync, layer: impl Layer) -> impl Layer {
    Only { picks, layer }
}

struct Only<P, L> {
    picks: P,
    layer: L,
}

impl<P: Fn(&Spec) -> bool + Send + Sync, L: Layer> Layer for Only<P, L> {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        match (self.picks)(attempt.call().spec()) {
            true => self.layer.around(attempt, grants, next),
            false => next.perform(attempt, grants),
        }
    }
}
