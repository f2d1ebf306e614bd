//! Questions that wait on the tape: asked by one process, answered by another, used by a third.

use serde_json::{Value, json};

use crate::home::{Home, root};
use crate::terminal::Terminal;

const LINE: &str = "# effects\ninvoice 17 paid\n";

fn example() -> String {
    root().join("examples/approval").display().to_string()
}

/// What the run of the example has noted, wherever its copy is.
fn noted(home: &Home) -> String {
    let copies = home.copies();
    assert_eq!(copies.len(), 1, "{copies:?}");
    std::fs::read_to_string(copies[0].join("effects.log")).unwrap()
}

fn questions(home: &Home) -> Vec<Value> {
    home.run(&["approve", "ls", "--json"]).json().as_array().unwrap().clone()
}

fn id_of(question: &Value) -> &str {
    question["id"].as_str().unwrap()
}

#[test]
fn a_run_pauses_for_an_answer_and_has_its_effect_once() {
    let home = Home::new();
    assert_eq!(questions(&home), Vec::<Value>::new(), "where there is no tape, nothing waits");
    let paused = home.run(&["run", &example(), "--json"]);
    assert_eq!((paused.code, &paused.json()["status"]), (7, &json!("paused")));
    assert_eq!(paused.error()["code"], "approval.needed");
    assert_eq!(noted(&home), "# effects\n");
    let asked = questions(&home);
    assert_eq!(asked.len(), 1);
    assert_eq!((&asked[0]["call"], &asked[0]["run"]), (&json!(2), &paused.json()["id"]));
    assert_eq!(asked[0]["args"]["path"], "effects.log");
    assert!(asked[0]["rule"].as_str().unwrap().ends_with("tooltape.toml:11"), "{}", asked[0]);
    // Nobody has answered, so it pauses again, with the same question.
    let again = home.run(&["resume", "--json"]);
    assert_eq!((again.code, id_of(&questions(&home)[0])), (7, id_of(&asked[0])));
    let yes = home.run(&["approve", "yes", &id_of(&asked[0])[..8], "--json"]);
    assert_eq!((yes.code, &yes.json()["id"]), (0, &asked[0]["id"]));
    assert_eq!(questions(&home), Vec::<Value>::new());
    assert_eq!(noted(&home), "# effects\n", "an answer executes nothing");
    let twice = home.run(&["approve", "no", id_of(&asked[0]), "--json"]);
    assert_eq!((twice.code, &twice.error()["code"]), (5, &json!("approval.answered")));
    let ended = home.run(&["resume", "--json"]);
    assert_eq!((ended.code, &ended.json()["status"]), (0, &json!("ended")));
    assert_eq!(noted(&home), LINE);
    let nothing = home.run(&["resume", "--json"]);
    assert_eq!((nothing.code, noted(&home).as_str()), (5, LINE), "there is nothing to resume");
    assert_eq!(home.run(&["verify", "last"]).code, 0);
    assert_eq!(home.run(&["replay", "last"]).code, 0);
}

#[test]
fn a_no_is_read_by_the_model_and_the_run_goes_on() {
    let home = Home::new();
    home.run(&["run", &example()]);
    let asked = questions(&home);
    let no = home.run(&["approve", "no", id_of(&asked[0]), "--tell", "not on a Friday"]);
    assert_eq!(no.code, 0);
    let ended = home.run(&["resume"]);
    assert_eq!((ended.code, noted(&home).as_str()), (0, "# effects\n"));
    assert!(ended.stderr.contains("not executed: denied: not on a Friday"), "{}", ended.stderr);
}

#[test]
fn a_question_that_is_not_there_is_named() {
    let home = Home::new();
    for id in ["00000000", "zz", ""] {
        let unknown = home.run(&["approve", "yes", id, "--json"]);
        assert_eq!((unknown.code, &unknown.error()["code"]), (5, &json!("approval.unknown")));
    }
    home.run(&["run", &example()]);
    let short = home.run(&["approve", "yes", &id_of(&questions(&home)[0])[..3], "--json"]);
    assert_eq!((short.code, &short.error()["code"]), (5, &json!("approval.unknown")));
}

/// A project whose agent edits a file once somebody said yes; it waits for that.
fn editing(home: &Home) {
    home.write("p/a.txt", "one\n");
    let edit = r#"{"path": "a.txt", "edits": [{"old": "one", "new": "one and two"}]}"#;
    home.write("p/s.jsonl", &format!(
        "{{\"calls\": [{{\"tool\": \"edit_file\", \"args\": {edit}}}]}}\n{{\"say\": \"done\"}}\n"
    ));
    home.write("p/tooltape.toml", "workspace = \".\"\n[agent]\nscript = \"s.jsonl\"\n");
    assert_eq!(home.run(&["run", "p"]).code, 7);
}

#[test]
fn a_yes_to_one_change_is_none_to_another() {
    let home = Home::new();
    editing(&home);
    let first = questions(&home);
    assert_eq!(home.run(&["approve", "yes", id_of(&first[0])]).code, 0);
    // The same edit, and another change.
    home.write("p/a.txt", "none\n");
    assert_eq!(home.run(&["resume"]).code, 7, "it is asked again");
    assert_eq!(home.read("p/a.txt"), "none\n");
    let says_yes = || home.run(&["show", "last"]).stdout.contains("answered yes");
    assert!(!says_yes(), "nobody has answered what is asked now");
    let second = questions(&home);
    assert_ne!(id_of(&first[0]), id_of(&second[0]));
    assert!(second[0]["preview"]["shown"].as_str().unwrap().contains("+none and two"));
    home.run(&["approve", "yes", id_of(&second[0])]);
    assert_eq!((home.run(&["resume"]).code, home.read("p/a.txt").as_str()), (0, "none and two\n"));
    assert!(says_yes());
    assert_eq!(home.run(&["verify", "last"]).code, 0);
    assert_eq!(home.run(&["replay", "last"]).code, 0);
}

#[test]
fn a_yes_under_another_policy_is_none() {
    let home = Home::new();
    editing(&home);
    let first = questions(&home);
    home.run(&["approve", "yes", id_of(&first[0])]);
    let stricter = "workspace = \".\"\n[agent]\nscript = \"s.jsonl\"\n\
                    [[policy.rules]]\ntool = \"edit_file\"\nverdict = \"ask\"\n";
    home.write("p/tooltape.toml", stricter);
    assert_eq!(home.run(&["resume"]).code, 7, "it is asked again");
    assert_eq!(home.read("p/a.txt"), "one\n");
    let second = questions(&home);
    assert_ne!(id_of(&first[0]), id_of(&second[0]));
    home.run(&["approve", "yes", id_of(&second[0])]);
    assert_eq!((home.run(&["resume"]).code, home.read("p/a.txt").as_str()), (0, "one and two\n"));
    assert_eq!(home.run(&["verify", "last"]).code, 0);
}

#[test]
fn killed_while_it_asks_a_run_is_answered_elsewhere_and_has_its_effect_once() {
    let home = Home::new();
    let mut terminal = Terminal::start(home.command(&["run", &example()]));
    terminal.shows("[y/N]");
    terminal.kill();
    let asked = questions(&home);
    assert_eq!((asked.len(), noted(&home).as_str()), (1, "# effects\n"));
    assert_eq!(home.run(&["approve", "yes", id_of(&asked[0])]).code, 0);
    // At a terminal: somebody answered, so nobody is asked.
    let resumed = Terminal::start(home.command(&["resume"])).end();
    assert_eq!((resumed.code, noted(&home).as_str()), (0, LINE), "{}", resumed.text);
    assert!(!resumed.text.contains("[y/N]"), "{}", resumed.text);
}

#[test]
fn killed_wherever_it_waits_a_run_has_its_effect_once() {
    let home = Home::new();
    // Whoever is asked at a terminal is killed, and so is whoever asks again.
    let mut terminal = Terminal::start(home.command(&["run", &example()]));
    terminal.shows("[y/N]");
    let waiting = home.run(&["approve", "ls", "--json"]);
    assert_eq!(waiting.json(), json!([]), "a run that runs asks where it runs");
    terminal.kill();
    let first = questions(&home);
    let mut terminal = Terminal::start(home.command(&["resume"]));
    terminal.shows("[y/N]");
    let live = home.run(&["approve", "yes", id_of(&first[0]), "--json"]);
    assert_eq!((live.code, &live.error()["code"]), (5, &json!("approval.running")));
    terminal.kill();
    let again = questions(&home);
    assert_eq!((again.len(), id_of(&again[0])), (1, id_of(&first[0])), "the same question");
    // Another process answers, and nobody is asked any more.
    let shown = home.run(&["approve", "show", id_of(&again[0])]).stdout;
    assert!(shown.contains("+invoice 17 paid"), "{shown}");
    assert_eq!(home.run(&["approve", "yes", id_of(&again[0])]).code, 0);
    assert_eq!(noted(&home), "# effects\n", "an answer executes nothing");
    let resumed = Terminal::start(home.command(&["resume"])).end();
    assert_eq!((resumed.code, noted(&home).as_str()), (0, LINE), "{}", resumed.text);
    assert!(!resumed.text.contains("[y/N]"), "{}", resumed.text);
    assert_eq!(home.run(&["resume", "--json"]).code, 5, "there is nothing to resume");
    assert_eq!((noted(&home).as_str(), home.run(&["verify"]).code), (LINE, 0));
    let ended = home.run(&["approve", "yes", id_of(&first[0]), "--json"]);
    assert_eq!((ended.code, &ended.error()["code"]), (5, &json!("approval.answered")));
}

/// A folder whose agent edits three files, each of which a rule asks about.
fn three_edits(home: &Home, rule: &str) {
    let mut script = String::new();
    for file in ["a", "b", "c"] {
        home.write(&format!("p/{file}.txt"), "one\n");
        let edit =
            json!({ "path": format!("{file}.txt"), "edits": [{ "old": "one", "new": "two" }] });
        script += &json!({ "calls": [{ "tool": "edit_file", "args": edit }] }).to_string();
        script.push('\n');
    }
    home.write("p/s.jsonl", &(script + "{\"say\": \"done\"}\n"));
    let head = "workspace = \".\"\n[agent]\nscript = \"s.jsonl\"\n";
    home.write("p/tooltape.toml", &format!("{head}{rule}"));
}

const ASKS: &str = "[[policy.rules]]\ntool = \"edit_file\"\nverdict = \"ask\"\n";

#[test]
fn a_yes_for_a_run_is_none_for_its_fork() {
    let home = Home::new();
    three_edits(&home, ASKS);
    assert_eq!(home.run(&["run", "p"]).code, 7);
    assert_eq!(home.run(&["approve", "yes", "--run", id_of(&questions(&home)[0])]).code, 0);
    assert_eq!(home.run(&["resume"]).code, 0, "whatever the rule asks");
    home.write("p/b.txt", "one\n").write("p/c.txt", "one\n");
    let fork = home.run(&["fork", "last", "--at", "2"]);
    assert_eq!((fork.code, home.read("p/b.txt").as_str()), (7, "one\n"), "{}", fork.transcript());
    assert_eq!(home.run(&["verify"]).code, 0);
    assert_eq!(home.run(&["replay", "last"]).code, 0);
}

#[test]
fn a_no_stands_though_a_rule_allows_it_by_then() {
    let home = Home::new();
    three_edits(&home, ASKS);
    home.run(&["run", "p"]);
    home.run(&["approve", "no", id_of(&questions(&home)[0]), "--tell", "never"]);
    three_edits(&home, &ASKS.replace("ask", "allow"));
    let resumed = home.run(&["resume"]);
    assert_eq!((resumed.code, home.read("p/a.txt").as_str()), (0, "one\n"));
    assert!(resumed.stderr.contains("never"), "{}", resumed.stderr);
    assert_eq!((home.read("p/b.txt").as_str(), home.run(&["verify"]).code), ("two\n", 0));
}

#[test]
fn where_rules_move_a_yes_is_asked_for_again() {
    let home = Home::new();
    three_edits(&home, ASKS);
    home.run(&["run", "p"]);
    home.run(&["approve", "yes", "--run", id_of(&questions(&home)[0])]);
    three_edits(&home, &format!("# moved\n{ASKS}"));
    assert_eq!((home.run(&["resume"]).code, home.read("p/a.txt").as_str()), (7, "one\n"));
}

#[test]
fn what_is_typed_beyond_an_answer_answers_nothing() {
    let home = Home::new();
    let two = ["a", "b"].map(|file| {
        home.write(&format!("{file}.txt"), "one\n");
        let edit =
            json!({ "path": format!("{file}.txt"), "edits": [{ "old": "one", "new": "two" }] });
        json!({ "tool": "edit_file", "args": edit })
    });
    home.write("s.jsonl", &format!("{}\n{{\"say\": \"done\"}}\n", json!({ "calls": two })));
    let mut terminal = Terminal::start(home.command(&["run", "s.jsonl"]));
    assert!(terminal.asks(), "{}", terminal.text());
    terminal.types(&format!("n{}y\n", "o".repeat(1_023)));
    assert!(terminal.asks(), "{}", terminal.text());
    terminal.types("\n");
    let showed = terminal.end();
    assert_eq!(showed.code, 0, "{}", showed.text);
    assert_eq!((home.read("a.txt").as_str(), home.read("b.txt").as_str()), ("one\n", "one\n"));
}
