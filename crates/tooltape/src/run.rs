//! One run: its grants, its policy, its tape, and the path that every call takes.

mod again;
mod ask;
mod attempt;
mod begin;
mod budget;
mod drive;
mod end;
mod endorse;
mod error;
mod fork;
mod gate;
mod inside;
mod ledger;
mod limits;
mod past;
mod path;
mod pools;
mod preview;
mod question;
mod results;
mod resume;
mod scope;
mod setup;
mod spawn;
mod spending;
mod taint;
mod trail;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};

use begin::LiveRun;
use drive::Driven;
pub use end::RunEnd;
pub use endorse::EndorseError;
pub use error::{Missing, ResumeError, RunError};
pub use fork::Fork;
pub(crate) use ledger::{Ledger, Spent};
pub use limits::{
    APPROVAL_DEFAULT, BATCH_CALLS_DEFAULT, BATCH_WALL_DEFAULT, BLOCKING_DEFAULT,
    CANCEL_GRACE_DEFAULT, CONCURRENCY_DEFAULT, DEPTH_DEFAULT, IDLE_DEFAULT, MUTATIONS_DEFAULT,
    QUEUE_DEFAULT, RUN_BYTES_DEFAULT, RUN_CALLS_DEFAULT, RUN_WALL_DEFAULT, RunLimits,
    TAPE_WALL_DEFAULT, WALL_DEFAULT,
};
use past::{Begun, Standing};
pub(crate) use past::{Opening, Said};
pub use path::NAME_KEPT_BYTES_MAX;
use path::Step;
pub use preview::PREVIEW_WALL;
pub use question::{AnswerError, OpenQuestion, answer_question, open_questions};
pub use results::SecretError;
pub use scope::Canceller;
use scope::{Halts, Scope};
pub use setup::Recovery;
use setup::Setup;
pub(crate) use spawn::TakenUp;
pub use spawn::{Child, Nested, Spawn};
use taint::Shown;

use crate::fault::{Executed, Fault, FaultKind};
use crate::id::{CallNo, RunId};
use crate::place::Place;
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::right::{Holding, Rights};
use crate::spec::Spec;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, OnceLock};
use crate::tape::{Backlog, Event, Subscription};
use crate::tool::{Registered, Tool};
use crate::toolbox::{Offer, Toolbox};

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
    setup: Setup,
    /// Every tool, as the run was set up.
    first_offer: Offer,
    /// Whether a tool was added or removed since.
    tools_changed: AtomicBool,
    /// The tools that were added, as long as some offer has them.
    added: Mutex<Vec<Weak<Registered>>>,
    place: Place,
    live: OnceLock<LiveRun>,
    calls: AtomicU64,
    halts: Halts,
    ended: OnceLock<String>,
    /// The calls that were begun before it was resumed, and are not settled.
    open: Mutex<BTreeMap<CallNo, Begun>>,
    /// What somebody approved until the run ends.
    standing: Mutex<Vec<Standing>>,
    /// What it may do at this place of a replay.
    holding: Mutex<Option<Holding>>,
    /// What its model was shown.
    shown: Shown,
}

impl Run {
    /// A run over these tools, that may only read, remembered in memory.
    pub fn new(toolbox: &Toolbox) -> Run {
        Run::of(Setup::new(toolbox))
    }

    fn of(setup: Setup) -> Run {
        let toolbox = setup.toolbox.lock().unwrap_or_else(PoisonError::into_inner);
        let first_offer = toolbox.offer_all();
        drop(toolbox);
        let shown = Shown::new(setup.label.clone(), setup.seen_by.clone());
        Run {
            setup,
            shown,
            first_offer,
            tools_changed: AtomicBool::new(false),
            added: Mutex::default(),
            place: Place::new(),
            live: OnceLock::new(),
            calls: AtomicU64::new(0),
            halts: Halts::default(),
            ended: OnceLock::new(),
            open: Mutex::default(),
            standing: Mutex::default(),
            holding: Mutex::default(),
        }
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

    /// Adds a tool between turns. Offers already made stay as they are, and a child takes none.
    pub fn add(&self, tool: Arc<dyn Tool>) -> Result<(), RunError> {
        if self.setup.parent.is_some() {
            return Err(RunError::Narrow);
        }
        let missing = self.missing_for(tool.spec());
        if !missing.is_empty() {
            return Err(RunError::MissingGrants(missing));
        }
        let name = tool.spec().name.clone();
        let mut toolbox = self.toolbox();
        toolbox.add(tool)?;
        self.tools_changed.store(true, Ordering::Release);
        let added = toolbox.get(&name).map(|tool| {
            let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
            added.retain(|tool| tool.strong_count() > 0);
            added.push(Arc::downgrade(tool));
            tool.id().clone()
        });
        drop(toolbox);
        self.record(Event::Tools { added, removed: None })
    }

    /// Removes a tool between turns. Offers already made stay as they are.
    pub fn remove(&self, name: &str) -> Result<bool, RunError> {
        let mut toolbox = self.toolbox();
        let removed = toolbox.get(name).map(|tool| tool.id().name().clone());
        let was_there = toolbox.remove(name);
        self.tools_changed.store(true, Ordering::Release);
        drop(toolbox);
        if was_there {
            self.record(Event::Tools { added: None, removed })?;
        }
        Ok(was_there)
    }

    /// Cancels the run and its children: what is queued never starts, and every call still gets
    /// its reply.
    pub fn cancel(&self) {
        self.setup.cancel.cancel();
    }

    /// What the run may do, as long as nobody takes it away.
    pub fn held(&self) -> Rights {
        self.live().holding.rights().clone()
    }

    /// Takes away what the run and its children may do, and cancels them: what runs is told, and no
    /// call that needs a right is permitted any more.
    pub fn revoke(&self) {
        self.live().holding.revoke();
        self.cancel();
    }

    /// Cancels one call: if it is queued it never starts, and it still gets its reply.
    ///
    /// Its number is on the tape, and what a tool learns from [`RunInfo`](crate::RunInfo).
    pub fn cancel_call(&self, call: CallNo) {
        // A number that no call has yet is nobody's.
        if call.0 <= self.calls.load(Ordering::Relaxed) {
            self.halts.cancel(call);
        }
    }

    /// What cancels the run, to be handed to somebody else.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.setup.cancel.clone())
    }

    /// Watches the run from now on. Whoever watches before the first call sees all of it.
    pub fn subscribe(&self, backlog: Backlog) -> Subscription {
        self.live().recorder.subscribe(backlog)
    }

    /// How many calls of the run hold a seat at this moment; those of children are theirs.
    pub fn running(&self) -> usize {
        self.live().pools.running()
    }

    /// How many threads of blocking tools work on though their calls were answered.
    pub fn abandoned(&self) -> usize {
        self.live().pools.abandoned()
    }

    /// What its models and those below it cost.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.setup.ledger
    }

    /// The time on the clock by which deadlines run, in microseconds.
    pub(crate) fn now_us(&self) -> u64 {
        self.live().context.clock.now_us()
    }

    /// Waits until the run is cancelled.
    pub(crate) async fn cancelled(&self) {
        self.setup.cancel.cancelled().await;
    }

    /// Answers proposals, one reply each, in their order. Every tool of the run is on offer.
    ///
    /// Calls overlap where they touch nothing in common. Dropping the future abandons the calls
    /// that run; the tape then says of each whether it was executed.
    pub async fn batch(&self, proposals: Vec<Proposal>) -> Result<Vec<Reply>, RunError> {
        let offer_now;
        let offer = match self.tools_changed.load(Ordering::Acquire) {
            false => &self.first_offer,
            true => {
                offer_now = self.offer_all();
                &offer_now
            }
        };
        self.answer_in(&Scope::of(self), offer, proposals, u64::MAX).await
    }

    /// Answers proposals that a model made when it was shown this offer.
    ///
    /// An offer of earlier is as good as one of now. What it shows that this run never had, such
    /// as an offer of the run's parent may, is not offered.
    pub async fn answer(
        &self,
        offer: &Offer,
        proposals: Vec<Proposal>,
    ) -> Result<Vec<Reply>, RunError> {
        self.answer_in(&Scope::of(self), &self.own(offer), proposals, u64::MAX).await
    }

    /// Answers proposals until somebody cancels them; the run goes on.
    pub async fn answer_until(
        &self,
        canceller: &Canceller,
        offer: &Offer,
        proposals: Vec<Proposal>,
    ) -> Result<Vec<Reply>, RunError> {
        self.answer_some(u64::MAX, canceller, offer, proposals).await
    }

    /// The same, of which no more than so many are executed; the others are answered in place.
    pub(crate) async fn answer_some(
        &self,
        most: u64,
        canceller: &Canceller,
        offer: &Offer,
        proposals: Vec<Proposal>,
    ) -> Result<Vec<Reply>, RunError> {
        let (scope, offer) = (Scope::of(self), self.own(offer));
        let token = scope.cancellable();
        let mut answering = std::pin::pin!(self.answer_in(&scope, &offer, proposals, most));
        tokio::select! {
            biased;
            answered = answering.as_mut() => return answered,
            () = canceller.0.cancelled() => token.cancel(),
        }
        answering.await
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` moves its arguments once more")]
    fn answer_in(
        &self,
        scope: &Scope<'_>,
        offer: &Offer,
        mut proposals: Vec<Proposal>,
        most: u64,
    ) -> impl Future<Output = Result<Vec<Reply>, RunError>> {
        async move {
            self.check_open()?;
            self.check_grants()?;
            // As if so many of the batch had been counted before.
            let mut counted = self.setup.limits.batch_calls.saturating_sub(most);
            if proposals.len() == 1 {
                // A call alone waits for no other.
                let resolve = || {
                    let proposal = proposals.pop().expect("there is one");
                    self.resolve_alone(offer, proposal, &mut counted)
                };
                let reply = match self.settle(resolve, scope).await {
                    Ok(reply) => reply,
                    Err(call) => return Err(self.pause(&[call], Vec::new()).await),
                };
                let ends_nothing = reply.fault.is_none() && reply.label_kept().is_none();
                // Its place is in the memory that its proposal came in.
                let mut replies: Vec<Reply> = proposals.into_iter().filter_map(|_| None).collect();
                replies.push(reply);
                return if ends_nothing { Ok(replies) } else { self.close_if_ended(replies) };
            }
            let resolve = |proposal| self.resolve(offer, proposal, &mut counted);
            let mut steps: Vec<Step> = proposals.into_iter().map(resolve).collect();
            let repairs_end = self.setup.hard.contains(&FaultKind::Repair);
            if repairs_end && steps.iter().any(Step::needs_repair) {
                steps = steps.into_iter().map(Step::given_up).collect();
            }
            if steps.iter().any(Step::aborts_siblings) {
                scope.cancellable();
            }
            let driven = self.drive(steps, scope).await;
            self.close(driven).await
        }
    }

    /// Ends the run or pauses it, where what a batch came to says so.
    async fn close(&self, Driven { replies, parked }: Driven) -> Result<Vec<Reply>, RunError> {
        match parked.is_empty() {
            true => self.close_if_ended(replies),
            false => Err(self.pause(&parked, replies).await),
        }
    }

    /// What an offer shows of the tools that this run has or had.
    fn own<'o>(&self, offer: &'o Offer) -> Cow<'o, Offer> {
        if offer.is_like(&self.first_offer) || offer.is_like(&self.offer_all()) {
            return Cow::Borrowed(offer);
        }
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = |tool: &Arc<Registered>| {
            let first = self.first_offer.find(tool.id().name().as_str());
            first.is_some_and(|first| Arc::ptr_eq(first, tool))
                || added.iter().any(|added| added.as_ptr() == Arc::as_ptr(tool))
        };
        Cow::Owned(offer.only(is_own))
    }

    /// Why a reply ends the run, if it does.
    #[inline]
    fn ends(&self, reply: &Reply) -> Option<String> {
        let fault = reply.fault.as_ref()?;
        (fault.fatal || self.setup.hard.contains(&fault.kind))
            .then(|| format!("{}: {}", reply.name, fault.message))
    }

    /// Every grant that some tool needs and the run does not have.
    pub fn missing_grants(&self) -> Vec<Missing> {
        let toolbox = self.toolbox().clone();
        toolbox.tools().flat_map(|tool| self.missing_for(tool.spec())).collect()
    }

    /// Fails before the first effect, not at the call that lacks something.
    #[inline]
    fn check_grants(&self) -> Result<(), RunError> {
        // Checked before the first call, and for each tool that was added since.
        match self.calls.load(Ordering::Relaxed) {
            0 => self.check_all_grants(),
            1.. => Ok(()),
        }
    }

    #[cold]
    fn check_all_grants(&self) -> Result<(), RunError> {
        if let Some(err) = &self.live().unredacted {
            return Err(err.clone().into());
        }
        match self.missing_grants() {
            missing if missing.is_empty() => Ok(()),
            missing => Err(RunError::MissingGrants(missing)),
        }
    }

    #[inline]
    fn check_open(&self) -> Result<(), RunError> {
        if self.place.is_here() {
            return Err(RunError::Reentered);
        }
        match self.ended.get() {
            None => Ok(()),
            Some(why) => Err(RunError::Closed { why: why.clone() }),
        }
    }

    #[inline]
    fn close_if_ended(&self, replies: Vec<Reply>) -> Result<Vec<Reply>, RunError> {
        self.show(&replies);
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
        Ok(self.live().recorder.append(event).accepted()?)
    }

    /// Whether the tape refused something of this run.
    pub(crate) fn was_refused(&self) -> bool {
        self.live().recorder.was_refused()
    }

    /// Puts the last event on the tape, and waits until it and all before it are durable.
    pub(crate) async fn record_last(&self, event: Event) -> Result<(), RunError> {
        let ack = self.live().recorder.append(event);
        Ok(ack.durable().await?)
    }

    pub(crate) fn next_call(&self) -> CallNo {
        CallNo(self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn toolbox(&self) -> MutexGuard<'_, Toolbox> {
        self.setup.toolbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn live(&self) -> &LiveRun {
        self.live.get_or_init(|| LiveRun::begin(&self.setup))
    }
}

fn cancelled(executed: Executed) -> Fault {
    Fault::Cancelled { executed, said: None }
}
