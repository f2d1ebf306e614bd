//! Who was asked on behalf of a process, written down before anybody is.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tooltape::scope::Site;

use super::{CONNECTIONS_SHOWN_MAX, Connection};

/// The verdict on what is let through.
const ALLOWED: &str = "allowed";
/// The verdict where there is none yet.
const PENDING: &str = "pending";

/// The connections of one process, in the order in which it asked for them.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Book>);

#[derive(Default)]
struct Book {
    /// As many allowed and as many refused ones as a result lists, and all without a verdict.
    lines: BTreeMap<u64, Connection>,
    /// How many were asked for.
    asked: u64,
    is_closed: bool,
}

/// A connection that is written down.
pub(super) struct Line<'l> {
    ledger: &'l Ledger,
    number: u64,
}

impl Ledger {
    /// Writes down that this host is to be asked; nothing, where it is too late to.
    pub(super) fn begin(&self, site: &Site) -> Option<Line<'_>> {
        self.write(site.host.to_string(), site.port.get())
    }

    /// Writes down what was no question to any host.
    pub(super) fn refuse(&self, verdict: &str) {
        if let Some(line) = self.write(String::new(), 0) {
            line.refuse(verdict);
        }
    }

    /// What was asked for, and how much more than that. Nothing can be asked for any more.
    ///
    /// Of too many, those are left out first that were refused: who asks in vain hides nothing.
    pub(super) fn close(&self) -> (Vec<Connection>, u64) {
        let mut book = self.book();
        book.is_closed = true;
        let mut lines: Vec<_> = mem::take(&mut book.lines).into_iter().collect();
        lines.sort_by_key(|(number, connection)| (rank(&connection.verdict), *number));
        lines.truncate(CONNECTIONS_SHOWN_MAX);
        lines.sort_by_key(|(number, _)| *number);
        let left_out = book.asked - lines.len() as u64;
        (lines.into_iter().map(|(_, connection)| connection).collect(), left_out)
    }

    fn write(&self, host: String, port: u16) -> Option<Line<'_>> {
        let mut book = self.book();
        if book.is_closed {
            return None;
        }
        let number = book.asked;
        book.asked += 1;
        let connection = Connection { host, port, bytes: 0, verdict: PENDING.to_owned() };
        book.lines.insert(number, connection);
        Some(Line { ledger: self, number })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line<'_> {
    /// Lets it through, unless it is too late to.
    pub(super) fn allow(&self) -> bool {
        self.settle(ALLOWED)
    }

    pub(super) fn refuse(&self, verdict: &str) {
        self.settle(verdict);
    }

    /// Adds bytes that are passed on.
    pub(super) fn add(&self, bytes: usize) {
        if let Some(connection) = self.ledger.book().lines.get_mut(&self.number) {
            connection.bytes += bytes as u64;
        }
    }

    fn settle(&self, verdict: &str) -> bool {
        let mut book = self.ledger.book();
        if let Some(connection) = book.lines.get_mut(&self.number) {
            verdict.clone_into(&mut connection.verdict);
        }
        let is_alike = |it: &&Connection| rank(&it.verdict) == rank(verdict);
        if book.lines.values().filter(is_alike).count() > CONNECTIONS_SHOWN_MAX {
            book.lines.remove(&self.number);
        }
        !book.is_closed
    }
}

/// What is shown first, where not everything is.
fn rank(verdict: &str) -> u8 {
    match verdict {
        ALLOWED => 0,
        PENDING => 1,
        _ => 2,
    }
}
