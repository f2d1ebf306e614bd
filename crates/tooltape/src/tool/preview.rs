//! How a plain function becomes a hook that shows what a call would change.

use std::sync::Arc;

use super::Handler;
use crate::canon::Canon;
use crate::fault::ToolError;
use crate::grant::Grants;
use crate::spec::Preview;

impl Preview {
    /// A hook from an async function: `async fn(input, grants..) -> Result<String, error>`.
    ///
    /// ```
    /// use tooltape::{Preview, Spec, ToolError, input};
    ///
    /// #[input]
    /// struct Pay { cents: u64, to: String }
    ///
    /// async fn to_be_paid(pay: Pay) -> Result<String, ToolError> {
    ///     Ok(format!("{}.{:02} leave for {}", pay.cents / 100, pay.cents % 100, pay.to))
    /// }
    ///
    /// let spec = Spec::new("pay", "Pays.").preview(Preview::by("to_be_paid", to_be_paid));
    /// assert_eq!(spec.hooks.preview.unwrap().name(), "to_be_paid");
    /// ```
    pub fn by<F, M>(name: impl Into<Arc<str>>, function: F) -> Preview
    where
        F: Handler<M>,
        M: 'static,
    {
        let function = Arc::new(function);
        Preview::of(
            name.into(),
            F::needs(),
            Arc::new(move |args: &Canon, grants: &Grants<'_>| {
                let input = serde_json::from_str(args.as_str()).map_err(ToolError::from);
                let function = function.clone();
                Box::pin(async move {
                    let output = function.call(input?, grants).await?;
                    let shown = output.value.unwrap_or_else(Canon::null);
                    serde_json::from_str(shown.as_str()).map_err(ToolError::from)
                })
            }),
        )
    }
}
