//! `read_file` on text of every kind.

use expect_test::expect;
use tooltape_kit::limits::{FILE_BYTES_MAX, READ_BYTES_MAX};

use crate::world::{World, code};

#[test]
fn a_file_is_read_whole_or_by_lines() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\nthree\n");
    world.check(
        r#"
        read_file {"path":"a.txt"}
        read_file {"path":"a.txt","start":2}
        read_file {"path":"a.txt","start":2,"lines":1}
        read_file {"path":"a.txt","lines":99}
        "#,
        expect![[r#"
            ok
            hash: "10e1a16f0805bd7128d2ff11264ffd33566f0ad1d980ebd0f2b3848815d2e72b"
            lines: 3
            newline: "lf"
            path: "a.txt"
            start: 1
            text: "one\ntwo\nthree\n"
            total_lines: 3
            truncated: false
            ok
            hash: "10e1a16f0805bd7128d2ff11264ffd33566f0ad1d980ebd0f2b3848815d2e72b"
            lines: 2
            newline: "lf"
            path: "a.txt"
            start: 2
            text: "two\nthree\n"
            total_lines: 3
            truncated: false
            ok
            hash: "10e1a16f0805bd7128d2ff11264ffd33566f0ad1d980ebd0f2b3848815d2e72b"
            lines: 1
            newline: "lf"
            path: "a.txt"
            start: 2
            text: "two\n"
            total_lines: 3
            truncated: false
            ok
            hash: "10e1a16f0805bd7128d2ff11264ffd33566f0ad1d980ebd0f2b3848815d2e72b"
            lines: 3
            newline: "lf"
            path: "a.txt"
            start: 1
            text: "one\ntwo\nthree\n"
            total_lines: 3
            truncated: false
        "#]],
    );
}

#[test]
fn the_hash_is_that_of_the_whole_file() {
    let world = World::new();
    world.file("a.txt", "one\r\ntwo\r\n");
    let value =
        world.call("read_file", r#"{"path":"a.txt","start":2}"#).value.as_ref().unwrap().to_value();
    assert_eq!(value["hash"], blake3::hash(b"one\r\ntwo\r\n").to_hex().as_str());
}

#[test]
fn lines_are_counted_as_editors_count_them() {
    let world = World::new();
    for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("\n", 1), ("a\nb", 2)] {
        world.file("a.txt", text);
        let value =
            world.call("read_file", r#"{"path":"a.txt"}"#).value.as_ref().unwrap().to_value();
        assert_eq!(value["total_lines"], lines, "{text:?}");
        assert_eq!((&value["lines"], &value["text"]), (&lines.into(), &text.into()));
    }
}

#[test]
fn line_ends_are_named_and_shown_as_edits_take_them() {
    let world = World::new();
    world.file("crlf", "a\r\nb\r\n").file("mixed", "a\r\nb\n").file("mac", "a\rb");
    world.check(
        r#"
        read_file {"path":"crlf"}
        read_file {"path":"mixed","start":2}
        read_file {"path":"mac"}
        "#,
        expect![[r#"
            ok
            hash: "e17e2ed2d9c3f5466860f16170f4ab2b77e0102c0038f596ac910a6f5a7b5c33"
            lines: 2
            newline: "crlf"
            path: "crlf"
            start: 1
            text: "a\nb\n"
            total_lines: 2
            truncated: false
            ok
            hash: "a94c941ea4a9f700e1bf84b313b8180ef20ba180d45814ebd2b1700e2ea0c67c"
            lines: 1
            newline: "mixed"
            path: "mixed"
            start: 2
            text: "b\n"
            total_lines: 2
            truncated: false
            ok
            hash: "e0a19fa9a1f9effd04fc30ae0d254b670f11d387522040ddeff326155015d607"
            lines: 1
            newline: "mixed"
            path: "mac"
            start: 1
            text: "a\rb"
            total_lines: 1
            truncated: false
        "#]],
    );
}

#[test]
fn a_range_that_cannot_be_is_refused() {
    let world = World::new();
    world.file("a.txt", "one\n").file("empty", "");
    world.check(
        r#"
        read_file {"path":"a.txt","start":0}
        read_file {"path":"a.txt","lines":0}
        read_file {"path":"a.txt","start":2}
        read_file {"path":"empty","start":2}
        read_file {"path":"a.txt","start":18446744073709551615,"lines":18446744073709551615}
        "#,
        expect![[r#"
            [args.invalid] not executed: arguments could not be deserialised: /start:
                expected at least 1, found 0
            [args.invalid] not executed: arguments could not be deserialised: /lines:
                expected at least 1, found 0
            [past_end] not executed: /start: found 2, but the last line of `a.txt` is 1
            [past_end] not executed: /start: found 2, but the last line of `empty` is 0
            [past_end] not executed: /start: found 18446744073709551615, but the last
                line of `a.txt` is 1
        "#]],
    );
}

#[test]
fn what_is_not_text_is_refused() {
    let world = World::new();
    world.file("latin1", b"caf\xe9\n").file("nul", b"a\0b").file("png", b"\x89PNG\r\n\x1a\n\0");
    world.file("cut", "é".as_bytes().split_last().unwrap().1);
    world.check(
        r#"
        read_file {"path":"latin1"}
        read_file {"path":"nul"}
        read_file {"path":"png"}
        read_file {"path":"cut"}
        edit_file {"path":"latin1","edits":[{"old":"caf","new":"tea"}]}
        "#,
        expect![[r#"
            [not_text] not executed: `latin1` is not text: found 0xe9 at byte 3,
                expected UTF-8 without NUL
            [not_text] not executed: `nul` is not text: found a NUL at byte 1, expected
                UTF-8 without NUL
            ok
            bytes: 9
            hash: "af271a5d3c42ec4008f07477f10e0d48d757576f4b415de546b00ce2769ba1e8"
            media_type: "image/png"
            path: "png"
            [not_text] not executed: `cut` is not text: found 0xc3 at byte 0, expected
                UTF-8 without NUL
            [not_text] not executed: `latin1` is not text: found 0xe9 at byte 3,
                expected UTF-8 without NUL
        "#]],
    );
}

#[test]
fn a_long_text_is_cut_between_lines_and_can_be_read_on() {
    let world = World::new();
    let text: String = (1..=20_000).map(|line| format!("line {line}\n")).collect();
    world.file("long.txt", &text);
    let (mut read, mut start, mut calls) = (String::new(), 1, 0);
    loop {
        let args = format!(r#"{{"path":"long.txt","start":{start}}}"#);
        let value = world.call("read_file", &args).value.as_ref().unwrap().to_value();
        let part = value["text"].as_str().unwrap();
        assert!(part.len() <= READ_BYTES_MAX && part.ends_with('\n'));
        read.push_str(part);
        start += value["lines"].as_u64().unwrap();
        calls += 1;
        if value["truncated"] == false {
            break;
        }
    }
    assert_eq!(calls, text.len().div_ceil(READ_BYTES_MAX));
    assert_eq!(read, text);
}

#[test]
fn a_line_that_is_too_long_is_cut_between_characters() {
    let world = World::new();
    world.file("long.txt", format!("a{}\nnext\n", "é".repeat(READ_BYTES_MAX)));
    let value =
        world.call("read_file", r#"{"path":"long.txt"}"#).value.as_ref().unwrap().to_value();
    assert_eq!(value["text"].as_str().unwrap().len(), READ_BYTES_MAX - 1);
    assert_eq!((&value["lines"], &value["truncated"]), (&1.into(), &true.into()));
}

#[test]
fn the_largest_file_is_read_and_a_byte_more_is_refused() {
    let world = World::new();
    let bytes = vec![b'a'; usize::try_from(FILE_BYTES_MAX).unwrap()];
    world.file("largest", &bytes).file("larger", [&bytes[..], b"a"].concat());
    assert_eq!(code(&world.call("read_file", r#"{"path":"largest"}"#)), "ok");
    world.check(
        r#"read_file {"path":"larger"}"#,
        expect![[r#"
        [too_large] not executed: `larger` is too large: 8388609 bytes or more,
            expected at most 8388608
    "#]],
    );
}

#[test]
fn a_link_that_stays_inside_is_named_and_not_followed() {
    let world = World::new();
    world.file("dir/a.txt", "inside\n").link("dir/a.txt", "file").link("dir", "folder");
    world.link("../file", "dir/back");
    for path in ["file", "folder/a.txt", "dir/back", "folder/back"] {
        let reply = world.call("read_file", &format!(r#"{{"path":"{path}"}}"#));
        assert_eq!(code(&reply), "symlink", "{path}");
        assert!(reply.text().contains("symbolic link to `dir/a.txt`"), "{}", reply.text());
    }
}

#[test]
fn relative_paths_are_relative_to_the_workspace_and_not_to_the_process() {
    let world = World::new();
    world.file("Cargo.toml", "of the workspace\n");
    assert!(std::path::Path::new("Cargo.toml").exists(), "the process has one too");
    for path in ["Cargo.toml", "./Cargo.toml"] {
        let reply = world.call("read_file", &format!(r#"{{"path":"{path}"}}"#));
        assert_eq!(reply.value.as_ref().unwrap().to_value()["text"], "of the workspace\n");
    }
}
