//! What the model of a run was shown, and what follows from that for its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use super::Run;
use super::trail::Trail;
use crate::call::Call;
use crate::canon::Hash;
use crate::grant::Life;
use crate::label::{Label, joined};
use crate::policy::Verdict;
use crate::proposal::Facts;
use crate::reply::Reply;
use crate::right::{Hosts, Right};
use crate::spec::{Access, Effects, Reach};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The rule that asks about what somebody untrusted may have proposed.
const RULE_UNTRUSTED: &str = "label: untrusted";
/// The rule that asks about what would tell others what is internal.
const RULE_INTERNAL: &str = "label: internal";
/// The rule that denies what would tell others a secret.
const RULE_SECRET: &str = "label: secret";

/// The label of all that the model of a run was shown.
#[derive(Default)]
pub(super) struct Shown {
    /// Whether it says anything.
    any: AtomicBool,
    label: Mutex<Option<Arc<Label>>>,
    /// The call that started the run, which sees what the run sees.
    by: Option<Arc<Life>>,
}

impl Shown {
    pub(super) fn new(label: Option<Arc<Label>>, by: Option<Arc<Life>>) -> Shown {
        Shown { any: AtomicBool::new(label.is_some()), label: Mutex::new(label), by }
    }

    /// The label, where it says anything.
    #[inline]
    pub(super) fn label(&self) -> Option<Arc<Label>> {
        let own = match self.any.load(Ordering::Acquire) {
            false => None,
            true => self.label.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        match &self.by {
            None => own,
            // Whatever the call has seen since, it may have told the run.
            Some(call) => joined(own.as_ref(), call.label().kept().as_ref()),
        }
    }

    /// The model is shown something that has this label.
    #[cold]
    pub(super) fn join(&self, label: &Arc<Label>) {
        let mut shown = self.label.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = joined(shown.as_ref(), Some(label));
        drop(shown);
        self.any.store(true, Ordering::Release);
        if let Some(call) = &self.by {
            call.saw(label);
        }
    }
}

/// What follows from labels.
#[derive(Clone, Default)]
pub(super) struct Taint {
    /// The hosts that may be told what is not public.
    pub(super) told: Vec<Hosts>,
    /// The definitions of tools whose results somebody vouches for, and who.
    pub(super) endorsed: BTreeMap<Hash, Arc<str>>,
}

impl Taint {
    /// What becomes of a call that a model proposed which had been shown what has this label.
    #[cold]
    pub(super) fn judge(
        &self,
        label: &Label,
        call: &Call,
        strict: bool,
        verdict: Verdict,
    ) -> Verdict {
        if let Verdict::Deny { .. } | Verdict::Allow { despite_label: true, .. } = verdict {
            return verdict;
        }
        let is_telling = !label.is_public() && tells_others(call.effects()) && !self.may_tell(call);
        if is_telling && let Some(secret) = label.secrets().next() {
            let seen = format!("what this run has seen holds the secret `{secret}`");
            return Verdict::deny(RULE_SECRET, format!("{seen}, and the call would tell others"));
        }
        let matters = !label.is_trusted() && is_consequential(call, strict);
        match verdict {
            verdict if !matters && !is_telling => verdict,
            // Whoever is asked anyway is asked about these arguments alone.
            Verdict::Ask { rule, .. } => Verdict::ask_exactly(rule),
            _ if matters => Verdict::ask_exactly(RULE_UNTRUSTED),
            _ => Verdict::ask_exactly(RULE_INTERNAL),
        }
    }

    /// Whether all hosts that a call asks may be told what is not public.
    fn may_tell(&self, call: &Call) -> bool {
        let Ok(needs) = call.registered().needs_of(call.args()) else { return false };
        let mut hosts = needs.iter().filter_map(|right| match right {
            Right::Net(net) => Some(&net.hosts),
            _ => None,
        });
        let is_told = |hosts: &Hosts| self.told.iter().any(|told| told.covers(hosts));
        // Of what says that it asks others and not whom, nobody knows whom it tells.
        !call.effects().process && hosts.clone().next().is_some() && hosts.all(is_told)
    }
}

/// Whether others learn something from what a call is given.
fn tells_others(effects: &Effects) -> bool {
    effects.access != Access::Pure && (effects.reach == Reach::Network || effects.process)
}

/// Whether a call does what cannot be taken back: starts a process, spends money, uses a secret, or
/// changes something on another machine. What only reads and declares no more does not, but to a
/// strict reader.
fn is_consequential(call: &Call, strict: bool) -> bool {
    let effects = call.effects();
    let starts_or_spends = effects.process || effects.spend;
    let acts = match effects.access {
        Access::Pure => false,
        Access::Read => starts_or_spends && (strict || !effects.is_undeclared()),
        Access::Write => starts_or_spends || effects.reach == Reach::Network,
    };
    let uses_secret = || {
        let needs = call.registered().needs_of(call.args());
        needs.is_ok_and(|needs| needs.iter().any(|right| matches!(right, Right::SecretUse(_))))
    };
    acts || uses_secret()
}

impl Run {
    /// The label of all that its model was shown.
    ///
    /// It is the join of the labels of all replies, whose batches have ended, and of what the run
    /// [began](Run::labelled) with.
    pub fn label(&self) -> Label {
        self.shown.label().map(|label| Label::clone(&label)).unwrap_or_default()
    }

    /// The label of what a call returned, once it started.
    #[inline]
    pub(super) fn label_of(&self, facts: &Facts, trail: &Trail<'_>) -> Option<Arc<Label>> {
        trail.started_us?;
        let declared = facts.registered.as_ref().and_then(|tool| tool.label(self.setup.strict));
        let output = trail.output.as_ref().and_then(|output| output.label.as_ref());
        let seen = trail.wait.life.get().and_then(|life| life.seen());
        let label = match (declared, output, &seen) {
            (None, None, None) => return None,
            (declared, output, seen) => joined(joined(declared, output).as_ref(), seen.as_ref()),
        };
        label.map(|label| self.live().finishing.redactor.label(label))
    }

    /// The labels of what the model had been shown, and of what the tool returns.
    #[inline]
    pub(super) fn labels_of<'c>(&self, call: &'c Call) -> [Option<&'c Arc<Label>>; 2] {
        [call.facts().context_kept(), call.registered().label(self.setup.strict)]
    }

    /// The reply, and who vouches for it if somebody does.
    #[inline]
    pub(super) fn endorsed(&self, reply: Reply) -> Reply {
        let endorsed = &self.setup.taint.endorsed;
        if reply.label_kept().is_none() || endorsed.is_empty() {
            return reply;
        }
        match reply.definition().and_then(|definition| endorsed.get(&definition)) {
            None => reply,
            Some(by) => reply.endorsed_by(by),
        }
    }

    /// The model is shown these replies.
    #[inline]
    pub(super) fn show(&self, replies: &[Reply]) {
        for label in replies.iter().filter_map(|reply| reply.label_kept()) {
            self.shown.join(label);
        }
    }

    /// The model is shown what has this label.
    pub(crate) fn show_label(&self, label: &Label) {
        self.shown.join(&Arc::new(label.clone()));
    }
}
