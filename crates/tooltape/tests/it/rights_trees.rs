//! Trees of holdings, most of them hostile, against counting: nobody has more than its parent.

use std::collections::BTreeMap;

use tooltape::{Holding, Right, Rights, Withheld};

use crate::rights_universe::{Dice, Given, Universe, wanted};

/// `TOOLTAPE_RIGHTS_TREES` asks for more.
const TREES_DEFAULT: u64 = 3_000;
const DEPTH_MAX: usize = 8;
const FAN_OUT_MAX: usize = 20;
const TIMES: usize = 100;

/// One holding of a tree: whose child it is, what it asks for, until when, and if it is revoked.
struct Plan {
    parent: Option<usize>,
    given: Given,
    not_after: Option<u64>,
    revoked: bool,
    depth: usize,
}

/// What the test asks of whoever keeps rights.
trait Keeper: Sized {
    fn root(universe: &Universe, plan: &Plan) -> Self;
    fn child(&self, universe: &Universe, plan: &Plan) -> Self;
    fn revoke(&mut self);
    /// Whether the last of a line, the root first, allows it.
    fn allows(line: &[&Self], universe: &Universe, wanted: usize, now: u64) -> bool;
}

impl Keeper for Holding {
    fn root(universe: &Universe, plan: &Plan) -> Holding {
        Holding::new("0", plan.given.rights(universe))
    }

    fn child(&self, universe: &Universe, plan: &Plan) -> Holding {
        let holder = format!("{}", plan.depth);
        match plan.not_after {
            Some(time) => self.attenuate_until(holder, &plan.given.rights(universe), time),
            None => self.attenuate(holder, &plan.given.rights(universe)),
        }
    }

    fn revoke(&mut self) {
        Holding::revoke(self);
    }

    fn allows(line: &[&Holding], universe: &Universe, wanted: usize, now: u64) -> bool {
        line[line.len() - 1].check(&universe.cases[wanted].right, now).is_ok()
    }
}

/// What keepers get wrong, each in its own way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    ComparesTexts,
    Joins,
    TrustsTheChild,
    AllowsBeatDenials,
    ForgetsDenials,
    RevokesOneAlone,
    ExpiresOneAlone,
}

/// A keeper that has everything by counting, but for its flaw.
struct Flawed<const FLAW: u8> {
    given: Given,
    not_after: Option<u64>,
    revoked: bool,
}

const FLAWS: [Flaw; 8] = [
    Flaw::None,
    Flaw::ComparesTexts,
    Flaw::Joins,
    Flaw::TrustsTheChild,
    Flaw::AllowsBeatDenials,
    Flaw::ForgetsDenials,
    Flaw::RevokesOneAlone,
    Flaw::ExpiresOneAlone,
];

impl<const FLAW: u8> Flawed<FLAW> {
    fn covers(&self, universe: &Universe, wanted: usize) -> bool {
        let case = |number: &usize| &universe.cases[*number];
        let text = &case(&wanted).text;
        match FLAWS[usize::from(FLAW)] {
            Flaw::ComparesTexts => {
                let begins = |number: &usize| text.starts_with(&case(number).text);
                self.given.allowed.iter().any(begins) && !self.given.denied.iter().any(begins)
            }
            Flaw::AllowsBeatDenials => {
                let undenied = Given { denied: Vec::new(), ..self.given.clone() };
                self.given.covers(universe, wanted)
                    || self.given.allowed.contains(&wanted) && undenied.covers(universe, wanted)
            }
            Flaw::ForgetsDenials => {
                Given { denied: Vec::new(), ..self.given.clone() }.covers(universe, wanted)
            }
            Flaw::None
            | Flaw::Joins
            | Flaw::TrustsTheChild
            | Flaw::RevokesOneAlone
            | Flaw::ExpiresOneAlone => self.given.covers(universe, wanted),
        }
    }
}

impl<const FLAW: u8> Keeper for Flawed<FLAW> {
    fn root(_: &Universe, plan: &Plan) -> Self {
        Flawed { given: plan.given.clone(), not_after: None, revoked: false }
    }

    fn child(&self, _: &Universe, plan: &Plan) -> Self {
        Flawed { given: plan.given.clone(), not_after: plan.not_after, revoked: false }
    }

    fn revoke(&mut self) {
        self.revoked = true;
    }

    fn allows(line: &[&Self], universe: &Universe, wanted: usize, now: u64) -> bool {
        let last = &line[line.len() - 1..];
        let flaw = FLAWS[usize::from(FLAW)];
        let asked = |alone: bool| if alone { last } else { line };
        let revoked = asked(flaw == Flaw::RevokesOneAlone).iter().any(|it| it.revoked);
        let mut ends = asked(flaw == Flaw::ExpiresOneAlone).iter().filter_map(|it| it.not_after);
        let mut covering = asked(flaw == Flaw::TrustsTheChild).iter();
        let covers = |it: &&Self| it.covers(universe, wanted);
        let joins = flaw == Flaw::Joins;
        let covered = if joins { covering.any(covers) } else { covering.all(covers) };
        !revoked && !ends.any(|end| now > end) && covered
    }
}

/// A tree that is a line, a bush or something between.
fn plant(universe: &Universe, dice: &mut Dice) -> Vec<Plan> {
    let most = if dice.one_in(8) { 60 } else { 10 };
    let nodes = 2 + dice.below(most);
    let shape = dice.below(3);
    let mut plans: Vec<Plan> = Vec::new();
    let mut children: Vec<usize> = Vec::new();
    for number in 0..nodes {
        let parent = match shape {
            _ if number == 0 => None,
            0 => Some(number - 1),
            1 => Some(dice.below(number.min(3))),
            _ => Some(dice.below(number)),
        };
        let fits =
            |parent: &usize| plans[*parent].depth < DEPTH_MAX && children[*parent] < FAN_OUT_MAX;
        // What does not fit grows where there is room.
        let parent = match parent {
            Some(parent) if !fits(&parent) => Some((0..number).find(fits).expect("there is room")),
            parent => parent,
        };
        parent.into_iter().for_each(|parent| children[parent] += 1);
        plans.push(Plan {
            parent,
            given: given(universe, dice, number == 0),
            not_after: (number > 0 && dice.one_in(6)).then(|| dice.below(TIMES) as u64),
            revoked: dice.one_in(20),
            depth: parent.map_or(0, |parent| plans[parent].depth + 1),
        });
        children.push(0);
    }
    plans
}

/// What one asks for: much of everything, or a few things, and seldom something denied.
fn given(universe: &Universe, dice: &mut Dice, is_root: bool) -> Given {
    const BROAD: [&str; 12] = [
        "fs:read:.",
        "fs:write:.",
        "fs:read:@r/.",
        "net:any:*.e.com:443",
        "net:any:e.com:443",
        "net:get:*.e.com:8443",
        "spend:usd:3",
        "spend:eur:2",
        "agents:spawn:3/3",
        "agents:spawn:2/3",
        "process:shell:l",
        "clock:read:now",
    ];
    let mut given = Given::default();
    if is_root || !dice.one_in(4) {
        let broad = BROAD.iter().filter(|_| !dice.one_in(5));
        given.allowed = broad.map(|text| universe.find(text)).collect();
    }
    for _ in 0..dice.below(6) {
        given.allowed.push(dice.pick(&universe.pool));
    }
    while dice.one_in(3) {
        given.denied.push(dice.pick(&universe.pool));
    }
    given
}

#[derive(Debug, Default)]
struct Seen {
    trees: u64,
    holdings: u64,
    checks: u64,
    allowed: u64,
    depth: usize,
    fan_out: usize,
    /// Allowed, against counting.
    widened: u64,
    /// Refused, against counting.
    lost: u64,
}

/// Whether counting allows it: each on the way from the root must.
fn counted(plans: &[Plan], line: &[usize], universe: &Universe, wanted: usize, now: u64) -> bool {
    line.iter().map(|number| &plans[*number]).all(|plan| {
        !plan.revoked
            && plan.not_after.is_none_or(|end| now <= end)
            && plan.given.covers(universe, wanted)
    })
}

fn try_tree<K: Keeper>(
    universe: &Universe,
    seed: u64,
    seen: &mut Seen,
    also: impl Fn(&[Plan], &[usize], &[&K], usize, u64),
) {
    let mut dice = Dice::new(seed);
    let plans = plant(universe, &mut dice);
    let mut keepers: Vec<K> = Vec::new();
    let mut children = vec![0; plans.len()];
    for plan in &plans {
        keepers.push(match plan.parent {
            None => K::root(universe, plan),
            Some(parent) => {
                children[parent] += 1;
                keepers[parent].child(universe, plan)
            }
        });
    }
    // Revoked once everything was handed out.
    for (keeper, plan) in keepers.iter_mut().zip(&plans) {
        if plan.revoked {
            keeper.revoke();
        }
    }
    seen.trees += 1;
    seen.holdings += plans.len() as u64;
    seen.fan_out = seen.fan_out.max(children.into_iter().max().unwrap_or(0));
    for number in 0..plans.len() {
        let mut line: Vec<usize> =
            std::iter::successors(Some(number), |number| plans[*number].parent).collect();
        line.reverse();
        seen.depth = seen.depth.max(line.len() - 1);
        let kept: Vec<&K> = line.iter().map(|number| &keepers[*number]).collect();
        for _ in 0..8 {
            let now = dice.below(TIMES) as u64;
            let wanted = match dice.pick(&line) {
                from if !plans[from].given.allowed.is_empty() && dice.one_in(2) => {
                    dice.pick(&plans[from].given.allowed)
                }
                _ => dice.below(universe.cases.len()),
            };
            let expected = counted(&plans, &line, universe, wanted, now);
            let allowed = K::allows(&kept, universe, wanted, now);
            seen.checks += 1;
            seen.allowed += u64::from(expected);
            seen.widened += u64::from(allowed && !expected);
            seen.lost += u64::from(!allowed && expected);
            also(&plans, &line, &kept, wanted, now);
        }
    }
}

/// A refusal names the one nearest to the root that withholds the right, and why.
fn check_refusal(
    universe: &Universe,
    plans: &[Plan],
    line: &[usize],
    kept: &[&Holding],
    (wanted, now): (usize, u64),
) {
    let (right, things) = (&universe.cases[wanted].right, &universe.cases[wanted].things);
    let holding = kept[kept.len() - 1];
    let refusal = holding.check(right, now).err();
    let plan = |number: &&usize| &plans[**number];
    let is_over = |number: &&usize| {
        plan(number).revoked || plan(number).not_after.is_some_and(|end| now > end)
    };
    assert_eq!(holding.is_live(now), !line.iter().any(|number| is_over(&number)));
    let lacks = |number: &&usize| !plan(number).given.covers(universe, wanted);
    let Some(by) = line.iter().find(is_over).or_else(|| line.iter().find(lacks)) else {
        return assert_eq!(refusal, None);
    };
    let refusal = refusal.expect("somebody withholds it");
    let plan = &plans[*by];
    assert_eq!((refusal.depth, &*refusal.right), (plan.depth, right));
    assert_eq!(*refusal.holder, plan.depth.to_string());
    match refusal.why {
        Withheld::Revoked => assert!(plan.revoked),
        Withheld::Expired { not_after_us, now_us } => {
            assert_eq!((Some(not_after_us), now_us), (plan.not_after, now));
        }
        Withheld::Denied { by } => {
            assert!(by.overlaps(right));
            assert!(plan.given.is_denied(universe, things));
        }
        Withheld::Missing => assert!(!plan.given.is_denied(universe, things)),
    }
}

#[test]
fn no_holding_of_any_tree_has_more_or_less_than_counting_gives_it() {
    let universe = Universe::new();
    let mut seen = Seen::default();
    for seed in 0..wanted("TOOLTAPE_RIGHTS_TREES", TREES_DEFAULT) {
        let before = seen.widened + seen.lost;
        try_tree::<Holding>(&universe, seed, &mut seen, |plans, line, kept, wanted, now| {
            check_refusal(&universe, plans, line, kept, (wanted, now));
            if let [.., parent, child] = kept {
                assert!(parent.rights().covers_all(child.rights()), "seed {seed}");
            }
        });
        assert_eq!(seen.widened + seen.lost, before, "seed {seed}");
    }
    eprintln!("rights: {seen:?}");
    assert_eq!((seen.depth, seen.fan_out), (DEPTH_MAX, FAN_OUT_MAX));
    assert!(seen.allowed * 10 > seen.checks, "too little is allowed for the test to mean much");
}

#[test]
fn every_flawed_keeper_of_rights_fails_the_same_count() {
    fn widened<const FLAW: u8>(universe: &Universe) -> u64 {
        let mut seen = Seen::default();
        for seed in 0..300 {
            try_tree::<Flawed<FLAW>>(universe, seed, &mut seen, |_, _, _, _, _| {});
        }
        seen.widened
    }
    let universe = Universe::new();
    assert_eq!(widened::<0>(&universe), 0, "one without a flaw passes");
    let found: BTreeMap<&str, u64> = [
        ("compares texts", widened::<1>(&universe)),
        ("joins", widened::<2>(&universe)),
        ("trusts the child", widened::<3>(&universe)),
        ("allows beat denials", widened::<4>(&universe)),
        ("forgets denials", widened::<5>(&universe)),
        ("revokes one alone", widened::<6>(&universe)),
        ("expires one alone", widened::<7>(&universe)),
    ]
    .into();
    eprintln!("rights: flawed keepers are caught {found:?} times");
    assert!(found.values().all(|times| *times > 0), "{found:?}");
}

#[test]
fn a_revocation_reaches_what_was_handed_out_and_is_handed_out_after() {
    let rights: Rights = "fs:read:.\nclock:read:now".parse().unwrap();
    let right: Right = "fs:read:a".parse().unwrap();
    let root = Holding::new("root", rights.clone());
    let child = root.attenuate("child", &rights);
    let grandchild = child.attenuate("grandchild", &rights);
    let (sibling, handle) = (root.attenuate("sibling", &rights), grandchild.clone());
    assert!(handle.check(&right, 0).is_ok());
    child.revoke();
    for dead in [&child, &grandchild, &handle, &child.attenuate("late", &rights)] {
        let refusal = dead.check(&right, 0).unwrap_err();
        assert_eq!(refusal.to_string(), "`child` does not give `fs:read:a`: it was revoked");
        assert!(!dead.is_live(0));
    }
    assert!(root.check(&right, 0).is_ok() && sibling.check(&right, 0).is_ok());
}

#[test]
fn a_child_ends_with_its_parent_however_long_it_was_given() {
    let rights: Rights = "clock:read:now".parse().unwrap();
    let right: Right = "clock:read:now".parse().unwrap();
    let parent = Holding::new("root", rights.clone()).attenuate_until("parent", &rights, 10);
    let child = parent.attenuate_until("child", &rights, u64::MAX);
    assert_eq!(child.not_after_us(), Some(10));
    assert!(child.check(&right, 10).is_ok());
    assert_eq!(
        child.check(&right, 11).unwrap_err().to_string(),
        "`parent` does not give `clock:read:now`: it ended at 10 µs, and it is 11 µs"
    );
}

#[test]
fn a_line_of_a_hundred_thousand_holdings_is_dropped_without_a_deep_stack() {
    let rights: Rights = "clock:read:now".parse().unwrap();
    let root = Holding::new("root", rights.clone());
    let last = (0..100_000).fold(root.clone(), |above, _| above.attenuate("child", &rights));
    assert_eq!(last.depth(), 100_000);
    root.revoke();
    assert!(!last.is_live(0));
    drop(root);
    drop(last);
}
