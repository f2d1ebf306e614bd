//! Typed rules: what they match, what they say, and what they could never match.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tooltape::rule::{
    Argument, Effect, Literal, Mark, Number, Otherwise, Part, Said, Says, Side, Test, Walls,
};
use tooltape::testing::Spy;
use tooltape::{
    Access, Call, Canon, Effects, Enforced, Label, Policy as _, Proposal, Reach, Rule, Rules, Run,
    Toolbox, Verdict,
};

/// What a tool declares.
fn tool(name: &str, effects: Effects, needs: &[&str]) -> Toolbox {
    let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
    let spy = Spy::new(name, effects.access)
        .declaring(|spec| needs.into_iter().fold(spec.effects(effects), |spec, it| spec.needs(it)));
    Toolbox::new([spy.tool()]).unwrap()
}

fn local(access: Access) -> Effects {
    Effects { access, ..Effects::read() }
}

/// What rules make of a call, as a policy sees it.
pub(crate) async fn seen<T: Send + 'static>(
    toolbox: &Toolbox,
    label: Label,
    args: &Value,
    look: impl Fn(&Call) -> T + Send + Sync + 'static,
) -> T {
    let found = Arc::new(Mutex::new(None));
    let policy = {
        let found = found.clone();
        move |call: &Call| {
            *found.lock().unwrap() = Some(look(call));
            Verdict::deny("seen", "it was only looked at")
        }
    };
    let rights = "fs:read:.\nfs:write:.\nnet:any:api.example.com\nnet:any:*.example.com\n\
                  net:any:evil.com\nspend:usd:10";
    let run = Run::new(toolbox).rights(rights.parse().unwrap()).policy(policy).labelled(label);
    let name = toolbox.names().next().unwrap();
    let replies = run.batch(vec![Proposal::new("c1", name, args.to_string())]).await.unwrap();
    let found = found.lock().unwrap().take();
    found.unwrap_or_else(|| panic!("it was not judged: {}", replies[0].text()))
}

async fn matches(rule: Rule, toolbox: &Toolbox, args: Value) -> bool {
    seen(toolbox, Label::default(), &args, move |call| rule.matches(call)).await
}

fn at(name: &str) -> Argument {
    name.parse().unwrap()
}

fn number(text: &str) -> Number {
    text.parse().unwrap()
}

/// Whether a rule that allows matches, and one that denies.
async fn both(rule: impl Fn(Rule) -> Rule, toolbox: &Toolbox, args: Value) -> (bool, bool) {
    let (allow, deny) = (rule(Rule::allow("a")), rule(Rule::deny("d", "no")));
    (matches(allow, toolbox, args.clone()).await, matches(deny, toolbox, args).await)
}

#[tokio::test]
async fn a_number_is_compared_exactly_and_anything_else_is_in_doubt() {
    let toolbox = tool("pay", local(Access::Write), &[]);
    let most = |text: &'static str| {
        move |rule: Rule| rule.where_argument(at("amount"), Test::AtMost(number(text)))
    };
    let args = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    for (bound, found, expected) in [
        ("100", r#"{"amount":100}"#, (true, true)),
        ("100", r#"{"amount":1e2}"#, (true, true)),
        ("100", r#"{"amount":100.000001}"#, (false, false)),
        ("9007199254740992", r#"{"amount":9007199254740992}"#, (true, true)),
        ("0.3", r#"{"amount":0.3}"#, (true, true)),
        ("0.3", r#"{"amount":0.30000000000000004}"#, (false, false)),
        ("-1", r#"{"amount":-1.5}"#, (true, true)),
        ("-1", r#"{"amount":0}"#, (false, false)),
        ("100", r#"{"amount":"100"}"#, (false, true)),
        ("100", r#"{"amount":null}"#, (false, true)),
        ("100", r#"{"amount":[1,200]}"#, (false, true)),
        ("100", r#"{"amount":[]}"#, (false, false)),
        ("100", r#"{"other":1}"#, (false, false)),
    ] {
        let found = args(found);
        assert_eq!(both(most(bound), &toolbox, found.clone()).await, expected, "{bound} {found}");
    }
    // Where doubles would see no difference.
    let text = r#"{"amount":9007199254740993}"#;
    assert_eq!(both(most("9007199254740992"), &toolbox, args(text)).await, (false, false));
}

#[tokio::test]
async fn texts_and_values_are_found_by_name_and_by_pointer() {
    let toolbox = tool("send", local(Access::Write), &[]);
    let args = || {
        json!({ "to": "a@b", "mode": "fast", "on": true, "n": 3, "a/b": "x",
                         "parts": [{ "name": "one" }, { "name": "three" }] })
    };
    let is = |value: Literal| Test::OneOf(vec![value]);
    let text = |text: &str| Literal::Text(text.into());
    for (name, test, expected) in [
        ("mode", is(text("fast")), (true, true)),
        ("mode", is(text("Fast")), (false, false)),
        ("on", is(Literal::Bool(true)), (true, true)),
        ("n", is(Literal::Number(number("3.0"))), (true, true)),
        ("n", is(text("3")), (false, true)),
        ("mode", Test::OneOf(vec![text("slow"), text("fast")]), (true, true)),
        ("to", Test::LongerThan(2), (true, true)),
        ("to", Test::LongerThan(3), (false, false)),
        ("to", Test::ShorterThan(4), (true, true)),
        ("n", Test::ShorterThan(4), (false, true)),
        ("/a~1b", is(text("x")), (true, true)),
        ("/parts/0/name", is(text("one")), (true, true)),
        ("/parts/1/name", is(text("one")), (false, false)),
        ("/parts/2/name", is(text("one")), (false, false)),
        // Of several, all must be allowed, and one is enough to be held.
        ("/parts/*/name", is(text("one")), (false, true)),
        ("/parts/*/name", Test::LongerThan(2), (true, true)),
        ("/parts/*/size", Test::LongerThan(2), (false, false)),
        // What is of another kind is in doubt, and what is no field is not there.
        ("/mode/deeper", is(text("fast")), (false, true)),
        ("/none/deeper", is(text("fast")), (false, false)),
    ] {
        let found =
            both(|rule| rule.where_argument(at(name), test.clone()), &toolbox, args()).await;
        assert_eq!(found, expected, "{name} {test}");
    }
}

#[tokio::test]
async fn a_host_is_read_only_where_nobody_could_read_another() {
    let toolbox = tool("fetch", local(Access::Read), &[]);
    let hosts = || vec!["api.example.com".parse().unwrap(), "*.docs.example.com".parse().unwrap()];
    for (url, expected) in [
        ("https://api.example.com/a?b#c", (true, true)),
        ("HTTPS://API.example.com:8443", (true, true)),
        ("api.example.com", (true, true)),
        ("api.example.com:443", (true, true)),
        ("wss://a.docs.example.com/x", (true, true)),
        ("https://docs.example.com", (false, false)),
        ("https://evil.com/api.example.com", (false, false)),
        ("https://evil.com?https://api.example.com", (false, false)),
        ("https://api.example.com.evil.com", (false, false)),
        ("https://api.example.com@evil.com", (false, true)),
        ("https://evil.com\\@api.example.com", (false, true)),
        ("https://api.example.com.", (false, true)),
        ("https:api.example.com", (false, true)),
        ("https:///api.example.com", (false, true)),
        ("file://api.example.com/etc", (false, true)),
        ("https://api.example.com:99999", (false, true)),
        ("https://api\t.example.com", (false, true)),
        ("https://аpi.example.com", (false, true)),
        ("https://0x7f.1/", (false, true)),
        ("", (false, true)),
    ] {
        let named = |rule: Rule| rule.where_argument(at("url"), Test::Host(hosts()));
        assert_eq!(both(named, &toolbox, json!({ "url": url })).await, expected, "{url}");
    }
}

#[tokio::test]
async fn the_hosts_of_a_call_are_those_of_the_rights_that_it_needs() {
    let far = |access| Effects { reach: Reach::Network, ..local(access) };
    let asks = |hosts: &'static str| move |rule: Rule| rule.host(hosts.parse().unwrap());
    let none = json!({});
    let one = tool("one", far(Access::Read), &["net:get:api.example.com"]);
    assert_eq!(both(asks("api.example.com"), &one, none.clone()).await, (true, true));
    assert_eq!(both(asks("*.example.com"), &one, none.clone()).await, (true, true));
    assert_eq!(both(asks("evil.com"), &one, none.clone()).await, (false, false));
    // Of those below a name one may be meant.
    let many = tool("many", far(Access::Read), &["net:get:*.example.com"]);
    assert_eq!(both(asks("api.example.com"), &many, none.clone()).await, (false, true));
    let two = tool("two", far(Access::Read), &["net:get:api.example.com", "net:get:evil.com"]);
    assert_eq!(both(asks("api.example.com"), &two, none.clone()).await, (false, true));
    let filled = tool("filled", far(Access::Read), &["net:get:{host}"]);
    let host = |host: &str| json!({ "host": host });
    assert_eq!(both(asks("api.example.com"), &filled, host("api.example.com")).await, (true, true));
    assert_eq!(both(asks("api.example.com"), &filled, host("evil.com")).await, (false, false));
    // Nobody knows whom it asks; and one that asks nobody.
    let vague = tool("vague", far(Access::Read), &[]);
    assert_eq!(both(asks("api.example.com"), &vague, none.clone()).await, (false, true));
    let near = tool("near", local(Access::Read), &[]);
    assert_eq!(both(asks("api.example.com"), &near, none).await, (false, false));
}

#[tokio::test]
async fn a_rule_matches_by_all_effects_and_by_what_enforces_them() {
    let spends = Effects { spend: true, confirm: true, ..local(Access::Write) };
    let mut toolbox = tool("pay", spends, &["spend:usd:1"]);
    let about = |effects: &'static [Effect]| {
        move |rule: Rule| effects.iter().fold(rule, |rule, effect| rule.effect(*effect))
    };
    let wanted = about(&[Effect::Spend, Effect::Write, Effect::Confirm]);
    assert_eq!(both(wanted, &toolbox, json!({})).await, (true, true));
    let more = about(&[Effect::Spend, Effect::Network]);
    assert_eq!(both(more, &toolbox, json!({})).await, (false, false));
    let walls = |walls: Walls| move |rule: Rule| rule.walls(walls);
    let sandbox = Enforced::Sandbox;
    assert_eq!(both(walls(Walls::AtLeast(sandbox)), &toolbox, json!({})).await, (false, false));
    assert_eq!(both(walls(Walls::Below(sandbox)), &toolbox, json!({})).await, (true, true));
    toolbox.enforced("pay", Enforced::Wasm).unwrap();
    assert_eq!(both(walls(Walls::AtLeast(sandbox)), &toolbox, json!({})).await, (true, true));
    assert_eq!(both(walls(Walls::Below(sandbox)), &toolbox, json!({})).await, (false, false));
}

#[tokio::test]
async fn only_a_rule_of_the_user_that_names_the_label_allows_despite_it() {
    let spends = Effects { reach: Reach::Network, ..local(Access::Write) };
    let toolbox = tool("post", spends, &["net:post:api.example.com"]);
    let page = Label::untrusted("web");
    let judge = |rule: Rule, label: Label| {
        let rules = Rules::deny_all().rule(rule);
        let toolbox = toolbox.clone();
        async move { seen(&toolbox, label, &json!({}), move |call| rules.judge(call)).await }
    };
    let rule = || Rule::allow("despite").tool("post").mark(Mark::Untrusted);
    let despite = |verdict: Verdict| match verdict {
        Verdict::Allow { despite_label, .. } => Some(despite_label),
        Verdict::Ask { .. } | Verdict::Deny { .. } => None,
    };
    assert_eq!(despite(judge(rule(), page.clone()).await), Some(true));
    assert_eq!(despite(judge(rule().side(Side::Project), page.clone()).await), Some(false));
    assert_eq!(despite(judge(Rule::allow("all"), page.clone()).await), Some(false));
    assert_eq!(despite(judge(rule(), Label::default()).await), None, "it is about no such call");
    // What is not for everybody is another matter, which must be named, too.
    let both = page.clone().join(&Label::secret("payroll"));
    assert_eq!(despite(judge(rule(), both.clone()).await), Some(false));
    assert_eq!(despite(judge(rule().mark(Mark::Secret), both).await), Some(true));
    let internal = Rule::deny("internal", "no").mark(Mark::Internal);
    for (label, expected) in
        [(Label::internal(), None), (Label::secret("a"), None), (page, Some(false))]
    {
        let rules = Rules::deny_all().rule(internal.clone()).rule(Rule::allow("all"));
        let verdict = seen(&toolbox, label, &json!({}), move |call| rules.judge(call)).await;
        assert_eq!(despite(verdict), expected);
    }
}

#[tokio::test]
async fn everything_that_matches_is_explained_and_one_of_it_decides() {
    let toolbox = tool("put", local(Access::Write), &[]);
    let glob = Test::Glob("src/**".parse().unwrap());
    let rules = Rules::deny_all()
        .otherwise(Otherwise::Ask, "default")
        .floor(Otherwise::Deny, "floor")
        .rule(Rule::allow("one").side(Side::Project).where_argument(at("path"), glob))
        .rule(Rule::ask("two").tool("put"))
        .rule(Rule::deny("three", "no").tool("another"));
    let args = json!({ "path": "src/a" });
    let said = seen(&toolbox, Label::default(), &args, move |call| rules.explain(call));
    let word = |rule: &str, says, decides, states: Option<&str>| {
        let (rule, states) = (rule.to_owned(), states.map(str::to_owned));
        Said { rule, says, decides, states }
    };
    let expected = [
        word("one", Says::Allow, false, Some("allow any tool: path like `src/**`")),
        word("two", Says::Ask, true, Some("ask `put`")),
        word("default", Says::Ask, false, None),
        word("floor", Says::Deny, false, None),
    ];
    assert_eq!(said.await, expected);
}

#[test]
fn a_rule_that_could_never_match_says_where_and_why() {
    let allow = || Rule::allow("a");
    let on = |test: Test| (at("a"), test);
    let with = |tests: Vec<(Argument, Test)>| {
        tests
            .into_iter()
            .fold(allow(), |rule, (argument, test)| rule.where_argument(argument, test))
    };
    let of_a = Some(Part::Argument(at("a")));
    let text = |text: &str| Literal::Text(text.into());
    for (rule, expected) in [
        (allow().access(Access::Read).effect(Effect::Write), Some(Part::Effects)),
        (allow().effect(Effect::Read).effect(Effect::Pure), Some(Part::Effects)),
        (allow().effect(Effect::Read).effect(Effect::Spend), None),
        (allow().walls(Walls::Below(Enforced::Declaration)), Some(Part::Walls)),
        (allow().mark(Mark::Trusted).mark(Mark::Untrusted), Some(Part::Marks)),
        (with(vec![on(Test::Glob("/etc/**".parse().unwrap()))]), of_a.clone()),
        (with(vec![on(Test::Glob("src/../a".parse().unwrap()))]), of_a.clone()),
        (with(vec![on(Test::Glob("{/etc,src}/**".parse().unwrap()))]), None),
        (with(vec![on(Test::OneOf(vec![]))]), of_a.clone()),
        (with(vec![on(Test::ShorterThan(0))]), of_a.clone()),
        (with(vec![on(Test::AtLeast(2.into())), on(Test::AtMost(1.into()))]), of_a.clone()),
        (with(vec![on(Test::AtLeast(2.into())), on(Test::AtMost(2.into()))]), None),
        (with(vec![on(Test::LongerThan(2)), on(Test::ShorterThan(3))]), of_a.clone()),
        (with(vec![on(Test::LongerThan(2)), on(Test::ShorterThan(4))]), None),
        (with(vec![on(Test::AtLeast(2.into())), on(Test::LongerThan(2))]), of_a.clone()),
        (with(vec![on(Test::OneOf(vec![text("a")])), on(Test::LongerThan(1))]), of_a.clone()),
        (with(vec![on(Test::OneOf(vec![text("a"), text("ab")])), on(Test::LongerThan(1))]), None),
        (with(vec![on(Test::AtLeast(2.into())), (at("b"), Test::AtMost(1.into()))]), None),
    ] {
        let flaw = rule.flaw();
        assert_eq!(flaw.as_ref().map(|flaw| flaw.part.clone()), expected, "{rule}: {flaw:?}");
        assert!(flaw.is_none_or(|flaw| !flaw.why.is_empty()));
    }
    let read = tool("get", local(Access::Read), &[]);
    let get = read.get("get").unwrap();
    for (rule, expected) in [
        (allow().access(Access::Write), Some(Part::Access)),
        (allow().effect(Effect::Spend), Some(Part::Effects)),
        (allow().host("example.com".parse().unwrap()), Some(Part::Hosts)),
        (allow().walls(Walls::AtLeast(Enforced::Wasm)), Some(Part::Walls)),
        (allow().access(Access::Read).effect(Effect::Read), None),
    ] {
        assert_eq!(rule.flaw_for(get).map(|flaw| flaw.part), expected, "{rule}");
    }
    let vague = tool("far", Effects { reach: Reach::Network, ..Effects::read() }, &[]);
    let far = vague.get("far").unwrap();
    let asks = |rule: Rule| rule.host("example.com".parse().unwrap());
    assert_eq!(asks(allow()).flaw_for(far).map(|flaw| flaw.part), Some(Part::Hosts));
    assert_eq!(asks(Rule::ask("a")).flaw_for(far), None, "in doubt it asks");
}

#[test]
fn rules_that_never_decide_are_found_with_the_one_that_does() {
    let amount = |rule: Rule, most: i64| rule.where_argument(at("n"), Test::AtMost(most.into()));
    let rules = Rules::deny_all()
        .rule(amount(Rule::ask("1"), 100))
        .rule(amount(Rule::ask("2"), 10).tool("put"))
        .rule(amount(Rule::ask("3"), 101))
        .rule(Rule::allow("4").effect(Effect::Spend).effect(Effect::Write))
        .rule(Rule::deny("5", "no").effect(Effect::Spend))
        .rule(amount(Rule::ask("6"), 10).side(Side::Project));
    let shadowed = rules.shadowed();
    let shadowed = shadowed.iter().map(|[by, rule]| format!("{} by {}", rule.name, by.name));
    let shadowed: Vec<_> = shadowed.collect();
    assert_eq!(shadowed, ["2 by 1", "4 by 5"]);
}

#[test]
fn what_is_no_glob_number_or_argument_is_refused_with_the_reason() {
    for bad in ["", "a[", "a{b", "a}b", "{a,}", "[b-a]", "a\\", "[a/b]", &"a".repeat(2_000)] {
        assert!(bad.parse::<tooltape::rule::Glob>().is_err(), "{bad}");
    }
    let many = "{a,b}".repeat(7);
    assert!(many.parse::<tooltape::rule::Glob>().unwrap_err().to_string().contains("64"));
    for bad in ["", "NaN", "1,5", "0x1", "true", "1 2", "1e999"] {
        assert!(bad.parse::<Number>().is_err(), "{bad}");
    }
    for bad in ["", "/a~", "/a~2", &"/a".repeat(17)] {
        assert!(bad.parse::<Argument>().is_err(), "{bad}");
    }
}

#[test]
fn the_version_of_rules_is_another_where_any_of_it_is() {
    let rule = || Rule::allow("a").tool("put");
    let rules = [
        Rules::deny_all(),
        Rules::allow_reads(),
        Rules::allow_reads().ask_before_writes(),
        Rules::deny_all().rule(rule()),
        Rules::deny_all().rule(Rule::allow("b").tool("put")),
        Rules::deny_all().rule(rule().side(Side::Project)),
        Rules::deny_all().rule(rule().mark(Mark::Untrusted)),
        Rules::deny_all().rule(rule().host("example.com".parse().unwrap())),
        Rules::deny_all().rule(rule().walls(Walls::AtLeast(Enforced::Wasm))),
        Rules::deny_all().rule(rule().where_argument(at("a"), Test::AtMost(1.into()))),
        Rules::deny_all().rule(rule().where_argument(at("a"), Test::AtLeast(1.into()))),
        Rules::deny_all().otherwise(Otherwise::Ask, "default"),
        Rules::deny_all().floor(Otherwise::Ask, "default"),
    ];
    let versions: std::collections::HashSet<_> =
        rules.iter().map(|rules| rules.version().to_string()).collect();
    assert_eq!(versions.len(), rules.len());
    let args = Canon::of(&json!({})).unwrap();
    let toolbox = tool("put", local(Access::Write), &[]);
    assert!(rule().would_match(toolbox.get("put").unwrap(), &args, &Label::default()));
}

#[tokio::test]
async fn a_rule_that_holds_a_path_holds_every_file_that_a_call_needs() {
    let needs = ["fs:write:{from}", "fs:write:{to}", "fs:read:{paths}"];
    let toolbox = tool("moves", local(Access::Write), &needs);
    let glob = || Test::Glob("secret/**".parse().unwrap());
    let rule = |says| Rule::new("r", says).where_argument(at("path"), glob());
    for (args, holds) in [
        (json!({ "from": "a", "to": "b", "paths": ["c"] }), false),
        (json!({ "from": "secret/a", "to": "b", "paths": ["c"] }), true),
        (json!({ "from": "a", "to": "./secret//b", "paths": ["c"] }), true),
        (json!({ "from": "a", "to": "b", "paths": ["c", "secret/d"] }), true),
        (json!({ "from": "a", "to": "b", "paths": ["c", "secrets/d"] }), false),
    ] {
        for (says, expected) in [(Says::Deny, holds), (Says::Ask, holds), (Says::Allow, false)] {
            let found = matches(rule(says), &toolbox, args.clone()).await;
            assert_eq!(found, expected, "{says:?} {args}");
        }
    }
    // A rule about another argument is about that alone.
    let other = Rule::deny("r", "no").where_argument(at("file"), glob());
    let args = json!({ "from": "secret/a", "to": "b", "paths": [] });
    assert!(!matches(other, &toolbox, args).await);
}
