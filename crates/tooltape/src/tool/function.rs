//! How a plain function becomes a tool.

use std::any::type_name;
use std::marker::PhantomData;
use std::panic;
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Args, BoxFuture, IntoResult, Output, Tool};
use crate::canon::{Canon, Flat};
use crate::fault::{Repair, ToolError};
use crate::grant::{Grant, Grants, Need, Vigil, Work};
use crate::place;
use crate::spec::{Errors, Spec, Typed};

/// A type that a model may send: it can be read, it has a schema, and it can check itself.
///
/// `#[input]` implements it. Write `impl Input for T {}` for a type that derives
/// `serde::Deserialize` and `schemars::JsonSchema` itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent by a model",
    label = "the first parameter is the tool's input",
    note = "if the model must not see it, make it a later parameter",
    note = "if it is a struct of your own, mark it with `#[tooltape::input]`",
    note = "an enum of plain words is no object: it can only be a field of an input"
)]
pub trait Input: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Checks what a schema cannot say. Runs while the call is resolved, so it must be pure; the
    /// model reads the message.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The input of a tool that needs nothing from the model.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

impl Input for Empty {}

/// Makes a tool from an async function or closure. `#[tool]` writes this call for you.
///
/// The spec's input schema, needs and kind of errors come from the function's type.
///
/// ```
/// use tooltape::{Access, Spec, ToolError, input, tool_fn};
///
/// #[input]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let spec = Spec::new("add", "Adds two numbers.").access(Access::Pure);
/// let add = tool_fn(spec, async |args: Add| Ok::<_, ToolError>(args.a + args.b));
/// assert_eq!(add.spec().input["required"], serde_json::json!(["a", "b"]));
/// ```
pub fn tool_fn<F, M>(spec: Spec, function: F) -> Arc<dyn Tool>
where
    F: Handler<M>,
    M: 'static,
{
    let spec = described::<F::Input>(spec, F::needs(), F::ERRORS);
    Arc::new(FnTool { spec, function, marker: PhantomData::<fn() -> M> })
}

/// Makes a tool from a synchronous function, which runs on a thread of its own.
pub fn tool_fn_blocking<F, M>(spec: Spec, function: F) -> Arc<dyn Tool>
where
    F: BlockingHandler<M>,
    M: 'static,
{
    let mut spec = described::<F::Input>(spec, F::needs(), F::ERRORS);
    spec.blocking = true;
    let function = Arc::new(function);
    Arc::new(BlockingTool { spec, function, marker: PhantomData::<fn() -> M> })
}

pub(super) fn described<I: Input>(mut spec: Spec, needs: Vec<Need>, errors: Errors) -> Spec {
    spec.input = schema_of::<I>();
    spec.needs.extend(needs);
    spec.errors = errors;
    spec.hooks.reading(Arc::new(read::<I>), read_flat::<I>);
    spec
}

/// The schema of a type, without the noise that no model needs.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

fn read<I: Input>(canon: &Canon) -> Result<Typed, Repair> {
    let mut deserializer = serde_json::Deserializer::from_str(canon.as_str());
    // The path is worth its price only once something is wrong.
    let input = I::deserialize(&mut deserializer).map_err(|_| unreadable::<I>(canon))?;
    input.check().map_err(|why| Repair::new("args.refused", why))?;
    Ok(Box::new(input))
}

fn read_flat<I: Input>(flat: &Flat<'_>) -> Option<Typed> {
    let input: I = flat.typed()?;
    input.check().ok()?;
    Some(Box::new(input))
}

fn unreadable<I: Input>(canon: &Canon) -> Repair {
    let mut deserializer = serde_json::Deserializer::from_str(canon.as_str());
    let message = match serde_path_to_error::deserialize::<_, I>(&mut deserializer) {
        Ok(_) => format!("`{}` was read differently the second time", type_name::<I>()),
        Err(err) => {
            let (path, inner) = (err.path(), err.inner());
            // The path says where; a column of the canonical text means nothing to a model.
            let column = format!(" at line {} column {}", inner.line(), inner.column());
            let why = inner.to_string();
            let why = why.strip_suffix(&column).unwrap_or(&why);
            format!("arguments could not be deserialised: at `{path}`: {why}")
        }
    };
    Repair::new("args.invalid", message)
}

/// An async function whose first parameter is an [`Input`] and whose others are [`Grant`]s.
#[diagnostic::on_unimplemented(
    message = "this function is not a tool",
    label = "expected `async fn(input, grants..) -> Result<output, error>`",
    note = "a closure that captures is \
            `move |input| {{ let it = it.clone(); async move {{ .. }} }}`",
    note = "for a synchronous function, use `tool_fn_blocking`",
    note = "the input is marked `#[tooltape::input]`, each grant has `impl Grant`, the output \
            serialises, and there are at most 8 grants"
)]
pub trait Handler<M>: Send + Sync + 'static {
    /// The first parameter.
    type Input: Input;
    /// What its errors look like.
    #[doc(hidden)]
    const ERRORS: Errors;
    /// The types of the other parameters.
    #[doc(hidden)]
    fn needs() -> Vec<Need>;
    /// Calls the function.
    #[doc(hidden)]
    fn call<'a>(
        &'a self,
        input: Self::Input,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// A synchronous function whose first parameter is an [`Input`] and whose others are [`Grant`]s.
#[diagnostic::on_unimplemented(
    message = "this function is not a blocking tool",
    label = "expected `fn(input, grants..) -> Result<output, error>`",
    note = "for an async function, use `tool_fn`",
    note = "the input is marked `#[tooltape::input]`, each grant has `impl Grant`, the output \
            serialises, and there are at most 8 grants"
)]
pub trait BlockingHandler<M>: Send + Sync + 'static {
    /// The first parameter.
    type Input: Input;
    /// What its errors look like.
    #[doc(hidden)]
    const ERRORS: Errors;
    /// The types of the other parameters.
    #[doc(hidden)]
    fn needs() -> Vec<Need>;
    /// Calls the function on a thread that may block.
    #[doc(hidden)]
    fn call<'a>(
        self: Arc<Self>,
        input: Self::Input,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

pub(super) fn taken<G: Grant>(grants: &Grants) -> G {
    grants.get::<G>().expect("a run checks every need before its first call")
}

macro_rules! impl_handlers {
    ($($grant:ident)*) => {
        #[diagnostic::do_not_recommend]
        #[allow(non_snake_case, reason = "each grant's variable is named like its type")]
        impl<F, Fut, I, R, $($grant,)*> Handler<(I, $($grant,)*)> for F
        where
            F: Fn(I, $($grant,)*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            I: Input,
            R: IntoResult,
            $($grant: Grant,)*
        {
            type Input = I;
            const ERRORS: Errors = R::ERRORS;

            fn needs() -> Vec<Need> {
                vec![$(Need::of::<$grant>()),*]
            }

            fn call<'a>(
                &'a self,
                input: I,
                grants: &'a Grants,
            ) -> BoxFuture<'a, Result<Output, ToolError>> {
                Box::pin(async move {
                    let _ = grants;
                    self(input, $(taken::<$grant>(grants)),*).await.into_result()
                })
            }
        }

        #[diagnostic::do_not_recommend]
        #[allow(non_snake_case, reason = "each grant's variable is named like its type")]
        impl<F, I, R, $($grant,)*> BlockingHandler<(I, $($grant,)*)> for F
        where
            F: Fn(I, $($grant,)*) -> R + Send + Sync + 'static,
            I: Input,
            R: IntoResult,
            $($grant: Grant,)*
        {
            type Input = I;
            const ERRORS: Errors = R::ERRORS;

            fn needs() -> Vec<Need> {
                vec![$(Need::of::<$grant>()),*]
            }

            fn call<'a>(
                self: Arc<Self>,
                input: I,
                grants: &'a Grants,
            ) -> BoxFuture<'a, Result<Output, ToolError>> {
                $(let $grant = taken::<$grant>(grants);)*
                let thread = grants.thread();
                Box::pin(on_a_thread(thread, move || self(input, $($grant),*).into_result()))
            }
        }
    };
}
impl_handlers!();
impl_handlers!(A);
impl_handlers!(A B);
impl_handlers!(A B C);
impl_handlers!(A B C D);
impl_handlers!(A B C D G);
impl_handlers!(A B C D G H);
impl_handlers!(A B C D G H J);
impl_handlers!(A B C D G H J K);

/// Runs work on a thread that may block. Dropping the future leaves the thread to itself; it keeps
/// its seats until it is done.
pub(super) async fn on_a_thread(
    thread: Option<(Work, Vigil)>,
    work: impl FnOnce() -> Result<Output, ToolError> + Send + 'static,
) -> Result<Output, ToolError> {
    let (working, _waiting) = thread.unzip();
    let places = place::here();
    let work = move || {
        let _working = working;
        let _entered = place::enter(&places);
        work()
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The run isolates panics, wherever they happen.
        Err(err) if err.is_panic() => panic::resume_unwind(err.into_panic()),
        Err(_) => Err(ToolError::cancelled()),
    }
}

struct FnTool<F, M> {
    spec: Spec,
    function: F,
    marker: PhantomData<fn() -> M>,
}

impl<F: Handler<M>, M: 'static> Tool for FnTool<F, M> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        match args.parse() {
            Ok(input) => self.function.call(input, grants),
            Err(err) => Box::pin(async { Err(err) }),
        }
    }
}

struct BlockingTool<F, M> {
    spec: Spec,
    function: Arc<F>,
    marker: PhantomData<fn() -> M>,
}

impl<F: BlockingHandler<M>, M: 'static> Tool for BlockingTool<F, M> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        match args.parse() {
            Ok(input) => self.function.clone().call(input, grants),
            Err(err) => Box::pin(async { Err(err) }),
        }
    }
}
