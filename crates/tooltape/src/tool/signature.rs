//! What `#[tool]` expands to: one proof for each part of a signature, made where the part stands.

// Only what makes a proof has trait bounds. So a part that cannot be what its place says is
// reported once, at its own span, and nothing that uses its proof fails as well.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::function::{described, on_a_thread, taken};
use super::{Args, BoxFuture, Input, IntoResult, Output, Tool};
use crate::fault::ToolError;
use crate::grant::{Grant, Grants, Need};
use crate::spec::{Errors, Footprint, FootprintOf, Spec};

/// A function that says what a call touches.
type Touches<I> = fn(&I) -> Footprint;

/// The proof that a model may send an `I`.
pub struct Sent<I> {
    describe: fn(Spec, Vec<Need>, Errors) -> Spec,
    read: fn(Args) -> Result<I, ToolError>,
    touching: fn(&'static str, Touches<I>) -> FootprintOf,
}

/// Proves that a model may send an `I`.
pub fn sent<I: Input>() -> Sent<I> {
    let touching = |name, hook| FootprintOf::input::<I>(name, hook);
    Sent { describe: described::<I>, read: Args::parse, touching }
}

impl<I> Sent<I> {
    /// Sets the function that says what a call touches, under the name that it was given by.
    pub fn touching(&self, spec: Spec, name: &'static str, hook: Touches<I>) -> Spec {
        spec.touches((self.touching)(name, hook))
    }
}

/// A type that may be a field of what a model sends.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of what a model sends",
    label = "a field of an input can be read and has a schema",
    note = "if the model must not see it, make it a later parameter of the tool",
    note = "if it is a type of your own, mark it with `#[tooltape::input]`"
)]
pub trait Part {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Part for T {}

/// Proves that a `T` may be a field of what a model sends.
pub fn part<T: Part>() {}

/// The proof that a host may grant a `G`.
pub struct Granted<G> {
    /// The need that the tool declares.
    pub need: Need,
    /// Takes the grant.
    pub take: fn(&Grants) -> G,
}

/// Proves that a host may grant a `G`.
pub fn granted<G: Grant>() -> Granted<G> {
    Granted { need: Need::of::<G>(), take: taken }
}

/// The proof that a tool may return an `R`.
pub struct Returned<R> {
    errors: Errors,
    settle: fn(R) -> Result<Output, ToolError>,
}

/// Proves that a tool may return an `R`.
pub fn returned<R: IntoResult>() -> Returned<R> {
    Returned { errors: R::ERRORS, settle: R::into_result }
}

impl<R: 'static> Returned<R> {
    /// What its errors look like.
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// Awaits an async function.
    pub fn of(
        &self,
        future: impl Future<Output = R> + Send + 'static,
    ) -> BoxFuture<'static, Result<Output, ToolError>> {
        let settle = self.settle;
        Box::pin(async move { settle(future.await) })
    }

    /// Runs a synchronous function on a thread that may block.
    pub fn of_blocking(
        &self,
        grants: &Grants,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> BoxFuture<'static, Result<Output, ToolError>> {
        let settle = self.settle;
        Box::pin(on_a_thread(grants.thread(), move || settle(work())))
    }
}

/// Makes a tool from the proofs of a signature, and a closure that calls the function.
pub fn declared<I, F>(
    spec: Spec,
    sent: Sent<I>,
    needs: Vec<Need>,
    errors: Errors,
    function: F,
) -> Arc<dyn Tool>
where
    I: 'static,
    F: Fn(I, &Grants) -> BoxFuture<'static, Result<Output, ToolError>> + Send + Sync + 'static,
{
    let spec = (sent.describe)(spec, needs, errors);
    Arc::new(Declared { spec, read: sent.read, function })
}

/// A tool that `#[tool]` declared.
struct Declared<I, F> {
    spec: Spec,
    read: fn(Args) -> Result<I, ToolError>,
    function: F,
}

impl<I, F> Tool for Declared<I, F>
where
    F: Fn(I, &Grants) -> BoxFuture<'static, Result<Output, ToolError>> + Send + Sync,
{
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        match (self.read)(args) {
            Ok(input) => (self.function)(input, grants),
            Err(err) => Box::pin(async { Err(err) }),
        }
    }
}
