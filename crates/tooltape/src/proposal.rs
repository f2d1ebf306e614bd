//! What a model asked for, what is known of that, and how it may end.

use std::fmt;
use std::sync::Arc;

use crate::canon::{Canon, Domain, Hash};
use crate::fault::{Fault, clip};
use crate::id::{CallNo, ToolId};
use crate::label::{self, Label};
use crate::right::SpendScope;
use crate::spec::Typed;
use crate::tool::{Output, Registered};

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

/// A text, or as much of it as is kept.
#[inline]
pub(crate) fn kept(text: Arc<str>, bytes: usize) -> Arc<str> {
    if text.len() <= bytes { text } else { clip(text.to_string(), bytes).into() }
}

impl Arguments {
    /// The text, parsed or not.
    pub(crate) fn into_text(self) -> Arc<str> {
        match self {
            Arguments::Text(text) | Arguments::Unparsed { raw: text, .. } => text,
        }
    }
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

/// What is known of a call, whatever became of it. Its events and its reply have it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Facts {
    /// The call's number within its run.
    pub call: CallNo,
    /// The proposal's id.
    pub id: Arc<str>,
    /// The tool's canonical name, or the name as the model wrote it where there is no such tool.
    pub name: Arc<str>,
    /// The arguments as the model wrote them.
    pub arguments: Arc<str>,
    /// The hash of the canonical arguments, or of the raw text where they were refused.
    pub args_hash: Hash,
    /// The canonical arguments, where they were not refused.
    pub args: Option<Canon>,
    pub(crate) registered: Option<Arc<Registered>>,
    pub(crate) more: Option<Box<MoreFacts>>,
}

/// What is known of few calls, and so is kept apart: every call pays for the size of its facts.
#[derive(Clone, Default)]
pub(crate) struct MoreFacts {
    pub(crate) repairs: Vec<RepairStep>,
    pub(crate) context: Option<Arc<Label>>,
    pub(crate) spends: Option<Box<[SpendScope]>>,
    /// The tool as a tape remembers it, where the facts were read from one.
    pub(crate) remembered: Option<Remembered>,
}

impl MoreFacts {
    /// These facts, where there are any.
    #[inline]
    pub(crate) fn kept(self) -> Option<Box<MoreFacts>> {
        let MoreFacts { repairs, context, spends, remembered } = &self;
        let is_none = context.is_none() && spends.is_none() && remembered.is_none();
        (!is_none || !repairs.is_empty()).then(|| Box::new(self))
    }
}

/// What a tape keeps of a tool.
#[derive(Clone)]
pub(crate) struct Remembered {
    pub(crate) tool: ToolId,
    pub(crate) definition: Option<Hash>,
}

impl Facts {
    /// The tool's name and version, where there is such a tool.
    pub fn tool(&self) -> Option<&ToolId> {
        match &self.registered {
            Some(registered) => Some(registered.id()),
            None => self.remembered().map(|remembered| &remembered.tool),
        }
    }

    /// What the call is about, where its tool says so.
    pub(crate) fn target(&self) -> Option<String> {
        let identity = self.registered.as_ref()?.spec().hooks.identity.as_ref()?;
        identity.of(self.args.as_ref()?)
    }

    /// The hash of the tool's definition, where there is such a tool.
    pub fn definition(&self) -> Option<Hash> {
        match &self.registered {
            Some(registered) => Some(registered.definition()),
            None => self.remembered().and_then(|remembered| remembered.definition),
        }
    }

    fn remembered(&self) -> Option<&Remembered> {
        self.more.as_ref()?.remembered.as_ref()
    }

    /// What was changed before the arguments were hashed.
    pub fn repairs(&self) -> &[RepairStep] {
        self.more.as_ref().map_or(&[], |more| &more.repairs)
    }

    /// The label of what the model had been shown.
    pub fn context(&self) -> &Label {
        label::said(self.context_kept())
    }

    /// The same, where that says anything.
    #[inline]
    pub(crate) fn context_kept(&self) -> Option<&Arc<Label>> {
        self.more.as_ref()?.context.as_ref()
    }

    /// What the call spends, as far as its tool says so.
    #[inline]
    pub fn spends(&self) -> &[SpendScope] {
        self.more.as_ref().and_then(|more| more.spends.as_deref()).unwrap_or_default()
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("call", &self.call)
            .field("id", &self.id)
            .field("name", &self.name)
            .field("tool", &self.tool())
            .field("arguments", &self.arguments)
            .field("args_hash", &self.args_hash)
            .field("repairs", &self.repairs())
            .finish()
    }
}

/// A change that was made to arguments before they were hashed, by the run's repair policy or by a
/// hook of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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
    /// A prepare hook of the host changed the arguments.
    Prepared,
}

/// What resolving found out about a proposal. Only an offer makes one.
pub(crate) struct Resolved {
    pub(crate) registered: Arc<Registered>,
    pub(crate) args: Canon,
    pub(crate) typed: Option<Typed>,
    pub(crate) repairs: Vec<RepairStep>,
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
