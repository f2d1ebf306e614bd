//! Values in an SQLite file.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use tokio::runtime::Handle;

use super::{Noted, Place};
use crate::canon::{Canon, Doc, Limits};
use crate::fault::ToolError;
use crate::id::RunId;
use crate::sync::{Mutex, MutexGuard};

/// How long a store waits for another process that writes to its file.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// How long a store waits until the tape has what is to be written.
const NOTE_WAIT: Duration = Duration::from_secs(60);

/// `pending` has the write that a run is about to note, or has noted and not done; `written` how
/// many of a run's writes were done. The tape says how many were noted, so that after a crash it is
/// known which of the two it is.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS store(
    scope TEXT NOT NULL, store TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY(scope, store, key)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS pending(
    run TEXT PRIMARY KEY, scope TEXT NOT NULL, store TEXT NOT NULL, key TEXT NOT NULL,
    value TEXT) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS written(
    run TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID, STRICT;
";

/// Does the pending write of a run, and counts it.
const APPLY: [&str; 4] = [
    "INSERT INTO store SELECT scope, store, key, value FROM pending
     WHERE run = ?1 AND value IS NOT NULL ON CONFLICT DO UPDATE SET value = excluded.value",
    "DELETE FROM store WHERE (scope, store, key) IN
     (SELECT scope, store, key FROM pending WHERE run = ?1 AND value IS NULL)",
    "DELETE FROM pending WHERE run = ?1",
    "INSERT INTO written VALUES(?1, 1) ON CONFLICT DO UPDATE SET count = count + 1",
];

pub(super) struct Sqlite(Mutex<File>);

struct File {
    connection: Connection,
    /// Why a write that was noted could not be done. Whoever opens the file again, and resumes the
    /// run, does it.
    broken: Option<String>,
}

impl Sqlite {
    pub(super) fn open(path: &Path) -> Result<Sqlite, ToolError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_WAIT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(TABLES)?;
        Ok(Sqlite(Mutex::new(File { connection, broken: None })))
    }

    /// The file, unless it lacks what a tape has.
    fn file(&self) -> Result<MutexGuard<'_, File>, ToolError> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &file.broken {
            None => Ok(file),
            Some(why) => {
                let why = format!("the store takes nothing more: {why}");
                Err(ToolError::not_done(why).code("store.broken"))
            }
        }
    }

    pub(super) fn get(
        &self,
        at: &Place,
        noted: impl FnOnce(&Option<Canon>) -> Result<(), ToolError>,
    ) -> Result<Option<Canon>, ToolError> {
        let file = self.file()?;
        let mut query = file.connection.prepare_cached(
            "SELECT value FROM store WHERE scope = ?1 AND store = ?2 AND key = ?3",
        )?;
        let row = params![at.scope, at.store.as_str(), at.key];
        let text: Option<String> = query.query_row(row, |row| row.get(0)).optional()?;
        let found = match text {
            None => None,
            Some(text) => Some(Doc::read(&text, &Limits::OWN)?.canonical()),
        };
        noted(&found)?;
        Ok(found)
    }

    /// Puts a value there once its note is durable, in three steps, each of them durable before
    /// the next: what is pending, the note, the value.
    pub(super) fn put(
        &self,
        at: &Place,
        value: Option<&Canon>,
        run: RunId,
        noted: impl FnOnce() -> Result<Noted, ToolError>,
    ) -> Result<(), ToolError> {
        let (mut file, run) = (self.file()?, run.to_string());
        let (store, value) = (at.store.as_str(), value.map(Canon::as_str));
        // What another attempt left there was refused by the tape.
        let pending = "INSERT OR REPLACE INTO pending VALUES(?1, ?2, ?3, ?4, ?5)";
        file.connection.execute(pending, params![run, at.scope, store, at.key, value])?;
        let noted = noted()?;
        let durable = async { tokio::time::timeout(NOTE_WAIT, noted.becomes_durable()).await };
        if !Handle::current().block_on(durable).unwrap_or(false) {
            let why = "nobody knows whether the tape has the write, and it was not done";
            file.broken = Some(why.to_owned());
            return Err(ToolError::in_doubt(why).code("store.unrecorded"));
        }
        let applied = file.apply(&run);
        applied.map_err(|err| {
            let why = format!("a write is on the tape and could not be done: {err}");
            file.broken = Some(why.clone());
            ToolError::in_doubt(why).code("store.broken")
        })
    }

    /// Puts a value there for nobody's run.
    pub(super) fn put_alone(&self, at: &Place, value: Option<&Canon>) -> Result<(), ToolError> {
        let file = self.file()?;
        match value {
            Some(value) => file.connection.execute(
                "INSERT INTO store VALUES(?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET value = excluded.value",
                params![at.scope, at.store.as_str(), at.key, value.as_str()],
            )?,
            None => file.connection.execute(
                "DELETE FROM store WHERE scope = ?1 AND store = ?2 AND key = ?3",
                params![at.scope, at.store.as_str(), at.key],
            )?,
        };
        Ok(())
    }

    /// Brings the file to what the tape of a run says: it noted so many writes, which came to these
    /// values.
    pub(super) fn restore<'v>(
        &self,
        run: RunId,
        stored: impl Iterator<Item = (Place, &'v Canon)>,
        writes: u64,
    ) -> Result<(), ToolError> {
        let (mut file, run) = (self.file()?, run.to_string());
        let written: Option<i64> = {
            let sql = "SELECT count FROM written WHERE run = ?1";
            file.connection.query_row(sql, [&run], |row| row.get(0)).optional()?
        };
        let done = written.map_or(0, |count| u64::try_from(count).unwrap_or(0));
        let pending = "SELECT 1 FROM pending WHERE run = ?1";
        let is_pending = file.connection.prepare(pending)?.exists([&run])?;
        if is_pending && writes > done {
            return Ok(file.apply(&run)?);
        }
        let change = file.connection.transaction()?;
        change.execute("DELETE FROM pending WHERE run = ?1", [&run])?;
        if written.is_none() && !is_pending {
            // The run is a fork, or the file another one than it was.
            for (at, value) in stored {
                let sql = "INSERT INTO store VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
                let value = value.as_str();
                change.execute(sql, params![at.scope, at.store.as_str(), at.key, value])?;
            }
        }
        let count = i64::try_from(writes).unwrap_or(i64::MAX);
        let sql = "INSERT INTO written VALUES(?1, ?2) ON CONFLICT DO UPDATE SET count = ?2";
        change.execute(sql, params![run, count])?;
        Ok(change.commit()?)
    }
}

impl File {
    /// Does what is pending of a run.
    fn apply(&mut self, run: &str) -> rusqlite::Result<()> {
        let change = self.connection.transaction()?;
        for sql in APPLY {
            change.prepare_cached(sql)?.execute([run])?;
        }
        change.commit()
    }
}
