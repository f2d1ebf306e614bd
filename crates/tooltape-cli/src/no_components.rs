//! Without the feature `wasm`: components are refused by name.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;
use tooltape::{Run, Tool, Toolbox};
use tooltape_kit::{Http, Workspace};

use crate::config::Layers;
use crate::exit::Exit;
use crate::report::{Problem, Result};

const WHY: &str = "this program was built without the feature `wasm`";

/// What somebody sees who looks at a component.
pub(crate) struct Looked {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) hash: String,
    pub(crate) shown: Value,
}

/// No components.
#[derive(Default)]
pub(crate) struct Components;

/// Nothing is ever compiled.
pub(crate) fn play_compiler() -> Option<ExitCode> {
    None
}

/// The run, as it is.
pub(crate) fn helped(run: Run, _: Workspace, _: Http) -> Run {
    run
}

impl Components {
    /// Refuses the first component that the configuration names.
    pub(crate) fn add(&self, layers: &Layers, _: &mut Toolbox) -> Result {
        match layers.all("tools.wasm", |config| config.tools.wasm.as_ref()).next() {
            Some(found) => Err(found.problem(Some("component"), WHY)),
            None => Ok(()),
        }
    }

    /// No tool is of a component.
    pub(crate) fn of_tool(&self, _: &str) -> Option<Value> {
        None
    }

    /// Refuses it.
    pub(crate) fn look(&self, _: &Path, _: &Layers) -> Result<Looked> {
        Err(Problem::new(Exit::Failed, "tool.refused", WHY))
    }
}
