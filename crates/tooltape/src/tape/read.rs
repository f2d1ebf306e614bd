//! Reading an event back from its text.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{
    EVENT_VERSION, Event, ForkPoint, Nudge, Parent, ProposalEvent, Recalled, Record, TapeError,
    TurnEvent,
};
use crate::canon::{CANON_PROFILE, Canon, Hash};
use crate::id::{CallNo, Name, RunId, ToolId};
use crate::label::Label;
use crate::proposal::{Facts, MoreFacts, Remembered, RepairStep};
use crate::reply::Settled;
use crate::right::{Rights, SpendScope};
use crate::spec::Found;
use crate::verbatim::Verbatim;

/// What every record has.
#[derive(Deserialize)]
struct Place<'b> {
    v: u32,
    seq: u64,
    run: RunId,
    at_us: u64,
    #[serde(borrow)]
    r#type: Cow<'b, str>,
}

#[derive(Deserialize)]
struct RunStarted {
    seed: Box<str>,
    thread: Option<Arc<str>>,
    depth: u32,
    parent: Option<Box<Parent>>,
    canon: String,
    note: Option<Arc<Value>>,
    fork: Option<Box<ForkPoint>>,
    policy: Option<Box<Hash>>,
    rights: Option<Arc<Rights>>,
    #[serde(default)]
    label: Option<Arc<Label>>,
}

#[derive(Deserialize)]
struct Turn {
    text: Option<Arc<str>>,
    proposals: Arc<[ProposalEvent]>,
    stop: String,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cached_tokens: u64,
    #[serde(default)]
    verbatim: Option<Arc<Verbatim>>,
}

#[derive(Deserialize)]
struct Nudged {
    why: String,
    tool: Option<Arc<str>>,
    times: u32,
    text: Arc<str>,
}

#[derive(Deserialize)]
struct Elsewhere {
    messages: Arc<[Recalled]>,
}

#[derive(Deserialize)]
struct Tools {
    added: Option<ToolId>,
    removed: Option<Name>,
}

#[derive(Deserialize)]
struct Proposed {
    call: CallNo,
    id: Arc<str>,
    name: Arc<str>,
    arguments: Arc<str>,
}

#[derive(Deserialize)]
struct Judged {
    call: CallNo,
    tool: Option<ToolId>,
    definition: Option<Hash>,
    args: Option<Canon>,
    args_hash: Hash,
    repairs: Vec<RepairStep>,
    verdict: String,
    rule: String,
    #[serde(default)]
    label: Option<Arc<Label>>,
    #[serde(default)]
    spends: Option<Vec<SpendScope>>,
}

/// Everything of the events whose fields say all.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Plain {
    call: Option<CallNo>,
    text: Option<Arc<str>>,
    yes: Option<bool>,
    question: Option<u32>,
    approval: Option<Hash>,
    holds: Option<String>,
    policy: Option<Hash>,
    rights: Option<Arc<Rights>>,
    told: Option<String>,
    by: Option<Box<str>>,
    attempt: Option<u32>,
    clock_us: Option<u64>,
    code: Option<String>,
    message: Option<String>,
    pause_ms: Option<u64>,
    name: Option<Cow<'static, str>>,
    #[serde(deserialize_with = "present")]
    value: Option<Canon>,
    store: Option<Name>,
    key: Option<String>,
    wrote: Option<bool>,
    label: Option<Arc<Label>>,
    found: Option<Found>,
    in_doubt: Option<Vec<CallNo>>,
    why: Option<String>,
    status: Option<String>,
    stop: Option<String>,
    answer: Option<Arc<str>>,
}

/// A value that is there, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Canon>, D::Error> {
    Canon::deserialize(deserializer).map(Some)
}

impl Record {
    /// Reads what a record serializes as. Every version that was ever written is read; a later
    /// one is refused as such.
    ///
    /// It does not look whether the text is canonical; [`Line`](super::Line) does.
    pub fn read(body: &str) -> Result<Record, TapeError> {
        let place: Place<'_> = serde_json::from_str(body)
            .map_err(|err| TapeError::Corrupt { seq: 0, why: format!("not a record: {err}") })?;
        let Place { v: version, seq, run, at_us, r#type } = place;
        if version == 0 || version > EVENT_VERSION {
            return Err(TapeError::Newer { version, known: EVENT_VERSION });
        }
        let corrupt = |why| TapeError::Corrupt { seq, why: format!("`{}`: {why}", r#type) };
        let event = event(&r#type, body).map_err(corrupt)?;
        Ok(Record { version, ..Record::new(run, seq, at_us, event) })
    }
}

/// Why a text is not an event of its type.
struct Unlike(String);

impl std::fmt::Display for Unlike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<serde_json::Error> for Unlike {
    fn from(err: serde_json::Error) -> Unlike {
        Unlike(err.to_string())
    }
}

fn lacks(field: &str) -> Unlike {
    Unlike(format!("missing field `{field}`"))
}

/// One of our own words, of which each has a meaning.
fn word(text: &str, words: &[&'static str]) -> Result<&'static str, Unlike> {
    let known = words.iter().find(|word| **word == text);
    known.copied().ok_or_else(|| Unlike(format!("found `{text}`, expected one of {words:?}")))
}

fn event(kind: &str, body: &str) -> Result<Event, String> {
    let read = match kind {
        "run.started" => run_started(body),
        "model.turn" => turn(body),
        "model.nudged" => nudged(body),
        "model.recalled" => serde_json::from_str(body)
            .map(|Elsewhere { messages }| Event::Recalled { messages })
            .map_err(Unlike::from),
        "call.proposed" => proposed(body),
        "call.judged" => judged(body),
        "call.settled" => settled(body),
        "call.asked" => serde_json::from_str(body)
            .map(|question| Event::CallAsked(Box::new(question)))
            .map_err(Unlike::from),
        "run.tools" => serde_json::from_str(body)
            .map(|Tools { added, removed }| Event::Tools { added, removed })
            .map_err(Unlike::from),
        _ => serde_json::from_str(body).map_err(Unlike::from).and_then(|plain| told(kind, plain)),
    };
    read.map_err(|unlike| unlike.0)
}

fn run_started(body: &str) -> Result<Event, Unlike> {
    let RunStarted { seed, thread, depth, parent, canon, note, fork, policy, rights, label } =
        serde_json::from_str(body)?;
    let canon = word(&canon, &[CANON_PROFILE])?;
    Ok(Event::RunStarted { seed, thread, depth, parent, canon, note, fork, policy, rights, label })
}

fn turn(body: &str) -> Result<Event, Unlike> {
    let Turn { text, proposals, stop, input_tokens, output_tokens, cached_tokens, verbatim } =
        serde_json::from_str(body)?;
    let stop = word(&stop, &["done", "length", "refused", "cut"])?;
    Ok(Event::Turn(TurnEvent {
        text,
        proposals,
        stop,
        input_tokens,
        output_tokens,
        cached_tokens,
        verbatim,
    }))
}

fn nudged(body: &str) -> Result<Event, Unlike> {
    let Nudged { why, tool, times, text } = serde_json::from_str(body)?;
    Ok(Event::Nudged(Nudge { why: word(&why, &Nudge::WHYS)?, tool, times, text }))
}

fn proposed(body: &str) -> Result<Event, Unlike> {
    let Proposed { call, id, name, arguments } = serde_json::from_str(body)?;
    let args_hash = Hash::from([0; 32]);
    Ok(Event::Proposed(Arc::new(Facts {
        call,
        id,
        name,
        arguments,
        args_hash,
        args: None,
        registered: None,
        more: None,
    })))
}

fn judged(body: &str) -> Result<Event, Unlike> {
    let Judged { call, tool, definition, args, args_hash, repairs, verdict, rule, label, spends } =
        serde_json::from_str(body)?;
    let spends = spends.map(Vec::into_boxed_slice);
    let verdict = word(&verdict, &["allow", "ask", "deny"])?;
    let name = tool.as_ref().map_or_else(|| "".into(), |tool| tool.name().to_arc());
    let remembered = tool.map(|tool| Remembered { tool, definition });
    let facts = Facts {
        call,
        id: "".into(),
        name,
        arguments: "".into(),
        args_hash,
        args,
        registered: None,
        more: MoreFacts { repairs, context: label, spends, remembered }.kept(),
    };
    Ok(Event::Judged { facts: Arc::new(facts), verdict, rule: rule.into() })
}

fn settled(body: &str) -> Result<Event, Unlike> {
    let settled: Settled = serde_json::from_str(body)?;
    let reply = settled.reply();
    reply.map(Event::Settled).map_err(|no| Unlike(format!("content block {no} is incomplete")))
}

fn told(kind: &str, it: Plain) -> Result<Event, Unlike> {
    let call = || it.call.ok_or_else(|| lacks("call"));
    let attempt = || it.attempt.ok_or_else(|| lacks("attempt"));
    let value = || it.value.clone().ok_or_else(|| lacks("value"));
    Ok(match kind {
        "run.resumed" => {
            let in_doubt = it.in_doubt.ok_or_else(|| lacks("in_doubt"))?;
            Event::RunResumed { in_doubt, policy: it.policy, rights: it.rights }
        }
        "run.paused" => Event::RunPaused { why: it.why.ok_or_else(|| lacks("why"))? },
        "model.asked" => Event::Asked { text: it.text.ok_or_else(|| lacks("text"))? },
        "model.said" => Event::Said { text: it.text.ok_or_else(|| lacks("text"))? },
        "call.answered" => {
            let holds = it.holds.as_deref().ok_or_else(|| lacks("holds"))?;
            Event::Answered {
                call: call()?,
                question: it.question.ok_or_else(|| lacks("question"))?,
                approval: it.approval.ok_or_else(|| lacks("approval"))?,
                yes: it.yes.ok_or_else(|| lacks("yes"))?,
                holds: word(holds, &["once", "run"])?,
                told: it.told,
                attempt: it.attempt,
                by: it.by,
            }
        }
        "call.started" => {
            Event::Started { call: call()?, attempt: attempt()?, clock_us: it.clock_us }
        }
        "call.retried" => Event::Retried {
            call: call()?,
            attempt: attempt()?,
            code: it.code.ok_or_else(|| lacks("code"))?,
            message: it.message.ok_or_else(|| lacks("message"))?,
            pause_ms: it.pause_ms.ok_or_else(|| lacks("pause_ms"))?,
        },
        "call.abandoned" => Event::Abandoned { call: call()?, attempt: attempt()? },
        "call.progress" => {
            let text = it.text.as_deref().ok_or_else(|| lacks("text"))?;
            Event::Progress { call: call()?, text: text.to_owned() }
        }
        "call.emitted" => {
            let name = it.name.as_deref().ok_or_else(|| lacks("name"))?;
            let name = Name::new(name).map_err(|err| Unlike(err.to_string()))?;
            Event::Emitted { call: call()?, name, value: value()? }
        }
        "call.state" => {
            let name = it.name.clone().ok_or_else(|| lacks("name"))?;
            Event::State { call: call()?, name, value: value()?, label: it.label }
        }
        "call.stored" => Event::Stored {
            call: call()?,
            store: it.store.ok_or_else(|| lacks("store"))?,
            key: it.key.ok_or_else(|| lacks("key"))?,
            wrote: it.wrote.ok_or_else(|| lacks("wrote"))?,
            value: it.value,
            label: it.label,
        },
        "call.reconciled" => {
            Event::Reconciled { call: call()?, found: it.found.ok_or_else(|| lacks("found"))? }
        }
        "run.ended" => Event::RunEnded {
            status: word(
                &it.status.ok_or_else(|| lacks("status"))?,
                &["ended", "failed", "cancelled"],
            )?,
            stop: it.stop.ok_or_else(|| lacks("stop"))?,
            answer: it.answer,
        },
        _ => return Err(Unlike("no event is called that".to_owned())),
    })
}
