//! One run: its grants, its policy, its tape, and the path that every call takes.

mod limits;
mod path;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::join_all;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use limits::{BATCH_CALLS_DEFAULT, DEPTH_DEFAULT, RUN_CALLS_DEFAULT, RunLimits, WALL_DEFAULT};
pub use path::NAME_KEPT_BYTES_MAX;
use path::Step;

use crate::batch::wave;
use crate::call::Proposal;
use crate::canon::CANON_PROFILE;
use crate::grant::{Cancel, Clock, Grant, GrantMap, Need, Progress, Random, RunContext, RunInfo};
use crate::id::{CallNo, RunId};
use crate::perform::{Live, Perform};
use crate::policy::{Answer, Approver, Pending, Policy, Rules};
use crate::reply::Reply;
use crate::spec::Spec;
use crate::tape::{Event, MemoryTape, Recorder, Tape, TapeError};
use crate::tool::{BoxFuture, RegisterError, Tool};
use crate::toolbox::{Offer, Reading, Repairs, Toolbox};

/// One execution, from the first proposal to the last reply.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Proposal, Run, Toolbox, builtin};
///
/// let toolbox = Toolbox::new(builtin::tools()).unwrap();
/// let run = Run::new(&toolbox);
/// let replies = run.batch(vec![
///     Proposal::new("c1", "echo", r#"{"text":"hello"}"#),
///     Proposal::new("c2", "ekho", "{}"),
/// ]).await.unwrap();
/// assert_eq!(replies[0].text(), r#"{"text":"hello"}"#);
/// assert_eq!(replies[1].text(), "not executed: unknown tool `ekho`: did you mean `echo`?");
/// # });
/// ```
pub struct Run {
    id: Option<RunId>,
    toolbox: Mutex<Toolbox>,
    grants: GrantMap,
    policy: Box<dyn Policy>,
    approver: Option<Box<Approver>>,
    tape: Arc<dyn Tape>,
    performer: Box<dyn Perform>,
    reading: Reading,
    recovery: Recovery,
    limits: RunLimits,
    clock: Clock,
    random: Random,
    thread: Option<Arc<str>>,
    note: Option<Arc<Value>>,
    cancel: CancellationToken,
    live: OnceLock<LiveRun>,
    calls: AtomicU64,
    counted: AtomicU64,
    ended: OnceLock<String>,
}

/// What a run has once it has begun.
struct LiveRun {
    grants: Arc<GrantMap>,
    context: Arc<RunContext>,
    recorder: Arc<Recorder>,
}

/// What happens when a model asks badly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// It is told what to mend, and may ask again.
    #[default]
    Allowed,
    /// It gets its reply, and the run ends.
    Forbidden,
}

impl Run {
    /// A run over these tools, that may only read, remembered in memory.
    pub fn new(toolbox: &Toolbox) -> Run {
        Run {
            id: None,
            toolbox: Mutex::new(toolbox.clone()),
            grants: GrantMap::default(),
            policy: Box::new(Rules::allow_reads()),
            approver: None,
            tape: Arc::new(MemoryTape::default()),
            performer: Box::new(Live),
            reading: Reading::default(),
            recovery: Recovery::default(),
            limits: RunLimits::default(),
            clock: Clock::system(),
            random: Random::system(),
            thread: None,
            note: None,
            cancel: CancellationToken::new(),
            live: OnceLock::new(),
            calls: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            ended: OnceLock::new(),
        }
    }

    /// Hands the run's tools a value that they may name.
    #[must_use]
    pub fn grant(mut self, grant: impl Grant) -> Run {
        self.grants.insert(grant);
        self
    }

    /// Replaces the policy, which allows reads.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy + 'static) -> Run {
        self.policy = Box::new(policy);
        self
    }

    /// Sets who is asked. Where nobody is, a call that must be asked about is denied.
    #[must_use]
    pub fn approver(
        mut self,
        approver: impl for<'a> Fn(&'a Pending) -> BoxFuture<'a, Answer> + Send + Sync + 'static,
    ) -> Run {
        self.approver = Some(Box::new(approver));
        self
    }

    /// Replaces the tape, which is in memory.
    #[must_use]
    pub fn tape(mut self, tape: impl Tape + 'static) -> Run {
        self.tape = Arc::new(tape);
        self
    }

    /// Replaces the performer, which runs the tools.
    #[must_use]
    pub fn performer(mut self, performer: impl Perform + 'static) -> Run {
        self.performer = Box::new(performer);
        self
    }

    /// Allows repairs of arguments. None are made unless they are named here.
    #[must_use]
    pub fn repairs(mut self, repairs: Repairs) -> Run {
        self.reading.repairs = repairs;
        self
    }

    /// Sets what happens when a model asks badly.
    #[must_use]
    pub fn recovery(mut self, recovery: Recovery) -> Run {
        self.recovery = recovery;
        self
    }

    /// Replaces the limits.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Run {
        self.reading.limits = limits.arguments;
        self.limits = limits;
        self
    }

    /// Replaces the clock, which is the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Run {
        self.clock = clock;
        self
    }

    /// Replaces the randomness, which is the machine's.
    #[must_use]
    pub fn random(mut self, random: Random) -> Run {
        self.random = random;
        self
    }

    /// Sets the run's id, which is otherwise made when the run begins. For hosts that prepare
    /// something under that id before.
    #[must_use]
    pub fn known_as(mut self, id: RunId) -> Run {
        self.id = Some(id);
        self
    }

    /// Names the thread that the run belongs to, such as a conversation.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<Arc<str>>) -> Run {
        self.thread = Some(thread.into());
        self
    }

    /// Keeps a note of the host's with the run, in its first record.
    #[must_use]
    pub fn note(mut self, note: Value) -> Run {
        self.note = Some(Arc::new(note));
        self
    }

    /// The run's id.
    pub fn id(&self) -> RunId {
        self.live().context.run
    }

    /// An offer of every tool that the run has now.
    pub fn offer_all(&self) -> Offer {
        self.toolbox().offer_all()
    }

    /// An offer of the tools that pass a gate.
    pub fn offer(&self, gate: impl Fn(&Spec) -> bool) -> Offer {
        self.toolbox().offer(gate)
    }

    /// Adds a tool between turns. Offers already made stay as they are.
    pub fn add(&self, tool: Arc<dyn Tool>) -> Result<(), RunError> {
        let missing = self.missing_for(tool.spec());
        if !missing.is_empty() {
            return Err(RunError::MissingGrants(missing));
        }
        let name = tool.spec().name.clone();
        let mut toolbox = self.toolbox();
        toolbox.add(tool)?;
        let added = toolbox.get(&name).map(|tool| tool.id().clone());
        drop(toolbox);
        self.record(Event::Tools { added, removed: None })
    }

    /// Removes a tool between turns. Offers already made stay as they are.
    pub fn remove(&self, name: &str) -> Result<bool, RunError> {
        let mut toolbox = self.toolbox();
        let removed = toolbox.get(name).map(|tool| tool.id().name().clone());
        let was_there = toolbox.remove(name);
        drop(toolbox);
        if was_there {
            self.record(Event::Tools { added: None, removed })?;
        }
        Ok(was_there)
    }

    /// Cancels the run: what is queued never starts, and every call still gets its reply.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits until the run is cancelled.
    pub(crate) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Answers proposals, one reply each, in their order. Every tool of the run is on offer.
    ///
    /// Dropping the future abandons the calls that run; the tape then shows that they started.
    pub async fn batch(&self, proposals: Vec<Proposal>) -> Result<Vec<Reply>, RunError> {
        let offer = self.offer_all();
        self.answer(&offer, proposals).await
    }

    /// Answers proposals that a model made when it was shown this offer.
    pub async fn answer(
        &self,
        offer: &Offer,
        proposals: Vec<Proposal>,
    ) -> Result<Vec<Reply>, RunError> {
        self.check_open()?;
        self.check_grants()?;
        let mut counted = 0;
        let resolve = |proposal| self.resolve(offer, proposal, &mut counted);
        let mut steps: Vec<Step> = proposals.into_iter().map(resolve).collect();
        if self.recovery == Recovery::Forbidden && steps.iter().any(Step::needs_repair) {
            steps = steps.into_iter().map(Step::given_up).collect();
        }
        let mut replies = Vec::with_capacity(steps.len());
        let mut steps = steps.into_iter();
        loop {
            match wave(steps.as_slice().iter().map(Step::is_alone)) {
                0 => break,
                1 => replies.push(self.settle(steps.next().expect("a wave of one")).await),
                many => {
                    let wave = steps.by_ref().take(many).map(|step| self.settle(step));
                    replies.extend(join_all(wave).await);
                }
            }
            // Once the run has ended nothing more starts, and every call still gets its reply.
            if replies.iter().any(|reply| self.ends(reply).is_some()) {
                let rest: Vec<Step> = steps.map(Step::given_up).collect();
                replies.extend(join_all(rest.into_iter().map(|step| self.settle(step))).await);
                break;
            }
        }
        self.close_if_ended(replies)
    }

    /// Why a reply ends the run, if it does.
    fn ends(&self, reply: &Reply) -> Option<String> {
        let fault = reply.fault.as_ref()?;
        let forbidden = self.recovery == Recovery::Forbidden && fault.kind == "repair";
        (fault.fatal || forbidden).then(|| format!("{}: {}", reply.name, fault.message))
    }

    /// Every grant that some tool needs and the run does not have.
    pub fn missing_grants(&self) -> Vec<Missing> {
        let toolbox = self.toolbox().clone();
        toolbox.tools().flat_map(|tool| self.missing_for(tool.spec())).collect()
    }

    fn missing_for(&self, spec: &Spec) -> Vec<Missing> {
        let live = self.live();
        let missing = spec.needs.iter().filter(|need| !live.grants.covers(**need));
        missing.map(|need| Missing { tool: spec.name.clone(), need: *need }).collect()
    }

    /// Fails before the first effect, not at the call that lacks something.
    fn check_grants(&self) -> Result<(), RunError> {
        if self.calls.load(Ordering::Relaxed) > 0 {
            // Checked before the first call, and for each tool that was added since.
            return Ok(());
        }
        match self.missing_grants() {
            missing if missing.is_empty() => Ok(()),
            missing => Err(RunError::MissingGrants(missing)),
        }
    }

    fn check_open(&self) -> Result<(), RunError> {
        match self.ended.get() {
            None => Ok(()),
            Some(why) => Err(RunError::Closed { why: why.clone() }),
        }
    }

    fn close_if_ended(&self, replies: Vec<Reply>) -> Result<Vec<Reply>, RunError> {
        match replies.iter().find_map(|reply| self.ends(reply)) {
            None => Ok(replies),
            Some(why) => {
                // Of batches that end the run at once, the first says why.
                self.ended.get_or_init(|| why.clone());
                Err(RunError::Ended { why, replies })
            }
        }
    }

    /// Puts an event on the tape that belongs to no call.
    pub(crate) fn record(&self, event: Event) -> Result<(), RunError> {
        let (_, ack) = self.live().recorder.append(&mut vec![event]);
        Ok(ack.accepted()?)
    }

    /// Puts the last event on the tape, and waits until it and all before it are durable.
    pub(crate) async fn record_last(&self, event: Event) -> Result<(), RunError> {
        let (_, ack) = self.live().recorder.append(&mut vec![event]);
        Ok(ack.durable().await?)
    }

    pub(crate) fn next_call(&self) -> CallNo {
        CallNo(self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn toolbox(&self) -> MutexGuard<'_, Toolbox> {
        self.toolbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> &LiveRun {
        self.live.get_or_init(|| self.begin())
    }

    fn begin(&self) -> LiveRun {
        let (clock, random) = (self.clock.clone(), self.random.clone());
        let run = self.id.unwrap_or_else(|| {
            let mut entropy = [0; 10];
            random.fill(&mut entropy);
            RunId::new(clock.unix_us() / 1_000, entropy)
        });
        let seed = random.seed().iter().map(|byte| format!("{byte:02x}")).collect();
        let opening = Event::RunStarted {
            seed,
            thread: self.thread.clone(),
            depth: 0,
            canon: CANON_PROFILE,
            note: self.note.clone(),
        };
        let tape = self.tape.clone();
        let recorder = Arc::new(Recorder::new(tape, run, clock.clone(), opening));
        let mut grants = self.grants.clone();
        grants.insert(clock);
        grants.insert(random);
        grants.insert(RunInfo::detached());
        grants.insert(Progress::detached());
        grants.insert(Cancel::never());
        let context = Arc::new(RunContext {
            run,
            thread: self.thread.clone(),
            depth: 0,
            depth_max: self.limits.depth,
            cancel: self.cancel.clone(),
            witness: recorder.clone(),
        });
        LiveRun { grants: Arc::new(grants), context, recorder }
    }
}

/// A grant that a tool needs and a run does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The tool.
    pub tool: Arc<str>,
    /// The grant.
    pub need: Need,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` needs `{}`", self.tool, self.need.name())
    }
}

/// Why a run could not go on. The replies that were made are never lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Tools need what was not granted. Nothing was executed.
    #[error("not executed: {}, which the run was not granted",
        .0.iter().map(Missing::to_string).collect::<Vec<_>>().join(", "))]
    MissingGrants(Vec<Missing>),
    /// A tool was refused.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// A fault ended the run. Every call of the batch was settled first.
    #[error("the run ended: {why}")]
    Ended {
        /// The fault.
        why: String,
        /// The replies of the batch, in order.
        replies: Vec<Reply>,
    },
    /// The run ended earlier. Nothing was executed.
    #[error("not executed: the run ended before: {why}")]
    Closed {
        /// Why it ended.
        why: String,
    },
    /// The tape could not be written.
    #[error(transparent)]
    Tape(#[from] TapeError),
}
