//! What the tape keeps of a conversation with a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::proposal::Proposal;
use crate::verbatim::Verbatim;

/// A turn that a model took.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TurnEvent {
    /// What it said.
    pub text: Option<Arc<str>>,
    /// What it proposed.
    pub proposals: Arc<[ProposalEvent]>,
    /// Why it stopped.
    pub stop: &'static str,
    /// Tokens that it read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// The part of what it read that its provider had read before.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// What only its provider can read of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Arc<Verbatim>>,
}

/// What turns cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// The part of what it read that its provider had read before.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
}

impl Usage {
    /// Adds what another turn cost.
    pub fn add(&mut self, other: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
    }
}

/// A proposal as a model made it, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalEvent {
    /// The provider's id.
    pub id: Arc<str>,
    /// The name as written.
    pub name: Arc<str>,
    /// The arguments as written.
    pub arguments: Arc<str>,
    /// Why a provider layer could not parse them.
    pub error: Option<String>,
}

impl ProposalEvent {
    pub(crate) fn new(proposal: &Proposal) -> ProposalEvent {
        ProposalEvent {
            id: proposal.id.clone(),
            name: proposal.name.clone(),
            arguments: proposal.text().clone(),
            error: proposal.failure().map(|(error, _)| error.to_owned()),
        }
    }

    pub(crate) fn proposal(&self) -> Proposal {
        let (id, name, arguments) = (self.id.clone(), self.name.clone(), self.arguments.clone());
        match &self.error {
            None => Proposal::new(id, name, arguments),
            Some(error) => Proposal::unparsed(id, name, arguments, error.clone()),
        }
    }
}

/// Whether there is nothing to write down.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What the runtime says to a model that repeats itself, or that did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Nudge {
    /// Why: `repeated`, `alternating`, `target` or `fruitless` where nothing comes of its calls,
    /// `answer` where its answer does not fit, `choice` where it should have proposed a call.
    pub why: &'static str,
    /// The tool that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// How often that happened.
    pub times: u32,
    /// What the model reads.
    pub text: Arc<str>,
}

impl Nudge {
    /// The words for why.
    pub(crate) const WHYS: [&str; 6] =
        ["repeated", "alternating", "target", "fruitless", "answer", "choice"];
}

/// An entry of a conversation that took place elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Recalled {
    /// What the user said.
    User {
        /// The words.
        text: Arc<str>,
    },
    /// What a model said and proposed.
    Model {
        /// What it said.
        text: Option<Arc<str>>,
        /// What it proposed.
        #[serde(default)]
        proposals: Vec<ProposalEvent>,
    },
    /// What its proposals came to.
    Replies {
        /// One each, in their order.
        replies: Vec<RecalledReply>,
    },
}

/// What became of a call in a conversation that took place elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecalledReply {
    /// The provider's id of the call.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// What the model read.
    pub text: Arc<str>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
}

impl Recalled {
    /// About how many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        let said = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        match self {
            Recalled::User { text } => text.len(),
            Recalled::Model { text, proposals } => {
                let proposed = proposals.iter().map(|it| it.name.len() + it.arguments.len());
                said(text) + proposed.sum::<usize>()
            }
            Recalled::Replies { replies } => replies.iter().map(|it| it.text.len()).sum(),
        }
    }
}
