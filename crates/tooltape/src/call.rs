//! The life of a call, as types: what was proposed, and what became of the proposal.

use std::sync::Arc;

use crate::canon::{Canon, Domain, Hash};
use crate::fault::Fault;
use crate::id::{CallNo, ToolId};
use crate::spec::{Spec, Typed};
use crate::tool::{Args, Output, Registered};

/// What a model asked for. Nothing in it is trusted, not even that it is JSON.
///
/// ```
/// use tooltape::Proposal;
/// let proposal = Proposal::new("call_1", "read_file", r#"{"path":"a.txt"}"#);
/// assert_eq!(proposal.failure(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The provider's id, kept on every path. It may be empty, and it may be used twice.
    pub id: Arc<str>,
    /// The name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments as the model wrote them.
    pub arguments: Arguments,
}

/// What a model sent for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// Text, which nobody has parsed yet.
    Text(Arc<str>),
    /// Text that a provider layer could not parse, and why.
    Unparsed {
        /// The text.
        raw: Arc<str>,
        /// Why it could not be parsed.
        error: String,
    },
}

impl Proposal {
    /// A proposal with arguments that nobody has parsed yet.
    pub fn new(
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        arguments: impl Into<Arc<str>>,
    ) -> Proposal {
        let arguments = Arguments::Text(arguments.into());
        Proposal { id: id.into(), name: name.into(), arguments }
    }

    /// A proposal whose arguments a provider layer tried to parse, and could not.
    pub fn unparsed(
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        raw: impl Into<Arc<str>>,
        error: impl Into<String>,
    ) -> Proposal {
        let arguments = Arguments::Unparsed { raw: raw.into(), error: error.into() };
        Proposal { id: id.into(), name: name.into(), arguments }
    }

    /// The parse failure that a provider layer handed over, as its error and the raw text.
    ///
    /// Arguments that parse are never taken for a failure, whatever keys they hold.
    pub fn failure(&self) -> Option<(&str, &str)> {
        match &self.arguments {
            Arguments::Text(_) => None,
            Arguments::Unparsed { raw, error } => Some((error, raw)),
        }
    }

    /// The arguments' text, parsed or not.
    pub fn text(&self) -> &Arc<str> {
        match &self.arguments {
            Arguments::Text(text) => text,
            Arguments::Unparsed { raw, .. } => raw,
        }
    }

    /// The hash of the raw text, in a domain of its own.
    pub fn raw_hash(&self) -> Hash {
        Hash::of(Domain::RawArguments, self.text().as_bytes())
    }
}

/// A proposal that named an offered tool and fitted its schema. Only an offer makes one.
pub struct Call {
    no: CallNo,
    id: Arc<str>,
    name: Arc<str>,
    registered: Arc<Registered>,
    args: Canon,
    args_hash: Hash,
    typed: Option<Typed>,
    repairs: Vec<RepairStep>,
}

/// A change that a run's repair policy made to arguments, before they were hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairStep {
    /// A Markdown fence around the JSON was taken off.
    Fence,
    /// JSON inside a JSON string was taken out.
    DoubleEncoding,
    /// Strings that spell numbers became numbers where the schema wants them.
    NumericString,
    /// Nothing at all became `{}`, for a tool that changes something.
    Empty,
}

/// Which call of which tool a reply is for.
pub(crate) struct Address {
    pub(crate) call: CallNo,
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) tool: Option<Arc<Registered>>,
    pub(crate) args_hash: Hash,
}

/// What resolving found out about a proposal. Only an offer makes one.
pub(crate) struct Resolved {
    pub(crate) registered: Arc<Registered>,
    pub(crate) args: Canon,
    pub(crate) typed: Option<Typed>,
    pub(crate) repairs: Vec<RepairStep>,
}

impl Call {
    /// Boxed, because it is handed on from stage to stage.
    pub(crate) fn new(no: CallNo, proposal: &Proposal, resolved: Resolved) -> Box<Call> {
        let Resolved { registered, args, typed, repairs } = resolved;
        let id = proposal.id.clone();
        let name = match &*proposal.name == registered.id().name().as_str() {
            true => proposal.name.clone(),
            false => registered.id().name().as_str().into(),
        };
        let args_hash = Hash::of(Domain::Arguments, args.as_str().as_bytes());
        Box::new(Call { no, id, name, registered, args, args_hash, typed, repairs })
    }

    /// What the reply is for, once nothing more can happen to the call.
    pub(crate) fn into_address(self) -> Address {
        let Call { no: call, id, name, registered, args_hash, .. } = self;
        Address { call, id, name, tool: Some(registered), args_hash }
    }

    /// The call's number within its run.
    pub fn no(&self) -> CallNo {
        self.no
    }

    /// The provider's id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The tool's canonical name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The tool's name and version.
    pub fn tool(&self) -> &ToolId {
        self.registered.id()
    }

    /// What the tool says about itself.
    pub fn spec(&self) -> &Spec {
        self.registered.spec()
    }

    /// The hash of the tool's definition.
    pub fn definition(&self) -> Hash {
        self.registered.definition()
    }

    /// The arguments in canonical form.
    pub fn args(&self) -> &Canon {
        &self.args
    }

    /// The hash of the canonical arguments.
    pub fn args_hash(&self) -> Hash {
        self.args_hash
    }

    /// What was repaired before the arguments were hashed.
    pub fn repairs(&self) -> &[RepairStep] {
        &self.repairs
    }

    pub(crate) fn registered(&self) -> &Arc<Registered> {
        &self.registered
    }

    /// The arguments for one attempt. What resolving read is used up by the first.
    pub(crate) fn args_for_attempt(&mut self) -> Args {
        Args::new(self.args.clone(), self.typed.take())
    }
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// The tool returned.
    Done(Output),
    /// It did not, or was never asked.
    Not(Fault),
}

impl From<Result<Output, Fault>> for Outcome {
    fn from(result: Result<Output, Fault>) -> Outcome {
        result.map_or_else(Outcome::Not, Outcome::Done)
    }
}
