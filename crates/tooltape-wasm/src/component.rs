//! A component that was looked at and found to be one tool, or several.

use std::sync::Arc;

use tooltape::{Enforced, RegisterError, Registered, Tool, Toolbox};
use wasmtime::component::{self, ComponentExportIndex};

use crate::body::{Body, Shared, shown};
use crate::declare::{Declared, Undeclared, declared};
use crate::error::{RefusedImport, WasmError};
use crate::guest::GuestSpec;
use crate::host::{Budget, Given};
use crate::imports::{self, Exported, Import, ImportKind, Wanted};
use crate::tool::{WasmTool, call_export};

/// A component that was loaded: its tools, and all that they can reach.
///
/// ```no_run
/// # async fn load() -> Result<(), Box<dyn std::error::Error>> {
/// use tooltape::Toolbox;
/// use tooltape_wasm::{Compiler, Helper, Wasm, WasmLimits};
///
/// let helper = Helper::new("tooltape-wasm-compile", [""; 0]);
/// let wasm = Wasm::new(Compiler::Helper(helper), WasmLimits::default())?;
/// let component = wasm.load("./word_count.wasm").await?;
/// for import in component.imports() {
///     println!("{import}");
/// }
/// let mut toolbox = Toolbox::default();
/// component.register(&mut toolbox)?;
/// # Ok(())
/// # }
/// ```
pub struct Component {
    name: String,
    hash: String,
    bytes: u64,
    imports: Arc<[Import]>,
    tools: Vec<Arc<dyn Tool>>,
    is_from_cache: bool,
}

/// What is known of a component before it was looked at.
pub(crate) struct Loaded<'n> {
    pub(crate) name: &'n str,
    pub(crate) hash: String,
    pub(crate) bytes: u64,
    pub(crate) is_from_cache: bool,
    pub(crate) component: component::Component,
}

impl Component {
    /// Looks at a component: what it imports, what it exports, and what it says about itself.
    pub(crate) async fn of(
        shared: &Arc<Shared>,
        loaded: Loaded<'_>,
    ) -> Result<Component, WasmError> {
        let Loaded { name, hash, bytes, is_from_cache, component } = loaded;
        let imports: Arc<[Import]> = known(name, &component)?.into();
        let linked = match imports.iter().any(|import| import.kind == ImportKind::Inert) {
            true => imports::with_inert(&shared.linker, &component, &imports)
                .and_then(|linker| linker.instantiate_pre(&component)),
            false => shared.linker.instantiate_pre(&component),
        };
        let linked = linked.map_err(|err| {
            let why = shown(&format!("{err:#}"));
            WasmError::Invalid { name: name.to_owned(), why }
        })?;
        let body = Arc::new(Body::new(shared, linked));
        let tools = match imports::exported(&component) {
            Exported::Newer(found) => {
                return Err(WasmError::World { name: name.to_owned(), found });
            }
            Exported::Tool(export) => vec![tool(name, &hash, &body, &imports, &export).await?],
            Exported::Nothing => crate::plain::tools(name, &hash, &body, &imports)?,
        };
        for tool in &tools {
            Registered::new(tool.clone())
                .map_err(|source| WasmError::Spec { name: name.to_owned(), source })?;
        }
        Ok(Component { name: name.to_owned(), hash, bytes, imports, tools, is_from_cache })
    }

    /// What it is called here: its file, or the name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The BLAKE3 hash of its bytes, as lower-case hexadecimal. The definition of each of its tools
    /// covers it, and so does every approval.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All that it can reach, by name.
    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// Its tools: one, or one for each plain function.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Whether it had been compiled before.
    pub fn is_from_cache(&self) -> bool {
        self.is_from_cache
    }

    /// Adds its tools, of which everybody may know that they are held to what they declare.
    ///
    /// All of them are added, or none.
    pub fn register(&self, toolbox: &mut Toolbox) -> Result<(), RegisterError> {
        let mut more = toolbox.clone();
        for tool in &self.tools {
            more.add(tool.clone())?;
            more.enforced(&tool.spec().name, Enforced::Wasm)?;
        }
        *toolbox = more;
        Ok(())
    }
}

/// The imports of a component, if each is one that can be given.
fn known(name: &str, component: &component::Component) -> Result<Vec<Import>, WasmError> {
    let (mut known, mut refused) = (Vec::new(), Vec::new());
    for wanted in imports::wanted(component) {
        match wanted {
            Wanted::Known(import) => known.push(import),
            Wanted::Unknown(import) => {
                let why = "no component is given that".to_owned();
                refused.push(RefusedImport { import, why });
            }
            Wanted::Newer(found) => {
                return Err(WasmError::World { name: name.to_owned(), found });
            }
        }
    }
    match refused.is_empty() {
        true => Ok(known),
        false => Err(WasmError::Imports { name: name.to_owned(), refused }),
    }
}

/// The tool that a component says it is.
async fn tool(
    name: &str,
    hash: &str,
    body: &Arc<Body>,
    imports: &Arc<[Import]>,
    export: &str,
) -> Result<Arc<dyn Tool>, WasmError> {
    let undescribed = |why: String| WasmError::Describe { name: name.to_owned(), why };
    let component = body.component();
    let interface = component.get_export_index(None, export);
    let function = |function: &str| {
        let found = component.get_export_index(interface.as_ref(), function);
        found.ok_or_else(|| undescribed(format!("`{export}` has no function `{function}`")))
    };
    let (describe, call) = (function("describe")?, function("call")?);
    let said = described(body, &describe, &call).await.map_err(undescribed)?;
    let Declared { spec, rights } =
        declared(said, imports, hash).map_err(|undeclared| match undeclared {
            Undeclared::Wrong(why) => undescribed(why),
            Undeclared::Imports(refused) => WasmError::Imports { name: name.to_owned(), refused },
        })?;
    Ok(Arc::new(WasmTool { spec, body: body.clone(), call, rights, imports: imports.clone() }))
}

/// What a component says about itself, with nothing behind its imports.
async fn described(
    body: &Body,
    describe: &ComponentExportIndex,
    call: &ComponentExportIndex,
) -> Result<GuestSpec, String> {
    let (limits, memory) = (body.limits(), tooltape::limits::MEMORY_DEFAULT);
    let budget = Budget { fuel: limits.describe_fuel, memory };
    let asking = async {
        let begun = body.begin(Given::default(), budget).await;
        let mut begun = begun.map_err(|err| err.told().to_owned())?;
        let said = async {
            let instance = begun.instance().await?;
            let describe =
                instance.get_typed_func::<(), (GuestSpec,)>(&mut begun.store, describe)?;
            // Whoever exports another `call` learns it here, and not from a model's call.
            call_export(&instance, &mut begun.store, call)?;
            describe.call_async(&mut begun.store, ()).await
        };
        let said = said.await;
        said.map(|(said,)| said).map_err(|err| begun.fault(&err).told().to_owned())
    };
    match tokio::time::timeout(limits.describe_wall, asking).await {
        Ok(said) => said,
        Err(_) => {
            let ms = limits.describe_wall.as_millis();
            Err(format!("it took longer than the bound of {ms} ms"))
        }
    }
}
