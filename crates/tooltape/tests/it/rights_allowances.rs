//! Whatever is used below an allowance was part of it.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tooltape::{Allowance, Amounts, Measure, Short};

const MEASURES: [Measure; 5] =
    [Measure::Calls, Measure::Bytes, Measure::Time, Measure::Spend, Measure::Fuel];

/// So much of everything, and so many levels.
fn each(amount: u64, depth: u64) -> Amounts {
    let (calls, bytes, time_us, spend, fuel) = (amount, amount, amount, amount, amount);
    Amounts { calls, bytes, time_us, spend, fuel, depth }
}

/// The same, with another amount of one measure.
fn with(mut amounts: Amounts, measure: Measure, amount: u64) -> Amounts {
    match measure {
        Measure::Calls => amounts.calls = amount,
        Measure::Bytes => amounts.bytes = amount,
        Measure::Time => amounts.time_us = amount,
        Measure::Spend => amounts.spend = amount,
        Measure::Fuel => amounts.fuel = amount,
        Measure::Depth => amounts.depth = amount,
    }
    amounts
}

fn only(measure: Measure, amount: u64) -> Amounts {
    with(Amounts::default(), measure, amount)
}

#[test]
fn a_shortage_names_the_measure_and_what_is_left_and_takes_nothing() {
    for (measure, message) in MEASURES.into_iter().zip([
        "the allowance `calls` has 9 calls left, wanted 10",
        "the allowance `bytes` has 9 bytes left, wanted 10",
        "the allowance `time` has 9 µs left, wanted 10",
        "the allowance `spend` has 9 millionths left, wanted 10",
        "the allowance `fuel` has 9 units left, wanted 10",
    ]) {
        let allowance = Allowance::new(each(10, 1));
        allowance.spend(only(measure, 1)).unwrap();
        let before = allowance.left();
        let wanted = with(each(1, 0), measure, 10);
        let short = Short { measure, wanted: 10, left: 9 };
        assert_eq!(allowance.spend(wanted), Err(short));
        assert_eq!(allowance.reserve(wanted).unwrap_err(), short);
        assert_eq!(short.to_string(), message);
        assert_eq!(allowance.left(), before);
    }
}

#[test]
fn nothing_overflows_and_nothing_is_negative() {
    let allowance = Allowance::new(each(u64::MAX, u64::MAX));
    let child = allowance.reserve(each(u64::MAX, u64::MAX - 1)).unwrap();
    assert_eq!(allowance.left(), each(0, u64::MAX));
    let short = allowance.spend(only(Measure::Fuel, u64::MAX)).unwrap_err();
    assert_eq!(short, Short { measure: Measure::Fuel, wanted: u64::MAX, left: 0 });
    assert_eq!(child.spend(each(u64::MAX, 0)), Ok(()));
    assert!(child.spend(only(Measure::Calls, 1)).is_err());
    drop(child);
    assert_eq!(allowance.left(), each(0, u64::MAX));
    assert!(allowance.reserve(each(0, u64::MAX)).is_err(), "a child is never as deep");
    let nothing = Allowance::new(Amounts::default());
    assert_eq!(nothing.spend(Amounts::default()), Ok(()));
    assert_eq!(
        nothing.reserve(Amounts::default()).unwrap_err().to_string(),
        "the allowance `depth` has 0 levels left, wanted 1"
    );
}

#[test]
fn each_child_is_one_level_less_deep() {
    let root = Allowance::new(each(0, 3));
    assert!(root.reserve(each(0, 3)).is_err());
    let child = root.reserve(each(0, 2)).unwrap();
    assert!(root.reserve(each(0, 2)).is_ok(), "depth is not used up");
    let grandchild = child.reserve(each(0, 1)).unwrap();
    let last = grandchild.reserve(each(0, 0)).unwrap();
    assert!(last.reserve(each(0, 0)).is_err());
    assert!(last.spend(each(0, 1)).is_err());
    assert_eq!(root.left().depth, 3);
}

#[test]
fn what_is_left_returns_when_the_last_of_a_line_is_dropped() {
    let root = Allowance::new(each(100, 9));
    let child = root.reserve(each(60, 8)).unwrap();
    let grandchild = child.reserve(each(50, 7)).unwrap();
    grandchild.spend(each(5, 0)).unwrap();
    drop(child);
    assert_eq!(root.left(), each(40, 9), "the grandchild may still use what the child had");
    grandchild.spend(each(5, 0)).unwrap();
    drop(grandchild);
    assert_eq!(root.left(), each(90, 9));
}

#[test]
fn a_line_of_a_hundred_thousand_is_dropped_without_a_deep_stack() {
    let root = Allowance::new(each(7, u64::MAX));
    let mut last = root.reserve(each(7, u64::MAX - 1)).unwrap();
    for _ in 0..100_000 {
        last = last.reserve(each(7, last.left().depth - 1)).unwrap();
    }
    assert_eq!(root.left().calls, 0);
    drop(last);
    assert_eq!(root.left().calls, 7);
}

/// What all children together hold or have used, and the most that it ever was.
#[derive(Default)]
struct Ledger {
    out: [AtomicU64; 5],
    spent: [AtomicU64; 5],
    refused: AtomicU64,
    crashed: AtomicU64,
}

impl Ledger {
    /// Counts what a child took, and says whether all children have no more than there is.
    fn take(&self, amounts: &Amounts, most: u64) -> bool {
        MEASURES.into_iter().enumerate().fold(true, |is_fine, (index, measure)| {
            let amount = amounts.of(measure);
            let before = self.out[index].fetch_add(amount, Ordering::SeqCst);
            is_fine && before + amount <= most
        })
    }

    /// Before it is dropped, so that nobody is counted twice.
    fn give(&self, amounts: &Amounts) {
        for (index, measure) in MEASURES.into_iter().enumerate() {
            self.out[index].fetch_sub(amounts.of(measure), Ordering::SeqCst);
        }
    }

    fn spend(&self, amounts: &Amounts) {
        for (index, measure) in MEASURES.into_iter().enumerate() {
            self.spent[index].fetch_add(amounts.of(measure), Ordering::SeqCst);
        }
    }
}

/// One child's life: it reserves, spends, has children of its own, and ends well or not.
fn live(root: &Allowance, ledger: &Ledger, seed: u64, most: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    for _ in 0..8 {
        let wanted = Amounts { fuel: below(90), calls: below(90), ..each(below(90), 2) };
        let Ok(child) = root.reserve(wanted) else {
            ledger.refused.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            continue;
        };
        assert!(ledger.take(&wanted, most), "the children have more than their parent");
        let grandchild = child.reserve(each(below(20), 1));
        let used = each(below(12), 0);
        if child.spend(used).is_ok() {
            ledger.spend(&used);
        }
        if let Some(grandchild) = grandchild.as_ref().ok().filter(|it| it.spend(used).is_ok()) {
            ledger.spend(&used);
            assert!(grandchild.spend(each(1 << 40, 0)).is_err());
        }
        thread::yield_now();
        // What the line has not spent returns when its last member is dropped.
        let mut rest = child.left();
        for measure in MEASURES {
            let held = grandchild.as_ref().map_or(0, |it| it.left().of(measure));
            let amount = rest.of(measure) + held;
            rest = with(rest, measure, amount);
        }
        ledger.give(&rest);
        if below(2) == 0 {
            drop(child);
            drop(grandchild);
        } else if below(2) == 0 {
            drop(grandchild);
            drop(child);
        } else {
            ledger.crashed.fetch_add(1, Ordering::SeqCst);
            let crash = AssertUnwindSafe(move || {
                let _held = (child, grandchild);
                panic::resume_unwind(Box::new("crash"));
            });
            assert!(panic::catch_unwind(crash).is_err());
        }
    }
}

#[test]
fn a_thousand_children_at_once_never_have_more_than_their_parent() {
    const CHILDREN: u64 = 1_000;
    const MOST: u64 = 20_000;
    let root = Allowance::new(each(MOST, 3));
    let (ledger, barrier) = (Ledger::default(), Barrier::new(CHILDREN as usize));
    thread::scope(|scope| {
        for seed in 1..=CHILDREN {
            let (root, ledger, barrier) = (&root, &ledger, &barrier);
            let life = move || {
                barrier.wait();
                live(root, ledger, seed, MOST);
            };
            thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, life).unwrap();
        }
    });
    for (index, measure) in MEASURES.into_iter().enumerate() {
        let spent = ledger.spent[index].load(Ordering::SeqCst);
        assert_eq!(root.left().of(measure) + spent, MOST, "{measure:?}");
        assert_eq!(ledger.out[index].load(Ordering::SeqCst), spent, "{measure:?}");
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    let (refused, crashed) = (count(&ledger.refused), count(&ledger.crashed));
    eprintln!("allowances: {CHILDREN} children, {refused} refused, {crashed} crashed");
    assert!(refused > 0 && crashed > 0 && root.left().calls < MOST);
}

#[test]
fn a_parent_that_only_looks_before_it_takes_fails_the_same_count() {
    // The control: to look and to take in two steps lets two children have the same.
    let (left, ledger) = (AtomicU64::new(10), Ledger::default());
    let looks = [left.load(Ordering::SeqCst), left.load(Ordering::SeqCst)];
    let counted = looks.map(|left| left < 10 || ledger.take(&only(Measure::Calls, 10), 10));
    assert_eq!(counted, [true, false]);
}
