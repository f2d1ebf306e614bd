//! Holds a whole tape against itself: its file, its rows, and the records that they speak of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use rusqlite::{Connection, Row, params};

use super::error::Failure;
use super::insert::{Tally, mentioned, signed, tool, unsigned};
use super::read::{self, Reading};
use super::{RunStatus, SqliteTape};
use crate::canon::{Canon, Hash};
use crate::id::RunId;
use crate::tape::{Damage, Event, Head, Line, Record, TapeError, Verified, Verify};

/// The most flaws that SQLite is asked to name.
const FLAWS_MAX: usize = 20;

/// What checking a tape found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Audit {
    /// What is sound amounts to this.
    pub verified: Verified,
    /// What is not: of each run the first break of its records, the first column that says
    /// something else than its record, and its row; and what belongs to no run.
    pub damage: Vec<Damage>,
    /// The heads of runs of which only a tombstone is left.
    pub tombstones: BTreeMap<RunId, Head>,
}

impl SqliteTape {
    /// Checks the whole tape: SQLite's own structures, every record as [`Verify`] does, every
    /// column against the record that it is taken from, and that no record is without its run.
    ///
    /// What is wrong with one run is told as its damage, and the others are still checked. Each
    /// sound line goes through `each` with its run's length up to it, which may refuse it too.
    /// Fails only where the file cannot be opened or read at all.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let tape = tooltape::SqliteTape::open(folder.path().join("tape.db"))?;
    /// let audit = tape.audit(|_, _, _| Ok(()))?;
    /// assert!(audit.damage.is_empty());
    /// # Ok::<(), tooltape::TapeError>(())
    /// ```
    pub fn audit(
        &self,
        mut each: impl FnMut(RunId, u64, &Line) -> Result<(), String>,
    ) -> Result<Audit, TapeError> {
        self.flush();
        let readers = &self.0.readers;
        let (runs, damage) = readers.with(|connection| Ok(listed(connection)))?;
        let audit = Audit { damage, ..Audit::default() };
        let mut auditor = Auditor { audit, verify: Verify::default(), each: &mut each };
        for no in runs {
            let checked = readers.with(|connection| {
                auditor.run(connection, no);
                Ok(())
            });
            auditor.audit.damage.extend(checked.err().map(|err| of_file(err.to_string())));
        }
        Ok(auditor.end())
    }

    /// Checks one run like [`audit`](SqliteTape::audit) does. A run that is not there is sound.
    pub fn audit_run(
        &self,
        run: RunId,
        mut each: impl FnMut(RunId, u64, &Line) -> Result<(), String>,
    ) -> Result<Audit, TapeError> {
        self.flush();
        let (verify, audit) = (Verify::default(), Audit::default());
        let mut auditor = Auditor { audit, verify, each: &mut each };
        self.0.readers.with(|connection| {
            if let Some((no, _)) = read::find(connection, run)? {
                auditor.run(connection, no);
            }
            Ok(())
        })?;
        Ok(auditor.end())
    }
}

struct Auditor<'e> {
    audit: Audit,
    verify: Verify,
    each: &'e mut dyn FnMut(RunId, u64, &Line) -> Result<(), String>,
}

impl Auditor<'_> {
    /// Checks the run of this number.
    fn run(&mut self, connection: &Connection, no: i64) {
        let row = match RunRow::read(connection, no) {
            Ok(row) => row,
            Err(damage) => return self.audit.damage.push(damage),
        };
        let mut told = Told::default();
        let mut head = Head::empty();
        if let Err(why) = self.records(connection, &row, &mut told, &mut head) {
            return self.audit.damage.push(at(row.id, head.len, why));
        }
        match row.erased {
            Some(erased) if head.len == 0 => drop(self.audit.tombstones.insert(row.id, erased)),
            Some(_) | None => {}
        }
        if let Err(why) = row.check(connection, &told, head) {
            self.audit.damage.push(at(row.id, head.len, why));
        }
    }

    /// Checks the records of a run, and gathers what they tell; stops at the first that is broken.
    fn records(
        &mut self,
        connection: &Connection,
        run: &RunRow,
        told: &mut Told,
        head: &mut Head,
    ) -> Result<(), String> {
        let sql = "SELECT seq, body, content, hash, at_us, type, call, tool, key FROM events
                   WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
        let mut statement = connection.prepare_cached(sql).map_err(|err| err.to_string())?;
        let mut rows = statement.query(read::bounds(run.no)).map_err(|err| err.to_string())?;
        let mut is_column_damaged = false;
        while let Some(row) = rows.next().map_err(|err| err.to_string())? {
            let reading = Reading { run: run.id, head: *head, is_erased: run.erased.is_some() };
            let line = reading.line(row).map_err(why)?;
            self.verify.line(&line).map_err(|damage| damage.why)?;
            (self.each)(run.id, head.len + 1, &line)?;
            let record = match line.is_erased() {
                true => None,
                false => Some(line.record().map_err(why)?),
            };
            // The record itself is sound, and so is what comes behind it.
            if let Err(why) = columns(row, &line, record.as_ref())
                && !is_column_damaged
            {
                is_column_damaged = true;
                self.audit.damage.push(at(run.id, head.len, why));
            }
            told.take(&line, record.as_ref());
            *head = Head { len: head.len + 1, hash: line.hash() };
        }
        Ok(())
    }

    fn end(self) -> Audit {
        let verified = self.verify.end(&[]);
        Audit { verified: verified.expect("no head was asked for"), ..self.audit }
    }
}

/// The numbers of all runs, the newest first, and what is wrong with the file as such.
fn listed(connection: &Connection) -> (Vec<i64>, Vec<Damage>) {
    let (mut runs, mut damage) = (Vec::new(), Vec::new());
    let mut note = |done: Result<(), TapeError>| {
        damage.extend(done.err().map(|err| of_file(why(err))));
    };
    // What is read before a break counts.
    note(numbers(connection, "SELECT no FROM runs ORDER BY no DESC", &mut runs));
    let mut flaws = Vec::new();
    note(integrity(connection, &mut flaws));
    let known: BTreeSet<i64> = runs.iter().copied().collect();
    let mut orphans = Vec::new();
    note(orphaned(connection, &known, &mut orphans));
    for table in ["tools", "artifacts"] {
        let mut strays = Vec::new();
        let sql = format!("SELECT DISTINCT run FROM {table}");
        note(numbers(connection, &sql, &mut strays));
        let strays = strays.into_iter().filter(|no| !known.contains(no));
        flaws
            .extend(strays.map(|no| format!("`{table}` speaks of run number {no}: there is none")));
    }
    damage.extend(flaws.into_iter().map(of_file));
    damage.extend(orphans);
    (runs, damage)
}

fn numbers(connection: &Connection, sql: &str, into: &mut Vec<i64>) -> Result<(), TapeError> {
    let mut statement = connection.prepare_cached(sql).map_err(Failure::at(0))?;
    let mut rows = statement.query([]).map_err(Failure::at(0))?;
    while let Some(row) = rows.next().map_err(Failure::at(0))? {
        into.push(row.get(0).map_err(Failure::at(0))?);
    }
    Ok(())
}

/// What SQLite finds wrong with its own structures.
fn integrity(connection: &Connection, flaws: &mut Vec<String>) -> Result<(), TapeError> {
    let sql = format!("PRAGMA integrity_check({FLAWS_MAX})");
    let mut statement = connection.prepare(&sql).map_err(Failure::at(0))?;
    let mut rows = statement.query([]).map_err(Failure::at(0))?;
    while let Some(row) = rows.next().map_err(Failure::at(0))? {
        let found: String = row.get(0).map_err(Failure::at(0))?;
        flaws.extend((found != "ok").then(|| format!("SQLite says of the file: {found}")));
    }
    Ok(())
}

/// Records whose run has no row. Going from run to run, it looks at one record of each.
fn orphaned(
    connection: &Connection,
    known: &BTreeSet<i64>,
    damage: &mut Vec<Damage>,
) -> Result<(), TapeError> {
    let next = "SELECT id, body FROM events WHERE id > ?1 ORDER BY id LIMIT 1";
    let mut next = connection.prepare_cached(next).map_err(Failure::at(0))?;
    let mut after = i64::MIN;
    loop {
        let mut rows = next.query([after]).map_err(Failure::at(0))?;
        let Some(row) = rows.next().map_err(Failure::at(0))? else { return Ok(()) };
        let id: i64 = row.get(0).map_err(Failure::at(0))?;
        let (no, seq) = (id >> 32, unsigned(id & i64::from(u32::MAX)));
        after = read::bounds(no).1;
        if known.contains(&no) {
            continue;
        }
        let sql = "SELECT count(*) FROM events WHERE id BETWEEN ?1 AND ?2";
        let count = connection.query_row(sql, read::bounds(no), |row| row.get::<_, i64>(0));
        let count = count.map_err(Failure::at(seq))?;
        let body: Option<String> = row.get(1).unwrap_or_default();
        let run = body.and_then(|body| Record::read(&body).ok()).map(|record| record.run);
        let why =
            format!("`runs` has no row of number {no}, and `events` has {count} records of it");
        damage.push(Damage { run, seq, line: None, why, sound: 0 });
    }
}

/// A run as its row has it.
struct RunRow {
    no: i64,
    id: RunId,
    status: String,
    started_us: i64,
    parent: Option<String>,
    thread: Option<String>,
    note: Option<String>,
    calls: i64,
    errors: i64,
    open: i64,
    imported: i64,
    erased: Option<Head>,
}

impl RunRow {
    fn read(connection: &Connection, no: i64) -> Result<RunRow, Damage> {
        let sql = "SELECT id, status, started_us, parent, thread, note, calls, errors, open,
                   imported, erased_us, erased_len, erased_head FROM runs WHERE no = ?1";
        let mut run = None;
        let mut read = |row: &Row<'_>| {
            let text: String = row.get(0)?;
            let Ok(id) = text.parse() else { return Ok(Err(text)) };
            run = Some(id);
            let (len, hash): (Option<i64>, Option<[u8; 32]>) = (row.get(11)?, row.get(12)?);
            let erased_us: Option<i64> = row.get(10)?;
            let erased = len.zip(hash).filter(|_| erased_us.is_some());
            Ok(Ok(RunRow {
                no,
                id,
                status: row.get(1)?,
                started_us: row.get(2)?,
                parent: row.get(3)?,
                thread: row.get(4)?,
                note: row.get(5)?,
                calls: row.get(6)?,
                errors: row.get(7)?,
                open: row.get(8)?,
                imported: row.get(9)?,
                erased: erased.map(|(len, hash)| Head { len: unsigned(len), hash: hash.into() }),
            }))
        };
        let row = connection.prepare_cached(sql).and_then(|mut it| it.query_row([no], &mut read));
        let why = match row {
            Ok(Ok(row)) => return Ok(row),
            Ok(Err(text)) => format!("row {no} of `runs` has the id `{text}`, which is none"),
            Err(err) => format!("row {no} of `runs` cannot be read: {err}"),
        };
        Err(Damage { run, ..of_file(why) })
    }

    /// Whether the row says what the records say.
    fn check(&self, connection: &Connection, told: &Told, head: Head) -> Result<(), String> {
        match self.erased {
            None if head.len == 0 => {
                return Err("it has no records, and no tombstone says that they were erased".into());
            }
            Some(erased) if head != erased && head.len > 0 => {
                let (found, said) = (head.len, erased.len);
                return Err(format!("it has {found} records, and its tombstone is of {said}"));
            }
            Some(_) | None => {}
        }
        let status = match (self.erased, &*told.tally.status, self.imported) {
            (Some(_), ..) => RunStatus::Erased.as_str(),
            (None, "running" | "paused", 1) if self.status == "imported" => "imported",
            (None, status, _) => status,
        };
        same("status", Some(&*self.status), Some(status))?;
        if head.len > 0 {
            same("started_us", Some(self.started_us), told.started_us)?;
        }
        let is_bare = self.erased.is_some();
        if !(is_bare && self.parent.is_none()) && head.len > 0 {
            same("parent", self.parent.as_deref(), told.parent.as_deref())?;
        }
        same("thread", self.thread.as_deref(), told.thread.as_deref())?;
        let note = self.note.as_deref().map(|note| canonical(note).unwrap_or(note.to_owned()));
        same("note", note, told.note.clone())?;
        if !is_bare {
            same("calls", Some(self.calls), Some(signed(told.tally.calls)))?;
            same("errors", Some(self.errors), Some(signed(told.tally.errors)))?;
            same("open", Some(self.open), Some(signed(told.tally.open.len() as u64)))?;
        }
        self.check_lists(connection, told)
    }

    /// Whether the run is found by the tools and the artifacts that it speaks of.
    fn check_lists(&self, connection: &Connection, told: &Told) -> Result<(), String> {
        let listed = |sql: &str| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![self.no], |row| row.get(0))?;
            rows.collect::<Result<BTreeSet<String>, _>>()
        };
        let tools = listed("SELECT tool FROM tools WHERE run = ?1");
        let tools = tools.map_err(|err| err.to_string())?;
        let artifacts = listed("SELECT lower(hex(hash)) FROM artifacts WHERE run = ?1");
        let artifacts = artifacts.map_err(|err| err.to_string())?;
        let told_artifacts = told.artifacts.iter().map(ToString::to_string).collect();
        for (table, found, told) in
            [("tools", tools, &told.tools), ("artifacts", artifacts, &told_artifacts)]
        {
            if let Some(name) = told.difference(&found).next() {
                return Err(format!("its records speak of `{name}`, and `{table}` does not"));
            }
            if let Some(name) = found.difference(told).next() {
                return Err(format!("`{table}` speaks of `{name}`, and its records do not"));
            }
        }
        Ok(())
    }
}

/// What the records of a run tell of it.
#[derive(Default)]
struct Told {
    tally: Tally,
    started_us: Option<i64>,
    parent: Option<String>,
    thread: Option<String>,
    note: Option<String>,
    tools: BTreeSet<String>,
    artifacts: BTreeSet<Hash>,
}

impl Told {
    fn take(&mut self, line: &Line, record: Option<&Record>) {
        let is_first = self.started_us.is_none();
        let Some(record) = record else {
            if is_first {
                let stamps = stamps(line);
                self.started_us = stamps["at_us"].as_u64().map(signed);
                self.parent = stamps["parent"]["run"].as_str().map(str::to_owned);
            }
            return;
        };
        self.started_us.get_or_insert(signed(record.at_us));
        self.tools.extend(tool(&record.event).map(str::to_owned));
        self.artifacts.extend(mentioned(line.body()));
        self.tally.take(&record.event);
        match &record.event {
            Event::RunStarted { parent, thread, note, .. } if is_first => {
                self.parent = parent.as_ref().map(|parent| parent.run.to_string());
                self.thread = thread.as_deref().map(str::to_owned);
                self.note = note.as_ref().and_then(|note| canonical(&note.to_string()));
            }
            Event::Settled(reply) => self.artifacts.extend(reply.artifacts.iter().copied()),
            _ => {}
        }
    }
}

/// Whether the columns beside a record say what it says.
fn columns(row: &Row<'_>, line: &Line, record: Option<&Record>) -> Result<(), String> {
    let event = record.map(|record| &record.event);
    let at_us = match record {
        Some(record) => Some(record.at_us),
        None => stamps(line)["at_us"].as_u64(),
    };
    let integer = |column| row.get::<_, Option<i64>>(column).map_err(|err| err.to_string());
    let text = |column| row.get::<_, Option<String>>(column).map_err(|err| err.to_string());
    same("at_us", integer("at_us")?, at_us.map(signed))?;
    same("type", text("type")?.as_deref(), Some(event.map_or("erased", Event::kind)))?;
    same("call", integer("call")?, event.and_then(Event::call).map(|call| signed(call.0)))?;
    same("tool", text("tool")?.as_deref(), event.and_then(tool))?;
    same("key", text("key")?, event.and_then(Event::key).map(|key| key.to_string()))
}

fn same<T: PartialEq + Display>(
    column: &str,
    found: Option<T>,
    told: Option<T>,
) -> Result<(), String> {
    let shown = |value: &Option<T>| value.as_ref().map_or("nothing".into(), |it| format!("`{it}`"));
    match found == told {
        true => Ok(()),
        false => Err(format!(
            "the column `{column}` says {}, and what was recorded says {}",
            shown(&found),
            shown(&told)
        )),
    }
}

/// What is left of an erased record.
fn stamps(line: &Line) -> serde_json::Value {
    serde_json::from_str(line.body()).unwrap_or_default()
}

fn canonical(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    Canon::of(&value).ok().map(|canon| canon.as_str().to_owned())
}

fn why(err: TapeError) -> String {
    match err {
        TapeError::Corrupt { why, .. } => why,
        err => err.to_string(),
    }
}

fn at(run: RunId, seq: u64, why: String) -> Damage {
    Damage { run: Some(run), seq, line: None, why, sound: seq }
}

fn of_file(why: String) -> Damage {
    Damage { run: None, seq: 0, line: None, why, sound: 0 }
}
