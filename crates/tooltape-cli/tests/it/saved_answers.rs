//! Answers that a user saved: what they let run, what they do not, and who can write them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::terminal::{Showed, Terminal};

/// The agent's folder, in which each of these files holds `one`.
fn project(home: &Home, files: &[&str]) {
    let calls: Vec<Value> = files
        .iter()
        .map(|file| {
            home.write(&format!("p/{file}"), "one\n");
            let edits = json!([{ "old": "one", "new": "two" }]);
            json!({ "calls": [{ "tool": "edit_file", "args": { "path": file, "edits": edits } }] })
        })
        .collect();
    let script: String = calls.iter().map(|call| format!("{call}\n")).collect();
    home.write("p/s.jsonl", &format!("{script}{{\"say\":\"done\"}}\n"));
    rules(home, "");
}

fn rules(home: &Home, rules: &str) {
    let head = "workspace = \".\"\n[agent]\nscript = \"s.jsonl\"\n";
    home.write("p/tooltape.toml", &format!("{head}{rules}"));
}

/// Runs the agent, and answers its one question with these flags.
fn answer(home: &Home, flags: &[&str]) -> Ran {
    assert_eq!(home.run(&["run", "p"]).code, 7);
    let asked = home.run(&["approve", "ls", "--json"]).json();
    let id = asked[0]["id"].as_str().unwrap().to_owned();
    home.run(&[&["approve", "yes", &id, "--json"], flags].concat())
}

/// What is saved for the agent's folder.
fn saved(home: &Home) -> Vec<Value> {
    let mut command = home.command(&["approve", "saved", "ls", "--json"]);
    let ran = home.ran(command.current_dir(home.here().join("p")).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    ran.json().as_array().unwrap().clone()
}

fn in_project(home: &Home, args: &[&str]) -> Ran {
    let mut command = home.command(args);
    home.ran(command.current_dir(home.here().join("p")).output().unwrap())
}

/// The file that the answers are in.
fn file(home: &Home) -> PathBuf {
    let folder = home.here().join("../data/tooltape/answers");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = files.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let only = files.next().expect("an answer was saved");
    assert!(files.next().is_none());
    only
}

/// The file for `file`, as it was before anything was edited.
fn anew(home: &Home, file: &str) {
    home.write(&format!("p/{file}"), "one\n");
}

#[test]
fn an_answer_for_exactly_this_lets_exactly_this_run_in_every_run() {
    let home = Home::new();
    project(&home, &["a.txt"]);
    let yes = answer(&home, &["--always", "--scope", "repo"]);
    assert_eq!(yes.code, 0, "{}", yes.transcript());
    let name = yes.json()["saved"]["name"].as_str().unwrap().to_owned();
    assert_eq!(home.run(&["resume"]).code, 0);
    anew(&home, "a.txt");
    let again = home.run(&["run", "p"]);
    assert_eq!((again.code, home.read("p/a.txt").as_str()), (0, "two\n"), "{}", again.stderr);
    let told = format!("allowed by your saved answer {name}, until ");
    assert!(again.stderr.contains(&told), "{}", again.stderr);
    // The tape says so, is sound, and is played again.
    let tail = home.run_raw(&["tail", "last", "--jsonl"]);
    assert!(tail.contains(&format!("\"by\":\"{name}, until ")), "{tail}");
    assert_eq!((home.run(&["verify"]).code, home.run(&["replay", "last"]).code), (0, 0));
    // Another argument is another call.
    project(&home, &["b.txt"]);
    assert_eq!((home.run(&["run", "p"]).code, home.read("p/b.txt").as_str()), (7, "one\n"));
    // And `policy explain` knows it.
    let edits = r#"edits=[{"old":"one","new":"two"}]"#;
    let explained = in_project(&home, &["policy", "explain", "edit_file", "path=a.txt", edits]);
    assert!(explained.stdout.contains(&told), "{}", explained.transcript());
    let asks = in_project(&home, &["policy", "explain", "edit_file", "path=b.txt", edits]);
    assert!(!asks.stdout.contains("saved answer"), "{}", asks.transcript());
    let called = in_project(&home, &["call", "edit_file", "path=b.txt", edits]);
    assert_eq!(called.code, 7, "nobody can be asked, and nothing was saved: {}", called.stderr);
    anew(&home, "a.txt");
    let called = in_project(&home, &["call", "edit_file", "path=a.txt", edits]);
    assert_eq!((called.code, home.read("p/a.txt").as_str()), (0, "two\n"), "{}", called.stderr);
    // Once it is forgotten, it is asked again.
    assert_eq!(in_project(&home, &["approve", "saved", "rm", &name]).code, 0);
    anew(&home, "a.txt");
    let called = in_project(&home, &["call", "edit_file", "path=a.txt", edits]);
    assert_eq!((called.code, home.read("p/a.txt").as_str()), (7, "one\n"));
    let twice = in_project(&home, &["approve", "saved", "rm", &name, "--json"]);
    assert_eq!((twice.code, &twice.error()["code"]), (5, &json!("answers.unknown")));
}

#[test]
fn a_pattern_says_no_more_than_was_shown() {
    let home = Home::new();
    let inside = ["src/a.txt", "src/b.txt"];
    project(&home, &inside);
    let yes = answer(&home, &["--always", "--pattern", "path=src/*", "--for", "8h"]);
    assert_eq!(yes.code, 0, "{}", yes.transcript());
    assert_eq!((home.run(&["resume"]).code, home.read("p/src/b.txt").as_str()), (0, "two\n"));
    let entry = &saved(&home)[0];
    assert_eq!(entry["pattern"], json!({ "path": "src/*" }));
    assert_eq!(entry["args"], r#"{"edits":[{"new":"two","old":"one"}]}"#);
    // Elsewhere, deeper down, and with anything else another, it is asked.
    let calls = [
        json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "two" }] }),
        json!({ "path": "src/deep/a.txt", "edits": [{ "old": "one", "new": "two" }] }),
        json!({ "path": "src/a.txt", "edits": [{ "old": "one", "new": "three" }] }),
        json!({ "path": "src/../a.txt", "edits": [{ "old": "one", "new": "two" }] }),
        json!({ "path": "./src/a.txt", "edits": [{ "old": "one", "new": "two" }] }),
    ];
    for args in calls {
        for file in ["a.txt", "src/a.txt", "src/deep/a.txt"] {
            anew(&home, file);
        }
        let call = in_project(&home, &["call", "edit_file", "--args-json", &args.to_string()]);
        assert_ne!(call.code, 0, "{args}");
        for file in ["a.txt", "src/a.txt", "src/deep/a.txt"] {
            assert_eq!(home.read(&format!("p/{file}")), "one\n", "{args}");
        }
    }
}

#[test]
fn what_cannot_be_saved_is_refused_with_the_reason_and_answers_nothing() {
    let home = Home::new();
    project(&home, &["a.txt"]);
    let cases: [(&[&str], &str); 6] = [
        (&["--always", "--pattern", "path=src/*"], "does not match this call's own `path`"),
        (&["--always", "--pattern", "nobody=*"], "`nobody` is no text argument of this call"),
        (&["--always", "--pattern", "edits=*"], "`edits` is no text argument of this call"),
        (&["--always", "--pattern", "path=[a"], "found glob `[a`"),
        (&["--always", "--for", "10y"], "expected how long"),
        (&["--pattern", "path=*"], "required arguments were not provided"),
    ];
    for (flags, why) in cases {
        let refused = answer(&home, flags);
        assert_eq!(refused.code, 2, "{flags:?}: {}", refused.transcript());
        let message = refused.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(why), "{flags:?}: {message}");
        assert_eq!(saved(&home), Vec::<Value>::new());
    }
    let still = home.run(&["approve", "ls", "--json"]).json();
    assert_eq!(still.as_array().unwrap().len(), cases.len(), "no question was answered");
}

#[test]
fn a_deny_beats_it_and_so_does_whatever_is_another() {
    let home = Home::new();
    project(&home, &["a.txt"]);
    assert_eq!(answer(&home, &["--always"]).code, 0);
    let runs = |flags: &[&str]| {
        anew(&home, "a.txt");
        home.run(&[&["run", "p"], flags].concat());
        home.read("p/a.txt") == "two\n"
    };
    assert!(runs(&[]), "the control");
    rules(&home, "[[policy.rules]]\ntool = \"edit_file\"\nverdict = \"deny\"\n");
    assert!(!runs(&[]), "a rule denies it");
    rules(&home, "[policy]\ndefault = \"deny\"\n");
    assert!(!runs(&[]), "nothing allows it");
    rules(&home, "[[policy.rules]]\ntool = \"edit_file\"\nverdict = \"ask\"\n");
    assert!(runs(&[]), "another rule asks the same, and the answer is the same");
    rules(&home, "[policy]\nrights = [\"fs:read:.\"]\n");
    assert!(!runs(&[]), "the run may not write");
    rules(&home, "");
    home.write("q/a.txt", "one\n");
    let elsewhere = home.run(&["run", "p", "--workspace", "q"]);
    assert_eq!((elsewhere.code, home.read("q/a.txt").as_str()), (7, "one\n"), "another folder");
    fs::rename(home.here().join("p"), home.here().join("moved")).unwrap();
    home.write("moved/a.txt", "one\n");
    assert_eq!(home.run(&["run", "moved"]).code, 7, "another project");
}

#[test]
fn an_answer_holds_until_it_expires() {
    let home = Home::new();
    project(&home, &["a.txt"]);
    assert_eq!(answer(&home, &["--always", "--for", "7d"]).code, 0);
    let text = fs::read_to_string(file(&home)).unwrap();
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    let old = text
        .replace(&line("created"), "created = \"2020-01-01T00:00:00Z\"")
        .replace(&line("expires"), "expires = \"2020-01-08T00:00:00Z\"");
    fs::write(file(&home), old).unwrap();
    anew(&home, "a.txt");
    assert_eq!((home.run(&["run", "p"]).code, home.read("p/a.txt").as_str()), (7, "one\n"));
}

#[test]
fn a_file_that_is_not_as_it_was_written_is_refused_before_anything_runs() {
    let home = Home::new();
    project(&home, &["a.txt"]);
    assert_eq!(answer(&home, &["--always"]).code, 0);
    let (path, text) = (file(&home), fs::read_to_string(file(&home)).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let cases = [
        (
            "an unknown key",
            text.replace("version", "verdict = \"allow\"\nversion"),
            "unknown field",
        ),
        ("another version", text.replace("version = 1", "version = 2"), "found version 2"),
        ("another project", text.replace("project = \"", "project = \"/x"), "another project"),
        ("other arguments", text.replace("a.txt", "b.txt"), "not the answer that was saved"),
        ("no tool", text.replace("tool = ", "# tool = "), "missing field `tool`"),
        ("no end", text.replace("expires = \"20", "expires = \"9"), "expected a moment"),
        ("no hash", text.replace("definition = \"", "definition = \"x"), "a.txt"),
        ("no TOML", format!("{text}["), ""),
    ];
    anew(&home, "a.txt");
    for (name, text, why) in cases {
        fs::write(&path, text).unwrap();
        let ran = home.run(&["run", "p", "--json"]);
        assert_eq!((ran.code, &ran.error()["code"]), (2, &json!("answers.invalid")), "{name}");
        let message = ran.error()["message"].as_str().unwrap().to_owned();
        assert!(name == "no hash" || message.contains(why), "{name}: {message}");
        assert!(message.contains(".toml:"), "{name}: {message}");
    }
    fs::write(&path, &text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let open = home.run(&["run", "p", "--json"]);
    assert_eq!((open.code, &open.error()["code"]), (5, &json!("answers.unusable")));
    fs::remove_file(&path).unwrap();
    home.write("planted.toml", &text);
    symlink(home.here().join("planted.toml"), &path).unwrap();
    let linked = home.run(&["run", "p", "--json"]);
    assert_eq!((linked.code, &linked.error()["code"]), (5, &json!("answers.unusable")));
    assert_eq!(home.read("p/a.txt"), "one\n", "nothing ran");
}

#[test]
fn where_tools_write_no_answer_is_kept_and_none_is_taken() {
    let home = Home::new();
    project(&home, &["a.txt"]);
    home.write("../a.txt", "one\n");
    // The home holds the folder of the answers, so that a tool could write them.
    assert_eq!(home.run(&["run", "p", "--workspace", ".."]).code, 7);
    let asked = home.run(&["approve", "ls", "--json"]).json();
    let id = asked[0]["id"].as_str().unwrap();
    let exposed = home.run(&["approve", "yes", id, "--always", "--json"]);
    assert_eq!((exposed.code, &exposed.error()["code"]), (5, &json!("answers.exposed")));
    let once = home.run(&["approve", "yes", id]);
    assert_eq!(once.code, 0, "the control: once is none of it: {}", once.transcript());
}

/// Runs the agent at a terminal, and types each of these once something is asked.
fn typed(home: &Home, keys: &[(&str, &str)]) -> Showed {
    let mut terminal = Terminal::start(home.command(&["run", "p", "--no-color"]));
    for (asked, keys) in keys {
        terminal.shows(asked);
        terminal.types(keys);
    }
    terminal.end()
}

#[test]
fn at_a_terminal_an_answer_is_shown_changed_and_agreed_before_it_is_saved() {
    let home = Home::new();
    project(&home, &["src/a.txt", "src/b.txt"]);
    let showed = typed(
        &home,
        &[("allow it?", "p\n"), ("pattern [path=src/*]", "\n"), ("save it?", "8h\ny\n")],
    );
    assert_eq!(showed.code, 0, "{}", showed.text);
    assert_eq!(
        (home.read("p/src/a.txt"), home.read("p/src/b.txt")),
        ("two\n".into(), "two\n".into())
    );
    assert!(
        showed.text.contains("edit_file@0.1.0 where `path` matches `src/*`"),
        "{}",
        showed.text
    );
    assert!(showed.text.contains("scope   this project, "), "{}", showed.text);
    assert_eq!(showed.text.matches("allow it?").count(), 1, "{}", showed.text);
    let entry = &saved(&home)[0];
    let hour = |key: &str| entry[key].as_str().unwrap()[11..13].parse::<u32>().unwrap();
    assert_eq!((hour("expires") + 24 - hour("created")) % 24, 8);
}

#[test]
fn at_a_terminal_exactly_this_is_saved_once_somebody_agrees() {
    let home = Home::new();
    project(&home, &["a.txt"]);
    // Nobody agrees, so nothing is saved, and the question stands.
    let showed = typed(&home, &[("allow it?", "a\n"), ("save it?", "no\n"), ("not saved", "y\n")]);
    assert_eq!((showed.code, home.read("p/a.txt").as_str()), (0, "two\n"), "{}", showed.text);
    assert_eq!(saved(&home), Vec::<Value>::new());
    anew(&home, "a.txt");
    let showed = typed(&home, &[("allow it?", "a\n"), ("save it?", "y\n")]);
    assert_eq!((showed.code, home.read("p/a.txt").as_str()), (0, "two\n"), "{}", showed.text);
    assert_eq!(saved(&home)[0]["pattern"], json!({}));
    anew(&home, "a.txt");
    let showed = typed(&home, &[]);
    assert_eq!((showed.code, home.read("p/a.txt").as_str()), (0, "two\n"), "{}", showed.text);
    assert!(!showed.text.contains("allow it?"), "{}", showed.text);
}

#[test]
fn at_a_terminal_whatever_else_is_typed_is_a_no_that_the_model_reads() {
    for keys in ["not today\n", "A \u{1b}[2J\n", "yy\n", "pa\n", "r r\n"] {
        let home = Home::new();
        project(&home, &["a.txt"]);
        let showed = typed(&home, &[("allow it?", keys)]);
        assert_eq!((showed.code, home.read("p/a.txt").as_str()), (0, "one\n"), "{}", showed.text);
        assert!(showed.text.contains("the user said no"), "{}", showed.text);
    }
}
