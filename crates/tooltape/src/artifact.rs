//! Artifacts: bytes that are too many to show, kept under the hash of what they are.

mod directory;
mod memory;
mod page;
#[cfg(feature = "object-store")]
mod shared;

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use directory::Directory;
use memory::Memory;
pub(crate) use page::{Page, Veil};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
#[cfg(feature = "object-store")]
use shared::Shared;

use crate::canon::{Domain, Hash};
use crate::grant::{CallContext, Grant, Provenance};
use crate::label::{Label, Labels};
use crate::sync::Mutex;

/// The most bytes of one artifact.
pub const ARTIFACT_BYTES_MAX: u64 = 256 << 20;
/// The most bytes that a store in memory keeps.
pub const ARTIFACT_MEMORY_BYTES_MAX: u64 = 256 << 20;
/// The most bytes that a store in a directory keeps.
pub const ARTIFACT_STORE_BYTES_MAX: u64 = 16 << 30;
/// The most artifacts that one run and its children know.
pub const ARTIFACTS_MAX: usize = 65_536;
/// The most bytes that one read returns.
pub const ARTIFACT_READ_BYTES_MAX: u64 = 1 << 20;

/// The most bytes that are hashed or copied on the thread that asked.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// The handle of an artifact: `artifact:` and the hash of its bytes.
///
/// ```
/// use tooltape::{ArtifactId, Domain, Hash};
///
/// let id = ArtifactId(Hash::of(Domain::Content, b"hello"));
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert!("artifact:../../etc/passwd".parse::<ArtifactId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactId(pub Hash);

impl ArtifactId {
    /// What every handle begins with.
    const SCHEME: &str = "artifact:";
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::SCHEME, self.0)
    }
}

impl fmt::Debug for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// A text is not the handle of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an artifact, expected `artifact:` and 64 lower-case hexadecimal digits")]
pub struct NotAnArtifact;

impl FromStr for ArtifactId {
    type Err = NotAnArtifact;

    fn from_str(text: &str) -> Result<ArtifactId, NotAnArtifact> {
        let hash = text.strip_prefix(Self::SCHEME).ok_or(NotAnArtifact)?;
        hash.parse().map(ArtifactId).map_err(|_| NotAnArtifact)
    }
}

impl<'de> Deserialize<'de> for ArtifactId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ArtifactId, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for ArtifactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Bytes that were put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its handle.
    pub id: ArtifactId,
    /// How many bytes it has.
    pub bytes: u64,
}

/// A part of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactPart {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many bytes the whole artifact has.
    pub total: u64,
}

/// Where artifacts are kept. Clones share it.
///
/// The host's own sees everything that the store holds. A run and its children see only what one
/// of them put there: a handle that was learnt elsewhere opens nothing. What they put there is
/// kept without the secrets of the run.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let artifacts = tooltape::Artifacts::memory();
/// let artifact = artifacts.put("a long story").await?;
/// assert_eq!(artifacts.read(artifact.id, 2, 4).await?.bytes, b"long");
/// # Ok::<(), tooltape::ArtifactError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<Store>,
    /// What one run and its children put here, or were shown; for the host there is no such list.
    known: Option<Arc<Mutex<HashSet<ArtifactId>>>>,
    /// What no page may show to a model of this run.
    veil: Option<Arc<dyn Veil>>,
    labels: Labels,
    /// What the call has seen that holds this, where one does.
    provenance: Provenance,
}

enum Store {
    Memory(Memory),
    Directory(Directory),
    #[cfg(feature = "object-store")]
    Shared(Shared),
}

impl Grant for Artifacts {
    fn for_call(self, context: &CallContext) -> Artifacts {
        Artifacts { provenance: context.provenance(), ..self }
    }
}

impl Artifacts {
    /// Artifacts in memory, up to [`ARTIFACT_MEMORY_BYTES_MAX`] of them together.
    pub fn memory() -> Artifacts {
        Artifacts::over(Store::Memory(Memory::new(ARTIFACT_MEMORY_BYTES_MAX)))
    }

    /// Artifacts in memory, up to so many bytes of them together.
    pub fn memory_of(bytes_max: u64) -> Artifacts {
        Artifacts::over(Store::Memory(Memory::new(bytes_max)))
    }

    /// Artifacts as files of a directory, which is made if it is not there.
    ///
    /// A file is named for its hash, whole or not there at all, durable once it is reported, only
    /// its owner's to read, and checked against its name whenever it is read. Links are not
    /// followed. Several stores, and several processes, may share a directory. Up to
    /// [`ARTIFACT_STORE_BYTES_MAX`] of them are kept together.
    pub fn in_dir(path: impl AsRef<Path>) -> Result<Artifacts, ArtifactError> {
        Artifacts::in_dir_of(path, ARTIFACT_STORE_BYTES_MAX)
    }

    /// Artifacts as files of a directory, up to so many bytes of them together.
    ///
    /// What is there already counts, and files that somebody removes make room. What others put
    /// there meanwhile is noticed once the room is used up.
    pub fn in_dir_of(path: impl AsRef<Path>, bytes_max: u64) -> Result<Artifacts, ArtifactError> {
        Ok(Artifacts::over(Store::Directory(Directory::open(path.as_ref(), bytes_max)?)))
    }

    /// Artifacts in an object store that many machines share, by its address: `file:///…` and
    /// `memory:///` always, and `s3://…` and others where the features of the crate
    /// `object_store` for them are enabled. Settings are that crate's, such as `aws_region`.
    ///
    /// An object is named for its hash and checked against its name whenever it is read.
    #[cfg(feature = "object-store")]
    #[cfg_attr(docsrs, doc(cfg(feature = "object-store")))]
    pub fn at_url(
        url: &str,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Artifacts, ArtifactError> {
        Ok(Artifacts::over(Store::Shared(Shared::open(url, settings)?)))
    }

    /// What nobody refers to and was last put before this moment: what may be thrown away.
    ///
    /// The moment leaves alone what was just put, and is about to be referred to. What is only in
    /// memory goes with its last clone.
    pub fn unreferred(
        &self,
        referred: &BTreeSet<Hash>,
        before: SystemTime,
    ) -> Result<Vec<Artifact>, ArtifactError> {
        let mut old = match &*self.store {
            Store::Memory(_) => Vec::new(),
            Store::Directory(directory) => directory.older(before)?,
            #[cfg(feature = "object-store")]
            Store::Shared(shared) => shared.older(before)?,
        };
        old.retain(|artifact| !referred.contains(&artifact.id.0));
        old.sort_by_key(|artifact| artifact.id);
        Ok(old)
    }

    /// Throws away what nobody refers to and was last put before this moment, and says what that
    /// was. `referred` must be everything that any tape refers to.
    pub fn sweep(
        &self,
        referred: &BTreeSet<Hash>,
        before: SystemTime,
    ) -> Result<Vec<Artifact>, ArtifactError> {
        // Nobody puts anything there meanwhile.
        let _alone = match &*self.store {
            Store::Directory(directory) => Some(directory.alone()?),
            Store::Memory(_) => None,
            #[cfg(feature = "object-store")]
            Store::Shared(_) => None,
        };
        let swept = self.unreferred(referred, before)?;
        for artifact in &swept {
            match &*self.store {
                Store::Memory(_) => {}
                Store::Directory(directory) => directory.remove(artifact.id)?,
                #[cfg(feature = "object-store")]
                Store::Shared(shared) => shared.remove(artifact.id)?,
            }
        }
        Ok(swept)
    }

    fn over(store: Store) -> Artifacts {
        let labels = match &store {
            Store::Directory(directory) => Labels::in_dir(directory.labels()),
            Store::Memory(_) => Labels::memory(),
            #[cfg(feature = "object-store")]
            Store::Shared(_) => Labels::memory(),
        };
        let (store, provenance) = (Arc::new(store), Provenance::detached());
        Artifacts { store, known: None, veil: None, labels, provenance }
    }

    /// The same store, as a run sees it; a child run sees what its parent does.
    pub(crate) fn for_run(&self) -> Artifacts {
        let known = self.known.clone().unwrap_or_default();
        Artifacts { known: Some(known), ..self.clone() }
    }

    /// The same store, whose pages show a model nothing of this.
    pub(crate) fn behind(self, veil: Arc<dyn Veil>) -> Artifacts {
        Artifacts { veil: Some(veil), ..self }
    }

    /// Lets a run see an artifact that it did not make, such as one that the user attached.
    pub fn admit(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        let Some(known) = &self.known else { return Ok(()) };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ARTIFACTS_MAX && !known.contains(&id) {
            return Err(ArtifactError::Full { limit: ARTIFACTS_MAX as u64, unit: "artifacts" });
        }
        known.insert(id);
        Ok(())
    }

    /// Keeps bytes. The same bytes are kept once.
    pub async fn put(&self, bytes: impl Into<Vec<u8>>) -> Result<Artifact, ArtifactError> {
        let bytes = bytes.into();
        if self.is_quick(bytes.len()) {
            return self.put_blocking(bytes);
        }
        let artifacts = self.clone();
        elsewhere(move || artifacts.put_blocking(bytes)).await
    }

    /// An artifact's bytes, all of them.
    pub async fn get(&self, id: ArtifactId) -> Result<Arc<Vec<u8>>, ArtifactError> {
        if self.is_quick(0) {
            return self.get_blocking(id);
        }
        let artifacts = self.clone();
        elsewhere(move || artifacts.get_blocking(id)).await
    }

    /// Up to `length` of an artifact's bytes, from `offset` on: fewer where it ends before, and
    /// never more than [`ARTIFACT_READ_BYTES_MAX`].
    pub async fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        length: u64,
    ) -> Result<ArtifactPart, ArtifactError> {
        if self.is_quick(0) {
            return self.read_blocking(id, offset, length);
        }
        let artifacts = self.clone();
        elsewhere(move || artifacts.read_blocking(id, offset, length)).await
    }

    /// The label of an artifact: whatever was seen by those who put it there.
    pub fn label(&self, id: ArtifactId) -> Label {
        self.labels.of(&id.to_string())
    }

    /// [`put`](Artifacts::put), for a thread that may wait.
    pub fn put_blocking(&self, bytes: impl Into<Vec<u8>>) -> Result<Artifact, ArtifactError> {
        self.put_labelled(bytes, Some(&self.provenance.label()))
    }

    /// Keeps bytes that have this label.
    pub(crate) fn put_labelled(
        &self,
        bytes: impl Into<Vec<u8>>,
        label: Option<&Label>,
    ) -> Result<Artifact, ArtifactError> {
        let mut bytes = bytes.into();
        if let Some(veil) = &self.veil {
            bytes = veil.over(bytes);
        }
        let len = bytes.len() as u64;
        if len > ARTIFACT_BYTES_MAX {
            return Err(ArtifactError::TooLarge { bytes: len, limit: ARTIFACT_BYTES_MAX });
        }
        let id = ArtifactId(Hash::of(Domain::Content, &bytes));
        if let Some(label) = label {
            self.labels.add(&id.to_string(), label)?;
        }
        match &*self.store {
            Store::Memory(memory) => memory.put(id, bytes)?,
            Store::Directory(directory) => directory.put(id, &bytes)?,
            #[cfg(feature = "object-store")]
            Store::Shared(shared) => shared.put(id, &bytes)?,
        }
        self.admit(id)?;
        Ok(Artifact { id, bytes: len })
    }

    /// [`get`](Artifacts::get), for a thread that may wait.
    pub fn get_blocking(&self, id: ArtifactId) -> Result<Arc<Vec<u8>>, ArtifactError> {
        self.check(id)?;
        match &*self.store {
            Store::Memory(memory) => memory.get(id),
            Store::Directory(directory) => Ok(Arc::new(directory.get(id)?)),
            #[cfg(feature = "object-store")]
            Store::Shared(shared) => Ok(Arc::new(shared.get(id)?)),
        }
    }

    /// [`read`](Artifacts::read), for a thread that may wait.
    pub fn read_blocking(
        &self,
        id: ArtifactId,
        offset: u64,
        length: u64,
    ) -> Result<ArtifactPart, ArtifactError> {
        self.check(id)?;
        let length = length.min(ARTIFACT_READ_BYTES_MAX);
        match &*self.store {
            Store::Memory(memory) => memory.read(id, offset, length),
            Store::Directory(directory) => directory.read(id, offset, length),
            #[cfg(feature = "object-store")]
            Store::Shared(shared) => {
                let whole = shared.get(id)?;
                let part = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
                let bytes = whole[part(offset)..part(offset.saturating_add(length))].to_vec();
                Ok(ArtifactPart { bytes, total: whole.len() as u64 })
            }
        }
    }

    /// What a run was not shown does not exist for it, whether or not the store holds it.
    fn check(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        if !self.knows(id) {
            return Err(ArtifactError::Unknown { id });
        }
        self.provenance.saw(&self.label(id));
        Ok(())
    }

    /// Whether the run was shown it. The host needs no showing.
    pub(crate) fn knows(&self, id: ArtifactId) -> bool {
        let known = self.known.as_ref();
        known.is_none_or(|it| it.lock().unwrap_or_else(PoisonError::into_inner).contains(&id))
    }

    /// Whether no file is ever touched.
    pub(crate) fn is_memory(&self) -> bool {
        match &*self.store {
            Store::Memory(_) => true,
            Store::Directory(_) => false,
            #[cfg(feature = "object-store")]
            Store::Shared(_) => false,
        }
    }

    /// Whether work on so many bytes may hold up the thread that asked.
    fn is_quick(&self, bytes: usize) -> bool {
        self.is_memory() && bytes <= INLINE_BYTES_MAX
    }
}

// A store's contents are nobody's business.
impl fmt::Debug for Artifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.store {
            Store::Memory(_) => "Artifacts(in memory)",
            Store::Directory(_) => "Artifacts(in a directory)",
            #[cfg(feature = "object-store")]
            Store::Shared(_) => "Artifacts(shared)",
        })
    }
}

/// Runs what would hold up other tasks on a thread for it. Dropping the future lets it finish.
async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, ArtifactError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|err| Err(ArtifactError::Io(io::Error::other(err))))
}

/// Why an artifact could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// There is none, or none that this run may see.
    #[error("there is no `{id}` in this run")]
    Unknown {
        /// The handle.
        id: ArtifactId,
    },
    /// It has too many bytes.
    #[error("an artifact of {bytes} bytes is too large, expected at most {limit}")]
    TooLarge {
        /// How many it has.
        bytes: u64,
        /// How many it may have.
        limit: u64,
    },
    /// The store, or the run, has as many as it may.
    #[error("no more artifacts are kept: the limit is {limit} {unit}")]
    Full {
        /// How many there may be.
        limit: u64,
        /// Of what.
        unit: &'static str,
    },
    /// What is kept is not what was put there.
    #[error("`{id}` is corrupt: {why}")]
    Corrupt {
        /// The handle.
        id: ArtifactId,
        /// What was found.
        why: String,
    },
    /// The file system failed.
    #[error("the artifact store failed: {0}")]
    Io(#[from] io::Error),
}
