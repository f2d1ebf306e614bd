//! Puts records into the tables, each run behind what it has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use rusqlite::{OptionalExtension, params};

use super::RunStatus;
use super::error::{Failure, is_taken};
use super::lock;
use super::writer::{Appended, Writer};
use crate::canon::Hash;
use crate::id::{CallNo, RunId};
use crate::tape::{Event, Head, Key, Line, Record, TapeError};

/// What the address of an artifact begins with, before its hash.
const ARTIFACT: &str = "artifact:";
/// The digits of a hash.
const HASH_DIGITS: usize = 64;

/// The runs that the writer has in hand, by claim.
#[derive(Default)]
pub(super) struct Held {
    claims: BTreeMap<u64, Claim>,
}

enum Claim {
    Run(Box<Reel>),
    /// The run was not as the caller thought, and whatever builds on that fails like it.
    Refused(TapeError),
}

/// What the row of a run sums up of its records.
pub(super) struct Tally {
    pub(super) status: String,
    pub(super) calls: u64,
    pub(super) errors: u64,
    /// The calls that started and did not settle.
    pub(super) open: BTreeSet<CallNo>,
}

/// A run as the tables have it.
pub(super) struct Reel {
    no: i64,
    head: Head,
    tally: Tally,
    tools: BTreeSet<String>,
    /// Whether it had records before it was taken in hand.
    is_old: bool,
    /// Whether its row says something else.
    is_changed: bool,
    is_over: bool,
}

impl Held {
    pub(super) fn forget(&mut self, claim: u64) {
        self.claims.remove(&claim);
    }

    /// Forgets what a transaction worked out that was undone.
    pub(super) fn reset(&mut self) {
        self.claims.retain(|_, claim| matches!(claim, Claim::Refused(_)));
    }
}

impl Writer {
    /// Writes records behind what their run has, or says why they do not fit.
    pub(super) fn insert(&mut self, appended: &Appended) -> Result<Option<TapeError>, TapeError> {
        let claim = appended.claim;
        let is_held = self.held.claims.contains_key(&claim);
        let mut reel = match self.held.claims.remove(&claim) {
            Some(Claim::Run(reel)) => reel,
            Some(Claim::Refused(err)) => return Ok(Some(self.refuse(appended, err))),
            None => match self.claim(appended)? {
                Ok(reel) => Box::new(reel),
                Err(err) => return Ok(Some(self.refuse(appended, err))),
            },
        };
        if !appended.is_certain
            && reel.is_old
            && let Some(key) = self.taken(reel.no, &appended.records)?
        {
            return self.refuse_late(appended, (&mut reel, is_held), TapeError::KeyTaken { key });
        }
        let mut hash = reel.head.hash;
        let lines = appended.records.iter().map(|record| {
            let line = Line::of(record, hash)?;
            hash = line.hash();
            Ok(line)
        });
        let lines = match lines.collect::<Result<Vec<_>, TapeError>>() {
            Ok(lines) => lines,
            Err(err) => return self.refuse_late(appended, (&mut reel, is_held), err),
        };
        for (record, line) in appended.records.iter().zip(&lines) {
            let written = self.write(&mut reel, record, line);
            if let Err(err @ TapeError::Conflict { .. }) = &written {
                // All is undone, and done again without this run.
                self.held.claims.insert(claim, Claim::Refused(err.clone()));
            }
            written?;
        }
        if appended.is_last {
            // Whoever takes it in hand next is to find how it ended.
            reel.is_over = true;
            self.update(&mut reel)?;
        } else {
            self.held.claims.insert(claim, Claim::Run(reel));
        }
        Ok(None)
    }

    pub(super) fn refuse(&mut self, appended: &Appended, err: TapeError) -> TapeError {
        self.held.claims.insert(appended.claim, Claim::Refused(err.clone()));
        self.front.let_go(appended.run, appended.claim);
        err
    }

    /// Refuses what perhaps follows records that stay.
    fn refuse_late(
        &mut self,
        appended: &Appended,
        (reel, is_held): (&mut Reel, bool),
        err: TapeError,
    ) -> Result<Option<TapeError>, TapeError> {
        if is_held {
            self.update(reel)?;
        }
        Ok(Some(self.refuse(appended, err)))
    }

    /// Brings the rows of the runs up to date, in the order in which they were taken in hand.
    pub(super) fn update_runs(&mut self) -> Result<(), TapeError> {
        let mut claims = std::mem::take(&mut self.held.claims);
        let done = claims.values_mut().try_for_each(|claim| match claim {
            Claim::Run(reel) if reel.is_changed => self.update(reel),
            Claim::Run(_) | Claim::Refused(_) => Ok(()),
        });
        self.held.claims = claims;
        done
    }

    /// Brings the row of a run up to date.
    pub(super) fn update(&self, reel: &mut Reel) -> Result<(), TapeError> {
        let sql = "UPDATE runs SET status = ?2, calls = ?3, errors = ?4, open = ?5, writer = ?6
                   WHERE no = ?1";
        let writer = (!reel.is_over).then_some(self.identity.no);
        let open = signed(reel.tally.open.len() as u64);
        let Tally { status, calls, errors, .. } = &reel.tally;
        let values = params![reel.no, status, signed(*calls), signed(*errors), open, writer];
        let done = self.connection.prepare_cached(sql).and_then(|mut it| it.execute(values));
        reel.is_changed = false;
        done.map(drop).map_err(Failure::at(reel.head.len))
    }

    /// Takes a run in hand, if nobody else has it and it is as the caller thinks.
    fn claim(&mut self, appended: &Appended) -> Result<Result<Reel, TapeError>, TapeError> {
        let first = &appended.records[0];
        let reel = match self.take_in(appended.run, first)? {
            Ok(reel) => reel,
            Err(err) => return Ok(Err(err)),
        };
        let (expected, found) = (first.seq, reel.head.len);
        if expected != found {
            return Ok(Err(TapeError::Conflict { expected, found }));
        }
        let keys = if reel.is_old { self.keys(reel.no)? } else { Vec::new() };
        self.front.claimed(appended.run, appended.claim, keys, &reel.tally.open);
        Ok(Ok(reel))
    }

    /// A run as the tables have it, which nobody else writes to.
    pub(super) fn take_in(
        &self,
        run: RunId,
        first: &Record,
    ) -> Result<Result<Reel, TapeError>, TapeError> {
        let sql = "SELECT no, status, calls, errors, writer, erased_len FROM runs WHERE id = ?1";
        let row = self.connection.prepare_cached(sql).and_then(|mut statement| {
            let row = |row: &rusqlite::Row<'_>| {
                let calls: (i64, i64) = (row.get(2)?, row.get(3)?);
                Ok((row.get(0)?, row.get(1)?, calls, row.get(4)?, row.get(5)?))
            };
            statement.query_row([run.to_string()], row).optional()
        });
        type Row = (i64, String, (i64, i64), Option<i64>, Option<i64>);
        let row: Option<Row> = row.map_err(Failure::at(0))?;
        let Some((no, status, (calls, errors), writer, erased)) = row else {
            return if first.seq == 0 {
                self.begin(run, first).map(Ok)
            } else {
                Ok(Err(TapeError::Conflict { expected: first.seq, found: 0 }))
            };
        };
        if let Some(len) = erased {
            let found = unsigned(len);
            return Ok(Err(TapeError::Conflict { expected: first.seq, found }));
        }
        if let Some(writer) = writer
            && writer != self.identity.no
            && lock::lives(&self.connection, &self.path, writer)?
        {
            let holder = lock::holder(&self.connection, writer)?;
            return Ok(Err(TapeError::Locked { holder }));
        }
        let head = super::read::head(&self.connection, no)?;
        let (tools, open) = (self.tools(no)?, open(&self.keys(no)?));
        let (calls, errors) = (unsigned(calls), unsigned(errors));
        let (is_old, is_over) = (head.len > 0, false);
        Ok(Ok(Reel {
            no,
            head,
            tally: Tally { status, calls, errors, open },
            tools,
            is_old,
            is_over,
            is_changed: true,
        }))
    }

    /// Makes the row of a run that has no records.
    fn begin(&self, run: RunId, first: &Record) -> Result<Reel, TapeError> {
        let (parent, thread, note) = match &first.event {
            Event::RunStarted { parent, thread, note, .. } => {
                let note = note.as_ref().map(|note| note.to_string());
                (parent.as_ref().map(|parent| parent.run.to_string()), thread.as_deref(), note)
            }
            _ => (None, None, None),
        };
        let sql = "INSERT INTO runs (id, status, started_us, parent, thread, note, writer)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let status = RunStatus::Running.as_str();
        let started_us = signed(first.at_us);
        let values =
            params![run.to_string(), status, started_us, parent, thread, note, self.identity.no];
        let row = self.connection.prepare_cached(sql).and_then(|mut it| it.insert(values));
        Ok(Reel {
            no: row.map_err(Failure::at(0))?,
            head: Head::empty(),
            tally: Tally::default(),
            tools: BTreeSet::new(),
            is_old: false,
            is_changed: false,
            is_over: false,
        })
    }

    /// Writes one record behind the last.
    pub(super) fn write(
        &mut self,
        reel: &mut Reel,
        record: &Record,
        line: &Line,
    ) -> Result<(), TapeError> {
        let seq = reel.head.len;
        let (tool, key) = (tool(&record.event), record.event.key());
        let (content, hash) = (line.content(), line.hash());
        let sql = "INSERT INTO events (id, at_us, type, call, tool, key, body, content, hash)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let values = params![
            place(reel.no, seq),
            signed(record.at_us),
            record.event.kind(),
            record.event.call().map(|call| signed(call.0)),
            tool,
            key.map(|key| key.to_string()),
            line.body(),
            content.as_bytes(),
            hash.as_bytes(),
        ];
        let done = self.connection.prepare_cached(sql).and_then(|mut it| it.execute(values));
        match done {
            // Somebody took the run over, as nobody should have.
            Err(err) if is_taken(&err) => {
                let found = super::read::head(&self.connection, reel.no)?.len;
                return Err(TapeError::Conflict { expected: seq, found });
            }
            done => drop(done.map_err(Failure::at(seq))?),
        }
        if let Some(tool) = tool
            && !reel.tools.contains(tool)
        {
            let sql = "INSERT OR IGNORE INTO tools (tool, run) VALUES (?1, ?2)";
            let values = params![tool, reel.no];
            let done = self.connection.prepare_cached(sql).and_then(|mut it| it.execute(values));
            done.map_err(Failure::at(seq))?;
            reel.tools.insert(tool.to_owned());
        }
        if let Event::Settled(reply) = &record.event {
            self.refer(reel.no, reply.artifacts.iter().copied())?;
        }
        self.refer(reel.no, mentioned(line.body()))?;
        reel.head = Head { len: seq + 1, hash };
        reel.is_changed |= reel.tally.take(&record.event);
        Ok(())
    }

    /// Notes which artifacts a run refers to.
    fn refer(&self, no: i64, artifacts: impl Iterator<Item = Hash>) -> Result<(), TapeError> {
        let sql = "INSERT OR IGNORE INTO artifacts (hash, run) VALUES (?1, ?2)";
        for hash in artifacts {
            let values = params![hash.as_bytes(), no];
            let done = self.connection.prepare_cached(sql).and_then(|mut it| it.execute(values));
            done.map_err(Failure::at(0))?;
        }
        Ok(())
    }

    /// The first of the records' keys that the run has already.
    fn taken(&self, no: i64, records: &[Record]) -> Result<Option<Key>, TapeError> {
        let sql = "SELECT 1 FROM events WHERE id >> 32 = ?1 AND key = ?2 AND key IS NOT NULL";
        for key in records.iter().filter_map(|record| record.event.key()) {
            let values = params![no, key.to_string()];
            let found = self.connection.prepare_cached(sql).and_then(|mut it| it.exists(values));
            if found.map_err(Failure::at(0))? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    fn keys(&self, no: i64) -> Result<Vec<Key>, TapeError> {
        let sql = "SELECT key FROM events WHERE id >> 32 = ?1 AND key IS NOT NULL";
        let keys = self.connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_map([no], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
        });
        let keys = keys.map_err(Failure::at(0))?;
        keys.iter().map(|text| read_key(text)).collect()
    }

    fn tools(&self, no: i64) -> Result<BTreeSet<String>, TapeError> {
        let sql = "SELECT tool FROM tools WHERE run = ?1";
        let tools = self.connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_map([no], |row| row.get(0))?.collect::<Result<_, _>>()
        });
        tools.map_err(Failure::at(0))
    }
}

impl Reel {
    /// How far the run has come.
    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// Nobody writes to the run any more.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// What came from elsewhere and did not end there is not ours to go on with unasked.
    pub(super) fn came_from_elsewhere(&mut self) {
        if matches!(self.tally.status.as_str(), "running" | "paused") {
            self.tally.become_status("imported");
        }
    }
}

impl Default for Tally {
    fn default() -> Tally {
        let status = RunStatus::Running.as_str().to_owned();
        Tally { status, calls: 0, errors: 0, open: BTreeSet::new() }
    }
}

impl Tally {
    /// Takes an event in. Says whether that changed anything.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        match event {
            Event::Proposed(_) => {
                self.calls += 1;
                true
            }
            Event::Started { call, .. } => self.open.insert(*call),
            Event::Settled(reply) => {
                self.errors += u64::from(reply.is_error);
                self.open.remove(&reply.call) || reply.is_error
            }
            Event::RunEnded { status, .. } => self.become_status(status),
            Event::RunPaused { .. } => self.become_status("paused"),
            Event::RunResumed { .. } => self.become_status("running"),
            Event::RunStarted { .. }
            | Event::Asked { .. }
            | Event::Turn(_)
            | Event::Nudged(_)
            | Event::Said { .. }
            | Event::Recalled { .. }
            | Event::Tools { .. }
            | Event::Judged { .. }
            | Event::CallAsked(_)
            | Event::Answered { .. }
            | Event::Retried { .. }
            | Event::Abandoned { .. }
            | Event::Progress { .. }
            | Event::Emitted { .. }
            | Event::State { .. }
            | Event::Stored { .. }
            | Event::Reconciled { .. } => false,
        }
    }

    fn become_status(&mut self, status: &str) -> bool {
        status.clone_into(&mut self.status);
        true
    }
}

/// The tool that an event is about.
pub(super) fn tool(event: &Event) -> Option<&str> {
    match event {
        Event::Proposed(facts) | Event::Judged { facts, .. } => Some(&facts.name),
        Event::Settled(reply) => Some(&reply.name),
        _ => None,
    }
}

/// The artifacts that a record speaks of by their addresses, wherever it does.
pub(super) fn mentioned(body: &str) -> impl Iterator<Item = Hash> {
    static ADDRESS: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(ARTIFACT));
    ADDRESS.find_iter(body.as_bytes()).filter_map(|at| {
        let hash = at + ARTIFACT.len();
        body.get(hash..hash + HASH_DIGITS)?.parse().ok()
    })
}

/// Where a record lies: its run's number and its place in one integer.
pub(super) fn place(no: i64, seq: u64) -> i64 {
    (no << 32) | signed(seq)
}

/// Columns are signed; what they say is also in the body, unsigned.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The calls that started and did not settle.
fn open(keys: &[Key]) -> BTreeSet<CallNo> {
    let of = |pick: fn(&Key) -> Option<CallNo>| keys.iter().filter_map(pick).collect();
    let started: BTreeSet<CallNo> = of(|key| match key {
        Key::Started(call, _) => Some(*call),
        Key::Settled(_) | Key::Answered(..) => None,
    });
    let settled: BTreeSet<CallNo> = of(|key| match key {
        Key::Settled(call) => Some(*call),
        Key::Started(..) | Key::Answered(..) => None,
    });
    &started - &settled
}

fn read_key(text: &str) -> Result<Key, TapeError> {
    let mut parts = text.split(':');
    let kind = parts.next();
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let key = match (kind, number(), number()) {
        (Some("started"), Some(call), Some(attempt)) => {
            u32::try_from(attempt).ok().map(|attempt| Key::Started(CallNo(call), attempt))
        }
        (Some("settled"), Some(call), None) => Some(Key::Settled(CallNo(call))),
        (Some("answer"), Some(call), Some(question)) => {
            u32::try_from(question).ok().map(|question| Key::Answered(CallNo(call), question))
        }
        _ => None,
    };
    key.ok_or_else(|| TapeError::Corrupt { seq: 0, why: format!("`{text}` is no key") })
}
