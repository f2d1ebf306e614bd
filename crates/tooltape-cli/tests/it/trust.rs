//! What a project may decide by itself, and what only a user who trusts it lets it.

use serde_json::json;

use crate::home::Home;
use crate::own_tools::{own_home, program};
use crate::policy::decides;

const EDIT: [&str; 3] = ["edit_file", "path=a", r#"edits=[{"old":"a","new":"b"}]"#];
const SHELL: [&str; 2] = ["shell", "command=true"];
const BOOK: [&str; 3] = ["book", "entry=1", "ms=0"];
const LEND: [&str; 2] = ["lend", "title=Emma"];
const ALLOW: &str = "[policy]\ndefault = \"allow\"\n";
const ALLOW_EACH: &str = "[[policy.rules]]\nverdict = \"allow\"\n";
const UNTRUSTED: &str = "the project is not trusted";

/// A home with a tool of which nobody knows how far it reaches.
fn reaching() -> Home {
    Home::of(program("ledger"))
}

fn verdict(home: &Home, policy: &str, call: &[&str]) -> String {
    decides(home, policy, call).0
}

#[test]
fn a_project_decides_about_its_own_files_and_a_user_about_the_rest() {
    for policy in [ALLOW, ALLOW_EACH] {
        let home = reaching();
        assert_eq!(verdict(&home, policy, &EDIT), "allow");
        assert_eq!(verdict(&home, policy, &SHELL), "allow", "it is in the box, and has no network");
        assert_eq!(decides(&home, policy, &BOOK), ("ask".into(), UNTRUSTED.into()));
        assert_eq!(home.run(&[&["call"], &BOOK[..]].concat()).code, 7);
    }
}

#[test]
fn trust_is_for_a_configuration_as_it_is_and_ends_with_it() {
    let home = reaching();
    assert_eq!(verdict(&home, ALLOW, &BOOK), "ask");
    let trusted = home.run(&["trust", "--json"]).json();
    assert_eq!((&trusted["trusted"], &trusted["was_trusted"]), (&json!(true), &json!(false)));
    assert_eq!(trusted["allows"], json!(["tooltape.toml:2: whatever no rule decides"]));
    assert_eq!(verdict(&home, ALLOW, &BOOK), "allow");
    assert_eq!(verdict(&home, &format!("{ALLOW}\n"), &BOOK), "ask", "one byte is another");
    assert_eq!(verdict(&home, ALLOW, &BOOK), "allow", "it is what was trusted");
    assert_eq!(home.run(&["trust", "--withdraw"]).code, 0);
    assert_eq!(verdict(&home, ALLOW, &BOOK), "ask");
}

#[test]
fn a_user_who_allows_all_or_names_a_tool_need_not_trust() {
    let home = reaching();
    home.write(home.user_config(), ALLOW);
    assert_eq!(verdict(&home, ALLOW_EACH, &BOOK), "allow");
    home.write(home.user_config(), "[[policy.rules]]\ntool = \"book\"\nverdict = \"allow\"\n");
    assert_eq!(verdict(&home, ALLOW, &BOOK), "allow");
    home.write(home.user_config(), "[policy]\ndefault = \"deny\"\n");
    home.write("tooltape.toml", ALLOW_EACH);
    assert_eq!(home.run(&["trust"]).code, 0);
    assert_eq!(verdict(&home, ALLOW_EACH, &BOOK), "deny", "trust is no more than the user says");
}

#[test]
fn a_project_takes_no_confirmation_away_that_a_tool_wants() {
    let home = own_home();
    let named = "[[policy.rules]]\ntool = \"lend\"\nverdict = \"allow\"\n";
    assert_eq!(decides(&home, named, &LEND), ("ask".into(), UNTRUSTED.into()));
    assert_eq!(home.run(&["trust"]).code, 0);
    assert_eq!(verdict(&home, named, &LEND), "allow");
}

#[test]
fn a_command_with_a_way_out_or_without_walls_is_not_the_projects_to_allow() {
    let home = Home::new();
    home.write(home.user_config(), "[http]\nallow = [\"example.com\"]\n");
    assert_eq!(decides(&home, ALLOW, &SHELL), ("ask".into(), UNTRUSTED.into()));
    assert_eq!(verdict(&home, ALLOW, &EDIT), "allow");
    let home = Home::new();
    let bare = [&SHELL[..], &["--unsafe-no-sandbox"]].concat();
    assert_eq!(decides(&home, ALLOW, &bare), ("ask".into(), UNTRUSTED.into()));
}

#[test]
fn there_must_be_something_to_trust_and_a_place_apart_to_note_it() {
    let home = Home::new();
    let ran = home.run(&["trust", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (5, json!("trust.nothing")));
    let home = reaching();
    home.write("tooltape.toml", ALLOW);
    let inside = |args: &[&str]| {
        let mut command = home.command(args);
        home.ran(command.env("XDG_DATA_HOME", home.here().join("data")).output().unwrap())
    };
    let ran = inside(&["trust", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (5, json!("trust.unusable")));
    assert_eq!(inside(&[&["call"], &BOOK[..]].concat()).code, 7);
}

#[test]
fn another_projects_trust_is_not_to_be_had_by_a_link() {
    let home = reaching();
    home.write("a/tooltape.toml", ALLOW).write("b/other", "");
    assert_eq!(home.run(&["trust", "a"]).code, 0);
    std::os::unix::fs::symlink("../a/tooltape.toml", home.here().join("b/tooltape.toml")).unwrap();
    let ran = home.run(&["trust", "b", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (5, json!("trust.unusable")));
    let call = |folder: &str| {
        let mut command = home.command(&[&["call"], &BOOK[..], &["--dry-run", "--json"]].concat());
        home.ran(command.current_dir(home.here().join(folder)).output().unwrap()).json()
    };
    assert_eq!(call("a")["verdict"], "allow");
    assert_eq!(call("b")["verdict"], "ask");
}

#[test]
fn trust_counts_for_nothing_where_the_tools_of_a_run_could_have_noted_it() {
    let home = reaching();
    home.write(".tooltape/config.toml", ALLOW);
    assert_eq!(home.run(&["trust"]).code, 0);
    let judged = |flags: &[&str]| {
        home.run(&[&["call"], &BOOK[..], flags, &["--dry-run", "--json"]].concat()).json()
    };
    assert_eq!(judged(&[])["verdict"], "allow");
    assert_eq!(judged(&["--workspace", ".."])["verdict"], "ask");
    let mut command = home.command(&["trust", "--json"]);
    let ran = home.ran(command.env("XDG_DATA_HOME", home.here().join("data")).output().unwrap());
    assert_eq!((ran.code, ran.error()["code"].clone()), (5, json!("trust.unusable")));
}
