//! Tapes that cannot be used: a clear error that says what can still be read, and nothing lost.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::home::{Home, Ran};
use crate::taped::{SCRIPT, played};

const CALL: [&str; 5] = ["call", "hash", "text=a", "--tape", "t.db"];
const RUNS: [&str; 3] = ["runs", "--tape", "t.db"];
const VERIFY: [&str; 2] = ["verify", "./t.db"];

fn refused(ran: &Ran, exit: i32, code: &str) {
    let error = ran.error();
    assert_eq!((ran.code, &error["code"]), (exit, &json!(code)), "{error}");
    assert!(!error["hint"].as_str().unwrap().is_empty(), "{error}");
}

fn in_json(home: &Home, args: &[&str]) -> Ran {
    home.run(&[args, &["--json"]].concat())
}

#[test]
fn a_file_that_is_no_tape_is_left_alone() {
    for text in ["not a database at all, only words", "{\"a\": 1}\n"] {
        let home = Home::new();
        home.write("t.db", text);
        refused(&in_json(&home, &CALL), 5, "tape.foreign");
        refused(&in_json(&home, &RUNS), 5, "tape.foreign");
        assert_eq!(home.run(&VERIFY).code, 9, "it is not sound");
        assert_eq!(home.read("t.db"), text);
    }
    let home = Home::new();
    fs::create_dir(home.here().join("t.db")).unwrap();
    refused(&in_json(&home, &CALL), 5, "tape.foreign");
}

#[test]
fn an_empty_file_becomes_a_tape_when_it_is_written_and_is_none_before() {
    let home = Home::new();
    home.write("t.db", "");
    refused(&in_json(&home, &RUNS), 5, "tape.foreign");
    assert_eq!(home.run(&CALL).code, 0);
    assert_eq!(in_json(&home, &RUNS).json().as_array().unwrap().len(), 1);
}

#[test]
fn a_tape_of_a_later_version_is_left_alone() {
    let home = Home::new();
    assert_eq!(home.run(&CALL).code, 0);
    let path = home.here().join("t.db");
    let mut bytes = fs::read(&path).unwrap();
    // The header's field for the version of what is in the file.
    bytes[60..64].copy_from_slice(&9_999_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    for args in [&CALL[..], &RUNS] {
        let newer = in_json(&home, args);
        refused(&newer, 5, "tape.newer");
        assert!(newer.error()["message"].as_str().unwrap().contains("9999"));
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_tape_that_may_only_be_read_is_read() {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    assert_eq!(home.run(&["run", "s.jsonl", "--tape", "t.db", "-q"]).code, 0);
    let path = home.here().join("t.db");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    refused(&in_json(&home, &CALL), 5, "tape.read_only");
    assert_eq!(in_json(&home, &RUNS).json().as_array().unwrap().len(), 1);
    assert_eq!(home.run(&["show", "last", "--tape", "t.db"]).code, 0);
    assert_eq!(home.run(&VERIFY).code, 0);
}

#[test]
fn a_tape_whose_file_is_cut_off_is_damaged_and_stays_as_it_is() {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    assert_eq!(home.run(&["run", "s.jsonl", "--tape", "t.db", "-q"]).code, 0);
    let path = home.here().join("t.db");
    let bytes = fs::read(&path).unwrap();
    for len in [1_000, bytes.len() / 2, bytes.len() - 4_096] {
        fs::write(&path, &bytes[..len]).unwrap();
        let verified = home.run(&["verify", "./t.db", "--json"]);
        assert!([5, 9].contains(&verified.code), "{len} bytes: {}", verified.transcript());
        assert_eq!(fs::read(&path).unwrap().len(), len);
    }
}

/// A home with a result that was too large for its reply.
fn with_artifact() -> Home {
    let home = Home::new();
    let args = json!({ "text": "a line of text\n".repeat(40_000) }).to_string();
    let ran = home.feed(&["call", "echo", "--args-json", "-", "-q"], args.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    home
}

#[test]
fn a_missing_artifact_is_named_and_the_run_can_still_be_read() {
    let home = with_artifact();
    let folder = home.here().join("../data/tooltape/runs.db.artifacts");
    let kept = in_json(&home, &["verify"]).json();
    assert_eq!((&kept["sound"], &kept["artifacts"]), (&json!(true), &json!(1)));
    assert_eq!(in_json(&home, &["runs", "gc"]).json()["artifacts"], json!([]));
    fs::remove_dir_all(&folder).unwrap();
    let missing = in_json(&home, &["verify"]);
    refused(&missing, 9, "artifacts.missing");
    assert_eq!(missing.json()["missing_artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(home.run(&["show", "last"]).code, 0);
}

#[test]
fn artifacts_that_no_run_refers_to_are_swept_once_somebody_says_so() {
    let home = with_artifact();
    assert_eq!(home.run(&["runs", "rm", "last", "--yes", "-q"]).code, 0);
    // What was just put there may be about to be referred to.
    assert_eq!(in_json(&home, &["runs", "gc"]).json()["artifacts"], json!([]));
    let folder = home.here().join("../data/tooltape/runs.db.artifacts");
    age(&folder);
    let listed = in_json(&home, &["runs", "gc"]).json();
    assert_eq!(
        (listed["artifacts"].as_array().unwrap().len(), &listed["removed"]),
        (1, &json!(false))
    );
    assert_eq!(in_json(&home, &["runs", "gc", "--yes"]).json()["removed"], true);
    assert_eq!(in_json(&home, &["runs", "gc"]).json()["artifacts"], json!([]));
}

/// Makes every file below a folder a day old.
pub(crate) fn age(folder: &std::path::Path) {
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => age(&path),
            false => {
                let file = fs::File::options().write(true).open(&path).unwrap();
                file.set_modified(std::time::SystemTime::now() - day).unwrap();
            }
        }
    }
}

#[test]
fn there_is_nothing_to_verify_where_nothing_was_recorded() {
    let home = Home::new();
    refused(&in_json(&home, &["verify"]), 5, "tape.missing");
    refused(&in_json(&home, &["verify", "./nothing.db"]), 5, "tape.unusable");
    refused(&in_json(&home, &["verify", "nothing.tape.jsonl"]), 5, "file.missing");
    refused(&in_json(&home, &["replay", "nothing.tape.jsonl"]), 5, "file.missing");
    refused(&in_json(&home, &["import", "nothing.tape.jsonl"]), 5, "file.missing");
    assert_eq!(home.run(&["runs"]).code, 0);
}

#[test]
fn a_folder_for_the_tape_that_cannot_be_made_is_named() {
    let home = Home::new();
    home.write("../data", "a file where the folder should be");
    refused(&in_json(&home, &["call", "hash", "text=a"]), 5, "tape.unusable");
    assert_eq!(home.run(&["call", "hash", "text=a", "--no-tape"]).code, 0);
    let played = played();
    assert_eq!(played.run(&["call", "hash", "text=a", "--no-tape", "--tape", "x"]).code, 2);
}
