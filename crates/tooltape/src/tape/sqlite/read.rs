//! Reads records, on connections of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::error::{Failure, is_shut};
use super::insert::{place, unsigned};
use crate::canon::Hash;
use crate::id::RunId;
use crate::sync::Mutex;
use crate::tape::{Head, Line, READ_RECORDS_MAX, TapeError};

/// The most connections that are kept for reading.
pub const READERS_MAX: usize = 8;

/// Connections that only read, used by one at a time.
pub(super) struct Readers {
    pub(super) path: PathBuf,
    pub(super) vfs: Option<String>,
    pub(super) busy: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf, vfs: Option<String>, busy: Duration) -> Readers {
        Readers { path, vfs, busy, idle: Mutex::new(Vec::new()) }
    }

    /// Reads with a connection that nobody else uses meanwhile.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, TapeError>,
    ) -> Result<T, TapeError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = idle().pop();
        let connection = connection.map_or_else(|| self.connect(), |it| Ok((it, Keep::Yes)));
        let (connection, keep) = connection?;
        // One snapshot for all that is read.
        connection.execute_batch("BEGIN").map_err(Failure::at(0))?;
        let done = read(&connection);
        let ended = connection.execute_batch("COMMIT");
        let mut idle = idle();
        if keep == Keep::Yes && ended.is_ok() && idle.len() < READERS_MAX {
            idle.push(connection);
        }
        // What was wrong with the reading says more than what that did to its end.
        done.and_then(|done| ended.map(|()| done).map_err(Failure::at(0)))
    }

    /// Opens the file to be read.
    fn connect(&self) -> Result<(Connection, Keep), TapeError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = open(&self.path, self.vfs.as_deref(), flags).map_err(Failure::at_open)?;
        connection.busy_timeout(self.busy).map_err(Failure::at_open)?;
        // The files beside the tape are looked for with the first page.
        match connection.query_row("PRAGMA schema_version", [], |_| Ok(())) {
            Ok(()) => Ok((connection, Keep::Yes)),
            Err(err) if self.vfs.is_none() && is_shut(&err) && self.has_no_log() => {
                let flags = flags | OpenFlags::SQLITE_OPEN_URI;
                let alone = open(&alone(&self.path), None, flags).map_err(Failure::at_open)?;
                Ok((alone, Keep::No))
            }
            Err(err) => Err(Failure::at_open(err)),
        }
    }

    /// Whether all that the tape says is in its one file.
    fn has_no_log(&self) -> bool {
        let mut path = self.path.as_os_str().to_owned();
        path.push("-wal");
        match fs::metadata(path) {
            Ok(log) => log.len() == 0,
            Err(err) => err.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// Whether a connection may be used again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    /// It would not see what others write from now on.
    No,
}

/// The address of a file that is read as it is, with no file beside it: where none can be made,
/// on a full disk or in a folder of somebody else, a closed tape can still be read.
fn alone(path: &Path) -> PathBuf {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02x}")),
        }
    }
    address.push_str("?immutable=1");
    address.into()
}

/// Opens a file with flags.
pub(super) fn open(
    path: &Path,
    vfs: Option<&str>,
    flags: OpenFlags,
) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
}

/// The number of a run, and the head of what was erased of it.
pub(super) fn find(
    connection: &Connection,
    run: RunId,
) -> Result<Option<(i64, Option<Head>)>, TapeError> {
    let sql = "SELECT no, erased_len, erased_head FROM runs WHERE id = ?1";
    let row = connection.prepare_cached(sql).and_then(|mut statement| {
        let row = |row: &Row<'_>| {
            let len: Option<i64> = row.get(1)?;
            let hash: Option<[u8; 32]> = row.get(2)?;
            let head =
                len.zip(hash).map(|(len, hash)| Head { len: unsigned(len), hash: hash.into() });
            Ok((row.get(0)?, head))
        };
        statement.query_row([run.to_string()], row).optional()
    });
    row.map_err(Failure::at(0))
}

/// The head of a run, as its last record has it.
pub(super) fn head(connection: &Connection, no: i64) -> Result<Head, TapeError> {
    let sql = "SELECT seq, hash FROM events WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1";
    let last = connection.prepare_cached(sql).and_then(|mut statement| {
        let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 32]>(1)?));
        statement.query_row(bounds(no), row).optional()
    });
    let last = last.map_err(Failure::at(0))?;
    Ok(last.map_or_else(Head::empty, |(seq, hash)| Head {
        len: unsigned(seq) + 1,
        hash: Hash::from(hash),
    }))
}

/// The least and the greatest place that a record of a run may have.
pub(super) fn bounds(no: i64) -> (i64, i64) {
    (place(no, 0), place(no, u64::from(u32::MAX)))
}

/// Reads lines and checks each: its hashes, its run, and its place behind the one before it.
pub(super) fn lines(
    connection: &Connection,
    run: RunId,
    from: u64,
    most: usize,
) -> Result<Vec<Line>, TapeError> {
    let (Some((no, erased)), Ok(_)) = (find(connection, run)?, u32::try_from(from)) else {
        return Ok(Vec::new());
    };
    let mut previous = match from {
        0 => Some(Head::empty().hash),
        from => hash_at(connection, no, from - 1)?,
    };
    let sql = "SELECT seq, body, content, hash FROM events WHERE id BETWEEN ?1 AND ?2
               ORDER BY id LIMIT ?3";
    let most = i64::try_from(most.min(READ_RECORDS_MAX)).unwrap_or(0);
    let mut statement = connection.prepare_cached(sql).map_err(Failure::at(from))?;
    let rows = statement.query(params![place(no, from), bounds(no).1, most]);
    let mut rows = rows.map_err(Failure::at(from))?;
    let (mut lines, mut next) = (Vec::new(), from);
    while let Some(row) = rows.next().map_err(Failure::at(next))? {
        let missing = || TapeError::Corrupt { seq: next, why: "no record is before it".into() };
        let head = Head { len: next, hash: previous.ok_or_else(missing)? };
        let line = Reading { run, head, is_erased: erased.is_some() }.line(row)?;
        previous = Some(line.hash());
        lines.push(line);
        next += 1;
    }
    Ok(lines)
}

/// A run that is read from row to row.
pub(super) struct Reading {
    pub(super) run: RunId,
    /// How far it was read.
    pub(super) head: Head,
    pub(super) is_erased: bool,
}

impl Reading {
    /// The next line, from a row that begins with its place, its text and its two hashes.
    pub(super) fn line(&self, row: &Row<'_>) -> Result<Line, TapeError> {
        let next = self.head.len;
        let corrupt = |why: String| TapeError::Corrupt { seq: next, why };
        let cell = |err: rusqlite::Error| corrupt(err.to_string());
        let seq = unsigned(row.get(0).map_err(cell)?);
        if seq != next {
            return Err(corrupt(format!("the record before record {seq} is missing")));
        }
        let body: Option<&str> = row
            .get_ref(1)
            .map_err(cell)?
            .as_str_or_null()
            .map_err(|err| corrupt(err.to_string()))?;
        let hashes: ([u8; 32], [u8; 32]) = (row.get(2).map_err(cell)?, row.get(3).map_err(cell)?);
        let Some(body) = body else { return Err(TapeError::Erased { seq }) };
        let read = if self.is_erased { Line::erased } else { Line::stored };
        let line = read(body, self.head.hash, hashes.0.into(), hashes.1.into());
        // What its text says of its place is as much in doubt as the text.
        let line = line.map_err(|err| match err {
            TapeError::Corrupt { why, .. } => corrupt(why),
            other => other,
        })?;
        match line.place() {
            Ok(place) if place == (self.run, seq) => Ok(line),
            Ok(_) | Err(_) => Err(corrupt("it is a record of another place".into())),
        }
    }
}

fn hash_at(connection: &Connection, no: i64, seq: u64) -> Result<Option<Hash>, TapeError> {
    let sql = "SELECT hash FROM events WHERE id = ?1";
    let hash = connection.prepare_cached(sql).and_then(|mut statement| {
        statement.query_row([place(no, seq)], |row| row.get::<_, [u8; 32]>(0)).optional()
    });
    Ok(hash.map_err(Failure::at(seq))?.map(Hash::from))
}
