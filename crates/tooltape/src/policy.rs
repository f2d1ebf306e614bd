//! Decides whether a call may run, and never acts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use serde::Serialize;

use crate::call::{Call, Facts};
use crate::canon::{Canon, Domain, Hash};
use crate::fault::{Denied, Fault};
use crate::spec::Access;
use crate::tool::BoxFuture;

/// A decision about one call, and the rule that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow {
        /// The rule that decided.
        rule: Cow<'static, str>,
    },
    /// Run it if somebody who was asked says yes.
    Ask {
        /// The rule that decided.
        rule: Cow<'static, str>,
    },
    /// Do not run it.
    Deny {
        /// The rule that decided. Always on the tape.
        rule: Cow<'static, str>,
        /// What the model reads, where it may learn from the denial.
        told: Option<String>,
    },
}

impl Verdict {
    /// Allows, by this rule.
    pub fn allow(rule: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Allow { rule: rule.into() }
    }

    /// Asks, by this rule.
    pub fn ask(rule: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Ask { rule: rule.into() }
    }

    /// Denies, by this rule, and tells the model why.
    pub fn deny(rule: impl Into<Cow<'static, str>>, told: impl Into<String>) -> Verdict {
        Verdict::Deny { rule: rule.into(), told: Some(told.into()) }
    }

    /// The rule that decided.
    pub fn rule(&self) -> &Cow<'static, str> {
        match self {
            Verdict::Allow { rule } | Verdict::Ask { rule } | Verdict::Deny { rule, .. } => rule,
        }
    }
}

/// Decides about calls. A closure is a policy too.
///
/// ```
/// use tooltape::{Call, Policy, Verdict};
///
/// fn runs(policy: impl Policy) {}
/// runs(|call: &Call| match call.tool().name().as_str() {
///     "echo" => Verdict::allow("echo is harmless"),
///     _ => Verdict::deny("only echo", "this run may only echo"),
/// });
/// ```
pub trait Policy: Send + Sync {
    /// Judges one call. A panic in it denies the call.
    fn judge(&self, call: &Call) -> Verdict;

    /// What tells this policy from another: a hash of all that it decides by. An approval under one
    /// version is none under another.
    fn version(&self) -> Hash;
}

impl<F: Fn(&Call) -> Verdict + Send + Sync> Policy for F {
    fn judge(&self, call: &Call) -> Verdict {
        self(call)
    }

    /// Nobody can look into a closure: its version is the name of its type, which is that of the
    /// function around it. Where that says too little, implement [`Policy`].
    fn version(&self) -> Hash {
        Hash::of(Domain::Policy, std::any::type_name::<F>().as_bytes())
    }
}

/// Rules by access and by name. What no rule names is denied, and a denial beats everything.
///
/// ```
/// use tooltape::Rules;
/// let rules = Rules::allow_reads().ask_before_writes().deny("push", "not on a Friday");
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rules {
    reads: bool,
    ask_writes: bool,
    allowed: Vec<String>,
    denied: BTreeMap<String, String>,
}

impl Rules {
    /// Denies everything.
    pub fn deny_all() -> Rules {
        Rules::default()
    }

    /// Allows what is pure or only reads; denies the rest.
    pub fn allow_reads() -> Rules {
        Rules { reads: true, ..Rules::default() }
    }

    /// Asks before a write that no other rule decides.
    #[must_use]
    pub fn ask_before_writes(mut self) -> Rules {
        self.ask_writes = true;
        self
    }

    /// Allows the tool of exactly this name.
    #[must_use]
    pub fn allow(mut self, name: impl Into<String>) -> Rules {
        self.allowed.push(name.into());
        self
    }

    /// Denies the tool of exactly this name, and tells the model why.
    #[must_use]
    pub fn deny(mut self, name: impl Into<String>, told: impl Into<String>) -> Rules {
        self.denied.insert(name.into(), told.into());
        self
    }
}

impl Policy for Rules {
    fn judge(&self, call: &Call) -> Verdict {
        let name = call.tool().name().as_str();
        let effects = call.effects();
        if let Some(told) = self.denied.get(name) {
            return Verdict::deny(format!("deny {name}"), told);
        }
        if self.allowed.iter().any(|allowed| allowed == name) {
            return Verdict::allow(format!("allow {name}"));
        }
        match effects.access {
            _ if effects.confirm && (self.reads || self.ask_writes) => Verdict::ask("confirm"),
            Access::Pure | Access::Read if self.reads => Verdict::allow("allow reads"),
            Access::Write if self.ask_writes => Verdict::ask("ask before writes"),
            Access::Write if self.reads => Verdict::deny("allow reads", "this run may only read"),
            Access::Pure | Access::Read | Access::Write => {
                Verdict::deny("deny all", format!("`{name}` is not allowed in this run"))
            }
        }
    }

    fn version(&self) -> Hash {
        version_of(self)
    }
}

/// The version of a policy that is data. What cannot be written has a version all the same.
fn version_of(policy: &impl Serialize) -> Hash {
    let text = Canon::of(policy).map_or_else(|err| err.to_string(), |it| it.as_str().to_owned());
    Hash::of(Domain::Policy, text.as_bytes())
}

/// A call that was permitted. The only thing that can be performed, and it cannot be copied.
pub struct Permit {
    call: Call,
}

impl Permit {
    /// The permitted call.
    pub fn call(&self) -> &Call {
        &self.call
    }

    pub(crate) fn call_mut(&mut self) -> &mut Call {
        &mut self.call
    }

    /// Nothing is performed: somebody had said no.
    pub(crate) fn withdrawn(self, told: String) -> Refused {
        Refused { call: self.call, fault: denied("answer".into(), Some(told)) }
    }

    /// What the reply is for. Nothing more can be performed.
    pub(crate) fn into_facts(self) -> Arc<Facts> {
        self.call.into_facts()
    }
}

/// What became of a call that a policy judged.
pub(crate) enum Judged {
    Permitted(Permit),
    Pending(Pending),
    Refused(Refused),
}

/// A call that will not be performed, and why.
pub(crate) struct Refused {
    pub(crate) call: Call,
    pub(crate) fault: Fault,
}

/// A call that somebody must be asked about.
pub struct Pending {
    call: Call,
    rule: Cow<'static, str>,
}

/// What somebody who was asked said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Run it, this once.
    Once,
    /// Run it, and whatever else this rule asks about the same tool until the run ends.
    Run,
    /// Do not run it; the model reads why.
    Deny(String),
    /// Nobody answers now: the question waits on the tape, and the run pauses. A nested run cannot
    /// wait so long, and takes it for a no.
    Later,
}

/// A call that does not go on.
pub(crate) enum Halted {
    Refused(Refused),
    /// It waits for an answer, perhaps beyond the life of this process.
    Parked(Call),
}

impl From<Refused> for Halted {
    fn from(refused: Refused) -> Halted {
        Halted::Refused(refused)
    }
}

impl Pending {
    /// The call in question.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The rule that asks.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    pub(crate) fn rule_text(&self) -> &Cow<'static, str> {
        &self.rule
    }

    pub(crate) fn answer(self, answer: Answer) -> Result<Permit, Halted> {
        match answer {
            Answer::Once | Answer::Run => Ok(Permit { call: self.call }),
            Answer::Deny(told) => {
                let fault = denied(self.rule, Some(told));
                Err(Halted::Refused(Refused { call: self.call, fault }))
            }
            Answer::Later => Err(Halted::Parked(self.call)),
        }
    }

    /// Nobody can be asked, so the answer is no.
    pub(crate) fn unasked(self) -> Refused {
        let told = Some("this call needs an approval, and nobody can be asked".to_owned());
        let fault = Fault::Denied(Denied { rule: self.rule, told, unasked: true });
        Refused { call: self.call, fault }
    }

    /// Something else went wrong before anybody answered.
    pub(crate) fn failed(self, fault: Fault) -> Refused {
        Refused { call: self.call, fault }
    }
}

/// Asks a person about a call. The answer may take as long as it takes.
///
/// Dropping the future withdraws the question.
pub type Approver = dyn for<'a> Fn(&'a Pending) -> BoxFuture<'a, Answer> + Send + Sync;

/// Lets a policy judge a call. A policy that panics denies.
#[inline]
pub(crate) fn judge(policy: &dyn Policy, call: &Call) -> Verdict {
    let judging = AssertUnwindSafe(|| policy.judge(call));
    panic::catch_unwind(judging)
        .unwrap_or_else(|_| Verdict::deny("the policy panicked", "the policy failed"))
}

/// The version of a policy. One that panics has one too.
pub(crate) fn version(policy: &dyn Policy) -> Hash {
    let version = panic::catch_unwind(AssertUnwindSafe(|| policy.version()));
    version.unwrap_or_else(|_| Hash::of(Domain::Policy, b"the policy panicked"))
}

impl Verdict {
    /// The word for it that the tape keeps.
    #[inline]
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Verdict::Allow { .. } => "allow",
            Verdict::Ask { .. } => "ask",
            Verdict::Deny { .. } => "deny",
        }
    }

    /// Makes the verdict true of the call. The only way to a permit.
    #[inline]
    pub(crate) fn apply(self, call: Call) -> Judged {
        match self {
            Verdict::Allow { .. } => Judged::Permitted(Permit { call }),
            Verdict::Ask { rule } => Judged::Pending(Pending { call, rule }),
            Verdict::Deny { rule, told } => {
                Judged::Refused(Refused { call, fault: denied(rule, told) })
            }
        }
    }
}

fn denied(rule: Cow<'static, str>, told: Option<String>) -> Fault {
    Fault::Denied(Denied { rule, told, unasked: false })
}
