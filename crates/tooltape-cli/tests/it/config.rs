//! The configuration: its layers, its places, its schema.

use std::fs;

use expect_test::expect;
use serde_json::{Value, json};

use crate::home::{Home, root};

#[test]
fn the_strongest_layer_wins_and_is_named_with_its_place() {
    let home = Home::new();
    home.write(home.user_config(), "[agent]\nask = \"user\"\nturns = 3\n");
    home.write("tooltape.toml", "# the project's\n[agent]\nturns = 4\n");
    home.check(
        &["config", "explain"],
        expect![[r#"
            exit 0
            --- stdout
            workspace = "."  # default
            agent.model = "script"  # default
            agent.script = (not set)  # default
            agent.ask = "user"  # HOME/config/tooltape/config.toml:2:7
            agent.instructions = (not set)  # default
            agent.turns = 4  # tooltape.toml:3:9
              also 3  # HOME/config/tooltape/config.toml:3:9
            agent.tokens = (not set)  # default
            sub_agents = (not set)  # default
            tools.allow = (not set)  # default
            tools.disable = []  # default
            tools.promote = []  # default
            tools.touches = (not set)  # default
            tools.executable = (not set)  # default
            tools.wasm = (not set)  # default
            policy.default = "ask"  # default
            policy.rights = (not set)  # default
            policy.strict = false  # default
            policy.rules = []  # default
            labels.untrusted = (not set)  # default
            labels.internal = (not set)  # default
            labels.tell = (not set)  # default
            http.allow = (not set)  # default
            http.private = (not set)  # default
            secrets = (not set)  # default
        "#]],
    );
    let turns = |home: &Home, args: &[&str]| -> Value {
        let args = [&["config", "explain", "agent.turns", "--json"], args].concat();
        home.run(&args).json()[0].clone()
    };
    let project = turns(&home, &[]);
    assert_eq!(project["value"], 4);
    assert_eq!(project["source"], "tooltape.toml");
    assert_eq!((&project["line"], &project["column"]), (&json!(3), &json!(9)));
    assert_eq!(project["also"][0]["value"], 3);
    let home = home.with("TOOLTAPE_AGENT_TURNS", "5");
    let variable = turns(&home, &[]);
    assert_eq!(
        (&variable["value"], &variable["source"]),
        (&json!(5), &json!("TOOLTAPE_AGENT_TURNS"))
    );
    let flag = turns(&home, &["--set", "agent.turns=6", "--set", "agent.turns=7"]);
    assert_eq!((&flag["value"], &flag["source"]), (&json!(7), &json!("--set agent.turns=7")));
    assert_eq!(flag["also"].as_array().unwrap().len(), 4);
}

#[test]
fn a_key_that_nobody_set_has_its_default() {
    Home::new().check(
        &["config", "explain"],
        expect![[r#"
            exit 0
            --- stdout
            workspace = "."  # default
            agent.model = "script"  # default
            agent.script = (not set)  # default
            agent.ask = (not set)  # default
            agent.instructions = (not set)  # default
            agent.turns = 32  # default
            agent.tokens = (not set)  # default
            sub_agents = (not set)  # default
            tools.allow = (not set)  # default
            tools.disable = []  # default
            tools.promote = []  # default
            tools.touches = (not set)  # default
            tools.executable = (not set)  # default
            tools.wasm = (not set)  # default
            policy.default = "ask"  # default
            policy.rights = (not set)  # default
            policy.strict = false  # default
            policy.rules = []  # default
            labels.untrusted = (not set)  # default
            labels.internal = (not set)  # default
            labels.tell = (not set)  # default
            http.allow = (not set)  # default
            http.private = (not set)  # default
            secrets = (not set)  # default
        "#]],
    );
}

#[test]
fn a_key_that_there_is_not_is_not_found() {
    let ran = Home::new().run(&["config", "explain", "agent.tunrs"]);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("`agent.turns`"), "{}", ran.stderr);
}

#[test]
fn a_mistyped_variable_or_flag_is_refused() {
    let check = |home: Home, args: &[&str]| {
        let ran = home.run(&[&["tools", "list"], args].concat());
        assert_eq!(ran.code, 2, "{}", ran.transcript());
        assert!(ran.stderr.starts_with("error[config.invalid]: "), "{}", ran.stderr);
        assert!(ran.stderr.contains("not executed"), "{}", ran.stderr);
    };
    check(Home::new().with("TOOLTAPE_POLICY_DEFUALT", "deny"), &[]);
    check(Home::new().with("TOOLTAPE_POLICY_DEFAULT", "dney"), &[]);
    check(Home::new().with("TOOLTAPE_AGENT_TURNS", "many"), &[]);
    check(Home::new().with("TOOLTAPE_AGENT_TURNS", "0"), &[]);
    check(Home::new(), &["--set", "policy.defualt=deny"]);
    check(Home::new(), &["--set", "policy.rules=[]"]);
    check(Home::new(), &["--set", "agent.turns=-1"]);
    // What is not ours is none of our business.
    assert_eq!(Home::new().with("TOOLTAPE_DATA", "x").run(&["tools", "list"]).code, 0);
}

#[test]
fn every_kind_of_mistake_in_a_file_is_shown_at_its_place() {
    let home = Home::new();
    let place = |text: &str| {
        home.write("tooltape.toml", text);
        let ran = home.run(&["call", "hash", "text="]);
        assert_eq!(ran.code, 2, "{text}: {}", ran.transcript());
        let line = ran.stderr.lines().next().unwrap().to_owned();
        line.strip_prefix("error[config.invalid]: tooltape.toml:").unwrap().to_owned()
    };
    let rule = |keys: &str| format!("[[policy.rules]]\nverdict = \"deny\"\n{keys}\n");
    let found = [
        place("agent = 1"),
        place("[agent]\nturns = 0"),
        place("[agent]\nturns = \"9\""),
        place("[agent]\nmodel = \"gpt\""),
        place("workspace = 3"),
        place("workspace = { cpoy = \"x\" }"),
        place("workspace = { copy = \"x\", keep = true }"),
        place("[policy]\ndefault = \"maybe\""),
        place("[[policy.rules]]\ntool = \"hash\""),
        place(&rule("access = \"any\"")),
        place(&rule("tool = \"hsah\"")),
        place(&rule("where = { path = \"a[\" }")),
        place(&rule("where = { path = 1 }")),
        place(&rule("tool = \"edit_file\"\nwhere = { pth = \"a\" }")),
        place(&rule("where = { path = \"a\", \"p.th\" = \"a\" }")),
        place(&rule("").repeat(1_001)),
        place("a = 1\na = 2"),
        place("[agent]\nask = \"never closed"),
    ];
    expect![[r#"
        1:9: invalid type: integer `1`, expected a table
        2:9: invalid value: integer `0`, expected a nonzero u32
        2:9: invalid type: string "9", expected a nonzero u32
        2:9: unknown model `gpt`, expected `script`, `script:FILE`, `openai:MODEL`, `responses:MODEL`, `anthropic:MODEL`, `gemini:MODEL`, `mistral:MODEL` or `http://HOST/v1#MODEL`
        1:13: invalid type: integer `3`, expected a folder, or `{ copy = "FOLDER" }`
        1:15: unknown field `cpoy`, expected `copy`
        1:27: unknown field `keep`, expected `copy`
        2:11: unknown variant `maybe`, expected one of `ask`, `allow`, `deny`
        1:1: missing field `verdict`
        3:10: unknown variant `any`, expected one of `pure`, `read`, `write`
        3:8: there is no tool named `hsah`, so this rule would never match
        3:18: found glob `a[`, expected a `]` for each `[`
        3:18: invalid type: integer `1`, expected a glob, or a table such as `{ at_most = 100 }`
        4:11: found `pth`, expected an argument that `edit_file` has
        3:23: found `p.th`, expected an argument that some tool has
        3001:1: found 1001 rules, expected at most 1000
        2:1: duplicate key
        2:20: invalid basic string, expected `"`"#]]
    .assert_eq(&found.join("\n"));
}

#[test]
fn two_project_configurations_are_one_too_many() {
    let home = Home::new();
    home.write(".tooltape/config.toml", "[agent]\nturns = 3\n");
    let explain = ["config", "explain", "agent.turns"];
    assert!(home.run(&explain).stdout.contains(".tooltape/config.toml:2:9"));
    home.write("tooltape.toml", "[agent]\nturns = 4\n");
    home.check(
        &explain,
        expect![[r#"
            exit 2
            --- stderr
            error[config.ambiguous]: `tooltape.toml` and `.tooltape/config.toml` are both th↩
            ere
              help: keep one of them; not executed
        "#]],
    );
}

#[test]
fn paths_are_relative_to_the_file_that_names_them() {
    let home = Home::new();
    home.write("deep/tooltape.toml", "[agent]\nscript = \"s.jsonl\"\n");
    home.write("deep/s.jsonl", "{\"say\": \"found\"}\n");
    assert_eq!(home.run(&["run", "deep", "-q"]).stdout, "found\n");
    assert_eq!(home.run(&["run", "deep/tooltape.toml", "-q"]).stdout, "found\n");
    home.write("hidden/.tooltape/config.toml", "[agent]\nscript = \"s.jsonl\"\n");
    home.write("hidden/s.jsonl", "{\"say\": \"found\"}\n");
    assert_eq!(home.run(&["run", "hidden", "-q"]).stdout, "found\n");
}

#[test]
fn the_committed_schema_is_current_and_names_every_key() {
    let home = Home::new();
    let printed = home.run(&["config", "schema"]).stdout;
    let committed = fs::read_to_string(root().join("config.schema.json")).unwrap();
    assert_eq!(
        printed, committed,
        "write it again: cargo run -- config schema > config.schema.json"
    );
    let schema: Value = serde_json::from_str(&printed).unwrap();
    let mut keys = Vec::new();
    for (table, property) in schema["properties"].as_object().unwrap() {
        let target = property["$ref"].as_str().and_then(|it| schema.pointer(it.strip_prefix('#')?));
        match target.and_then(|target| target["properties"].as_object()) {
            Some(below) => keys.extend(below.keys().map(|key| format!("{table}.{key}"))),
            None => keys.push(table.clone()),
        }
    }
    let explained = home.run(&["config", "explain", "--json"]).json();
    let mut names: Vec<&str> =
        explained.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    keys.sort_unstable();
    assert_eq!(keys, names);
}

/// The blocks of a page that are in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn what_the_documentation_shows_is_accepted() {
    let home = Home::new();
    let scripts = blocks("script-format.md", "jsonl");
    let configurations = blocks("tooltape-toml.md", "toml");
    assert!(scripts.len() >= 2 && configurations.len() >= 2);
    for script in scripts {
        let ran = home.feed(&["run", "-", "--json"], script.as_bytes());
        assert_ne!(ran.code, 2, "{script}: {}", ran.stderr);
    }
    for configuration in configurations {
        // Secrets are named by the user, and not read by whoever only explains; and so is whom
        // tools may ask on this machine.
        let is_users = ["[secrets", "private ="].iter().any(|it| configuration.contains(it));
        let (file, command) = match is_users {
            false => ("tooltape.toml", "call"),
            true => (home.user_config(), "explain"),
        };
        home.write(file, &configuration);
        let args = ["policy", command, "hash", "text="];
        let ran = home.run(if command == "call" { &args[1..] } else { &args });
        assert_eq!(ran.code, 0, "{configuration}: {}", ran.stderr);
    }
}

#[test]
fn the_documentation_names_every_key() {
    let page = fs::read_to_string(root().join("docs/tooltape-toml.md")).unwrap();
    let explained = Home::new().run(&["config", "explain", "--json"]).json();
    for key in explained.as_array().unwrap() {
        let name = key["name"].as_str().unwrap();
        assert!(page.contains(&format!("`{name}`")), "docs/tooltape-toml.md leaves `{name}` out");
    }
}
