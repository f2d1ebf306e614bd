//! Opens a file as a tape, and says what was found.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::{Failure, beside, found_elsewhere};
use super::front::Front;
use super::lock::{self, DeadWriter, Identity};
use super::log::Log;
use super::read::{self, Readers};
use super::reserve::{RESERVE_BYTES_MIN, RESERVE_CALL_BYTES, Reserve};
use super::schema::{self, Kind};
use super::wal::{self, Synced, TornTail};
use super::writer::{CHECKPOINT_PAGES, Writer};
use super::{Handle, SqliteTape, Writing};
use crate::grant::Clock;
use crate::tape::TapeError;

/// How long a tape waits for another process that is writing.
pub const BUSY_DEFAULT: Duration = Duration::from_secs(30);

/// How to open a tape.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    vfs: Option<String>,
    is_durable: bool,
    busy: Duration,
    reserve: (u64, u64),
    pages: u64,
    clock: Clock,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            vfs: None,
            is_durable: true,
            busy: BUSY_DEFAULT,
            reserve: (RESERVE_BYTES_MIN, RESERVE_CALL_BYTES),
            pages: CHECKPOINT_PAGES,
            clock: Clock::system(),
        }
    }
}

/// What opening a tape found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The end of the log that a crash cut off. Nobody was told that it was durable.
    pub torn: Option<TornTail>,
    /// Writers that ended without closing the tape.
    pub dead: Vec<DeadWriter>,
}

impl Recovered {
    /// Whether nothing was out of order.
    pub fn is_clean(&self) -> bool {
        self.torn.is_none() && self.dead.is_empty()
    }
}

impl SqliteOptions {
    /// Acknowledges what only the end of the machine's power can undo. For what may be lost.
    pub fn not_durable(mut self) -> SqliteOptions {
        self.is_durable = false;
        self
    }

    /// Uses a file system that was registered with SQLite by this name.
    pub fn vfs(mut self, name: impl Into<String>) -> SqliteOptions {
        self.vfs = Some(name.into());
        self
    }

    /// Waits this long for another process that is writing; [`BUSY_DEFAULT`] unless told.
    pub fn busy_wait(mut self, wait: Duration) -> SqliteOptions {
        self.busy = wait;
        self
    }

    /// Keeps this many bytes free for the result of each call that has started, and four times as
    /// many for the end of runs; [`RESERVE_CALL_BYTES`] unless told.
    pub fn reserve_per_call(mut self, bytes: u64) -> SqliteOptions {
        self.reserve = (bytes.saturating_mul(4), bytes);
        self
    }

    /// Copies the log into the file after about this many pages; [`CHECKPOINT_PAGES`] unless told.
    pub fn checkpoint_after(mut self, pages: u64) -> SqliteOptions {
        self.pages = pages;
        self
    }

    /// Tells the time; the system's unless told.
    pub fn clock(mut self, clock: Clock) -> SqliteOptions {
        self.clock = clock;
        self
    }

    /// Opens a tape, or makes one where there is no file.
    pub fn open(self, path: impl AsRef<Path>) -> Result<SqliteTape, TapeError> {
        self.look_at(path.as_ref(), Use::Write)?;
        let path = &self.settled(path.as_ref(), Use::Write)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = read::open(path, self.vfs.as_deref(), flags).map_err(Failure::at_open)?;
        connection.busy_timeout(self.busy).map_err(Failure::at_open)?;
        let is_left = !lock::any_lives(&connection, path);
        let torn = if is_left { self.torn(&connection, path)? } else { None };
        self.prepare(&connection)?;
        schema::migrate(&connection)?;
        if is_left {
            settle(&connection)?;
        }
        let (identity, dead) = self.enter(&connection, path)?;
        if !self.is_durable {
            connection.execute_batch("PRAGMA synchronous = NORMAL").map_err(Failure::at_open)?;
        }
        let (least, per_call) = self.reserve;
        let file = identity.file.try_clone().map_err(|err| beside(&err))?;
        let (jobs, waiting) = mpsc::channel();
        let front = Arc::new(Front::new(Reserve::new(file, least, per_call), jobs));
        // Whoever does not wait for the disk gains nothing, and other file systems are not ours.
        let log = match self.is_durable && self.vfs.is_none() {
            true => Log::beside(path),
            false => Log::left_alone(),
        };
        let place = (path.to_owned(), log, self.pages);
        let writer = Writer::new(connection, identity, front.clone(), place);
        let thread = std::thread::Builder::new().name("tooltape-writer".into());
        let thread = thread.spawn(move || writer.work(&waiting)).map_err(|err| beside(&err))?;
        let writing = Some(Writing { front, thread: Some(thread) });
        Ok(self.handle(path, writing, Recovered { torn, dead }))
    }

    /// Opens a tape to be read, perhaps while somebody writes to it.
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<SqliteTape, TapeError> {
        self.look_at(path.as_ref(), Use::Read)?;
        let path = self.settled(path.as_ref(), Use::Read)?;
        let tape = self.handle(&path, None, Recovered::default());
        let kind = tape.0.readers.with(schema::kind)?;
        match kind {
            Kind::Tape(_) => Ok(tape),
            Kind::Empty => Err(found_elsewhere("it is empty")),
        }
    }

    fn handle(self, path: &Path, writing: Option<Writing>, recovered: Recovered) -> SqliteTape {
        let readers = Arc::new(Readers::new(path.to_owned(), self.vfs, self.busy));
        SqliteTape(Arc::new(Handle { readers, writing, recovered, clock: self.clock }))
    }

    /// The one path that the file has by whatever name it was called, since what lies beside it
    /// is found by that. Makes the file where there is none, for its owner alone; SQLite makes
    /// its own files alike.
    fn settled(&self, path: &Path, purpose: Use) -> Result<PathBuf, TapeError> {
        if self.vfs.is_some() {
            let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
            let found = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
            return Ok(found.unwrap_or_else(|| path.to_owned()));
        }
        let named = |err: io::Error| match beside(&err) {
            full @ TapeError::Full { .. } => full,
            _ => TapeError::Io { why: format!("`{}`: {err}", path.display()) },
        };
        if purpose == Use::Write {
            match lock::private().open(path) {
                Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(named(err)),
                Ok(_) | Err(_) => {}
            }
        }
        fs::canonicalize(path).map_err(named)
    }

    /// Says what is wrong with the file, where SQLite would say less.
    fn look_at(&self, path: &Path, purpose: Use) -> Result<(), TapeError> {
        if self.vfs.is_some() {
            return Ok(());
        }
        let shown = path.display();
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                return missing(path, purpose);
            }
            Err(err) => return Err(TapeError::Io { why: format!("`{shown}`: {err}") }),
        };
        if metadata.is_dir() {
            return Err(TapeError::Foreign { why: format!("`{shown}` is a folder") });
        }
        if purpose == Use::Write && metadata.permissions().readonly() {
            return Err(TapeError::ReadOnly);
        }
        let mut start = Vec::new();
        let file = fs::File::open(path).map_err(|err| beside(&err))?;
        file.take(16).read_to_end(&mut start).map_err(|err| beside(&err))?;
        match start.as_slice() {
            [] | b"SQLite format 3\0" => Ok(()),
            [b'{', ..] => Err(found_elsewhere("it is text, perhaps a tape to import")),
            _ => Err(found_elsewhere("it is no SQLite database")),
        }
    }

    /// What a crash cut off, where nobody is writing now.
    fn torn(&self, connection: &Connection, path: &Path) -> Result<Option<TornTail>, TapeError> {
        let synced = match schema::kind(connection)? {
            Kind::Empty => Synced::Each,
            Kind::Tape(_) => {
                let sql = "SELECT EXISTS (SELECT 1 FROM writers WHERE NOT durable)";
                let lax = connection.query_row(sql, [], |row| row.get::<_, bool>(0));
                if lax.map_err(Failure::at_open)? { Synced::Some } else { Synced::Each }
            }
        };
        wal::inspect(path, synced)
    }

    fn prepare(&self, connection: &Connection) -> Result<(), TapeError> {
        let no_copy = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(no_copy, true).map_err(Failure::at_open)?;
        connection.set_prepared_statement_cache_capacity(64);
        // What is erased is written over, and nothing of the log is copied behind our back.
        // The first page is not in the log, and is to be as durable.
        let pragmas = "PRAGMA synchronous = EXTRA; PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL;
            PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON;
            PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384";
        connection.execute_batch(pragmas).map_err(Failure::at_open)
    }

    /// Makes this handle known, and finds out who died.
    fn enter(
        &self,
        connection: &Connection,
        path: &Path,
    ) -> Result<(Identity, Vec<DeadWriter>), TapeError> {
        connection.execute_batch("BEGIN IMMEDIATE").map_err(Failure::at_open)?;
        let entered = lock::bury(connection, path).and_then(|dead| {
            let identity = Identity::enter(connection, path, &self.clock, self.is_durable)?;
            connection.execute_batch("COMMIT").map_err(Failure::at_open)?;
            Ok((identity, dead))
        });
        if entered.is_err() && !connection.is_autocommit() {
            // The failure that counts is the first one.
            let _ = connection.execute_batch("ROLLBACK");
        }
        entered
    }
}

/// Writes what is in the log into the file, and begins a new log.
///
/// Whoever wrote the log may have died of a sync that failed. Then the system shows pages that are
/// not on the disk, and what is written behind them would be lost with them.
fn settle(connection: &Connection) -> Result<(), TapeError> {
    let busy = "PRAGMA wal_checkpoint(TRUNCATE)";
    let busy = connection.query_row(busy, [], |row| row.get::<_, bool>(0));
    if busy.map_err(Failure::at_open)? {
        let why = "somebody reads what its last writer left; try again once they are done";
        return Err(TapeError::Io { why: why.into() });
    }
    Ok(())
}

/// What a tape is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

fn missing(path: &Path, purpose: Use) -> Result<(), TapeError> {
    let shown = path.display();
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        let why = format!("there is no folder `{}` for `{shown}`", folder.display());
        return Err(TapeError::Io { why });
    }
    match purpose {
        Use::Read => Err(TapeError::Io { why: format!("there is no file `{shown}`") }),
        Use::Write => Ok(()),
    }
}
