//! Stores: named values that outlive a call, read and written on tape.

mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use memory::Memory;
use serde::Serialize;
use serde::de::DeserializeOwned;
#[cfg(feature = "sqlite")]
use sqlite::Sqlite;

use super::{CallContext, Grant, Note, Noted};
use crate::canon::Canon;
use crate::fault::ToolError;
use crate::id::{Name, RunId};
use crate::label::{self, Label, Labels};
use crate::sync::Mutex;

/// The longest key of a store, in bytes.
pub const STORE_KEY_BYTES_MAX: usize = 1_024;
/// The longest value of a store, in bytes of canonical JSON: it goes on the tape whole.
pub const STORE_VALUE_BYTES_MAX: usize = 1 << 20;
/// The most values that a store in memory keeps.
pub const STORE_VALUES_MAX: usize = 100_000;

/// Named values that tools keep from one call to the next.
///
/// Each run has values of its own, or each thread has. Every read and every write is on the tape,
/// with what was found or written. A tool that takes a store is not pure, so a replay serves its
/// calls from the tape. A tool that only reads may not change one.
///
/// A write to a file happens once the tape has it for sure. A crash in between leaves it noted and
/// not done, and whoever resumes the run does it then; what the tape does not have is not done.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let notes = tooltape::Store::memory().named("notes")?;
/// notes.set("colour", &"blue").await?;
/// assert_eq!(notes.get::<String>("colour").await?.as_deref(), Some("blue"));
/// assert_eq!(notes.get::<String>("shape").await?, None);
/// # Ok::<(), tooltape::ToolError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Store {
    backend: Arc<Backend>,
    scope: Scope,
    context: Option<CallContext>,
    labels: Labels,
    /// Held while a value and its label are read or written: they belong together.
    order: Arc<Mutex<()>>,
}

enum Backend {
    Memory(Memory),
    #[cfg(feature = "sqlite")]
    Sqlite(Sqlite),
}

/// What a place has, if it has anything, and its label where that says anything.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Option<Canon>,
    pub(crate) label: Option<Arc<Label>>,
}

/// Who shares values.
#[derive(Clone, Copy)]
enum Scope {
    Run,
    Thread,
}

/// Where a value is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    scope: String,
    store: Name,
    key: String,
}

impl Place {
    /// The place in a word, by which its label is kept. No name holds what parts the words.
    fn text(&self) -> String {
        format!("{}\0{}\0{}", self.scope, self.store, self.key)
    }
}

impl Store {
    /// Values in memory, as long as the last clone lives; each run has its own.
    pub fn memory() -> Store {
        Store::over(Backend::Memory(Memory::default()), Labels::memory())
    }

    /// Values in an SQLite file, which is made if it is not there. A value that was set is durable.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Store, ToolError> {
        let path = path.as_ref();
        let mut labels = path.as_os_str().to_owned();
        labels.push("-labels");
        Ok(Store::over(Backend::Sqlite(Sqlite::open(path)?), Labels::in_dir(labels)))
    }

    fn over(backend: Backend, labels: Labels) -> Store {
        let (backend, order) = (Arc::new(backend), Arc::default());
        Store { backend, scope: Scope::Run, context: None, labels, order }
    }

    /// The same values, where each thread has its own, whatever run reads them.
    #[must_use]
    pub fn by_thread(mut self) -> Store {
        self.scope = Scope::Thread;
        self
    }

    /// The store of this name.
    pub fn named(&self, name: &str) -> Result<NamedStore, ToolError> {
        let info = self.context.as_ref().map(|context| &context.info);
        let scope = match (self.scope, info) {
            (_, None) => "nobody".to_owned(),
            (Scope::Run, Some(info)) => {
                info.run().map_or_else(|| "nobody".to_owned(), |run| format!("run {run}"))
            }
            (Scope::Thread, Some(info)) => match info.thread() {
                Some(thread) => format!("thread {thread}"),
                None => {
                    let why = "the store belongs to threads, and this run has none";
                    return Err(ToolError::not_done(why).code("store.no_thread"));
                }
            },
        };
        Ok(NamedStore { store: self.clone(), scope, name: Name::new(name)? })
    }
}

impl Store {
    /// Takes over what the calls of a run wrote before it was resumed, and how often they did.
    #[cfg_attr(not(feature = "sqlite"), allow(unused_variables, reason = "only a file counts"))]
    pub(crate) fn restore(
        &self,
        run: RunId,
        stored: &BTreeMap<(Name, String), Stored>,
        writes: u64,
    ) -> Result<(), ToolError> {
        let place = |(store, key): &(Name, String)| {
            let (store, key) = (store.clone(), key.clone());
            Place { scope: format!("run {run}"), store, key }
        };
        // What a thread has, other runs may have changed since.
        let own = stored.iter().filter(|_| matches!(self.scope, Scope::Run));
        let own = own.map(|(at, last)| (place(at), last));
        for (at, last) in own.clone() {
            self.label(&at, label::said(last.label.as_ref()))?;
        }
        let own = own.filter_map(|(at, last)| Some((at, last.value.as_ref()?)));
        match &*self.backend {
            Backend::Memory(memory) => own.for_each(|(at, value)| memory.restore(at, value)),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.restore(run, own, writes)?,
        }
        Ok(())
    }

    /// Adds to what a place is labelled, before what has this label is written there.
    fn label(&self, at: &Place, label: &Label) -> Result<(), ToolError> {
        self.labels.add(&at.text(), label).map_err(|err| {
            let why = format!("the store was not changed: its label cannot be kept: {err}");
            ToolError::not_done(why).code("store.label")
        })
    }
}

impl Grant for Store {
    fn for_call(mut self, context: &CallContext) -> Store {
        self.context = Some(context.clone());
        self
    }
}

/// One store of a run or a thread, by its name.
#[derive(Clone)]
pub struct NamedStore {
    store: Store,
    scope: String,
    name: Name,
}

impl NamedStore {
    /// What a key has, if it has anything.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ToolError> {
        let (at, context) = (self.place(key)?, self.store.context.clone());
        let store = self.store.clone();
        let found = self.work(move |backend| {
            let _order = store.order.lock().unwrap_or_else(PoisonError::into_inner);
            let label = store.labels.of(&at.text());
            if let Some(context) = &context {
                context.provenance().saw(&label);
            }
            let noted = |value: &Option<Canon>| {
                let stored = Stored { value: value.clone(), label: label.kept() };
                note(context.as_ref(), &at, false, stored).map(drop)
            };
            backend.get(&at, noted)
        });
        Ok(found.await?.map(|value| value.parse()).transpose()?)
    }

    /// Gives a key another value.
    pub async fn set(&self, key: &str, value: &impl Serialize) -> Result<(), ToolError> {
        let value = Canon::of(value)?;
        let bytes = value.as_str().len();
        if bytes > STORE_VALUE_BYTES_MAX {
            let why =
                format!("`{key}` has {bytes} bytes, expected at most {STORE_VALUE_BYTES_MAX}");
            return Err(ToolError::not_done(why).code("store.value"));
        }
        self.put(key, Some(value)).await
    }

    /// Takes a key's value away.
    pub async fn remove(&self, key: &str) -> Result<(), ToolError> {
        self.put(key, None).await
    }

    async fn put(&self, key: &str, value: Option<Canon>) -> Result<(), ToolError> {
        let (at, context) = (self.place(key)?, self.store.context.clone());
        if context.as_ref().is_some_and(|context| !context.is_write) {
            let why = "the store was not changed: the tool says that it only reads";
            return Err(ToolError::not_done(why).code("store.read_only"));
        }
        // A store keeps what it is given, and is no place for a secret.
        let minds = |text: &str| context.as_ref().is_some_and(|context| context.minds(text));
        if minds(key) || value.as_ref().is_some_and(|value| minds(value.as_str())) {
            let why = "the store was not changed: no secret is kept in one";
            return Err(ToolError::not_done(why).code("store.secret"));
        }
        let run = context.as_ref().and_then(|context| context.info.run());
        let label = context.as_ref().map(|context| context.provenance().label());
        let (label, store) = (label.unwrap_or_default(), self.store.clone());
        self.work(move |backend| {
            let _order = store.order.lock().unwrap_or_else(PoisonError::into_inner);
            store.label(&at, &label)?;
            let noted = || {
                let stored = Stored { value: value.clone(), label: label.clone().kept() };
                note(context.as_ref(), &at, true, stored)
            };
            backend.put(&at, value.as_ref(), run, noted)?;
            // A label that says too much is no failure.
            let _ = store.labels.set(&at.text(), &label);
            Ok(())
        })
        .await
    }

    fn place(&self, key: &str) -> Result<Place, ToolError> {
        if key.len() > STORE_KEY_BYTES_MAX {
            let found = format!("the key has {} bytes", key.len());
            let why = format!("{found}, expected at most {STORE_KEY_BYTES_MAX}");
            return Err(ToolError::not_done(why).code("store.key"));
        }
        Ok(Place { scope: self.scope.clone(), store: self.name.clone(), key: key.to_owned() })
    }

    /// Does what may touch a file on a thread that may wait.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Backend) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let backend = self.store.backend.clone();
        match &*backend {
            Backend::Memory(_) => work(&backend),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(_) => tokio::task::spawn_blocking(move || work(&backend)).await?,
        }
    }
}

impl Backend {
    /// What is there. It is noted before anybody can change it.
    fn get(
        &self,
        at: &Place,
        noted: impl FnOnce(&Option<Canon>) -> Result<(), ToolError>,
    ) -> Result<Option<Canon>, ToolError> {
        match self {
            Backend::Memory(memory) => memory.get(at, noted),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.get(at, noted),
        }
    }

    /// Puts a value there, or none, once that was noted.
    #[cfg_attr(not(feature = "sqlite"), allow(unused_variables, reason = "only a file counts"))]
    fn put(
        &self,
        at: &Place,
        value: Option<&Canon>,
        run: Option<RunId>,
        noted: impl FnOnce() -> Result<Noted, ToolError>,
    ) -> Result<(), ToolError> {
        match self {
            // It ends with the process, as does what the tape took and did not keep.
            Backend::Memory(memory) => memory.put(at, value, || noted().map(drop)),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => match run {
                Some(run) => sqlite.put(at, value, run, noted),
                None => sqlite.put_alone(at, value),
            },
        }
    }
}

fn note(
    context: Option<&CallContext>,
    at: &Place,
    wrote: bool,
    stored: Stored,
) -> Result<Noted, ToolError> {
    let Some(context) = context else { return Ok(Noted::Durable) };
    let note = Note::Stored { store: at.store.clone(), key: at.key.clone(), wrote, stored };
    let unnoted = |why| ToolError::tell(format!("the store could not be recorded: {why}"));
    context.note(note).map_err(unnoted)
}
