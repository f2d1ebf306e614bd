//! The one thread that writes: it takes what waits into one commit, and then tells all who wait.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::oneshot;

use super::error::{self, Failure, beside};
use super::front::Front;
use super::insert::Held;
use super::lock::Identity;
use super::log::Log;
use crate::id::RunId;
use crate::tape::{Record, TapeError};

/// The most events of one commit.
pub const COMMIT_EVENTS_MAX: usize = 4_096;
/// How often a commit waits for somebody else's lock before its records are refused.
const BUSY_WAITS_MAX: u32 = 4;
/// How often a commit looks out for runs that were in the one before it, and have just learned of
/// it. That takes about a tenth of a millisecond, less than a sync does, and without it a few of
/// them would have a sync of their own.
const GATHER_LOOKS_MAX: u32 = 3_000;
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
    log: Log,
    /// How many pages of the log may wait to be copied into the file.
    pages_max: u64,
    /// How many wait before that is tried, or tried again.
    copy_at: u64,
    /// How many runs were told of the last commit.
    told: usize,
    pub(super) is_poisoned: bool,
}

/// What is to be one commit.
#[derive(Default)]
struct Batch {
    appended: Vec<Appended>,
    events: usize,
    /// The claims of the runs that are in it.
    claims: BTreeSet<u64>,
    /// How often somebody looked out for more.
    looks: u32,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.events >= COMMIT_EVENTS_MAX
    }

    fn push(&mut self, appended: Appended) {
        self.events += appended.records.len();
        self.claims.insert(appended.claim);
        self.appended.push(appended);
    }
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        identity: Identity,
        front: Arc<Front>,
        (path, log, pages_max): (PathBuf, Log, u64),
    ) -> Writer {
        Writer {
            connection,
            identity,
            front,
            path,
            held: Held::default(),
            log,
            pages_max,
            copy_at: pages_max,
            told: 0,
            is_poisoned: false,
        }
    }

    /// Writes until the tape is closed, or nothing more can be written.
    pub(super) fn work(mut self, jobs: &mpsc::Receiver<Job>) {
        let mut batch = Batch::default();
        while !self.is_poisoned {
            let waiting = if batch.is_full() { None } else { self.gather(jobs, &mut batch) };
            let job = match waiting {
                Some(job) => job,
                None if batch.appended.is_empty() => match jobs.recv() {
                    Ok(job) => job,
                    Err(mpsc::RecvError) => break,
                },
                None => {
                    self.commit(&mut batch);
                    self.keep_log();
                    continue;
                }
            };
            match job {
                Job::Append(appended) => batch.push(appended),
                Job::Forget(claim) => self.held.forget(claim),
                Job::Work(work) => {
                    self.commit(&mut batch);
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

    /// What waits, or comes soon from runs that have just been told of the last commit.
    fn gather(&self, jobs: &mpsc::Receiver<Job>, batch: &mut Batch) -> Option<Job> {
        loop {
            match jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(_) if !(1..self.told).contains(&batch.claims.len()) => return None,
                Err(_) if batch.looks >= GATHER_LOOKS_MAX => return None,
                Err(_) => {
                    batch.looks += 1;
                    // To be woken would take longer.
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Commits all, and tells all.
    fn commit(&mut self, batch: &mut Batch) {
        let Batch { appended, events, claims, .. } = std::mem::take(batch);
        if appended.is_empty() {
            return;
        }
        let done = self.persist(&appended);
        self.told = claims.len();
        self.front.done(events);
        let refused = done.unwrap_or_else(|err| vec![Some(err); appended.len()]);
        for (appended, refused) in appended.into_iter().zip(refused) {
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

    /// Copies the log into the file where much of it waits for that, and makes it longer where
    /// little of it is left.
    fn keep_log(&mut self) {
        if self.is_poisoned {
            return;
        }
        let kept = self.count("NOOP").and_then(|(pages, copied)| {
            self.checkpoint(pages - copied)?;
            self.lengthen(pages)
        });
        if let Err(err) = kept {
            self.poison(&err);
        }
    }

    /// Copies the log into the file where this many of its pages are too many.
    ///
    /// SQLite would do so by itself, and keep to itself what went wrong: after a failed sync, the
    /// next one succeeds, and the log that has the only copy would be written over.
    fn checkpoint(&mut self, waiting: u64) -> Result<(), TapeError> {
        if waiting < self.pages_max {
            self.copy_at = self.pages_max;
        }
        if waiting < self.copy_at {
            return Ok(());
        }
        let left = match self.count("PASSIVE") {
            // Where somebody reads what is in the log, some of it stays.
            Ok((pages, copied)) => pages - copied,
            // Nothing was lost: the log has it all.
            Err(TapeError::Full { .. }) => waiting,
            Err(err) => return Err(err),
        };
        self.copy_at = left + self.pages_max / 2;
        Ok(())
    }

    /// Has the log looked at or copied. Says how many pages it has, and how many of them are
    /// copied.
    fn count(&self, mode: &str) -> Result<(u64, u64), TapeError> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let counts = self.connection.prepare_cached(&sql).and_then(|mut it| it.query_row([], row));
        let (pages, copied) = counts.map_err(Failure::at(0))?;
        let pages = u64::try_from(pages).unwrap_or(0);
        Ok((pages, u64::try_from(copied).unwrap_or(0).min(pages)))
    }

    /// Makes the log longer where little is left of it behind this many pages.
    fn lengthen(&mut self, pages: u64) -> Result<(), TapeError> {
        if !self.log.is_short(pages) {
            return Ok(());
        }
        match self.transact(|writer| writer.log.grow().map_err(|err| beside(&err))) {
            // It grows by itself, if more slowly, and what room there is has better uses.
            Err(TapeError::Full { .. }) => self.log = Log::left_alone(),
            // Somebody else writes, and needs it as much.
            Err(TapeError::Locked { .. }) => {}
            done => done?,
        }
        Ok(())
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
