//! What a run does with results: where large ones go, and what must not leave it.

use std::sync::Arc;

use super::{Run, Setup};
use crate::artifact::Artifacts;
use crate::grant::GrantMap;
use crate::id::RunId;
use crate::reply::{Finishing, Framing, RedactError, Redactor};

impl Run {
    /// Keeps secrets out of what leaves the run: replies, records, artifacts. Texts and bytes that
    /// are granted as a [`Secret`](crate::Secret) are kept out without this.
    #[must_use]
    pub fn redact(mut self, redactor: Redactor) -> Run {
        self.setup.redactor = redactor;
        self
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
