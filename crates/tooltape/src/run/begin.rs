//! What a run has once it has begun.

use std::sync::Arc;

use super::budget::Budget;
use super::pools::Pools;
use super::scope::Walls;
use super::setup::Setup;
use super::spawn::Spawn;
use super::spending::Spending;
use super::{Missing, Run};
use crate::canon::{CANON_PROFILE, Hash};
use crate::grant::{
    Asked, Cancel, Clock, GrantMap, IdempotencyKey, Progress, Provenance, Random, RunContext,
    RunInfo,
};
use crate::id::RunId;
use crate::policy;
use crate::reply::{Finishing, RedactError};
use crate::right::{Holding, Rights};
use crate::spec::Spec;
use crate::tape::{Event, Recorder};

/// What a run has once it has begun.
pub(super) struct LiveRun {
    pub(super) grants: GrantMap,
    pub(super) context: Arc<RunContext>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) pools: Pools,
    pub(super) budget: Arc<Budget>,
    pub(super) finishing: Arc<Finishing>,
    /// Why secrets that the run was granted cannot be looked for.
    pub(super) unredacted: Option<RedactError>,
    /// When it began, on the clock by which deadlines run.
    pub(super) began_us: u64,
    /// How long it ran before it was resumed.
    pub(super) ran_us: u64,
    /// How long somebody was asked on behalf of the run and its children.
    pub(super) asked: Arc<Asked>,
    pub(super) walls: Walls,
    /// The version of its policy.
    pub(super) policy: Hash,
    /// What it may do.
    pub(super) holding: Holding,
    pub(super) spending: Arc<Spending>,
}

impl LiveRun {
    pub(super) fn begin(setup: &Setup) -> LiveRun {
        let (clock, random) = (setup.clock.clone(), setup.random.clone());
        let unix_us = clock.unix_us();
        let began_us = clock.steady_us(unix_us);
        let run = setup.id.unwrap_or_else(|| {
            let mut entropy = [0; 10];
            random.fill(&mut entropy);
            RunId::new(unix_us / 1_000, entropy)
        });
        let policy = policy::version(&*setup.policy, setup.strict);
        let holding = hold(setup);
        let spending = Spending::new(holding.clone(), setup.spending.clone());
        let opening = opening(setup, &random, policy, holding.rights());
        let mut grants = setup.grants.clone();
        let (finishing, unredacted) = setup.finishing(run, &mut grants);
        let recorder = Recorder::new(setup.tape.clone(), run, clock.clone(), opening)
            .without(finishing.redactor.clone());
        let budget = Budget::new(&setup.limits, &setup.quotas, setup.budget.clone());
        let (len, ran_us) = setup.past.as_ref().map_or((0, 0), |past| {
            budget.restore(&past.counted, past.bytes);
            spending.count(&past.spent);
            (past.len, past.ran_us)
        });
        let recorder = Arc::new(recorder.after(len));
        let inherited = grants.clone();
        grant_own(&mut grants, clock.clone(), random);
        let asked = Arc::<Asked>::default();
        grants.insert(Spawn::new(Setup {
            asked_of: setup.asked_of.iter().chain([&asked]).cloned().collect(),
            grants: inherited,
            budget: Some(budget.clone()),
            holding: Some(holding.clone()),
            spending: Some(spending.clone()),
            redactor: finishing.redactor.clone(),
            ..setup.inherited()
        }));
        let context = Arc::new(RunContext {
            run,
            thread: setup.thread.clone(),
            depth: setup.depth,
            depth_max: setup.limits.depth,
            memory: setup.limits.memory,
            fuel: setup.limits.fuel,
            witness: finishing.redactor.before(recorder.clone()),
            clock,
            holding: holding.clone(),
        });
        let pools = Pools::new(&setup.limits);
        let (finishing, walls) = (Arc::new(finishing), Walls::new(&setup.limits));
        LiveRun {
            grants,
            context,
            recorder,
            pools,
            budget,
            finishing,
            unredacted,
            began_us,
            ran_us,
            asked,
            walls,
            policy,
            holding,
            spending,
        }
    }
}

impl Setup {
    /// What a child inherits: not what is this run's alone.
    fn inherited(&self) -> Setup {
        let (id, note, past, rights, not_after_us) = (None, None, None, None, None);
        Setup { id, note, past, rights, not_after_us, narrowed: Vec::new(), ..self.clone() }
    }
}

/// Grants what every run has of its own.
fn grant_own(grants: &mut GrantMap, clock: Clock, random: Random) {
    grants.insert(clock);
    grants.insert(random);
    grants.insert(RunInfo::detached());
    grants.insert(Provenance::detached());
    grants.insert(Progress::detached());
    grants.insert(Cancel::never());
    grants.insert(IdempotencyKey::detached(""));
}

/// What a run may do: never more than its parent.
pub(super) fn hold(setup: &Setup) -> Holding {
    let held = match (&setup.holding, &setup.rights) {
        (None, None) => Holding::new("run", setup.grants.confer()),
        (None, Some(rights)) => Holding::new("run", rights.clone()),
        (Some(parent), None) => parent.clone(),
        (Some(parent), Some(rights)) => parent.attenuate("nested run", rights),
    };
    let held = match setup.not_after_us {
        None => held,
        Some(at_us) => held.attenuate_until("run", &held.rights().clone(), at_us),
    };
    setup.narrowed.iter().fold(held, |held, rights| held.attenuate("workspace", rights))
}

/// What a run begins with on its tape.
fn opening(setup: &Setup, random: &Random, policy: Hash, rights: &Rights) -> Event {
    Event::RunStarted {
        seed: random.seed().map(|byte| format!("{byte:02x}")).concat().into(),
        thread: setup.thread.clone(),
        depth: setup.depth,
        parent: setup.parent.map(Box::new),
        canon: CANON_PROFILE,
        note: setup.note.clone(),
        fork: None,
        policy: Some(Box::new(policy)),
        rights: Some(Arc::new(rights.clone())),
        label: setup.label.clone(),
    }
}

impl Run {
    /// What a tool and its hooks take, and nobody granted.
    pub(crate) fn missing_for(&self, spec: &Spec) -> Vec<Missing> {
        let live = self.live();
        let reconcile = spec.hooks.reconcile.as_ref().map_or(&[][..], |hook| hook.needs());
        let preview = spec.hooks.preview.as_ref().map_or(&[][..], |hook| hook.needs());
        let hooks = reconcile.iter().chain(preview).filter(|need| !spec.needs.contains(need));
        let needs = spec.needs.iter().chain(hooks);
        let missing = needs.filter(|need| !live.grants.covers(**need));
        missing.map(|need| Missing { tool: spec.name.clone(), need: *need }).collect()
    }
}
