//! Runs and calls on the user's tape: listed, shown, followed, erased.

use std::fs;
use std::io::{BufRead as _, BufReader};

use expect_test::expect;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::own_tools::own_home;
use crate::resuming::ledger_home;

/// A script that asks, calls and answers.
pub(crate) const SCRIPT: &str = r#"
{"ask": "What is the hash of nothing?"}
{"say": "Let me see.", "calls": [{"tool": "hash", "args": {"text": ""}}, {"tool": "ekho"}]}
{"say": "It is af1349b9."}
"#;

/// A home where that script was played.
pub(crate) fn played() -> Home {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    assert_eq!(home.run(&["run", "s.jsonl", "-q"]).code, 0);
    home
}

/// The id of the newest run.
pub(crate) fn newest(home: &Home) -> String {
    let runs: Value = serde_json::from_str(&home.run_raw(&["runs", "--json"])).unwrap();
    runs[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_on_the_users_tape_wherever_it_was_started() {
    let home = played();
    let tape = home.here().join("../data/tooltape/runs.db");
    assert!(tape.is_file());
    let ran = home.run(&["run", "s.jsonl", "--json"]);
    assert_eq!(ran.json()["tape"], "HOME/data/tooltape/runs.db");
    let runs = home.run(&["runs", "--json"]).json();
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for key in ["id", "status", "started", "tools", "calls", "errors"] {
        assert!(!runs[0][key].is_null(), "{key}");
    }
    assert_eq!((&runs[0]["status"], &runs[0]["calls"]), (&json!("ended"), &json!(2)));
    assert_eq!((&runs[0]["errors"], &runs[0]["in_doubt"]), (&json!(1), &json!(0)));
    assert_eq!(runs[0]["note"]["workspace"], "HOME/here");
    assert!(runs[0]["note"]["script"].as_str().unwrap().ends_with("s.jsonl"));
}

#[test]
fn a_call_is_a_run_of_its_own_and_ends() {
    let home = Home::new();
    assert_eq!(home.run(&["call", "hash", "text=a"]).code, 0);
    assert_eq!(home.run(&["call", "hash"]).code, 8);
    assert_eq!(home.run(&["call", "hash", "text=a", "--dry-run"]).code, 0);
    assert_eq!(home.run(&["call", "hash", "text=a", "--no-tape"]).code, 0);
    let runs = home.run(&["runs", "--json"]).json();
    let statuses: Vec<&str> =
        runs.as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["failed", "ended"]);
}

#[test]
fn another_tape_is_named_by_a_flag_or_a_variable() {
    let home = Home::new();
    assert_eq!(home.run(&["call", "hash", "text=a", "--tape", "mine.db"]).code, 0);
    assert!(home.here().join("mine.db").is_file());
    assert_eq!(home.run(&["runs", "--json"]).stdout, "[]\n");
    let home = home.with("TOOLTAPE_TAPE", "mine.db");
    assert_eq!(home.run(&["runs", "--json"]).json().as_array().unwrap().len(), 1);
    assert_eq!(home.run(&["runs", "--json", "--tape", "other.db"]).code, 5);
}

#[test]
fn runs_are_filtered() {
    let home = played();
    assert_eq!(home.run(&["call", "echo", "text=a"]).code, 0);
    let count = |args: &[&str]| {
        let ran = home.run(&[&["runs", "ls", "--json"], args].concat());
        ran.json().as_array().unwrap().len()
    };
    assert_eq!(count(&[]), 2);
    assert_eq!(count(&["--tool", "echo"]), 1);
    assert_eq!(count(&["--tool", "hash", "--status", "ended"]), 1);
    assert_eq!(count(&["--status", "crashed"]), 0);
    assert_eq!(count(&["--since", "1h"]), 2);
    assert_eq!(count(&["--since", "2999-01-01"]), 0);
    assert_eq!(count(&["--since", "2026-01-01T00:00:00Z"]), 2);
    assert_eq!(count(&["--limit", "1"]), 1);
    assert_eq!(home.run(&["runs", "--since", "tomorrow"]).code, 2);
    assert_eq!(home.run(&["runs", "--status", "odd"]).code, 2);
}

/// Puts what is the same each time for sizes and moments.
fn still(ran: &Ran) -> String {
    let moment = |line: &str| match line.split_once("started   ") {
        Some((before, _)) => format!("{before}started   THEN\n"),
        None => line.to_owned(),
    };
    ran.transcript().split_inclusive('\n').map(moment).collect()
}

#[test]
fn a_run_is_shown_as_a_compact_list() {
    let home = played();
    expect![[r#"
        exit 0
        --- stdout
        run       RUN ended
        started   THEN
        has       2 turns, 2 calls, 1 refused or failed, 11 records
        config    HOME/here
        workspace HOME/here
        asked What is the hash of nothing?
        turn 1 Let me see.
          ✓ #1 hash {"text": ""} · allow by default · TIME · af1349b9f5f9a1a6a0404dea36d↩
        cc9499bcb25c9adc112b7cc9a93cae41f3262
          ✗ #2 ekho · not executed: unknown tool `ekho`: did you mean `echo`?
        ended by answer It is af1349b9.
    "#]]
    .assert_eq(&still(&home.run(&["show", "last"])));
}

#[test]
fn a_run_has_a_log_a_timeline_and_every_event() {
    let home = played();
    let log = home.run(&["show", "last", "--log"]);
    assert_eq!((log.code, log.stdout.lines().count()), (0, 11), "{}", log.stdout);
    assert!(log.stdout.contains("call.settled"), "{}", log.stdout);
    let drawn = home.run(&["show", "last", "--timeline"]);
    let bars = drawn.stdout.lines().filter(|line| line.contains("#1") || line.contains("#2"));
    assert_eq!(bars.filter(|line| line.contains(['█', '░'])).count(), 2, "{}", drawn.stdout);
    let full = home.run(&["show", "last", "--full"]);
    assert_eq!(full.stdout.matches("\"seq\": ").count(), 11, "{}", full.stdout);
    let document = home.run(&["show", "last", "--json"]).json();
    assert_eq!((&document["status"], &document["calls"]), (&json!("ended"), &json!(2)));
    assert_eq!(document["events"].as_array().unwrap().len(), 11);
    assert_eq!(home.run(&["show", "last", "--log", "--full"]).code, 2);
}

#[test]
fn a_run_is_meant_by_the_beginning_of_its_id() {
    let home = played();
    let id = newest(&home);
    assert_eq!(home.run(&["show", &id]).code, 0);
    assert_eq!(home.run(&["show", &id[..30], "-q"]).code, 0);
    let unknown = home.run(&["show", "ffff", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (5, &json!("run.unknown")));
    assert_eq!(home.run(&["run", "s.jsonl", "-q"]).code, 0);
    let ambiguous = home.run(&["show", &id[..4], "--json"]);
    assert_eq!((ambiguous.code, &ambiguous.error()["code"]), (5, &json!("run.ambiguous")));
    let nobody = Home::new().run(&["show", "last", "--json"]);
    assert_eq!((nobody.code, &nobody.error()["code"]), (5, &json!("run.unknown")));
}

#[test]
fn a_live_run_is_followed_from_elsewhere_until_it_ends() {
    let home = own_home();
    let script =
        "{\"calls\": [{\"tool\": \"rest\", \"args\": {\"ms\": 300}}]}\n{\"say\": \"up\"}\n";
    home.write("s.jsonl", script);
    let mut run = home.command(&["run", "s.jsonl", "--jsonl"]).spawn().unwrap();
    let mut events = BufReader::new(run.stdout.take().unwrap()).lines();
    let first = events.next().unwrap().unwrap();
    // What is printed is on the tape already, for everybody.
    let tail = home.command(&["tail", "-f", "last", "--jsonl"]).output().unwrap();
    let tailed = String::from_utf8(tail.stdout).unwrap();
    let printed: Vec<String> = [first].into_iter().chain(events.map(Result::unwrap)).collect();
    assert_eq!(tailed.lines().collect::<Vec<_>>(), printed);
    assert_eq!((tail.status.code(), run.wait().unwrap().code()), (Some(0), Some(0)));
    let lines = home.run(&["tail"]);
    assert_eq!(lines.code, 0);
    assert!(lines.stdout.contains("✓ #1 rest"), "{}", lines.stdout);
}

#[test]
fn an_erased_run_leaves_a_tombstone_with_its_head() {
    let home = played();
    assert_eq!(home.run(&["call", "hash", "text=a"]).code, 0);
    let runs = home.run_raw(&["runs", "--json"]);
    let runs: Value = serde_json::from_str(&runs).unwrap();
    let (call, run) = (runs[0]["id"].as_str().unwrap(), runs[1]["id"].as_str().unwrap());
    let unasked = home.run(&["runs", "rm", run, "--json"]);
    assert_eq!((unasked.code, &unasked.error()["code"]), (7, &json!("approval.needed")));
    let erased = home.run(&["runs", "rm", run, "--yes", "--json"]).json();
    assert_eq!((&erased[0]["len"], &erased[0]["head"]), (&runs[1]["len"], &runs[1]["head"]));
    let listed = home.run(&["runs", "--json"]).json();
    assert_eq!(listed[1]["status"], "erased");
    assert_eq!(listed[1]["head"], runs[1]["head"]);
    let verified = home.run(&["verify", "--json"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    assert_eq!(verified.json()["tombstones"].as_array().unwrap().len(), 1);
    assert_eq!(home.run(&["runs", "rm", call, "--payloads", "--yes"]).code, 0);
    let verified = home.run(&["verify", call, "--json"]);
    assert_eq!((verified.code, &verified.json()["erased"]), (0, &runs[0]["len"]));
    let shown = home.run(&["show", call, "--json"]);
    assert_eq!((shown.code, &shown.error()["code"]), (5, &json!("run.erased")));
    assert!(!shown.json()["started"].as_str().unwrap().starts_with("1970"), "{}", shown.stdout);
    // What is left of it can be carried elsewhere, and is verified there.
    assert_eq!(home.run(&["export", call, "-o", "left.tape.jsonl"]).code, 0);
    let left = home.run(&["verify", "left.tape.jsonl", "--json"]);
    assert_eq!((left.code, &left.json()["erased"]), (0, &runs[0]["len"]));
    let imported = home.run(&["import", "left.tape.jsonl", "--tape", "new.db", "--json"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let there = home.run(&["verify", "new.db", "--json"]);
    assert_eq!((there.code, &there.json()["erased"]), (0, &runs[0]["len"]));
    assert_eq!(home.run(&["export", run, "-o", "none.tape.jsonl"]).code, 5);
    assert_eq!(home.run(&["export", run, "--head", "head.json"]).code, 0);
}

#[test]
fn nothing_of_a_run_leaves_the_folder_of_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = played();
    let folder = fs::metadata(home.here().join("../data/tooltape")).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}

#[test]
fn runs_that_calls_start_are_below_them_and_go_where_they_go() {
    let home = ledger_home();
    assert_eq!(home.run(&["call", "book_both", "entry=1", "--yes"]).code, 0);
    assert_eq!(home.run(&["runs", "--json"]).json().as_array().unwrap().len(), 1);
    let nested: Value =
        serde_json::from_str(&home.run_raw(&["runs", "--nested", "--json"])).unwrap();
    let child = nested.as_array().unwrap().iter().find(|run| !run["parent"].is_null()).unwrap();
    let run = child["parent"].as_str().unwrap().to_owned();
    let shown = home.run(&["show", &run]).stdout;
    let lines: Vec<&str> = shown.lines().map(str::trim_start).collect();
    let at = lines.iter().position(|line| line.starts_with("✓ #1 book_both")).unwrap();
    assert!(lines[at + 1].starts_with("└ run RUN"), "{shown}");
    assert!(lines[at + 2].starts_with("✓ #1 book {\"entry\": 1, \"ms\": 0}"), "{shown}");
    assert!(home.run(&["show", &run, "--timeline"]).stdout.contains("#2 book"));
    assert_eq!(home.run(&["export", &run, "-o", "both.tape.jsonl"]).code, 0);
    let verified = home.run(&["verify", "both.tape.jsonl", "--json"]).json();
    assert_eq!((&verified["runs"], &verified["calls"]), (&json!(2), &json!(3)));
    assert_eq!(home.run(&["import", "both.tape.jsonl", "--tape", "other.db"]).code, 0);
    let erased = home.run(&["runs", "rm", &run, "--yes", "--json"]).json();
    assert_eq!(erased.as_array().unwrap().len(), 2);
}
