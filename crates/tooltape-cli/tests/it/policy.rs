//! The policy that `tooltape.toml` states.

use serde_json::{Value, json};

use crate::home::Home;

/// What a policy decides about a call, and by which rule.
pub(crate) fn decides(home: &Home, policy: &str, call: &[&str]) -> (String, String) {
    home.write("tooltape.toml", policy);
    let ran = home.run(&[&["call"], call, &["--dry-run", "--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let shown: Value = ran.json();
    let text = |key: &str| shown[key].as_str().unwrap().to_owned();
    (text("verdict"), text("rule"))
}

fn verdict(policy: &str, call: &[&str]) -> String {
    decides(&Home::new(), policy, call).0
}

/// An edit of this file.
fn edit(path: &str) -> [String; 3] {
    ["edit_file".into(), format!("path={path}"), r#"edits=[{"old":"a","new":"b"}]"#.into()]
}

fn edit_verdict(policy: &str, path: &str) -> String {
    let edit = edit(path);
    verdict(policy, &edit.each_ref().map(String::as_str))
}

const HASH: [&str; 2] = ["hash", "text="];
const READ: [&str; 2] = ["read_file", "path=a"];

#[test]
fn without_rules_reads_are_allowed_and_the_rest_asks() {
    for policy in ["", "[policy]\ndefault = \"ask\"\n"] {
        assert_eq!(verdict(policy, &HASH), "allow");
        assert_eq!(verdict(policy, &READ), "allow");
        assert_eq!(edit_verdict(policy, "a"), "ask");
    }
}

#[test]
fn the_default_decides_where_no_rule_does() {
    let policy = |word: &str| format!("[policy]\ndefault = \"{word}\"\n");
    assert_eq!(verdict(&policy("deny"), &HASH), "deny");
    assert_eq!(edit_verdict(&policy("deny"), "a"), "deny");
    assert_eq!(edit_verdict(&policy("allow"), "a"), "allow");
}

#[test]
fn a_rule_matches_by_tool_and_by_access() {
    let policy = r#"
        [policy]
        default = "deny"
        [[policy.rules]]
        access = "read"
        verdict = "allow"
        [[policy.rules]]
        tool = "hash"
        verdict = "ask"
    "#;
    assert_eq!(verdict(policy, &READ), "allow");
    assert_eq!(verdict(policy, &HASH), "ask");
    assert_eq!(verdict(policy, &["echo", "text="]), "deny");
}

#[test]
fn the_first_rule_that_matches_decides_and_a_denial_beats_all() {
    let policy = r#"
        [[policy.rules]]
        verdict = "ask"
        [[policy.rules]]
        verdict = "allow"
        [[policy.rules]]
        tool = "echo"
        verdict = "deny"
    "#;
    assert_eq!(verdict(policy, &HASH), "ask");
    assert_eq!(verdict(policy, &["echo", "text="]), "deny");
}

#[test]
fn a_rule_is_named_by_its_file_and_line() {
    let home = Home::new();
    let policy =
        "[policy]\ndefault = \"deny\"\n\n[[policy.rules]]\ntool = \"hash\"\nverdict = \"allow\"\n";
    assert_eq!(decides(&home, policy, &HASH), ("allow".into(), "tooltape.toml:4".into()));
    assert_eq!(decides(&home, policy, &READ), ("deny".into(), "tooltape.toml:2".into()));
    let policy = r#"policy.rules = [
        { tool = "echo", verdict = "ask" },
        { verdict = "deny" },
    ]"#;
    assert_eq!(decides(&home, policy, &HASH), ("deny".into(), "tooltape.toml:3".into()));
    home.write(home.user_config(), "[[policy.rules]]\nverdict = \"ask\"\n");
    assert_eq!(decides(&home, "", &HASH), ("ask".into(), "user config.toml:1".into()));
}

#[test]
fn a_glob_matches_paths_below_it() {
    let policy = "[[policy.rules]]\nwhere = { path = \"src/**\" }\nverdict = \"allow\"\n";
    assert_eq!(edit_verdict(policy, "src/a"), "allow");
    assert_eq!(edit_verdict(policy, "src/b/c.rs"), "allow");
    assert_eq!(edit_verdict(policy, "srcs/a"), "ask");
    // `echo` takes any text, so it shows how paths are read that no workspace takes.
    let policy = "[[policy.rules]]\nwhere = { text = \"src/**\" }\nverdict = \"deny\"\n";
    for path in ["src/a", "./src/a", "src//a", "src/./a"] {
        assert_eq!(verdict(policy, &["echo", &format!("text={path}")]), "deny", "{path}");
    }
    let policy = "[[policy.rules]]\nwhere = { path = \"src/*\" }\nverdict = \"allow\"\n";
    assert_eq!(edit_verdict(policy, "src/a"), "allow");
    assert_eq!(edit_verdict(policy, "src/b/c"), "ask");
}

#[test]
fn a_detour_never_matches_a_rule_that_allows_and_always_one_that_does_not() {
    let rule = |verdict: &str, glob: &str| {
        format!(
            "[policy]\ndefault = \"allow\"\n[[policy.rules]]\nwhere = {{ text = \"{glob}\" }}\n\
             verdict = \"{verdict}\"\n"
        )
    };
    for path in ["/etc/passwd", "src/../a", "..", r"src\..\a"] {
        let call = ["echo", &format!("text={path}")];
        let (allowed, rule_name) = decides(&Home::new(), &rule("allow", "**"), &call);
        assert_eq!((allowed.as_str(), rule_name.as_str()), ("allow", "tooltape.toml:2"), "{path}");
        assert_eq!(verdict(&rule("deny", "secrets/**"), &call), "deny", "{path}");
        assert_eq!(verdict(&rule("ask", "secrets/**"), &call), "ask", "{path}");
    }
    assert_eq!(verdict(&rule("deny", "secrets/**"), &["echo", "text=src/a..b"]), "allow");
}

#[test]
fn an_argument_that_is_not_there_matches_no_glob() {
    let policy = "[[policy.rules]]\nwhere = { glob = \"**\" }\nverdict = \"deny\"\n";
    assert_eq!(verdict(policy, &["grep", "pattern=x"]), "allow");
    assert_eq!(verdict(policy, &["grep", "pattern=x", "glob=src"]), "deny");
    // But what a call needs, it needs without a word.
    let policy = "[[policy.rules]]\nwhere = { path = \"**\" }\nverdict = \"deny\"\n";
    assert_eq!(verdict(policy, &["list_dir"]), "deny");
    assert_eq!(verdict(policy, &["list_dir", "path=src"]), "deny");
}

#[test]
fn a_rule_about_a_path_holds_for_every_name_of_it_and_for_whoever_looks_from_above() {
    let rule = |test: &str| {
        let rule = format!("where = {{ path = {test} }}\nverdict = \"deny\"\n");
        format!("[policy]\ndefault = \"allow\"\n[[policy.rules]]\n{rule}")
    };
    let (glob, one_of) = (rule("\"secrets/**\""), rule("{ one_of = [\"secrets/key.txt\"] }"));
    for policy in [&glob, &one_of] {
        for args in [
            &["read_file", "path=secrets/key.txt"][..],
            &["read_file", "path=./secrets/key.txt"],
            &["move_file", "from=secrets/key.txt", "to=k.txt"],
            &["move_file", "from=secrets/key?.txt", "to=k.txt"],
            &["move_file", "from=a.txt", "to=secrets/new*.txt"],
            &["grep", "pattern=x"],
            &["list_dir"],
        ] {
            assert_eq!(verdict(policy, args), "deny", "{policy}{args:?}");
        }
        assert_eq!(verdict(policy, &["read_file", "path=src/a.rs"]), "allow");
        assert_eq!(verdict(policy, &["grep", "pattern=x", "path=src"]), "allow");
    }
    for args in [
        &["list_dir", "path=secrets"][..],
        &["grep", "pattern=x", "path=secrets"],
        &["glob", "pattern=*", "path=secrets"],
    ] {
        assert_eq!(verdict(&glob, args), "deny", "{args:?}");
    }
}

#[test]
fn a_list_is_allowed_if_all_of_it_is_and_denied_if_any_of_it_is_in_doubt() {
    let rule = |verdict: &str| {
        format!("[[policy.rules]]\nwhere = {{ edits = \"**\" }}\nverdict = \"{verdict}\"\n")
    };
    // The edits are objects, which no glob can match.
    assert_eq!(edit_verdict(&rule("allow"), "a"), "ask");
    assert_eq!(edit_verdict(&rule("deny"), "a"), "deny");
}

#[test]
fn a_project_cannot_allow_what_its_user_denies() {
    let home = Home::new();
    home.write(home.user_config(), "[[policy.rules]]\ntool = \"hash\"\nverdict = \"deny\"\n");
    let policy = "[policy]\ndefault = \"allow\"\n[[policy.rules]]\nverdict = \"allow\"\n";
    assert_eq!(decides(&home, policy, &HASH), ("deny".into(), "user config.toml:1".into()));

    // Of two defaults the stricter holds, against the project's rules, too.
    let denies = ("deny".into(), "user config.toml:2".into());
    home.write(home.user_config(), "[policy]\ndefault = \"deny\"\n");
    assert_eq!(decides(&home, "[policy]\ndefault = \"allow\"\n", &HASH), denies);
    assert_eq!(decides(&home, policy, &HASH), denies);
    let explained = home.run(&["config", "explain", "policy.default", "--json"]).json();
    assert_eq!(explained[0]["value"], "deny");
    assert_eq!(explained[0]["also"][0]["value"], "allow");
    home.write(home.user_config(), "[policy]\ndefault = \"allow\"\n");
    let stricter = "[policy]\ndefault = \"deny\"\n";
    assert_eq!(decides(&home, stricter, &HASH), ("deny".into(), "tooltape.toml:2".into()));

    // A question that the user wants asked is asked.
    home.write(home.user_config(), "[[policy.rules]]\ntool = \"hash\"\nverdict = \"ask\"\n");
    assert_eq!(decides(&home, policy, &HASH), ("ask".into(), "user config.toml:1".into()));
    assert_eq!(decides(&home, policy, &READ), ("allow".into(), "tooltape.toml:3".into()));

    // There are only tools that both name.
    home.write(home.user_config(), "[tools]\nallow = [\"echo\", \"hash\"]\n");
    home.write("tooltape.toml", "[tools]\nallow = [\"hash\", \"edit_file\"]\n");
    let names = |args: &[&str]| {
        let tools = home.run(&[&["tools", "list", "--json"], args].concat()).json();
        let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone());
        Value::from(names.collect::<Vec<_>>())
    };
    assert_eq!(names(&[]), json!(["hash"]));
    assert_eq!(names(&["--set", "tools.allow=edit_file"]), json!(["edit_file"]));
}

#[test]
fn a_users_rule_is_checked_against_the_tools_that_this_program_has() {
    let home = Home::new();
    let code = |rule: &str| {
        home.write(home.user_config(), &format!("[[policy.rules]]\nverdict = \"deny\"\n{rule}\n"));
        home.run(&["call", "hash", "text="]).code
    };
    assert_eq!(code("tool = \"edit_file\"\nwhere = { pth = \"**\" }"), 2);
    assert_eq!(code("tool = \"another_programs\"\nwhere = { url = \"**\" }"), 0);
    assert_eq!(code("where = { url = \"**\" }"), 0);
}

#[test]
fn as_many_rules_as_there_may_be_are_read() {
    let home = Home::new();
    let rule = "[[policy.rules]]\ntool = \"echo\"\nverdict = \"deny\"\n";
    let last = "[[policy.rules]]\ntool = \"hash\"\nverdict = \"deny\"\n";
    let policy = format!("{}{last}", rule.repeat(999));
    assert_eq!(decides(&home, &policy, &HASH), ("deny".into(), "tooltape.toml:2998".into()));
}

#[test]
fn who_types_may_allow_what_their_configuration_does_not() {
    let home = Home::new();
    home.write(home.user_config(), "[policy]\ndefault = \"deny\"\n");
    let policy = "[policy]\ndefault = \"ask\"\n";
    let typed = [HASH[0], HASH[1], "--set", "policy.default=allow"];
    assert_eq!(decides(&home, policy, &typed).0, "allow");
    let home = home.with("TOOLTAPE_POLICY_DEFAULT", "allow");
    assert_eq!(decides(&home, policy, &HASH).0, "allow");
}

#[test]
fn a_denied_model_reads_the_rules_message() {
    let home = Home::new();
    home.write(
        "tooltape.toml",
        "[[policy.rules]]\ntool = \"hash\"\nverdict = \"deny\"\nmessage = \"not today\"\n",
    );
    let reply = home.run(&["call", "hash", "text=", "--json"]).json();
    assert_eq!(
        reply["content"],
        json!([{ "type": "text", "text": "not executed: denied: not today" }])
    );
    assert_eq!(reply["fault"]["rule"], "tooltape.toml:1");
}

#[test]
fn explain_names_the_rule_that_decides_and_all_that_match() {
    let home = Home::new();
    let policy = r#"
[[policy.rules]]
tool = "edit_file"
verdict = "ask"
[[policy.rules]]
tool = "edit_file"
where = { path = "src/**" }
verdict = "deny"
message = "not here"
"#;
    home.write("tooltape.toml", policy);
    let edit = edit("src/a.rs");
    let call: Vec<&str> = edit.iter().map(String::as_str).collect();
    let explained = home.run(&[&["policy", "explain"], &call[..], &["--json"]].concat());
    assert_eq!(explained.code, 0, "{}", explained.transcript());
    let shown = explained.json();
    assert_eq!((&shown["verdict"], &shown["rule"]), (&json!("deny"), &json!("tooltape.toml:5")));
    assert_eq!(
        shown["said"],
        json!([
            { "rule": "tooltape.toml:2", "verdict": "ask", "decides": false,
              "states": "ask `edit_file`" },
            { "rule": "tooltape.toml:5", "verdict": "deny", "decides": true,
              "states": "deny `edit_file`: path like `src/**`" },
            { "rule": "default", "verdict": "ask", "decides": false, "states": null },
        ])
    );
    let text = home.run(&[&["policy", "explain"], &call[..]].concat());
    assert!(text.stdout.contains("→ deny  tooltape.toml:5"), "{}", text.stdout);
    let bad = home.run(&["policy", "explain", "edit_file", "path=a", "--json"]);
    assert_eq!(bad.code, 8, "what is no call is judged by nobody: {}", bad.transcript());
}

#[test]
fn check_tries_the_examples_of_each_rule() {
    let rule = |examples: &str| {
        format!(
            "[[policy.rules]]\ntool = \"edit_file\"\nwhere = {{ path = \"src/**\" }}\n\
             verdict = \"allow\"\nexamples = [{examples}]\n"
        )
    };
    let check = |examples: &str| {
        let home = Home::new();
        home.write("tooltape.toml", &rule(examples));
        home.run(&["policy", "check", "--json"])
    };
    let good = r#"{ args = { path = "src/a.rs" } },
        { args = { path = "../src/a" }, matches = false },
        { tool = "read_file", args = { path = "src/a.rs" }, matches = false }"#;
    let sound = check(good);
    assert_eq!((sound.code, &sound.json()["rules"]), (0, &json!(1)), "{}", sound.transcript());
    for bad in [
        r#"{ args = { path = "tests/a.rs" } }"#,
        r#"{ args = { path = "src/a.rs" }, matches = false }"#,
        r#"{ args = {} }"#,
        r#"{ tool = "nobody" }"#,
        r#"{ arguments = {} }"#,
    ] {
        let refused = check(bad);
        let (code, at) = (refused.code, refused.error()["message"].as_str().unwrap().to_owned());
        assert_eq!(code, 2, "{bad}");
        assert!(at.contains("tooltape.toml"), "{at}");
    }
}

#[test]
fn check_names_rules_that_never_decide() {
    let home = Home::new();
    let policy = r#"
[[policy.rules]]
tool = "edit_file"
where = { path = "src/**" }
verdict = "ask"
[[policy.rules]]
tool = "edit_file"
where = { path = "src/**" }
verdict = "allow"
[[policy.rules]]
access = "write"
verdict = "deny"
[[policy.rules]]
tool = "hash"
verdict = "allow"
"#;
    home.write("tooltape.toml", policy);
    let checked = home.run(&["policy", "check", "--json"]);
    assert_eq!(checked.code, 0);
    let unreachable = json!([{ "rule": "tooltape.toml:6", "by": "tooltape.toml:2" }]);
    assert_eq!(checked.json()["unreachable"], unreachable);
    let versions = [policy, &policy.replace("\"hash\"", "\"echo\"")].map(|policy| {
        home.write("tooltape.toml", policy);
        home.run(&["policy", "check", "--json"]).json()["version"].clone()
    });
    assert_ne!(versions[0], versions[1], "another policy has another version");
}

#[test]
fn no_rule_gives_what_the_run_may_not_do() {
    let allow = "[[policy.rules]]\ntool = \"edit_file\"\nverdict = \"allow\"\n";
    let rights = |rights: &str| format!("[policy]\nrights = [{rights}]\n{allow}");
    let ran = |policy: &str, user: &str, path: &str| {
        let home = Home::new();
        home.write("src/a.txt", "a\n").write("b.txt", "a\n").write("tooltape.toml", policy);
        home.write(home.user_config(), user);
        let edit = edit(path);
        let call: Vec<&str> = edit.iter().map(String::as_str).collect();
        home.run(&[&["call"], &call[..], &["--json"]].concat()).code
    };
    assert_eq!(ran(allow, "", "src/a.txt"), 0, "the workspace is the right to use it");
    let src = rights(r#""fs:read:.", "fs:write:src""#);
    assert_eq!((ran(&src, "", "src/a.txt"), ran(&src, "", "b.txt")), (0, 6));
    assert_eq!(ran(&src, "", "./src/a.txt"), 0, "another spelling of the same path");
    assert_eq!(ran(&rights(r#""fs:write:src""#), "", "src/a.txt"), 6, "a diff is read, too");
    assert_eq!(ran(&rights(""), "", "src/a.txt"), 6, "an empty list is nothing");
    let but = rights(r#""fs:read:.", "fs:write:.", "!fs:write:src""#);
    assert_eq!(ran(&but, "", "src/a.txt"), 6);
    let all = rights(r#""fs:read:.", "fs:write:.""#);
    let users = "[policy]\nrights = [\"fs:read:.\", \"fs:write:src\"]\n";
    assert_eq!(ran(&all, users, "b.txt"), 6, "a project only narrows");
    assert_eq!(ran(&all, users, "src/a.txt"), 0);
    assert_eq!(ran(&rights(r#""fs:write:*""#), "", "src/a.txt"), 2, "what is no right is refused");
    let home = Home::new();
    home.write("tooltape.toml", &rights(r#""fs:read:.", "fs:fly:x""#));
    assert_eq!(home.run(&["policy", "check"]).code, 2);
    home.write("tooltape.toml", "[policy]\nrights = [\"fs:read:.\", \"!fs:read:keys\"]\n");
    home.write("keys/a", "k").write("@types/a", "t");
    for (call, code) in [
        (&["call", "list_dir"][..], 6),
        (&["call", "list_dir", "path=."], 6),
        (&["call", "list_dir", "path=./keys"], 6),
        (&["call", "read_file", "path=@types/a"], 0),
    ] {
        assert_eq!(home.run(call).code, code, "{call:?}");
    }
}

#[test]
fn a_users_default_is_a_floor_under_what_a_project_allows() {
    let project = "[[policy.rules]]\ntool = \"edit_file\"\nverdict = \"allow\"\n";
    let with = |user: &str| {
        let home = Home::new();
        home.write(home.user_config(), user);
        let edit = edit("a");
        decides(&home, project, &edit.each_ref().map(String::as_str)).0
    };
    assert_eq!(with(""), "allow", "where the user says nothing, the project decides");
    assert_eq!(with("[policy]\ndefault = \"allow\"\n"), "allow");
    assert_eq!(with("[policy]\ndefault = \"ask\"\n"), "ask");
    assert_eq!(with("[policy]\ndefault = \"deny\"\n"), "deny");
}

#[test]
fn explain_shows_who_gives_and_who_withholds_each_right() {
    let home = Home::new();
    home.write(home.user_config(), "[policy]\nrights = [\"fs:read:.\", \"fs:write:.\"]\n");
    home.write("tooltape.toml", "[policy]\nrights = [\"fs:read:.\", \"fs:write:src\"]\n");
    let edit = edit("b.txt");
    let call: Vec<&str> = edit.iter().map(String::as_str).collect();
    let explained = home.run(&[&["policy", "explain"], &call[..], &["--json"]].concat());
    assert_eq!(explained.code, 0, "{}", explained.transcript());
    let shown = explained.json();
    assert_eq!((&shown["verdict"], &shown["rule"]), (&json!("deny"), &json!("rights")));
    let said: Vec<_> = shown["rights"].as_array().unwrap().iter().collect();
    let of = |at: usize| (said[at]["right"].as_str().unwrap(), &said[at]["covered"]);
    assert_eq!(said.len(), 4, "two rights, and two who have a say: {said:?}");
    assert_eq!((of(0), of(1)), (("fs:read:b.txt", &json!(true)), ("fs:read:b.txt", &json!(true))));
    assert_eq!((of(2).1, of(3).1), (&json!(true), &json!(false)));
    assert_eq!(said[3]["source"], "tooltape.toml:2");
    let text = home.run(&[&["policy", "explain"], &call[..]].concat());
    assert!(text.stdout.contains("→ needs fs:write:b.txt, tooltape.toml:2"), "{}", text.stdout);
}
