//! Binding: an argument of any tool that the host fills and the model never sees.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Args, BoxFuture, Output, Tool};
use crate::canon::Canon;
use crate::fault::{Repair, ToolError};
use crate::grant::{Grant, Grants, Need};
use crate::spec::{Spec, Typed};

/// Takes the argument `name` out of a tool's schema, refuses it from the model, and fills it from
/// a grant after the call was resolved, hashed and permitted.
///
/// It is meant for tools that have no first parameter of ours: remote ones, executables, WASM. The
/// tool's footprint hook is dropped, since it would not see the argument.
///
/// ```
/// # use std::sync::Arc;
/// # use tooltape::{Args, BoxFuture, Grants, Output, Spec, Tool, ToolError};
/// # struct Search(Spec);
/// # impl Tool for Search {
/// #     fn spec(&self) -> &Spec { &self.0 }
/// #     fn call<'a>(
/// #         &'a self, _: Args, _: &'a Grants,
/// #     ) -> BoxFuture<'a, Result<Output, ToolError>> {
/// #         Box::pin(async { Ok(Output::text("")) })
/// #     }
/// # }
/// use tooltape::{Secret, bind};
///
/// let search: Arc<dyn Tool> = Arc::new(Search(Spec::new("search", "Searches.").input(
///     serde_json::json!({
///         "type": "object",
///         "properties": { "query": { "type": "string" }, "key": { "type": "string" } },
///         "required": ["query", "key"],
///     }),
/// )));
/// let search = bind(search, "key", |key: &Secret<String>| key.expose().clone().into()).unwrap();
/// assert!(search.spec().input["properties"].get("key").is_none());
/// ```
pub fn bind<G: Grant>(
    tool: Arc<dyn Tool>,
    name: &str,
    fill: impl Fn(&G) -> Value + Send + Sync + 'static,
) -> Result<Arc<dyn Tool>, BindError> {
    let mut spec = tool.spec().clone();
    hide(&mut spec.input, name)
        .ok_or_else(|| BindError { tool: spec.name.clone(), argument: name.into() })?;
    spec.needs.push(Need::of::<G>());
    // What it touches may depend on the hidden argument, which no hook sees.
    spec.hooks.footprint = None;
    let hidden = name.to_owned();
    spec.hooks.read = Some(Arc::new(move |canon| refuse(canon, &hidden)));
    let fill = move |grants: &Grants| grants.get::<G>().map(|grant| fill(&grant));
    Ok(Arc::new(Bound { spec, tool, name: name.to_owned(), fill: Box::new(fill) }))
}

/// The tool has no such argument to bind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tool `{tool}` has no property `{argument}` at the root of its input schema")]
pub struct BindError {
    tool: Arc<str>,
    argument: String,
}

/// Removes a property from the schema's root, as if it had never been there.
fn hide(schema: &mut Value, name: &str) -> Option<()> {
    let root = schema.as_object_mut()?;
    root.get_mut("properties")?.as_object_mut()?.remove(name)?;
    let required = root.get_mut("required").and_then(Value::as_array_mut);
    required.into_iter().for_each(|required| required.retain(|it| it != name));
    Some(())
}

/// Where a schema is open, the model could still name the hidden argument.
fn refuse(canon: &Canon, hidden: &str) -> Result<Typed, Repair> {
    let args: Map<String, Value> = canon.parse().map_err(|err| {
        Repair::new("args.invalid", format!("arguments could not be deserialised: {err}"))
    })?;
    match args.contains_key(hidden) {
        true => Err(Repair::new("args.invalid", format!("unknown field `{hidden}`"))),
        false => Ok(Box::new(args)),
    }
}

type Fill = Box<dyn Fn(&Grants) -> Option<Value> + Send + Sync>;

struct Bound {
    spec: Spec,
    tool: Arc<dyn Tool>,
    name: String,
    fill: Fill,
}

impl Tool for Bound {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        match self.filled(args, grants) {
            Ok(args) => self.tool.call(args, grants),
            Err(err) => Box::pin(async { Err(err) }),
        }
    }
}

impl Bound {
    fn filled(&self, args: Args, grants: &Grants) -> Result<Args, ToolError> {
        let mut args: Map<String, Value> = args.parse()?;
        let value = (self.fill)(grants)
            .ok_or_else(|| ToolError::not_done("a value that the host fills is missing"))?;
        args.insert(self.name.clone(), value);
        let canon = Canon::of(&args)?;
        let typed = match &self.tool.spec().hooks.read {
            // What is wrong may be what the host filled, so nobody is shown its words.
            Some(read) => Some(read(&canon).map_err(|repair| {
                ToolError::not_done("the filled arguments do not fit the tool").code(repair.code)
            })?),
            None => None,
        };
        Ok(Args::new(canon, typed))
    }
}
