//! Everything that the command prints and keeps, searched for a secret that its tools say.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::json;

use crate::home::Home;
use crate::own_tools::program;
use crate::terminal::at_terminal;

const TOKEN: &str = "ghp_Canary7h9x2kLmQv4";
/// Where the tool says it, and how.
const PLACES: [&str; 8] =
    ["text", "value", "error", "panic", "progress", "parts", "details", "large"];
const WAYS: [&str; 4] = ["plain", "hex", "reversed", "escaped"];

fn needles(token: &str) -> Vec<String> {
    vec![
        token.to_owned(),
        token.bytes().map(|byte| format!("{byte:02x}")).collect(),
        token.chars().rev().collect(),
        token.bytes().map(|byte| format!("%{byte:02X}")).collect(),
    ]
}

/// All that left: what was printed, and what is in files.
#[derive(Default)]
struct Left(Vec<(String, Vec<u8>)>);

impl Left {
    fn run(&mut self, home: &Home, args: &[&str]) -> String {
        let output = home.command(args).output().unwrap();
        self.0.push((format!("stdout of {args:?}"), output.stdout.clone()));
        self.0.push((format!("stderr of {args:?}"), output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn files(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.files(&path);
            } else {
                self.0.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }

    fn finds(&self, needle: &str) -> Vec<&str> {
        let holds =
            |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
        let found = self.0.iter().filter(|(_, bytes)| holds(bytes));
        found.map(|(place, _)| place.as_str()).collect()
    }
}

/// A home in which the secret stands in a variable alone.
fn home() -> Home {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let home = Home::of(PROGRAM.get_or_init(|| program("secretive")).clone());
    home.write(home.user_config(), "[secrets.forge]\nenv = \"FORGE_TOKEN\"\n");
    home.with("FORGE_TOKEN", TOKEN).with("TOOLTAPE_TOOLS_DISABLE", "weigh")
}

/// Says it in every place and way, and looks at that with every command.
fn say_everywhere(home: &Home, said: &str) -> Left {
    let mut left = Left::default();
    let calls = PLACES.iter().flat_map(|place| {
        WAYS.iter().map(move |way| json!({ "tool": "spill", "args": { "to": place, "way": way } }))
    });
    let mut calls: Vec<serde_json::Value> = calls.collect();
    // The model knows it, too.
    calls.push(json!({ "tool": "echo", "args": { "text": format!("it is {said}") } }));
    calls.push(json!({ "tool": format!("t-{said}"), "args": {} }));
    let script = [
        json!({ "ask": format!("use {said}") }),
        json!({ "say": format!("I use {said}"), "calls": calls }),
        json!({ "say": format!("done with {said}") }),
    ];
    // Beside what is searched.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, script.map(|line| line.to_string()).join("\n")).unwrap();
    let path = path.to_str().unwrap();
    left.run(home, &["run", path]);
    left.run(home, &["run", path, "-v"]);
    left.run(home, &["run", path, "--json"]);
    left.run(home, &["run", path, "--jsonl"]);
    for to in PLACES {
        left.run(home, &["call", "spill", &format!("to={to}")]);
        left.run(home, &["call", "spill", &format!("to={to}"), "--json"]);
    }
    left.run(home, &["call", "echo", &format!("text={said}")]);
    left.run(home, &["call", "echo", &format!("text={said}"), "--json"]);
    let at_terminal = at_terminal(home.command(&["run", path]), "");
    left.0.push(("a terminal".to_owned(), at_terminal.text.into_bytes()));
    let runs = left.run(home, &["runs", "--json", "--limit", "100"]);
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    let runs: Vec<&str> =
        runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    let (first, second) = (runs[runs.len() - 1], runs[runs.len() - 2]);
    for args in [
        &["show", first][..],
        &["show", first, "-v"],
        &["show", first, "--log"],
        &["show", first, "--full"],
        &["show", first, "--json"],
        &["runs"],
        &["tail", first],
        &["replay", first],
        &["diff", first, second],
        &["verify"],
        &["export", first],
        &["record-test", first, "--name", "told", "--tools", "tools![]"],
        &["config", "explain"],
        &["config", "explain", "--json"],
        &["tools", "list", "--json"],
        &["tools", "show", "spill", "--json"],
        &["policy", "explain", "spill", "to=text"],
        &["approve", "ls", "--json"],
    ] {
        left.run(home, args);
    }
    left.files(home.here().parent().unwrap());
    left
}

#[test]
fn a_secret_is_in_nothing_that_the_command_prints_or_keeps() {
    let left = say_everywhere(&home(), TOKEN);
    assert!(left.0.len() > 80, "{} places", left.0.len());
    for needle in needles(TOKEN) {
        assert_eq!(left.finds(&needle), [""; 0], "`{needle}`");
    }
    assert!(!left.finds("[redacted]").is_empty(), "it was said");
}

#[test]
fn the_search_finds_what_is_no_secret_in_every_such_place() {
    let said = "not_a_Canary_5uXz";
    let left = say_everywhere(&home().with("SPILLED", said), said);
    for needle in needles(said) {
        assert!(!left.finds(&needle).is_empty(), "`{needle}`");
    }
    let found = left.finds(said);
    for place in [
        "runs.db",
        "artifacts",
        "stdout of [\"run\"",
        "stderr of [\"run\"",
        "a terminal",
        "stdout of [\"call\"",
        "stderr of [\"call\"",
        "\"show\"",
        "\"--log\"",
        "\"--full\"",
        "\"tail\"",
        "\"export\"",
        "tests/",
    ] {
        assert!(found.iter().any(|found| found.contains(place)), "{place}: {found:?}");
    }
}
