//! What a run did before, as its tape says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::approve::Question;
use crate::canon::{Canon, Hash};
use crate::fault::{BoundKind, Executed, FaultKind};
use crate::grant::Stored;
use crate::id::{CallNo, Name, RunId};
use crate::label::{Label, joined};
use crate::proposal::{Facts, Proposal};
use crate::reply::Reply;
use crate::right::{Rights, SpendScope};
use crate::spec::Found;
use crate::tape::{Event, Nudge, Parent, Recalled, Record, TapeError, TurnEvent};

/// How a recorded run began.
#[derive(Clone)]
pub(crate) struct Opening {
    pub(crate) run: RunId,
    pub(crate) at_us: u64,
    pub(crate) seed: [u8; 32],
    pub(crate) thread: Option<Arc<str>>,
    pub(crate) note: Option<Arc<Value>>,
    pub(crate) depth: u32,
    pub(crate) parent: Option<Parent>,
    pub(crate) rights: Option<Arc<Rights>>,
    pub(crate) label: Option<Arc<Label>>,
}

impl Opening {
    /// How the run began whose first record this is.
    pub(crate) fn of(first: &Record) -> Result<Opening, TapeError> {
        let corrupt = |why: &str| TapeError::Corrupt { seq: first.seq, why: why.to_owned() };
        let Event::RunStarted { seed, thread, depth, parent, note, rights, label, .. } =
            &first.event
        else {
            return Err(corrupt("it is not the beginning of a run"));
        };
        // A seed has as many digits as a hash, and is read like one.
        let seed: Hash = seed.parse().map_err(|_| corrupt("the seed is not one"))?;
        Ok(Opening {
            run: first.run,
            at_us: first.at_us,
            seed: *seed.as_bytes(),
            thread: thread.clone(),
            note: note.clone(),
            depth: *depth,
            parent: parent.as_deref().copied(),
            rights: rights.clone(),
            label: label.clone(),
        })
    }
}

/// What a run did before it goes on.
pub(super) struct Past {
    pub(super) opening: Opening,
    /// How many records it has.
    pub(super) len: u64,
    /// How long it ran.
    pub(super) ran_us: u64,
    /// The highest number of a call.
    pub(super) calls: u64,
    /// The tools of the calls that were settled and count towards limits.
    pub(super) counted: Vec<Name>,
    /// What those spent that were executed, or may have been.
    pub(super) spent: Vec<SpendScope>,
    /// The bytes of their arguments and results.
    pub(super) bytes: u64,
    /// The last value of every state, and its label.
    pub(super) states: BTreeMap<String, (Canon, Option<Arc<Label>>)>,
    /// The last value of everything that its calls wrote to stores, by store and key.
    pub(super) stored: BTreeMap<(Name, String), Stored>,
    /// How often they wrote.
    pub(super) writes: u64,
    /// What was said since the last question.
    pub(super) said: Vec<Said>,
    /// The calls that were settled, since the last question.
    pub(super) settled: BTreeMap<CallNo, Reply>,
    /// The calls that were not.
    pub(super) open: BTreeMap<CallNo, Begun>,
    /// What somebody approved for the whole run.
    pub(super) standing: Vec<Standing>,
    /// The label of what its model was shown.
    pub(super) label: Option<Arc<Label>>,
    /// How it ended, if it did.
    pub(super) ended: Option<String>,
}

/// What somebody approved until the run ends: what one rule asks about one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) definition: Option<Hash>,
    pub(super) rule: Cow<'static, str>,
    pub(super) policy: Hash,
    /// When it is approved no more.
    pub(super) until_us: u64,
}

/// A question about a call, and what somebody said.
#[derive(Clone)]
pub(super) struct Questioned {
    pub(super) question: Question,
    pub(super) answer: Option<Result<(), String>>,
    /// The last attempt that had started when it was asked.
    pub(super) started: u32,
}

/// Something that was said between the user and the model.
#[derive(Clone)]
pub(crate) enum Said {
    /// What the model was asked.
    Asked(Arc<str>),
    /// What the model said, and the number of its first call.
    Turn(TurnEvent, u64),
    /// What the user said while the model was at work.
    Meanwhile(Arc<str>),
    /// What the runtime said to the model.
    Nudged(Nudge),
    /// What was said elsewhere, before.
    Recalled(Arc<[Recalled]>),
}

/// A call that was begun and not settled.
#[derive(Clone, Default)]
pub(super) struct Begun {
    id: Arc<str>,
    name: Arc<str>,
    arguments: Arc<str>,
    /// Whether the tape knows that it was proposed.
    pub(super) proposed: bool,
    /// How its tool was declared when it was judged.
    pub(super) definition: Option<Hash>,
    /// What it spends.
    spends: Box<[SpendScope]>,
    /// What its model had been shown when it was judged, if it was.
    pub(super) judged_under: Option<Option<Arc<Label>>>,
    /// What was asked about it, and what somebody said.
    pub(super) questions: Vec<Questioned>,
    /// The last attempt that started.
    pub(super) started: u32,
    /// The last attempt that failed and was to be followed by another.
    pub(super) retried: u32,
    /// What its tool found out about the last attempt.
    pub(super) found: Option<Found>,
}

impl Begun {
    /// Whether nobody knows what the last attempt did.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.started > self.retried
    }

    /// The same proposal, of which nothing is on the tape; with other arguments, where there are.
    pub(super) fn anew(facts: &Facts, arguments: Option<String>) -> Begun {
        let (id, name) = (facts.id.clone(), facts.name.clone());
        let arguments = arguments.map_or_else(|| facts.arguments.clone(), Into::into);
        Begun { id, name, arguments, ..Begun::default() }
    }

    /// What was proposed, as far as the tape keeps it.
    pub(super) fn proposal(&self) -> Proposal {
        Proposal::new(self.id.clone(), self.name.clone(), self.arguments.clone())
    }
}

impl Past {
    /// Gathers what the records of a run say. They begin with its first.
    pub(super) fn of(records: &[Record]) -> Result<Past, TapeError> {
        let empty = || TapeError::Corrupt { seq: 0, why: "there are no records".to_owned() };
        let first = records.first().ok_or_else(empty)?;
        let mut past = Past {
            opening: Opening::of(first)?,
            len: records.len() as u64,
            ran_us: ran_us(records),
            calls: 0,
            counted: Vec::new(),
            spent: Vec::new(),
            bytes: 0,
            states: BTreeMap::new(),
            stored: BTreeMap::new(),
            writes: 0,
            said: Vec::new(),
            settled: BTreeMap::new(),
            open: BTreeMap::new(),
            standing: Vec::new(),
            label: None,
            ended: None,
        };
        past.label = past.opening.label.clone();
        let mut args = BTreeMap::new();
        for (seq, record) in (0..).zip(records) {
            if (record.seq, record.run) != (seq, first.run) {
                let why = format!("record {} of run {} stands here", record.seq, record.run);
                return Err(TapeError::Corrupt { seq, why });
            }
            past.take(&record.event, &mut args);
        }
        Ok(past)
    }

    fn take(&mut self, event: &Event, args: &mut BTreeMap<CallNo, u64>) {
        match event {
            Event::Asked { .. }
            | Event::Said { .. }
            | Event::Nudged(_)
            | Event::Recalled { .. }
            | Event::Turn(_) => self.hear(event),
            Event::Proposed(facts) => {
                self.calls = self.calls.max(facts.call.0);
                self.ended = None;
                let Facts { id, name, arguments, .. } = &**facts;
                let (id, name, arguments) = (id.clone(), name.clone(), arguments.clone());
                let begun = Begun { id, name, arguments, proposed: true, ..Begun::default() };
                self.open.insert(facts.call, begun);
            }
            Event::Judged { facts, .. } => {
                let bytes = facts.args.as_ref().map_or(0, |args| args.as_bytes().len());
                args.insert(facts.call, bytes as u64);
                let begun = self.begun(facts.call);
                (begun.definition, begun.spends) = (facts.definition(), facts.spends().into());
                begun.judged_under = Some(facts.context_kept().cloned());
            }
            Event::CallAsked(question) => {
                let (question, begun) = (Question::clone(question), self.begun(question.call));
                let started = begun.started;
                begun.questions.push(Questioned { question, answer: None, started });
            }
            Event::Answered { call, question, approval, yes, holds, told, .. } => {
                let told = || told.clone().unwrap_or_default();
                let begun = self.begun(*call);
                let definition = begun.definition;
                // Under a label, a yes is for one call.
                let is_labelled = begun.judged_under.iter().flatten().next().is_some();
                let is_this =
                    |asked: &Question| (asked.question, asked.approval) == (*question, *approval);
                let asked = begun.questions.last_mut();
                let Some(asked) = asked.filter(|it| is_this(&it.question)) else { return };
                asked.answer = Some(yes.then_some(()).ok_or_else(told));
                let Question { rule, policy, until_us, .. } = asked.question.clone();
                if *yes && *holds == "run" && !is_labelled {
                    self.standing.push(Standing { definition, rule, policy, until_us });
                }
            }
            Event::Started { call, attempt, .. } => {
                let begun = self.begun(*call);
                (begun.started, begun.found) = (*attempt, None);
            }
            Event::Retried { call, attempt, .. } => self.begun(*call).retried = *attempt,
            Event::Reconciled { call, found } => self.begun(*call).found = Some(*found),
            Event::State { name, value, label, .. } => {
                self.states.insert(name.to_string(), (value.clone(), label.clone()));
            }
            Event::Stored { store, key, wrote: true, value, label, .. } => {
                self.writes += 1;
                let last = Stored { value: value.clone(), label: label.clone() };
                self.stored.insert((store.clone(), key.clone()), last);
            }
            Event::Stored { wrote: false, .. } => {}
            Event::Settled(reply) => self.settle(reply, args.remove(&reply.call)),
            Event::RunEnded { status, stop, .. } => self.ended = Some(format!("{status}: {stop}")),
            Event::RunStarted { .. }
            | Event::RunResumed { .. }
            | Event::RunPaused { .. }
            | Event::Tools { .. }
            | Event::Abandoned { .. }
            | Event::Progress { .. }
            | Event::Emitted { .. } => {}
        }
    }

    /// Something was said to the model, or by it.
    fn hear(&mut self, event: &Event) {
        match event {
            Event::Asked { text } => {
                if self.ended.take().is_some() {
                    self.said.clear();
                    self.settled.clear();
                }
                self.said.push(Said::Asked(text.clone()));
            }
            Event::Said { text } => self.said.push(Said::Meanwhile(text.clone())),
            Event::Nudged(nudge) => self.said.push(Said::Nudged(nudge.clone())),
            Event::Recalled { messages } => {
                let label = Arc::new(Label::untrusted("history"));
                self.label = joined(self.label.as_ref(), Some(&label));
                self.said = vec![Said::Recalled(messages.clone())];
            }
            Event::Turn(turn) => self.said.push(Said::Turn(turn.clone(), self.calls + 1)),
            _ => {}
        }
    }

    fn begun(&mut self, call: CallNo) -> &mut Begun {
        self.open.entry(call).or_default()
    }

    fn settle(&mut self, reply: &Reply, args: Option<u64>) {
        let begun = self.open.remove(&reply.call);
        let spends = begun.map(|begun| begun.spends).unwrap_or_default();
        match reply.executed {
            Executed::Executed | Executed::Unknown => self.spent.extend(spends),
            Executed::NotExecuted => {}
        }
        self.spent.extend(reply.spent());
        self.label = joined(self.label.as_ref(), reply.label_kept());
        self.bytes += reply.bytes() + args.unwrap_or(0);
        // What could not be read, and what was beyond a limit, used none of it up.
        let used = reply.fault.as_ref().is_none_or(|fault| match (fault.kind, fault.bound) {
            (FaultKind::Repair, _) => false,
            (_, Some(bound)) => args.is_some() || bound.is_time() || bound == BoundKind::Depth,
            (_, None) => true,
        });
        if let Some(tool) = reply.tool().filter(|_| used) {
            self.counted.push(tool.name().clone());
        }
        self.settled.insert(reply.call, reply.clone());
    }

    /// The calls of which nobody knows what they did.
    pub(super) fn in_doubt(&self) -> Vec<CallNo> {
        let doubtful = self.open.iter().filter(|(_, begun)| begun.is_in_doubt());
        doubtful.map(|(call, _)| *call).collect()
    }
}

/// How long a run ran: neither while it was paused nor before somebody resumed it.
fn ran_us(records: &[Record]) -> u64 {
    let mut is_paused = false;
    let steps = records.windows(2).map(|step| {
        let (before, after) = (&step[0], &step[1]);
        is_paused |= matches!(before.event, Event::RunPaused { .. });
        let resumes = matches!(after.event, Event::RunResumed { .. });
        let stood_still = is_paused || resumes;
        is_paused &= !resumes;
        if stood_still { 0 } else { after.at_us.saturating_sub(before.at_us) }
    });
    steps.sum()
}
