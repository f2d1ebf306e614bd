//! The order of a batch against the rule, applied to each pair of calls.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tooltape::{Access, Claim, Footprint, Order, Resource};

/// Keys that cover, meet and miss each other in many ways; `*` is everything.
const KEYS: [&str; 12] = [
    "*",
    "file:",
    "file:src",
    "file:src/a",
    "file:src/a/b",
    "file:src/ab",
    "file:src2",
    "db:",
    "db:users/1",
    "db:users/2",
    "db:users",
    "file:src/a/c",
];

fn with(key: &str, add: impl Fn(Resource) -> Footprint) -> Footprint {
    match key {
        "*" => add(Resource::everything()),
        key => add(Resource::parse(key).unwrap()),
    }
}

/// A call as the test knows it: its keys are texts, and the rule is spelled out on them.
#[derive(Clone, Debug, Default)]
struct Plan {
    reads: Vec<&'static str>,
    writes: Vec<&'static str>,
    exclusive: bool,
    recursive: bool,
    promoted: bool,
}

impl Plan {
    fn claim(&self) -> Claim {
        let reads = self.reads.iter().fold(Footprint::none(), |footprint, key| {
            with(key, |resource| footprint.clone().and_reads(resource))
        });
        let footprint = self.writes.iter().fold(reads, |footprint, key| {
            with(key, |resource| footprint.clone().and_writes(resource))
        });
        let Plan { exclusive, recursive, promoted, .. } = *self;
        Claim { footprint, exclusive, recursive, promoted }
    }

    fn conflicts(&self, other: &Plan) -> bool {
        if self.exclusive || other.exclusive {
            return true;
        }
        if self.recursive && other.recursive || self.promoted && other.promoted {
            return false;
        }
        let writes = |plan: &Plan| if plan.recursive { vec!["*"] } else { plan.writes.clone() };
        let touches = |plan: &Plan| [writes(plan), plan.reads.clone()].concat();
        let meet = |ones: Vec<&str>, others: Vec<&str>| {
            ones.iter().any(|one| others.iter().any(|other| overlap(one, other)))
        };
        meet(writes(self), touches(other)) || meet(touches(self), writes(other))
    }
}

fn overlap(one: &str, other: &str) -> bool {
    // With a slash after each segment, a key covers what its text begins.
    let path = |key: &str| match key {
        "*" => String::new(),
        key => format!("{}/", key.trim_end_matches(':').replace(':', "/")),
    };
    let (one, other) = (path(one), path(other));
    one.starts_with(&other) || other.starts_with(&one)
}

fn claims(plans: &[Option<Plan>]) -> Vec<Option<Claim>> {
    plans.iter().map(|plan| plan.as_ref().map(Plan::claim)).collect()
}

/// For each call, the earlier ones that it conflicts with.
fn brute_force(plans: &[Option<Plan>], sequential: bool) -> Vec<BTreeSet<usize>> {
    let conflict = |one: &Plan, other: &Plan| sequential || one.conflicts(other);
    let before = |later: usize| {
        let plan = plans[later].as_ref();
        let earlier = (0..later).filter(|earlier| {
            plan.zip(plans[*earlier].as_ref()).is_some_and(|(one, other)| conflict(one, other))
        });
        earlier.collect()
    };
    (0..plans.len()).map(before).collect()
}

/// All that each call waits for, also through others.
fn closure(direct: &[BTreeSet<usize>]) -> Vec<BTreeSet<usize>> {
    let mut all: Vec<BTreeSet<usize>> = Vec::new();
    for (call, before) in direct.iter().enumerate() {
        assert!(before.iter().all(|earlier| *earlier < call), "{call} waits for a later call");
        let through = before.iter().flat_map(|earlier| all[*earlier].clone());
        all.push(before.iter().copied().chain(through).collect());
    }
    all
}

fn order(plans: &[Option<Plan>], sequential: bool) -> Order {
    match sequential {
        true => Order::sequential(&claims(plans)),
        false => Order::of(&claims(plans)),
    }
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let keys = || prop::collection::vec(prop::sample::select(&KEYS[..]), 0..3);
    let rarely = || prop::bool::weighted(0.08);
    let flags = (rarely(), prop::bool::weighted(0.15), prop::bool::weighted(0.3));
    (keys(), keys(), flags).prop_map(|(reads, writes, (exclusive, recursive, promoted))| Plan {
        reads,
        writes,
        exclusive,
        recursive,
        promoted,
    })
}

/// Mostly plain calls, or a mixture of everything, or only few keys.
fn any_plans() -> impl Strategy<Value = Vec<Option<Plan>>> {
    let plain = any_plan().prop_map(|plan| Plan {
        exclusive: false,
        recursive: false,
        promoted: false,
        ..plan
    });
    let few = (prop::sample::select(vec!["*", "file:src", "file:src/a"]), any::<bool>()).prop_map(
        |(key, writes)| match writes {
            true => Plan { writes: vec![key], ..Plan::default() },
            false => Plan { reads: vec![key], ..Plan::default() },
        },
    );
    let some = |plan: BoxedStrategy<Plan>| {
        prop::collection::vec(prop::option::weighted(0.93, plan), 0..32)
    };
    prop_oneof![some(plain.boxed()), some(any_plan().boxed()), some(few.boxed())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_call_waits_for_exactly_the_earlier_calls_that_it_conflicts_with(
        plans in any_plans(),
        sequential in prop::bool::weighted(0.05),
    ) {
        let order = order(&plans, sequential);
        let direct: Vec<BTreeSet<usize>> =
            (0..plans.len()).map(|call| order.waits_for(call).into_iter().collect()).collect();
        let expected = brute_force(&plans, sequential);
        prop_assert_eq!(closure(&direct), closure(&expected));
        // Nothing is waited for but what conflicts.
        for (direct, expected) in direct.iter().zip(&expected) {
            prop_assert!(direct.is_subset(expected));
        }
        prop_assert_eq!(order.is_free(), expected.iter().all(BTreeSet::is_empty));
    }

    #[test]
    fn in_whatever_order_calls_end_each_starts_as_soon_as_it_may(
        plans in any_plans(),
        sequential in prop::bool::weighted(0.05),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 32),
    ) {
        let before = brute_force(&plans, sequential);
        let mut waiting = order(&plans, sequential).begin();
        let mut running: Vec<usize> =
            waiting.ready().filter(|call| plans[*call].is_some()).collect();
        let mut ended = BTreeSet::new();
        let mut choices = choices.iter();
        while !running.is_empty() {
            let startable = (0..plans.len()).filter(|call| {
                plans[*call].is_some() && before[*call].is_subset(&ended)
            });
            let startable: BTreeSet<usize> = startable.filter(|it| !ended.contains(it)).collect();
            prop_assert_eq!(&running.iter().copied().collect::<BTreeSet<_>>(), &startable);
            let call = running.swap_remove(choices.next().unwrap().index(running.len()));
            ended.insert(call);
            waiting.ended(call, |ready| running.push(ready));
        }
        prop_assert_eq!(ended.len(), plans.iter().flatten().count());
    }

    #[test]
    fn two_claims_conflict_as_the_rule_says(one in any_plan(), other in any_plan()) {
        let expected = one.conflicts(&other);
        prop_assert_eq!(one.claim().conflicts(&other.claim()), expected);
        prop_assert_eq!(other.claim().conflicts(&one.claim()), expected);
    }
}

fn check(claims: Vec<Claim>, expected: &[&[usize]]) {
    let claims: Vec<Option<Claim>> = claims.into_iter().map(Some).collect();
    let order = Order::of(&claims);
    let waits: Vec<Vec<usize>> = (0..claims.len()).map(|call| order.waits_for(call)).collect();
    assert_eq!(waits, expected);
}

fn reads(key: &str) -> Claim {
    Footprint::reads(key).into()
}

fn writes(key: &str) -> Claim {
    Footprint::writes(key).into()
}

fn unknown(access: Access) -> Claim {
    Footprint::everything(access).into()
}

#[test]
fn without_footprints_reads_overlap_and_writes_run_alone_and_in_order() {
    let [pure, read, write] = [Access::Pure, Access::Read, Access::Write].map(unknown);
    check(vec![read.clone(), write.clone(), read.clone()], &[&[], &[0], &[1]]);
    check(vec![read.clone(), read.clone(), read.clone()], &[&[], &[], &[]]);
    check(vec![write.clone(), write.clone(), write.clone()], &[&[], &[0], &[1]]);
    check(vec![write.clone(), pure, write, read.clone(), read], &[&[], &[], &[0], &[2], &[2]]);
}

#[test]
fn writes_to_different_files_overlap_and_to_one_file_do_not() {
    check(vec![writes("file:a"), writes("file:b"), writes("file:a")], &[&[], &[], &[0]]);
    check(vec![writes("file:a"), reads("file:b"), reads("file:a")], &[&[], &[], &[0]]);
    check(vec![writes("file:a"), writes("db:a")], &[&[], &[]]);
}

#[test]
fn a_folder_covers_its_files() {
    let calls = vec![writes("file:src/a"), reads("file:src"), reads("file:src2"), writes("file:")];
    check(calls, &[&[], &[0], &[], &[0, 1, 2]]);
    check(vec![writes("file:src"), reads("file:src/a/b"), reads("file:sr")], &[&[], &[0], &[]]);
    check(vec![unknown(Access::Write), reads("file:a"), writes("db:b")], &[&[], &[0], &[0]]);
}

#[test]
fn an_exclusive_call_overlaps_no_other() {
    let exclusive = |footprint| Claim { exclusive: true, ..Claim::from(footprint) };
    let [pure, read] = [Access::Pure, Access::Read].map(unknown);
    let calls = vec![
        pure.clone(),
        read.clone(),
        exclusive(Footprint::none()),
        read,
        pure,
        exclusive(Footprint::reads("file:a")),
        exclusive(Footprint::none()),
    ];
    check(calls, &[&[], &[], &[0, 1], &[2], &[2], &[3, 4], &[5]]);
}

#[test]
fn a_recursive_call_conflicts_with_all_but_recursive_calls() {
    let recursive = Claim { recursive: true, ..Claim::default() };
    let calls = vec![
        reads("file:a"),
        recursive.clone(),
        recursive.clone(),
        unknown(Access::Pure),
        reads("file:a"),
        recursive,
    ];
    check(calls, &[&[], &[0], &[0], &[], &[1, 2], &[0, 4]]);
}

#[test]
fn promoted_calls_overlap_each_other_and_nothing_else() {
    let promoted = || Claim { promoted: true, ..unknown(Access::Write) };
    check(
        vec![promoted(), promoted(), reads("file:a"), promoted(), writes("file:a")],
        &[&[], &[], &[0, 1], &[2], &[0, 1, 2, 3]],
    );
}

#[test]
fn a_call_that_will_not_run_is_nobodys_business() {
    let write = || Some(unknown(Access::Write));
    let order = Order::of(&[write(), None, write()]);
    assert_eq!(order.waits_for(2), [0]);
    let order = Order::sequential(&[write(), None, Some(unknown(Access::Pure)), None]);
    assert_eq!((order.waits_for(1), order.waits_for(2)), (vec![], vec![0]));
    assert_eq!(order.begin().ready().collect::<Vec<_>>(), [0, 1, 3]);
}

/// How many waits an order holds, barriers and all.
fn size(claims: Vec<Claim>) -> usize {
    let claims: Vec<Option<Claim>> = claims.into_iter().map(Some).collect();
    Order::of(&claims).size()
}

#[test]
fn the_order_of_a_large_batch_is_as_small_as_the_batch() {
    const CALLS: usize = 10_000;
    let every = |claim: &dyn Fn(usize) -> Claim| (0..CALLS).map(claim).collect::<Vec<_>>();
    let file = |call: usize| format!("file:src/{}/{call}.rs", call % 100);
    let half = |one: &dyn Fn(usize) -> Claim, other: &dyn Fn(usize) -> Claim| {
        every(&|call| if call < CALLS / 2 { one(call) } else { other(call) })
    };
    assert_eq!(size(every(&|_| unknown(Access::Read))), 0);
    assert_eq!(size(every(&|call| writes(&file(call)))), 0);
    assert_eq!(size(every(&|_| unknown(Access::Write))), CALLS - 1);
    let turns = every(&|call| unknown([Access::Read, Access::Write][call % 2]));
    assert_eq!(size(turns), CALLS - 1);
    // Each of one half conflicts with each of the other.
    let read = |_| unknown(Access::Read);
    let write = |call| writes(&file(call));
    let promoted = |_| Claim { promoted: true, ..unknown(Access::Write) };
    for batch in [
        half(&read, &write),
        half(&write, &read),
        half(&promoted, &read),
        half(&promoted, &write),
        every(&|call| if call % 2 == 0 { read(call) } else { promoted(call) }),
        every(&|call| if call % 2 == 0 { read(call) } else { write(call) }),
    ] {
        let size = size(batch);
        assert!(size <= 3 * CALLS, "{size} waits");
    }
}
