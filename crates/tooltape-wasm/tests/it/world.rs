//! What tests have in common: an engine, and runs.

use std::sync::OnceLock;

use tooltape::{Proposal, Reply, Run, Toolbox};
use tooltape_wasm::{Compiler, Component, Helper, Wasm, WasmError, WasmLimits};

use crate::guest::Guest;

/// An engine that compiles here, as tests can afford.
pub(crate) fn wasm() -> Wasm {
    static WASM: OnceLock<Wasm> = OnceLock::new();
    let new = || Wasm::new(Compiler::InProcess, WasmLimits::default()).unwrap();
    WASM.get_or_init(new).clone()
}

/// The program that compiles elsewhere.
pub(crate) fn helper() -> Compiler {
    Compiler::Helper(Helper::new(env!("CARGO_BIN_EXE_tooltape-wasm-compile"), [""; 0]))
}

/// Lets a future run to its end.
pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

/// A guest that was loaded.
pub(crate) fn loaded(guest: &Guest) -> Component {
    block(wasm().read(guest.name, &guest.wasm())).unwrap()
}

/// Why a guest is not loaded.
pub(crate) fn refused(guest: &Guest) -> WasmError {
    let refused = block(wasm().read(guest.name, &guest.wasm())).map(drop);
    refused.expect_err("it should be refused")
}

/// The tools of a component.
pub(crate) fn toolbox(component: &Component) -> Toolbox {
    let mut toolbox = Toolbox::default();
    component.register(&mut toolbox).unwrap();
    toolbox
}

/// One call of a run.
pub(crate) async fn call(run: &Run, tool: &str, args: &str) -> Reply {
    let replies = run.batch(vec![Proposal::new("c1", tool, args)]).await.unwrap();
    replies.into_iter().next().unwrap()
}

/// One call of a guest, in a run of its own.
pub(crate) fn called(guest: &Guest, args: &str) -> Reply {
    let toolbox = toolbox(&loaded(guest));
    block(async { call(&Run::new(&toolbox), guest.name, args).await })
}
