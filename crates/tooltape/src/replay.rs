//! Plays a recorded run again with today's tools and policy, and names the first difference.

mod causes;
mod compare;
mod diff;
mod divergence;
mod fate;
mod player;
mod record_test;
mod report;
mod turns;

use std::ops::RangeInclusive;
use std::time::Duration;

pub use causes::Cause;
pub use diff::{CallDiff, Change, DIFF_CALLS_MAX, DIFF_CHANGES_MAX, Diff};
pub use divergence::{Divergence, Stage};
use player::Player;
pub use record_test::RecordTest;
pub use report::Report;

use crate::artifact::Artifacts;
use crate::grant::Grant;
use crate::id::{Name, RunId};
use crate::policy::Policy;
use crate::run::{Missing, Run};
use crate::tape::{Damage, Record, Tape, TapeError, all_records};
use crate::toolbox::Toolbox;

/// A recorded run that is played again. No effect happens.
///
/// The recorded turns of the model, or the recorded proposals of a run without one, go the path of
/// every call again: they are resolved by today's tools and judged by today's policy. A call is
/// executed again only if its tool is `Pure`, and `Deterministic` or `Bounded`; then its result,
/// and what it said while it ran, must be the recorded ones. What the world, a person or the time
/// decided is taken from the tape: the results of reads and writes, answers, attempts, cancels,
/// timeouts, limits that were reached.
///
/// What is played makes a tape of its own. Where nothing differs it is the recorded one, bit for
/// bit.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{MemoryTape, Proposal, Replay, Run, Toolbox, builtin};
///
/// let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(builtin::tools()).unwrap());
/// let run = Run::new(&toolbox).tape(tape.clone());
/// run.batch(vec![Proposal::new("c1", "hash", r#"{"text":""}"#)]).await.unwrap();
///
/// let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
/// assert!(report.is_same(), "{report}");
/// assert_eq!((report.calls, report.executed), (1, 1));
///
/// let report = Replay::of(&tape, run.id()).with(&Toolbox::default()).check().await.unwrap();
/// assert!(report.to_string().contains("there is no tool `hash` any more"), "{report}");
/// # });
/// ```
#[must_use = "nothing is played before `check`"]
pub struct Replay<'t> {
    tape: Source<'t>,
    toolbox: Toolbox,
    run: Run,
    policy: Verdicts,
    plan: Plan,
    artifacts: Option<Artifacts>,
}

enum Source<'t> {
    Tape(&'t dyn Tape, RunId),
    Records(Vec<Record>),
}

/// Who judges calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdicts {
    /// The record: what was permitted is.
    Recorded,
    /// A policy of today.
    Today,
}

/// How a replay goes on.
struct Plan {
    /// Whether it stops at the first difference.
    strict: bool,
    /// The records in which differences count.
    within: RangeInclusive<u64>,
    /// The tools that are executed, whatever they do.
    live: Vec<Name>,
    /// How long one call may take that is executed again, where somebody said so.
    wall: Option<Duration>,
}

/// How long one call may take that a replay executes again, where nobody bounds it.
pub const REPLAY_WALL_DEFAULT: Duration = Duration::from_secs(60);

impl<'t> Replay<'t> {
    /// A run of a tape. Until it is given tools it has none, and every call differs.
    pub fn of(tape: &'t dyn Tape, run: RunId) -> Replay<'t> {
        Replay::from_source(Source::Tape(tape, run))
    }

    /// A run whose records were read already, from the first on.
    pub fn of_records(records: Vec<Record>) -> Replay<'static> {
        Replay::from_source(Source::Records(records))
    }

    fn from_source(tape: Source<'_>) -> Replay<'_> {
        let toolbox = Toolbox::default();
        let plan = Plan { strict: true, within: 0..=u64::MAX, live: Vec::new(), wall: None };
        let (run, policy) = (Run::new(&toolbox), Verdicts::Recorded);
        Replay { tape, toolbox, run, policy, plan, artifacts: None }
    }

    /// Plays it with these tools.
    pub fn with(mut self, toolbox: &Toolbox) -> Replay<'t> {
        self.toolbox = toolbox.clone();
        self
    }

    /// Plays it as this run is set up: its tools, policy, grants, hooks, layers and limits.
    ///
    /// Its tape, clock, randomness and artifacts are not touched.
    pub fn through(mut self, run: Run) -> Replay<'t> {
        self.toolbox = run.toolbox_now();
        self.policy = Verdicts::Today;
        self.run = run;
        self
    }

    /// Lets this policy judge the calls. Without one, what was permitted then is permitted now.
    pub fn policy(mut self, policy: impl Policy + 'static) -> Replay<'t> {
        self.run = self.run.policy(policy);
        self.policy = Verdicts::Today;
        self
    }

    /// Hands tools that are executed again a value that they may name.
    pub fn grant(mut self, grant: impl Grant) -> Replay<'t> {
        self.run = self.run.grant(grant);
        self
    }

    /// Goes on after a difference, and reports all. A call that differs is then taken from the tape
    /// to its end.
    pub fn report_all(mut self) -> Replay<'t> {
        self.plan.strict = false;
        self
    }

    /// Counts differences from this record on. All before it is played, and not compared.
    pub fn from(mut self, seq: u64) -> Replay<'t> {
        self.plan.within = seq..=*self.plan.within.end();
        self
    }

    /// Ends with this record.
    pub fn to(mut self, seq: u64) -> Replay<'t> {
        self.plan.within = *self.plan.within.start()..=seq;
        self
    }

    /// Executes the calls of this tool for real, whatever it does.
    ///
    /// This is dangerous: what it writes, it writes again.
    pub fn live(mut self, tool: Name) -> Replay<'t> {
        self.plan.live.push(tool);
        self
    }

    /// Sets how long one call may take that is executed again; what its tool or the run allows less
    /// is less. A call that takes longer differs.
    ///
    /// Unless told, what they allow holds, and [`REPLAY_WALL_DEFAULT`] where they allow everything.
    /// Tools that are [`live`](Replay::live) have their own bounds alone.
    ///
    /// [`REPLAY_WALL_DEFAULT`]: crate::limits::REPLAY_WALL_DEFAULT
    pub fn wall(mut self, wall: Duration) -> Replay<'t> {
        self.plan.wall = Some(wall);
        self
    }

    /// Looks for what the run put aside here, and reports what is not there any more.
    pub fn artifacts(mut self, artifacts: &Artifacts) -> Replay<'t> {
        self.artifacts = Some(artifacts.clone());
        self
    }

    /// Plays it. Dropping the future leaves nothing behind, but for what live tools did.
    pub async fn check(self) -> Result<Report, ReplayError> {
        let Replay { tape, toolbox, run, policy, plan, artifacts } = self;
        let records = match tape {
            Source::Tape(tape, run) => all_records(tape, run).await?,
            Source::Records(records) => records,
        };
        let mut player = Player::new(&records, toolbox, run, policy, plan)?;
        for record in &records {
            if !player.step(record).await? {
                break;
            }
        }
        let mut report = player.end();
        if let Some(artifacts) = artifacts {
            report.look_for(&records, &artifacts).await;
        }
        Ok(report)
    }
}

/// Why a run could not be played again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// There is no such run.
    #[error("there are no records of that run to play")]
    Empty,
    /// The tape could not be read, or is none.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// The portable tape is damaged.
    #[error("the tape is damaged: {0}")]
    Damaged(Damage),
    /// A tool that must be executed needs what was not granted.
    #[error("not played: {}, which the replay was not granted",
        .0.iter().map(Missing::to_string).collect::<Vec<_>>().join(", "))]
    MissingGrants(Vec<Missing>),
}
