//! The tables of a tape, and how an older file gets them.

use rusqlite::{Connection, OptionalExtension};

use super::error::{Failure, found_elsewhere};
use crate::tape::TapeError;

/// What marks a SQLite file as a tape: `TApe` in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x5441_7065;

/// What each version added to the one before it; the first one is made from nothing.
const MIGRATIONS: [&str; 1] = [VERSION_1];

/// The version that this build writes.
pub(super) const VERSION: i32 = MIGRATIONS.len() as i32;

/// Columns besides `body` and the hashes only say again what the body says, to be found by.
///
/// Records lie in the order in which they came, so that a commit of many runs fills few pages. The
/// number of a run and the place of a record make up one integer, by which a run is found in its
/// order, and no place is taken twice.
const VERSION_1: &str = "
CREATE TABLE writers (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    durable INTEGER NOT NULL
) STRICT;
CREATE TABLE runs (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    parent TEXT,
    thread TEXT,
    note TEXT,
    calls INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,
    open INTEGER NOT NULL DEFAULT 0,
    writer INTEGER,
    imported INTEGER NOT NULL DEFAULT 0,
    erased_us INTEGER,
    erased_len INTEGER,
    erased_head BLOB
) STRICT;
CREATE INDEX runs_by_time ON runs (started_us, no);
CREATE INDEX runs_by_status ON runs (status, started_us, no);
CREATE INDEX runs_by_parent ON runs (parent, started_us, no) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_writer ON runs (writer) WHERE writer IS NOT NULL;
CREATE TABLE tools (
    tool TEXT NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (tool, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX tools_by_run ON tools (run, tool);
CREATE TABLE artifacts (
    hash BLOB NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (hash, run)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    no INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    at_us INTEGER NOT NULL,
    type TEXT NOT NULL,
    call INTEGER,
    tool TEXT,
    key TEXT,
    body TEXT,
    content BLOB NOT NULL,
    hash BLOB NOT NULL,
    run INTEGER AS (id >> 32) VIRTUAL,
    seq INTEGER AS (id & 4294967295) VIRTUAL
) STRICT;
CREATE UNIQUE INDEX events_by_key ON events (id >> 32, key) WHERE key IS NOT NULL;
CREATE VIEW tape AS
    SELECT runs.id AS run, seq, at_us, type, call, tool, key, body,
           lower(hex(content)) AS content, lower(hex(hash)) AS hash
    FROM events JOIN runs ON runs.no = events.run;
";

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A database without a table.
    Empty,
    /// A tape of this version.
    Tape(i32),
}

/// Says what the file is; a file of somebody else, or of a later version, is an error.
pub(super) fn kind(connection: &Connection) -> Result<Kind, TapeError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = pragma("application_id").map_err(Failure::at_open)?;
    let version = pragma("user_version").map_err(Failure::at_open)?;
    match (application, version) {
        (APPLICATION_ID, 1..=VERSION) => Ok(Kind::Tape(version)),
        (APPLICATION_ID, _) => {
            let unsigned = |version| u32::try_from(version).unwrap_or(0);
            Err(TapeError::Newer { version: unsigned(version), known: unsigned(VERSION) })
        }
        (0, 0) => {
            let table = "SELECT name FROM sqlite_schema LIMIT 1";
            let table = connection.query_row(table, [], |row| row.get::<_, String>(0)).optional();
            match table.map_err(Failure::at_open)? {
                None => Ok(Kind::Empty),
                Some(table) => Err(found_elsewhere(&format!("it has a table `{table}`"))),
            }
        }
        (application, _) => {
            Err(found_elsewhere(&format!("its application id is `{application:#010x}`")))
        }
    }
}

/// Brings the file to this version, all of it or nothing.
pub(super) fn migrate(connection: &Connection) -> Result<(), TapeError> {
    if kind(connection)? == Kind::Tape(VERSION) {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE").map_err(Failure::at_open)?;
    // Looked at again, since somebody else may have been faster.
    let migrated = kind(connection).and_then(|kind| {
        let from = match kind {
            Kind::Empty => 0,
            Kind::Tape(version) => version,
        };
        for migration in &MIGRATIONS[usize::try_from(from).unwrap_or(0)..] {
            connection.execute_batch(migration).map_err(Failure::at_open)?;
        }
        let marks = format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT"
        );
        connection.execute_batch(&marks).map_err(Failure::at_open)
    });
    if migrated.is_err() {
        // The failure that counts is the first one.
        let _ = connection.execute_batch("ROLLBACK");
    }
    migrated
}
