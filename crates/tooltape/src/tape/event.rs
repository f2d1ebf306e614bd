//! The one family of things that are ever persisted.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::{Key, Nudge, Recalled, TurnEvent};
use crate::approve::Question;
use crate::canon::{Canon, Hash};
use crate::fault::{Fault, TOLD_BYTES_MAX, clip, text_of};
use crate::id::{CallNo, Name, RunId, ToolId};
use crate::label::Label;
use crate::proposal::Facts;
use crate::reply::{Redactor, Reply};
use crate::right::Rights;
use crate::spec::Found;

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
        parent: Option<Box<Parent>>,
        /// The profile of the canonical form.
        canon: &'static str,
        /// What the host wants kept with the run, such as where its workspace is.
        note: Option<Arc<Value>>,
        /// The place in another run that it goes on from.
        #[serde(skip_serializing_if = "Option::is_none")]
        fork: Option<Box<ForkPoint>>,
        /// The version of the policy that it begins with.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy: Option<Box<Hash>>,
        /// What it may do.
        #[serde(skip_serializing_if = "Option::is_none")]
        rights: Option<Arc<Rights>>,
        /// The label of what its model is shown first.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<Arc<Label>>,
    },
    /// The run goes on after a crash or a pause.
    #[serde(rename = "run.resumed")]
    RunResumed {
        /// The calls that started and did not settle, of which nobody knew what became.
        in_doubt: Vec<CallNo>,
        /// The version of the policy that it goes on with.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy: Option<Hash>,
        /// What it may do from here on.
        #[serde(skip_serializing_if = "Option::is_none")]
        rights: Option<Arc<Rights>>,
    },
    /// The run waits for somebody, perhaps beyond the life of its process.
    #[serde(rename = "run.paused")]
    RunPaused {
        /// For what.
        why: String,
    },
    /// The user or the host said something to the model.
    #[serde(rename = "model.asked")]
    Asked {
        /// What was said.
        text: Arc<str>,
    },
    /// The user said something while the model was at work.
    #[serde(rename = "model.said")]
    Said {
        /// What was said.
        text: Arc<str>,
    },
    /// The conversation goes on from one that took place elsewhere.
    #[serde(rename = "model.recalled")]
    Recalled {
        /// What was said there.
        messages: Arc<[Recalled]>,
    },
    /// The model took a turn.
    #[serde(rename = "model.turn")]
    Turn(TurnEvent),
    /// The runtime said something to the model, which would not have gone on by itself.
    #[serde(rename = "model.nudged")]
    Nudged(Nudge),
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
    /// Somebody is asked whether the call may run.
    #[serde(rename = "call.asked")]
    CallAsked(Box<Question>),
    /// Somebody answered whether the call may run.
    #[serde(rename = "call.answered")]
    Answered {
        /// The call.
        call: CallNo,
        /// Which question about the call was answered.
        question: u32,
        /// What a yes is good for, as the question says.
        approval: Hash,
        /// Whether the answer was yes.
        yes: bool,
        /// How long a yes holds: `once`, or for the `run`.
        holds: &'static str,
        /// What the model reads where it was no.
        told: Option<String>,
        /// The attempt that was in doubt, where the question was whether to make another.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// What answered, where nobody was asked: which answer that somebody had saved.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<Box<str>>,
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
        name: Cow<'static, str>,
        /// The new value.
        value: Canon,
        /// The label of the value, where that says anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<Arc<Label>>,
    },
    /// The call read from a store, or wrote to it.
    #[serde(rename = "call.stored")]
    Stored {
        /// The call.
        call: CallNo,
        /// The store's name.
        store: Name,
        /// The key within it.
        key: String,
        /// Whether it wrote.
        wrote: bool,
        /// What was there, or is there now; nothing, where there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Canon>,
        /// The label of that, where it says anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<Arc<Label>>,
    },
    /// A tool was asked what became of an attempt that was in doubt.
    #[serde(rename = "call.reconciled")]
    Reconciled {
        /// The call.
        call: CallNo,
        /// What it found.
        found: Found,
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

/// A place in another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The run.
    pub run: RunId,
    /// How many of its records were taken over.
    pub seq: u64,
}

/// What started a nested run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The run.
    pub run: RunId,
    /// The call within it.
    pub call: CallNo,
}

impl Event {
    /// What the event uses up.
    pub fn key(&self) -> Option<Key> {
        match self {
            Event::Started { call, attempt, .. } => Some(Key::Started(*call, *attempt)),
            Event::Settled(reply) => Some(Key::Settled(reply.call)),
            Event::Answered { call, question, .. } => Some(Key::Answered(*call, *question)),
            Event::RunStarted { .. }
            | Event::CallAsked(_)
            | Event::RunResumed { .. }
            | Event::RunPaused { .. }
            | Event::Asked { .. }
            | Event::Turn(_)
            | Event::Nudged(_)
            | Event::Said { .. }
            | Event::Recalled { .. }
            | Event::Tools { .. }
            | Event::Proposed(_)
            | Event::Judged { .. }
            | Event::Retried { .. }
            | Event::Abandoned { .. }
            | Event::Progress { .. }
            | Event::Emitted { .. }
            | Event::State { .. }
            | Event::Stored { .. }
            | Event::Reconciled { .. }
            | Event::RunEnded { .. } => None,
        }
    }

    /// What kind of event it is, as its record says it: `call.started`.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted { .. } => "run.started",
            Event::RunResumed { .. } => "run.resumed",
            Event::RunPaused { .. } => "run.paused",
            Event::Asked { .. } => "model.asked",
            Event::Turn(_) => "model.turn",
            Event::Nudged(_) => "model.nudged",
            Event::Said { .. } => "model.said",
            Event::Recalled { .. } => "model.recalled",
            Event::Tools { .. } => "run.tools",
            Event::Proposed(_) => "call.proposed",
            Event::Judged { .. } => "call.judged",
            Event::CallAsked(_) => "call.asked",
            Event::Answered { .. } => "call.answered",
            Event::Started { .. } => "call.started",
            Event::Retried { .. } => "call.retried",
            Event::Abandoned { .. } => "call.abandoned",
            Event::Progress { .. } => "call.progress",
            Event::Emitted { .. } => "call.emitted",
            Event::State { .. } => "call.state",
            Event::Stored { .. } => "call.stored",
            Event::Reconciled { .. } => "call.reconciled",
            Event::Settled(_) => "call.settled",
            Event::RunEnded { .. } => "run.ended",
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
            | Event::State { call, .. }
            | Event::Stored { call, .. }
            | Event::Reconciled { call, .. } => Some(*call),
            Event::Proposed(facts) | Event::Judged { facts, .. } => Some(facts.call),
            Event::Settled(reply) => Some(reply.call),
            Event::CallAsked(question) => Some(question.call),
            Event::RunStarted { .. }
            | Event::RunResumed { .. }
            | Event::RunPaused { .. }
            | Event::Asked { .. }
            | Event::Turn(_)
            | Event::Nudged(_)
            | Event::Said { .. }
            | Event::Recalled { .. }
            | Event::Tools { .. }
            | Event::RunEnded { .. } => None,
        }
    }

    /// An attempt waits for a run below it, and another takes that up.
    pub(crate) fn put_aside(call: CallNo, attempt: u32) -> Event {
        let (code, message) =
            ("call.put_aside".to_owned(), "it waits for a run below it".to_owned());
        Event::Retried { call, attempt, code, message, pause_ms: 0 }
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
    fields.serialize_field("repairs", facts.repairs())?;
    fields.serialize_field("verdict", verdict)?;
    fields.serialize_field("rule", rule)?;
    if let spends @ [_, ..] = facts.spends() {
        let spends: Vec<String> = spends.iter().map(ToString::to_string).collect();
        fields.serialize_field("spends", &spends)?;
    }
    if let Some(label) = facts.context_kept() {
        fields.serialize_field("label", label)?;
    }
    fields.end()
}

/// The version of events that this library writes. It reads this one and all before it.
pub const EVENT_VERSION: u32 = 1;

/// An event at its place in a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// The version of its form.
    #[serde(rename = "v")]
    pub version: u32,
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
    /// How a call ended, where the record says so.
    pub(crate) fn settled(&self) -> Option<&Reply> {
        match &self.event {
            Event::Settled(reply) => Some(reply),
            _ => None,
        }
    }

    /// An event at its place. For implementations of a tape.
    pub fn new(run: RunId, seq: u64, at_us: u64, event: Event) -> Record {
        Record { version: EVENT_VERSION, seq, run, at_us, event }
    }
}
