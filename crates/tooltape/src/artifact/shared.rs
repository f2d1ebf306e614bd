//! A store that many machines share: any object store, such as a bucket.

use std::sync::PoisonError;
use std::thread;
use std::time::SystemTime;

use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use tokio::runtime::{Builder, Runtime};

use super::{ARTIFACT_BYTES_MAX, Artifact, ArtifactError, ArtifactId};
use crate::canon::{Domain, Hash};
use crate::sync::Mutex;

pub(super) struct Shared {
    store: Box<dyn ObjectStore>,
    root: Path,
    /// Drives the store's I/O, which is nobody else's.
    runtime: Mutex<Option<Runtime>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // It may be dropped by a task, which must not wait for it.
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        runtime.into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Shared {
    pub(super) fn open(
        url: &str,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Shared, ArtifactError> {
        let refused = |why: String| ArtifactError::Io(std::io::Error::other(why));
        let url = url.try_into().map_err(|err| refused(format!("`{url}`: {err}")))?;
        let (store, root) = object_store::parse_url_opts(&url, settings).map_err(unreachable)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Shared { store, root, runtime: Mutex::new(Some(runtime)) })
    }

    pub(super) fn put(&self, id: ArtifactId, bytes: &[u8]) -> Result<(), ArtifactError> {
        // One object is whole or not there, and the same bytes again make it young again.
        let (path, payload) = (self.path(id), PutPayload::from(bytes.to_vec()));
        self.wait(self.store.put(&path, payload)).map(drop).map_err(unreachable)
    }

    pub(super) fn get(&self, id: ArtifactId) -> Result<Vec<u8>, ArtifactError> {
        let path = self.path(id);
        let found = self.wait(async {
            let found = self.store.get(&path).await?;
            let size = found.meta.size;
            if size > ARTIFACT_BYTES_MAX {
                return Ok(Err(size));
            }
            found.bytes().await.map(|bytes| Ok(bytes.to_vec()))
        });
        let bytes = match found {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => return Err(corrupt(id, "it has more bytes than any artifact")),
            Err(object_store::Error::NotFound { .. }) => {
                return Err(ArtifactError::Unknown { id });
            }
            Err(err) => return Err(unreachable(err)),
        };
        match ArtifactId(Hash::of(Domain::Content, &bytes)) == id {
            true => Ok(bytes),
            false => Err(corrupt(id, "its bytes have another hash")),
        }
    }

    /// Every artifact that was last put before this moment.
    pub(super) fn older(&self, before: SystemTime) -> Result<Vec<Artifact>, ArtifactError> {
        let listed: Result<Vec<_>, _> =
            self.wait(self.store.list(Some(&self.root)).try_collect::<Vec<_>>());
        let listed = listed.map_err(unreachable)?.into_iter();
        let old = listed.filter(|object| SystemTime::from(object.last_modified) < before);
        let artifact = |object: object_store::ObjectMeta| {
            let id = object.location.filename()?.parse().ok().map(ArtifactId)?;
            Some(Artifact { id, bytes: object.size })
        };
        Ok(old.filter_map(artifact).collect())
    }

    pub(super) fn remove(&self, id: ArtifactId) -> Result<(), ArtifactError> {
        let path = self.path(id);
        self.wait(self.store.delete(&path)).map_err(unreachable)
    }

    fn path(&self, id: ArtifactId) -> Path {
        let name = id.0.to_string();
        self.root.clone().join(&name[..2]).join(name.as_str())
    }

    /// Waits on a thread of its own, since the caller's may be driving other tasks.
    fn wait<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        let waiting = || {
            let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
            runtime.as_ref().expect("it is there until the store is gone").block_on(work)
        };
        thread::scope(|scope| scope.spawn(waiting).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn unreachable(err: object_store::Error) -> ArtifactError {
    ArtifactError::Io(std::io::Error::other(err))
}

fn corrupt(id: ArtifactId, why: &str) -> ArtifactError {
    ArtifactError::Corrupt { id, why: why.to_owned() }
}
