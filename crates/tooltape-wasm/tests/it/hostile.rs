//! Hostile components, each beside what must become of it.

mod crafted;
mod interfaces;
mod naive;
mod outside;
mod abi;
mod bounds;
mod copies;
#[cfg(unix)]
mod control;
mod host_calls;
mod leaks;
mod loading;
mod mutants;
mod reach;
mod sameness;
mod traps;

use std::sync::Arc;
use std::time::Duration;

use tooltape::{Call, Proposal, Reply, Run, Store, Toolbox, Verdict};
use tooltape_wasm::{Compiler, Component, HostFiles, HostWeb, Wasm, WasmError, WasmLimits};

use self::crafted::Crafted;
use self::outside::{Outside, Touched};

/// What a call of a crafted tool may use, unless it says otherwise.
pub(crate) const FUEL: u64 = 5_000_000;
pub(crate) const MEMORY: u64 = 4 << 20;
pub(crate) const OUTPUT: u64 = 64 << 10;

/// Limits within which an attack that works is seen soon.
pub(crate) fn small() -> WasmLimits {
    let mut limits = WasmLimits::default();
    (limits.calls, limits.table, limits.stack) = (8, 1_000, 128 << 10);
    limits.component_bytes = 1 << 20;
    limits.describe_fuel = 1_000_000;
    limits.describe_wall = Duration::from_secs(5);
    limits.host_wall = Duration::from_secs(2);
    limits
}

/// An engine, and what its components could do harm to.
pub(crate) struct World {
    pub(crate) wasm: Wasm,
    pub(crate) touched: Arc<Touched>,
}

impl World {
    pub(crate) fn new() -> World {
        let wasm = Wasm::new(Compiler::InProcess, small()).unwrap();
        World { wasm, touched: Arc::default() }
    }

    pub(crate) async fn load(&self, bytes: &[u8]) -> Result<Component, WasmError> {
        self.wasm.read("crafted", bytes).await
    }

    /// A run that may do all that a crafted tool could want.
    pub(crate) fn run(&self, component: &Component) -> Run {
        let mut toolbox = Toolbox::default();
        component.register(&mut toolbox).unwrap();
        let rights = "clock:read:now\nrandom:read:any\nfs:read:data\nfs:write:data\n\
            net:get:example.com\nfs:read:other\nnet:get:other.example";
        Run::new(&toolbox)
            .grant(Store::memory())
            .grant(HostFiles::new(Outside::new(&self.touched)))
            .grant(HostWeb::new(Outside::new(&self.touched)))
            .rights(rights.parse().unwrap())
            .policy(|_: &Call| Verdict::allow("everything"))
    }

    /// Calls the one tool of a component once, without arguments.
    pub(crate) async fn call(&self, component: &Component) -> Reply {
        self.call_with(component, "{}").await
    }

    pub(crate) async fn call_with(&self, component: &Component, args: &str) -> Reply {
        let name = component.tools()[0].spec().name.to_string();
        let proposals = vec![Proposal::new("call_1", name, args)];
        self.run(component).batch(proposals).await.unwrap().remove(0)
    }

    /// How a crafted tool ends: in a word, and the amounts of a bound that it reached.
    pub(crate) async fn end(&self, crafted: &Crafted) -> String {
        self.end_of(&bounded(crafted).bytes()).await
    }

    pub(crate) async fn end_of(&self, bytes: &[u8]) -> String {
        match self.load(bytes).await {
            Ok(component) => ended(&self.call(&component).await),
            Err(err) => refused(&err),
        }
    }

    /// Asserts that each tool ends as it must, and that the engine is none the worse for it.
    pub(crate) async fn check(&self, cases: &[(&str, Crafted, &str)]) {
        for (attack, crafted, expected) in cases {
            let end = self.end(crafted).await;
            assert!(end.starts_with(expected), "{attack}: expected `{expected}`, found `{end}`");
            let sound = self.end(&Crafted::default()).await;
            assert_eq!(sound, "answered 1", "after {attack}");
        }
        println!("hostile: {} cases", cases.len());
    }
}

/// The same tool, bounded where it says nothing itself.
fn bounded(crafted: &Crafted) -> Crafted {
    let [wall, memory, fuel, output] = crafted.bounds;
    let bounds = [wall, memory.or(Some(MEMORY)), fuel.or(Some(FUEL)), output.or(Some(OUTPUT))];
    Crafted { bounds, ..*crafted }
}

/// How a call ended.
pub(crate) fn ended(reply: &Reply) -> String {
    let Some(fault) = &reply.fault else {
        return format!("answered {}", reply.value.as_ref().unwrap());
    };
    match (fault.bound, fault.limit, fault.used) {
        (Some(bound), Some(limit), Some(used)) => {
            format!("exceeded {}: {used} of {limit}", bound.name())
        }
        (Some(bound), limit, used) => format!("exceeded {}: {used:?} of {limit:?}", bound.name()),
        (None, ..) => format!("{} {}: {}", fault.kind, fault.code, fault.message),
    }
}

/// Why a component was not loaded.
pub(crate) fn refused(err: &WasmError) -> String {
    let kind = match err {
        WasmError::Unreadable { .. } => "unreadable",
        WasmError::TooLarge { .. } => "too large",
        WasmError::Changed { .. } => "changed",
        WasmError::NotWasm { .. } => "not wasm",
        WasmError::CoreModule { .. } => "core module",
        WasmError::Invalid { .. } => "invalid",
        WasmError::Compile { .. } => "compile",
        WasmError::World { .. } => "world",
        WasmError::NoTool { .. } => "no tool",
        WasmError::Imports { .. } => "imports",
        WasmError::Type { .. } => "type",
        WasmError::Describe { .. } => "describe",
        WasmError::Spec { .. } => "spec",
        WasmError::Engine { .. } => "engine",
        WasmError::Cache { .. } => "cache",
        _ => "unknown",
    };
    format!("refused as {kind}: {err}")
}
