//! How the calls of a run end, as its tape says before they are played.

use std::borrow::Cow;
use std::collections::HashMap;

use super::causes::Declared;
use crate::fault::{BoundKind, FaultKind};
use crate::id::CallNo;
use crate::policy::Verdict;
use crate::reply::{FaultView, Reply};
use crate::tape::{Event, Record};

/// What the tape says of a call before it is played.
#[derive(Default)]
pub(super) struct Fate {
    pub(super) declared: Declared,
    pub(super) fault: Option<FaultView>,
}

/// Whether a bound counts calls, so that it is decided while a call is resolved.
pub(super) fn counts(bound: &BoundKind) -> bool {
    use BoundKind::{BatchCalls, RunBytes, RunCalls, ToolCalls};
    [BatchCalls, RunBytes, RunCalls, ToolCalls].contains(bound)
}

/// Whether time, a cancel or the tape itself ended the call before it started.
pub(super) fn is_fate(recorded: &Reply) -> bool {
    recorded.fault.as_ref().is_some_and(|fault| match fault.kind {
        FaultKind::Cancelled | FaultKind::Exceeded | FaultKind::Bug | FaultKind::InDoubt => true,
        // What happened is all that is known of it.
        FaultKind::Failed => &*fault.code == "resume.happened",
        FaultKind::Repair | FaultKind::Denied => false,
    })
}

pub(super) fn is_unasked(recorded: &Reply) -> bool {
    recorded.fault.as_ref().is_some_and(|fault| fault.unasked)
}

pub(super) fn as_decided(verdict: &str, rule: Cow<'static, str>) -> Verdict {
    match verdict {
        "allow" => Verdict::allow_despite_label(rule),
        "ask" => Verdict::ask(rule),
        _ => Verdict::Deny { rule, told: None },
    }
}

/// The names of tools that the run was given only after it began.
pub(super) fn added_later(records: &[Record]) -> Vec<Box<str>> {
    let mut seen: Vec<Box<str>> = Vec::new();
    let mut later = Vec::new();
    for record in records {
        let Event::Tools { added, removed } = &record.event else { continue };
        let removed = removed.as_ref().map(|name| name.as_str());
        let added = added.as_ref().map(|tool| tool.name().as_str());
        for (name, is_added) in
            removed.map(|it| (it, false)).into_iter().chain(added.map(|it| (it, true)))
        {
            if !seen.iter().any(|it| **it == *name) {
                seen.push(name.into());
                later.extend(is_added.then(|| Box::from(name)));
            }
        }
    }
    later
}

/// What the tape says of each call.
pub(super) fn fates(records: &[Record]) -> HashMap<CallNo, Fate> {
    let mut fates: HashMap<CallNo, Fate> = HashMap::new();
    for record in records {
        match &record.event {
            Event::Judged { facts, .. } => {
                fates.entry(facts.call).or_default().declared = Declared::of(facts);
            }
            Event::Settled(reply) => {
                let fate = fates.entry(reply.call).or_default();
                fate.fault = reply.fault.as_deref().cloned();
                if fate.declared.tool.is_none() {
                    fate.declared.tool = reply.tool().cloned();
                }
            }
            _ => {}
        }
    }
    fates
}
