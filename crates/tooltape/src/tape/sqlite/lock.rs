//! Who writes to a tape, and whether they live.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension, params};

use super::error::{Failure, beside};
use crate::grant::Clock;
use crate::id::RunId;
use crate::sync::{Mutex, MutexGuard};
use crate::tape::TapeError;

/// How many files of others a new writer passes over before it gives up.
const SIDE_TRIES_MAX: usize = 1_000;

/// The writers of this process, by the tape's path and their number.
static OWN: Mutex<BTreeSet<(PathBuf, i64)>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<(PathBuf, i64)>> {
    // Each change of the set is one step, so a panic leaves no half of one.
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open handle: a row in the file, and a locked file beside it for as long as the handle lives.
///
/// The operating system lets go of the lock however the process ends, so that a lock that can be
/// had belongs to the dead.
pub(super) struct Identity {
    pub(super) no: i64,
    pub(super) file: File,
    tape: PathBuf,
}

/// A writer that ended without closing its tape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadWriter {
    /// The process.
    pub pid: u32,
    /// The machine it ran on.
    pub host: String,
    /// When it opened the tape, in microseconds since the Unix epoch.
    pub since_us: u64,
    /// The runs that it had in hand.
    pub runs: Vec<RunId>,
}

impl Identity {
    /// Makes this handle known. Inside the transaction of the caller, so that nobody sees the row
    /// before the lock is held.
    pub(super) fn enter(
        connection: &Connection,
        tape: &Path,
        clock: &Clock,
        durable: bool,
    ) -> Result<Identity, TapeError> {
        let since_us = i64::try_from(clock.unix_us()).unwrap_or(i64::MAX);
        for _ in 0..SIDE_TRIES_MAX {
            let row = "INSERT INTO writers (pid, host, since_us, durable) VALUES (?1, ?2, ?3, ?4)";
            let values = params![std::process::id(), host(), since_us, durable];
            connection.execute(row, values).map_err(Failure::at(0))?;
            let no = connection.last_insert_rowid();
            match private().open(side(tape, no)) {
                Ok(file) => {
                    file.try_lock().map_err(|err| TapeError::Io { why: err.to_string() })?;
                    own().insert((tape.to_owned(), no));
                    return Ok(Identity { no, file, tape: tape.to_owned() });
                }
                // Whatever is there is not ours. No number is given twice.
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {
                    let row = "DELETE FROM writers WHERE no = ?1";
                    connection.execute(row, [no]).map_err(Failure::at(0))?;
                }
                Err(err) => return Err(beside(&err)),
            }
        }
        let why = format!("{SIDE_TRIES_MAX} files beside it have the names of its writers");
        Err(TapeError::Io { why })
    }

    /// Takes back the row. The file goes when the identity is dropped.
    pub(super) fn leave(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute("UPDATE runs SET writer = NULL WHERE writer = ?1", [self.no])?;
        connection.execute("DELETE FROM writers WHERE no = ?1", [self.no])?;
        Ok(())
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // Gone already, or to be found by the next one who opens the tape.
        let _ = fs::remove_file(side(&self.tape, self.no));
        own().remove(&(std::mem::take(&mut self.tape), self.no));
    }
}

/// Makes a file that is new, and that nobody else may read.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Whether a writer lives. Who cannot be asked is taken to live.
pub(super) fn lives(connection: &Connection, tape: &Path, no: i64) -> Result<bool, TapeError> {
    if let Some(is_locked) = is_locked(tape, no) {
        return Ok(is_locked);
    }
    // Somebody took its file away, which does not end the writer.
    let row = "SELECT pid, host FROM writers WHERE no = ?1";
    let row = connection.prepare_cached(row).and_then(|mut statement| {
        statement.query_row([no], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    });
    let row: Option<(u32, String)> = row.map_err(Failure::at(0))?;
    Ok(match row {
        Some((pid, _)) if pid == std::process::id() => own().contains(&(tape.to_owned(), no)),
        Some((pid, at)) => at == host() && has_open(pid, tape),
        None => false,
    })
}

/// Whether the file of a writer is locked; nothing, where there is no such file.
fn is_locked(tape: &Path, no: i64) -> Option<bool> {
    let path = side(tape, no);
    // No writer makes a link.
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return None,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => return Some(true),
    }
    match File::open(&path) {
        // Shared, so that two who ask at once do not take each other for the writer.
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Some(true),
        },
        Err(err) if err.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some(true),
    }
}

/// Whether another process lives and has the tape open. Its number may have been given again.
#[cfg(unix)]
fn has_open(pid: u32, tape: &Path) -> bool {
    use rustix::process::{Pid, test_kill_process};
    use std::os::unix::fs::MetadataExt;
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    let id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let Some(tape) = id(tape) else { return true };
    match fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) {
        Ok(files) => files.flatten().any(|file| id(&file.path()) == Some(tape)),
        Err(_) => true,
    }
}

/// Whether another process lives and has the tape open, which cannot be asked here.
#[cfg(not(unix))]
fn has_open(_pid: u32, _tape: &Path) -> bool {
    true
}

/// Whether any writer lives, as far as the files beside the tape and its own rows say.
pub(super) fn any_lives(connection: &Connection, tape: &Path) -> bool {
    if any_is_locked(tape) {
        return true;
    }
    // A file that has no such table has no writers.
    let numbers = connection.prepare("SELECT no FROM writers").and_then(|mut statement| {
        statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()
    });
    let mut numbers = numbers.unwrap_or_default().into_iter();
    numbers.any(|no| lives(connection, tape, no).unwrap_or(false))
}

fn any_is_locked(tape: &Path) -> bool {
    let (Some(folder), Some(name)) = (tape.parent(), tape.file_name()) else { return false };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let prefix = format!("{}{SIDE}", name.to_string_lossy());
    let numbers = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
        entry.file_name().to_string_lossy().strip_prefix(&prefix)?.parse::<i64>().ok()
    });
    numbers.into_iter().any(|no| is_locked(tape, no) == Some(true))
}

/// Who holds a run, for whoever is refused.
pub(super) fn holder(connection: &Connection, no: i64) -> Result<String, TapeError> {
    let row = "SELECT pid, host, strftime('%Y-%m-%dT%H:%M:%SZ', since_us / 1000000, 'unixepoch')
               FROM writers WHERE no = ?1";
    let found = connection.query_row(row, [no], |row| {
        let (pid, host, since): (u32, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("process {pid} on `{host}` since {since}"))
    });
    let found = found.optional().map_err(Failure::at(0))?;
    Ok(found.unwrap_or_else(|| format!("writer {no}")))
}

/// Finds the writers that died, says so once, and clears away what they left beside the tape.
pub(super) fn bury(connection: &Connection, tape: &Path) -> Result<Vec<DeadWriter>, TapeError> {
    let rows = connection
        .prepare("SELECT no, pid, host, since_us FROM writers")
        .and_then(|mut statement| {
            let row =
                |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            statement.query_map([], row)?.collect::<Result<Vec<(i64, u32, String, i64)>, _>>()
        })
        .map_err(Failure::at(0))?;
    let mut dead = Vec::new();
    for (no, pid, host, since_us) in rows {
        let path = side(tape, no);
        if lives(connection, tape, no)? {
            continue;
        }
        let runs = held(connection, no)?;
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            let since_us = u64::try_from(since_us).unwrap_or(0);
            dead.push(DeadWriter { pid, host, since_us, runs });
            fs::remove_file(&path).map_err(|err| beside(&err))?;
        } else if runs.is_empty() {
            connection
                .execute("DELETE FROM writers WHERE no = ?1", [no])
                .map_err(Failure::at(0))?;
        }
    }
    Ok(dead)
}

/// The unfinished runs that a writer has in hand.
fn held(connection: &Connection, no: i64) -> Result<Vec<RunId>, TapeError> {
    let runs = connection
        .prepare("SELECT id FROM runs WHERE writer = ?1 ORDER BY no")
        .and_then(|mut statement| {
            statement.query_map([no], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
        })
        .map_err(Failure::at(0))?;
    Ok(runs.iter().filter_map(|run| run.parse().ok()).collect())
}

/// What follows the name of the tape in the name of a writer's file.
const SIDE: &str = "-writer";

fn side(tape: &Path, no: i64) -> PathBuf {
    let mut path = tape.as_os_str().to_owned();
    path.push(format!("{SIDE}{no}"));
    path.into()
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "this machine".to_owned() } else { name.to_owned() }
}
