//! The lines that a search finds in one file.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::{Line, Show};

/// The most bytes of a line that are shown.
pub const GREP_LINE_BYTES_MAX: usize = 512;
/// The most bytes of all lines that one call shows.
pub const GREP_BYTES_MAX: usize = 64 << 10;

/// The bytes that a line costs beside its text: its number, and what is said of it.
pub(super) const LINE_BYTES: usize = 16;
/// The bytes of a long line that are shown before its first match.
const LEAD_BYTES: usize = 128;

/// What was found in one file so far.
pub(super) struct Lines<'s> {
    matcher: &'s RegexMatcher,
    show: Show,
    /// How many matches are wanted at most; one more is looked for, to know that there is one.
    limit: u64,
    /// How many lines match.
    pub(super) matches: u64,
    pub(super) lines: Vec<Line>,
    bytes: usize,
}

impl Lines<'_> {
    pub(super) fn new(matcher: &RegexMatcher, show: Show, limit: u64) -> Lines<'_> {
        Lines { matcher, show, limit, matches: 0, lines: Vec::new(), bytes: 0 }
    }

    /// Whether what was found in this file alone is not more than a call shows.
    fn wants_more(&self) -> bool {
        self.matches <= self.limit && self.bytes <= GREP_BYTES_MAX
    }

    fn push(&mut self, line: u64, bytes: &[u8], context: bool) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let cut = bytes.len() > GREP_LINE_BYTES_MAX;
        let text = match cut {
            false => String::from_utf8_lossy(bytes).into_owned(),
            true => self.window(bytes),
        };
        self.bytes += LINE_BYTES + text.len();
        self.lines.push(Line { line, text, context, cut });
    }

    /// What is shown of a long line: what is around its first match.
    fn window(&self, bytes: &[u8]) -> String {
        let first = self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start());
        let is_inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let mut from = first.saturating_sub(LEAD_BYTES);
        from = from.min(bytes.len().saturating_sub(GREP_LINE_BYTES_MAX));
        from += bytes[from..].iter().take(3).take_while(|byte| is_inside(byte)).count();
        let mut to = (from + GREP_LINE_BYTES_MAX).min(bytes.len());
        if to < bytes.len() {
            to -= bytes[..=to].iter().rev().take(3).take_while(|byte| is_inside(byte)).count();
        }
        String::from_utf8_lossy(&bytes[from..to]).into_owned()
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let first = found.line_number().unwrap_or(0);
        match self.show {
            Show::Files | Show::Counts => {
                self.matches += found.lines().count() as u64;
                Ok(self.show == Show::Counts)
            }
            Show::Lines => {
                // One match may go over all lines of a file.
                for (line, bytes) in (first..).zip(found.lines()) {
                    self.push(line, bytes, false);
                    self.matches += 1;
                    if !self.wants_more() {
                        break;
                    }
                }
                Ok(self.wants_more())
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.show == Show::Lines {
            self.push(context.line_number().unwrap_or(0), context.bytes(), true);
        }
        Ok(true)
    }
}
