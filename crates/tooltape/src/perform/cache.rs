//! A layer that answers from earlier results.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use super::{Attempt, Layer, Next};
use crate::call::Call;
use crate::canon::Hash;
use crate::fault::ToolError;
use crate::grant::Grants;
use crate::id::ToolId;
use crate::spec::{Access, Determinism};
use crate::sync::{Mutex, MutexGuard};
use crate::tool::{Block, BoxFuture, Output, Source};

/// The results that a cache keeps, unless it is told otherwise.
pub const CACHE_ENTRIES_DEFAULT: usize = 1_024;
/// The bytes of results that a cache keeps, unless it is told otherwise.
pub const CACHE_BYTES_DEFAULT: usize = 16 << 20;

/// Answers calls of pure, deterministic tools from earlier results.
///
/// All other tools pass it by. A result is found by the tool's name and version, the hash of its
/// definition and the hash of the arguments; failures are not kept. What was used least recently
/// goes first. Shared in an `Arc`, it holds for several runs together. Calls that run at the same
/// time do not wait for one another.
pub struct Cache {
    entries_max: usize,
    bytes_max: usize,
    shelf: Mutex<Shelf>,
}

impl Default for Cache {
    fn default() -> Cache {
        let shelf = Mutex::default();
        Cache { entries_max: CACHE_ENTRIES_DEFAULT, bytes_max: CACHE_BYTES_DEFAULT, shelf }
    }
}

impl Cache {
    /// Keeps at most this many results.
    #[must_use]
    pub fn entries(mut self, most: usize) -> Cache {
        self.entries_max = most;
        self
    }

    /// Keeps at most this many bytes of results. One that is larger alone is not kept.
    #[must_use]
    pub fn bytes(mut self, most: usize) -> Cache {
        self.bytes_max = most;
        self
    }

    fn keep(&self, key: Key, output: Output) {
        let bytes = weight(&output);
        if bytes > self.bytes_max {
            return;
        }
        let mut shelf = self.shelf();
        shelf.remove(&key);
        shelf.insert(key, output, bytes);
        while shelf.kept.len() > self.entries_max || shelf.bytes > self.bytes_max {
            let Some((_, oldest)) = shelf.used.first_key_value() else { break };
            let oldest = oldest.clone();
            shelf.remove(&oldest);
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for Cache {
    fn around<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants<'a>,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let effects = &attempt.call().spec().effects;
        let provable =
            effects.access == Access::Pure && effects.determinism == Determinism::Deterministic;
        if !provable {
            return next.perform(attempt, grants);
        }
        let key = Key::of(attempt.call());
        Box::pin(async move {
            if let Some(output) = self.shelf().find(&key) {
                return Ok(output.from_source(Source::Cache));
            }
            let output = next.perform(attempt, grants).await?;
            self.keep(key, output.clone());
            Ok(output)
        })
    }
}

/// What a result of a pure, deterministic tool depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tool: ToolId,
    definition: Hash,
    args: Hash,
}

impl Key {
    fn of(call: &Call) -> Key {
        Key { tool: call.tool().clone(), definition: call.definition(), args: call.args_hash() }
    }
}

/// The results, and the order in which they were used.
#[derive(Default)]
struct Shelf {
    kept: HashMap<Key, Kept>,
    used: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
}

struct Kept {
    output: Output,
    bytes: usize,
    use_no: u64,
}

impl Shelf {
    fn find(&mut self, key: &Key) -> Option<Output> {
        let kept = self.kept.get_mut(key)?;
        self.uses += 1;
        let before = std::mem::replace(&mut kept.use_no, self.uses);
        let key = self.used.remove(&before).expect("what is kept has its place in the order");
        self.used.insert(self.uses, key);
        Some(kept.output.clone())
    }

    fn insert(&mut self, key: Key, output: Output, bytes: usize) {
        self.uses += 1;
        self.bytes += bytes;
        self.used.insert(self.uses, key.clone());
        self.kept.insert(key, Kept { output, bytes, use_no: self.uses });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(kept) = self.kept.remove(key) {
            self.used.remove(&kept.use_no);
            self.bytes -= kept.bytes;
        }
    }
}

/// About how many bytes of memory a result takes.
fn weight(output: &Output) -> usize {
    let blocks = output.content.iter().map(|block| match block {
        Block::Text { text } => text.len(),
        Block::Json { value } => value.as_bytes().len(),
        Block::Image { media_type, data } => media_type.len() + data.len(),
        Block::ResourceLink { uri, title, media_type } => {
            uri.len()
                + title.as_ref().map_or(0, String::len)
                + media_type.as_ref().map_or(0, String::len)
        }
        Block::LeftOut { .. } => 0,
    });
    let values = [&output.details, &output.metadata].into_iter().flatten();
    let values = values.map(|value| value.to_string().len());
    let value = output.value.as_ref().map_or(0, |value| value.as_bytes().len());
    size_of::<Kept>() + size_of::<Key>() + value + blocks.chain(values).sum::<usize>()
}
