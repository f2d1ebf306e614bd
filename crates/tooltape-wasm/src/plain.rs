//! Plain functions as tools: schemas from their types, and values from JSON and to it.

mod schema;
mod text;
mod value;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tooltape::{
    Args, BoundKind, BoxFuture, Effects, Grants, Label, Output, Right, Spec, Tool, ToolError,
};
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{ComponentExportIndex, Type, Val};

use self::text::Unwritten;
use crate::body::{Begun, Body, message};
use crate::declare::{determinism, refused, signed, taking};
use crate::error::WasmError;
use crate::host::{Budget, Given};
use crate::imports::Import;
use crate::limit::{FUNCTIONS_MAX, MESSAGE_BYTES_MAX};
use crate::tool::{budget, given, most_bytes, output};

/// The bytes that the host may need for a flag whose name is one letter, for which the engine
/// counts one byte.
const FLAG_BYTES: usize = 64;

/// A plain function as a tool.
struct FunctionTool {
    spec: Spec,
    body: Arc<Body>,
    function: ComponentExportIndex,
    params: Vec<(String, Type)>,
    result: Option<Type>,
    /// Whether there are flags in the result, which grow where they are copied.
    has_flags: bool,
    rights: Arc<[Right]>,
    imports: Arc<[Import]>,
}

/// One tool for each function that a component exports.
///
/// Nobody declares anything for them, so they may import nothing that must be declared.
pub(crate) fn tools(
    name: &str,
    hash: &str,
    body: &Arc<Body>,
    imports: &Arc<[Import]>,
) -> Result<Vec<Arc<dyn Tool>>, WasmError> {
    let refused = refused(imports, |kind| kind.needs().is_none());
    if !refused.is_empty() {
        return Err(WasmError::Imports { name: name.to_owned(), refused });
    }
    let functions = functions(body);
    if functions.is_empty() {
        return Err(WasmError::NoTool { name: name.to_owned() });
    }
    let tool = |exported: Exported| {
        let function = exported.tool.clone();
        let tool = FunctionTool::new(hash, body, imports, exported);
        tool.map_err(|why| WasmError::Type { name: name.to_owned(), function, why })
    };
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for exported in functions {
        if tools.len() == FUNCTIONS_MAX {
            let (name, function) = (name.to_owned(), exported.tool);
            let why = format!("there are more than {FUNCTIONS_MAX} functions");
            return Err(WasmError::Type { name, function, why });
        }
        tools.push(Arc::new(tool(exported)?));
    }
    Ok(tools)
}

/// A function, and what its tool is called.
struct Exported {
    tool: String,
    function: ComponentFunc,
    index: ComponentExportIndex,
}

/// All functions that a component exports, by itself or in an interface that is no part of WASI.
fn functions(body: &Body) -> Vec<Exported> {
    let component = body.component();
    let (ty, engine) = (component.component_type(), component.engine());
    let mut functions = Vec::new();
    let tool_name = |name: &str| name.replace('-', "_");
    for (name, item) in ty.exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(function) => {
                if let Some(index) = component.get_export_index(None, name) {
                    functions.push(Exported { tool: tool_name(name), function, index });
                }
            }
            ComponentItem::ComponentInstance(instance) if !name.starts_with("wasi:") => {
                let interface = component.get_export_index(None, name);
                let short = name.rsplit('/').next().unwrap_or(name);
                let short = short.split('@').next().unwrap_or(short);
                for (inner, item) in instance.exports(engine) {
                    if let ComponentItem::ComponentFunc(function) = item.ty
                        && let Some(index) = component.get_export_index(interface.as_ref(), inner)
                    {
                        let tool = tool_name(&format!("{short}_{inner}"));
                        functions.push(Exported { tool, function, index });
                    }
                }
            }
            _ => {}
        }
    }
    functions.sort_by(|one, other| one.tool.cmp(&other.tool));
    functions
}

impl FunctionTool {
    fn new(
        hash: &str,
        body: &Arc<Body>,
        imports: &Arc<[Import]>,
        exported: Exported,
    ) -> Result<FunctionTool, String> {
        let Exported { tool, function, index } = exported;
        if function.async_() {
            return Err("it is asynchronous, expected a function that answers".to_owned());
        }
        let params: Vec<(String, Type)> =
            function.params().map(|(name, ty)| (name.to_owned(), ty)).collect();
        let result = function.results().next();
        let mut schemas = schema::Schemas::default();
        let input = schemas.object(params.iter().map(|(name, ty)| (name.as_str(), ty.clone())))?;
        let output = match schema::answer(result.as_ref()) {
            Some(ty) => schemas.of(&ty)?,
            None => json!({ "type": "null" }),
        };
        let description = format!("The function `{tool}` of a WASM component.");
        let effects = Effects { determinism: determinism(imports), ..Effects::pure() };
        let spec = Spec::new(tool.as_str(), description)
            .input(input)
            .output(signed(Some(output), hash)?)
            .effects(effects)
            .labelled(Label::untrusted(tool.as_str()));
        let (spec, body, rights) = (taking(spec, imports), body.clone(), Arc::default());
        let (function, imports) = (index, imports.clone());
        let has_flags = result.as_ref().is_some_and(schema::has_flags);
        Ok(FunctionTool { spec, body, function, params, result, has_flags, rights, imports })
    }

    async fn run(
        &self,
        args: &Map<String, Value>,
        given: Given,
        budget: Budget,
    ) -> Result<Output, ToolError> {
        let wrong = |why| ToolError::not_done(why).code("args.invalid");
        let params = self.params.iter().map(|(name, ty)| {
            let value = args.get(name).unwrap_or(&Value::Null);
            value::read(value, ty).map_err(|why| format!("`{name}`: {why}"))
        });
        let params = params.collect::<Result<Vec<Val>, String>>().map_err(wrong)?;
        let mut begun = self.body.begin(given, budget).await?;
        let most = most_bytes(&self.spec, &self.body);
        begun.copying(self.copied_max(budget, most), most);
        let answered = self.answer(&mut begun, &params).await;
        let answer = answered.map_err(|err| begun.fault(&err))?;
        let value = match &answer {
            Some(Val::Result(Ok(value))) => value.as_deref(),
            Some(Val::Result(Err(err))) => {
                let told = text::told(err.as_deref(), MESSAGE_BYTES_MAX as u64);
                return Err(ToolError::tell(message(told)).details(begun.details()));
            }
            answer => answer.as_ref(),
        };
        let text = text::written(value, most).map_err(|unwritten| match unwritten {
            Unwritten::TooLong => begun.beyond(BoundKind::OutputBytes, most, None),
            Unwritten::NoJson(why) => ToolError::tell(why).code("output.malformed"),
        })?;
        drop(answer);
        output(&begun, &text, most)
    }

    /// How much the engine copies of an answer: as much as the component may have itself, and no
    /// more than a result of so many bytes can be made of.
    fn copied_max(&self, budget: Budget, most: u64) -> usize {
        let share = if self.has_flags { FLAG_BYTES } else { 1 };
        let memory = usize::try_from(budget.memory).unwrap_or(usize::MAX) / share;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        memory.min(most.saturating_add(1).saturating_mul(size_of::<Val>()))
    }

    async fn answer(
        &self,
        begun: &mut Begun<'_>,
        params: &[Val],
    ) -> Result<Option<Val>, wasmtime::Error> {
        let instance = begun.instance().await?;
        let function = instance.get_func(&mut begun.store, self.function);
        let function = function.ok_or_else(|| wasmtime::Error::msg("the function is gone"))?;
        let mut results: Vec<Val> = self.result.iter().map(|_| Val::Bool(false)).collect();
        function.call_async(&mut begun.store, params, &mut results).await?;
        Ok(results.pop())
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let given = given(&self.imports, &self.rights, &self.spec, grants)?;
            let args = args.parse::<Map<String, Value>>()?;
            self.run(&args, given, budget(&self.spec, grants)).await
        })
    }
}
