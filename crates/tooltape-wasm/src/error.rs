//! Why a component is no tool.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tooltape::RegisterError;

use crate::limit::IMPORTS_SHOWN_MAX;

/// Why a component is no tool. Each says which component, and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WasmError {
    /// The file could not be read.
    #[error("`{name}` cannot be read: {source}")]
    Unreadable {
        /// The component.
        name: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is larger than any component may be.
    #[error("`{name}` has more than {limit} bytes, which is the most that a component may have")]
    TooLarge {
        /// The component.
        name: String,
        /// The most bytes.
        limit: u64,
    },
    /// The file is another than the one that was expected.
    #[error("`{name}` has changed: its hash is `{hash}`, expected `{expected}`")]
    Changed {
        /// The component.
        name: String,
        /// The BLAKE3 hash of its bytes, as lower-case hexadecimal.
        hash: String,
        /// The hash that it should have.
        expected: String,
    },
    /// The file is no WASM at all.
    #[error("`{name}` is no WASM, expected a component in the binary format")]
    NotWasm {
        /// The file.
        name: String,
    },
    /// The file is a core module.
    #[error(
        "`{name}` is a core module, expected a component: build it for `wasm32-wasip2`, or make \
         one of it with `wasm-tools component new`"
    )]
    CoreModule {
        /// The file.
        name: String,
    },
    /// It is no valid component, or uses what is switched off.
    #[error("`{name}` is no component that can be compiled: {why}")]
    Invalid {
        /// The component.
        name: String,
        /// What the compiler said.
        why: String,
    },
    /// It could not be compiled within its bounds, or there was nobody to compile it.
    #[error("`{name}` was not compiled: {why}")]
    Compile {
        /// The component.
        name: String,
        /// What happened, with the bound if it was one.
        why: String,
    },
    /// It was made for another version of the world.
    #[error("`{name}` is made for `{found}`, expected `tooltape:tool` in a version up to 1.0")]
    World {
        /// The component.
        name: String,
        /// The interface in the version that it wants.
        found: String,
    },
    /// It exports nothing that can be called.
    #[error("`{name}` exports neither `tooltape:tool/tool` nor a function")]
    NoTool {
        /// The component.
        name: String,
    },
    /// It imports more than it declares, or what nobody gives it.
    #[error("`{name}` imports more than it may: {}", listed(.refused))]
    Imports {
        /// The component.
        name: String,
        /// All that is refused.
        refused: Vec<RefusedImport>,
    },
    /// One of its plain functions cannot be called with JSON.
    #[error("`{name}` exports `{function}`, which cannot be a tool: {why}")]
    Type {
        /// The component.
        name: String,
        /// The function.
        function: String,
        /// Which type of it has no JSON.
        why: String,
    },
    /// It did not say what it is.
    #[error("`{name}` does not describe itself: {why}")]
    Describe {
        /// The component.
        name: String,
        /// What it did instead.
        why: String,
    },
    /// What it says about itself is refused.
    #[error("`{name}` describes a tool that is refused: {source}")]
    Spec {
        /// The component.
        name: String,
        /// Why.
        source: RegisterError,
    },
    /// There is no engine to run components with.
    #[error("components cannot be run here: {why}")]
    Engine {
        /// What the engine said.
        why: String,
    },
    /// The folder is no place for a cache.
    #[error("`{}` is no place to keep compiled components: {why}", .folder.display())]
    Cache {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// An import that a component may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedImport {
    /// The import.
    pub import: String,
    /// Why it may not have it.
    pub why: String,
}

impl fmt::Display for RefusedImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.import, self.why)
    }
}

fn listed(refused: &[RefusedImport]) -> String {
    let shown = refused.iter().take(IMPORTS_SHOWN_MAX).map(RefusedImport::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match refused.len().saturating_sub(IMPORTS_SHOWN_MAX) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}
