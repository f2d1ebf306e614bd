//! What a replay found.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::divergence::Divergence;
use crate::artifact::{ArtifactId, Artifacts};
use crate::id::{CallNo, Name, RunId};
use crate::reply::Reply;
use crate::tape::{MemoryTape, Record};

/// What a replay found.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The run that was played.
    pub run: RunId,
    /// How many records were played.
    pub records: u64,
    /// How many calls came to their end.
    pub calls: u64,
    /// How many of them were executed again.
    pub executed: u64,
    /// How many of them were taken from the tape.
    pub served: u64,
    /// The calls that the tape does not see the end of: it was cut, or the run was.
    pub unsettled: Vec<CallNo>,
    /// The differences, in the order of the records.
    pub divergences: Vec<Divergence>,
    /// What the run put aside and is not there any more.
    pub missing_artifacts: Vec<ArtifactId>,
    /// The tools that were executed for real because the replay was told to.
    pub live: Vec<Name>,
    /// The tape that was made, up to the first difference.
    #[serde(skip)]
    pub tape: MemoryTape,
}

impl Report {
    /// Whether everything came to the same.
    pub fn is_same(&self) -> bool {
        self.divergences.is_empty() && self.missing_artifacts.is_empty()
    }

    /// The first difference.
    pub fn first(&self) -> Option<&Divergence> {
        self.divergences.first()
    }

    /// What became of the calls, in the order in which they ended, up to the first difference.
    pub fn replies(&self) -> Vec<Reply> {
        self.tape.records(self.run).iter().filter_map(Record::settled).cloned().collect()
    }

    /// Looks for what records refer to.
    pub(super) async fn look_for(&mut self, records: &[Record], artifacts: &Artifacts) {
        let settled = records.iter().filter_map(Record::settled);
        let wanted: BTreeSet<_> = settled.flat_map(|reply| reply.artifacts.iter()).collect();
        for id in wanted.into_iter().map(|hash| ArtifactId(*hash)) {
            if artifacts.admit(id).is_err() || artifacts.get(id).await.is_err() {
                self.missing_artifacts.push(id);
            }
        }
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { run, records, calls, executed, served, .. } = self;
        for tool in &self.live {
            writeln!(f, "live: `{tool}` was executed for real")?;
        }
        for divergence in &self.divergences {
            writeln!(f, "{divergence}")?;
        }
        for artifact in &self.missing_artifacts {
            writeln!(f, "the artifact `{artifact}` is missing; all else can be read")?;
        }
        if !self.unsettled.is_empty() {
            let calls: Vec<_> = self.unsettled.iter().map(CallNo::to_string).collect();
            writeln!(f, "the tape ends before these calls do: {}", calls.join(", "))?;
        }
        let verdict = match self.divergences.len() {
            0 => "the same as recorded".to_owned(),
            1 => "1 difference".to_owned(),
            many => format!("{many} differences"),
        };
        write!(
            f,
            "run {run}: {records} records, {calls} calls ({executed} executed again, \
             {served} from the tape): {verdict}"
        )
    }
}
