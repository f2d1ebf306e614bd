//! What a run has once it has begun.

use std::sync::Arc;

use super::budget::Budget;
use super::pools::Pools;
use super::scope::Walls;
use super::setup::Setup;
use super::spawn::Spawn;
use crate::canon::{CANON_PROFILE, Hash};
use crate::grant::{
    Asked, Cancel, GrantMap, IdempotencyKey, Progress, Random, RunContext, RunInfo,
};
use crate::id::RunId;
use crate::policy;
use crate::reply::{Finishing, RedactError};
use crate::right::{Holding, Rights};
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
        let policy = policy::version(&*setup.policy);
        let holding = hold(setup);
        let opening = opening(setup, &random, policy, holding.rights());
        let recorder = Recorder::new(setup.tape.clone(), run, clock.clone(), opening);
        let budget = Budget::new(&setup.limits, &setup.quotas, setup.budget.clone());
        let (len, ran_us) = setup.past.as_ref().map_or((0, 0), |past| {
            budget.restore(past.counted.iter().cloned(), past.bytes);
            (past.len, past.ran_us)
        });
        let recorder = Arc::new(recorder.after(len));
        let mut grants = setup.grants.clone();
        let (finishing, unredacted) = setup.finishing(run, &mut grants);
        let inherited = grants.clone();
        grants.insert(clock.clone());
        grants.insert(random);
        grants.insert(RunInfo::detached());
        grants.insert(Progress::detached());
        grants.insert(Cancel::never());
        grants.insert(IdempotencyKey::detached(""));
        // What a child inherits: not the id and the note, which are this run's alone.
        let (id, note, budget_of) = (None, None, Some(budget.clone()));
        let asked = Arc::<Asked>::default();
        let asked_of = setup.asked_of.iter().chain([&asked]).cloned().collect();
        let setup_of = Setup {
            id,
            note,
            budget: budget_of,
            asked_of,
            grants: inherited,
            past: None,
            rights: None,
            narrowed: Vec::new(),
            holding: Some(holding.clone()),
            ..Setup::clone(setup)
        };
        grants.insert(Spawn::new(setup_of));
        let context = Arc::new(RunContext {
            run,
            thread: setup.thread.clone(),
            depth: setup.depth,
            depth_max: setup.limits.depth,
            witness: finishing.redactor.before(recorder.clone()),
            clock,
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
        }
    }
}

/// What a run may do: never more than its parent.
pub(super) fn hold(setup: &Setup) -> Holding {
    let held = match (&setup.holding, &setup.rights) {
        (None, None) => Holding::new("run", setup.grants.confer()),
        (None, Some(rights)) => Holding::new("run", rights.clone()),
        (Some(parent), None) => parent.clone(),
        (Some(parent), Some(rights)) => parent.attenuate("nested run", rights),
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
    }
}
