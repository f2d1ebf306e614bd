//! The laws of meeting, on random sets of rights.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tooltape::{Right, Rights};

use crate::rights_universe::wanted;

/// `PROPTEST_CASES` asks for more.
const CASES_DEFAULT: u64 = 10_000;

fn any_right() -> impl Strategy<Value = Right> {
    let word = || prop_oneof![Just("a"), Just("ab"), Just("b"), Just("B"), Just("a.b-c_9")];
    let names = prop_oneof![4 => word(), 1 => Just("a b"), 1 => Just("é"), 1 => Just("@a")];
    let root = prop_oneof![3 => Just(""), 1 => Just("@a/"), 1 => Just("@ab/")];
    let files = (prop_oneof![Just("read"), Just("write")], root, vec(names, 0..4));
    let files = files.prop_map(|(action, root, names)| match names.join("/") {
        path if path.is_empty() => format!("fs:{action}:{root}."),
        path if root.is_empty() && path.starts_with('@') => format!("fs:{action}:./{path}"),
        path => format!("fs:{action}:{root}{path}"),
    });
    let method = prop_oneof![
        3 => Just("any"), 3 => Just("get"), 1 => Just("head"), 1 => Just("post"),
        1 => Just("put"), 1 => Just("patch"), 1 => Just("delete")
    ];
    let label = || prop_oneof![Just("a"), Just("ab"), Just("b-1"), Just("B")];
    let name = (any::<bool>(), vec(label(), 1..4)).prop_map(|(below, labels)| {
        format!("{}{}.com", if below { "*." } else { "" }, labels.join("."))
    });
    let host = prop_oneof![
        6 => name, 1 => Just("10.0.0.1".to_owned()), 1 => Just("[::1]".to_owned())
    ];
    let port = prop_oneof![3 => Just(""), 1 => Just(":443"), 1 => Just(":80")];
    let net =
        (method, host, port).prop_map(|(method, host, port)| format!("net:{method}:{host}{port}"));
    let spend = (prop_oneof![Just("usd"), Just("eur")], 1..5_u32, 0..3_u32)
        .prop_map(|(currency, whole, part)| format!("spend:{currency}:{whole}.00000{part}"));
    let agents =
        (1..5_u32, 1..5_u32).prop_map(|(count, depth)| format!("agents:spawn:{count}/{depth}"));
    let mcp = (word(), word(), 0..3_u32).prop_map(|(server, tool, digit)| {
        format!("mcp:call:{server}/{tool}@{}", digit.to_string().repeat(64))
    });
    let whole =
        (0..5_usize, prop_oneof![Just("a"), Just("ab")]).prop_map(|(kind, word)| match kind {
            0 => format!("process:run:/bin/{word}"),
            1 => format!("process:shell:{word}"),
            2 => format!("env:read:{word}"),
            3 => format!("secret:use:{word}"),
            _ => (if word == "a" { "clock:read:now" } else { "random:read:any" }).to_owned(),
        });
    let text = prop_oneof![6 => files, 6 => net, 2 => spend, 2 => agents, 1 => mcp, 1 => whole];
    text.prop_map(|text| text.parse().unwrap_or_else(|err| panic!("{err}")))
}

fn any_rights() -> impl Strategy<Value = Rights> {
    let denied = prop_oneof![1 => Just(Vec::new()), 1 => vec(any_right(), 0..4)];
    (vec(any_right(), 0..8), denied)
        .prop_map(|(allowed, denied)| Rights::of(allowed).denying(denied))
}

fn check<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = wanted("PROPTEST_CASES", CASES_DEFAULT);
    let cases = u32::try_from(cases).unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&strategy, test).unwrap_or_else(|err| panic!("{err}"));
}

#[test]
fn meeting_is_associative_commutative_and_idempotent() {
    check((any_rights(), any_rights(), any_rights()), |(a, b, c)| {
        prop_assert_eq!(a.meet(&b).meet(&c), a.meet(&b.meet(&c)));
        prop_assert_eq!(a.meet(&b), b.meet(&a));
        prop_assert_eq!(a.meet(&a), a.clone());
        prop_assert!(a.meet(&Rights::none()).is_none());
        Ok(())
    });
}

#[test]
fn a_meet_is_the_greatest_that_both_cover() {
    check((any_rights(), any_rights(), any_rights(), any_right()), |(a, b, c, right)| {
        let meet = a.meet(&b);
        prop_assert!(a.covers_all(&meet) && b.covers_all(&meet));
        prop_assert!(a.covers_all(&a));
        prop_assert_eq!(meet.covers(&right), a.covers(&right) && b.covers(&right));
        // Of whatever is below both it is above; what is random seldom is below.
        for below in [&c, &meet.meet(&c), &a.meet(&c)] {
            let is_below = a.covers_all(below) && b.covers_all(below);
            prop_assert_eq!(meet.covers_all(below), is_below);
        }
        Ok(())
    });
}

#[test]
fn meeting_and_denying_are_monotone_and_never_widen() {
    check((any_rights(), any_rights(), any_rights(), any_right()), |(a, b, c, right)| {
        let less = a.meet(&c);
        prop_assert!(a.meet(&b).covers_all(&less.meet(&b)));
        prop_assert_eq!(a.covers_all(&c), less.covers_all(&c));
        let denied = a.clone().denying([right.clone()]);
        prop_assert!(a.covers_all(&denied));
        prop_assert!(!denied.covers(&right));
        for allowed in a.allowed() {
            prop_assert!(!denied.covers(allowed) || !allowed.overlaps(&right));
        }
        Ok(())
    });
}

#[test]
fn two_rights_meet_in_the_greatest_that_both_cover() {
    check((any_right(), any_right(), any_right()), |(a, b, c)| {
        let below = |right: &Right| a.covers(right) && b.covers(right);
        match a.meet(&b) {
            Some(meet) => {
                prop_assert!(below(&meet));
                prop_assert_eq!(meet.covers(&c), below(&c));
            }
            None => prop_assert!(!below(&c)),
        }
        prop_assert_eq!(a.meet(&b), b.meet(&a));
        prop_assert_eq!(a.meet(&b).is_some(), a.overlaps(&b));
        prop_assert_eq!(a.meet(&a), Some(a.clone()));
        prop_assert_eq!(a.covers(&b) && b.covers(&a), a == b);
        prop_assert!(!(a.covers(&b) && b.covers(&c)) || a.covers(&c));
        Ok(())
    });
}

#[test]
fn every_set_is_read_again_from_what_it_writes() {
    check(any_rights(), |rights| {
        prop_assert_eq!(rights.to_string().parse::<Rights>(), Ok(rights.clone()));
        let json = serde_json::to_string(&rights).unwrap();
        prop_assert_eq!(serde_json::from_str::<Rights>(&json).unwrap(), rights);
        Ok(())
    });
}

#[test]
fn a_text_with_any_character_changed_is_refused_or_is_the_right_that_it_says() {
    let change = prop_oneof![
        3 => prop::sample::select(":/@.*!?%\\ \t\r\n\0[]-_0aAzé:".chars().collect::<Vec<_>>()),
        1 => any::<char>()
    ];
    check(
        (any_right(), any::<prop::sample::Index>(), change, 0..3_usize),
        |(right, at, c, how)| {
            let mut text: Vec<char> = right.to_string().chars().collect();
            let at = at.index(text.len());
            match how {
                0 => text[at] = c,
                1 => text.insert(at, c),
                _ => drop(text.remove(at)),
            }
            let text = String::from_iter(text);
            if let Ok(changed) = text.parse::<Right>() {
                prop_assert_eq!(changed.to_string().parse(), Ok(changed.clone()));
                // Only case, a port that is the default and zeros at the end may be written anew.
                let plain = |text: &str| text.to_lowercase().replace(":443", "");
                let plain = |text: &str| plain(text).trim_end_matches(['0', '.']).to_owned();
                prop_assert_eq!(plain(&changed.to_string()), plain(&text));
            }
            Ok(())
        },
    );
}
