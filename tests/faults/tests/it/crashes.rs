//! The power is cut after every operation of every workload, in every way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tooltape::RunId;
use tooltape_faults::{Mode, Replay};

use crate::stage::{Account, Found, Stage, check, examine, scratch};
use crate::workloads;

/// How often each way is tried that depends on chance.
fn seeds() -> u64 {
    std::env::var("TOOLTAPE_FAULT_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(1)
}

#[derive(Default)]
struct Count {
    operations: usize,
    cuts: usize,
    states: HashSet<u64>,
    acknowledged: usize,
    failures: Vec<String>,
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_power_is_cut() {
    let (next, count) = (AtomicUsize::new(0), Mutex::new(Count::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(workload) = workloads::ALL.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    cut_everywhere(*workload, Stage::new(workload.1), &count);
                }
            });
        }
    });
    let count = count.into_inner().unwrap();
    println!(
        "crashes: {} workloads, {} operations, {} cuts, {} distinct states, {} acknowledged \
         records, {} failures",
        workloads::ALL.len(),
        count.operations,
        count.cuts,
        count.states.len(),
        count.acknowledged,
        count.failures.len()
    );
    let shown = count.failures.iter().take(10).cloned().collect::<Vec<_>>();
    assert!(count.failures.is_empty(), "\n{}", shown.join("\n"));
    assert!(count.cuts >= 10_000, "{} cuts are fewer than 10000", count.cuts);
}

#[test]
fn a_tape_that_does_not_sync_is_caught() {
    let count = Mutex::new(Count::default());
    let mut stage = Stage::new(workloads::ALL[2].1);
    stage.is_lax = true;
    cut_everywhere(workloads::ALL[2], stage, &count);
    let lost = count.into_inner().unwrap().failures;
    assert!(lost.iter().any(|err| err.contains("were acknowledged")), "{lost:?}");
    assert!(!lost.iter().any(|err| err.contains("corrupt")), "it loses its end, no more: {lost:?}");
}

fn cut_everywhere((name, _, work): workloads::Workload, mut stage: Stage, count: &Mutex<Count>) {
    stage.open();
    work(&mut stage);
    stage.tape = None;
    let (log, accounts) = (stage.disk.log(), stage.accounts.clone());
    let mut seen: HashMap<u64, Result<BTreeMap<RunId, Found>, String>> = HashMap::new();
    let (mut replay, mut cuts, mut failures) = (Replay::default(), 0, Vec::new());
    for (at, op) in log.iter().enumerate() {
        replay.step(op);
        for mode in Mode::ALL {
            for seed in 0..if mode == Mode::Drop { 1 } else { seeds() } {
                let image = replay.cut(mode, seed << 32 | at as u64);
                let found = seen.entry(image.fingerprint()).or_insert_with(|| {
                    let folder = scratch();
                    image.write(folder.path());
                    examine(folder.path())
                });
                cuts += 1;
                let found = found.as_ref().map_err(String::clone);
                let checked = found.and_then(|found| check(&accounts, found, at + 1));
                failures.extend(checked.err().map(|err| {
                    let op: String = format!("{op:?}").chars().take(60).collect();
                    format!("{name}, cut after {at} ({op}…), {mode:?}, seed {seed}: {err}")
                }));
            }
        }
    }
    let mut count = count.lock().unwrap();
    count.operations += log.len();
    count.cuts += cuts;
    count.states.extend(seen.keys());
    count.acknowledged += acknowledged(&accounts);
    count.failures.extend(failures);
}

fn acknowledged(accounts: &BTreeMap<RunId, Account>) -> usize {
    let records = accounts.values().flat_map(|account| &account.records);
    records.filter(|(_, at)| at.is_some()).count()
}
