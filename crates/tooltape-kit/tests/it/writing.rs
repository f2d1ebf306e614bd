//! `write_file`, `move_file` and `delete_file`: what they do, and what they leave alone.

use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::json;
use tooltape::{Executed, Random};
use tooltape_kit::limits::FILE_BYTES_MAX;
use tooltape_kit::{Existing, Workspace, WorkspacePath};

use crate::world::{World, call, code, run_in};

fn path(text: &str) -> WorkspacePath {
    text.parse().unwrap()
}

#[test]
fn a_file_is_written_and_its_diff_returned() {
    let world = World::new();
    world.check(
        r#"
        write_file {"path":"a.txt","content":"one\n"}
        write_file {"path":"src/new/b.txt","content":""}
        write_file {"path":"src/new/b.txt","content":"","create_dirs":true}
        write_file {"path":"a.txt","content":"two\n"}
        write_file {"path":"a.txt","content":"two\n","overwrite":true}
        "#,
        expect![[r#"
            ok
            created: true
            diff:
              |--- /dev/null
              |+++ b/a.txt
              |@@ -0,0 +1 @@
              |+one
            hash: "e0e63aa4c8e1ed796cb104d8a074e553c99fff18d140e886667013ef2780ae23"
            path: "a.txt"
            [not_found] not executed: the folder of `src/new/b.txt` does not exist: say
                `create_dirs`
            ok
            created: true
            diff:
              |--- /dev/null
              |+++ b/src/new/b.txt
            hash: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
            path: "src/new/b.txt"
            [exists] not executed: `a.txt` exists: read it and give its hash as
                `expect_hash`, or say `overwrite`
            ok
            created: false
            diff:
              |--- a/a.txt
              |+++ b/a.txt
              |@@ -1 +1 @@
              |-one
              |+two
            hash: "ef40086ad8a395c7a05b5f70cf2575ad187f637ad813136292cb39610694db73"
            path: "a.txt"
        "#]],
    );
    assert_eq!(world.text("a.txt"), "two\n");
    assert_eq!(world.names(""), ["a.txt", "src"]);
    assert_eq!(world.names("src/new"), ["b.txt"]);
}

#[test]
fn a_file_is_replaced_only_as_it_was_read() {
    let world = World::new();
    world.file("a.txt", "one\r\n");
    let hash = blake3::hash(b"one\r\n").to_hex().to_string();
    let write = |path: &str, hash: &str| {
        let args = json!({ "path": path, "content": "two\r\n", "expect_hash": hash });
        world.call("write_file", &args.to_string())
    };
    assert_eq!(code(&write("gone.txt", &hash)), "precondition_failed");
    assert_eq!(code(&write("a.txt", &"0".repeat(64))), "precondition_failed");
    assert_eq!(code(&write("a.txt", "0")), "args.refused");
    assert_eq!(world.text("a.txt"), "one\r\n");
    assert_eq!(code(&write("a.txt", &hash)), "ok");
    assert_eq!(world.text("a.txt"), "two\r\n", "byte for byte");
    assert_eq!(world.names(""), ["a.txt"]);
}

#[test]
fn a_new_file_is_as_readable_as_its_folder_and_an_old_one_keeps_its_mode() {
    for (folder, mode) in [(0o755, 0o644), (0o700, 0o600), (0o777, 0o644), (0o750, 0o640)] {
        let world = World::new();
        fs::set_permissions(world.at(""), fs::Permissions::from_mode(folder)).unwrap();
        let write = |args| assert_eq!(code(&world.call("write_file", args)), "ok");
        write(r#"{"path":"a.txt","content":"one"}"#);
        let found = |name| world.at(name).metadata().unwrap().mode() & 0o7777;
        assert_eq!(found("a.txt"), mode, "in a folder of {folder:o}");
        fs::set_permissions(world.at("a.txt"), fs::Permissions::from_mode(0o6755)).unwrap();
        write(r#"{"path":"a.txt","content":"two","overwrite":true}"#);
        assert_eq!(found("a.txt"), 0o755, "FS-14: no setuid");
    }
}

#[test]
fn what_is_there_is_moved_and_what_is_in_the_way_stays() {
    let world = World::new();
    world.file("a.txt", "one\n").file("b.txt", "two\n").file("dir/c.txt", "three\n");
    world.check(
        r#"
        move_file {"from":"a.txt","to":"b.txt"}
        move_file {"from":"a.txt","to":"dir"}
        move_file {"from":"a.txt","to":"dir","overwrite":true}
        move_file {"from":"a.txt","to":"a.txt"}
        move_file {"from":"dir","to":"dir2"}
        move_file {"from":"gone","to":"here"}
        move_file {"from":"a.txt","to":"gone/a.txt"}
        move_file {"from":"a.txt","to":"dir/a.txt"}
        move_file {"from":"dir/a.txt","to":"b.txt","overwrite":true}
        "#,
        expect![[r#"
            [exists] not executed: `b.txt` is a regular file already, expected nothing
                there
            [exists] not executed: `dir` is a directory already, expected nothing there
            [exists] not executed: `dir` is a directory already, expected nothing there
            [args.refused] not executed: /to: found the same as `from`, expected another
                path
            [not_a_file] not executed: `dir` is a directory, expected a regular file
            [not_found] not executed: `gone` does not exist
            [not_found] not executed: `gone/a.txt` does not exist
            ok
            diff: "diff --git a/a.txt b/dir/a.txt\nrename from a.txt\nrename to dir/a.txt\n"
            from: "a.txt"
            replaced: false
            to: "dir/a.txt"
            ok
            diff: "diff --git a/dir/a.txt b/b.txt\nrename from dir/a.txt\nrename to b.txt\n"
            from: "dir/a.txt"
            replaced: true
            to: "b.txt"
        "#]],
    );
    assert_eq!(
        (world.text("b.txt").as_str(), world.names("")),
        ("one\n", vec!["b.txt".into(), "dir".into()])
    );
    assert_eq!(world.names("dir"), ["c.txt"]);
}

#[test]
fn a_file_or_an_empty_folder_is_deleted_and_nothing_else() {
    let world = World::new();
    world.file("a.txt", "one\n").file("bytes", b"\0\xff").file("dir/b.txt", "two\n");
    fs::create_dir(world.at("empty")).unwrap();
    world.link("a.txt", "link");
    let hash = blake3::hash(b"two\n").to_hex().to_string();
    world.check(
        &format!(
            r#"
            delete_file {{"path":"a.txt","expect_hash":"{hash}"}}
            delete_file {{"path":"dir"}}
            delete_file {{"path":"link"}}
            delete_file {{"path":"."}}
            delete_file {{"path":"gone"}}
            delete_file {{"path":"dir/b.txt","expect_hash":"{hash}"}}
            delete_file {{"path":"dir"}}
            delete_file {{"path":"empty","expect_hash":"{hash}"}}
            delete_file {{"path":"empty"}}
            delete_file {{"path":"bytes"}}
            "#
        ),
        expect![[r#"
            [precondition_failed] not executed: `a.txt` has the hash
                `e0e63aa4c8e1ed796cb104d8a074e553c99fff18d140e886667013ef2780ae23`,
                expected
                `ef40086ad8a395c7a05b5f70cf2575ad187f637ad813136292cb39610694db73`: it
                was changed, read it again
            [not_empty] not executed: `dir` is a directory that is not empty, expected a
                file or an empty directory
            [symlink] not executed: `link` is or goes through a symbolic link to
                `a.txt`, expected the path of the file itself
            [not_a_file] not executed: `.` is a directory, expected a regular file
            [not_found] not executed: `gone` does not exist
            ok
            diff:
              |--- a/dir/b.txt
              |+++ /dev/null
              |@@ -1 +0,0 @@
              |-two
            kind: "file"
            path: "dir/b.txt"
            ok
            diff: "\\ the empty directory `dir`\n"
            kind: "dir"
            path: "dir"
            [not_a_file] not executed: `empty` is a directory, expected a regular file
            ok
            diff: "\\ the empty directory `empty`\n"
            kind: "dir"
            path: "empty"
            ok
            diff: "\\ not shown: the file was not text\n"
            kind: "file"
            path: "bytes"
        "#]],
    );
    assert_eq!(world.names(""), ["a.txt", "link"]);
}

#[test]
fn what_is_too_large_to_read_can_still_be_moved_and_deleted() {
    let world = World::new();
    fs::File::create(world.at("large")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    let write = world.call("write_file", r#"{"path":"large","content":"","overwrite":true}"#);
    assert_eq!(code(&write), "too_large");
    assert_eq!(code(&world.call("move_file", r#"{"from":"large","to":"moved"}"#)), "ok");
    assert_eq!(code(&world.call("delete_file", r#"{"path":"moved"}"#)), "ok");
    assert!(world.names("").is_empty());
    let content = "a".repeat(1 << 20);
    let args = json!({ "path": "a", "content": content }).to_string();
    assert!(world.call("write_file", &args).is_error, "arguments are bounded");
    assert!(world.names("").is_empty());
}

#[test]
fn a_folder_that_was_made_for_a_file_goes_if_the_file_does_not_come() {
    let world = World::new();
    let files = Workspace::open(world.at("")).unwrap();
    let args = json!({ "path": format!("a/b/{}", "\u{e9}".repeat(127)), "content": "" });
    assert_eq!(
        code(&world.call("write_file", &args.to_string())),
        "not_found",
        "nobody asked for folders"
    );
    // The name is protected, so nothing is made on the way to it.
    let args = json!({ "path": "a/b/.envrc", "content": "", "create_dirs": true }).to_string();
    assert_eq!(code(&world.call("write_file", &args)), "protected");
    assert!(world.names("").is_empty());
    files.create_dir(&path("a/b/c")).unwrap();
    files.create_dir(&path("a/b/c")).unwrap();
    assert!(world.at("a/b/c").is_dir());
    assert_eq!(files.create_dir(&path(".git/hooks")).unwrap_err().code(), "protected");
}

#[test]
fn a_workspace_in_memory_is_private_and_disappears() {
    let files = Workspace::in_memory().unwrap();
    let random = Random::system();
    files.write(&path("a.txt"), b"one", &random).unwrap();
    files.rename(&path("a.txt"), &path("b.txt"), Existing::Kept).unwrap();
    let clone = files.clone();
    drop(files);
    assert_eq!(clone.read(&path("b.txt")).unwrap(), b"one");
    clone.remove(&path("b.txt")).unwrap();
    assert_eq!(clone.list(&WorkspacePath::root()).unwrap().total, 0);
    assert_eq!(clone.create(&path("b.txt"), b"", &random).map_err(|err| err.code()), Ok(()));
    drop(clone);
}

#[test]
fn a_folder_that_cannot_be_written_says_so_and_nothing_happens() {
    crate::users::as_each(
        "writing::a_folder_that_cannot_be_written_says_so_and_nothing_happens",
        |user| {
            let world = World::new();
            world.file("dir/a.txt", "one\n").file("b.txt", "two\n");
            fs::set_permissions(world.at("dir"), fs::Permissions::from_mode(0o555)).unwrap();
            let calls = [
                ("write_file", r#"{"path":"dir/new","content":""}"#),
                ("edit_file", r#"{"path":"dir/a.txt","edits":[{"old":"one","new":"two"}]}"#),
                ("move_file", r#"{"from":"b.txt","to":"dir/b.txt"}"#),
                ("delete_file", r#"{"path":"dir/a.txt"}"#),
            ];
            for (tool, args) in calls.iter().filter(|_| user != "root") {
                let reply = world.call(tool, args);
                assert_eq!(code(&reply), "permission_denied", "{tool}");
                assert!(reply.text().starts_with("not executed: "), "{}", reply.text());
            }
            if user != "root" {
                assert_eq!(
                    (world.names("dir"), world.text("b.txt")),
                    (vec!["a.txt".to_owned()], "two\n".into())
                );
            }
            fs::set_permissions(world.at("dir"), fs::Permissions::from_mode(0o755)).unwrap();
        },
    );
}

#[test]
fn what_somebody_else_puts_there_meanwhile_is_not_deleted() {
    // One replaces the file while the other deletes it, each time a little later.
    const ROUNDS: u64 = 1_500;
    let world = World::new();
    let hash = blake3::hash(b"mine\n").to_hex().to_string();
    let args = json!({ "path": "a.txt", "expect_hash": hash }).to_string();
    let mut refused = 0;
    for round in 0..ROUNDS {
        world.file("a.txt", "mine\n").file("b.txt", format!("{round}\n"));
        let start = Barrier::new(2);
        let reply = thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                let (begun, pause) = (Instant::now(), Duration::from_micros(round % 301 * 4));
                while begun.elapsed() < pause {
                    std::hint::spin_loop();
                }
                fs::rename(world.at("b.txt"), world.at("a.txt")).unwrap();
            });
            start.wait();
            world.call("delete_file", &args)
        });
        refused += usize::from(reply.is_error);
        assert_eq!(world.text("a.txt"), format!("{round}\n"), "{}", reply.text());
    }
    assert!(refused > 0, "the race was never met");
    assert_eq!(world.names(""), ["a.txt"]);
}

#[test]
fn a_diff_says_where_lines_end_otherwise() {
    let world = World::new();
    for (before, after, expected) in [
        ("a\r\nb\r\n", "a\nb\n", "--- a/a.txt\n+++ b/a.txt\n\\ line ends: crlf → lf\n"),
        ("a\nb\n", "a\r\nb\r\n", "--- a/a.txt\n+++ b/a.txt\n\\ line ends: lf → crlf\n"),
        ("a\nb\n", "a\r\nb\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
    ] {
        world.file("a.txt", before);
        let args = json!({ "path": "a.txt", "content": after, "overwrite": true });
        let reply = world.call("write_file", &args.to_string());
        assert_eq!(reply.value.as_ref().unwrap().to_value()["diff"], expected);
        assert_eq!(world.text("a.txt"), after);
    }
}

#[test]
fn a_file_does_not_take_the_place_of_another_name_of_itself() {
    let world = World::new();
    world.file("a.txt", "one\n");
    fs::hard_link(world.at("a.txt"), world.at("b.txt")).unwrap();
    let reply = world.call("move_file", r#"{"from":"a.txt","to":"b.txt","overwrite":true}"#);
    assert_eq!(code(&reply), "same_file", "{}", reply.text());
    assert_eq!(reply.executed, Executed::NotExecuted);
    assert_eq!(world.names(""), ["a.txt", "b.txt"]);
}

#[test]
fn a_file_called_head_that_makes_no_repository_closes_no_folder() {
    let write = |world: &World, path: &str| {
        let args = json!({ "path": path, "content": "a", "create_dirs": true }).to_string();
        let reply = world.call("write_file", &args);
        (code(&reply).to_owned(), reply.text().to_string())
    };
    let world = World::new();
    world.file("x/HEAD", "the head of a table\n");
    assert_eq!(write(&world, "x/deep/a.txt").0, "ok");
    for path in ["x/objects/a", "x/Refs/a", "x/commondir"] {
        let (code, told) = write(&world, path);
        assert_eq!(code, "protected", "{path}");
        assert!(told.contains("as `x/HEAD` makes it"), "{told}");
    }
    for head in ["ref: refs/heads/main\n", "ref:refs/x", &"0a".repeat(20)] {
        let world = World::new();
        world.file("HEAD", head);
        let (code, told) = write(&world, "deep/a.txt");
        assert_eq!(code, "protected", "{head}");
        assert!(told.contains("`deep/a.txt`") && told.contains("as `HEAD` makes it"), "{told}");
    }
    let world = World::new();
    world.file("HEAD", "").file("refs/a", "");
    assert_eq!(write(&world, "a.txt").0, "protected");
}

#[test]
fn the_twins_of_protected_names_are_protected() {
    for name in [
        ".devcontainer.json",
        "mise.local.toml",
        ".mise.local.toml",
        ".mise/config.toml",
        ".tool-versions",
        "lefthook.yaml",
        "lefthook-local.yml",
        ".lefthook.toml",
        ".lefthook/pre-commit/a",
        ".dir-locals-2.el",
        ".gvimrc",
        ".hg/hgrc",
        "opencode.json",
        ".kiro/settings.json",
        ".Rprofile",
        ".pdbrc",
        ".gdbinit",
    ] {
        let args = json!({ "path": name, "content": "a", "create_dirs": true }).to_string();
        assert_eq!(code(&World::new().call("write_file", &args)), "protected", "{name}");
    }
}

/// The variable that says where a file is created on a system that fails.
const FOLDER: &str = "TOOLTAPE_CREATED_IN";

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_has_its_name_is_said_to_be_there() {
    let args = r#"{"path":"a.txt","content":"one\n"}"#;
    if let Ok(folder) = env::var(FOLDER) {
        let reply = call(&run_in(&Path::new(&folder).join("ws")), "write_file", args);
        return fs::write(Path::new(&folder).join("reply"), code(&reply)).unwrap();
    }
    // No flags for a rename, so a link is made; and the first name of the file stays.
    let world = World::new();
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=renameat2:error=EINVAL"])
        .args(["-e", "inject=unlinkat:error=EIO"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "writing::a_file_that_has_its_name_is_said_to_be_there"])
        .env(FOLDER, world.folder())
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("`strace` is installed").success());
    assert_eq!(fs::read_to_string(world.folder().join("reply")).unwrap(), "ok");
    assert_eq!(world.text("a.txt"), "one\n");
    assert_eq!(world.names("").len(), 2, "the first name is still there");
}
