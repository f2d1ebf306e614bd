//! The stages of a call's path one by one, for whoever goes along a path that is recorded.

use std::sync::PoisonError;
use std::task::Poll;
use std::time::Duration;

use super::Run;
use super::attempt::{failed, panicked};
use super::inside::Performing;
use super::past::Opening;
use super::pools::Wants;
use crate::artifact::Artifacts;
use crate::call::Call;
use crate::fault::{BoundKind, Exceeded, Executed, Fault};
use crate::grant::{Clock, Random, Token};
use crate::id::CallNo;
use crate::perform::{Attempt, Passage, Span};
use crate::policy::{Permit, Verdict};
use crate::proposal::{Facts, Outcome, Proposal};
use crate::reply::{Draft, Finished, Normal, Reply, render};
use crate::right::{Holding, Rights, SpendScope};
use crate::spec::Spec;
use crate::sync::OnceLock;
use crate::tape::{MemoryTape, Recording};
use crate::tool::Output;
use crate::toolbox::{Offer, Toolbox};

impl Run {
    /// The same run, which begins as a recorded one did, and leaves nothing behind: what its tools
    /// say is on a tape in memory, and what they put aside is forgotten with it.
    pub(crate) fn begun_like(mut self, opening: Opening, tape: MemoryTape) -> Run {
        let Opening { run, at_us, seed, thread, note, depth, parent, rights, label } = opening;
        let setup = &mut self.setup;
        setup.id = Some(run);
        setup.clock = Clock::fixed(Duration::from_micros(at_us));
        setup.random = Random::seeded(seed);
        (setup.thread, setup.note) = (thread, note);
        (setup.depth, setup.parent, setup.label) = (depth, parent, label);
        // Handles are not there in a replay, so what they conferred is taken from the tape.
        setup.rights = rights.map_or(setup.rights.take(), |rights| Some(Rights::clone(&rights)));
        setup.tape = Recording::new(tape);
        setup.grants.insert(Artifacts::memory());
        self
    }

    /// The tools that the run was set up with.
    pub(crate) fn toolbox_now(&self) -> Toolbox {
        self.toolbox().clone()
    }

    /// The most bytes of arguments.
    pub(crate) fn argument_bytes(&self) -> usize {
        self.setup.limits.arguments.bytes
    }

    /// Proposal to call, where `refused` says whether a limit refused it.
    pub(crate) fn resolve_again(
        &self,
        no: CallNo,
        offer: &Offer,
        proposal: Proposal,
        refused: Option<BoundKind>,
    ) -> Result<Call, (Draft, Fault)> {
        let (limit, used, executed) = (0, None, Executed::NotExecuted);
        let exceeded = refused.map(|bound| Exceeded { bound, limit, used, executed });
        let step = self.resolve_as(no, offer, proposal, |_| exceeded);
        step.into_resolved()
    }

    /// From here on the run may do this.
    pub(crate) fn hold_again(&self, rights: &Rights) {
        let holding = Some(Holding::new("run", rights.clone()));
        *self.holding.lock().unwrap_or_else(PoisonError::into_inner) = holding;
    }

    /// Judges a call by what the run may do, and its policy.
    pub(crate) fn judge_again(&self, call: &Call) -> Verdict {
        self.reserve(call, self.verdict(call))
    }

    /// The children of a call spent this then.
    pub(crate) fn spent_below(&self, spent: &[SpendScope]) {
        self.live().spending.count(spent);
    }

    /// A call is over that was judged again, and did this then.
    pub(crate) fn spent_again(&self, facts: &Facts, executed: Executed) {
        self.spent(facts, executed, true);
    }

    /// How long an attempt at a tool may take.
    pub(crate) fn wall_of(&self, spec: &Spec) -> Option<Duration> {
        spec.bounds.wall.or(self.setup.limits.wall)
    }

    /// Performs an attempt whose start is on the tape, with the moment that it saw.
    pub(crate) async fn perform_again(
        &self,
        permit: &mut Permit,
        no: u32,
        clock_us: Option<u64>,
        wall: Option<Duration>,
    ) -> Result<Output, Fault> {
        let pools = &self.live().pools;
        let wants = Wants {
            of_tool: None,
            mutation: false,
            thread: permit.call().spec().blocking,
            writes_anything: false,
        };
        let mut seats = pools.take(&self.setup.tree, &wants).await;
        let (passage, cancel, life) = (Passage::default(), Token::default(), OnceLock::new());
        let attempt = Attempt::of(permit, no, &passage);
        let grants = self.grants(&attempt, clock_us, &cancel, &life, &mut seats);
        let (stages, performer) = (&self.setup.stages, &self.setup.performer);
        let (span, mut output) = (Span::none(), None);
        let mut performing = Performing::new(self, &span, &mut output);
        let began = performing.begin(|| Box::pin(stages.perform(performer, attempt, &grants)));
        let performed = match (began.await, wall) {
            (Poll::Ready(performed), _) => performed,
            (Poll::Pending, None) => (&mut performing).await,
            // What was done in time once, and is not now, is a difference and no reason to wait.
            (Poll::Pending, Some(wall)) => {
                tokio::time::timeout(wall, &mut performing).await.map_err(|_| {
                    let limit = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
                    let (bound, executed) = (BoundKind::Wall, Executed::Unknown);
                    Fault::Exceeded(Exceeded { bound, limit, used: None, executed })
                })?
            }
        };
        drop(performing);
        performed.map_err(|panic| panicked(panic, &passage))?.map_err(failed)?;
        Ok(output.expect("a tool that returned left it"))
    }

    /// Outcome to reply, as the tape keeps it.
    pub(crate) async fn finish_again(
        &self,
        draft: Draft,
        performed: Result<Output, Fault>,
    ) -> Reply {
        let normal = Normal::of(Outcome::from(performed), draft.registered.as_deref());
        let (call, finishing) = (draft.call, &self.live().finishing);
        let spec = draft.registered.as_ref().map(|tool| tool.spec());
        let finished = match finishing.is_needless(&normal, spec) {
            true => Finished::of(normal),
            false => Box::pin(finishing.finish(normal, call, spec, None)).await,
        };
        render(draft, finished, None, 0).recorded()
    }
}
