//! The one thread that writes: it takes what waits into one commit, and then tells all who wait.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::oneshot;

use super::error::{self, Failure};
use super::front::Front;
use super::insert::Held;
use super::lock::Identity;
use crate::id::RunId;
use crate::tape::{Record, TapeError};

/// The most events of one commit.
pub const COMMIT_EVENTS_MAX: usize = 4_096;
/// How often a commit waits for somebody else's lock before its records are refused.
const BUSY_WAITS_MAX: u32 = 4;
/// The pages of the log after which they are copied into the file.
pub const CHECKPOINT_PAGES: u64 = 4_096;

/// What the writer is asked to do.
pub(super) enum Job {
    /// Write these records.
    Append(Appended),
    /// Nothing that counts on this claim follows.
    Forget(u64),
    /// Do something between two commits.
    Work(Box<dyn FnOnce(&mut Writer) + Send>),
    /// Nobody has the tape any more.
    Close,
}

/// Records of one run that were accepted.
pub(super) struct Appended {
    pub(super) run: RunId,
    /// Under which claim on the run.
    pub(super) claim: u64,
    /// Whether it was known, when they were accepted, that the run is as the caller thinks.
    pub(super) is_certain: bool,
    /// Whether the run ends with them.
    pub(super) is_last: bool,
    pub(super) records: Vec<Record>,
    pub(super) ack: oneshot::Sender<Result<(), TapeError>>,
}

/// Who writes.
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) identity: Identity,
    pub(super) front: Arc<Front>,
    /// Where the tape is.
    pub(super) path: PathBuf,
    pub(super) held: Held,
    /// About how many pages the log has.
    pages: u64,
    /// How many it may have.
    pages_max: u64,
    pub(super) is_poisoned: bool,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        identity: Identity,
        front: Arc<Front>,
        (path, pages_max): (PathBuf, u64),
    ) -> Writer {
        let (held, pages, is_poisoned) = (Held::default(), 0, false);
        Writer { connection, identity, front, path, held, pages, pages_max, is_poisoned }
    }

    /// Writes until the tape is closed, or nothing more can be written.
    pub(super) fn work(mut self, jobs: &mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        let mut events = 0;
        while !self.is_poisoned {
            let waiting = if events < COMMIT_EVENTS_MAX { jobs.try_recv().ok() } else { None };
            let job = match waiting {
                Some(job) => job,
                None if batch.is_empty() => match jobs.recv() {
                    Ok(job) => job,
                    Err(mpsc::RecvError) => break,
                },
                None => {
                    self.commit(&mut batch);
                    events = 0;
                    self.checkpoint();
                    continue;
                }
            };
            match job {
                Job::Append(appended) => {
                    events += appended.records.len();
                    batch.push(appended);
                }
                Job::Forget(claim) => self.held.forget(claim),
                Job::Work(work) => {
                    self.commit(&mut batch);
                    events = 0;
                    work(&mut self);
                }
                Job::Close => {
                    self.commit(&mut batch);
                    break;
                }
            }
        }
        self.close(jobs);
    }

    /// Commits all, and tells all.
    fn commit(&mut self, batch: &mut Vec<Appended>) {
        if batch.is_empty() {
            return;
        }
        let done = self.persist(batch);
        let events = batch.iter().map(|appended| appended.records.len()).sum();
        self.front.done(events);
        let refused = done.unwrap_or_else(|err| vec![Some(err); batch.len()]);
        for (appended, refused) in batch.drain(..).zip(refused) {
            // Nobody may be waiting.
            let _ = appended.ack.send(refused.map_or(Ok(()), Err));
        }
    }

    /// Tries until it is done, or there is a reason to give up.
    fn persist(&mut self, batch: &[Appended]) -> Result<Vec<Option<TapeError>>, TapeError> {
        let mut waits = 1;
        loop {
            match self.attempt(batch) {
                Err(TapeError::Full { .. }) if self.front.give_back() => {}
                // Whoever wrote the place of another is refused the next time round.
                Err(TapeError::Conflict { .. }) => {}
                Err(TapeError::Locked { .. }) if waits < BUSY_WAITS_MAX => waits += 1,
                Err(err @ TapeError::Locked { .. }) => {
                    let refuse = |it: &Appended| Some(self.refuse(it, err.clone()));
                    return Ok(batch.iter().map(refuse).collect());
                }
                Err(err) => {
                    self.poison(&err);
                    return Err(err);
                }
                Ok(refused) => return Ok(refused),
            }
        }
    }

    /// One transaction. What is refused for a reason of its own leaves nothing behind.
    fn attempt(&mut self, batch: &[Appended]) -> Result<Vec<Option<TapeError>>, TapeError> {
        let done = self.transact(|writer| {
            let mut refused = Vec::with_capacity(batch.len());
            for appended in batch {
                refused.push(writer.insert(appended)?);
            }
            writer.update_runs()?;
            Ok(refused)
        });
        if done.is_err() {
            // What was worked out on the way is worked out again from what is on the disk.
            self.held.reset();
        }
        let bytes = self.held.take_bytes();
        self.pages += 2 + batch.len() as u64 + bytes / 3_500;
        done
    }

    /// Does all of it or nothing.
    pub(super) fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, TapeError>,
    ) -> Result<T, TapeError> {
        let begun = self.connection.prepare_cached("BEGIN IMMEDIATE");
        begun.and_then(|mut it| it.execute([])).map_err(|err| match error::is_busy(&err) {
            true => TapeError::Locked { holder: "somebody who has the whole tape locked".into() },
            false => Failure::at(0)(err),
        })?;
        let done = work(self).and_then(|done| self.run("COMMIT").map(|()| done));
        if done.is_err() && !self.connection.is_autocommit() {
            // The failure that counts is the first one.
            let _ = self.run("ROLLBACK");
        }
        done
    }

    fn run(&self, sql: &str) -> Result<(), TapeError> {
        let done = self.connection.prepare_cached(sql).and_then(|mut it| it.execute([]));
        done.map(drop).map_err(Failure::at(0))
    }

    /// Copies the log into the file where it has grown long.
    ///
    /// SQLite would do so by itself, and keep to itself what went wrong: after a failed sync, the
    /// next one succeeds, and the log that has the only copy would be written over.
    fn checkpoint(&mut self) {
        if self.pages < self.pages_max {
            return;
        }
        match self.copy() {
            // Where somebody reads what is in the log, some of it stays.
            Ok(pages) => self.pages = pages,
            // Nothing was lost: the log has it all.
            Err(TapeError::Full { .. }) => self.pages /= 2,
            Err(err) => self.poison(&err),
        }
    }

    /// Copies the log into the file, and says how many of its pages remain.
    fn copy(&self) -> Result<u64, TapeError> {
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let counts = self.connection.query_row(sql, [], row);
        let (pages, copied) = counts.map_err(Failure::at(0))?;
        Ok(u64::try_from(pages - copied).unwrap_or(0))
    }

    /// Empties the log into the file, unless somebody reads there, for whom nobody waits. Says
    /// whether it is empty.
    pub(super) fn truncate(&self) -> Result<bool, TapeError> {
        let wait = "PRAGMA busy_timeout";
        let wait = self.connection.query_row(wait, [], |row| row.get::<_, u32>(0));
        let wait = Duration::from_millis(wait.map_err(Failure::at(0))?.into());
        self.connection.busy_timeout(Duration::ZERO).map_err(Failure::at(0))?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy = self.connection.query_row(sql, [], |row| row.get::<_, bool>(0));
        self.connection.busy_timeout(wait).map_err(Failure::at(0))?;
        match is_busy {
            Ok(is_busy) => Ok(!is_busy),
            Err(err) if error::is_busy(&err) => Ok(false),
            Err(err) => Err(Failure::at(0)(err)),
        }
    }

    /// Writes nothing any more: after a failure, nobody can tell what is on the disk.
    pub(super) fn poison(&mut self, err: &TapeError) {
        self.is_poisoned = true;
        self.front.shut(TapeError::Poisoned { why: err.to_string() });
    }

    /// Lets go of the file, and answers whoever still waits.
    fn close(mut self, jobs: &mpsc::Receiver<Job>) {
        if !self.is_poisoned {
            let left = self.transact(|writer| {
                writer.identity.leave(&writer.connection).map_err(Failure::at(0))
            });
            // Where it does not work, the next one who opens the tape does it.
            if left.and_then(|()| self.truncate()) == Ok(true) {
                // The log is empty, and goes with the last who has it open.
                let no_copy = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
                let _ = self.connection.set_db_config(no_copy, false);
            }
        }
        let why = "the tape was closed".into();
        let err = self.front.shut(TapeError::Poisoned { why });
        while let Ok(job) = jobs.try_recv() {
            match job {
                Job::Append(appended) => drop(appended.ack.send(Err(err.clone()))),
                Job::Forget(_) | Job::Close => {}
                Job::Work(work) => work(&mut self),
            }
        }
    }
}
