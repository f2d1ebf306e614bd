//! A run in lines that people read: what was said, and what became of each call.

use std::collections::BTreeMap;
use std::sync::Arc;

use tooltape::{CallNo, Event, Found, Record, Reply, RunId, TurnEvent};

use crate::escape;
use crate::out::{BAD, Detail, FAINT, GOOD, STRONG, paint};

/// How many characters of arguments, and of a result, a line shows.
const SHOWN_CHARS: usize = 64;
/// How many characters of a refusal a line shows: it says what to mend.
const REFUSAL_CHARS: usize = 240;
/// How many characters of what a model says a line shows.
const SAID_CHARS: usize = 400;

/// Tells what records say, one after the other.
pub(crate) struct Teller {
    detail: Detail,
    /// Whether calls that fail are left out, because the command reports them.
    successes_only: bool,
    turns: u32,
    calls: BTreeMap<(RunId, CallNo), Told>,
    /// How deep the runs are that other runs started.
    depths: BTreeMap<RunId, u32>,
}

/// What is known of a call that is not settled.
struct Told {
    name: Arc<str>,
    arguments: Arc<str>,
    /// The verdict and the rule.
    judged: Option<String>,
    /// What somebody said.
    answered: String,
    started: bool,
}

impl Teller {
    pub(crate) fn new(detail: Detail, successes_only: bool) -> Teller {
        let (calls, depths) = (BTreeMap::new(), BTreeMap::new());
        Teller { detail, successes_only, turns: 0, calls, depths }
    }

    /// The lines for what happened next; often none. What nested runs do stands further right.
    pub(crate) fn tell(&mut self, record: &Record) -> Vec<String> {
        if let Event::RunStarted { depth: depth @ 1.., .. } = &record.event {
            self.depths.insert(record.run, *depth);
        }
        let indent = "    ".repeat(self.depths.get(&record.run).map_or(0, |depth| *depth as usize));
        let lines = self.lines(record).into_iter();
        lines.map(|line| format!("{indent}{line}")).collect()
    }

    fn lines(&mut self, record: &Record) -> Vec<String> {
        let run = record.run;
        let told = |teller: &mut Teller, call: &CallNo, change: &dyn Fn(&mut Told)| {
            teller.calls.get_mut(&(run, *call)).into_iter().for_each(change);
            Vec::new()
        };
        let faint = |line: String| vec![paint(FAINT, line)];
        match &record.event {
            Event::Asked { text } => vec![spoken("asked", text)],
            Event::Turn(turn) if self.depths.contains_key(&run) => below(turn),
            Event::Turn(turn) => self.turn(turn),
            Event::Said { text } => vec![spoken("said", text)],
            Event::Nudged(nudge) => vec![spoken("told", &nudge.text)],
            Event::Recalled { messages } => {
                faint(format!("  … goes on from {} messages", messages.len()))
            }
            Event::Proposed(facts) => {
                let (name, arguments) = (facts.name.clone(), facts.arguments.clone());
                let told =
                    Told { name, arguments, judged: None, answered: String::new(), started: false };
                self.calls.insert((run, facts.call), told);
                Vec::new()
            }
            Event::Judged { facts, verdict, rule } => {
                let judged = format!("{verdict} by {}", escape::line(rule));
                told(self, &facts.call, &|told| told.judged = Some(judged.clone()))
            }
            Event::CallAsked(question) if question.attempt.is_none() => {
                told(self, &question.call, &|told| told.answered.clear())
            }
            Event::Answered { call, yes, attempt, by, .. } => {
                let answer = match (yes, attempt, by) {
                    (true, Some(1..), _) => ", done again".to_owned(),
                    (false, Some(1..), _) => ", not done again".to_owned(),
                    (true, Some(0) | None, Some(by)) => {
                        format!(", allowed by your saved answer {}", escape::line(by))
                    }
                    (true, Some(0) | None, None) => ", answered yes".to_owned(),
                    (false, Some(0) | None, _) => ", answered no".to_owned(),
                };
                told(self, call, &|told| told.answered.clone_from(&answer))
            }
            Event::Started { call, .. } => told(self, call, &|told| told.started = true),
            Event::Progress { call, text } => {
                faint(format!("  … {call} {}", escape::clipped(text, SAID_CHARS)))
            }
            Event::Retried { call, attempt, message, pause_ms, .. } => {
                let why = escape::clipped(message, SAID_CHARS);
                faint(format!("  … {call} attempt {attempt}: {why}; again after {pause_ms} ms"))
            }
            Event::Abandoned { call, .. } => {
                faint(format!("  … {call} was given up; its thread goes on"))
            }
            Event::Reconciled { call, found } => {
                let found = found_out(*found);
                faint(format!("  … {call} was in doubt; its tool was asked: {found}"))
            }
            Event::RunResumed { in_doubt, .. } => vec![resumed(in_doubt)],
            Event::RunPaused { why } => {
                vec![format!("{} {}", paint(STRONG, "paused"), escape::clipped(why, SAID_CHARS))]
            }
            Event::Settled(reply) => self.settled(run, reply),
            // Tools, states and named events are for programs, and the command tells the ends.
            _ => Vec::new(),
        }
    }

    /// The lines for calls that are not settled.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let calls = self.calls.iter().map(|((_, call), told)| {
            let name = escape::clipped(&told.name, SHOWN_CHARS);
            let arguments = self.shown(&told.arguments, SHOWN_CHARS);
            let state = if told.started { "started, not settled" } else { "not started" };
            let judged = told.judged.clone().unwrap_or_else(|| "not judged".to_owned());
            let judged = format!("{judged}{}", told.answered);
            format!("  … {call} {name} {arguments} · {} · {state}", paint(FAINT, judged))
        });
        calls.collect()
    }

    fn turn(&mut self, turn: &TurnEvent) -> Vec<String> {
        self.turns += 1;
        let said = match &turn.text {
            // The command prints the answer itself.
            _ if turn.proposals.is_empty() => return Vec::new(),
            Some(text) => escape::clipped(text, SAID_CHARS),
            None => String::new(),
        };
        let no = paint(STRONG, format!("turn {}", self.turns));
        vec![format!("{no} {said}").trim_end().to_owned()]
    }

    fn settled(&mut self, run: RunId, reply: &Reply) -> Vec<String> {
        let told = self.calls.remove(&(run, reply.call));
        if self.successes_only && reply.is_error {
            return Vec::new();
        }
        let arguments = told.as_ref().map_or("", |told| &told.arguments);
        let (mark, result) = match reply.is_error {
            false => (paint(GOOD, "✓"), self.shown(&reply.text(), SHOWN_CHARS)),
            true => (paint(BAD, "✗"), self.shown(&reply.text(), REFUSAL_CHARS)),
        };
        let name = escape::clipped(&reply.name, SHOWN_CHARS);
        let arguments = self.shown(arguments, SHOWN_CHARS);
        let head = format!("  {mark} {} {name} {arguments}", reply.call);
        let head = head.trim_end().to_owned();
        let judged = told.and_then(|told| Some(format!("{}{}", told.judged?, told.answered)));
        let time = (reply.elapsed_us > 0).then(|| elapsed(reply.elapsed_us));
        let faint = judged.into_iter().chain(time).map(|part| paint(FAINT, part));
        let parts: Vec<String> = [head].into_iter().chain(faint).chain([result]).collect();
        let mut lines = vec![parts.join(" · ")];
        if self.detail == Detail::Verbose {
            lines.push(paint(FAINT, format!("    arguments {}", reply.args_hash)));
            lines.push(paint(FAINT, format!("    result    {}", reply.result_hash)));
        }
        lines
    }

    fn shown(&self, text: &str, chars: usize) -> String {
        match self.detail == Detail::Verbose {
            true => escape::line(text).into_owned(),
            false => escape::clipped(text, chars),
        }
    }
}

/// What was said to a model.
fn spoken(how: &str, text: &str) -> String {
    format!("{} {}", paint(STRONG, how), escape::clipped(text, SAID_CHARS))
}

fn found_out(found: Found) -> &'static str {
    match found {
        Found::Happened => "it happened",
        Found::DidNot => "it did not happen",
        Found::CannotTell => "it cannot tell",
    }
}

/// What the model of a nested run says before it calls.
fn below(turn: &TurnEvent) -> Vec<String> {
    let said = turn.text.iter().filter(|_| !turn.proposals.is_empty());
    said.map(|text| escape::clipped(text, SAID_CHARS)).collect()
}

fn resumed(in_doubt: &[CallNo]) -> String {
    let calls: Vec<String> = in_doubt.iter().map(ToString::to_string).collect();
    let doubt = match calls.as_slice() {
        [] => "no call was in doubt".to_owned(),
        [call] => format!("call {call} was in doubt"),
        calls => format!("calls {} were in doubt", calls.join(", ")),
    };
    format!("{} {doubt}", paint(STRONG, "resumed"))
}

/// A time that people can read.
pub(crate) fn elapsed(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}
