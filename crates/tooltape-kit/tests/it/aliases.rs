//! FS-03: a rule about a path is about the file, by whatever way a call comes to it.

use std::fs;

use serde_json::json;
use tooltape::rule::{Argument, Test};
use tooltape::{Rule, Rules, Run, Toolbox};
use tooltape_kit::{Workspace, tools};

use crate::naive;
use crate::world::{CANARY, TOOLS, World, call, code};

/// A run that keeps `secret` from everybody, by a rule about the path.
fn guarded(world: &World) -> Run {
    let path: Argument = "path".parse().unwrap();
    let glob = Test::Glob("secret/**".parse().unwrap());
    let rules = TOOLS.iter().fold(Rules::allow_reads(), |rules, tool| rules.allow(*tool));
    let rules = rules.rule(Rule::deny("secret", "not yours").where_argument(path, glob));
    let toolbox = Toolbox::new(tools()).unwrap();
    Run::new(&toolbox).grant(Workspace::open(world.at("")).unwrap()).policy(rules)
}

#[test]
fn no_alias_leads_around_a_rule_about_a_path() {
    let world = World::new();
    world.file("secret/key", CANARY).file("a.txt", "a\n").link("secret", "alias");
    world.link("secret/key", "alias_file").link("alias", "alias_alias");
    let run = guarded(&world);
    let patch = "--- a/secret/key\n+++ b/secret/key\n@@ -1 +1 @@\n-CANARY\n+OWNED\n";
    let aside = "diff --git a/s b/k\nrename from secret/key\nrename to k\n";
    let through = patch.replace("secret", "alias");
    for (tool, args, expected) in [
        ("read_file", json!({ "path": "secret/key" }), "policy.denied"),
        ("read_file", json!({ "path": "./secret/key" }), "policy.denied"),
        ("read_file", json!({ "path": "alias/key" }), "symlink"),
        ("read_file", json!({ "path": "alias_alias/key" }), "symlink"),
        ("read_file", json!({ "path": "alias_file" }), "symlink"),
        ("list_dir", json!({ "path": "alias" }), "symlink"),
        ("write_file", json!({ "path": "alias/new", "content": "" }), "symlink"),
        ("delete_file", json!({ "path": "alias/key" }), "symlink"),
        ("delete_file", json!({ "path": "alias_file" }), "symlink"),
        // By another argument than `path`, and by none of its own.
        ("move_file", json!({ "from": "secret/key", "to": "k" }), "policy.denied"),
        ("move_file", json!({ "from": "a.txt", "to": "secret/a.txt" }), "policy.denied"),
        ("move_file", json!({ "from": "alias/key", "to": "k" }), "symlink"),
        ("move_file", json!({ "from": "alias_file", "to": "k" }), "symlink"),
        ("apply_patch", json!({ "paths": ["secret/key"], "patch": patch }), "policy.denied"),
        ("apply_patch", json!({ "paths": ["secret/key", "k"], "patch": aside }), "policy.denied"),
        ("apply_patch", json!({ "paths": ["alias/key"], "patch": through }), "symlink"),
        ("apply_patch", json!({ "paths": ["a.txt"], "patch": patch }), "args.refused"),
    ] {
        let reply = call(&run, tool, &args.to_string());
        assert_eq!(code(&reply), expected, "{tool} {args}: {}", reply.text());
        assert!(!reply.text().contains(CANARY.trim()), "{tool} {args}");
    }
    assert_eq!(
        (world.text("secret/key").as_str(), world.names("secret")),
        (CANARY, vec!["key".to_owned()])
    );
    assert_eq!(code(&call(&run, "read_file", r#"{"path":"a.txt"}"#)), "ok");

    // The control compares the text that the model wrote with the rule.
    let guarded = |path: &str| !path.starts_with("secret/");
    assert!(guarded("alias/key"));
    assert_eq!(naive::read_file(&world.at(""), "alias/key").unwrap(), CANARY);
    fs::write(world.at("alias/key"), "OWNED").unwrap();
    assert_ne!(world.text("secret/key"), CANARY);
}
