//! The front door: loads components, from files or from bytes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use wasmtime::component;

use crate::body::{Shared, shown};
use crate::cache::{ArtifactName, Cache};
use crate::compile::Compiler;
use crate::component::{Component, Loaded};
use crate::error::WasmError;
use crate::limit::WasmLimits;

/// How all WASM begins.
const MAGIC: &[u8] = b"\0asm";
/// What follows in a core module, and in a component.
const CORE: &[u8] = &[1, 0, 0, 0];
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// Runs components as tools. Cheap to clone; all clones share one engine and its pool of memory.
#[derive(Clone)]
pub struct Wasm {
    shared: Arc<Shared>,
    compiler: Compiler,
    cache: Option<Arc<Cache>>,
}

impl Wasm {
    /// An engine within these limits, for components that this compiler compiles.
    pub fn new(compiler: Compiler, limits: WasmLimits) -> Result<Wasm, WasmError> {
        let shared = Shared::new(limits)
            .map_err(|err| WasmError::Engine { why: shown(&format!("{err:#}")) })?;
        Ok(Wasm { shared: Arc::new(shared), compiler, cache: None })
    }

    /// The same, which keeps what was compiled in a folder, made if it is not there.
    ///
    /// A folder that is a link, belongs to another user or is open to others is refused. What lies
    /// in it is believed only if it carries our MAC: everything else is compiled again.
    pub fn caching(mut self, folder: impl AsRef<Path>) -> Result<Wasm, WasmError> {
        let folder = folder.as_ref();
        let cache = Cache::open(folder)
            .map_err(|why| WasmError::Cache { folder: folder.to_owned(), why })?;
        self.cache = Some(Arc::new(cache));
        Ok(self)
    }

    /// The limits of its components.
    pub fn limits(&self) -> &WasmLimits {
        &self.shared.limits
    }

    /// Whether calls take their memory from a pool, which is faster. Where the address space for
    /// one cannot be had, each call maps its own.
    pub fn is_pooled(&self) -> bool {
        self.shared.pooled
    }

    /// Loads a component from a file.
    ///
    /// It is compiled unless it was before; its imports are held against what it declares, and it
    /// is asked to describe itself. Dropping the future leaves nothing behind.
    pub async fn load(&self, path: impl AsRef<Path>) -> Result<Component, WasmError> {
        let (name, bytes) = self.file(path.as_ref())?;
        self.read(&name, &bytes).await
    }

    /// Loads a component from a file, if it is the one of this [hash](Component::hash).
    ///
    /// Of any other nothing is compiled and nothing runs: the error is [`WasmError::Changed`].
    pub async fn load_known(
        &self,
        path: impl AsRef<Path>,
        hash: &str,
    ) -> Result<Component, WasmError> {
        let (name, bytes) = self.file(path.as_ref())?;
        let found = blake3::hash(&bytes).to_hex();
        if found.as_str() != hash {
            let (expected, hash) = (shown(hash), found.to_string());
            return Err(WasmError::Changed { name, hash, expected });
        }
        // The same bytes, whatever the file has become since.
        self.read(&name, &bytes).await
    }

    /// What messages call a file, and its bytes.
    fn file(&self, path: &Path) -> Result<(String, Vec<u8>), WasmError> {
        let name = path.display().to_string();
        let limit = self.shared.limits.component_bytes;
        match bytes_of(path, limit) {
            Ok(Some(bytes)) => Ok((name, bytes)),
            Ok(None) => Err(WasmError::TooLarge { name, limit }),
            Err(source) => Err(WasmError::Unreadable { name, source }),
        }
    }

    /// Loads a component from its bytes; `name` is what messages call it.
    pub async fn read(&self, name: &str, bytes: &[u8]) -> Result<Component, WasmError> {
        let limits = &self.shared.limits;
        check_kind(name, bytes, limits.component_bytes)?;
        let hash = blake3::hash(bytes);
        let artifact_name = ArtifactName::new(&hash, &self.shared.engine);
        let cache = self.cache.as_ref();
        let kept = cache.and_then(|cache| cache.get(&artifact_name, limits.artifact_bytes));
        let is_from_cache = kept.is_some();
        let artifact = match kept {
            Some(artifact) => artifact,
            None => self.compiler.compile(name, bytes, limits).await?,
        };
        let component = self.compiled(name, &artifact)?;
        if let (Some(cache), false) = (cache, is_from_cache) {
            cache.put(&artifact_name, &artifact);
        }
        let (hash, bytes) = (hash.to_hex().to_string(), bytes.len() as u64);
        let loaded = Loaded { name, hash, bytes, is_from_cache, component };
        Component::of(&self.shared, loaded).await
    }

    /// Takes over what was compiled.
    fn compiled(&self, name: &str, artifact: &[u8]) -> Result<component::Component, WasmError> {
        // SAFETY: the bytes are in our own memory, and were made there or in a process of our own
        // program by the engine's compiler, or carry a MAC under a key that only we can read.
        #[allow(unsafe_code, reason = "machine code is taken over, and only our own is")]
        let component = unsafe { component::Component::deserialize(&self.shared.engine, artifact) };
        component.map_err(|err| {
            let why = shown(&format!("{err:#}"));
            WasmError::Invalid { name: name.to_owned(), why }
        })
    }
}

/// The bytes of a file, unless they are more than so many.
fn bytes_of(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    // To open a pipe is to wait for whoever writes to it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Checks by its first bytes that something is a component.
fn check_kind(name: &str, bytes: &[u8], limit: u64) -> Result<(), WasmError> {
    let name = || name.to_owned();
    if bytes.len() as u64 > limit {
        return Err(WasmError::TooLarge { name: name(), limit });
    }
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(WasmError::NotWasm { name: name() });
    };
    match rest {
        rest if rest.starts_with(COMPONENT) => Ok(()),
        rest if rest.starts_with(CORE) => Err(WasmError::CoreModule { name: name() }),
        _ => Err(WasmError::NotWasm { name: name() }),
    }
}
