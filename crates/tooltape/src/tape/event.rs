//! The one family of things that are ever persisted.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::call::{Call, Facts, Proposal};
use crate::canon::Canon;
use crate::fault::{Fault, TOLD_BYTES_MAX, clip, text_of};
use crate::id::{CallNo, Name, RunId, ToolId};
use crate::policy::Verdict;
use crate::reply::{Redactor, Reply};

/// One thing that happened in a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Event {
    /// The run began.
    #[serde(rename = "run.started")]
    RunStarted {
        /// The seed of its randomness, in hexadecimal.
        seed: Box<str>,
        /// The thread that the host named.
        thread: Option<Arc<str>>,
        /// How deeply it is nested.
        depth: u32,
        /// The run and the call that it was started by, where it is nested.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<Parent>,
        /// The profile of the canonical form.
        canon: &'static str,
        /// What the host wants kept with the run, such as where its workspace is.
        note: Option<Arc<Value>>,
    },
    /// The user or the host said something to the model.
    #[serde(rename = "model.asked")]
    Asked {
        /// What was said.
        text: Arc<str>,
    },
    /// The model took a turn.
    #[serde(rename = "model.turn")]
    Turn(TurnEvent),
    /// A tool was added to the run, or taken from it.
    #[serde(rename = "run.tools")]
    Tools {
        /// The tool that was added.
        added: Option<ToolId>,
        /// The tool that was removed.
        removed: Option<Name>,
    },
    /// A model proposed a call.
    #[serde(rename = "call.proposed", serialize_with = "proposed")]
    Proposed(Arc<Facts>),
    /// A policy judged the call.
    #[serde(rename = "call.judged", serialize_with = "judged")]
    Judged {
        /// The call, its tool, and its arguments.
        facts: Arc<Facts>,
        /// `allow`, `ask` or `deny`.
        verdict: &'static str,
        /// The rule that decided.
        rule: Cow<'static, str>,
    },
    /// Somebody answered whether the call may run.
    #[serde(rename = "call.answered")]
    Answered {
        /// The call.
        call: CallNo,
        /// Whether the answer was yes.
        yes: bool,
        /// What the model reads where it was no.
        told: Option<String>,
    },
    /// A permitted call is about to run. No effect happens without this record.
    #[serde(rename = "call.started")]
    Started {
        /// The call.
        call: CallNo,
        /// The attempt, counted from 1.
        attempt: u32,
        /// The moment that a tool with bounded determinism sees, in microseconds.
        clock_us: Option<u64>,
    },
    /// An attempt failed, and after a pause another follows.
    #[serde(rename = "call.retried")]
    Retried {
        /// The call.
        call: CallNo,
        /// The attempt that failed, counted from 1.
        attempt: u32,
        /// The code of what went wrong.
        code: String,
        /// What went wrong, for the host.
        message: String,
        /// How long the next attempt waited.
        pause_ms: u64,
    },
    /// A blocking attempt was given up; its thread goes on until it is done.
    #[serde(rename = "call.abandoned")]
    Abandoned {
        /// The call.
        call: CallNo,
        /// The attempt, counted from 1.
        attempt: u32,
    },
    /// The call said what it is doing.
    #[serde(rename = "call.progress")]
    Progress {
        /// The call.
        call: CallNo,
        /// What it said.
        text: String,
    },
    /// The call published a named event.
    #[serde(rename = "call.emitted")]
    Emitted {
        /// The call.
        call: CallNo,
        /// The event's name.
        name: Name,
        /// Its value.
        value: Canon,
    },
    /// The call changed shared state.
    #[serde(rename = "call.state")]
    State {
        /// The call.
        call: CallNo,
        /// The state's type.
        name: &'static str,
        /// The new value.
        value: Canon,
    },
    /// The call ended. There is exactly one for every proposal.
    #[serde(rename = "call.settled")]
    Settled(Reply),
    /// The run ended.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// `ended`, `failed` or `cancelled`.
        status: &'static str,
        /// Why.
        stop: String,
        /// The model's answer.
        answer: Option<Arc<str>>,
    },
}

/// What started a nested run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parent {
    /// The run.
    pub run: RunId,
    /// The call within it.
    pub call: CallNo,
}

/// A turn that a model took.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TurnEvent {
    /// What it said.
    pub text: Option<Arc<str>>,
    /// What it proposed.
    pub proposals: Arc<[ProposalEvent]>,
    /// Why it stopped.
    pub stop: &'static str,
}

/// A proposal as a model made it, whatever became of it.
#[derive(Clone, Debug, Serialize)]
pub struct ProposalEvent {
    /// The provider's id.
    pub id: Arc<str>,
    /// The name as written.
    pub name: Arc<str>,
    /// The arguments as written.
    pub arguments: Arc<str>,
    /// Why a provider layer could not parse them.
    pub error: Option<String>,
}

impl ProposalEvent {
    pub(crate) fn new(proposal: &Proposal) -> ProposalEvent {
        ProposalEvent {
            id: proposal.id.clone(),
            name: proposal.name.clone(),
            arguments: proposal.text().clone(),
            error: proposal.failure().map(|(error, _)| error.to_owned()),
        }
    }

    pub(crate) fn proposal(&self) -> Proposal {
        let (id, name, arguments) = (self.id.clone(), self.name.clone(), self.arguments.clone());
        match &self.error {
            None => Proposal::new(id, name, arguments),
            Some(error) => Proposal::unparsed(id, name, arguments, error.clone()),
        }
    }
}

impl TurnEvent {
    pub(crate) fn new(
        text: Option<Arc<str>>,
        proposals: &[Proposal],
        stop: &'static str,
    ) -> TurnEvent {
        TurnEvent { text, proposals: proposals.iter().map(ProposalEvent::new).collect(), stop }
    }
}

/// What may happen once in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// An attempt at a call.
    Started(CallNo, u32),
    /// The end of a call.
    Settled(CallNo),
    /// The answer to the question whether a call may run.
    Answered(CallNo),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Started(CallNo(call), attempt) => write!(f, "started:{call}:{attempt}"),
            Key::Settled(CallNo(call)) => write!(f, "settled:{call}"),
            Key::Answered(CallNo(call)) => write!(f, "answer:{call}"),
        }
    }
}

impl Event {
    /// What the event uses up.
    pub fn key(&self) -> Option<Key> {
        match self {
            Event::Started { call, attempt, .. } => Some(Key::Started(*call, *attempt)),
            Event::Settled(reply) => Some(Key::Settled(reply.call)),
            Event::Answered { call, .. } => Some(Key::Answered(*call)),
            Event::RunStarted { .. }
            | Event::Asked { .. }
            | Event::Turn(_)
            | Event::Tools { .. }
            | Event::Proposed(_)
            | Event::Judged { .. }
            | Event::Retried { .. }
            | Event::Abandoned { .. }
            | Event::Progress { .. }
            | Event::Emitted { .. }
            | Event::State { .. }
            | Event::RunEnded { .. } => None,
        }
    }

    /// The call that the event is about.
    pub fn call(&self) -> Option<CallNo> {
        match self {
            Event::Answered { call, .. }
            | Event::Started { call, .. }
            | Event::Retried { call, .. }
            | Event::Abandoned { call, .. }
            | Event::Progress { call, .. }
            | Event::Emitted { call, .. }
            | Event::State { call, .. } => Some(*call),
            Event::Proposed(facts) | Event::Judged { facts, .. } => Some(facts.call),
            Event::Settled(reply) => Some(reply.call),
            Event::RunStarted { .. }
            | Event::Asked { .. }
            | Event::Turn(_)
            | Event::Tools { .. }
            | Event::RunEnded { .. } => None,
        }
    }

    /// The event without stamps and durations, which is what a replay compares.
    pub(crate) fn unstamped(&self) -> Event {
        let mut event = self.clone();
        match &mut event {
            Event::Settled(reply) => *reply = reply.unstamped(),
            Event::Started { clock_us, .. } => *clock_us = None,
            Event::Retried { pause_ms, .. } => *pause_ms = 0,
            Event::RunStarted { parent, .. } => *parent = None,
            Event::Asked { .. }
            | Event::Turn(_)
            | Event::Tools { .. }
            | Event::Proposed(_)
            | Event::Judged { .. }
            | Event::Answered { .. }
            | Event::Abandoned { .. }
            | Event::Progress { .. }
            | Event::Emitted { .. }
            | Event::State { .. }
            | Event::RunEnded { .. } => {}
        }
        event
    }

    pub(crate) fn retried(
        call: CallNo,
        attempt: u32,
        fault: &Fault,
        pause: Duration,
        redactor: &Redactor,
    ) -> Event {
        let code = redactor.redact(fault.code()).into_owned();
        let message = redactor.redact(&text_of(fault)).into_owned();
        let message = clip(message, TOLD_BYTES_MAX);
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        Event::Retried { call, attempt, code, message, pause_ms }
    }

    #[inline]
    pub(crate) fn judged(call: &Call, verdict: &Verdict) -> Event {
        Event::Judged {
            facts: call.facts().clone(),
            verdict: match verdict {
                Verdict::Allow { .. } => "allow",
                Verdict::Ask { .. } => "ask",
                Verdict::Deny { .. } => "deny",
            },
            rule: verdict.rule().clone(),
        }
    }
}

/// What the tape keeps of a proposal.
fn proposed<S: Serializer>(facts: &Facts, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Proposed", 4)?;
    fields.serialize_field("call", &facts.call)?;
    fields.serialize_field("id", &facts.id)?;
    fields.serialize_field("name", &facts.name)?;
    fields.serialize_field("arguments", &facts.arguments)?;
    fields.end()
}

/// What the tape keeps of a judgement.
fn judged<S: Serializer>(
    facts: &Facts,
    verdict: &str,
    rule: &str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Judged", 8)?;
    fields.serialize_field("call", &facts.call)?;
    fields.serialize_field("tool", &facts.tool())?;
    fields.serialize_field("definition", &facts.definition())?;
    fields.serialize_field("args", &facts.args)?;
    fields.serialize_field("args_hash", &facts.args_hash)?;
    fields.serialize_field("repairs", &facts.repairs)?;
    fields.serialize_field("verdict", verdict)?;
    fields.serialize_field("rule", rule)?;
    fields.end()
}

/// An event at its place in a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// Its place, counted from 0.
    pub seq: u64,
    /// The run.
    pub run: RunId,
    /// When it was written, in microseconds since the Unix epoch.
    pub at_us: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Record {
    /// An event at its place. For implementations of a tape.
    pub fn new(run: RunId, seq: u64, at_us: u64, event: Event) -> Record {
        Record { seq, run, at_us, event }
    }
}
