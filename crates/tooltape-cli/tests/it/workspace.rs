//! The folder that a run works in.

use std::fs;
use std::os::unix::fs::symlink;

use expect_test::expect;

use crate::home::Home;

#[test]
fn the_workspace_is_the_folder_of_the_configuration_unless_it_is_named() {
    let home = Home::new();
    home.write("a.txt", "outer\n").write("sub/a.txt", "inner\n");
    let text = |args: &[&str]| {
        let ran = home.run(&[&["call", "read_file", "path=a.txt", "--json"], args].concat());
        ran.json()["value"]["text"].clone()
    };
    assert_eq!(text(&[]), "outer\n");
    assert_eq!(text(&["--workspace", "sub"]), "inner\n");
    home.write("tooltape.toml", "workspace = \"sub\"\n");
    assert_eq!(text(&[]), "inner\n");
    assert_eq!(text(&["--workspace", "."]), "outer\n");
}

#[test]
fn a_hidden_configuration_that_is_named_works_in_the_folder_that_holds_it() {
    let home = Home::new();
    home.write("deep/.tooltape/config.toml", "[agent]\nscript = \"s.jsonl\"\n");
    home.write("deep/s.jsonl", "{\"say\": \"done\"}\n");
    for what in ["deep", "deep/.tooltape/config.toml", "./deep/.tooltape/config.toml"] {
        let ran = home.run(&["run", what, "--jsonl"]);
        let started: serde_json::Value =
            serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        assert_eq!(started["note"]["workspace"], "HOME/here/deep", "{what}");
        assert_eq!(started["note"]["config"], "HOME/here/deep", "{what}");
    }
}

#[test]
fn a_copy_is_made_for_a_call_that_looks_and_for_no_other() {
    let home = Home::new();
    home.write("project/a.txt", "one\n").write("project/deep/b.txt", "two\n");
    home.write(
        "tooltape.toml",
        "workspace = { copy = \"project\" }\n[policy]\ndefault = \"allow\"\n",
    );
    for args in [&["hash", "text="][..], &["nothing"], &["read_file", "pth=a"]] {
        home.run(&[&["call"], args].concat());
    }
    home.run(&["call", "read_file", "path=a.txt", "--dry-run"]);
    assert_eq!(home.copies().len(), 0);
    let edit = ["call", "edit_file", "path=deep/b.txt", r#"edits=[{"old":"two","new":"2"}]"#];
    assert_eq!(home.run(&edit).code, 0);
    let [copy] = &home.copies()[..] else { panic!("there is one copy") };
    assert_eq!(fs::read_to_string(copy.join("deep/b.txt")).unwrap(), "2\n");
    assert_eq!(home.read("project/deep/b.txt"), "two\n");
}

#[test]
fn a_copy_is_recorded_with_the_run() {
    let home = Home::new();
    home.write("project/a.txt", "one\n").write("s.jsonl", "{\"say\": \"done\"}\n");
    home.write(
        "tooltape.toml",
        "workspace = { copy = \"project\" }\n[agent]\nscript = \"s.jsonl\"\n",
    );
    let ran = home.run(&["run", ".", "--jsonl"]);
    let started: serde_json::Value =
        serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    expect![[r#"
        {
          "config": "HOME/here",
          "copied_from": "HOME/here/project",
          "workspace": "HOME/state/tooltape/work/RUN"
        }"#]]
    .assert_eq(&format!("{:#}", started["note"]));
}

#[test]
fn a_project_cannot_name_a_folder_or_a_script_outside_itself() {
    let home = Home::new();
    fs::create_dir(home.here().join("../outside")).unwrap();
    symlink("../outside", home.here().join("link")).unwrap();
    for text in ["workspace = \"..\"", "workspace = \"/\"", "workspace = { copy = \"../outside\" }"]
    {
        home.write("tooltape.toml", text);
        let ran = home.run(&["call", "list_dir"]);
        assert_eq!(ran.code, 2, "{text}: {}", ran.transcript());
    }
    home.write("tooltape.toml", "workspace = \"link\"\n");
    home.check(
        &["call", "list_dir"],
        expect![[r#"
            exit 2
            --- stderr
            error[config.invalid]: tooltape.toml:1:13: `link` leaves the folder of this file↩
            , expected a path below it
               ╭─[tooltape.toml:1:13]
             1 │ workspace = "link"
               ·             ───┬──
               ·                ╰── `link` leaves the folder of this file, expected a path b↩
            elow it
               ╰────
              help: `tooltape config schema` prints what a configuration may hold; not execu↩
            ted
        "#]],
    );
    home.write("../outside/s.jsonl", "{\"say\": \"secret\"}\n");
    for script in ["../outside/s.jsonl", "link/s.jsonl"] {
        home.write("tooltape.toml", &format!("[agent]\nscript = \"{script}\"\n"));
        assert_eq!(home.run(&["run", "."]).code, 2, "{script}");
    }
    // Whoever types it may.
    assert_eq!(home.run(&["call", "list_dir", "--workspace", "../outside", "-q"]).code, 0);
}

#[test]
fn a_folder_with_a_link_in_it_is_not_copied() {
    let home = Home::new();
    home.write("project/a.txt", "one\n").write("s.jsonl", "{\"say\": \"done\"}\n");
    symlink("/etc", home.here().join("project/z")).unwrap();
    home.write(
        "tooltape.toml",
        "workspace = { copy = \"project\" }\n[agent]\nscript = \"s.jsonl\"\n",
    );
    home.check(
        &["run", "."],
        expect![[r#"
            exit 5
            --- stderr
            error[workspace.uncopied]: `project` could not be copied: `project/z` is neither↩
             a file nor a folder
              help: `workspace.copy` names a folder of plain files; not executed
        "#]],
    );
    assert_eq!(home.copies().len(), 0);
}
