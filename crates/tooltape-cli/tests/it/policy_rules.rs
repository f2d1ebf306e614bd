//! What rules of `tooltape.toml` may ask of a call, and how those that cannot be right are refused.

use serde_json::json;

use crate::home::Home;
use crate::own_tools::own_home;
use crate::policy::decides;

fn verdict(rule: &str, call: &[&str]) -> String {
    decides(&Home::new(), &format!("[[policy.rules]]\n{rule}\n"), call).0
}

/// How `policy check` refuses a rule: its code, its message, and the excerpt.
fn refused(rule: &str) -> String {
    let home = Home::new();
    home.write("tooltape.toml", &format!("[[policy.rules]]\n{rule}\n"));
    let ran = home.run(&["policy", "check", "--json"]);
    assert_eq!(ran.code, 2, "{rule}\n{}", ran.transcript());
    ran.error()["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_rule_matches_by_what_the_tool_declares() {
    assert_eq!(verdict("effect = \"filesystem\"\nverdict = \"deny\"", &["hash", "text="]), "allow");
    let files = "effect = [\"read\", \"filesystem\"]\nverdict = \"deny\"";
    assert_eq!(verdict(files, &["read_file", "path=a"]), "deny");
    assert_eq!(verdict(files, &["hash", "text="]), "allow");
    let weak = "enforced_below = \"sandbox\"\nverdict = \"ask\"";
    assert_eq!(verdict(weak, &["hash", "text="]), "ask");
    let strong = "enforced_by = \"sandbox\"\nverdict = \"deny\"";
    assert_eq!(verdict(strong, &["hash", "text="]), "allow");
}

#[test]
fn a_rule_matches_by_values_numbers_texts_and_hosts_of_arguments() {
    let rule = |condition: &str| format!("where = {condition}\nverdict = \"deny\"");
    let read = |lines: &str| ["read_file".to_owned(), "path=a".into(), format!("lines={lines}")];
    let of_read = |condition: &str, lines: &str| {
        let read = read(lines);
        verdict(&rule(condition), &read.each_ref().map(String::as_str))
    };
    assert_eq!(of_read("{ lines = { at_least = 100 } }", "100"), "deny");
    assert_eq!(of_read("{ lines = { at_least = 100.5 } }", "100"), "allow");
    assert_eq!(of_read("{ lines = { at_least = 10, at_most = 20 } }", "21"), "allow");
    assert_eq!(of_read("{ lines = { one_of = [1, 2.0] } }", "2"), "deny");
    let of_echo =
        |condition: &str, text: &str| verdict(&rule(condition), &["echo", &format!("text={text}")]);
    assert_eq!(of_echo("{ text = { equals = \"hi\" } }", "hi"), "deny");
    assert_eq!(of_echo("{ text = { equals = \"hi\" } }", "hi "), "allow");
    assert_eq!(of_echo("{ text = { longer_than = 2 } }", "äöü"), "deny");
    assert_eq!(of_echo("{ text = { shorter_than = 4 } }", "äöü"), "deny");
    assert_eq!(of_echo("{ text = { host = \"*.evil.com\" } }", "https://a.evil.com/"), "deny");
    assert_eq!(of_echo("{ text = { host = [\"evil.com\"] } }", "https://good.com/"), "allow");
    assert_eq!(of_echo("{ text = { glob = \"src/**\", longer_than = 5 } }", "src/a.rs"), "deny");
    let edit = ["edit_file", "path=a", r#"edits=[{"old":"a","new":"b"},{"old":"c","new":"rm"}]"#];
    assert_eq!(verdict(&rule("{ \"/edits/*/new\" = { equals = \"rm\" } }"), &edit), "deny");
    assert_eq!(verdict(&rule("{ \"/edits/0/new\" = { equals = \"rm\" } }"), &edit), "ask");
}

#[test]
fn what_is_malformed_is_refused_with_its_file_line_and_reason() {
    for (rule, at, why) in [
        ("verdict = \"deny\"\nhots = \"a.com\"", "3:1", "unknown field `hots`"),
        ("verdict = \"perhaps\"", "2:11", "unknown variant `perhaps`"),
        ("verdict = \"deny\"\nhost = \"*\"", "3:8", "the host has `*`"),
        ("verdict = \"deny\"\nhost = []", "3:8", "empty list"),
        ("verdict = \"deny\"\nhost = [\"a.com\", \"b c\"]", "3:8", "host"),
        ("verdict = \"deny\"\neffect = \"fly\"", "3:10", "unknown variant `fly`"),
        ("verdict = \"deny\"\neffect = []", "3:10", "empty list"),
        ("verdict = \"deny\"\nlabel = \"mine\"", "3:9", "unknown variant `mine`"),
        ("verdict = \"deny\"\nenforced_by = \"me\"", "3:15", "unknown variant `me`"),
        ("verdict = \"deny\"\nwhere = { path = \"a[\" }", "3:18", "`]`"),
        ("verdict = \"deny\"\nwhere = { path = {} }", "3:11", "empty table"),
        ("verdict = \"deny\"\nwhere = { path = { like = \"a\" } }", "3:20", "unknown field `like`"),
        ("verdict = \"deny\"\nwhere = { path = 3 }", "3:18", "expected a glob"),
        ("verdict = \"deny\"\nwhere = { pth = { longer_than = 3 } }", "3:11", "found `pth`"),
        ("verdict = \"deny\"\nwhere = { \"/path/~2\" = \"a\" }", "3:11", "`~0`"),
        ("verdict = \"deny\"\nwhere = { lines = { at_least = \"3\" } }", "3:32", "a number"),
        ("verdict = \"deny\"\nwhere = { lines = { at_least = nan } }", "3:32", "found `NaN`"),
        ("verdict = \"deny\"\nwhere = { lines = { at_least = 1e300 } }", "3:32", "2^53"),
        ("verdict = \"deny\"\nwhere = { path = { longer_than = -1 } }", "3:34", "-1"),
    ] {
        let message = refused(rule);
        assert!(message.starts_with(&format!("tooltape.toml:{at}: ")), "{rule}\n{message}");
        assert!(message.contains(why), "{rule}\n{message}");
    }
}

#[test]
fn a_rule_that_could_never_match_is_refused_where_that_is_seen() {
    for (rule, at, why) in [
        ("tool = \"hash\"\nverdict = \"deny\"\naccess = \"write\"", "4:10", "access `pure`"),
        ("tool = \"hash\"\nverdict = \"deny\"\neffect = \"spend\"", "4:10", "not declare `spend`"),
        ("tool = \"hash\"\nverdict = \"deny\"\nhost = \"a.com\"", "4:8", "asks no host"),
        ("tool = \"hash\"\nverdict = \"deny\"\nenforced_by = \"wasm\"", "4:15", "by `host`"),
        ("verdict = \"deny\"\nenforced_below = \"declaration\"", "3:18", "weaker"),
        ("verdict = \"deny\"\nlabel = [\"trusted\", \"untrusted\"]", "3:9", "both"),
        ("verdict = \"deny\"\naccess = \"read\"\neffect = \"write\"", "4:10", "never match"),
        ("verdict = \"allow\"\nwhere = { path = \"/etc/**\" }", "3:18", "no plain relative path"),
        ("verdict = \"deny\"\nwhere = { lines = { at_least = 2, at_most = 1 } }", "3:", "both"),
        ("verdict = \"deny\"\nwhere = { path = { one_of = [] } }", "3:", "nothing is"),
        (
            "verdict = \"deny\"\nwhere = { path = { longer_than = 2, shorter_than = 3 } }",
            "3:",
            "nothing is both",
        ),
    ] {
        let message = refused(rule);
        assert!(message.starts_with(&format!("tooltape.toml:{at}")), "{rule}\n{message}");
        assert!(message.contains(why), "{rule}\n{message}");
    }
}

#[test]
fn examples_try_every_part_of_a_rule() {
    let rule = |examples: &str| {
        format!(
            "tool = \"read_file\"\nlabel = \"untrusted\"\neffect = \"read\"\n\
             where = {{ lines = {{ at_most = 10 }} }}\nverdict = \"deny\"\nexamples = [{examples}]"
        )
    };
    let home = Home::new();
    let good = r#"{ args = { lines = 10 }, label = "untrusted" },
        { args = { lines = 10 }, matches = false },
        { args = { lines = 11 }, label = ["untrusted", "secret"], matches = false },
        { args = { lines = "x" }, label = "untrusted" }"#;
    home.write("tooltape.toml", &format!("[[policy.rules]]\n{}\n", rule(good)));
    let ran = home.run(&["policy", "check"]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    for bad in [
        r#"{ args = { lines = 10 } }"#,
        r#"{ args = { lines = 11 }, label = "untrusted" }"#,
        r#"{ args = { lines = 10 }, label = "untrusted", matches = false }"#,
    ] {
        let message = refused(&rule(bad));
        assert!(message.starts_with("tooltape.toml:7:13: the rule "), "{message}");
    }
}

#[test]
fn explain_shows_what_each_rule_asks() {
    let home = Home::new();
    let policy = r#"
[[policy.rules]]
effect = "filesystem"
where = { path = { glob = "src/**", shorter_than = 40 } }
verdict = "ask"
"#;
    home.write("tooltape.toml", policy);
    let shown = home.run(&["policy", "explain", "read_file", "path=src/a", "--json"]).json();
    let states = "ask any tool: filesystem, path like `src/**`, path shorter than 40 characters";
    assert_eq!(
        shown["said"],
        json!([
            { "rule": "tooltape.toml:2", "verdict": "ask", "decides": true, "states": states },
            { "rule": "default", "verdict": "allow", "decides": false, "states": null },
        ])
    );
    let text = home.run(&["policy", "explain", "read_file", "path=src/a"]);
    let line = format!("→ ask   tooltape.toml:2  {states}");
    assert!(text.stdout.contains(&line), "{}", text.stdout);
}

#[test]
fn a_project_can_be_strict_and_cannot_undo_it() {
    let home = Home::new();
    let strict = |home: &Home| {
        let explained = home.run(&["config", "explain", "policy.strict", "--json"]);
        assert_eq!(explained.code, 0, "{}", explained.transcript());
        explained.json()[0]["value"].clone()
    };
    assert_eq!(strict(&home), json!(false));
    home.write("tooltape.toml", "[policy]\nstrict = true\n");
    assert_eq!(strict(&home), json!(true));
    home.write(home.user_config(), "[policy]\nstrict = false\n");
    assert_eq!(strict(&home), json!(true), "a project may narrow");
    home.write("tooltape.toml", "[policy]\nstrict = false\n");
    home.write(home.user_config(), "[policy]\nstrict = true\n");
    assert_eq!(strict(&home), json!(true), "and cannot widen");
    let typed = ["config", "explain", "policy.strict", "--json", "--set", "policy.strict=false"];
    assert_eq!(home.run(&typed).json()[0]["value"], json!(false), "who types may");
    assert_eq!(home.run(&["config", "explain", "--set", "policy.strict=maybe"]).code, 2);
    // The tools in the box declare what they do, so nothing changes for them.
    let hash = decides(&home, "[policy]\nstrict = true\n", &["hash", "text="]);
    assert_eq!(hash, ("allow".into(), "default".into()));
    assert_eq!(decides(&home, "[policy]\nstrict = true\n", &["read_file", "path=a"]).0, "allow");
}

#[test]
fn a_strict_policy_asks_where_only_a_project_vouches_for_a_tool() {
    let home = own_home();
    let rule = "[[policy.rules]]\ntool = \"lend\"\nverdict = \"allow\"\n";
    let strict = "[policy]\nstrict = true\n";
    let lend = ["lend", "title=Emma"];
    let strictly = format!("{strict}{rule}");
    home.write("tooltape.toml", rule);
    assert_eq!(home.run(&["trust"]).code, 0);
    assert_eq!(decides(&home, rule, &lend), ("allow".into(), "tooltape.toml:1".into()));
    let asks = ("ask".into(), "strict: the tool wants a confirmation".into());
    home.write("tooltape.toml", &strictly);
    assert_eq!(home.run(&["trust"]).code, 0);
    assert_eq!(decides(&home, &strictly, &lend), asks);
    let explained = home.run(&["policy", "explain", "lend", "title=Emma", "--json"]).json();
    let said = explained["said"].as_array().unwrap();
    let decided: Vec<_> = said.iter().filter(|said| said["decides"] == true).collect();
    assert_eq!(
        decided,
        [&json!({
            "rule": "strict: the tool wants a confirmation",
            "verdict": "ask",
            "decides": true,
            "states": null,
        })]
    );
    assert_eq!(home.run(&["call", "lend", "title=Emma"]).code, 7, "nobody can be asked");
    home.write(home.user_config(), rule);
    assert_eq!(decides(&home, strict, &lend), ("allow".into(), "user config.toml:1".into()));
    assert_eq!(home.run(&["call", "lend", "title=Emma"]).code, 0);
}
