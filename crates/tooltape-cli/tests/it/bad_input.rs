//! Bad input: a code, a hint, the words *not executed*, the right exit code, and nothing written
//! but the tape.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use expect_test::expect;

use crate::home::{Home, Ran};

/// Asserts that a refusal says what it must, in both forms, and left nothing behind.
fn refused(home: &Home, run: impl Fn(&[&str]) -> Ran, exit: i32, code: &str) {
    let before = tree(home);
    let ran = run(&[]);
    assert_eq!(ran.code, exit, "{}", ran.transcript());
    assert!(ran.stderr.starts_with(&format!("error[{code}]: ")), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n  help: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("not executed"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    let ran = run(&["--json"]);
    assert_eq!(ran.code, exit, "{}", ran.transcript());
    let error = ran.error();
    assert_eq!(error["code"], code);
    assert_eq!(error["executed"], "not_executed");
    assert!(error["hint"].as_str().unwrap().ends_with("; not executed"), "{error}");
    assert_eq!(tree(home), before);
}

fn args(home: &Home, args: &[&str], exit: i32, code: &str) {
    refused(home, |more| home.run(&[args, more].concat()), exit, code);
}

/// Every file of the home, but for the tape: that a call was refused is recorded, too.
fn tree(home: &Home) -> Vec<String> {
    let mut paths = vec![home.here().parent().unwrap().to_owned()];
    let data = paths[0].join("data");
    let mut at = 0;
    while at < paths.len() {
        if paths[at].is_dir() {
            let below = fs::read_dir(&paths[at]).unwrap();
            let below = below.map(|entry| entry.unwrap().path());
            paths.extend(below.filter(|path| *path != data));
        }
        at += 1;
    }
    let mut names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn an_unknown_tool_is_refused() {
    let home = Home::new();
    args(&home, &["call", "hsah", "text=a"], 5, "tool.unknown");
    args(&home, &["tools", "show", "hsah"], 5, "tool.unknown");
    home.check(
        &["call", "hsah"],
        expect![[r#"
            exit 5
            --- stderr
            error[tool.unknown]: unknown tool `hsah`: did you mean `hash`?
              help: `tooltape tools list` lists the tools; not executed
        "#]],
    );
}

#[test]
fn bad_json_is_refused_at_its_place() {
    let home = Home::new();
    let texts = [
        "{",
        "[]",
        "nul",
        r#"{"text":"a","text":"b"}"#,
        r#"{"text":"\ud800"}"#,
        "{} {}",
        "\u{feff}{}",
    ];
    for text in texts {
        let ran = home.run(&["call", "echo", "--args-json", text]);
        assert_eq!(ran.code, 8, "{text}: {}", ran.stderr);
    }
    args(&home, &["call", "echo", "--args-json", r#"{"text": "#], 8, "args.malformed");
    home.check(
        &["call", "echo", "--args-json", r#"{"text": "a", "text": "b"}"#],
        expect![[r#"
            exit 8
            --- stderr
            error[args.malformed]: your JSON was malformed: found the key `text` a second ti↩
            me in one object, at line 1 column 15; you sent `{"text": "a", "text": "b"}`
               ╭─[echo arguments:1:15]
             1 │ {"text": "a", "text": "b"}
               ·               ┬
               ·               ╰── found the key `text` a second time in one object, at line↩
             1 column 15
               ╰────
              help: `tooltape tools show echo` prints what it takes; not executed
        "#]],
    );
}

#[test]
fn a_wrong_type_is_refused_at_its_place() {
    let home = Home::new();
    args(&home, &["call", "read_file", "path=a", "lines=many"], 8, "args.malformed");
    args(&home, &["call", "read_file", "path=a", r#"lines="9""#], 8, "args.invalid");
    home.check(
        &["call", "read_file", "--args-json", r#"{"path": "a.txt", "lines": "50"}"#],
        expect![[r#"
            exit 8
            --- stderr
            error[args.invalid]: arguments could not be deserialised: /lines: expected integ↩
            er or null, found string `"50"`: did you mean `50`?
               ╭─[read_file arguments:1:28]
             1 │ {"path": "a.txt", "lines": "50"}
               ·                            ──┬─
               ·                              ╰── /lines: expected integer or null, found st↩
            ring `"50"`: did you mean `50`?
               ╰────
              help: `tooltape tools show read_file` prints what it takes; not executed
        "#]],
    );
}

#[test]
fn an_extra_field_is_refused_at_its_place() {
    let home = Home::new();
    args(&home, &["call", "echo", "text=a", "more=b"], 8, "args.invalid");
    home.check(
        &["call", "echo", "txt=a"],
        expect![[r#"
            exit 8
            --- stderr
            error[args.invalid]: arguments could not be deserialised: unknown field `txt`: d↩
            id you mean `text`?
               ╭─[echo arguments:1:8]
             1 │ {"txt":"a"}
               ·        ─┬─
               ·         ╰── unknown field `txt`: did you mean `text`?
               ╰────
              help: `tooltape tools show echo` prints what it takes; not executed
        "#]],
    );
}

#[test]
fn a_hidden_field_is_refused() {
    let home = Home::new();
    for field in ["files", "workspace", "random", "run"] {
        let text = format!(r#"{{"path":"a.txt","{field}":"/"}}"#);
        args(&home, &["call", "read_file", "--args-json", &text], 8, "args.invalid");
    }
}

#[test]
fn a_missing_field_is_refused() {
    let home = Home::new();
    args(&home, &["call", "read_file"], 8, "args.invalid");
    args(&home, &["call", "hash"], 8, "args.refused");
}

#[test]
fn huge_json_is_refused() {
    let home = Home::new();
    let text = format!(r#"{{"text":"{}"}}"#, "a".repeat(2 << 20));
    let run = |more: &[&str]| {
        let args = [&["call", "echo", "--args-json", "-"], more].concat();
        let ran = home.feed(&args, text.as_bytes());
        assert!(ran.stderr.len() < 4_096, "the refusal has {} bytes", ran.stderr.len());
        ran
    };
    refused(&home, run, 8, "args.malformed");
}

#[test]
fn deep_json_is_refused() {
    let home = Home::new();
    let text = format!(r#"{{"text":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    args(&home, &["call", "echo", "--args-json", &text], 8, "args.malformed");
}

#[test]
fn arguments_that_are_not_utf_8_are_refused_and_get_a_reply() {
    let home = Home::new();
    let ran = |before: &[&str], bytes: &[u8], after: &[&str]| {
        let mut command = home.command(before);
        command.arg(OsStr::from_bytes(bytes)).args(after);
        home.ran(command.output().unwrap())
    };
    let typed: [(&[&str], &[u8]); 3] = [
        (&["call", "echo"], b"text=\xff"),
        (&["call", "echo"], b"t\xffxt=a"),
        (&["call", "echo", "--args-json"], b"{\"text\":\"\xff\"}"),
    ];
    for (before, bytes) in typed {
        refused(&home, |more| ran(before, bytes, more), 8, "args.malformed");
        let reply = ran(before, bytes, &["--json"]);
        assert_eq!(reply.json()["executed"], "not_executed");
    }
    // What is no argument of a call is a usage error.
    refused(&home, |more| ran(&["call", "echo"], b"\xff", more), 2, "usage.invalid");
    refused(&home, |more| ran(&["call"], b"ech\xff", more), 2, "usage.invalid");
}

#[test]
fn a_pipe_is_neither_a_configuration_nor_a_script() {
    let home = Home::new();
    let pipe = |name: &str| {
        let made = Command::new("mkfifo").arg(home.here().join(name)).status().unwrap();
        assert!(made.success());
    };
    pipe("pipe.jsonl");
    pipe("pipe.toml");
    args(&home, &["run", "pipe.jsonl"], 2, "script.unreadable");
    args(&home, &["run", "pipe.toml"], 2, "script.unreadable");
    home.write("tooltape.toml", "[agent]\nscript = \"pipe.jsonl\"\n");
    args(&home, &["run", "."], 2, "script.unreadable");
    fs::remove_file(home.here().join("tooltape.toml")).unwrap();
    pipe("tooltape.toml");
    args(&home, &["run", "."], 2, "config.unreadable");
    args(&home, &["call", "hash", "text="], 2, "config.unreadable");
}

#[test]
fn stdin_that_is_not_utf_8_is_refused() {
    let home = Home::new();
    let run = |more: &[&str]| {
        let args = [&["call", "echo", "--args-json", "-"], more].concat();
        home.feed(&args, b"{\"text\":\"\xff\"}")
    };
    refused(&home, run, 8, "args.malformed");
}

#[test]
fn a_missing_file_is_refused() {
    let home = Home::new();
    args(&home, &["run", "nowhere"], 5, "file.missing");
    home.write("tooltape.toml", "[agent]\nscript = \"gone.jsonl\"\n");
    args(&home, &["run", "."], 5, "file.missing");
    args(&home, &["call", "hash", "text=", "--workspace", "gone"], 5, "workspace.missing");
}

#[test]
fn bad_toml_is_refused_at_its_place() {
    let home = Home::new();
    home.write("tooltape.toml", "[agent\n");
    args(&home, &["run", "."], 2, "config.invalid");
    args(&home, &["call", "hash", "text="], 2, "config.invalid");
    args(&home, &["tools", "list"], 2, "config.invalid");
    home.write("tooltape.toml", "[agent]\nmodel = \"script\"\nmodle = \"x\"\n");
    home.check(
        &["tools", "list"],
        expect![[r#"
            exit 2
            --- stderr
            error[config.invalid]: tooltape.toml:3:1: unknown field `modle`, expected one of↩
             `model`, `script`, `ask`, `instructions`, `turns`, `tokens`
               ╭─[tooltape.toml:3:1]
             2 │ model = "script"
             3 │ modle = "x"
               · ──┬──
               ·   ╰── unknown field `modle`, expected one of `model`, `script`, `ask`, `ins↩
            tructions`, `turns`, `tokens`
               ╰────
              help: `tooltape config schema` prints what a configuration may hold; not execu↩
            ted
        "#]],
    );
}

#[test]
fn a_bad_script_is_refused_at_its_place() {
    let home = Home::new();
    home.write("s.jsonl", "{\"say\": \"a\", \"calls\": []}\n{\"sya\": \"b\"}\n");
    args(&home, &["run", "s.jsonl"], 2, "script.invalid");
    home.check(
        &["run", "s.jsonl"],
        expect![[r#"
            exit 2
            --- stderr
            error[script.invalid]: s.jsonl: line 2, column 6: unknown field `sya`, expected ↩
            one of `ask`, `say`, `calls`, `stop`
               ╭─[s.jsonl:2:6]
             1 │ {"say": "a", "calls": []}
             2 │ {"sya": "b"}
               ·      ┬
               ·      ╰── unknown field `sya`, expected one of `ask`, `say`, `calls`, `stop`↩

               ╰────
              help: one JSON object a line: see docs/script-format.md; not executed
        "#]],
    );
    fs::write(home.here().join("b.jsonl"), b"\xff\n").unwrap();
    args(&home, &["run", "b.jsonl"], 2, "script.unreadable");
}

#[test]
fn an_unknown_provider_is_a_usage_error() {
    let home = Home::new();
    args(&home, &["tools", "export", "--provider", "opneai"], 2, "usage.invalid");
    args(&home, &["tools", "lint", "--provider", "none"], 2, "usage.invalid");
}

#[test]
fn what_cannot_be_typed_is_a_usage_error() {
    let home = Home::new();
    let typed: [&[&str]; 8] = [
        &[],
        &["cal"],
        &["call"],
        &["call", "hash", "text"],
        &["call", "hash", "=a"],
        &["call", "hash", "text=a", "--timeout", "5"],
        &["run", ".", "--pace", "1e9s"],
        &["run", ".", "--pace", "99999999999h"],
    ];
    for words in typed {
        args(&home, words, 2, "usage.invalid");
    }
}

#[test]
fn a_refusal_shows_nothing_that_a_terminal_would_obey() {
    let home = Home::new();
    let ran = home.run(&["call", "a\u{1b}]0;x\u{7}\u{202e}b", "x=\u{1b}[2J"]);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains(r"`a\u{1b}]0;x\u{7}\u{202e}b`"), "{}", ran.stderr);
    let ran = home.run(&["call", "echo", "text=a", "\u{1b}[2J\u{9b}=\u{200b}"]);
    assert_eq!(ran.code, 8);
    assert!(ran.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{200b}'));
}
