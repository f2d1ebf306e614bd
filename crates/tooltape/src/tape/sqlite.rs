//! A tape in one SQLite file, which any SQLite tool can open.

mod audit;
mod error;
mod front;
mod insert;
mod keep;
mod lock;
mod log;
mod open;
mod query;
mod read;
mod reserve;
mod schema;
mod wal;
mod writer;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

pub use audit::Audit;
use front::Front;
pub use front::{QUEUE_EVENTS_MAX, RUN_RECORDS_MAX, RUNS_HELD_MAX};
pub use keep::Erase;
pub use lock::DeadWriter;
pub use open::{BUSY_DEFAULT, Recovered, SqliteOptions};
pub use query::{NotAStatus, RUNS_MAX, RunStatus, RunSummary, RunsQuery};
pub use read::READERS_MAX;
use read::Readers;
pub use reserve::{RESERVE_BYTES_MIN, RESERVE_CALL_BYTES};
pub use wal::TornTail;
pub use writer::{CHECKPOINT_PAGES, COMMIT_EVENTS_MAX};
use writer::{Job, Writer};

use super::{Ack, Append, Head, InDoubt, Line, Record, Tape, TapeError};
use crate::canon::Hash;
use crate::grant::Clock;
use crate::id::RunId;
use crate::tool::BoxFuture;

/// A tape in one SQLite file, for many runs. Clones share it.
///
/// What it acknowledges is durable: it survives the end of the process and of the machine's power.
/// One thread writes, and takes all that waits into one commit. Several processes may have the
/// file open: each run has one writer at a time, and anybody may read.
///
/// An error of the disk poisons the handle: it takes nothing more, and the file can be opened
/// again. On a full disk nothing new starts, and the results of what has started still fit,
/// because room for them is kept in a file beside the tape.
///
/// SQLite syncs with `fsync`, unless `LIBSQLITE3_FLAGS=-DHAVE_FDATASYNC=1` is in the environment
/// that it is compiled in, as in Tooltape's own repository. Both are as durable; with `fdatasync`
/// a commit need not wait until the file system has written down when that was.
///
/// Dropping the last clone waits until all that was accepted is durable. All methods but those of
/// [`Tape`] wait for the disk on the thread that calls them.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Proposal, Run, RunsQuery, SqliteTape, Toolbox, builtin};
///
/// let tape = SqliteTape::open(folder.path().join("tape.db"))?;
/// let toolbox = Toolbox::new(builtin::tools()).unwrap();
/// let run = Run::new(&toolbox).tape(tape.clone());
/// run.batch(vec![Proposal::new("c1", "hash", r#"{"text":""}"#)]).await.unwrap();
/// let runs = tape.runs(&RunsQuery::all())?;
/// assert_eq!((runs[0].id, runs[0].calls), (run.id(), 1));
/// # Ok::<(), tooltape::TapeError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteTape(Arc<Handle>);

struct Handle {
    readers: Arc<Readers>,
    /// The one who writes, unless the tape may only be read.
    writing: Option<Writing>,
    recovered: Recovered,
    clock: Clock,
}

struct Writing {
    front: Arc<Front>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Where the writer is gone already, there is nothing to wait for.
        let _ = self.front.send(Job::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SqliteTape {
    /// Opens a tape, or makes one where there is no file.
    pub fn open(path: impl AsRef<Path>) -> Result<SqliteTape, TapeError> {
        SqliteTape::options().open(path)
    }

    /// Opens a tape to be read, perhaps while somebody writes to it.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<SqliteTape, TapeError> {
        SqliteTape::options().open_read_only(path)
    }

    /// How to open a tape.
    pub fn options() -> SqliteOptions {
        SqliteOptions::default()
    }

    /// What opening found.
    pub fn recovered(&self) -> &Recovered {
        &self.0.recovered
    }

    /// Lists runs, the newest first.
    pub fn runs(&self, query: &RunsQuery) -> Result<Vec<RunSummary>, TapeError> {
        let readers = &self.0.readers;
        self.flush();
        readers.with(|connection| query::runs(connection, &readers.path, query))
    }

    /// The runs whose id begins like this, the newest first, up to a hundred. `last` is the newest
    /// run of all.
    pub fn find(&self, text: &str) -> Result<Vec<RunId>, TapeError> {
        self.flush();
        self.0.readers.with(|connection| query::find(connection, text))
    }

    /// Reads up to `most` lines of a run from a sequence number on, and checks each against the
    /// one before it.
    pub fn lines(&self, run: RunId, from: u64, most: usize) -> Result<Vec<Line>, TapeError> {
        self.flush();
        self.0.readers.with(|connection| read::lines(connection, run, from, most))
    }

    /// The head of a run: of what it has, or had before it was erased.
    pub fn head(&self, run: RunId) -> Result<Head, TapeError> {
        self.flush();
        self.0.readers.with(|connection| match read::find(connection, run)? {
            Some((_, Some(head))) => Ok(head),
            Some((no, None)) => read::head(connection, no),
            None => Ok(Head::empty()),
        })
    }

    /// The calls of a run that started and did not settle, then those of the runs that its calls
    /// started, and so on.
    ///
    /// [`Run::resume`](crate::Run::resume) brings the calls of the run itself to their end. A
    /// nested run is not resumed: the call that started it is in doubt, and may have done these.
    pub fn in_doubt(&self, run: RunId) -> Result<Vec<InDoubt>, TapeError> {
        self.flush();
        self.0.readers.with(|connection| query::in_doubt(connection, run))
    }

    /// The artifacts that some run refers to.
    pub fn artifacts(&self) -> Result<BTreeSet<Hash>, TapeError> {
        self.flush();
        self.0.readers.with(query::artifacts)
    }

    /// Takes in lines of one or several runs, all or none, and says how many were new.
    ///
    /// The lines of a run follow one another. Those that are on the tape must be the same there,
    /// so that taking in a file twice, or page by page, is no error.
    pub fn import(&self, lines: Vec<Line>) -> Result<usize, TapeError> {
        self.ask(move |writer| writer.import(&lines))
    }

    /// Erases a run that nobody writes to, and says what its head was; nothing, if there is none.
    pub fn erase(&self, run: RunId, what: Erase) -> Result<Option<Head>, TapeError> {
        let at_us = self.0.clock.unix_us();
        self.ask(move |writer| writer.erase(run, what, at_us))
    }

    /// Waits until all that was accepted is durable, or will never be.
    fn flush(&self) {
        // A writer that is gone has nothing left to write.
        let _ = self.ask(|_| Ok(()));
    }

    /// Has the writer do something after all that was accepted before.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, TapeError> + Send + 'static,
    ) -> Result<T, TapeError> {
        let writing = self.0.writing.as_ref().ok_or(TapeError::ReadOnly)?;
        let (answer, answered) = mpsc::sync_channel(1);
        let work = move |writer: &mut Writer| {
            let done = if writer.is_poisoned { Err(front::gone()) } else { work(writer) };
            // Whoever asked may be gone.
            let _ = answer.send(done);
        };
        writing.front.send(Job::Work(Box::new(work)))?;
        answered.recv().unwrap_or_else(|_| Err(front::gone()))
    }
}

impl Tape for SqliteTape {
    fn append(&self, append: Append<'_>) -> Ack {
        match &self.0.writing {
            Some(writing) => writing.front.append(append),
            None => Ack::Now(Err(TapeError::ReadOnly)),
        }
    }

    fn read(
        &self,
        run: RunId,
        from: u64,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, TapeError>> {
        let tape = self.clone();
        let read = move || tape.lines(run, from, most)?.iter().map(Line::record).collect();
        Box::pin(async move {
            match tokio::task::spawn_blocking(read).await {
                Ok(records) => records,
                Err(err) => Err(TapeError::Io { why: err.to_string() }),
            }
        })
    }
}
