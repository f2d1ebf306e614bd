//! How a plain function becomes a hook that looks what became of an attempt.

use std::sync::Arc;

use super::Handler;
use crate::canon::Canon;
use crate::fault::ToolError;
use crate::grant::Grants;
use crate::spec::Reconcile;

impl Reconcile {
    /// A hook from an async function: `async fn(input, grants..) -> Result<Found, error>`.
    ///
    /// ```
    /// use tooltape::{Found, IdempotencyKey, Reconcile, Spec, ToolError, input};
    ///
    /// #[input]
    /// struct Pay { cents: u64 }
    ///
    /// async fn was_paid(_: Pay, key: IdempotencyKey) -> Result<Found, ToolError> {
    ///     Ok(if key.as_str().is_empty() { Found::CannotTell } else { Found::DidNot })
    /// }
    ///
    /// let spec = Spec::new("pay", "Pays.").reconcile(Reconcile::by("was_paid", was_paid));
    /// assert_eq!(spec.hooks.reconcile.unwrap().name(), "was_paid");
    /// ```
    pub fn by<F, M>(name: impl Into<Arc<str>>, function: F) -> Reconcile
    where
        F: Handler<M>,
        M: 'static,
    {
        let function = Arc::new(function);
        Reconcile::of(
            name.into(),
            F::needs(),
            Arc::new(move |args: &Canon, grants: &Grants<'_>| {
                let (function, input) = (function.clone(), read::<F::Input>(args));
                Box::pin(async move {
                    let output = function.call(input?, grants).await?;
                    let value = output.value.unwrap_or_else(Canon::null);
                    serde_json::from_str(value.as_str()).map_err(ToolError::from)
                })
            }),
        )
    }
}

fn read<I: serde::de::DeserializeOwned>(args: &Canon) -> Result<I, ToolError> {
    serde_json::from_str(args.as_str()).map_err(ToolError::from)
}
