//! A call: a proposal that may be judged, and performed if it is permitted.

use std::sync::Arc;

use crate::canon::{Canon, Domain, Hash};
use crate::fault::ToolError;
use crate::id::{CallNo, ToolId};
use crate::label::Label;
use crate::proposal::{Facts, MoreFacts, Proposal, RepairStep, Resolved, kept};
use crate::reply::Draft;
use crate::right::{Right, RightError};
use crate::spec::{Effects, Enforced, Footprint, Spec, Typed};
use crate::tool::Registered;

/// A proposal that named an offered tool and fitted its schema. Only an offer makes one.
pub struct Call {
    draft: Draft,
    typed: Option<Typed>,
}

impl Call {
    /// The call that a proposal resolved to. Of its arguments as written, so many bytes are kept.
    #[inline]
    pub(crate) fn new(
        call: CallNo,
        proposal: Proposal,
        resolved: Resolved,
        context: Option<Arc<Label>>,
        bytes: usize,
    ) -> Call {
        let Resolved { registered, args, typed, repairs } = resolved;
        let (name, spends) = (registered.id().name(), registered.spends(&args));
        let facts = Facts {
            call,
            id: proposal.id,
            name: if *proposal.name == *name.as_str() { proposal.name } else { name.to_arc() },
            arguments: kept(proposal.arguments.into_text(), bytes),
            args_hash: Hash::of(Domain::Arguments, args.as_bytes()),
            more: MoreFacts { repairs, context, spends, remembered: None }.kept(),
            args: Some(args),
            registered: Some(registered),
        };
        Call { draft: Draft::new(facts), typed }
    }

    /// What resolving found out.
    pub(crate) fn into_resolved(self) -> Resolved {
        let (registered, args) = (self.registered().clone(), self.args().clone());
        Resolved { registered, args, repairs: self.draft.repairs().to_vec(), typed: self.typed }
    }

    /// What the reply is made of, once nothing more can happen to the call.
    #[inline]
    pub(crate) fn into_draft(self) -> Draft {
        self.draft
    }

    /// The label of what the model had been shown when it proposed the call.
    pub fn label(&self) -> &Label {
        self.draft.context()
    }

    /// The same call, proposed by a model that had been shown this.
    pub(crate) fn under(mut self, context: Option<Arc<Label>>) -> Call {
        let facts = self.draft.facts_mut();
        let more = facts.more.take().map(|more| *more).unwrap_or_default();
        facts.more = MoreFacts { context, ..more }.kept();
        self
    }

    /// What is known of the call.
    pub fn facts(&self) -> &Facts {
        &self.draft
    }

    /// The call's number within its run.
    pub fn no(&self) -> CallNo {
        self.draft.call
    }

    /// The provider's id.
    pub fn id(&self) -> &Arc<str> {
        &self.draft.id
    }

    /// The tool's name and version.
    pub fn tool(&self) -> &ToolId {
        self.registered().id()
    }

    /// What the tool says about itself.
    #[inline]
    pub fn spec(&self) -> &Spec {
        self.registered().spec()
    }

    /// What the tool may do.
    #[inline]
    pub(crate) fn effects(&self) -> &Effects {
        self.registered().effects()
    }

    /// Who holds the tool to what it declares.
    pub fn enforced_by(&self) -> Enforced {
        self.registered().enforced_by()
    }

    /// The hash of the tool's definition.
    pub fn definition(&self) -> Hash {
        self.registered().definition()
    }

    /// The arguments in canonical form.
    pub fn args(&self) -> &Canon {
        self.draft.args.as_ref().expect("a call's arguments were read")
    }

    /// The hash of the canonical arguments.
    pub fn args_hash(&self) -> Hash {
        self.draft.args_hash
    }

    /// What was changed before the arguments were hashed.
    pub fn repairs(&self) -> &[RepairStep] {
        self.draft.repairs()
    }

    /// What it reads and writes; fails where the tool's footprint hook panics.
    #[inline]
    pub fn footprint(&self) -> Result<Footprint, ToolError> {
        self.registered().footprint(self.args(), self.typed.as_ref())
    }

    /// The rights that it needs, or why nobody holds one of them.
    pub fn needs(&self) -> Result<Vec<Right>, RightError> {
        self.registered().needs_of(self.args())
    }

    #[inline]
    pub(crate) fn registered(&self) -> &Arc<Registered> {
        self.draft.registered.as_ref().expect("a call has a tool")
    }

    /// The arguments as resolving read them, which the first attempt uses up.
    #[inline]
    pub(crate) fn take_typed(&mut self) -> Option<Typed> {
        self.typed.take()
    }
}
