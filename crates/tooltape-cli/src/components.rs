//! WASM components that the configuration makes tools.

mod reach;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;
use serde_json::{Value, json};
use tooltape::{Reach, Run, Store, Tool, Toolbox};
use tooltape_kit::{Http, Workspace};
use tooltape_wasm::{
    Compiler, Component, Helper, HostFiles, HostWeb, Import, Wasm, WasmError, WasmLimits,
    compile_helper,
};

use crate::config::{Found, Layers, WasmTable};
use crate::exit::Exit;
use crate::private;
use crate::report::{Problem, Result};
use reach::{Folder, Pages};

/// The first argument of the program where it compiles a component.
const WORD: &str = "__wasm-compile";
/// The most components of one folder.
const COMPONENTS_MAX: usize = 256;

/// What somebody sees who looks at a component.
pub(crate) struct Looked {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) hash: String,
    pub(crate) shown: Value,
}

/// Every component that was loaded, each of them once.
#[derive(Default)]
pub(crate) struct Components {
    /// Made for the first component.
    wasm: OnceCell<Wasm>,
    loaded: RefCell<BTreeMap<PathBuf, Rc<Component>>>,
}

/// Compiles a component, if that is what the program was started for.
pub(crate) fn play_compiler() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let is_compiler = args.next().is_some_and(|word| word == WORD);
    let words = args.map(|word| word.to_string_lossy().into_owned());
    is_compiler.then(|| compile_helper(words))
}

/// The run, with all that components may import.
pub(crate) fn helped(run: Run, files: Workspace, http: Http) -> Run {
    let (files, pages) = (HostFiles::new(Folder(files)), HostWeb::new(Pages::new(http)));
    run.grant(files).grant(pages).grant(Store::memory())
}

impl Components {
    /// Adds the components that the configuration names.
    pub(crate) fn add(&self, layers: &Layers, tools: &mut Toolbox) -> Result {
        for found in layers.all("tools.wasm", |config| config.tools.wasm.as_ref()) {
            for path in paths(&found)? {
                let hash = found.value.hash.as_deref();
                let component = self.load(&path, hash, &layers.roots());
                let component = component.map_err(|err| refused(&found, &err))?;
                let added = component.register(tools);
                added.map_err(|err| found.problem(Some("component"), err.to_string()))?;
                if !found.layer.is_trusted() {
                    doubt(&component, tools);
                }
            }
        }
        Ok(())
    }

    /// What is known of the component that a tool is of.
    pub(crate) fn of_tool(&self, name: &str) -> Option<Value> {
        let loaded = self.loaded.borrow();
        let is_its = |component: &&Rc<Component>| {
            component.tools().iter().any(|tool| &*tool.spec().name == name)
        };
        loaded.values().find(is_its).map(|component| shown(component))
    }

    /// Looks at a component that may become a tool.
    pub(crate) fn look(&self, path: &Path, layers: &Layers) -> Result<Looked> {
        let component = self.load(path, None, &layers.roots()).map_err(|err| {
            Problem::new(Exit::Failed, "tool.refused", err.to_string())
                .hint("`docs/wasm.md` says what a component must be")
        })?;
        let (tools, hash) = (component.tools().to_vec(), component.hash().to_owned());
        Ok(Looked { tools, hash, shown: shown(&component) })
    }

    /// Loads a component, unless it was.
    fn load(
        &self,
        path: &Path,
        hash: Option<&str>,
        roots: &[PathBuf],
    ) -> std::result::Result<Rc<Component>, WasmError> {
        let is_known = |it: &&Rc<Component>| hash.is_none_or(|hash| hash == it.hash());
        if let Some(component) = self.loaded.borrow().get(path).filter(is_known) {
            return Ok(component.clone());
        }
        let wasm = match self.wasm.get() {
            Some(wasm) => wasm,
            None => {
                let wasm = wasm(roots)?;
                self.wasm.get_or_init(|| wasm)
            }
        };
        let component = Rc::new(waited_for(wasm, path, hash)?);
        self.loaded.borrow_mut().insert(path.to_owned(), component.clone());
        Ok(component)
    }
}

/// Counts the calls of a component that nobody vouches for as changes, where it asks others: what
/// it asks for may tell them what it read.
fn doubt(component: &Component, tools: &mut Toolbox) {
    for tool in component.tools() {
        let spec = tool.spec();
        if spec.effects.reach == Reach::Network {
            tools.doubted(&spec.name).expect("it was registered just above, and stays well-formed");
        }
    }
}

/// What runs components. What was compiled is kept, where there is a place for it.
///
/// It is machine code, so it is never kept where tools write.
fn wasm(roots: &[PathBuf]) -> std::result::Result<Wasm, WasmError> {
    let compiler = match std::env::current_exe() {
        Ok(program) => Compiler::Helper(Helper::new(program, [WORD])),
        Err(err) => {
            let why = format!("the program does not find itself: {err}");
            return Err(WasmError::Engine { why });
        }
    };
    let wasm = Wasm::new(compiler, WasmLimits::default())?;
    let cache = Xdg::new().map(|xdg| xdg.cache_dir().join("tooltape/wasm"));
    Ok(match cache {
        Ok(cache) if !roots.iter().any(|root| private::is_below(&cache, root)) => {
            // Whoever has no such folder waits for the compiler each time.
            wasm.clone().caching(cache).unwrap_or(wasm)
        }
        Ok(_) | Err(_) => wasm,
    })
}

/// Loads a component and waits for it, be it within a runtime or not.
fn waited_for(
    wasm: &Wasm,
    path: &Path,
    hash: Option<&str>,
) -> std::result::Result<Component, WasmError> {
    let load = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|err| WasmError::Engine { why: err.to_string() })?;
        runtime.block_on(async {
            match hash {
                Some(hash) => wasm.load_known(path, hash).await,
                None => wasm.load(path).await,
            }
        })
    };
    let loaded = thread::scope(|scope| scope.spawn(load).join());
    loaded.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The files that an entry names: itself, or all of a folder, by name.
fn paths(found: &Found<'_, &WasmTable>) -> Result<Vec<PathBuf>> {
    let path = found.part("component").below(&found.value.component)?;
    if !path.is_dir() {
        return Ok(vec![path]);
    }
    let refused = |why: String| found.problem(Some("component"), why);
    if found.value.hash.is_some() {
        return Err(found.problem(Some("hash"), "a folder has no hash: name its components"));
    }
    let entries = fs::read_dir(&path).map_err(|err| refused(format!("cannot be read: {err}")))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let named = names.filter(|name| name.ends_with(".wasm"));
    // A link in it could lead elsewhere.
    let below = |name: String| {
        let path = format!("{}/{name}", found.value.component);
        found.part("component").below(&path)
    };
    let mut paths: Vec<PathBuf> = named.map(below).collect::<Result<_>>()?;
    if paths.is_empty() || paths.len() > COMPONENTS_MAX {
        let count = paths.len();
        return Err(refused(format!("{count} components, expected 1 to {COMPONENTS_MAX}")));
    }
    paths.sort();
    Ok(paths)
}

/// What is wrong with a component, at the place that names it.
fn refused(found: &Found<'_, &WasmTable>, err: &WasmError) -> Box<Problem> {
    let WasmError::Changed { hash, .. } = err else {
        return found.problem(Some("component"), err.to_string());
    };
    let name = &found.value.component;
    let why = format!(
        "`{name}` was changed, its hash is now `{hash}`: look at it, and let `tooltape tools add \
         {name}` write it down again"
    );
    found.problem(Some("hash"), why)
}

/// All that is known of a component: above all, what it imports.
fn shown(component: &Component) -> Value {
    let import = |import: &Import| {
        let (name, is, needs) = (&import.name, import.kind.word(), import.kind.needs());
        json!({ "name": name, "is": is, "needs": needs })
    };
    json!({
        "file": component.name(),
        "hash": component.hash(),
        "bytes": component.bytes(),
        "imports": component.imports().iter().map(import).collect::<Vec<_>>(),
    })
}
