//! Compiled components on disk: used only where it is sure that we wrote them.

use std::hash::{Hash as _, Hasher};
use std::path::Path;

use wasmtime::Engine;

#[cfg(unix)]
mod folder;
#[cfg(unix)]
use folder::Folder;

/// What the name of an artifact is made of, beside all that decides its bytes.
const CONTEXT: &[u8] = b"tooltape-wasm artifact 1";
/// How each artifact begins, before its MAC.
const MAGIC: &[u8] = b"tooltape-wasm 1\n";
/// The bytes of a key, and of a MAC.
const KEY_BYTES: usize = blake3::KEY_LEN;

/// A folder of compiled components.
///
/// What lies there is machine code that will run in this process, so nobody is believed: the folder
/// must be ours alone, and each file carries a MAC over its name and its bytes, under a key that
/// only we can read. What does not pass is as if it were not there.
pub(crate) struct Cache {
    folder: Folder,
    key: [u8; KEY_BYTES],
}

/// What a compiled component is called: a component, compiled by an engine.
pub(crate) struct ArtifactName(blake3::Hash);

impl ArtifactName {
    pub(crate) fn new(component: &blake3::Hash, engine: &Engine) -> ArtifactName {
        let mut hashing = Hashing(blake3::Hasher::new());
        hashing.write(CONTEXT);
        hashing.write(component.as_bytes());
        // The version of the engine, and all of its configuration that decides the code.
        engine.precompile_compatibility_hash().hash(&mut hashing);
        ArtifactName(hashing.0.finalize())
    }

    fn file(&self) -> String {
        format!("{}.cwasm", self.0.to_hex())
    }
}

/// Hashes what can be hashed, with more than 64 bits to show for it.
struct Hashing(blake3::Hasher);

impl Hasher for Hashing {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

impl Cache {
    /// Opens a folder, or says why it is no place for a cache.
    pub(crate) fn open(path: &Path) -> Result<Cache, String> {
        let folder = Folder::open(path)?;
        let key = folder.key().map_err(|err| format!("there is no key in it: {err}"))?;
        Ok(Cache { folder, key })
    }

    /// The artifact of this name, of at most so many bytes, if it is there and we wrote it.
    pub(crate) fn get(&self, name: &ArtifactName, bytes_max: u64) -> Option<Vec<u8>> {
        let head = MAGIC.len() + KEY_BYTES;
        let mut bytes = self.folder.read(&name.file(), bytes_max.saturating_add(head as u64))?;
        let (mac, artifact) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<KEY_BYTES>()?;
        if self.mac(name, artifact) != blake3::Hash::from_bytes(*mac) {
            return None;
        }
        bytes.drain(..head);
        Some(bytes)
    }

    /// Keeps an artifact. Where that fails it is compiled again, and nothing else is lost.
    pub(crate) fn put(&self, name: &ArtifactName, artifact: &[u8]) {
        let mac = self.mac(name, artifact);
        let _ = self.folder.write(&name.file(), &[MAGIC, mac.as_bytes(), artifact]);
    }

    fn mac(&self, name: &ArtifactName, artifact: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name.0.as_bytes()).update(artifact).finalize()
    }
}

/// Elsewhere nobody can tell whose a file is.
#[cfg(not(unix))]
struct Folder;

#[cfg(not(unix))]
impl Folder {
    fn open(_: &Path) -> Result<Folder, String> {
        Err("this system has no owners and modes of files".to_owned())
    }

    fn key(&self) -> std::io::Result<[u8; KEY_BYTES]> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn read(&self, _: &str, _: u64) -> Option<Vec<u8>> {
        None
    }

    fn write(&self, _: &str, _: &[&[u8]]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
