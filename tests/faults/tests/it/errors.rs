//! Every operation of every workload fails in every way, and no tape says that it did not.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tooltape_faults::{Fault, Mode, Replay};

use crate::stage::{Stage, check, examine, scratch};
use crate::workloads;

/// How many of the failures are tried, spread over all; everything, if there are fewer.
fn tries() -> usize {
    let tries = std::env::var("TOOLTAPE_FAULT_ERRORS").ok().and_then(|it| it.parse().ok());
    tries.unwrap_or(6_000)
}

#[derive(Default)]
struct Count {
    runs: usize,
    refused: usize,
    acknowledged: usize,
    failures: Vec<String>,
}

#[test]
fn no_failure_of_the_disk_is_taken_for_success() {
    let mut plan = Vec::new();
    for (no, (_, pages, work)) in workloads::ALL.iter().enumerate() {
        let mut stage = Stage::new(*pages);
        stage.open();
        work(&mut stage);
        stage.tape = None;
        for at in 0..stage.disk.asked() {
            plan.extend(Fault::ALL.map(|fault| (no, at, fault)));
        }
    }
    let all = plan.len();
    let stride = all.div_ceil(tries()).max(1);
    let (next, count) = (AtomicUsize::new(0), Mutex::new(Count::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((no, at, fault)) =
                    plan.get(next.fetch_add(1, Ordering::Relaxed) * stride)
                {
                    fail(workloads::ALL[*no], *at, *fault, &count);
                }
            });
        }
    });
    let count = count.into_inner().unwrap();
    println!(
        "errors: {} of {all} failures tried, {} records refused, {} acknowledged, {} false \
         acknowledgements",
        count.runs,
        count.refused,
        count.acknowledged,
        count.failures.len()
    );
    let shown = count.failures.iter().take(10).cloned().collect::<Vec<_>>();
    assert!(count.failures.is_empty(), "\n{}", shown.join("\n"));
    assert!(count.refused > 0, "no failure was noticed");
}

fn fail((name, pages, work): workloads::Workload, at: usize, fault: Fault, count: &Mutex<Count>) {
    let mut stage = Stage::new(pages);
    stage.is_strict = false;
    stage.disk.fail(at, fault);
    stage.open();
    work(&mut stage);
    stage.tape = None;
    // Then the power goes too, so that nothing is there but what was synced.
    let image = Replay::of(&stage.disk.log()).cut(Mode::Drop, 0);
    let folder = scratch();
    image.write(folder.path());
    let checked = examine(folder.path());
    let checked = checked.and_then(|found| check(&stage.accounts, &found, usize::MAX));
    let records = stage.accounts.values().flat_map(|account| &account.records);
    let (acked, refused): (Vec<_>, Vec<_>) = records.partition(|(_, at)| at.is_some());
    let mut count = count.lock().unwrap();
    count.runs += 1;
    count.acknowledged += acked.len();
    count.refused += refused.len();
    count
        .failures
        .extend(checked.err().map(|err| format!("{name}, {fault:?} at operation {at}: {err}")));
}
