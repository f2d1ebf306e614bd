//! Decides whether a call may run, and never acts.

mod argument;
mod evidence;
mod glob;
mod host;
mod lint;
mod literal;
mod rule;
mod rules;
mod strict;

use std::borrow::Cow;
use std::panic::{self, AssertUnwindSafe};

pub use argument::{ARGUMENT_STEPS_MAX, Argument, ArgumentError, Test};
pub use glob::{GLOB_BYTES_MAX, GLOB_WAYS_MAX, Glob, GlobError};
pub use lint::{Flaw, Part};
pub use literal::{Literal, NotANumber, Number};
pub use rule::{Effect, Mark, Rule, Says, Side, Walls};
pub use rules::{Otherwise, Rules, Said};
use serde::Serialize;
pub(crate) use strict::outside;

use crate::approve::Question;
use crate::call::Call;
use crate::canon::{Canon, Domain, Hash};
use crate::fault::{Denied, Fault, ToolError};
use crate::id::RunId;
use crate::reply::Draft;
use crate::tool::BoxFuture;

/// A decision about one call, and the rule that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow {
        /// The rule that decided.
        rule: Cow<'static, str>,
        /// Whether it decided knowing the [label](Call::label) of the call, so that nobody is asked
        /// about that.
        despite_label: bool,
        /// Whether it decided about this very tool, so that a strict run asks nobody about what
        /// that does not declare.
        names_tool: bool,
    },
    /// Run it if somebody who was asked says yes.
    Ask {
        /// The rule that decided.
        rule: Cow<'static, str>,
        /// Whether a yes is for this call and its arguments alone, and for nothing that follows.
        exact: bool,
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
        Verdict::Allow { rule: rule.into(), despite_label: false, names_tool: false }
    }

    /// Allows, by this rule, which knows what [label](Call::label) the call has.
    pub fn allow_despite_label(rule: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Allow { rule: rule.into(), despite_label: true, names_tool: false }
    }

    /// Allows, by this rule, which names the tool of the call.
    pub fn allow_tool(rule: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Allow { rule: rule.into(), despite_label: false, names_tool: true }
    }

    /// Asks, by this rule.
    pub fn ask(rule: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Ask { rule: rule.into(), exact: false }
    }

    /// Asks, by this rule, about this call and its arguments alone.
    pub fn ask_exactly(rule: impl Into<Cow<'static, str>>) -> Verdict {
        Verdict::Ask { rule: rule.into(), exact: true }
    }

    /// Denies, by this rule, and tells the model why.
    pub fn deny(rule: impl Into<Cow<'static, str>>, told: impl Into<String>) -> Verdict {
        Verdict::Deny { rule: rule.into(), told: Some(told.into()) }
    }

    /// The rule that decided.
    pub fn rule(&self) -> &Cow<'static, str> {
        match self {
            Verdict::Allow { rule, .. }
            | Verdict::Ask { rule, .. }
            | Verdict::Deny { rule, .. } => rule,
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

    /// What the reply is made of. Nothing more can be performed.
    pub(crate) fn into_draft(self) -> Draft {
        self.call.into_draft()
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

/// The rule that asks whether to do again what may have happened.
const RULE_IN_DOUBT: &str = "in doubt";

/// A call that somebody must be asked about.
pub struct Pending {
    call: Call,
    rule: Cow<'static, str>,
    exact: bool,
    in_doubt: bool,
    shown: Shown,
}

/// What whoever is asked about a call can see besides.
#[derive(Default)]
struct Shown {
    run: Option<RunId>,
    question: Option<Question>,
    preview: Option<Result<String, ToolError>>,
}

/// What somebody who was asked said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Run it, this once.
    Once,
    /// Run it, and whatever else this rule asks about the same tool until the run ends.
    Run,
    /// Run it, this once, by an answer that somebody saved before; the tape says which. It is none
    /// to a question that is [exact](Pending::is_exact).
    Saved(String),
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
    /// Asks whether to do again what may have happened.
    pub(crate) fn again(call: Call) -> Pending {
        let (rule, shown) = (RULE_IN_DOUBT.into(), Shown::default());
        Pending { call, rule, exact: true, in_doubt: true, shown }
    }

    /// The call in question.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The rule that asks.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What the call would change as things are now, or why that cannot be shown; nothing, where
    /// its tool has no [`Preview`](crate::Preview).
    pub fn preview(&self) -> Option<&Result<String, ToolError>> {
        self.shown.preview.as_ref()
    }

    /// The question as it is on the tape: until when it stands, and what a yes is good for.
    pub fn question(&self) -> Option<&Question> {
        self.shown.question.as_ref()
    }

    /// Lets whoever is asked see this.
    pub(crate) fn show(
        &mut self,
        run: RunId,
        question: Question,
        preview: Option<Result<String, ToolError>>,
    ) {
        self.shown = Shown { run: Some(run), question: Some(question), preview };
    }

    /// The run that asks: the one whose approver this is, or one below it.
    pub fn run(&self) -> Option<RunId> {
        self.shown.run
    }

    /// Whether a yes is for this call and its arguments alone: [`Answer::Run`] says no more than
    /// [`Answer::Once`] then, and what was answered before does not count.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether the call began before a crash and nobody knows what it did: a yes does it again.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    pub(crate) fn rule_text(&self) -> &Cow<'static, str> {
        &self.rule
    }

    pub(crate) fn answer(self, answer: Answer) -> Result<Permit, Halted> {
        match answer {
            Answer::Once | Answer::Run | Answer::Saved(_) => Ok(Permit { call: self.call }),
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
pub(crate) fn version(policy: &dyn Policy, strict: bool) -> Hash {
    let version = panic::catch_unwind(AssertUnwindSafe(|| policy.version()));
    let version = version.unwrap_or_else(|_| Hash::of(Domain::Policy, b"the policy panicked"));
    match strict {
        false => version,
        true => Hash::of(Domain::Policy, &[b"strict", &version.as_bytes()[..]].concat()),
    }
}

impl Verdict {
    /// What it says, whoever says it.
    pub fn says(&self) -> Says {
        match self {
            Verdict::Allow { .. } => Says::Allow,
            Verdict::Ask { .. } => Says::Ask,
            Verdict::Deny { .. } => Says::Deny,
        }
    }

    /// The word for it that the tape keeps.
    #[inline]
    pub(crate) fn word(&self) -> &'static str {
        self.says().word()
    }

    /// Makes the verdict true of the call. The only way to a permit.
    #[inline]
    pub(crate) fn apply(self, call: Call) -> Judged {
        match self {
            Verdict::Allow { .. } => Judged::Permitted(Permit { call }),
            Verdict::Ask { rule, exact } => {
                let (in_doubt, shown) = (false, Shown::default());
                Judged::Pending(Pending { call, rule, exact, in_doubt, shown })
            }
            Verdict::Deny { rule, told } => {
                Judged::Refused(Refused { call, fault: denied(rule, told) })
            }
        }
    }
}

fn denied(rule: Cow<'static, str>, told: Option<String>) -> Fault {
    Fault::Denied(Denied { rule, told, unasked: false })
}
