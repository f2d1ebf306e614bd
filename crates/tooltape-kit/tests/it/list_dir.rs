//! `list_dir` on what a workspace may hold.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

use expect_test::expect;
use tooltape_kit::limits::ENTRIES_MAX;

use crate::world::World;

#[test]
fn entries_come_sorted_with_kind_and_size() {
    let world = World::new();
    world.file("b.txt", "four").file("a/deep.txt", "").file("B.txt", "").file(".hidden", "x");
    world.link("b.txt", "link").link("../outside", "out").link("nowhere", "dangling");
    let _socket = UnixListener::bind(world.at("socket")).unwrap();
    world.check(
        "list_dir {}\n list_dir {\"path\":\"a\"}",
        expect![[r#"
        ok
        entries:
          {"kind":"file","name":".hidden","size":1}
          {"kind":"file","name":"B.txt","size":0}
          {"kind":"dir","name":"a"}
          {"kind":"file","name":"b.txt","size":4}
          {"kind":"symlink","name":"dangling"}
          {"kind":"symlink","name":"link"}
          {"kind":"symlink","name":"out"}
          {"kind":"other","name":"socket"}
        path: "."
        total: 8
        truncated: false
        ok
        entries:
          {"kind":"file","name":"deep.txt","size":0}
        path: "a"
        total: 1
        truncated: false
    "#]],
    );
}

#[test]
fn every_spelling_of_a_directory_has_one_path() {
    let world = World::new();
    world.file("a/b/c.txt", "x").link("a", "alias");
    world.check(
        r#"
        list_dir {"path":"."}
        list_dir {"path":"./a/b"}
        list_dir {"path":"alias/b"}
        list_dir {"path":null}
        "#,
        expect![[r#"
            ok
            entries:
              {"kind":"dir","name":"a"}
              {"kind":"symlink","name":"alias"}
            path: "."
            total: 2
            truncated: false
            ok
            entries:
              {"kind":"file","name":"c.txt","size":1}
            path: "a/b"
            total: 1
            truncated: false
            [symlink] not executed: `alias/b` is or goes through a symbolic link to
                `a/b`, expected the path of the file itself
            ok
            entries:
              {"kind":"dir","name":"a"}
              {"kind":"symlink","name":"alias"}
            path: "."
            total: 2
            truncated: false
        "#]],
    );
}

#[test]
fn what_is_not_a_directory_is_refused() {
    let world = World::new();
    world.file("a.txt", "x");
    world.check(
        r#"
        list_dir {"path":"a.txt"}
        list_dir {"path":"a.txt/b"}
        list_dir {"path":"gone"}
        list_dir {"path":"a/"}
        "#,
        expect![[r#"
            [not_a_directory] not executed: `a.txt` is a regular file, expected a
                directory
            [not_a_directory] not executed: `a.txt/b` goes through what is not a
                directory
            [not_found] not executed: `gone` does not exist
            [args.invalid] not executed: arguments could not be deserialised: at `path`:
                `a/` has a part that names nothing, expected names with one `/` between
                them
        "#]],
    );
}

#[test]
fn a_large_directory_is_cut_at_the_same_place_every_time() {
    let world = World::new();
    for at in (0..ENTRIES_MAX + 5).rev() {
        world.file(&format!("{at:05}"), "");
    }
    let value = world.call("list_dir", "{}").value.as_ref().unwrap().to_value();
    let entries = value["entries"].as_array().unwrap();
    assert_eq!(entries.len(), ENTRIES_MAX);
    assert_eq!(entries[0]["name"], "00000");
    assert_eq!(entries[ENTRIES_MAX - 1]["name"], format!("{:05}", ENTRIES_MAX - 1));
    assert_eq!(value["total"], ENTRIES_MAX + 5);
    assert_eq!(value["truncated"], true);
}

#[test]
fn odd_names_are_listed() {
    let world = World::new();
    world.file("new\nline", "").file("tab\t", "").file(" ", "").file("-rf", "").file("é", "");
    fs::write(world.at("").join(OsStr::from_bytes(b"not \xff utf-8")), "").unwrap();
    world.check(
        "list_dir {}",
        expect![[r#"
        ok
        entries:
          {"kind":"file","name":" ","size":0}
          {"kind":"file","name":"-rf","size":0}
          {"kind":"file","name":"new\nline","size":0}
          {"kind":"file","name":"not � utf-8","size":0}
          {"kind":"file","name":"tab\t","size":0}
          {"kind":"file","name":"é","size":0}
        path: "."
        total: 6
        truncated: false
    "#]],
    );
}

#[test]
fn a_workspace_that_is_moved_is_still_the_same() {
    let world = World::new();
    world.file("a.txt", "x");
    fs::rename(world.at(""), world.folder().join("moved")).unwrap();
    fs::create_dir(world.at("")).unwrap();
    world.file("impostor.txt", "x");
    world.check(
        "list_dir {}",
        expect![[r#"
            ok
            entries:
              {"kind":"file","name":"a.txt","size":1}
            path: "."
            total: 1
            truncated: false
        "#]],
    );
}
