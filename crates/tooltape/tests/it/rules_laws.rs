//! The laws of rules, on random rules and calls, against a plain scan.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tooltape::rule::{Effect, Literal, Mark, Otherwise, Says, Side, Test, Walls};
use tooltape::testing::Spy;
use tooltape::{
    Access, Call, Effects, Enforced, Label, Policy as _, Reach, Rule, Rules, Toolbox, Verdict,
};

use crate::rights_universe::wanted;
use crate::rules::seen;

/// `PROPTEST_CASES` asks for more.
const CASES_DEFAULT: u64 = 2_000;
const DEFAULTS: [Otherwise; 3] = [Otherwise::Ask, Otherwise::Allow, Otherwise::Deny];

#[derive(Clone, Debug)]
struct Case {
    tool: usize,
    args: Value,
    label: Label,
    rules: Vec<Rule>,
    more: Rule,
    default: Otherwise,
}

fn any_test() -> impl Strategy<Value = (tooltape::rule::Argument, Test)> {
    let glob = select(vec!["src/**", "**", "*.rs", "docs/*", "{a,src}/b"]);
    let glob = glob.prop_map(|glob| ("path", Test::Glob(glob.parse().unwrap())));
    let number = (any::<bool>(), -1..4_i64).prop_map(|(least, n)| match least {
        true => ("n", Test::AtLeast(n.into())),
        false => ("n", Test::AtMost(n.into())),
    });
    let text = (any::<bool>(), 0..8_usize).prop_map(|(longer, chars)| match longer {
        true => ("path", Test::LongerThan(chars)),
        false => ("path", Test::ShorterThan(chars)),
    });
    let host = select(vec!["api.example.com", "*.example.com", "evil.com"]);
    let host = host.prop_map(|host| ("url", Test::Host(vec![host.parse().unwrap()])));
    let one_of = vec(0..3_i64, 1..3).prop_map(|values| {
        ("/list/*", Test::OneOf(values.into_iter().map(|n| Literal::Number(n.into())).collect()))
    });
    let any = prop_oneof![3 => glob, 3 => number, 1 => text, 2 => host, 2 => one_of];
    any.prop_map(|(name, test)| (name.parse().unwrap(), test))
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let says = select(vec![Says::Allow, Says::Ask, Says::Deny]);
    let tool = select(vec![None, None, Some("t0"), Some("t1"), Some("t2"), Some("t3")]);
    let effects =
        vec(select(vec![Effect::Read, Effect::Write, Effect::Network, Effect::Spend]), 0..2);
    let access = select(vec![None, None, Some(Access::Read), Some(Access::Write)]);
    let walls = select(vec![
        None,
        None,
        Some(Walls::AtLeast(Enforced::Sandbox)),
        Some(Walls::Below(Enforced::Sandbox)),
    ]);
    let mark = select(vec![Mark::Trusted, Mark::Untrusted, Mark::Internal, Mark::Secret]);
    let host = select(vec!["api.example.com", "*.example.com", "evil.com"]);
    let parts = (vec(mark, 0..2), vec(host, 0..2), vec(any_test(), 0..3));
    (any::<bool>(), says, tool, effects, access, walls, parts).prop_map(
        |(users, says, tool, effects, access, walls, (marks, hosts, arguments))| {
            let mut rule = Rule::new("", says);
            rule.side = if users { Side::User } else { Side::Project };
            rule.tool = tool.map(str::to_owned);
            (rule.effects, rule.access, rule.walls) = (effects, access, walls);
            rule.hosts = hosts.into_iter().map(|host| host.parse().unwrap()).collect();
            (rule.marks, rule.arguments) = (marks, arguments);
            rule
        },
    )
}

fn any_case() -> impl Strategy<Value = Case> {
    let path = select(vec!["src/a.rs", "a.rs", "docs/x", "../src/a", "/etc/passwd", "src/b", ""]);
    let n = prop_oneof![(-2..5_i64).prop_map(Value::from), Just(json!("2")), Just(json!(1.5))];
    let url = select(vec!["https://api.example.com/a", "evil.com", "https://x@evil.com", "é"]);
    let list = vec(0..4_i64, 0..3);
    let args = (path, n, url, list, 0..16_u8).prop_map(|(path, n, url, list, keep)| {
        let mut args = json!({ "path": path, "n": n, "url": url, "list": list });
        let names = ["path", "n", "url", "list"].into_iter().enumerate();
        for (_, name) in names.filter(|(at, _)| keep & (1 << at) == 0) {
            args.as_object_mut().unwrap().remove(name);
        }
        args
    });
    let labels = vec![
        Label::default(),
        Label::untrusted("web"),
        Label::internal(),
        Label::secret("s").join(&Label::untrusted("web")),
    ];
    let rest = (vec(any_rule(), 0..24), any_rule(), select(DEFAULTS.to_vec()));
    (0..4_usize, args, select(labels), rest).prop_map(
        |(tool, args, label, (mut rules, mut more, default))| {
            let named = rules.iter_mut().enumerate();
            named.for_each(|(at, rule)| rule.name = format!("rule {at}").into());
            more.name = "more".into();
            Case { tool, args, label, rules, more, default }
        },
    )
}

fn toolbox(no: usize) -> Toolbox {
    let near = |access| Effects { access, ..Effects::read() };
    let (name, effects, needs) = match no {
        0 => ("t0", near(Access::Read), None),
        1 => ("t1", Effects { confirm: true, ..near(Access::Write) }, None),
        2 => {
            let far = Effects { reach: Reach::Network, ..near(Access::Write) };
            ("t2", far, Some("net:post:api.example.com"))
        }
        _ => ("t3", Effects::default(), None),
    };
    let spy = Spy::new(name, effects.access).declaring(|spec| {
        let spec = spec.effects(effects);
        needs.map_or(spec.clone(), |needs| spec.needs(needs))
    });
    let mut toolbox = Toolbox::new([spy.tool()]).unwrap();
    let by = if no == 1 { Enforced::Sandbox } else { Enforced::Host };
    toolbox.enforced(name, by).unwrap();
    toolbox
}

/// Tries what must hold of random calls, as a policy sees them.
fn always(holds: fn(&Case, &Call) -> Result<(), String>) {
    let cases = wanted("PROPTEST_CASES", CASES_DEFAULT).try_into().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let toolboxes = [0, 1, 2, 3].map(toolbox);
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let tried = runner.run(&any_case(), |case| {
        let (label, args) = (case.label.clone(), case.args.clone());
        let toolbox = &toolboxes[case.tool];
        let found = runtime.block_on(seen(toolbox, label, &args, move |call| holds(&case, call)));
        found.map_err(TestCaseError::fail)
    });
    tried.unwrap();
}

fn in_order<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Rules {
    rules.into_iter().cloned().fold(Rules::deny_all(), Rules::rule)
}

/// What a default says of a call.
fn by_default(default: Otherwise, call: &Call) -> Says {
    let effects = &call.spec().effects;
    match default {
        Otherwise::Deny => Says::Deny,
        Otherwise::Ask | Otherwise::Allow if effects.confirm => Says::Ask,
        Otherwise::Ask if effects.access == Access::Write => Says::Ask,
        Otherwise::Ask | Otherwise::Allow => Says::Allow,
    }
}

#[test]
fn the_index_decides_as_a_plain_scan_does() {
    always(|case, call| {
        let says = |rule: &Rule| match rule.says {
            Says::Allow if call.spec().effects.confirm && rule.tool.is_none() => Says::Ask,
            says => says,
        };
        let matching = || case.rules.iter().filter(|rule| rule.matches(call));
        let first = |side: Side| {
            let rule = matching().find(|rule| rule.side == side)?;
            Some((says(rule), rule.name.to_string()))
        };
        let default = (by_default(case.default, call), "default".to_owned());
        let denies = matching().find(|rule| rule.says == Says::Deny);
        let expected = match (denies, first(Side::Project), first(Side::User)) {
            (Some(rule), _, _) => (Says::Deny, rule.name.to_string()),
            (None, None, None) => default,
            (None, None, Some(users)) => users,
            (None, Some(projects), users) => match users.unwrap_or(default) {
                stricter if stricter.0 > projects.0 => stricter,
                _ => projects,
            },
        };
        let rules = in_order(&case.rules);
        let rules = rules.otherwise(case.default, "default").floor(case.default, "default");
        let found = rules.judge(call);
        match (found.says(), found.rule().to_string()) {
            found if found == expected => Ok(()),
            found => Err(format!("found {found:?}, expected {expected:?}")),
        }
    });
}

/// How much a verdict permits beyond what another does.
fn permits_more(one: &Verdict, than: &Verdict) -> bool {
    let flags = |verdict: &Verdict| match verdict {
        Verdict::Allow { despite_label, names_tool, .. } => [*despite_label, *names_tool],
        Verdict::Ask { .. } | Verdict::Deny { .. } => [false, false],
    };
    let both_allow = one.says() == Says::Allow && than.says() == Says::Allow;
    let [mine, others] = [flags(one), flags(than)];
    one.says() < than.says() || both_allow && (0..2).any(|at| mine[at] && !others[at])
}

#[test]
fn a_rule_that_denies_never_permits_more_wherever_it_stands() {
    always(|case, call| {
        let before = in_order(&case.rules).otherwise(case.default, "default").judge(call);
        let mut deny = case.more.clone();
        deny.says = Says::Deny;
        for at in 0..=case.rules.len() {
            let mut rules = case.rules.clone();
            rules.insert(at, deny.clone());
            let after = in_order(&rules).otherwise(case.default, "default").judge(call);
            if permits_more(&after, &before) {
                return Err(format!("{before:?} became {after:?} by {deny} at {at}"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_projects_rules_never_permit_more_than_its_user_does() {
    always(|case, call| {
        let with = |rules: Rules| {
            rules.otherwise(case.default, "default").floor(case.default, "default").judge(call)
        };
        let users = with(in_order(case.rules.iter().filter(|rule| rule.side == Side::User)));
        let both = with(in_order(&case.rules));
        match permits_more(&both, &users) {
            false => Ok(()),
            true => Err(format!("{users:?} became {both:?}")),
        }
    });
}

#[test]
fn a_strict_run_never_permits_more() {
    always(|case, call| {
        let verdict = in_order(&case.rules).otherwise(case.default, "default").judge(call);
        let strictly = verdict.clone().strictly(call);
        match permits_more(&strictly, &verdict) {
            false => Ok(()),
            true => Err(format!("{verdict:?} became {strictly:?}")),
        }
    });
}
