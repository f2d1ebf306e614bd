//! Programs as tools, from `tools add` to a run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::home::{Home, root};

/// A home with the example in it, and no configuration of a project.
fn home() -> Home {
    let home = Home::new();
    copy(&root().join("examples/executable"), &home.here());
    fs::remove_file(home.here().join("tooltape.toml")).unwrap();
    home
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, path) = { (entry.as_ref().unwrap().path(), entry.unwrap().file_name()) };
        match entry.is_dir() {
            true => copy(&entry, &to.join(path)),
            false => drop(fs::copy(&entry, to.join(path)).unwrap()),
        }
    }
}

#[test]
fn a_program_is_shown_written_down_and_called() {
    let home = home();
    home.write("tooltape.toml", "# mine\nworkspace = \"project\" # here\n");
    let added = home.run(&["tools", "add", "./tools/word_count.py"]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(added.stdout.contains("the workspace, to read it"), "{}", added.stdout);
    let written = home.read("tooltape.toml");
    assert!(written.starts_with("# mine\nworkspace = \"project\" # here\n"), "{written}");
    assert!(written.contains("[[tools.executable]]\nprogram = \"tools/word_count.py\"\n"));
    let listed = home.run(&["tools", "list", "--json"]).json();
    let tool = listed.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&tool["name"], &tool["effects"]["process"]), (&json!("word_count"), &json!(true)));
    // Whatever a project's program says of itself, its calls are asked about.
    assert_eq!(tool["effects"]["access"], "write");
    let call = ["call", "word_count", "path=poem.txt", "most=1"];
    assert_eq!(home.run(&call).code, 7, "nobody can be asked");
    let called = home.run(&[&call[..], &["--yes", "--json"]].concat());
    let reply = called.json();
    assert_eq!(reply["value"], json!({ "words": 10, "most": [["the", 3]] }), "{reply}");
    assert_eq!(reply["enforced_by"], "sandbox");
    let missing = home.run(&["call", "word_count", "path=gone.txt", "--yes"]);
    assert!(missing.stderr.contains("`gone.txt` cannot be read"), "{}", missing.stderr);
}

#[test]
fn nothing_is_written_through_a_link_that_a_project_brings() {
    for (link, program) in
        [("tools/disk_free.toml", "tools/disk_free.sh"), ("tooltape.toml", "tools/word_count.py")]
    {
        let home = home();
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("login");
        let _ = fs::remove_file(home.here().join(link));
        std::os::unix::fs::symlink(&target, home.here().join(link)).unwrap();
        let added = home.run(&["tools", "add", program]);
        assert_eq!(added.code, 5, "{link}: {}", added.stderr);
        assert!(!target.exists(), "{link}");
    }
}

#[test]
fn a_program_may_describe_itself_and_is_asked_in_the_sandbox() {
    let home = home();
    let manifest = home.read("tools/disk_free.toml");
    fs::remove_file(home.here().join("tools/disk_free.toml")).unwrap();
    let added = home.run(&["tools", "add", "tools/disk_free.sh"]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert_eq!(home.read("tools/disk_free.toml"), manifest);
    assert_eq!(home.run(&["call", "disk_free", "--yes", "--no-tape"]).code, 0);
    // One that would rather write than describe itself has nothing to write to.
    let script = format!("#!/bin/sh\ntouch {0}/ran ran /workspace/ran\n", home.here().display());
    home.write("tools/bad.sh", &script);
    let program = home.here().join("tools/bad.sh");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let added = home.run(&["tools", "add", "tools/bad.sh"]);
    assert_eq!(added.code, 5, "{}", added.stderr);
    assert!(added.stderr.contains("--describe` printed no manifest"), "{}", added.stderr);
    assert!(!home.here().join("ran").exists() && !home.here().join("tools/ran").exists());
    assert!(!home.read("tooltape.toml").contains("bad.sh"));
}

#[test]
fn a_program_that_was_changed_is_refused_until_somebody_looks() {
    let home = home();
    assert_eq!(home.run(&["tools", "add", "tools/word_count.py"]).code, 0);
    let program = home.read("tools/word_count.py");
    home.write("tools/word_count.py", &format!("{program}# changed\n"));
    let listed = home.run(&["tools", "list"]);
    assert_eq!(listed.code, 2, "{}", listed.stderr);
    assert!(listed.stderr.contains("was changed"), "{}", listed.stderr);
    assert_eq!(home.run(&["tools", "add", "tools/word_count.py"]).code, 0);
    assert_eq!(home.run(&["tools", "list"]).code, 0);
    assert_eq!(home.read("tooltape.toml").matches("[[tools.executable]]").count(), 1);
}

#[test]
fn what_cannot_be_a_tool_is_not_written_down() {
    let home = home();
    home.write("tools/echo.sh", "#!/bin/sh\ncat\n").write("plain.txt", "text");
    let named = "name = \"echo\"\ndescription = \"Echoes.\"\n[input]\ntype = \"object\"\n";
    home.write("tools/echo.toml", named);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(home.here().join("tools/echo.sh"), executable).unwrap();
    for (program, told) in [
        ("../outside.sh", "leaves this folder"),
        ("/bin/true", "leaves this folder"),
        ("gone.sh", "cannot be read"),
        ("tools", "is no program"),
        ("plain.txt", "may not be executed"),
        ("tools/echo.sh", "there is a tool named `echo` already"),
    ] {
        let added = home.run(&["tools", "add", program]);
        assert!(added.code != 0 && added.stderr.contains(told), "{program}: {}", added.stderr);
        assert!(!home.here().join("tooltape.toml").exists(), "{program}");
    }
    // A project names its own programs alone.
    home.write("tooltape.toml", "[[tools.executable]]\nprogram = \"../outside.sh\"\n");
    let listed = home.run(&["tools", "list"]);
    assert!(listed.code == 2 && listed.stderr.contains("leaves the folder"), "{}", listed.stderr);
}

#[test]
fn the_example_runs() {
    let home = Home::new();
    let example = root().join("examples/executable").display().to_string();
    let ran = home.run(&["run", &example]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("The poem says tape twice."), "{}", ran.stdout);
}
