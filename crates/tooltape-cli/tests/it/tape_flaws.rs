//! What somebody tries who means harm, or is careless: through the built program.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::bad_tapes::age;
use crate::home::Home;
use crate::resuming::{booked, booking, kill_after, ledger_home};
use crate::taped::{newest, played};

/// How long a booking takes that is killed before half of it is over, in milliseconds.
const BOOKING_MS: u64 = 3_000;

/// A home where a call was killed that may happen once.
fn killed_once() -> Home {
    let home = ledger_home();
    home.write("s.jsonl", &booking("book", BOOKING_MS));
    kill_after(&home, &["run", "s.jsonl", "--jsonl"], "call.started", 1);
    assert_eq!(booked(&home), 0);
    home
}

#[test]
fn a_yes_to_everything_is_no_yes_to_doing_again_what_may_have_happened() {
    let home = killed_once();
    let resumed = home.run(&["resume", "--yes"]);
    assert_eq!((resumed.code, booked(&home)), (0, 0), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("not done again"), "{}", resumed.stderr);
    let shown = home.run(&["show", "last", "--json"]).json();
    let events = shown["events"].as_array().unwrap();
    let settled = events.iter().find(|event| event["type"] == "call.settled").unwrap();
    assert_eq!(settled["executed"], "unknown");
}

#[test]
fn a_call_that_may_have_happened_is_done_again_where_it_is_named() {
    let home = killed_once();
    let other = home.run(&["resume", "--again", "2", "--json"]);
    assert_eq!((other.code, &other.error()["code"]), (2, &json!("call.undoubted")));
    let resumed = home.run(&["resume", "--again", "1"]);
    assert_eq!((resumed.code, booked(&home)), (0, 1), "{}", resumed.stderr);
    assert!(resumed.stderr.contains(", done again"), "{}", resumed.stderr);
    assert!(home.run(&["show", "last"]).stdout.contains(", done again"));
}

#[test]
fn a_key_without_a_head_that_it_could_have_signed_is_refused() {
    let home = played();
    let key = "07".repeat(32);
    let tape = home.here().join("../data/tooltape/runs.db").display().to_string();
    for what in [&["verify"][..], &["verify", "last"], &["verify", &tape]] {
        let refused = home.run(&[what, &["--key", &key, "--json"]].concat());
        assert_eq!((refused.code, &refused.error()["code"]), (2, &json!("key.unused")));
    }
}

#[test]
fn the_tombstone_of_a_run_leads_to_its_head() {
    let home = played();
    let run = newest(&home);
    assert_eq!(home.run(&["export", &run, "--head", "a.head"]).code, 0);
    assert_eq!(home.run(&["runs", "rm", &run, "--yes"]).code, 0);
    for what in [&["verify"][..], &["verify", &run]] {
        let verified = home.run(&[what, &["--head", "a.head", "--json"]].concat());
        assert_eq!(verified.code, 0, "{}", verified.stderr);
        let found = verified.json();
        assert_eq!((&found["heads"], &found["tombstones"]), (&json!(1), &json!(["RUN"])));
    }
    let digits = home.read("a.head");
    let at = digits.find(r#""hash":""#).unwrap() + 8;
    let other = if digits[at..].starts_with('0') { "1" } else { "0" };
    home.write("b.head", &format!("{}{other}{}", &digits[..at], &digits[at + 1..]));
    let unlike = home.run(&["verify", "--head", "b.head", "--json"]);
    assert_eq!((unlike.code, &unlike.error()["code"]), (9, &json!("tape.corrupt")));
}

#[cfg(unix)]
#[test]
fn an_export_writes_through_no_link_that_lies_in_wait() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = played();
    home.write("victim", "precious\n");
    let victim = home.here().join("victim");
    for link in ["out.tape.jsonl", "out.tape.jsonl.partial"] {
        symlink(&victim, home.here().join(link)).unwrap();
    }
    assert_eq!(home.run(&["export", "last", "-o", "out.tape.jsonl"]).code, 0);
    assert_eq!(home.read("victim"), "precious\n");
    let metadata = fs::symlink_metadata(home.here().join("out.tape.jsonl")).unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(home.run(&["verify", "out.tape.jsonl"]).code, 0);
}

/// Starts a run that goes on until it is killed.
fn running(home: &Home) -> Child {
    home.write("s.jsonl", &booking("book", 600_000));
    let mut child = home.command(&["run", "s.jsonl", "--jsonl"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("call.started")).unwrap().unwrap();
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_a_run_made_that_is_still_running_is_not_thrown_away() {
    let home = ledger_home();
    let args = json!({ "text": "a line of text\n".repeat(40_000) }).to_string();
    let ran = home.feed(&["call", "echo", "--args-json", "-", "-q"], args.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(home.run(&["runs", "rm", "last", "--yes", "-q"]).code, 0);
    let data = home.here().join("../data/tooltape");
    age(&data.join("runs.db.artifacts"));
    let child = running(&home);
    // The run shall have started before the artifact was made.
    let sql = "UPDATE runs SET started_us = 1 WHERE status = 'running'";
    let code =
        format!("import sqlite3\nwith sqlite3.connect('runs.db') as it: it.execute(\"{sql}\")");
    let made = Command::new("python3").args(["-c", &code]).current_dir(&data).status();
    match made {
        Err(_) => println!("python3: not present, 1 check not made"),
        Ok(made) => {
            assert!(made.success());
            assert_eq!(home.run(&["runs", "gc", "--json"]).json()["artifacts"], json!([]));
        }
    }
    kill(child);
    let listed = home.run(&["runs", "gc", "--json"]).json();
    assert_eq!(listed["artifacts"].as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn a_run_that_is_running_is_not_forked_and_not_said_to_be_resumed() {
    let home = ledger_home();
    let child = running(&home);
    let forked = home.run(&["fork", "last", "--at", "1", "--json"]);
    assert_eq!((forked.code, &forked.error()["code"]), (5, &json!("run.locked")));
    let resumed = home.run(&["resume", "last"]);
    assert!(resumed.stderr.contains("error[run.locked]"), "{}", resumed.stderr);
    assert!(!resumed.stderr.contains("in doubt"), "{}", resumed.stderr);
    kill(child);
    assert!(home.run(&["resume", "last"]).stderr.contains("resumed call #1 was in doubt"));
}

#[test]
fn a_fork_of_a_run_that_worked_on_a_copy_works_on_a_copy_of_its_own() {
    let home = Home::new();
    home.write("project/a.txt", "one\n").write(
        "tooltape.toml",
        "workspace = { copy = \"project\" }\n[policy]\ndefault = \"allow\"\n",
    );
    let edit = r#"edits=[{"old":"one","new":"two"}]"#;
    assert_eq!(home.run(&["call", "edit_file", "path=a.txt", edit]).code, 0);
    let original = newest(&home);
    let edit = r#"edits=[{"old":"two","new":"three"}]"#;
    let forked = home.run(&["fork", &original, "--at", "1", "--set", edit, "-q"]);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    assert!(forked.stderr.starts_with("COPIED: HOME/state/tooltape/work/"), "{}", forked.stderr);
    let work = home.here().join("../state/tooltape/work");
    let text = |run: &str| fs::read_to_string(work.join(run).join("a.txt")).unwrap();
    assert_eq!((text(&original), text(&newest(&home))), ("two\n".into(), "three\n".into()));
    assert_eq!(home.read("project/a.txt"), "one\n");
    let runs: Value = serde_json::from_str(&home.run_raw(&["runs", "--json"])).unwrap();
    let workspace = runs[0]["note"]["workspace"].as_str().unwrap();
    assert!(workspace.ends_with(&newest(&home)), "{workspace}");
    assert_eq!(runs[0]["note"]["copied_from"], runs[1]["note"]["copied_from"]);
    assert!(runs[0]["note"]["shares_workspace_with"].is_null());
    assert_eq!(home.copies().len(), 2);
    assert_eq!(home.run(&["verify"]).code, 0);
    assert_eq!(home.run(&["replay", "last"]).code, 0);
}

#[test]
fn a_fork_without_a_copy_says_whose_folder_it_shares() {
    let home = played();
    let original = newest(&home);
    assert_eq!(home.run(&["fork", &original, "--at", "1", "-q"]).code, 0);
    let runs: Value = serde_json::from_str(&home.run_raw(&["runs", "--json"])).unwrap();
    assert_eq!(runs[0]["note"]["shares_workspace_with"], original);
    assert_eq!(runs[0]["note"]["workspace"], runs[1]["note"]["workspace"]);
    let unknown = home.run(&["fork", &original, "--at", "99", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (5, &json!("call.unknown")));
}

#[test]
fn what_only_reads_and_writes_files_does_not_speak_of_executing() {
    let home = played();
    assert_eq!(home.run(&["export", "last", "-o", "a.tape.jsonl", "--head", "a.head"]).code, 0);
    let run = newest(&home);
    assert_eq!(home.run(&["runs", "rm", &run, "--yes"]).code, 0);
    let erased = home.run(&["import", "a.tape.jsonl"]);
    assert_eq!(erased.code, 5, "{}", erased.stderr);
    assert!(erased.stderr.contains("the run `RUN` was erased here"), "{}", erased.stderr);
    let key = "07".repeat(32);
    let unsigned = home.run(&["verify", "a.tape.jsonl", "--key", &key]);
    assert_eq!(unsigned.code, 9, "{}", unsigned.stderr);
    assert!(unsigned.stderr.contains("the head is not signed"), "{}", unsigned.stderr);
    assert!(!unsigned.stderr.contains("no tape"), "{}", unsigned.stderr);
    let unwritten = home.run(&["export", "ffff"]);
    for ran in [erased, unsigned, unwritten] {
        assert!(ran.stderr.starts_with("error["), "{}", ran.stderr);
        assert!(!ran.stderr.contains("executed"), "{}", ran.stderr);
    }
}

#[test]
fn nothing_is_executed_on_the_word_of_an_imported_run() {
    let (made, home) = (killed_once(), ledger_home());
    assert_eq!(made.run(&["export", "last", "-o", "a.tape.jsonl"]).code, 0);
    home.write("a.tape.jsonl", &made.read("a.tape.jsonl"));
    assert_eq!(home.run(&["import", "a.tape.jsonl"]).code, 0);
    let none = home.run(&["resume", "--json"]);
    assert_eq!((none.code, &none.error()["code"]), (5, &json!("run.none")));
    let resume = ["resume", "last", "--yes", "--again", "1", "--json"];
    let fork = ["fork", "last", "--at", "1", "--yes", "--json"];
    let live = ["replay", "last", "--live", "book", "--yes", "--json"];
    for args in [&resume[..], &fork, &live] {
        let refused = home.run(args);
        assert_eq!((refused.code, &refused.error()["code"]), (6, &json!("run.imported")));
    }
    for command in ["show", "verify", "replay"] {
        let ran = home.run(&[command, "last"]);
        assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    }
    assert_eq!((booked(&made), booked(&home)), (0, 0));
}

#[test]
fn a_run_that_ended_before_it_was_imported_is_not_forked_either() {
    let (made, home) = (ledger_home(), ledger_home());
    made.write("s.jsonl", &booking("book", 0));
    assert_eq!(made.run(&["run", "s.jsonl", "-q"]).code, 0);
    assert_eq!(made.run(&["export", "last", "-o", "a.tape.jsonl"]).code, 0);
    home.write("a.tape.jsonl", &made.read("a.tape.jsonl"));
    assert_eq!(home.run(&["import", "a.tape.jsonl"]).code, 0);
    assert_eq!(home.run(&["runs", "--json"]).json()[0]["status"], "ended");
    let refused = home.run(&["fork", "last", "--at", "1", "--yes", "--json"]);
    assert_eq!((refused.code, &refused.error()["code"]), (6, &json!("run.imported")));
    assert_eq!((booked(&made), booked(&home)), (1, 0));
}
