//! `tooltape init`.

use std::fs;

use expect_test::expect;
use serde_json::json;

use crate::home::Home;

#[test]
fn init_writes_a_project_whose_next_commands_work() {
    let home = Home::new();
    home.check(
        &["init", "new"],
        expect![[r#"
            exit 0
            --- stderr
            created new/tooltape.toml
            created new/session.jsonl
            next:
              tooltape run new
              tooltape call read_file path=tooltape.toml --workspace new
              tooltape tools list
        "#]],
    );
    let next = home.run(&["init", "other", "--json"]).json();
    for command in next["next"].as_array().unwrap() {
        let words: Vec<&str> = command.as_str().unwrap().split(' ').skip(1).collect();
        let ran = home.run(&words);
        assert_eq!(ran.code, 0, "{command}: {}", ran.transcript());
    }
    assert_eq!(next["created"], json!(["other/tooltape.toml", "other/session.jsonl"]));
}

#[test]
fn init_overwrites_nothing() {
    for name in ["tooltape.toml", "session.jsonl"] {
        let home = Home::new();
        home.write(name, "mine");
        let ran = home.run(&["init"]);
        assert_eq!(ran.code, 2, "{}", ran.transcript());
        assert!(ran.stderr.starts_with("error[file.exists]: "), "{}", ran.stderr);
        assert_eq!(home.read(name), "mine");
        assert_eq!(fs::read_dir(home.here()).unwrap().count(), 1);
    }
}
