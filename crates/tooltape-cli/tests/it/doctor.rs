//! `tooltape doctor`, and processes that the command line runs.

use serde_json::{Value, json};

use crate::home::Home;

#[test]
fn a_doctor_says_of_every_part_whether_it_works() {
    let home = Home::new();
    let ran = home.run(&["doctor", "--json"]);
    let found = ran.json();
    assert_eq!((ran.code, &found["sandbox"]), (0, &json!(true)), "{found}");
    let parts = found["parts"].as_array().unwrap();
    let words: Vec<_> = parts.iter().map(|part| part["part"].as_str().unwrap()).collect();
    let expected =
        ["platform", "bubblewrap", "namespaces", "landlock", "seccomp", "limits", "helper"];
    assert_eq!(words, expected);
    let shown = home.run(&["doctor"]).stdout;
    assert_eq!(shown.lines().filter(|line| line.starts_with('✓')).count(), parts.len());
}

#[test]
fn a_command_runs_in_the_sandbox_and_its_reply_says_so() {
    let home = Home::new();
    let call = |flags: &[&str]| -> Value {
        let args = ["call", "shell", "command=echo $HOME; echo made > a.txt", "--yes", "--json"];
        let ran = home.run(&[&args[..], flags].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json()
    };
    let reply = call(&[]);
    assert_eq!(reply["enforced_by"], "sandbox", "{reply}");
    assert_eq!(reply["value"]["stdout"], "/tmp\n", "{reply}");
    assert_eq!(reply["value"]["warning"], Value::Null);
    assert_eq!(home.read("a.txt"), "made\n");
    let reply = call(&["--unsafe-no-sandbox"]);
    assert_ne!(reply["enforced_by"], "sandbox", "{reply}");
    let warning = reply["value"]["warning"].as_str().unwrap();
    assert!(warning.contains("without a sandbox"), "{reply}");
}

#[test]
fn what_a_process_writes_cannot_write_to_the_terminal() {
    let home = Home::new();
    let evil = r"command=printf '\033]52;c;ZXZpbA==\007\033[2J\033]0;t\007\033]8;;http://x\007'";
    let ran = home.run(&["call", "shell", evil, "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!printed.contains('\u{1b}') && !printed.contains('\u{7}'), "{printed:?}");
}
