//! What is no regular file, or only looks like one: refused at once and without being opened.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use expect_test::expect;
use tooltape_kit::limits::FILE_BYTES_MAX;

use crate::forms::{FORMS, MOVED};
use crate::naive;
use crate::world::{CANARY, World, call, code, run_in};

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn nothing_special_is_read_or_edited() {
    // FS-11: no writer ever comes, so whoever opens the pipe the usual way waits for ever.
    let world = World::new();
    fifo(&world.at("pipe"));
    world.link("pipe", "pipe_link");
    let _socket = UnixListener::bind(world.at("socket")).unwrap();
    fs::create_dir(world.at("dir")).unwrap();
    world.check(
        r#"
        read_file {"path":"pipe"}
        read_file {"path":"pipe_link"}
        read_file {"path":"socket"}
        read_file {"path":"dir"}
        list_dir {"path":"pipe"}
        edit_file {"path":"pipe","edits":[{"old":"a","new":"b"}]}
        edit_file {"path":"pipe_link","edits":[{"old":"a","new":"b"}]}
        edit_file {"path":"socket","edits":[{"old":"a","new":"b"}]}
        edit_file {"path":"dir","edits":[{"old":"a","new":"b"}]}
        "#,
        expect![[r#"
            [not_a_file] not executed: `pipe` is a pipe, socket or device, expected a
                regular file
            [symlink] not executed: `pipe_link` is or goes through a symbolic link to
                `pipe`, expected the path of the file itself
            [not_a_file] not executed: `socket` is a pipe, socket or device, expected a
                regular file
            [not_a_file] not executed: `dir` is a directory, expected a regular file
            [not_a_directory] not executed: `pipe` is a pipe, socket or device, expected
                a directory
            [not_a_file] not executed: `pipe` is a pipe, socket or device, expected a
                regular file
            [symlink] not executed: `pipe_link` is or goes through a symbolic link to
                `pipe`, expected the path of the file itself
            [not_a_file] not executed: `socket` is a pipe, socket or device, expected a
                regular file
            [not_a_file] not executed: `dir` is a directory, expected a regular file
        "#]],
    );
}

#[test]
fn nothing_special_is_changed_by_any_tool() {
    for form in &FORMS {
        for name in ["pipe", "pipe_link", "socket"] {
            let world = World::new();
            world.file(MOVED, "moved\n");
            fifo(&world.at("pipe"));
            world.link("pipe", "pipe_link");
            let _socket = UnixListener::bind(world.at("socket")).unwrap();
            let before = fs::symlink_metadata(world.at(name)).unwrap();
            let reply = world.call(form.tool, &form.args(&format!("\"{name}\"")));
            assert!(reply.text().starts_with("not executed: "), "{} {name}", form.name);
            let after = fs::symlink_metadata(world.at(name)).unwrap();
            assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()), "{name}");
            assert_eq!(world.text(MOVED), "moved\n");
        }
    }
}

#[test]
fn the_usual_way_to_read_waits_for_a_pipe() {
    let world = World::new();
    fifo(&world.at("pipe"));
    let root = world.at("");
    thread::scope(|scope| {
        let reader = scope.spawn(|| naive::read_file(&root, "pipe").unwrap());
        // Opening a pipe for writing waits until somebody opens it for reading: the control did.
        fs::write(world.at("pipe"), CANARY).unwrap();
        assert_eq!(reader.join().unwrap(), CANARY);
    });
}

#[test]
fn devices_are_refused_without_being_opened() {
    let run = run_in(Path::new("/dev"));
    for device in ["zero", "null", "random", "tty"] {
        let read = call(&run, "read_file", &format!(r#"{{"path":"{device}"}}"#));
        assert_eq!(code(&read), "not_a_file", "{device}: {}", read.text());
        let args = format!(r#"{{"path":"{device}","edits":[{{"old":"a","new":"b"}}]}}"#);
        let edit = call(&run, "edit_file", &args);
        assert_eq!(code(&edit), "not_a_file", "{device}: {}", edit.text());
    }
    // The control reads on and on.
    let mut bytes = Vec::new();
    let zeros = File::open(naive::resolve(Path::new("/dev"), "zero").unwrap()).unwrap();
    zeros.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() as u64 > FILE_BYTES_MAX);
}

#[test]
fn a_file_that_only_looks_enormous_is_refused_before_it_is_read() {
    let world = World::new();
    File::create(world.at("sparse")).unwrap().set_len(1 << 40).unwrap();
    world.check(
        r#"
        read_file {"path":"sparse"}
        edit_file {"path":"sparse","edits":[{"old":"a","new":"b"}]}
        list_dir {}
        "#,
        expect![[r#"
            [too_large] not executed: `sparse` is too large: 1099511627776 bytes or
                more, expected at most 8388608
            [too_large] not executed: `sparse` is too large: 1099511627776 bytes or
                more, expected at most 8388608
            ok
            entries:
              {"kind":"file","name":"sparse","size":1099511627776}
            path: "."
            total: 1
            truncated: false
        "#]],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_links_of_proc_are_not_followed() {
    // FS-06: these links lead where no path does, so they are refused even in a workspace of /proc.
    let run = run_in(Path::new("/proc"));
    let world = World::new();
    let canary = world.folder().join("outside/canary");
    let canary = canary.to_str().unwrap();
    for path in [format!("self/root{canary}"), "self/cwd/Cargo.toml".into(), "self/fd/0".into()] {
        let reply = call(&run, "read_file", &format!(r#"{{"path":"{path}"}}"#));
        assert_eq!(code(&reply), "symlink", "{path}: {}", reply.text());
    }
    let control = naive::read_file(Path::new("/proc"), &format!("self/root{canary}")).unwrap();
    assert_eq!(control, CANARY);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_lies_about_its_size_is_still_bounded() {
    // Files of /proc say that they are empty.
    let run = run_in(Path::new("/proc/self"));
    let reply = call(&run, "read_file", r#"{"path":"status"}"#);
    let value = reply.value.as_ref().unwrap().to_value();
    assert!(value["text"].as_str().unwrap().starts_with("Name:"));
}
