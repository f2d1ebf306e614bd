//! WASM components as tools: what is declared is enforced.
//!
//! What a component imports is all that it can reach, so its effects follow from its imports,
//! whatever it says. Its fuel is counted exactly, its memory is bounded, each call has memory that
//! nobody had before, and its clock and chance are those of the run. A component that reaches
//! nothing outside is therefore deterministic by proof: a replay executes it again and compares.
//!
//! A component exports `tooltape:tool/tool`, the world of `wit/tool.wit`. One that merely exports
//! functions is a tool for each of them:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use tooltape::{Proposal, Run, Toolbox};
//! use tooltape_wasm::{Compiler, Wasm, WasmLimits};
//!
//! let bytes = wat::parse_str(r#"(component
//!     (core module $m (func (export "add") (param i32 i32) (result i32)
//!         (i32.add (local.get 0) (local.get 1))))
//!     (core instance $i (instantiate $m))
//!     (func $add (param "a" s32) (param "b" s32) (result s32)
//!         (canon lift (core func $i "add")))
//!     (export "add" (func $add)))"#)?;
//!
//! // What others wrote is compiled by a `Compiler::Helper`, in a process of its own.
//! let wasm = Wasm::new(Compiler::InProcess, WasmLimits::default())?;
//! let component = wasm.read("add.wasm", &bytes).await?;
//! assert!(component.imports().is_empty());
//!
//! let mut toolbox = Toolbox::default();
//! component.register(&mut toolbox)?;
//! let run = Run::new(&toolbox);
//! let replies = run.batch(vec![Proposal::new("c1", "add", r#"{"a":40,"b":2}"#)]).await?;
//! assert_eq!(replies[0].text(), "42");
//! assert!(replies[0].proven);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! Modules are declared in layer order. A module uses only those above it.

mod limit;
mod error;
mod engine;
mod ticker;
mod seam;
mod host;
mod guest;
mod imports;
mod declare;
mod body;
mod compile;
mod cache;
mod tool;
mod plain;
mod component;
mod wasm;

pub use compile::{Compiler, Helper, compile_helper};
pub use component::Component;
pub use error::{RefusedImport, WasmError};
pub use imports::{Import, ImportKind};
pub use limit::WasmLimits;
pub use seam::{Files, FolderEntry, HostFiles, HostWeb, Page, Trouble, Web};
pub use wasm::Wasm;

/// Every limit of components, with its value.
pub mod limits {
    pub use crate::limit::{
        ARTIFACT_BYTES_DEFAULT, BOUND_FUEL_MAX, BOUND_MEMORY_MAX, BOUND_WALL_MAX, CACHE_BYTES_MAX,
        CACHE_ENTRIES_MAX, CALLS_DEFAULT, CODE_BYTES_MAX, COMPILE_MEMORY_DEFAULT,
        COMPILE_WALL_DEFAULT, COMPONENT_BYTES_DEFAULT, CORE_INSTANCES_MAX, DESCRIBE_FUEL_DEFAULT,
        DESCRIBE_WALL_DEFAULT, DESCRIPTION_BYTES_MAX, FUNCTIONS_MAX, HANDLES_MAX, HOST_CALL_FUEL,
        HOST_READ_BYTES_MAX, HOST_WALL_DEFAULT, HOST_WRITE_BYTES_MAX, IMPORTS_SHOWN_MAX,
        INSTANCE_BYTES_MAX, LOG_BYTES_MAX, MEMORIES_MAX, MESSAGE_BYTES_MAX, NEEDS_MAX,
        OUTPUT_BYTES_DEFAULT, RANDOM_BYTES_MAX, RETRY_MAX, SLICE_FUEL, SLICE_WALL, STACK_DEFAULT,
        STACK_MAX, TABLE_DEFAULT, TABLES_MAX, TYPE_DEPTH_MAX, TYPES_MAX, WHY_BYTES_MAX,
    };
}
