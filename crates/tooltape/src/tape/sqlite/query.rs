//! Finds runs, and says of each what somebody wants to know first.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rusqlite::types::Value as Cell;
use rusqlite::{Connection, Row, params, params_from_iter};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::error::Failure;
use super::insert::{signed, unsigned};
use super::{lock, read};
use crate::canon::Hash;
use crate::id::{CallNo, RunId};
use crate::tape::{Head, InDoubt, TapeError};

/// The most runs that one query returns.
pub const RUNS_MAX: usize = 10_000;

/// How deeply nested runs are followed.
const DEPTH_MAX: u32 = 64;

/// Which runs to list, the newest first. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunsQuery {
    /// The one run.
    pub id: Option<RunId>,
    /// How they are.
    pub status: Option<RunStatus>,
    /// A tool that they called, by its name.
    pub tool: Option<String>,
    /// The moment they started at or after, in microseconds since the Unix epoch.
    pub since_us: Option<u64>,
    /// The moment they started before.
    pub until_us: Option<u64>,
    /// The run that started them.
    pub parent: Option<RunId>,
    /// The run that they are older than: the last one of the page before.
    pub before: Option<RunId>,
    /// How many at most; [`RUNS_MAX`] unless told.
    pub limit: Option<usize>,
}

impl RunsQuery {
    /// All runs.
    pub fn all() -> RunsQuery {
        RunsQuery::default()
    }
}

/// How a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunStatus {
    /// It is being written.
    Running,
    /// Whoever wrote it is gone, and it did not end.
    Crashed,
    /// It waits for somebody.
    Paused,
    /// It ended well.
    Ended,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It came from elsewhere and did not end there. Nobody here knows whether it still runs.
    Imported,
    /// Its records, or what they said, were erased.
    Erased,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [RunStatus; 8] = [
        RunStatus::Running,
        RunStatus::Crashed,
        RunStatus::Paused,
        RunStatus::Ended,
        RunStatus::Failed,
        RunStatus::Cancelled,
        RunStatus::Imported,
        RunStatus::Erased,
    ];

    /// The status as text.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Crashed => "crashed",
            RunStatus::Paused => "paused",
            RunStatus::Ended => "ended",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Imported => "imported",
            RunStatus::Erased => "erased",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text is not the status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the status of a run, expected `running`, `crashed`, `paused`, `ended`, `failed`, \
     `cancelled`, `imported` or `erased`"
)]
pub struct NotAStatus;

impl FromStr for RunStatus {
    type Err = NotAStatus;

    fn from_str(text: &str) -> Result<RunStatus, NotAStatus> {
        RunStatus::ALL.into_iter().find(|status| status.as_str() == text).ok_or(NotAStatus)
    }
}

impl Serialize for RunStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What somebody wants to know first of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// The run.
    pub id: RunId,
    /// How it is.
    pub status: RunStatus,
    /// When it started, in microseconds since the Unix epoch.
    pub started_us: u64,
    /// When its last record was written.
    pub last_us: u64,
    /// The names of the tools that it called, in order.
    pub tools: Vec<String>,
    /// How many calls were proposed.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// How many records it has.
    pub len: u64,
    /// The hash of the last one.
    pub head: Hash,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// How many calls started and did not settle; while it runs, they are only under way.
    pub in_doubt: u64,
    /// Whether records of it came from a file: what it says of approvals and folders is not ours.
    pub imported: bool,
    /// The thread that the host named.
    pub thread: Option<String>,
    /// What the host wanted kept with it.
    pub note: Option<Value>,
}

/// Lists runs.
pub(super) fn runs(
    connection: &Connection,
    tape: &Path,
    query: &RunsQuery,
) -> Result<Vec<RunSummary>, TapeError> {
    let limit = query.limit.unwrap_or(RUNS_MAX).min(RUNS_MAX);
    let (sql, values) = select(query);
    let mut statement = connection.prepare_cached(&sql).map_err(Failure::at(0))?;
    let mut rows = statement.query(params_from_iter(values)).map_err(Failure::at(0))?;
    let mut runs = Vec::new();
    while runs.len() < limit {
        let Some(row) = rows.next().map_err(Failure::at(0))? else { break };
        let run = summary(connection, tape, row)?;
        // Whether a run still runs is not in the file.
        if query.status.is_none_or(|status| status == run.status) {
            runs.push(run);
        }
    }
    Ok(runs)
}

fn select(query: &RunsQuery) -> (String, Vec<Cell>) {
    let mut sql =
        "SELECT no, id, status, started_us, calls, errors, open, writer, imported, parent,
        thread, note, erased_us, erased_len, erased_head FROM runs WHERE TRUE"
            .to_owned();
    let mut values = Vec::new();
    let mut and = |condition: &str, value: Option<Cell>| {
        if let Some(value) = value {
            sql.push_str(" AND ");
            sql.push_str(condition);
            values.push(value);
        }
    };
    let status = query.status.map(|status| match status {
        // A run that crashed had no time to say so.
        RunStatus::Crashed => RunStatus::Running.as_str(),
        status => status.as_str(),
    });
    and("status = ?", status.map(|status| Cell::Text(status.into())));
    let tool = query.tool.clone().map(Cell::Text);
    and("no IN (SELECT run FROM tools WHERE tool = ?)", tool);
    and("started_us >= ?", query.since_us.map(|us| Cell::Integer(signed(us))));
    and("started_us < ?", query.until_us.map(|us| Cell::Integer(signed(us))));
    let text = |run: Option<RunId>| run.map(|run| Cell::Text(run.to_string()));
    and("id = ?", text(query.id));
    and("parent = ?", text(query.parent));
    and("(started_us, no) < (SELECT started_us, no FROM runs WHERE id = ?)", text(query.before));
    sql.push_str(" ORDER BY started_us DESC, no DESC");
    (sql, values)
}

fn summary(connection: &Connection, tape: &Path, row: &Row<'_>) -> Result<RunSummary, TapeError> {
    let corrupt = |what: &str| TapeError::Corrupt { seq: 0, why: format!("a run has {what}") };
    let no: i64 = row.get("no").map_err(Failure::at(0))?;
    let count = |name: &str| row.get::<_, i64>(name).map(unsigned).map_err(Failure::at(0));
    let text = |name: &str| row.get::<_, Option<String>>(name).map_err(Failure::at(0));
    let writer: Option<i64> = row.get("writer").map_err(Failure::at(0))?;
    let status = text("status")?.and_then(|status| status.parse().ok());
    let status = match status.ok_or_else(|| corrupt("an unknown status"))? {
        RunStatus::Running => match writer {
            Some(writer) if lock::lives(connection, tape, writer)? => RunStatus::Running,
            Some(_) | None => RunStatus::Crashed,
        },
        status => status,
    };
    let (id, parent, note) = (text("id")?, text("parent")?, text("note")?);
    let id = id.and_then(|id| id.parse().ok()).ok_or_else(|| corrupt("an id that is none"))?;
    let erased: Option<[u8; 32]> = row.get("erased_head").map_err(Failure::at(0))?;
    let (head, last_us) = match erased {
        Some(hash) => (Head { len: count("erased_len")?, hash: hash.into() }, count("erased_us")?),
        None => last(connection, no)?,
    };
    let started_us = count("started_us")?;
    Ok(RunSummary {
        id,
        status,
        started_us,
        last_us: last_us.max(started_us),
        tools: tools(connection, no)?,
        calls: count("calls")?,
        errors: count("errors")?,
        len: head.len,
        head: head.hash,
        parent: parent.and_then(|parent| parent.parse().ok()),
        in_doubt: count("open")?,
        imported: count("imported")? != 0,
        thread: text("thread")?,
        note: note.and_then(|note| serde_json::from_str(&note).ok()),
    })
}

/// The head of a run, and when its last record was written.
fn last(connection: &Connection, no: i64) -> Result<(Head, u64), TapeError> {
    let head = read::head(connection, no)?;
    let sql = "SELECT at_us FROM events WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1";
    let at_us = connection.prepare_cached(sql).and_then(|mut statement| {
        let rows = statement.query_map(read::bounds(no), |row| row.get::<_, i64>(0))?;
        rows.collect::<Result<Vec<_>, _>>()
    });
    let at_us = at_us.map_err(Failure::at(head.len))?;
    Ok((head, at_us.first().copied().map_or(0, unsigned)))
}

fn tools(connection: &Connection, no: i64) -> Result<Vec<String>, TapeError> {
    let sql = "SELECT tool FROM tools WHERE run = ?1 ORDER BY tool";
    let tools = connection.prepare_cached(sql).and_then(|mut statement| {
        statement.query_map([no], |row| row.get(0))?.collect::<Result<_, _>>()
    });
    tools.map_err(Failure::at(0))
}

/// The runs whose id begins like this, the newest first; `last` is the newest of all.
pub(super) fn find(connection: &Connection, text: &str) -> Result<Vec<RunId>, TapeError> {
    let (sql, value) = match text {
        "last" => ("SELECT id FROM runs ORDER BY started_us DESC, no DESC LIMIT 1", ""),
        // Everything else would mean something to `GLOB`.
        text if !text.chars().all(|char| char.is_ascii_hexdigit() || char == '-') => {
            return Ok(Vec::new());
        }
        text => (
            "SELECT id FROM runs WHERE id GLOB ?1 || '*' ORDER BY started_us DESC, no DESC
             LIMIT 100",
            text,
        ),
    };
    let value = value.to_ascii_lowercase();
    let values = if text == "last" { vec![] } else { vec![value] };
    let ids = connection.prepare_cached(sql).and_then(|mut statement| {
        let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
        rows.collect::<Result<Vec<String>, _>>()
    });
    let ids = ids.map_err(Failure::at(0))?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// The calls that started and did not settle, of a run and of all below it.
pub(super) fn in_doubt(connection: &Connection, run: RunId) -> Result<Vec<InDoubt>, TapeError> {
    let sql = "WITH RECURSIVE below(no, id, depth) AS (
                   SELECT no, id, 0 FROM runs WHERE id = ?1
                   UNION
                   SELECT runs.no, runs.id, depth + 1 FROM below JOIN runs ON runs.parent = below.id
                   WHERE depth < ?2),
               tree AS (SELECT no, id, min(depth) AS depth FROM below GROUP BY no)
               SELECT tree.id, it.call FROM tree JOIN events AS it
                   ON it.id >> 32 = tree.no AND it.key GLOB 'started:*' AND it.key IS NOT NULL
               WHERE NOT EXISTS (SELECT 1 FROM events AS end WHERE end.id >> 32 = tree.no
                   AND end.key = 'settled:' || it.call AND end.key IS NOT NULL)
               GROUP BY tree.no, it.call ORDER BY tree.depth, tree.no, it.call";
    let calls = connection.prepare_cached(sql).and_then(|mut statement| {
        let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        statement
            .query_map(params![run.to_string(), DEPTH_MAX], row)?
            .collect::<Result<Vec<_>, _>>()
    });
    let calls = calls.map_err(Failure::at(0))?.into_iter();
    let calls = calls.filter_map(|(run, call)| {
        Some(InDoubt { run: run.parse().ok()?, call: CallNo(unsigned(call)) })
    });
    Ok(calls.collect())
}

/// The artifacts that some run refers to.
pub(super) fn artifacts(connection: &Connection) -> Result<BTreeSet<Hash>, TapeError> {
    let hashes = connection.prepare_cached("SELECT DISTINCT hash FROM artifacts").and_then(
        |mut statement| {
            let rows = statement.query_map([], |row| row.get::<_, [u8; 32]>(0))?;
            rows.map(|hash| hash.map(Hash::from)).collect::<Result<_, _>>()
        },
    );
    hashes.map_err(Failure::at(0))
}
