//! `tooltape call`.

use expect_test::expect;
use serde_json::{Value, json};

use crate::home::Home;

/// The BLAKE3 hash of nothing.
const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

#[test]
fn a_call_prints_what_the_tool_returned() {
    Home::new().check(
        &["call", "hash", "text="],
        expect![[r#"
            exit 0
            --- stdout
            af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262
            --- stderr
              ✓ #1 hash {"text":""} · allow by default · TIME · af1349b9f5f9a1a6a0404dea36dc↩
            c9499bcb25c9adc112b7cc9a93cae41f3262
        "#]],
    );
}

#[test]
fn a_call_prints_its_whole_reply_as_json() {
    let ran = Home::new().run(&["call", "hash", "text=", "--json"]);
    let reply = ran.json();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    for key in [
        "tool",
        "call_id",
        "executed",
        "is_error",
        "content",
        "value",
        "args_hash",
        "result_hash",
        "elapsed_us",
    ] {
        assert!(reply.get(key).is_some(), "`{key}` is missing in {reply}");
    }
    assert_eq!(reply["value"], EMPTY);
    assert_eq!(reply["tool"], "hash");
    assert_eq!(reply["executed"], "executed");
    assert_eq!(reply["is_error"], false);
}

#[test]
fn a_reply_that_is_an_error_is_printed_as_json_too() {
    let ran = Home::new().run(&["call", "hsah", "--json"]);
    assert_eq!(ran.code, 5);
    let reply = ran.json();
    assert_eq!(reply["executed"], "not_executed");
    assert_eq!(reply["is_error"], true);
    assert_eq!(reply["fault"]["code"], "tool.unknown");
    let error = ran.error();
    assert_eq!(error["code"], "tool.unknown");
    assert_eq!(error["executed"], "not_executed");
    assert!(error["hint"].as_str().unwrap().ends_with("not executed"));
    assert!(error["run"].is_string());
}

#[test]
fn strings_are_taken_as_they_are_and_all_else_is_json() {
    let home = Home::new();
    home.write("a.txt", "one\ntwo\nthree\n");
    for (value, text) in
        [("012", "012"), ("true", "true"), ("{\"a\":1}", "{\"a\":1}"), ("a=b", "a=b")]
    {
        let ran = home.run(&["call", "echo", &format!("text={value}"), "--json"]);
        assert_eq!(ran.json()["value"], json!({ "text": text }));
    }
    let reply =
        home.run(&["call", "read_file", "path=a.txt", "start=2", "lines=1", "--json"]).json();
    assert_eq!(reply["value"]["text"], "two\n");
    let edits = r#"edits=[{"old":"two","new":"2"}]"#;
    let ran = home.run(&["call", "edit_file", "path=a.txt", edits, "--yes"]);
    assert_eq!((ran.code, home.read("a.txt").as_str()), (0, "one\n2\nthree\n"));
}

#[test]
fn a_value_that_is_json_cannot_smuggle_in_another_argument() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let ran = home.run(&["call", "read_file", "path=a.txt", r#"start=1,"lines":1"#]);
    assert_eq!(ran.code, 8);
    assert!(ran.stderr.contains("args.malformed"), "{}", ran.stderr);
}

#[test]
fn arguments_can_be_one_json_object_from_a_flag_or_stdin() {
    let home = Home::new();
    let ran = home.run(&["call", "echo", "--args-json", r#"{"text":"012"}"#, "--json"]);
    assert_eq!(ran.json()["value"], json!({ "text": "012" }));
    let ran = home.feed(&["call", "echo", "--args-json", "-", "--json"], br#"{"text":"a"}"#);
    assert_eq!(ran.json()["value"], json!({ "text": "a" }));
    let ran = home.run(&["call", "echo", "text=a", "--args-json", "{}"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn a_denied_call_exits_with_6_and_yes_does_not_help() {
    let home = Home::new();
    home.write("tooltape.toml", "[policy]\ndefault = \"deny\"\n");
    for more in [&[][..], &["--yes"]] {
        let args = [&["call", "hash", "text="], more].concat();
        home.check(
            &args,
            expect![[r#"
                exit 6
                --- stderr
                error[policy.denied]: this run does not allow it (rule `tooltape.toml:2`)
                  help: `tooltape config explain policy.rules` prints the rules; not executed
            "#]],
        );
    }
}

#[test]
fn a_call_that_must_be_asked_about_exits_with_7_where_nobody_can_be_asked() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let args = ["call", "edit_file", "path=a.txt", r#"edits=[{"old":"one","new":"two"}]"#];
    home.check(
        &args,
        expect![[r#"
            exit 7
            --- stderr
            error[approval.needed]: this call needs an approval, and nobody can be asked (ru↩
            le `default`)
              help: say yes with `--yes`, or add a rule to `tooltape.toml`; not executed
        "#]],
    );
    assert_eq!(home.read("a.txt"), "one\n");
    let yes = [&args[..], &["--yes", "-q"]].concat();
    assert_eq!(home.run(&yes).code, 0);
    assert_eq!(home.read("a.txt"), "two\n");
}

#[test]
fn a_tool_that_fails_exits_with_5_and_says_that_nothing_was_done() {
    let home = Home::new();
    let ran = home.run(&["call", "read_file", "path=nowhere.txt"]);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("not executed"), "{}", ran.stderr);
}

#[test]
fn a_dry_run_shows_the_decision_and_executes_nothing() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let edit = ["call", "edit_file", "path=a.txt", r#"edits=[{"old":"one","new":"two"}]"#];
    home.check(
        &[&edit[..], &["--dry-run", "--yes"]].concat(),
        expect![[r#"
            exit 0
            --- stdout
            ask by default: edit_file@0.1.0 {"edits":[{"new":"two","old":"one"}],"path":"a.t↩
            xt"}
            --- stderr
            not executed: this was a dry run
        "#]],
    );
    let shown = home.run(&[&edit[..], &["--dry-run", "--json"]].concat()).json();
    assert_eq!(shown["verdict"], "ask");
    assert_eq!(shown["executed"], "not_executed");
    assert_eq!(home.read("a.txt"), "one\n");
    assert_eq!(home.run(&["call", "edit_file", "path=a.txt", "--dry-run"]).code, 8);
    assert_eq!(home.run(&["call", "nothing", "--dry-run"]).code, 5);
}

#[test]
fn the_same_call_has_the_same_hashes_however_it_is_spelled() {
    let home = Home::new();
    let hashes = |args: &[&str]| {
        let reply: Value = home.run(&[args, &["--json"]].concat()).json();
        (reply["args_hash"].clone(), reply["result_hash"].clone())
    };
    let typed = hashes(&["call", "echo", "text=é"]);
    assert_eq!(typed, hashes(&["call", "echo", "--args-json", r#" { "text" : "\u00e9" } "#]));
}

#[test]
fn a_disabled_tool_is_not_there() {
    let home = Home::new();
    home.check(
        &["call", "hash", "text=", "--set", "tools.disable=hash"],
        expect![[r#"
            exit 5
            --- stderr
            error[tool.unknown]: unknown tool `hash`
              help: the configuration takes it away: see `tooltape config explain tools.disa↩
            ble`; not executed
        "#]],
    );
}

#[test]
fn a_quiet_call_prints_the_result_alone() {
    Home::new().check(
        &["call", "echo", "text=a", "-q"],
        expect![[r#"
            exit 0
            --- stdout
            {"text":"a"}
        "#]],
    );
}
