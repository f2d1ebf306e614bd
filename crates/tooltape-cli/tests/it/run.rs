//! `tooltape run`.

use std::fs;

use expect_test::expect;
use serde_json::{Value, json};

use crate::home::{Home, root};

/// A script that asks, calls and answers.
const SCRIPT: &str = r#"
{"ask": "What is the hash of nothing?"}
{"say": "Let me see.", "calls": [{"tool": "hash", "args": {"text": ""}}, {"tool": "ekho"}]}
{"say": "It is af1349b9."}
"#;

#[test]
fn the_repair_example_mends_its_project_and_prints_the_run_as_it_happens() {
    let home = Home::new();
    std::os::unix::fs::symlink(root().join("examples"), home.here().join("examples")).unwrap();
    home.check(
        &["run", "examples/repair"],
        expect![[r#"
            exit 0
            --- stdout
            The fault was in `page_count` in `src/pages.py`: it rounded down, so a last page↩
             that is not full was never counted. It rounds up now:

                return (items + per_page - 1) // per_page

            The project's check, run in the sandbox, says OK. The tests are as they were.
            --- stderr
            run       RUN
            workspace HOME/state/tooltape/work/RUN (a copy of examples/repair/project)
            asked A test of this project fails. Find the fault, mend it, and say what you ch↩
            anged.
            turn 1 I will look around first.
              ✓ #1 list_dir {} · allow by tooltape.toml:13 · TIME · {"entries":[{"kind":"fil↩
            e","name":"README.md","size":305},{"kin…
            turn 2 The README, and what must hold.
              ✓ #2 read_file {"path": "README.md"} · allow by tooltape.toml:13 · TIME · {"ha↩
            sh":"d9eb93ddf48d48c77405656a7f1120d2e77d90a6d94f1fdaee1657…
              ✓ #3 read_file {"path": "tests/test_pages.py"} · allow by tooltape.toml:13 · T↩
            IME · {"hash":"40544930a608db2997d16be3ade6b7f96b53709df51f7d7c7ba64d…
            turn 3 So 21 entries must take 3 pages. Who counts pages?
              ✓ #4 grep {"pattern": "page_count", "glob": "src/**"} · allow by tooltape.toml↩
            :13 · TIME · {"files":[{"lines":[{"line":4,"text":"def page_count(items, per…
            turn 4 Now the code.
              ✗ #5 read_file {"path": "src/pages.py", "start": 1 · not executed: your JSON w↩
            as malformed: the text ends at line 1 column 36, expected `,` or `}`; you sent `↩
            {"path": "src/pages.py", "start": 1`
            turn 5 I left the JSON open. Again.
              ✓ #6 read_file {"path": "src/pages.py"} · allow by tooltape.toml:13 · TIME · {↩
            "hash":"386492e309743faf868da93595bc61ba5aa3e5e15745f37f5b026d…
            turn 6 `page_count` says 2. I could make the test expect that.
              ✗ #7 edit_file {"path": "tests/test_pages.py", "edits": [{"old": "page_count(2↩
            … · deny by tooltape.toml:20 · not executed: denied: the tests say what must hol↩
            d; change `src/` until it does
            turn 7 Fair enough: the fault is in `page_count`, which rounds down. The last pa↩
            ge may be short, so it must round up.
              ✓ #8 edit_file {"path": "src/pages.py", "edits": [{"old": "return items // per↩
            … · allow by tooltape.toml:15 · TIME · {"diff":"--- a/src/pages.py\n+++ b/src/pa↩
            ges.py\n@@ -5,7 +5,7 @…
            turn 8 Let me see it as it is now.
              ✓ #9 read_file {"path": "src/pages.py", "start": 4, "lines": 5} · allow by too↩
            ltape.toml:13 · TIME · {"hash":"95fec30a708131b7318d954bac06523e48fdfae8286973c9↩
            d893b9…
            turn 9 And let the project's own check decide.
              … #10 stdout: OK
              ✓ #10 shell {"command": "python3 -B tests/test_pages.py 2>&1 | tail -n 1"} · a↩
            llow by tooltape.toml:26 · TIME · {"cwd":".","exceeded":null,"exit_code":0,"prev↩
            iew":null,"set_as…
            ended by answer: 10 turns, 10 calls, 2 refused or failed
            next:
              diff -ru examples/repair/project HOME/state/tooltape/work/RUN  # what it chang↩
            ed
              tooltape show last  # what happened
              tooltape replay last  # the same again, without effects
              tooltape verify last  # that nobody altered it
        "#]],
    );
    let copies = home.copies();
    let [copy] = copies.as_slice() else { panic!("there is one copy: {copies:?}") };
    let mended = fs::read_to_string(copy.join("src/pages.py")).unwrap();
    assert!(mended.contains("return (items + per_page - 1) // per_page"), "{mended}");
    let tests = "tests/test_pages.py";
    let project = root().join("examples/repair/project");
    let same =
        |path: &str| fs::read(copy.join(path)).unwrap() == fs::read(project.join(path)).unwrap();
    assert!(same(tests) && same("README.md") && !same("src/pages.py"));
    // It works on a copy, so it can be run again.
    assert_eq!(home.run(&["run", "examples/repair", "-q"]).code, 0);
    assert_eq!(home.copies().len(), 2);
}

#[test]
fn a_script_file_is_played_where_one_is() {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    home.check(
        &["run", "s.jsonl"],
        expect![[r#"
            exit 0
            --- stdout
            It is af1349b9.
            --- stderr
            run       RUN
            workspace HOME/here
            asked What is the hash of nothing?
            turn 1 Let me see.
              ✓ #1 hash {"text": ""} · allow by default · TIME · af1349b9f5f9a1a6a0404dea36d↩
            cc9499bcb25c9adc112b7cc9a93cae41f3262
              ✗ #2 ekho · not executed: unknown tool `ekho`: did you mean `echo`?
            ended by answer: 2 turns, 2 calls, 1 refused or failed
            next:
              tooltape show last  # what happened
              tooltape replay last  # the same again, without effects
              tooltape verify last  # that nobody altered it
        "#]],
    );
}

#[test]
fn a_script_can_come_from_stdin() {
    let ran = Home::new().feed(&["run", "-", "-q"], SCRIPT.as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "It is af1349b9.\n", ""));
}

#[test]
fn a_run_is_summed_up_as_json() {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    let ran = home.run(&["run", "s.jsonl", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.json(),
        json!({
            "id": "RUN", "status": "ended", "stop": "answer", "answer": "It is af1349b9.",
            "turns": 2, "calls": 2, "errors": 1,
            "usage": { "input_tokens": 0, "output_tokens": 0 },
            "tape": "HOME/data/tooltape/runs.db", "in_doubt": [], "nested_in_doubt": [],
        })
    );
}

#[test]
fn every_event_is_printed_as_a_line_of_json() {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    let ran = home.run(&["run", "s.jsonl", "--jsonl"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "run.started",
            "model.asked",
            "model.turn",
            "call.proposed",
            "call.judged",
            "call.started",
            "call.settled",
            "call.proposed",
            "call.settled",
            "model.turn",
            "run.ended",
        ]
    );
    for (at, event) in events.iter().enumerate() {
        assert_eq!((&event["seq"], &event["run"]), (&json!(at), &json!("RUN")));
    }
    assert_eq!(events[6]["call"], 1);
    assert_eq!(events[0]["note"]["workspace"], "HOME/here");
}

#[test]
fn the_question_is_the_strongest_that_is_asked() {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    let asked = |args: &[&str]| {
        let ran = home.run(&[&["run", "s.jsonl", "--jsonl"], args].concat());
        let line = ran.stdout.lines().find(|line| line.contains("model.asked")).unwrap().to_owned();
        serde_json::from_str::<Value>(&line).unwrap()["text"].clone()
    };
    assert_eq!(asked(&[]), "What is the hash of nothing?");
    home.write("tooltape.toml", "[agent]\nask = \"From the file\"\n");
    assert_eq!(asked(&[]), "From the file");
    assert_eq!(asked(&["--set", "agent.ask=From the flag"]), "From the flag");
}

#[test]
fn a_script_that_ends_without_an_answer_is_a_failure() {
    let home = Home::new();
    home.write("s.jsonl", r#"{"calls": [{"tool": "hash", "args": {"text": ""}}]}"#);
    home.check(
        &["run", "s.jsonl", "-q"],
        expect![[r#"
            exit 5
            --- stderr
            error[model.failed]: the run failed after 1 turn: the model has no turn 2: it en↩
            ds after 1
              help: a script ends with a turn that calls nothing: see docs/script-format.md;↩
             executed
        "#]],
    );
    let ran = home.run(&["run", "s.jsonl", "--json"]);
    assert_eq!(ran.json()["status"], "failed");
    assert_eq!(ran.error()["code"], "model.failed");
}

#[test]
fn a_run_that_takes_too_many_turns_is_a_failure() {
    let home = Home::new();
    home.write("s.jsonl", SCRIPT);
    home.check(
        &["run", "s.jsonl", "-q", "--set", "agent.turns=1"],
        expect![[r#"
            exit 5
            --- stderr
            error[run.turns]: the run failed after 1 turn: the model may take no more
              help: give it more with `--set agent.turns=N`; executed
        "#]],
    );
}

#[test]
fn a_model_that_refuses_is_a_failure() {
    let home = Home::new();
    home.write("s.jsonl", r#"{"say": "I will not.", "stop": "refused"}"#);
    let ran = home.run(&["run", "s.jsonl", "--json"]);
    assert_eq!((ran.code, &ran.json()["stop"]), (5, &json!("refused")));
    assert_eq!(ran.error()["executed"], "not_executed");
}

#[test]
fn a_run_with_nobody_to_ask_pauses_and_yes_answers_in_advance() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let edit = r#"{"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}"#;
    let script = format!(
        "{{\"calls\": [{{\"tool\": \"edit_file\", \"args\": {edit}}}]}}\n{{\"say\": \"done\"}}\n"
    );
    home.write("s.jsonl", &script);
    home.check(
        &["run", "s.jsonl"],
        expect![[r#"
            exit 7
            --- stderr
            run       RUN
            workspace HOME/here
            asked Play the script.
            turn 1
            paused somebody must answer whether call #1 may run
            error[approval.needed]: the run is paused: somebody must answer whether call #1 ↩
            may run
              help: `tooltape approve ls` lists what it asks; answer with `tooltape approve ↩
            yes ID` or `tooltape approve no ID`, then `tooltape resume`; not executed
        "#]],
    );
    assert_eq!(home.read("a.txt"), "one\n");
    let ran = home.run(&["run", "s.jsonl", "--yes", "-q"]);
    assert_eq!((ran.code, home.read("a.txt").as_str()), (0, "two\n"));
}

#[test]
fn a_run_needs_a_script() {
    let home = Home::new();
    home.check(
        &["run", "."],
        expect![[r#"
            exit 2
            --- stderr
            error[config.incomplete]: there is no script: `agent.script` is not set
              help: name a script, or set `agent.script` in `tooltape.toml`; not executed
        "#]],
    );
}

#[test]
fn what_a_model_says_cannot_draw_on_the_terminal() {
    let home = Home::new();
    let script = concat!(
        r#"{"say": "a\u001b[2J\u202e\u200bb\u009b31m", "#,
        r#""calls": [{"tool": "echo", "args": {"text": "\u001b]0;x\u0007"}}, "#,
        r#"{"tool": "\u001b[31mx\nturn 9", "text": "\r\u2066"}]}"#,
        "\n{\"say\": \"fine\"}\n"
    );
    home.write("s.jsonl", script);
    let ran = home.run(&["run", "s.jsonl"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{}", ran.stderr);
    assert!(!ran.stderr.contains(['\u{202e}', '\u{200b}', '\u{2066}']), "{}", ran.stderr);
    assert!(ran.stderr.contains(r"a\u{1b}[2J\u{202e}\u{200b}b\u{9b}31m"), "{}", ran.stderr);
    assert!(!ran.stderr.lines().any(|line| line.starts_with("turn 9")), "{}", ran.stderr);
}

#[test]
fn json_spells_out_what_a_terminal_would_obey() {
    let home = Home::new();
    home.write("s.jsonl", "{\"say\": \"a\u{202e}\u{9b}\u{e0041}b\"}\n");
    let ran = home.run(&["run", "s.jsonl", "--json"]);
    assert!(ran.stdout.contains(r"a\u202e\u009b\udb40\udc41b"), "{}", ran.stdout);
    assert_eq!(ran.json()["answer"], "a\u{202e}\u{9b}\u{e0041}b");
    // A pipe gets the answer as it is.
    assert_eq!(home.run(&["run", "s.jsonl", "-q"]).stdout, "a\u{202e}\u{9b}\u{e0041}b\n");
}

#[test]
fn a_verbose_run_shows_everything_in_full() {
    let home = Home::new();
    let long = "x".repeat(300);
    let call = format!(r#"{{"calls": [{{"tool": "echo", "args": {{"text": "{long}"}}}}]}}"#);
    home.write("s.jsonl", &[call.as_str(), r#"{"say": "a"}"#].join("\n"));
    assert!(!home.run(&["run", "s.jsonl"]).stderr.contains(&long));
    let ran = home.run(&["run", "s.jsonl", "-v"]);
    assert_eq!(ran.stderr.matches(&long).count(), 2, "{}", ran.stderr);
}
