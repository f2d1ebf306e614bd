//! The one trait that the runtime executes, and how a plain function becomes it.

mod bind;
mod function;
mod output;
mod preview;
mod reconcile;
mod redeclared;
mod registered;
mod signature;

use std::pin::Pin;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use bind::{BindError, bind};
pub use function::{BlockingHandler, Empty, Handler, Input, schema_of, tool_fn, tool_fn_blocking};
pub use output::{Block, Content, IntoOutput, IntoResult, IntoToolError, Output, Source, Stop};
pub use registered::{RegisterError, Registered};
pub use signature::{Part, declared, granted, part, returned, sent};

use crate::canon::Canon;
use crate::fault::ToolError;
use crate::grant::Grants;
use crate::spec::{Spec, Typed};

/// A boxed future: the price of a heterogeneous toolbox, paid once per call.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An async function from JSON to JSON that can describe itself.
///
/// Plain functions become tools with `#[tool]` or [`tool_fn`]. Implement the trait by hand for
/// tools that are found at run time:
///
/// ```
/// use tooltape::{Access, Args, BoxFuture, Grants, Output, Spec, Tool, ToolError};
///
/// struct Shout(Spec);
///
/// impl Tool for Shout {
///     fn spec(&self) -> &Spec {
///         &self.0
///     }
///     fn call<'a>(
///         &'a self,
///         args: Args,
///         _: &'a Grants,
///     ) -> BoxFuture<'a, Result<Output, ToolError>> {
///         Box::pin(async move {
///             let text = args.to_value()["text"].as_str().unwrap_or_default().to_uppercase();
///             Ok(Output::text(text))
///         })
///     }
/// }
///
/// let spec = Spec::new("shout", "Says it louder.").access(Access::Pure).input(serde_json::json!({
///     "type": "object",
///     "properties": { "text": { "type": "string" } },
///     "required": ["text"],
///     "additionalProperties": false,
/// }));
/// let toolbox = tooltape::Toolbox::new([std::sync::Arc::new(Shout(spec)) as _]).unwrap();
/// assert!(toolbox.get("shout").is_some());
/// ```
pub trait Tool: Send + Sync {
    /// What it says about itself. Constant for the life of the tool.
    fn spec(&self) -> &Spec;

    /// Runs it. `args` has passed `spec().input`; `grants` covers `spec().needs`.
    ///
    /// Dropping the future abandons the attempt; what it did until then stays done.
    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// Arguments that passed the schema: canonical JSON, byte for byte what was hashed and approved.
pub struct Args {
    canon: Canon,
    typed: Option<Typed>,
}

impl Args {
    pub(crate) fn new(canon: Canon, typed: Option<Typed>) -> Args {
        Args { canon, typed }
    }

    /// The arguments as canonical JSON.
    pub fn canon(&self) -> &Canon {
        &self.canon
    }

    /// The arguments as a JSON value.
    pub fn to_value(&self) -> Value {
        self.canon.to_value()
    }

    /// The arguments as a type of the tool's own.
    ///
    /// What [`Hooks::read`](crate::Hooks) already read is handed over; else the canonical text is
    /// parsed.
    #[inline]
    pub fn parse<T: DeserializeOwned + 'static>(self) -> Result<T, ToolError> {
        match self.typed.map(|typed| typed.downcast::<T>()) {
            Some(Ok(typed)) => Ok(*typed),
            Some(Err(_)) | None => self.canon.parse().map_err(|err| {
                ToolError::not_done(format!("arguments could not be deserialised: {err}"))
                    .code("args.invalid")
            }),
        }
    }
}
