//! A question whether a call may run, and what a yes to it is good for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::canon::{Canon, Domain, Hash};
use crate::fault::ToolError;
use crate::id::{CallNo, RunId, ToolId};
use crate::proposal::Facts;

/// A question whether a call may run.
///
/// Its `approval` is a hash of all that a yes is good for: the run, the call, its tool and how that
/// was declared, its arguments, the rule that asks, the version of the policy, the moment at
/// which it expires, and the change that was shown. Where any of these is another, nobody said yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The call.
    pub call: CallNo,
    /// Which question about the call it is, counted from 1.
    pub question: u32,
    /// The attempt that is in doubt, where the question is whether to make another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The rule that asks.
    pub rule: Cow<'static, str>,
    /// The version of the policy.
    pub policy: Hash,
    /// When a yes is none any more, in microseconds since the Unix epoch.
    pub until_us: u64,
    /// The hash of what the call would change, where its tool showed that when it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Hash>,
    /// What a yes is good for.
    pub approval: Hash,
}

/// What a call would change, or why that cannot be shown.
pub(crate) type Previewed = Result<String, ToolError>;

/// The hash of a preview, unless there is none to see.
pub(crate) fn shown(preview: Option<&Previewed>) -> Option<Hash> {
    let text = preview?.as_ref().ok()?;
    Some(Hash::of(Domain::Preview, text.as_bytes()))
}

/// What an approval is the hash of, in canonical form.
#[derive(Serialize)]
struct Bound<'q> {
    run: RunId,
    call: CallNo,
    question: u32,
    attempt: Option<u32>,
    tool: Option<&'q ToolId>,
    definition: Option<Hash>,
    args_hash: Hash,
    rule: Hash,
    policy: Hash,
    /// Left out where there is none, as in questions from before there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<Hash>,
    until_us: u64,
}

impl Question {
    /// A question about a call; `no` and `attempt` say which.
    pub(crate) fn new(
        (run, facts): (RunId, &Facts),
        (no, attempt): (u32, Option<u32>),
        (rule, policy): (Cow<'static, str>, Hash),
        (shown, until_us): (Option<Hash>, u64),
    ) -> Question {
        let (call, approval) = (facts.call, facts.args_hash);
        let mut question =
            Question { call, question: no, attempt, rule, policy, until_us, shown, approval };
        question.approval = question.approval_of(run, facts);
        question
    }

    /// Whether it was asked about just this change, as [`Run::preview`](crate::Run::preview) shows
    /// it now; where nothing could be shown then, whether nothing can.
    pub fn showed(&self, preview: Option<&Result<String, ToolError>>) -> bool {
        self.shown == shown(preview)
    }

    /// What a yes is good for, where this is the call.
    pub(crate) fn approval_of(&self, run: RunId, facts: &Facts) -> Hash {
        let bound = Bound {
            run,
            call: facts.call,
            question: self.question,
            attempt: self.attempt,
            tool: facts.tool(),
            definition: facts.definition(),
            args_hash: facts.args_hash,
            // A text of any length, where all else is short.
            rule: Hash::of(Domain::Policy, self.rule.as_bytes()),
            policy: self.policy,
            shown: self.shown,
            until_us: self.until_us,
        };
        let bound = Canon::of(&bound).expect("numbers, names and hashes have a canonical form");
        Hash::of(Domain::Approval, bound.as_bytes())
    }

    /// Whether a yes to it is one to this call now, as far as the call itself says.
    pub(crate) fn holds(
        &self,
        (run, facts): (RunId, &Facts),
        (rule, policy): (&str, Hash),
        now_us: u64,
    ) -> bool {
        now_us < self.until_us
            && (&*self.rule, self.policy) == (rule, policy)
            && self.approval == self.approval_of(run, facts)
    }
}
