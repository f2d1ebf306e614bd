//! Notices that a model gets nowhere: the same call again and again, or the same few in turn.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::canon::Hash;
use crate::reply::Reply;
use crate::tape::Nudge;

/// How often a call comes to the same before its model is told.
pub const REPEATS_DEFAULT: u32 = 3;
/// How often a few calls take turns, and come to the same, before their model is told.
pub const ROUNDS_DEFAULT: u32 = 3;
/// How often a call fails before its model is told.
pub const FAILURES_DEFAULT: u32 = 3;
/// How often calls fail at one thing before their model is told.
pub const TARGETS_DEFAULT: u32 = 6;
/// How many batches in a row may bring nothing new before their model is told.
pub const FRUITLESS_DEFAULT: u32 = 9;
/// How often a model is told before its turn ends.
pub const NUDGES_DEFAULT: u32 = 1;
/// How many calls can take turns unnoticed.
const PERIOD_MAX: usize = 3;
/// How many different calls and things are remembered. What is older counts anew.
const REMEMBERED_MAX: usize = 4_096;

/// How patient the loop is with a model that gets nowhere.
///
/// A number that is zero is never reached, so that nothing of its kind is noticed.
///
/// ```
/// use tooltape::Patience;
/// assert_eq!((Patience::default().repeats, Patience::endless().repeats), (3, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How often a call comes to the same, whatever that is, before its model is told.
    pub repeats: u32,
    /// How often two or three calls take turns, and come to the same, before their model is told.
    pub rounds: u32,
    /// How often one call fails before its model is told.
    pub failures: u32,
    /// How often calls [about](crate::Identity) one thing fail before their model is told.
    pub targets: u32,
    /// How many batches in a row may bring nothing that was not there before, whatever they try,
    /// before their model is told.
    pub fruitless: u32,
    /// How often a model that makes no progress in between is told, before its turn ends.
    pub nudges: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            repeats: REPEATS_DEFAULT,
            rounds: ROUNDS_DEFAULT,
            failures: FAILURES_DEFAULT,
            targets: TARGETS_DEFAULT,
            fruitless: FRUITLESS_DEFAULT,
            nudges: NUDGES_DEFAULT,
        }
    }
}

impl Patience {
    /// Notices nothing.
    pub fn endless() -> Patience {
        Patience { repeats: 0, rounds: 0, failures: 0, targets: 0, fruitless: 0, nudges: 0 }
    }
}

/// What is to be done about a model that gets nowhere.
pub(super) enum Stall {
    /// It is told.
    Nudge(Nudge),
    /// It was told, and its turn ends.
    End,
}

/// A call: its tool and its arguments.
type Call = (Arc<str>, Hash);
/// The calls of a batch, with what they came to.
type CameTo = Arc<[(Call, Hash)]>;

/// What a model did of late, and how often it was told.
pub(super) struct Stalls {
    patience: Patience,
    nudges: u32,
    /// What the latest batches came to, newest last.
    latest: VecDeque<CameTo>,
    /// What calls came to before.
    known: HashSet<(Call, Hash)>,
    /// How many batches in a row brought nothing new.
    fruitless: u32,
    /// How often a call failed since it last succeeded.
    failed: HashMap<Call, u32>,
    /// How often calls about one thing failed since one succeeded.
    targets: HashMap<(Arc<str>, String), u32>,
}

impl Stalls {
    pub(super) fn new(patience: Patience) -> Stalls {
        Stalls {
            patience,
            nudges: 0,
            latest: VecDeque::new(),
            known: HashSet::new(),
            fruitless: 0,
            failed: HashMap::new(),
            targets: HashMap::new(),
        }
    }

    /// Looks at what a batch came to.
    pub(super) fn see(&mut self, replies: &[Reply]) -> Option<Stall> {
        // In which order a batch does the same, and how often, makes no difference.
        let came_to = replies.iter().map(|reply| (call_of(reply), reply.result_hash));
        self.remember(came_to.collect::<BTreeSet<_>>().into_iter().collect());
        let mut is_new = false;
        for reply in replies.iter().filter(|reply| !reply.is_error) {
            is_new |= self.known.insert((call_of(reply), reply.result_hash));
        }
        self.fruitless = if is_new { 0 } else { self.fruitless + 1 };
        let found = self.failing(replies).or_else(|| self.turning(replies));
        let Some((why, tool, times)) = found.or_else(|| self.wandering(replies)) else {
            if is_new {
                self.nudges = 0;
            }
            return None;
        };
        self.told();
        if self.nudges > self.patience.nudges {
            return Some(Stall::End);
        }
        let text = told(why, &tool, times);
        Some(Stall::Nudge(Nudge { why, tool: Some(tool), times, text }))
    }

    /// A model is told, or was told before, as the tape says. What it is told about counts anew.
    pub(super) fn told(&mut self) {
        self.latest.clear();
        self.failed.clear();
        self.targets.clear();
        self.fruitless = 0;
        self.nudges += 1;
    }

    fn remember(&mut self, came_to: CameTo) {
        let rounds = self.patience.rounds.max(self.patience.repeats) as usize;
        if self.latest.len() >= rounds.saturating_mul(PERIOD_MAX).clamp(1, REMEMBERED_MAX) {
            self.latest.pop_front();
        }
        self.latest.push_back(came_to);
        if self.known.len() >= REMEMBERED_MAX {
            self.known.clear();
        }
        if self.failed.len().max(self.targets.len()) >= REMEMBERED_MAX {
            self.failed.clear();
            self.targets.clear();
        }
    }

    /// A call that failed too often, by itself or by what it is about.
    fn failing(&mut self, replies: &[Reply]) -> Option<(&'static str, Arc<str>, u32)> {
        let mut found = None;
        for reply in replies {
            let call = call_of(reply);
            let target = reply.target().map(|target| (reply.name.clone(), target));
            if !reply.is_error {
                self.failed.remove(&call);
                if let Some(target) = target {
                    self.targets.remove(&target);
                }
                continue;
            }
            let times = self.failed.entry(call).or_default();
            *times += 1;
            if *times == self.patience.failures {
                found = Some(("repeated", reply.name.clone(), *times));
            }
            if let Some(target) = target {
                let times = self.targets.entry(target).or_default();
                *times += 1;
                if *times == self.patience.targets {
                    found = found.or(Some(("target", reply.name.clone(), *times)));
                }
            }
        }
        found
    }

    /// Batches that brought nothing new, however different they were.
    fn wandering(&self, replies: &[Reply]) -> Option<(&'static str, Arc<str>, u32)> {
        let tool = replies.first()?.name.clone();
        let is_stalled = self.fruitless == self.patience.fruitless && self.fruitless > 0;
        is_stalled.then_some(("fruitless", tool, self.fruitless))
    }

    /// Batches that came to the same as those before them, one by one or in turn.
    fn turning(&self, replies: &[Reply]) -> Option<(&'static str, Arc<str>, u32)> {
        let tool = replies.first()?.name.clone();
        let Patience { repeats, rounds, .. } = self.patience;
        (1..=PERIOD_MAX).find_map(|period| {
            let (why, times) = match period {
                1 => ("repeated", repeats),
                _ => ("alternating", rounds),
            };
            let is_stalled = times > 0 && self.repeats(period, times as usize);
            is_stalled.then(|| (why, tool.clone(), times))
        })
    }

    /// Whether the last batches are so many rounds of one period.
    fn repeats(&self, period: usize, rounds: usize) -> bool {
        let Some(from) = self.latest.len().checked_sub(period.saturating_mul(rounds)) else {
            return false;
        };
        let latest = self.latest.iter().skip(from);
        latest.clone().skip(period).zip(latest).all(|(later, earlier)| later == earlier)
    }
}

/// The call, whatever it came to.
fn call_of(reply: &Reply) -> Call {
    (reply.name.clone(), reply.args_hash)
}

/// What a model reads that gets nowhere.
fn told(why: &str, tool: &str, times: u32) -> Arc<str> {
    let what = match why {
        "alternating" => format!("the same calls, `{tool}` among them, took turns {times} times"),
        "fruitless" => {
            format!("the last {times} rounds of calls, `{tool}` among them, brought nothing new")
        }
        "target" => format!("calls of `{tool}` failed {times} times at the same thing"),
        _ => format!("the same call of `{tool}` came to the same {times} times"),
    };
    format!(
        "[tooltape] {what}. Doing it again will not help: try something else, or say what is \
         missing and answer."
    )
    .into()
}
