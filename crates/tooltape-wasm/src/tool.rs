//! A component as a tool: one call of `tooltape:tool/tool`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tooltape::{
    Args, BoundKind, BoxFuture, Cancel, Clock, Grants, Output, Progress, Random, Right, RunInfo,
    Spec, Store, Tool, ToolError,
};
use wasmtime::component::{ComponentExportIndex, Instance, TypedFunc};

use crate::body::{Begun, Body, message, shown};
use crate::guest::{GuestFailure, GuestFailureKind};
use crate::host::{Budget, Given, Host};
use crate::imports::{Import, ImportKind};
use crate::limit::{CODE_BYTES_MAX, RETRY_MAX};
use crate::seam::{HostFiles, HostWeb};

/// A component as a tool.
pub(crate) struct WasmTool {
    pub(crate) spec: Spec,
    pub(crate) body: Arc<Body>,
    /// The function `call`.
    pub(crate) call: ComponentExportIndex,
    pub(crate) rights: Arc<[Right]>,
    pub(crate) imports: Arc<[Import]>,
}

impl WasmTool {
    async fn run(&self, args: &str, given: Given, budget: Budget) -> Result<Output, ToolError> {
        let mut begun = self.body.begin(given, budget).await?;
        let answered = self.answer(&mut begun, args).await;
        match answered.map_err(|err| begun.fault(&err))? {
            Ok(text) => output(&begun, &text, most_bytes(&self.spec, &self.body)),
            Err(failure) => Err(failed(&begun, failure)),
        }
    }

    async fn answer(
        &self,
        begun: &mut Begun<'_>,
        args: &str,
    ) -> Result<Result<String, GuestFailure>, wasmtime::Error> {
        let instance = begun.instance().await?;
        let call = call_export(&instance, &mut begun.store, &self.call)?;
        let (answer,) = call.call_async(&mut begun.store, (args,)).await?;
        Ok(answer)
    }
}

/// The function `call`, from arguments to a result.
type CallExport<'a> = TypedFunc<(&'a str,), (Result<String, GuestFailure>,)>;

/// The function `call` of an instance.
pub(crate) fn call_export<'a>(
    instance: &Instance,
    store: &mut wasmtime::Store<Host>,
    call: &ComponentExportIndex,
) -> Result<CallExport<'a>, wasmtime::Error> {
    instance.get_typed_func(store, call)
}

impl Tool for WasmTool {
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
            let budget = budget(&self.spec, grants);
            self.run(args.canon().as_str(), given, budget).await
        })
    }
}

/// How much a call may use: what its tool says, and otherwise its run.
pub(crate) fn budget(spec: &Spec, grants: &Grants) -> Budget {
    let info = grants.get::<RunInfo>().unwrap_or_else(RunInfo::detached);
    let fuel = spec.bounds.fuel.or(info.fuel()).unwrap_or(u64::MAX);
    let memory = spec.bounds.memory.or(info.memory()).unwrap_or(u64::MAX);
    Budget { fuel, memory }
}

/// What the imports of a component stand for in one call.
pub(crate) fn given(
    imports: &[Import],
    rights: &Arc<[Right]>,
    spec: &Spec,
    grants: &Grants,
) -> Result<Given, ToolError> {
    let mut given = Given { declared: rights.clone(), ..Given::default() };
    for import in imports {
        match import.kind {
            ImportKind::Quiet | ImportKind::Log | ImportKind::Inert => {}
            ImportKind::Progress => given.progress = grants.get::<Progress>(),
            ImportKind::Cancel => given.cancel = grants.get::<Cancel>(),
            ImportKind::Clock => given.clock = grants.get::<Clock>(),
            ImportKind::Random => given.random = grants.get::<Random>(),
            ImportKind::State => {
                let store = grants.get::<Store>();
                given.state = store.map(|store| store.named(&spec.name)).transpose()?;
            }
            ImportKind::Files => {
                given.files = grants.get::<HostFiles>().and_then(|grant| grant.files());
            }
            ImportKind::Http => given.web = grants.get::<HostWeb>().and_then(|it| it.web()),
        }
    }
    Ok(given)
}

/// The largest result that a tool may have.
pub(crate) fn most_bytes(spec: &Spec, body: &Body) -> u64 {
    let most = body.limits().output_bytes;
    spec.bounds.output_bytes.or(most).unwrap_or(most).min(most)
}

/// The result of a call that answered with this text.
pub(crate) fn output(begun: &Begun<'_>, text: &str, most: u64) -> Result<Output, ToolError> {
    let bytes = text.len() as u64;
    if bytes > most {
        return Err(begun.beyond(BoundKind::OutputBytes, most, Some(bytes)));
    }
    let value: &RawValue = serde_json::from_str(text).map_err(|err| {
        ToolError::tell(format!("the component's result is no JSON: {err}"))
            .code("output.malformed")
            .details(begun.details())
    })?;
    Ok(Output::value(&value)?.detail(begun.details()))
}

/// What a component says about its failure. Its word that it did nothing is as good as what it
/// asked the host to do.
fn failed(begun: &Begun<'_>, failure: GuestFailure) -> ToolError {
    let GuestFailure { kind, message: said, code } = failure;
    let message = message(said);
    let err = match kind {
        GuestFailureKind::Cancelled => ToolError::cancelled().because(message),
        _ if begun.store.data().wrote => ToolError::tell(message),
        GuestFailureKind::Failed => ToolError::tell(message),
        GuestFailureKind::NotDone => ToolError::not_done(message),
        GuestFailureKind::RetryAfter(ms) => {
            ToolError::retry_after(Duration::from_millis(ms).min(RETRY_MAX), message)
        }
        GuestFailureKind::UserMustAct => ToolError::user_must_act(message),
    };
    let err = err.details(begun.details());
    match code {
        Some(code) => err.code(shown(&code[..code.floor_char_boundary(CODE_BYTES_MAX)])),
        None => err,
    }
}
