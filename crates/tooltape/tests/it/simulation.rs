//! Thousands of seeded batches, each a storm of its own, and the promises that hold in all of them.

mod again;
mod around;
mod plan;
mod verdicts;
mod world;

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tooltape::{Backlog, Canceller, MemoryTape, Reply, Run, RunError, RunId};

use again::check_replayed;
use around::Disk;
pub(crate) use plan::Dice;
use plan::{Disturbance, Plan};
use verdicts::{check_replies, check_seen, check_tape};
use world::World;

/// The seeds that are played, unless `TOOLTAPE_SEEDS` says how many or `TOOLTAPE_SEED` which one.
const SEEDS_DEFAULT: u64 = 20_000;
/// The seeds among which every way to end occurs.
const SEEDS_OF_ALL_ENDS: u64 = 500;
/// Of so many storms, one is played again from its tape.
const REPLAYED_ONE_IN: u64 = 2;
/// The calls that replays of storms executed again.
static EXECUTED_AGAIN: AtomicU64 = AtomicU64::new(0);
/// The tests that share the seeds, so that they run side by side.
const SHARES: u64 = 4;

/// Plays one seed to its end, checks what must be true of it, and says how its calls ended.
fn play(seed: u64) -> BTreeSet<String> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a thread can have a runtime");
    runtime.block_on(async {
        let plan = Plan::new(&mut Dice::new(seed));
        let world = Arc::new(World::default());
        let tape = MemoryTape::default();
        let disk = Disk { tape: tape.clone(), ms: plan.disk_ms };
        let run = world::run(&plan, &world, disk);
        // It does not look before everything is over, so it is as slow as one can be.
        let mut backlog = Backlog::default();
        backlog.progress = plan.backlog;
        let watching = run.subscribe(backlog);
        let replies = disturbed(&run, &plan).await;
        assert_eq!(world.running(), 0, "no tool runs once its batch is over");
        assert_eq!(run.running(), 0, "every seat was given back");
        assert_eq!(run.abandoned(), 0);
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
        if let Some(replies) = &replies {
            check_replies(&plan, replies);
        }
        let ends = check_tape(&tape, &run, &plan, &world, replies.as_deref());
        let records = tape.records(run.id());
        drop(run);
        check_seen(watching, &records).await;
        world.check();
        if seed.is_multiple_of(REPLAYED_ONE_IN) {
            EXECUTED_AGAIN.fetch_add(check_replayed(&tape).await, Ordering::Relaxed);
        }
        ends
    })
}

/// Plays one seed, and gives what it left on tape.
pub(crate) fn taped(seed: u64) -> (MemoryTape, RunId) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a thread can have a runtime");
    runtime.block_on(async {
        let plan = Plan::new(&mut Dice::new(seed));
        let (world, tape) = (Arc::new(World::default()), MemoryTape::default());
        let disk = Disk { tape: tape.clone(), ms: plan.disk_ms };
        let run = world::run(&plan, &world, disk);
        let id = run.id();
        disturbed(&run, &plan).await;
        drop(run);
        (tape, id)
    })
}

/// Plays the batch while something happens to it; `None` where it was dropped.
async fn disturbed(run: &Run, plan: &Plan) -> Option<Vec<Reply>> {
    let (canceller, offer) = (Canceller::new(), run.offer_all());
    let mut batch = Box::pin(run.answer_until(&canceller, &offer, plan.proposals()));
    let answered = match plan.disturbance {
        None => batch.await,
        Some((at_ms, disturbance)) => {
            let at = Duration::from_millis(at_ms);
            match (tokio::time::timeout(at, batch.as_mut()).await, disturbance) {
                (Ok(answered), _) => answered,
                (Err(_), Disturbance::Drop) => {
                    drop(batch);
                    return None;
                }
                (Err(_), Disturbance::CancelRun) => {
                    run.cancel();
                    batch.await
                }
                (Err(_), Disturbance::CancelBatch) => {
                    canceller.cancel();
                    batch.await
                }
                (Err(_), Disturbance::CancelCall(call)) => {
                    run.cancel_call(call);
                    batch.await
                }
            }
        }
    };
    match answered {
        Ok(replies) | Err(RunError::Ended { replies, .. }) => Some(replies),
        Err(err) => panic!("the batch was not answered: {err}"),
    }
}

/// Plays one share of the seeds, and names the first that fails.
fn play_share(share: u64) {
    let wanted = |name| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let seeds = match wanted("TOOLTAPE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..wanted("TOOLTAPE_SEEDS").unwrap_or(SEEDS_DEFAULT),
    };
    for seed in seeds.filter(|seed| seed % SHARES == share) {
        if let Err(why) = panic::catch_unwind(AssertUnwindSafe(|| drop(play(seed)))) {
            eprintln!("seed {seed} failed; play it alone with TOOLTAPE_SEED={seed}");
            panic::resume_unwind(why);
        }
    }
}

#[test]
fn storms_end_calls_in_every_way_that_there_is() {
    let ends: BTreeSet<String> = (0..SEEDS_OF_ALL_ENDS).flat_map(play).collect();
    let expected = [
        "executed",
        "executed: failed",
        "not executed: batch_calls",
        "not executed: batch_wall",
        "not executed: cancelled",
        "not executed: denied",
        "not executed: depth",
        "not executed: failed",
        "not executed: queue",
        "not executed: repair",
        "not executed: wall",
        "unknown: batch_wall",
        "unknown: cancelled",
        "unknown: in_doubt",
        "unknown: wall",
    ];
    let missing: Vec<_> = expected.into_iter().filter(|end| !ends.contains(*end)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(EXECUTED_AGAIN.load(Ordering::Relaxed) > 0, "replays execute what is pure again");
}

#[test]
fn every_call_of_every_storm_settles_once_and_nothing_overlaps_that_conflicts_1() {
    play_share(0);
}

#[test]
fn every_call_of_every_storm_settles_once_and_nothing_overlaps_that_conflicts_2() {
    play_share(1);
}

#[test]
fn every_call_of_every_storm_settles_once_and_nothing_overlaps_that_conflicts_3() {
    play_share(2);
}

#[test]
fn every_call_of_every_storm_settles_once_and_nothing_overlaps_that_conflicts_4() {
    play_share(3);
}
