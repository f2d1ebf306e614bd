//! Says what a command is busy with, once that takes a while and somebody is watching.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use crate::out::{Detail, FAINT, Format, Out, paint};

/// How long a command may be silent.
const SILENT: Duration = Duration::from_millis(300);
/// How often what is said is renewed.
const RENEW: Duration = Duration::from_millis(100);
/// How many steps pass before the time is looked at.
const STEPS_UNSEEN: u64 = 64;

/// One line on stderr that is renewed, and gone once it is dropped.
pub(crate) struct Progress {
    out: Out,
    is_watched: bool,
    start: Instant,
    last: Option<Instant>,
    steps: u64,
}

impl Progress {
    pub(crate) fn new(out: Out) -> Progress {
        let is_watched = out.format == Format::Text
            && out.detail >= Detail::Normal
            && io::stderr().is_terminal();
        Progress { out, is_watched, start: Instant::now(), last: None, steps: 0 }
    }

    /// One more step was made; `what` says at what.
    pub(crate) fn step(&mut self, what: impl FnOnce(u64) -> String) {
        self.steps += 1;
        if !self.is_watched || !self.steps.is_multiple_of(STEPS_UNSEEN) {
            return;
        }
        let taken = self.start.elapsed();
        if taken < SILENT || self.last.is_some_and(|last| last.elapsed() < RENEW) {
            return;
        }
        self.last = Some(Instant::now());
        let line = format!("{} {:.1} s — Ctrl-C stops", what(self.steps), taken.as_secs_f64());
        self.out.prompt(&format!("\r\x1b[2K{}", paint(FAINT, line)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.last.is_some() {
            self.out.prompt("\r\x1b[2K");
        }
    }
}
