//! A store in memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::{ArtifactError, ArtifactId, ArtifactPart};
use crate::sync::{Mutex, MutexGuard};

pub(super) struct Memory {
    bytes_max: u64,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    artifacts: HashMap<ArtifactId, Arc<Vec<u8>>>,
    bytes: u64,
}

impl Memory {
    pub(super) fn new(bytes_max: u64) -> Memory {
        Memory { bytes_max, shelf: Mutex::default() }
    }

    /// Keeps the bytes in the memory that they are in.
    pub(super) fn put(&self, id: ArtifactId, mut bytes: Vec<u8>) -> Result<(), ArtifactError> {
        // Memory that was reserved and never used would not count towards the limit.
        bytes.shrink_to_fit();
        let mut shelf = self.shelf();
        if shelf.artifacts.contains_key(&id) {
            return Ok(());
        }
        let after = shelf.bytes + bytes.len() as u64;
        if after > self.bytes_max {
            return Err(ArtifactError::Full { limit: self.bytes_max, unit: "bytes" });
        }
        shelf.bytes = after;
        shelf.artifacts.insert(id, Arc::new(bytes));
        Ok(())
    }

    pub(super) fn get(&self, id: ArtifactId) -> Result<Arc<Vec<u8>>, ArtifactError> {
        self.shelf().artifacts.get(&id).cloned().ok_or(ArtifactError::Unknown { id })
    }

    pub(super) fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        length: u64,
    ) -> Result<ArtifactPart, ArtifactError> {
        let whole = self.get(id)?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
        let bytes = whole[place(offset)..place(offset.saturating_add(length))].to_vec();
        Ok(ArtifactPart { bytes, total: whole.len() as u64 })
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Nothing that is done under the lock can panic half-way.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
