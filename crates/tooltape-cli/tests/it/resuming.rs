//! `tooltape resume`, through the built program that was killed before.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;

use serde_json::{Value, json};

use crate::home::{Home, root};
use crate::own_tools::program;
use crate::taped::played;

/// Kills a command once this many events were printed that have this type.
pub(crate) fn kill_after(home: &Home, args: &[&str], kind: &str, count: usize) -> Vec<Value> {
    let mut child: Child = home.command(args).spawn().unwrap();
    let mut events = Vec::new();
    let mut seen = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        seen += usize::from(event["type"] == kind);
        events.push(event);
        if seen == count {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen, count, "{events:?}");
    events
}

/// Runs the example, kills it, and resumes it from another folder.
fn repaired_after(kind: &str, count: usize) -> (Home, Value) {
    let home = Home::new();
    let example = root().join("examples/repair").display().to_string();
    kill_after(&home, &["run", &example, "--pace", "20ms", "--jsonl"], kind, count);
    let crashed = home.run(&["runs", "--json"]).json();
    assert_eq!(crashed[0]["status"], "crashed");
    fs::create_dir(home.here().join("elsewhere")).unwrap();
    let mut command = home.command(&["resume", "--json"]);
    let resumed = home.ran(command.current_dir(home.here().join("elsewhere")).output().unwrap());
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let summary = resumed.json();
    assert_eq!((&summary["status"], &summary["turns"]), (&json!("ended"), &json!(10)));
    assert_eq!(summary["calls"], 10);
    let shown = home.run(&["show", "last", "--json"]).json();
    let attempts = |event: &&Value| event["type"] == "call.started" && event["call"] == 8;
    let events = shown["events"].as_array().unwrap();
    assert_eq!(events.iter().filter(attempts).count(), 1, "the edit was attempted once");
    assert_eq!(home.run(&["verify", "last"]).code, 0);
    (home, summary)
}

#[test]
fn the_repair_example_is_finished_after_a_kill_and_nothing_is_done_twice() {
    for (kind, count) in [("model.turn", 2), ("call.started", 3), ("call.settled", 8)] {
        let (home, summary) = repaired_after(kind, count);
        assert_eq!(summary["errors"], 2, "{kind}");
        let copies = home.copies();
        let [copy] = copies.as_slice() else { panic!("there is one copy: {copies:?}") };
        let mended = fs::read_to_string(copy.join("src/pages.py")).unwrap();
        assert_eq!(mended.matches("(items + per_page - 1) // per_page").count(), 1, "{mended}");
        let replayed = home.run(&["replay", "last", "--json"]);
        assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    }
}

#[test]
fn an_edit_that_was_killed_is_told_as_unknown_and_not_made_again() {
    let (_home, summary) = repaired_after("call.started", 6);
    assert_eq!((&summary["in_doubt"], &summary["errors"]), (&json!([8]), &json!(3)));
}

pub(crate) fn ledger_home() -> Home {
    let home = Home::of(program("ledger"));
    home.write("tooltape.toml", "").write(home.user_config(), "[policy]\ndefault = \"allow\"\n");
    let ledger = home.here().join("ledger").display().to_string();
    home.with("LEDGER", &ledger)
}

pub(crate) fn booking(tool: &str, ms: u64) -> String {
    let call = json!({ "calls": [{ "tool": tool, "args": { "entry": 1, "ms": ms } }] });
    format!("{call}\n{}\n", json!({ "say": "done" }))
}

pub(crate) fn booked(home: &Home) -> usize {
    fs::read_to_string(home.here().join("ledger")).unwrap_or_default().lines().count()
}

#[test]
fn a_call_that_happens_once_is_reported_as_unknown_and_not_repeated() {
    let home = ledger_home();
    home.write("s.jsonl", &booking("book", 600_000));
    kill_after(&home, &["run", "s.jsonl", "--jsonl"], "call.started", 1);
    let resumed = home.run(&["resume"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("resumed call #1 was in doubt"), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("unknown"), "{}", resumed.stderr);
    assert_eq!(booked(&home), 0);
    let shown = home.run(&["show", "last", "--json"]).json();
    let settled = shown["events"].as_array().unwrap().iter();
    let settled = settled.filter(|event| event["type"] == "call.settled").collect::<Vec<_>>();
    assert_eq!((settled.len(), &settled[0]["executed"]), (1, &json!("unknown")));
}

#[test]
fn a_call_whose_tool_can_tell_is_looked_into_and_done_once() {
    let home = ledger_home();
    home.write("s.jsonl", &booking("book_sure", 600_000));
    kill_after(&home, &["run", "s.jsonl", "--jsonl"], "call.started", 1);
    // The call takes as long again, so it is killed again.
    let events = kill_after(&home, &["resume", "--jsonl"], "call.started", 1);
    assert!(events.iter().any(|event| event["found"] == "did_not"), "{events:?}");
    assert_eq!(booked(&home), 0);
    fs::write(home.here().join("ledger"), "sure 1\n").unwrap();
    let resumed = home.run(&["resume", "--jsonl"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stdout.contains(r#""found":"happened""#), "{}", resumed.stdout);
    assert_eq!(booked(&home), 1);
}

#[test]
fn a_single_call_that_was_killed_is_settled() {
    let home = ledger_home();
    let args = ["call", "book", "entry=1", "ms=600000"];
    let mut child = home.command(&args).spawn().unwrap();
    while !home.run_raw(&["runs", "--json"]).contains(r#""in_doubt":1"#) {
        assert!(child.try_wait().unwrap().is_none(), "the call ended by itself");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = home.run(&["resume", "--json"]);
    assert_eq!((resumed.code, &resumed.json()[0]["executed"]), (5, &json!("unknown")));
    assert_eq!(resumed.error()["executed"], "unknown");
    assert_eq!(home.run(&["runs", "--json"]).json()[0]["status"], "failed");
}

#[test]
fn what_ended_is_not_resumed_and_what_is_not_there_neither() {
    let home = played();
    let none = home.run(&["resume", "--json"]);
    assert_eq!((none.code, &none.error()["code"]), (5, &json!("run.none")));
    let ended = home.run(&["resume", "last", "--json"]);
    assert_eq!((ended.code, &ended.error()["code"]), (5, &json!("run.ended")));
    let unknown = home.run(&["resume", "ffff", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (5, &json!("run.unknown")));
}

#[test]
fn a_run_that_somebody_writes_is_not_resumed() {
    let home = ledger_home();
    home.write("s.jsonl", &booking("book", 600_000));
    let mut child = home.command(&["run", "s.jsonl", "--jsonl"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("call.started")).unwrap().unwrap();
    let locked = home.run(&["resume", "last", "--json"]);
    assert_eq!((locked.code, &locked.error()["code"]), (5, &json!("run.locked")));
    let message = locked.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("process {}", child.id())), "{message}");
    assert_eq!(home.run(&["runs", "rm", "last", "--yes", "--json"]).code, 5);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(home.run(&["resume", "last", "-q"]).code, 0);
}

#[test]
fn a_script_from_stdin_is_given_again() {
    let home = ledger_home();
    home.write("s.jsonl", &booking("book", 600_000));
    let mut command = home.command(&["run", "-", "--jsonl"]);
    command.stdin(fs::File::open(home.here().join("s.jsonl")).unwrap());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("call.started")).unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = home.run(&["resume", "--json"]);
    assert_eq!((gone.code, &gone.error()["code"]), (2, &json!("script.gone")));
    let resumed = home.run(&["resume", "--script", "s.jsonl", "-q"]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (0, "done\n"));
    assert!(Path::new(&home.here().join("s.jsonl")).is_file());
}

#[test]
fn a_run_whose_configuration_is_gone_is_not_resumed_under_another() {
    let home = ledger_home();
    home.write("project/tooltape.toml", "");
    home.write("project/session.jsonl", &booking("book", 600_000));
    let args = ["run", "project", "--set", "agent.script=project/session.jsonl", "--jsonl"];
    kill_after(&home, &args, "call.started", 1);
    fs::rename(home.here().join("project"), home.here().join("moved")).unwrap();
    let gone = home.run(&["resume", "--json"]);
    assert_eq!((gone.code, &gone.error()["code"]), (5, &json!("config.gone")));
    assert_eq!(home.run(&["show", "last"]).code, 0);
    assert_eq!(home.run(&["runs", "--json"]).json()[0]["status"], "crashed");
}

#[test]
fn the_calls_of_nested_runs_are_told_that_were_in_doubt() {
    let home = ledger_home();
    home.write("s.jsonl", &booking("book_both", 600_000));
    // The call that starts the nested run, and one call of that run.
    kill_after(&home, &["run", "s.jsonl", "--jsonl"], "call.started", 2);
    let nested = home.run(&["runs", "--nested", "--json"]).json();
    let nested = nested.as_array().unwrap().iter().find(|run| !run["parent"].is_null()).unwrap();
    assert_eq!((&nested["status"], &nested["in_doubt"]), (&json!("crashed"), &json!(1)));
    let resumed = home.run(&["resume", "--json"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let summary = resumed.json();
    assert_eq!(summary["in_doubt"], json!([1]));
    let told = &summary["nested_in_doubt"];
    assert_eq!((&told[0]["call"], told.as_array().unwrap().len()), (&json!(1), 1), "{told}");
    assert_eq!(booked(&home), 0);
    home.write("s.jsonl", &booking("book_both", 600_000));
    kill_after(&home, &["run", "s.jsonl", "--jsonl"], "call.started", 2);
    let resumed = home.run(&["resume"]);
    assert!(
        resumed.stderr.contains("nested    call #1 of run RUN was in doubt"),
        "{}",
        resumed.stderr
    );
}

#[test]
fn a_nested_run_that_came_to_its_end_is_not_running_any_more() {
    let home = ledger_home();
    home.write("s.jsonl", &booking("book_both", 0));
    assert_eq!(home.run(&["run", "s.jsonl", "-q"]).code, 0);
    let runs = home.run(&["runs", "--nested", "--json"]).json();
    let statuses: Vec<_> = runs.as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, ["ended", "ended"]);
}
