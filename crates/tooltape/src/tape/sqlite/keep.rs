//! Takes in runs that were written elsewhere, and erases those that are no longer wanted.

use rusqlite::params;

use super::error::Failure;
use super::insert::{place, signed};
use super::lock;
use super::read;
use super::writer::Writer;
use crate::id::RunId;
use crate::tape::{Head, Line, TapeError};

/// How many records are held while their payloads are erased.
const ERASED_AT_ONCE: usize = 1_000;

/// What to erase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erase {
    /// What its records say. Their hashes stay, so that it can be seen that there was something.
    Payloads,
    /// Its records. A tombstone with its head stays.
    Records,
}

impl Writer {
    /// Takes in lines that follow one another within each run. What is here already must be the
    /// same. Says how many were new.
    pub(super) fn import(&mut self, lines: &[Line]) -> Result<usize, TapeError> {
        let imported = self.transact(|writer| {
            let mut new = 0;
            let mut rest = lines;
            while let Some(first) = rest.first() {
                let kind = (first.place()?.0, first.is_erased());
                let is_alike = |line: &&Line| {
                    line.place().is_ok_and(|(run, _)| (run, line.is_erased()) == kind)
                };
                let len = rest.iter().take_while(is_alike).count();
                new += match kind {
                    (run, false) => writer.import_run(run, &rest[..len])?,
                    (run, true) => writer.import_erased(run, &rest[..len])?,
                };
                rest = &rest[len..];
            }
            Ok(new)
        });
        self.settle(imported)
    }

    fn import_run(&mut self, run: RunId, lines: &[Line]) -> Result<usize, TapeError> {
        let records = lines.iter().map(Line::record).collect::<Result<Vec<_>, _>>()?;
        let mut reel = self.take_in(run, &records[0])??;
        let mut new = 0;
        for (record, line) in records.iter().zip(lines) {
            let head = reel.head();
            if record.seq < head.len {
                self.is_here(run, line, head)?;
                continue;
            }
            head.then_line(line)?;
            self.write(&mut reel, record, line)?;
            new += 1;
        }
        if new > 0 {
            reel.came_from_elsewhere();
            let mark = "UPDATE runs SET imported = 1 WHERE id = ?1";
            let marked = self.connection.execute(mark, [run.to_string()]);
            marked.map_err(Failure::at(0))?;
        }
        reel.end();
        self.update(&mut reel)?;
        Ok(new)
    }

    /// Takes in what is left of a run whose payloads were erased.
    fn import_erased(&mut self, run: RunId, lines: &[Line]) -> Result<usize, TapeError> {
        let (no, mut head, is_erased) = match read::find(&self.connection, run)? {
            Some((no, Some(head))) => (no, head, true),
            Some((no, None)) => (no, read::head(&self.connection, no)?, false),
            None => (self.begin_erased(run, at_us(&lines[0]))?, Head::empty(), true),
        };
        let mut new = 0;
        for line in lines {
            let (_, seq) = line.place()?;
            if seq < head.len {
                self.is_here(run, line, head)?;
                continue;
            }
            if !is_erased {
                // A run does not go on behind what nobody can read.
                return Err(TapeError::Erased { seq });
            }
            head = head.then_line(line)?;
            let sql = "INSERT INTO events (id, at_us, type, body, content, hash)
                       VALUES (?1, ?2, 'erased', ?3, ?4, ?5)";
            let (content, hash) = (line.content(), line.hash());
            let (id, at_us) = (place(no, seq), signed(at_us(line)));
            let values = params![id, at_us, line.body(), content.as_bytes(), hash.as_bytes()];
            let done = self.connection.prepare_cached(sql).and_then(|mut it| it.execute(values));
            done.map_err(Failure::at(seq))?;
            new += 1;
        }
        if new > 0 {
            let row = "UPDATE runs SET erased_us = ?2, erased_len = ?3, erased_head = ?4
                       WHERE no = ?1";
            let last_us = signed(lines.last().map_or(0, at_us));
            let values = params![no, last_us, signed(head.len), head.hash.as_bytes()];
            self.connection.execute(row, values).map_err(Failure::at(0))?;
        }
        Ok(new)
    }

    /// Makes the row of an erased run that has no records.
    fn begin_erased(&self, run: RunId, at_us: u64) -> Result<i64, TapeError> {
        let row = "INSERT INTO runs (id, status, started_us) VALUES (?1, 'erased', ?2)";
        let values = params![run.to_string(), signed(at_us)];
        self.connection.execute(row, values).map_err(Failure::at(0))?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Whether a run has this very line.
    fn is_here(&self, run: RunId, line: &Line, head: Head) -> Result<(), TapeError> {
        let (_, seq) = line.place()?;
        let here = read::lines(&self.connection, run, seq, 1)?;
        match here.first() {
            Some(here) if here.hash() == line.hash() => Ok(()),
            Some(_) | None => Err(TapeError::Conflict { expected: seq, found: head.len }),
        }
    }

    /// Erases a run that nobody writes to. Says what its head was.
    pub(super) fn erase(
        &mut self,
        run: RunId,
        what: Erase,
        at_us: u64,
    ) -> Result<Option<Head>, TapeError> {
        let erased = self.transact(|writer| {
            let Some((no, erased)) = read::find(&writer.connection, run)? else {
                return Ok(None);
            };
            writer.is_free(no)?;
            let head = match erased {
                Some(head) => head,
                None => read::head(&writer.connection, no)?,
            };
            match what {
                Erase::Payloads => writer.erase_payloads(run, no)?,
                Erase::Records => {
                    let sql = "DELETE FROM events WHERE id BETWEEN ?1 AND ?2";
                    writer.connection.execute(sql, read::bounds(no)).map_err(Failure::at(0))?;
                }
            }
            let row = "UPDATE runs SET status = 'erased', note = NULL, thread = NULL,
                       writer = NULL, erased_us = ?2, erased_len = ?3, erased_head = ?4
                       WHERE no = ?1";
            let values = params![no, signed(at_us), signed(head.len), head.hash.as_bytes()];
            writer.connection.execute(row, values).map_err(Failure::at(0))?;
            for sql in ["DELETE FROM artifacts WHERE run = ?1", "DELETE FROM tools WHERE run = ?1"]
            {
                writer.connection.execute(sql, [no]).map_err(Failure::at(0))?;
            }
            Ok(Some(head))
        });
        let erased = self.settle(erased)?;
        // What was erased is not to be found in the log either, unless somebody is reading there.
        let copied = self.truncate().map(drop);
        self.settle(copied)?;
        Ok(erased)
    }

    /// Leaves of each record its stamps and its hashes, which still hold the chain.
    fn erase_payloads(&self, run: RunId, no: i64) -> Result<(), TapeError> {
        let sql = "UPDATE events SET type = 'erased', call = NULL, tool = NULL, key = NULL,
                   body = ?2 WHERE id = ?1";
        let mut from = 0;
        loop {
            let lines = read::lines(&self.connection, run, from, ERASED_AT_ONCE)?;
            if lines.is_empty() {
                return Ok(());
            }
            for (seq, line) in (from..).zip(&lines) {
                let left = line.erase();
                let values = params![place(no, seq), left.body()];
                let erased =
                    self.connection.prepare_cached(sql).and_then(|mut it| it.execute(values));
                erased.map_err(Failure::at(seq))?;
            }
            from += lines.len() as u64;
        }
    }

    /// Refuses while somebody writes to the run.
    fn is_free(&self, no: i64) -> Result<(), TapeError> {
        let sql = "SELECT writer FROM runs WHERE no = ?1";
        let writer: Option<i64> =
            self.connection.query_row(sql, [no], |row| row.get(0)).map_err(Failure::at(0))?;
        match writer {
            Some(writer) if lock::lives(&self.connection, &self.path, writer)? => {
                Err(TapeError::Locked { holder: lock::holder(&self.connection, writer)? })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What the disk refused poisons the tape, what the caller got wrong does not.
    fn settle<T>(&mut self, done: Result<T, TapeError>) -> Result<T, TapeError> {
        if let Err(err @ TapeError::Io { .. }) = &done {
            self.poison(err);
        }
        done
    }
}

/// When a record was written, which is left of it where it was erased.
fn at_us(line: &Line) -> u64 {
    let stamps = serde_json::from_str::<serde_json::Value>(line.body()).unwrap_or_default();
    stamps["at_us"].as_u64().unwrap_or(0)
}
