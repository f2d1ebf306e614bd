//! A program with tools of its own, which is the example `own_tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use expect_test::expect;
use serde_json::json;

use crate::home::{Home, root};

/// A home for the example, with a shelf to grant.
pub(crate) fn own_home() -> Home {
    shelfless_home().with("SHELF", "Emma,Ulysses")
}

fn shelfless_home() -> Home {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    Home::of(PROGRAM.get_or_init(|| program("own_tools")).clone())
}

/// An example beside this test, built again if a filtered test run left it behind its sources.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let program = profile.join("examples").join(name);
    let built = program.metadata().and_then(|metadata| metadata.modified());
    if built.is_ok_and(|built| built >= newest(&root().join("crates"))) {
        return program;
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--locked", "--offline", "-p", "tooltape-cli", "--example", name]);
    build.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    build.env("CARGO_TARGET_DIR", profile.parent().unwrap());
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// When the newest source below a folder was changed; tests are no source of a program.
fn newest(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let times = entries.filter(|path| !path.ends_with("tests")).map(|path| match path.is_dir() {
        true => newest(&path),
        false => path.metadata().unwrap().modified().unwrap(),
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

#[test]
fn any_programs_tools_get_the_same_command_line() {
    let home = own_home();
    let names: Vec<_> = home.run(&["tools", "list", "--json"]).json().as_array().unwrap().clone();
    let names: Vec<&str> = names.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        &names[..8],
        ["echo", "hash", "read_artifact", "list_dir", "read_file", "glob", "grep", "write_file"]
    );
    assert!(names.contains(&"lend"));
    home.check(
        &["call", "lend", "title=Emma", "--yes"],
        expect![[r#"
            exit 0
            --- stdout
            Here is Emma.
            --- stderr
              ✓ #1 lend {"title":"Emma"} · ask by default, answered yes · TIME · Here is Emm↩
            a.
        "#]],
    );
}

#[test]
fn a_tool_that_wants_a_confirmation_gets_one_unless_a_rule_names_it() {
    let home = own_home();
    let lend = ["call", "lend", "title=Emma", "-q"];
    let code = |policy: &str| {
        home.write("tooltape.toml", policy);
        home.run(&lend).code
    };
    assert_eq!(code(""), 7);
    assert_eq!(code("[policy]\ndefault = \"allow\"\n"), 7);
    assert_eq!(code("[[policy.rules]]\nverdict = \"allow\"\n"), 7);
    let named = "[[policy.rules]]\ntool = \"lend\"\nverdict = \"allow\"\n";
    assert_eq!(code(named), 7, "a project takes it away only where it is trusted");
    home.write(home.user_config(), named);
    assert_eq!(code(""), 0);
}

#[test]
fn a_tool_that_panics_is_answered_and_nothing_else_is_printed() {
    own_home().check(
        &["call", "divide", "a=1", "b=0"],
        expect![[r#"
            exit 5
            --- stderr
            error[tool.panicked]: the tool panicked: panic: attempt to divide by zero
              help: look at what `divide` was to do before you repeat it; whether it was exe↩
            cuted is unknown
        "#]],
    );
}

#[test]
fn a_fatal_failure_ends_a_run_with_5() {
    let home = own_home();
    home.write("s.jsonl", "{\"calls\": [{\"tool\": \"close\"}]}\n{\"say\": \"never said\"}\n");
    home.check(
        &["run", "s.jsonl"],
        expect![[r#"
            exit 5
            --- stderr
            run       RUN
            workspace HOME/here
            asked Play the script.
            turn 1
              ✗ #1 close · allow by default · TIME · failed: the house is closed
            error[run.failed]: the run failed after 1 turn: close: the house is closed
              help: the last call says what happened; executed
        "#]],
    );
    let ran = home.run(&["run", "s.jsonl", "--json"]);
    let summary = ran.json();
    assert_eq!((&summary["status"], &summary["turns"]), (&json!("failed"), &json!(1)));
    assert_eq!(ran.error()["executed"], "executed");
}

#[test]
fn a_tool_that_takes_what_nobody_granted_is_named_before_the_first_call() {
    let home = shelfless_home();
    home.check(
        &["call", "hash", "text="],
        expect![[r#"
            exit 1
            --- stderr
            error[grants.missing]: `lend` needs `Shelf`, `count` needs `Shelf`, which nobody↩
             granted
              help: grant it with `tooltape_cli::Cli::grant`, or disable the tool; not execu↩
            ted
        "#]],
    );
    assert_eq!(home.run(&["call", "hash", "text=", "--set", "tools.allow=hash"]).code, 0);
    assert_eq!(home.run(&["tools", "list"]).code, 0);
}

#[test]
fn lint_says_what_a_tool_leaves_undeclared() {
    let home = own_home();
    let findings = home.run(&["tools", "lint", "--json"]).json();
    let codes = |tool: &str| -> Vec<String> {
        let of_tool = findings
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["tool"] == tool && finding["providers"] == json!([]));
        of_tool.map(|finding| finding["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        codes("mumble"),
        [
            "spec.determinism:mumble",
            "spec.bounds:mumble",
            "spec.errors:mumble",
            "spec.capability-form:mumble",
            "spec.property:mumble:/properties/words",
        ]
    );
    assert_eq!(codes("divide"), ["spec.output:divide"]);
    assert_eq!(codes("count"), ["spec.determinism:count", "spec.capabilities:count"]);
    assert_eq!(codes("lend"), Vec::<String>::new());
}
