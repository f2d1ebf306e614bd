//! `tooltape verify`, `export` and `import`.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::home::{Home, root};
use crate::taped::{newest, played};

/// A home with an exported run.
fn exported() -> Home {
    let home = played();
    let ran = home.run(&["export", "last", "-o", "run.tape.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    home
}

#[test]
fn a_sound_tape_is_said_to_be_sound() {
    let home = exported();
    for what in [&["verify"][..], &["verify", "last"], &["verify", "run.tape.jsonl"]] {
        let verified = home.run(&[what, &["--json"]].concat());
        assert_eq!(verified.code, 0, "{}", verified.stderr);
        let found = verified.json();
        assert_eq!((&found["sound"], &found["records"]), (&json!(true), &json!(11)));
        assert_eq!((&found["runs"], &found["calls"]), (&json!(1), &json!(2)));
    }
    let tape = home.here().join("../data/tooltape/runs.db").display().to_string();
    let verified = home.run(&["verify", &tape]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    assert!(verified.stdout.starts_with("sound "), "{}", verified.stdout);
}

#[test]
fn an_exported_tape_is_the_same_to_the_byte_after_an_import_elsewhere() {
    let home = exported();
    let text = home.read("run.tape.jsonl");
    let elsewhere = Home::new();
    elsewhere.write("run.tape.jsonl", &text);
    let imported = elsewhere.run(&["import", "run.tape.jsonl", "--json"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert_eq!((&imported.json()["records"], &imported.json()["new"]), (&json!(11), &json!(11)));
    assert_eq!(elsewhere.run(&["import", "run.tape.jsonl", "--json"]).json()["new"], 0);
    assert_eq!(elsewhere.run(&["export", "last", "-o", "again.tape.jsonl"]).code, 0);
    assert_eq!(elsewhere.read("again.tape.jsonl"), text);
    assert_eq!(elsewhere.run_raw(&["export", "last"]), text);
    assert_eq!(elsewhere.run(&["verify"]).code, 0);
    assert_eq!(elsewhere.run(&["export", "last", "-o", "run.json"]).code, 0);
    let document: Value = serde_json::from_str(&elsewhere.read("run.json")).unwrap();
    assert_eq!(document["events"].as_array().unwrap().len(), 11);
    assert_eq!(elsewhere.run(&["export", "last", "-o", "run.odd"]).code, 2);
    for command in ["show", "replay"] {
        assert_eq!(elsewhere.run(&[command, "run.tape.jsonl"]).code, 0, "{command}");
    }
}

#[test]
fn a_stranger_agrees() {
    let home = exported();
    let script = root().join("tools/verify_tape.py");
    let file = home.here().join("run.tape.jsonl");
    let Ok(output) = Command::new("python3").arg(script).arg(&file).output() else {
        println!("python3: not present, 1 check not made");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_damaged_line_is_found_and_what_is_before_it_is_sound() {
    let home = exported();
    let text = home.read("run.tape.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    for at in 1..=11 {
        let mut damaged: Vec<String> = lines.iter().map(ToString::to_string).collect();
        damaged[at] = damaged[at].replacen("\"seq\":", "\"seq\":1", 1);
        home.write("bad.tape.jsonl", &(damaged.join("\n") + "\n"));
        let verified = home.run(&["verify", "bad.tape.jsonl", "--json"]);
        assert_eq!((verified.code, &verified.error()["code"]), (9, &json!("tape.corrupt")));
        let message = verified.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("{} records before it are sound", at - 1)), "{message}");
        let mut missing: Vec<&str> = lines.clone();
        missing.remove(at);
        home.write("bad.tape.jsonl", &(missing.join("\n") + "\n"));
        assert_eq!(home.run(&["verify", "bad.tape.jsonl"]).code, 9, "line {at} is missing");
        assert_eq!(home.run(&["import", "bad.tape.jsonl", "--tape", "new.db"]).code, 9);
        assert!(!home.here().join("new.db").exists(), "nothing of it is taken in");
    }
    home.write("bad.tape.jsonl", &text[..text.len() - 20]);
    let torn = home.run(&["verify", "bad.tape.jsonl", "--json"]);
    assert_eq!((torn.code, &torn.error()["code"]), (9, &json!("tape.torn")));
}

#[test]
fn a_head_that_was_kept_elsewhere_sees_what_was_cut_off() {
    let home = exported();
    assert_eq!(home.run(&["export", "last", "--head", "head.json"]).code, 0);
    for what in ["last", "run.tape.jsonl"] {
        let verified = home.run(&["verify", what, "--head", "head.json", "--json"]);
        assert_eq!((verified.code, &verified.json()["heads"]), (0, &json!(1)));
    }
    // Neatly cut: the last record and the head of the file are of a shorter run.
    let shorter = Home::new();
    shorter.write("s.jsonl", "{\"say\": \"short\"}\n");
    assert_eq!(shorter.run(&["run", "s.jsonl", "-q"]).code, 0);
    assert_eq!(shorter.run(&["export", "last", "-o", "short.tape.jsonl"]).code, 0);
    home.write("short.tape.jsonl", &shorter.read("short.tape.jsonl"));
    assert_eq!(home.run(&["verify", "short.tape.jsonl"]).code, 0);
    let cut = home.run(&["verify", "short.tape.jsonl", "--head", "head.json", "--json"]);
    assert_eq!((cut.code, &cut.error()["code"]), (9, &json!("tape.corrupt")));
    home.write("nothing.json", "{}\n");
    assert_eq!(home.run(&["verify", "last", "--head", "nothing.json"]).code, 5);
}

#[test]
fn a_signed_head_is_held_against_a_key() {
    let home = played();
    home.write("key", &format!("{}\n", "07".repeat(32)));
    home.write("other", &format!("{}\n", "08".repeat(32)));
    let args = ["export", "last", "-o", "a.tape.jsonl", "--head", "head.json", "--sign", "key"];
    let signed = home.run(&args);
    assert_eq!(signed.code, 0, "{}", signed.stderr);
    let key = signed.stderr.split("public key is ").nth(1).unwrap().trim().to_owned();
    let verified = home.run(&["verify", "a.tape.jsonl", "--key", &key, "--json"]);
    assert_eq!((verified.code, &verified.json()["signed_by"]), (0, &json!(key)));
    let args = ["verify", "last", "--head", "head.json", "--key", &key];
    assert_eq!(home.run(&args).code, 0);
    let other = home.run(&["export", "last", "-o", "b.tape.jsonl", "--sign", "other"]);
    assert_eq!(other.code, 0);
    let foreign = home.run(&["verify", "b.tape.jsonl", "--key", &key, "--json"]);
    assert_eq!((foreign.code, &foreign.error()["code"]), (9, &json!("head.unsigned")));
    assert_eq!(home.run(&["verify", "last", "--key", "nonsense"]).code, 2);
    assert_eq!(home.run(&["export", "last", "--head", "h", "--sign", "s.jsonl"]).code, 2);
}

#[test]
fn a_damaged_record_is_named_and_all_else_can_be_read() {
    let home = played();
    assert_eq!(home.run(&["call", "hash", "text=other"]).code, 0);
    let damaged = newest(&home);
    let tape = home.here().join("../data/tooltape/runs.db");
    // The text stands in the file as it is, so it can be altered without SQLite noticing.
    let mut bytes = fs::read(&tape).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - 5).filter(|at| bytes[*at..].starts_with(b"other")).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[*at..at + 5].copy_from_slice(b"Other"));
    fs::write(&tape, bytes).unwrap();
    let verified = home.run(&["verify", "--json"]);
    assert_eq!((verified.code, &verified.error()["code"]), (9, &json!("tape.corrupt")));
    let found = verified.json();
    assert_eq!(found["damage"].as_array().unwrap().len(), 1, "{found}");
    let shown = home.run(&["show", &damaged, "--json"]);
    assert_eq!((shown.code, &shown.error()["code"]), (9, &json!("tape.corrupt")));
    assert!(!shown.json()["events"].as_array().unwrap().is_empty(), "what is before it is shown");
    let runs = home.run_raw(&["runs", "--json"]);
    let runs: Value = serde_json::from_str(&runs).unwrap();
    assert_eq!(home.run(&["show", runs[1]["id"].as_str().unwrap()]).code, 0);
    assert_eq!(home.run(&["resume", &damaged, "--json"]).code, 9);
    assert_eq!(home.run(&["export", &damaged, "-o", "x.tape.jsonl"]).code, 9);
    let names = fs::read_dir(home.here()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.starts_with("x.tape.jsonl")), "{names:?}");
}

#[test]
fn a_column_that_lies_is_damage_and_other_runs_are_still_checked() {
    let home = played();
    let first = newest(&home);
    assert_eq!(home.run(&["call", "hash", "text=other"]).code, 0);
    let sql = format!(
        "UPDATE events SET type = 'run.ended' WHERE seq = 2 AND run = \
         (SELECT no FROM runs WHERE id = '{first}');
         UPDATE runs SET calls = 77 WHERE id = '{first}'"
    );
    let connect = "import sqlite3\nwith sqlite3.connect('runs.db') as it: it.executescript";
    let code = format!("{connect}(\"\"\"{sql}\"\"\")");
    let data = home.here().join("../data/tooltape");
    let altered = Command::new("python3").args(["-c", &code]).current_dir(&data).status();
    assert!(altered.unwrap().success());
    let verified = home.run(&["verify", "--json"]);
    assert_eq!((verified.code, &verified.error()["code"]), (9, &json!("tape.corrupt")));
    let found = verified.json();
    let places: Vec<_> = found["damage"].as_array().unwrap().iter().map(|it| &it["why"]).collect();
    assert_eq!(places.len(), 2, "{found:#}");
    assert!(places[0].as_str().unwrap().contains("`type` says `run.ended`"), "{}", places[0]);
    assert!(places[1].as_str().unwrap().contains("`calls` says `77`"), "{}", places[1]);
    assert_eq!(found["runs"], 2, "both were checked");
    assert_eq!(home.run(&["verify", &first]).code, 9);
    assert_eq!(home.run(&["verify", "last"]).code, 0);
    let shown = home.run(&["verify"]).stdout;
    assert!(shown.contains("record 2: the column `type` says"), "{shown}");
}
