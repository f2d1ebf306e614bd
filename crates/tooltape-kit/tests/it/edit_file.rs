//! `edit_file` on text: what is replaced, what is refused, and what the model reads.

use std::os::unix::fs::MetadataExt;

use expect_test::expect;
use serde_json::json;
use tooltape_kit::limits::{DIFF_BYTES_MAX, EDITS_MAX, FILE_BYTES_MAX};

use crate::world::{World, code, shown};

#[test]
fn a_file_is_edited_and_its_diff_returned() {
    let world = World::new();
    world.file("src/main.rs", "fn main() {\n    one();\n    two();\n}\n");
    world.check(
        r#"
        edit_file {"path":"src/main.rs","edits":[
            {"old":"one()","new":"three()"},
            {"old":"}\n","new":"}\n\nfn three() {}\n"}]}
        "#,
        expect![[r#"
            ok
            diff:
              |--- a/src/main.rs
              |+++ b/src/main.rs
              |@@ -1,4 +1,6 @@
              | fn main() {
              |-    one();
              |+    three();
              |     two();
              | }
              |+
              |+fn three() {}
            edits: 2
            hash: "db3540b1fdb565d13d24e4c2cfbd9ed062fd541b715aea7b89ed1f58d7bc197f"
            path: "src/main.rs"
        "#]],
    );
    expect![[r#"
        fn main() {
            three();
            two();
        }

        fn three() {}
    "#]]
    .assert_eq(&world.text("src/main.rs"));
}

#[test]
fn the_hash_returned_is_the_one_that_the_next_edit_expects() {
    let world = World::new();
    world.file("a.txt", "one two\n");
    let mut hash = blake3::hash(b"one two\n").to_hex().to_string();
    for (old, new) in [("one", "1"), ("two", "2")] {
        let edits = json!([{ "old": old, "new": new }]);
        let args = json!({ "path": "a.txt", "edits": edits, "expect_hash": hash });
        let value = world.call("edit_file", &args.to_string()).value.as_ref().unwrap().to_value();
        hash = value["hash"].as_str().unwrap().to_owned();
    }
    assert_eq!(world.text("a.txt"), "1 2\n");
    assert_eq!(hash, blake3::hash(b"1 2\n").to_hex().as_str());
}

#[test]
fn each_edit_sees_what_the_ones_before_it_made() {
    let world = World::new();
    world.file("a.txt", "a\n");
    world.check(
        r#"edit_file {"path":"a.txt","edits":[{"old":"a","new":"b b"},{"old":"b b","new":"c"}]}"#,
        expect![[r#"
            ok
            diff:
              |--- a/a.txt
              |+++ b/a.txt
              |@@ -1 +1 @@
              |-a
              |+c
            edits: 2
            hash: "d1cd1ec45291d06cdde016568971990c7e4da895f2e5a8a705d4feeb79578a69"
            path: "a.txt"
        "#]],
    );
    assert_eq!(world.text("a.txt"), "c\n");
}

#[test]
fn all_edits_are_made_or_none() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\n");
    let inode = world.at("a.txt").metadata().unwrap().ino();
    world.check(
        r#"edit_file {"path":"a.txt","edits":[{"old":"one","new":"1"},{"old":"three","new":"3"}]}"#,
        expect![[r#"
            [no_match] not executed: /edits/1/old: found nowhere in the file, expected
                exactly one place
        "#]],
    );
    assert_eq!(world.text("a.txt"), "one\ntwo\n");
    assert_eq!(world.at("a.txt").metadata().unwrap().ino(), inode);
    assert_eq!(world.names(""), ["a.txt"]);
}

#[test]
fn a_text_that_does_not_occur_is_answered_with_the_nearest_place() {
    let world = World::new();
    world.file(
        "a.rs",
        "fn a() {\n    let x = 1;\n    let y = 2;\n}\n\nfn b() {\n    let x = 1;\n}\n",
    );
    let edits = [
        ("    let x = 1;\n    let y = 3;", "the second line differs"),
        ("let y = 2;\nlet z = 3;", "white space differs"),
        ("fn c(x: u8) {", "another name"),
        ("something else entirely", "nothing is near"),
        ("\n\n\n", "only line ends"),
        ("fn b() {\n    let x = 1;\n}\n}", "past the end"),
    ];
    let mut told = String::new();
    for (old, why) in edits {
        let args = json!({ "path": "a.rs", "edits": [{ "old": old, "new": "" }] });
        let reply = world.call("edit_file", &args.to_string());
        told += &format!("{why}:\n{}", shown(&reply));
    }
    expect![[r#"
        the second line differs:
        [no_match] not executed: /edits/0/old: found nowhere in the file, expected
            exactly one place; line 3 is `    let y = 2;`, where `old` has `    let
            y = 3;`
        white space differs:
        [no_match] not executed: /edits/0/old: found nowhere in the file, expected
            exactly one place; line 3 is `    let y = 2;`, where `old` has `let y =
            2;`
        another name:
        [no_match] not executed: /edits/0/old: found nowhere in the file, expected
            exactly one place
        nothing is near:
        [no_match] not executed: /edits/0/old: found nowhere in the file, expected
            exactly one place
        only line ends:
        [no_match] not executed: /edits/0/old: found nowhere in the file, expected
            exactly one place
        past the end:
        [no_match] not executed: /edits/0/old: found nowhere in the file, expected
            exactly one place; line 8 is the last, where `old` has `}`
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_text_that_occurs_more_than_once_is_answered_with_its_places() {
    let world = World::new();
    world.file("a.txt", "x\ny\nx\nx\n").file("aaa", "aaa").file("many", "z\n".repeat(1_000));
    world.check(
        r#"
        edit_file {"path":"a.txt","edits":[{"old":"x","new":"z"}]}
        edit_file {"path":"aaa","edits":[{"old":"aa","new":"b"}]}
        edit_file {"path":"many","edits":[{"old":"z","new":"b"}]}
        "#,
        expect![[r#"
            [many_matches] not executed: /edits/0/old: found at 3 places, expected
                exactly one: add text around it; see lines 1, 3, 4
            [many_matches] not executed: /edits/0/old: found at 2 places, expected
                exactly one: add text around it; see lines 1
            [many_matches] not executed: /edits/0/old: found at more than 100 places,
                expected exactly one: add text around it; see lines 1, 2, 3, 4, 5, 6, 7,
                8, …
        "#]],
    );
    assert_eq!(world.text("aaa"), "aaa");
}

#[test]
fn a_changed_file_is_left_alone() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let hash = blake3::hash(b"one\n").to_hex().to_string();
    // FS-13: between reading and writing, somebody else was here.
    world.file("a.txt", "one, and more\n");
    let args = json!({
        "path": "a.txt", "edits": [{ "old": "one", "new": "two" }], "expect_hash": hash,
    });
    world.check(
        &format!("edit_file {args}"),
        expect![[r#"
        [precondition_failed] not executed: `a.txt` has the hash
            `fafa9aa0f9502bf697490ac5f78990b0d068e59af5973f538c6d48930fe37a99`,
            expected
            `e0e63aa4c8e1ed796cb104d8a074e553c99fff18d140e886667013ef2780ae23`: it
            was changed, read it again
    "#]],
    );
    assert_eq!(world.text("a.txt"), "one, and more\n");
}

#[test]
fn line_ends_are_kept() {
    let cases = [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\nc\r\n"),
        ("a\nb\nc\n", "a\r\nb", "x\r\ny", "x\ny\nc\n"),
        ("a\nb\r\nc\n", "b\r\nc", "x\ny", "a\nx\ny\n"),
        ("a\nb", "b", "c", "a\nc"),
        ("\u{feff}a\r\n", "a", "b", "\u{feff}b\r\n"),
    ];
    for (before, old, new, after) in cases {
        let world = World::new();
        world.file("a.txt", before);
        let args = json!({ "path": "a.txt", "edits": [{ "old": old, "new": new }] });
        let reply = world.call("edit_file", &args.to_string());
        assert_eq!(code(&reply), "ok", "{}", reply.text());
        assert_eq!(world.text("a.txt"), after, "{before:?}");
        let hash = blake3::hash(after.as_bytes()).to_hex().to_string();
        assert_eq!(reply.value.as_ref().unwrap().to_value()["hash"], hash);
    }
}

#[test]
fn arguments_that_mean_nothing_are_refused_before_anything_is_touched() {
    let world = World::new();
    world.file("a.txt", "one\n");
    world.check(
        r#"
        edit_file {"path":"a.txt","edits":[]}
        edit_file {"path":"a.txt","edits":[{"old":"","new":"x"}]}
        edit_file {"path":"a.txt","edits":[{"old":"one","new":"two"},{"old":"x","new":"x"}]}
        edit_file {"path":"a.txt","edits":[{"old":"one","new":"two"}],"expect_hash":"ABC"}
        edit_file {"path":"../a.txt","edits":[{"old":"one","new":"two"}]}
        "#,
        expect![[r#"
            [args.refused] not executed: /edits: found 0 edits, expected 1 to 100
            [args.refused] not executed: /edits/0/old: found nothing, expected text to
                replace
            [args.refused] not executed: /edits/1/new: found the same as `old`, expected
                a change
            [args.refused] not executed: /expect_hash: expected 64 lower-case
                hexadecimal characters, as `read_file` returns them
            [args.invalid] not executed: arguments could not be deserialised: at `path`:
                `../a.txt` holds `..`, expected a path that only goes down from the
                workspace
        "#]],
    );
    let edits = vec![json!({ "old": "one", "new": "two" }); EDITS_MAX + 1];
    let args = json!({ "path": "a.txt", "edits": edits }).to_string();
    world.check(
        &format!("edit_file {args}"),
        expect![[r#"
        [args.refused] not executed: /edits: found 101 edits, expected 1 to 100
    "#]],
    );
    assert_eq!(world.text("a.txt"), "one\n");
}

#[test]
fn a_file_that_is_not_there_is_not_created() {
    let world = World::new();
    world.file("dir/a.txt", "x");
    world.check(
        r#"
        edit_file {"path":"new.txt","edits":[{"old":"x","new":"y"}]}
        edit_file {"path":"gone/new.txt","edits":[{"old":"x","new":"y"}]}
        edit_file {"path":"dir/a.txt/b","edits":[{"old":"x","new":"y"}]}
        edit_file {"path":"dir","edits":[{"old":"x","new":"y"}]}
        edit_file {"path":".","edits":[{"old":"x","new":"y"}]}
        "#,
        expect![[r#"
            [not_found] not executed: `new.txt` does not exist
            [not_found] not executed: `gone/new.txt` does not exist
            [not_a_directory] not executed: `dir/a.txt/b` goes through what is not a
                directory
            [not_a_file] not executed: `dir` is a directory, expected a regular file
            [not_a_file] not executed: `.` is a directory, expected a regular file
        "#]],
    );
    assert_eq!(world.names(""), ["dir"]);
}

#[test]
fn a_file_does_not_grow_past_the_limit() {
    let world = World::new();
    let size = usize::try_from(FILE_BYTES_MAX).unwrap();
    world.file("large", format!("{}b\n", "a\n".repeat(size / 2 - 1)));
    world.check(
        r#"edit_file {"path":"large","edits":[{"old":"b","new":"bb"}]}"#,
        expect![[r#"
        [too_large] not executed: `large` is too large: 8388609 bytes or more,
            expected at most 8388608
    "#]],
    );
    let reply = world.call("edit_file", r#"{"path":"large","edits":[{"old":"b","new":"c"}]}"#);
    expect![[r#""\\ not shown: 4194304 lines, expected at most 500000\n""#]]
        .assert_eq(&reply.value.as_ref().unwrap().to_value()["diff"].to_string());
}

#[test]
fn a_long_diff_is_cut_between_lines_and_says_so() {
    let world = World::new();
    let (old, new) = ("old line\n".repeat(20_000), "new line\n".repeat(20_000));
    world.file("a.txt", &old);
    let args = json!({ "path": "a.txt", "edits": [{ "old": old, "new": new }] });
    let value = world.call("edit_file", &args.to_string()).value.as_ref().unwrap().to_value();
    let diff = value["diff"].as_str().unwrap();
    assert!(diff.len() < DIFF_BYTES_MAX + 64, "{}", diff.len());
    let last = diff.lines().next_back().unwrap();
    expect![[r#"\ cut here: 32768 of 400048 bytes"#]].assert_eq(last);
    assert_eq!(world.text("a.txt"), new);
}

#[test]
fn every_place_is_replaced_where_that_is_said_and_at_least_one_must_be_there() {
    let world = World::new();
    world.file("a.txt", "a b a\na\n");
    let edit = |edit: serde_json::Value| {
        let args = json!({ "path": "a.txt", "edits": [edit] });
        world.call("edit_file", &args.to_string())
    };
    let all = edit(json!({ "old": "a", "new": "aa", "replace_all": true }));
    assert_eq!(all.value.as_ref().unwrap().to_value()["edits"], 3);
    assert_eq!(world.text("a.txt"), "aa b aa\naa\n");
    assert_eq!(
        code(&edit(json!({ "old": "a", "new": "b", "replace_all": false }))),
        "many_matches"
    );
    assert_eq!(code(&edit(json!({ "old": "c", "new": "b", "replace_all": true }))), "no_match");
    // Every place may grow, so the size is known before anything does.
    let grown = edit(json!({ "old": "a", "new": "x".repeat(2 << 20 >> 2), "replace_all": true }));
    assert_eq!(code(&grown), "ok", "6 times 512 KiB fit");
    let grown = edit(json!({ "old": "x", "new": "xxxx", "replace_all": true }));
    assert_eq!(code(&grown), "too_large");
    assert_eq!(world.text("a.txt").len(), 6 * (512 << 10) + 5);
}
