//! Rights and sets of them against counting, over the whole of a small world.

use std::collections::HashMap;

use tooltape::{Right, Rights};

use crate::rights_universe::{Case, Given, Things, Universe, common, is_within};

/// What somebody says of two rights: whether the first covers the second, and their meet.
type Algebra = fn(&Case, &Case) -> (bool, Option<Right>);

/// How many pairs are not as counting says.
fn mistakes(universe: &Universe, algebra: Algebra) -> usize {
    let things_of: HashMap<&Right, &Things> =
        universe.cases.iter().map(|case| (&case.right, &case.things)).collect();
    assert_eq!(things_of.len(), universe.cases.len(), "no two rights are the same");
    let is_wrong = |one: &Case, other: &Case| {
        let (covers, meet) = algebra(one, other);
        let both = common(&one.things, &other.things);
        // The meet lets one do what both do, so it is the greatest of all that both cover.
        let things = meet.map(|meet| *things_of[&meet]);
        covers != is_within(&other.things, &one.things)
            || things.unwrap_or_default() != both
            || things.is_some() != (both != Things::default())
    };
    let pairs =
        universe.cases.iter().flat_map(|one| universe.cases.iter().map(move |it| (one, it)));
    pairs.filter(|(one, other)| is_wrong(one, other)).count()
}

#[test]
fn every_pair_of_rights_covers_and_meets_as_counting_says() {
    let universe = Universe::new();
    let wrong = mistakes(&universe, |one, other| {
        assert_eq!(one.right.overlaps(&other.right), one.right.meet(&other.right).is_some());
        (one.right.covers(&other.right), one.right.meet(&other.right))
    });
    eprintln!("rights: {} pairs, {wrong} mistakes", universe.cases.len().pow(2));
    assert_eq!(wrong, 0);
}

#[test]
fn rights_compared_by_how_they_begin_fail_the_same_count() {
    let wrong = mistakes(&Universe::new(), |one, other| {
        let covers = |one: &Case, other: &Case| other.text.starts_with(&one.text);
        let meet = if covers(one, other) { other } else { one };
        let is_some = covers(one, other) || covers(other, one);
        (covers(one, other), is_some.then(|| meet.right.clone()))
    });
    assert!(wrong > 1_000, "only {wrong}");
}

#[test]
fn rights_meet_in_any_order() {
    let universe = Universe::new();
    let is_typical = |text: &str| {
        ["get:", "any:", "post:"].iter().any(|it| text.contains(it)) && text.ends_with(":443")
            || (!text.starts_with("net:") && !text.contains('z'))
    };
    let rights: Vec<&Right> = universe
        .cases
        .iter()
        .filter(|case| is_typical(&case.text))
        .map(|case| &case.right)
        .collect();
    let mut triples = 0;
    for one in &rights {
        for other in rights.iter().filter(|other| one.overlaps(other)) {
            for third in &rights {
                let left = one.meet(other).and_then(|meet| meet.meet(third));
                let right = other.meet(third).and_then(|meet| one.meet(&meet));
                assert_eq!(left, right, "{one}, {other}, {third}");
                triples += 1;
            }
        }
    }
    eprintln!("rights: {triples} triples that meet in any order");
    assert!(triples > 10_000, "only {triples}");
}

/// Every set that can be made of these, as the library has it and by counting.
fn all_sets(universe: &Universe, allowed: &[&str], denied: &[&str]) -> Vec<(Rights, Given)> {
    let pick = |texts: &[&str], bits: usize| -> Vec<usize> {
        let chosen = texts.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
        chosen.map(|(_, text)| universe.find(text)).collect()
    };
    let bits = (0..1 << allowed.len()).flat_map(|a| (0..1 << denied.len()).map(move |d| (a, d)));
    let given = bits.map(|(a, d)| Given { allowed: pick(allowed, a), denied: pick(denied, d) });
    given.map(|given| (given.rights(universe), given)).collect()
}

/// What the sets are made of, and what is in the text of all that they could cover.
const WORLDS: [(&[&str], &[&str], &[&str]); 5] = [
    (
        &["fs:read:.", "fs:read:a", "fs:read:a/a", "fs:read:ab", "fs:write:a"],
        &["fs:read:a/a", "fs:read:a", "fs:read:."],
        &["fs:"],
    ),
    (
        &[
            "net:any:*.e.com:443",
            "net:get:*.e.com:443",
            "net:any:a.e.com:443",
            "net:post:a.e.com:443",
            "net:any:*.a.e.com:443",
        ],
        &["net:get:a.e.com:443", "net:any:*.a.e.com:443", "net:get:*.e.com:443"],
        &[":443"],
    ),
    (
        &["net:any:e.com:443", "net:get:e.com:443", "net:head:e.com:443", "net:any:e.com:8443"],
        &["net:get:e.com:443", "net:post:e.com:443", "net:any:e.com:443"],
        &[":e.com:"],
    ),
    // Any method but one is each of the others.
    (
        &[
            "net:any:e.com:443",
            "net:head:e.com:443",
            "net:post:e.com:443",
            "net:put:e.com:443",
            "net:patch:e.com:443",
            "net:delete:e.com:443",
        ],
        &["net:get:e.com:443"],
        &[":e.com:"],
    ),
    (
        &["spend:usd:1", "spend:usd:3", "agents:spawn:3/1", "agents:spawn:1/3", "clock:read:now"],
        &["spend:usd:2", "agents:spawn:1/1", "clock:read:now"],
        &["spend:", "agents:", "clock:"],
    ),
];

#[test]
fn every_pair_of_sets_meets_and_compares_as_counting_says() {
    let universe = Universe::new();
    let mut pairs = 0;
    for (allowed, denied, marks) in WORLDS {
        let is_wanted =
            |number: &usize| marks.iter().any(|mark| universe.cases[*number].text.contains(mark));
        let wanted: Vec<usize> = (0..universe.cases.len()).filter(is_wanted).collect();
        assert!(wanted.len() <= 128);
        // What a set covers, a bit for each right.
        let bits = |covers: &dyn Fn(usize) -> bool| {
            let covered = wanted.iter().enumerate().filter(|(_, number)| covers(**number));
            covered.fold(0_u128, |bits, (index, _)| bits | 1 << index)
        };
        let sets: Vec<(Rights, u128)> = all_sets(&universe, allowed, denied)
            .into_iter()
            .map(|(rights, given)| (rights, bits(&|number| given.covers(&universe, number))))
            .collect();
        let mut seen: HashMap<Rights, u128> = HashMap::new();
        for (one, one_bits) in &sets {
            for (other, other_bits) in &sets {
                let meet = one.meet(other);
                assert_eq!(
                    one.covers_all(other),
                    other_bits & !one_bits == 0,
                    "whether\n{one}\ncovers\n{other}"
                );
                let meet_bits = *seen.entry(meet).or_insert_with_key(|meet| {
                    bits(&|number| meet.covers(&universe.cases[number].right))
                });
                assert_eq!(meet_bits, one_bits & other_bits, "the meet of\n{one}\nand\n{other}");
                pairs += 1;
            }
            let own = bits(&|number| one.covers(&universe.cases[number].right));
            assert_eq!(own, *one_bits, "{one}");
            assert_eq!(one.is_none(), own == 0, "{one}");
        }
    }
    eprintln!("rights: {pairs} pairs of sets, 0 mistakes");
}
