//! Values in an SQLite file.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::Place;
use crate::canon::{Canon, Doc, Limits};
use crate::fault::ToolError;
use crate::sync::Mutex;

/// How long a store waits for another process that writes to its file.
const BUSY_WAIT: Duration = Duration::from_secs(5);

pub(super) struct Sqlite(Mutex<Connection>);

impl Sqlite {
    pub(super) fn open(path: &Path) -> Result<Sqlite, ToolError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_WAIT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute(
            "CREATE TABLE IF NOT EXISTS store(
                scope TEXT NOT NULL, store TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
                PRIMARY KEY(scope, store, key)) WITHOUT ROWID, STRICT",
            [],
        )?;
        Ok(Sqlite(Mutex::new(connection)))
    }

    pub(super) fn get(
        &self,
        at: &Place,
        noted: impl FnOnce(&Option<Canon>) -> Result<(), ToolError>,
    ) -> Result<Option<Canon>, ToolError> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut query = connection.prepare_cached(
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

    pub(super) fn put(
        &self,
        at: &Place,
        value: Option<&Canon>,
        noted: impl FnOnce() -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let change = connection.transaction()?;
        let (scope, store, key) = (&at.scope, at.store.as_str(), &at.key);
        match value {
            Some(value) => change.execute(
                "INSERT INTO store VALUES(?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET value = excluded.value",
                params![scope, store, key, value.as_str()],
            )?,
            None => change.execute(
                "DELETE FROM store WHERE scope = ?1 AND store = ?2 AND key = ?3",
                params![scope, store, key],
            )?,
        };
        // What the tape refuses is rolled back.
        noted()?;
        Ok(change.commit()?)
    }
}
