//! `tooltape replay`, `fork`, `diff` and `record-test`.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, root};
use crate::own_tools::own_home;
use crate::taped::played;

/// A home where a file was edited, with the run's id.
fn edited() -> Home {
    let home = Home::new();
    home.write("a.txt", "one\n");
    home.write("tooltape.toml", "[policy]\ndefault = \"allow\"\n");
    let edit = json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "two" }] });
    let calls = json!({ "calls": [
        { "tool": "hash", "args": { "text": "a" } }, { "tool": "edit_file", "args": edit },
    ] });
    home.write("s.jsonl", &format!("{calls}\n{}\n", json!({ "say": "done" })));
    assert_eq!(home.run(&["run", "s.jsonl", "-q"]).code, 0);
    assert_eq!(home.read("a.txt"), "two\n");
    home
}

#[test]
fn a_run_is_played_again_without_effects() {
    let home = edited();
    home.write("a.txt", "one\n");
    let replayed = home.run(&["replay", "last", "--json"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    let report = replayed.json();
    assert_eq!((&report["executed"], &report["served"]), (&json!(1), &json!(1)));
    assert_eq!(home.read("a.txt"), "one\n");
    fs::remove_file(home.here().join("a.txt")).unwrap();
    let replayed = home.run(&["replay", "last"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    assert!(replayed.stdout.contains("the same as recorded"), "{}", replayed.stdout);
}

#[test]
fn what_is_different_today_is_named_in_two_columns() {
    let home = edited();
    home.write("tooltape.toml", "[policy]\ndefault = \"allow\"\n[tools]\ndisable = [\"hash\"]\n");
    let diverged = home.run(&["replay", "last"]);
    assert_eq!(diverged.code, 9, "{}", diverged.transcript());
    assert!(diverged.stdout.contains("recorded"), "{}", diverged.stdout);
    assert!(diverged.stdout.contains("| now"), "{}", diverged.stdout);
    assert!(diverged.stdout.contains("no tool `hash` any more"), "{}", diverged.stdout);
    assert!(diverged.stderr.contains("error[replay.diverged]"), "{}", diverged.stderr);
    let diverged = home.run(&["replay", "last", "--json"]);
    let first = diverged.json()["divergences"][0].clone();
    assert_eq!((diverged.code, &first["call"]), (9, &json!(1)));
    assert!(first["pointer"].is_string() && first["causes"][0]["kind"] == "tool_missing");
    // Outside of what is looked at, nothing counts.
    assert_eq!(home.run(&["replay", "last", "--to", "2"]).code, 0);
    home.write("tooltape.toml", "[policy]\ndefault = \"deny\"\n");
    let all = home.run(&["replay", "last", "--all", "--json"]);
    assert_eq!(all.code, 9);
    assert!(all.json()["divergences"].as_array().unwrap().len() > 1, "{}", all.stdout);
}

#[test]
fn a_tool_is_executed_for_real_only_when_somebody_says_so_twice() {
    let home = edited();
    home.write("a.txt", "one\n");
    let unasked = home.run(&["replay", "last", "--live", "edit_file", "--json"]);
    assert_eq!((unasked.code, &unasked.error()["code"]), (7, &json!("approval.needed")));
    assert_eq!(home.read("a.txt"), "one\n");
    let live = home.run(&["replay", "last", "--live", "edit_file", "--yes"]);
    assert_eq!(home.read("a.txt"), "two\n", "{}", live.stderr);
    assert!(live.stderr.contains("LIVE: edit_file will be executed for real"), "{}", live.stderr);
    let unknown = home.run(&["replay", "last", "--live", "edti_file", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (5, &json!("tool.unknown")));
}

#[test]
fn a_fork_makes_one_call_anew_with_other_arguments() {
    let home = played();
    let args = ["fork", "last", "--at", "1", "--set", "text=012", "--json"];
    let forked = home.run(&args);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    assert_eq!(forked.json()["status"], "ended");
    let runs: Value = serde_json::from_str(&home.run_raw(&["runs", "--json"])).unwrap();
    let (new, old) = (runs[0]["id"].as_str().unwrap(), runs[1]["id"].as_str().unwrap());
    let shown = home.run_raw(&["show", new, "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["events"][0]["fork"]["run"], old);
    let differ = home.run(&["diff", old, new, "--json"]).json();
    let changed: Vec<_> = differ["calls"][0]["changes"].as_array().unwrap().iter().collect();
    let pointers: Vec<&str> = changed.iter().map(|it| it["pointer"].as_str().unwrap()).collect();
    assert!(pointers.contains(&"/arguments/text"), "{pointers:?}");
    assert!(differ["calls"][1]["changes"].as_array().unwrap().is_empty(), "{differ}");
    assert!(home.run(&["diff", old, old]).stdout.contains("no difference"));
    assert_eq!(home.run(&["verify"]).code, 0);
    let unknown = home.run(&["fork", "last", "--at", "9", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (5, &json!("call.unknown")));
}

#[test]
fn a_fork_of_a_single_call_makes_it_again() {
    let home = Home::new();
    assert_eq!(home.run(&["call", "hash", "text=a"]).code, 0);
    let forked = home.run(&["fork", "last", "--at", "1", "--set", "text=", "--json"]);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    let text = forked.json()[0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("af1349b9"), "{text}");
}

#[test]
fn a_recorded_test_is_written_as_it_stands_here() {
    let folder = root().join("crates/tooltape-cli/tests/it");
    let home = Home::new();
    let tape = folder.join("recorded_talk.tape.jsonl").display().to_string();
    assert_eq!(home.run(&["import", &tape]).code, 0);
    let args = ["record-test", "last", "-o", "tests", "--name", "recorded_talk", "--json"];
    let recorded = home.run(&args);
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    for file in ["recorded_talk.rs", "recorded_talk.tape.jsonl"] {
        let here = fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(home.read(&format!("tests/{file}")), here, "{file}");
    }
}

#[test]
fn a_recorded_test_names_the_tools_that_it_needs() {
    let home = edited();
    assert_eq!(home.run(&["record-test", "last", "-o", "t", "--name", "edits"]).code, 0);
    assert!(home.read("t/edits.rs").contains("tooltape_kit::tools()"));
    assert_eq!(home.run(&["record-test", "last", "-o", "t", "--name", "No Name"]).code, 2);
    let own = own_home();
    assert_eq!(own.run(&["call", "divide", "a=4", "b=2", "--yes"]).code, 0);
    let unknown = own.run(&["record-test", "last", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (2, &json!("test.tools")));
    let args = ["record-test", "last", "-o", "t", "--name", "own", "--tools", "house::tools()"];
    assert_eq!(own.run(&args).code, 0);
    assert!(own.read("t/own.rs").contains("Toolbox::new(house::tools())"));
}
