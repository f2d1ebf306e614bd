//! What the scenes stand on: the checker, tools that see who is there, and what must hold after.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner, future};
use tokio::sync::Notify;
use tooltape::testing::proposals;
use tooltape::{
    Clock, Event, MemoryTape, Random, Record, Reply, Run, RunLimits, Tool, Toolbox, Verdict, verify,
};

/// The schedules of each kind, unless `TOOLTAPE_MODEL_SCHEDULES` says otherwise.
const SCHEDULES_DEFAULT: usize = 1_000;
/// What the schedules are drawn from, unless `TOOLTAPE_MODEL_SEED` says otherwise.
const SEED_DEFAULT: u64 = 0x7001_7a9e;
/// How often a schedule of the second kind goes against its own order.
const PCT_DEPTH: usize = 3;
/// The stack of one task of the checker.
const STACK_BYTES: usize = 2 << 20;
/// The steps after which a schedule counts as one that never ends.
const STEPS_MAX: usize = 200_000;
/// A time that no scene reaches.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Plays a scene under many schedules: at random, and by priorities that change a few times.
///
/// Fails where a schedule breaks an assertion, blocks every task, or does not end; and prints the
/// schedule. The same seed draws the same schedules.
pub(crate) fn check(scene: impl Fn() + Send + Sync + 'static) {
    let of_env = |name| env::var(name).ok().map(|it| it.parse::<usize>().expect("it is a number"));
    let schedules = of_env("TOOLTAPE_MODEL_SCHEDULES").unwrap_or(SCHEDULES_DEFAULT);
    let seed = of_env("TOOLTAPE_MODEL_SEED").map_or(SEED_DEFAULT, |seed| seed as u64);
    println!("model: seed {seed}, 2 x {schedules} schedules");
    let (scene, began) = (Arc::new(scene), Instant::now());
    play(RandomScheduler::new_from_seed(seed, schedules), scene.clone());
    play(PctScheduler::new_from_seed(seed, PCT_DEPTH, schedules), scene);
    println!("model: all held, {} ms", began.elapsed().as_millis());
}

fn play(scheduler: impl Scheduler + 'static, scene: Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    (config.stack_size, config.max_steps) = (STACK_BYTES, MaxSteps::FailAfter(STEPS_MAX));
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(move || {
        tokio::time::restart();
        scene();
    });
}

/// A run that may do everything, whose time is the scene's and whose choices are always the same.
pub(crate) fn run(
    tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    tape: &MemoryTape,
    change: impl FnOnce(&mut RunLimits),
) -> Run {
    let mut limits = RunLimits::default();
    (limits.wall, limits.idle, limits.queue) = (NEVER, NEVER, NEVER);
    (limits.batch_wall, limits.run_wall) = (NEVER, NEVER);
    change(&mut limits);
    Run::new(&Toolbox::new(tools).unwrap())
        .policy(|_: &_| Verdict::allow("model"))
        .clock(Clock::fixed(Duration::ZERO))
        .random(Random::seeded([7; 32]))
        .tape(tape.clone())
        .limits(limits)
}

pub(crate) async fn batch(run: &Run, script: &str) -> Vec<Reply> {
    run.batch(proposals(script)).await.unwrap()
}

pub(crate) fn all_succeeded(replies: &[Reply]) {
    let failed: Vec<_> = replies.iter().filter(|reply| reply.is_error).map(Reply::text).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Lets others run, a few times at most.
pub(crate) async fn dawdle() {
    for _ in 0..thread_rng().gen_range(0..4) {
        future::yield_now().await;
    }
}

/// Waits for a future, or drops it as soon as somebody says so.
pub(crate) async fn unless<T>(gone: &Notify, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = gone.notified() => None,
        done = future => Some(done),
    }
}

/// Who is where, and how many were there at once. A panic in a tool would stay in its call, so the
/// scene asks at its end.
#[derive(Clone, Default)]
pub(crate) struct Crowd(Arc<Mutex<HashMap<String, (usize, usize)>>>);

impl Crowd {
    /// Goes in, until what this returns is dropped.
    pub(crate) fn enter(&self, room: impl ToString) -> Inside {
        let room = room.to_string();
        let mut rooms = self.0.lock().unwrap();
        let (now, most) = rooms.entry(room.clone()).or_default();
        *now += 1;
        *most = (*most).max(*now);
        Inside { crowd: self.clone(), room }
    }

    /// Counts somebody who goes in and stays.
    pub(crate) fn count(&self, room: &str) {
        let mut rooms = self.0.lock().unwrap();
        let (now, most) = rooms.entry(room.to_owned()).or_default();
        (*now, *most) = (*now + 1, *most + 1);
    }

    /// The most who were in one room at once.
    pub(crate) fn most(&self, is_meant: impl Fn(&str) -> bool) -> usize {
        let rooms = self.0.lock().unwrap();
        let meant = rooms.iter().filter(|(room, _)| is_meant(room));
        meant.map(|(_, (_, most))| *most).max().unwrap_or(0)
    }
}

pub(crate) struct Inside {
    crowd: Crowd,
    room: String,
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut rooms = self.crowd.0.lock().unwrap();
        rooms.get_mut(&self.room).expect("it was entered").0 -= 1;
    }
}

/// Asserts that the tape has no gap, that every call took its steps in order, and was settled once.
pub(crate) fn tape_is_whole(tape: &MemoryTape) {
    for run in tape.runs() {
        let records = tape.records(run);
        in_order(&records);
        verify(&records, tape.head(run).unwrap()).unwrap();
        let mut steps: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for record in &records {
            if let Some(call) = record.event.call() {
                steps.entry(call).or_default().push(step(&record.event));
            }
        }
        for (call, steps) in steps {
            assert!(steps.is_sorted(), "call {call:?} of {run}: {steps:?}");
            let ends = steps.iter().filter(|step| **step == SETTLED).count();
            assert_eq!(ends, 1, "call {call:?} of {run} was settled once: {steps:?}");
        }
    }
}

/// Asserts that the records have the numbers 0, 1, 2 and so on.
pub(crate) fn in_order(records: &[Record]) {
    let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert!(numbers.iter().copied().eq(0..records.len() as u64), "{numbers:?}");
    assert!(matches!(records[0].event, Event::RunStarted { .. }), "{:?}", records[0]);
}

const SETTLED: u32 = 5;

/// The place of an event in the life of a call that is tried once.
fn step(event: &Event) -> u32 {
    match event {
        Event::Proposed(_) => 0,
        Event::Judged { .. } => 1,
        Event::Started { .. } => 2,
        Event::Progress { .. } | Event::Emitted { .. } | Event::State { .. } => 3,
        Event::Abandoned { .. } => 4,
        Event::Settled(_) => SETTLED,
        other => panic!("no scene makes {other:?}"),
    }
}
