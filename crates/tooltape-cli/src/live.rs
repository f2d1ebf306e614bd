//! The line at the bottom of a terminal that says what is being waited for, and for how long.

use std::convert::Infallible;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tooltape::{CallNo, Event, RunId, Step, Usage};

use crate::escape;
use crate::out::{Detail, FAINT, Format, Out, paint};

/// How long nothing may be said before it is.
const SILENT: Duration = Duration::from_millis(300);
/// How often what is said is renewed.
const RENEW: Duration = Duration::from_millis(100);
/// How many characters of what a model says just now are shown.
const TAIL_CHARS: usize = 48;

/// What is being waited for. Clones share it.
#[derive(Clone)]
pub(crate) struct Live(Arc<Mutex<State>>);

struct State {
    out: Out,
    is_watched: bool,
    model: String,
    /// The turn that the model is asked for, and since when.
    turn: Option<(u32, Instant)>,
    /// The end of what it said so far.
    tail: String,
    /// The calls that run, and since when.
    calls: Vec<(RunId, CallNo, String, Instant)>,
    usage: Usage,
    /// Whether somebody is asked something; then nothing else is said.
    is_asking: bool,
    is_drawn: bool,
}

impl Live {
    pub(crate) fn new(out: Out, model: String, jsonl: bool) -> Live {
        let is_watched = out.format == Format::Text
            && out.detail >= Detail::Normal
            && !jsonl
            && io::stderr().is_terminal();
        Live(Arc::new(Mutex::new(State {
            out,
            is_watched,
            model: escape::clipped(&model, TAIL_CHARS),
            turn: None,
            tail: String::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            is_asking: false,
            is_drawn: false,
        })))
    }

    /// Renews the line for as long as somebody waits for it.
    pub(crate) async fn renew(&self) -> Infallible {
        if !self.state().is_watched {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(RENEW).await;
            self.state().draw();
        }
    }

    /// Whether somebody is asked something.
    pub(crate) fn is_asking(&self) -> bool {
        self.state().is_asking
    }

    /// Takes the line away, so that something else can be said.
    pub(crate) fn clear(&self) {
        self.state().clear();
    }

    /// Something happened.
    pub(crate) fn see(&self, step: Step<'_>) {
        let mut state = self.state();
        match step {
            Step::Asked(turn) => {
                state.turn = Some((turn, Instant::now()));
                state.tail.clear();
            }
            Step::Text(text) | Step::Reasoning(text) => state.says(text),
            Step::Again => state.tail.clear(),
            Step::Turn(turn) => {
                state.turn = None;
                state.tail.clear();
                state.usage.add(turn.usage);
                state.clear();
            }
            Step::Call(..) | Step::Record(_) | Step::Said(_) | Step::Nudged(_) => {}
            _ => {}
        }
    }

    /// Something is on the tape, of this run or of one below it.
    pub(crate) fn record(&self, run: RunId, event: &Event) {
        let mut state = self.state();
        match event {
            Event::Proposed(facts) => {
                let name = escape::clipped(&facts.name, TAIL_CHARS);
                state.calls.push((run, facts.call, name, Instant::now()));
            }
            Event::CallAsked(_) => {
                state.is_asking = true;
                state.clear();
            }
            Event::Answered { .. } => state.is_asking = false,
            Event::Settled(reply) => {
                state.is_asking = false;
                state.calls.retain(|(of, call, ..)| (*of, *call) != (run, reply.call));
            }
            _ => {}
        }
        state.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn says(&mut self, text: &str) {
        self.tail.push_str(text);
        let chars = self.tail.chars().count();
        if chars > TAIL_CHARS {
            self.tail = self.tail.chars().skip(chars - TAIL_CHARS).collect();
        }
    }

    fn draw(&mut self) {
        let (what, since) = match (&self.turn, self.calls.as_slice()) {
            _ if self.is_asking => return,
            (_, [(_, call, name, since), rest @ ..]) => {
                let more = if rest.is_empty() {
                    String::new()
                } else {
                    format!(" and {} more", rest.len())
                };
                (format!("running {call} {name}{more}"), *since)
            }
            (Some((turn, since)), []) => {
                let said = escape::line(&self.tail);
                let said = if said.is_empty() { String::new() } else { format!(" … {said}") };
                (format!("turn {turn}: waiting for {}{said}", self.model), *since)
            }
            (None, []) => return,
        };
        let taken = since.elapsed();
        if taken < SILENT {
            return;
        }
        let tokens = self.usage.input_tokens + self.usage.output_tokens;
        let tokens = if tokens > 0 { format!(" · {tokens} tokens") } else { String::new() };
        let line = format!("{what} {:.1} s{tokens} — Ctrl-C cancels", taken.as_secs_f64());
        self.out.prompt(&format!("\r\x1b[2K{}", paint(FAINT, line)));
        self.is_drawn = true;
    }

    fn clear(&mut self) {
        if self.is_drawn {
            self.out.prompt("\r\x1b[2K");
            self.is_drawn = false;
        }
    }
}
