//! Cuts a text into pages that fit a screen, so that no part of it is out of sight unseen.

use std::io;

use terminal_size::{Height, Width, terminal_size_of};

use crate::card::Columns;

/// The fewest columns that a screen is taken to have.
const COLUMNS_MIN: usize = 40;
/// The fewest rows that a screen is taken to have.
const ROWS_MIN: usize = 8;
/// The rows below a page: the question, which may take several.
const QUESTION_ROWS: usize = 4;

/// How much a screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) columns: Columns,
    rows: usize,
}

impl Screen {
    /// The screen that questions are shown on; one of the usual size, where it does not say.
    pub(super) fn of_stderr() -> Screen {
        let (columns, rows) = match terminal_size_of(io::stderr()) {
            Some((Width(columns @ 1..), Height(rows @ 1..))) => (columns.into(), rows.into()),
            Some(_) | None => (80, 24),
        };
        Screen { columns: Columns(columns.max(COLUMNS_MIN)), rows: rows.max(ROWS_MIN) }
    }

    /// The pages of a text whose lines are not wider than the screen.
    pub(super) fn pages(self, text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.split('\n').collect();
        lines.chunks(self.rows - QUESTION_ROWS).map(|page| page.join("\n")).collect()
    }
}
