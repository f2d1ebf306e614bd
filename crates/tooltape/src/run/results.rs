//! What a run does with results: where large ones go, and what must not leave it.

use std::sync::Arc;

use super::{Run, Setup};
use crate::artifact::Artifacts;
use crate::grant::{GrantMap, Need, Secret};
use crate::id::RunId;
use crate::proposal::Proposal;
use crate::reply::{Finishing, Framing, RedactError, Redactor, SECRET_BYTES_MIN};
use crate::right::{ScopeError, Word};
use crate::toolbox::Offer;

impl Run {
    /// Keeps secrets out of what leaves the run: replies, records, artifacts. Texts and bytes that
    /// are granted as a [`Secret`](crate::Secret) are kept out without this.
    #[must_use]
    pub fn redact(mut self, redactor: Redactor) -> Run {
        self.setup.redactor = redactor;
        self
    }

    /// Takes a secret that a configuration names: the tools that take its type have it (see
    /// [`secret!`](crate::secret!)), no other does, and nothing that leaves the run shows it.
    ///
    /// Fails where it is too short to be looked for, where it has no name of a secret, and where a
    /// tool takes it as a text and it is none.
    pub fn secret(mut self, name: &str, secret: Secret<Vec<u8>>) -> Result<Run, SecretError> {
        let name: Word = name.parse()?;
        let bytes = secret.expose().len();
        if bytes < SECRET_BYTES_MIN {
            return Err(RedactError::TooShort { bytes }.into());
        }
        let toolbox = self.toolbox().clone();
        let needs = toolbox.tools().flat_map(|tool| tool.needs());
        let wanted: Vec<Need> = needs.filter(|need| need.secret() == Some(name.as_str())).collect();
        let kept = self.setup.grants.keep(secret, wanted);
        kept.map_err(|need| SecretError::NotText { name, need })?;
        Ok(self)
    }

    /// A proposal as it may be written down.
    #[inline]
    pub(crate) fn discreet(&self, offer: &Offer, proposal: Proposal) -> Proposal {
        let redactor = &self.live().finishing.redactor;
        redactor.proposal(proposal, |name| offer.find(name).is_some())
    }

    /// What somebody said to the model, as it may be written down and shown to it.
    pub(crate) fn discreet_text(&self, text: Arc<str>) -> Arc<str> {
        self.live().finishing.redactor.shared(text)
    }

    /// What keeps secrets from the tape, models and people.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.live().finishing.redactor
    }

    /// Whether a text may be written down as it is.
    pub(crate) fn is_discreet(&self, text: &str) -> bool {
        !self.live().finishing.redactor.finds(text)
    }

    /// Sets whether models read output between two lines of ours, or as it is.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Run {
        self.setup.framing = framing;
        self
    }

    /// What the run's calls put aside, such as output that was too large to show.
    ///
    /// It is in memory, unless the run was granted [`Artifacts`] that are elsewhere.
    pub fn artifacts(&self) -> &Artifacts {
        &self.live().finishing.artifacts
    }
}

/// Why a run does not take a secret. Nothing of the secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// It has no name of a secret.
    #[error(transparent)]
    Name(#[from] ScopeError),
    /// It cannot be looked for.
    #[error(transparent)]
    Redact(#[from] RedactError),
    /// It is no text, and a tool takes it as one.
    #[error("the secret `{name}` is not UTF-8, and {need:?} is a text")]
    NotText {
        /// Its name.
        name: Word,
        /// The type that a tool takes.
        need: Need,
    },
}

impl Setup {
    /// How a run that is set up so finishes results, and why it must not begin, if it must not.
    pub(super) fn finishing(
        &self,
        run: RunId,
        grants: &mut GrantMap,
    ) -> (Finishing, Option<RedactError>) {
        let artifacts = grants.get().cloned().unwrap_or_else(Artifacts::memory);
        // What a run put aside, its children may read, and nobody else.
        let artifacts = if self.depth == 0 { artifacts.for_run() } else { artifacts };
        let (redactor, unredacted) = match self.redactor.and(grants.secrets()) {
            Ok(redactor) => (redactor, None),
            Err(err) => (self.redactor.clone(), Some(err)),
        };
        let artifacts = artifacts.behind(Arc::new(redactor.clone()));
        grants.insert(artifacts.clone());
        let (framing, output_bytes) = (self.framing, self.limits.output_bytes);
        (Finishing { run, artifacts, redactor, framing, output_bytes }, unredacted)
    }
}
