//! `read_file` on what is not plain UTF-8, and `list_dir` on more than one level.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use serde_json::{Value, json};
use tooltape::Block;
use tooltape_kit::limits::{READ_BYTES_MAX, READ_IMAGE_BYTES_MAX};

use crate::world::{World, code};

fn value(world: &World, tool: &str, args: &Value) -> Value {
    let reply = world.call(tool, &args.to_string());
    reply.value.as_ref().unwrap_or_else(|| panic!("{args}: {}", reply.text())).to_value()
}

#[test]
fn lines_have_their_numbers_where_these_are_asked_for() {
    let world = World::new();
    world.file("a.txt", "one\r\ntwo\r\n\r\nfour").file("many.txt", "\n".repeat(100_000));
    let read =
        value(&world, "read_file", &json!({ "path": "a.txt", "numbered": true, "start": 2 }));
    assert_eq!(read["text"], "2\ttwo\n3\t\n4\tfour");
    // The numbers count towards what is returned.
    let read = value(&world, "read_file", &json!({ "path": "many.txt", "numbered": true }));
    let text = read["text"].as_str().unwrap();
    assert!(text.len() <= READ_BYTES_MAX && text.len() > READ_BYTES_MAX - 16, "{}", text.len());
    assert_eq!(text.lines().count() as u64, read["lines"].as_u64().unwrap());
    assert_eq!(read["truncated"], true);
    let next = json!({ "path": "many.txt", "numbered": true, "start": read["lines"] });
    let next = value(&world, "read_file", &next);
    let expected = format!("{}\t\n", read["lines"]);
    assert!(next["text"].as_str().unwrap().starts_with(&expected));
}

#[test]
fn texts_of_other_encodings_are_read_where_they_say_so_or_somebody_does() {
    let world = World::new();
    let utf16 = |text: &str, mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
        [mark, &text.encode_utf16().flat_map(bytes).collect::<Vec<_>>()].concat()
    };
    world.file("le", utf16("héllo\r\nwörld\r\n", b"\xff\xfe", u16::to_le_bytes));
    world.file("be", utf16("héllo\n", b"\xfe\xff", u16::to_be_bytes));
    world.file("bare", utf16("hi\n", b"", u16::to_le_bytes));
    world.file("latin1", b"caf\xe9\n").file("sjis", b"\x83e\x83X\x83g\n");
    world.file("torn", b"\xff\xfeh\0i").file("utf8", "naïve\n");
    for (path, encoding, text, said) in [
        ("le", None, "héllo\nwörld\n", json!("UTF-16LE")),
        ("be", None, "héllo\n", json!("UTF-16BE")),
        ("le", Some("utf-16le"), "héllo\nwörld\n", json!("UTF-16LE")),
        ("bare", Some("UTF-16LE"), "hi\n", json!("UTF-16LE")),
        ("latin1", Some("latin1"), "café\n", json!("windows-1252")),
        ("sjis", Some("shift_jis"), "テスト\n", json!("Shift_JIS")),
        ("utf8", Some("utf-8"), "naïve\n", Value::Null),
        ("utf8", Some("latin1"), "naÃ¯ve\n", json!("windows-1252")),
    ] {
        let read = value(&world, "read_file", &json!({ "path": path, "encoding": encoding }));
        assert_eq!((&read["text"], &read["encoding"]), (&json!(text), &said), "{path}");
    }
    for (path, encoding, expected) in [
        ("latin1", None, "not_text"),
        ("latin1", Some("utf-8"), "not_text"),
        ("torn", None, "not_text"),
        ("bare", None, "not_text"),
        ("utf8", Some("klingon"), "unknown_encoding"),
        ("utf8", Some(""), "unknown_encoding"),
    ] {
        let args = json!({ "path": path, "encoding": encoding }).to_string();
        assert_eq!(code(&world.call("read_file", &args)), expected, "{path} {encoding:?}");
    }
}

#[test]
fn images_are_shown_as_images() {
    let world = World::new();
    for (path, bytes, media_type) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n\0\0"[..], "image/png"),
        ("b.jpeg", b"\xff\xd8\xff\xe0\0", "image/jpeg"),
        ("c.gif", b"GIF89a\x01\0\x01\0", "image/gif"),
        ("d.webp", b"RIFF\x04\0\0\0WEBPVP8 ", "image/webp"),
        ("looks.txt", b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
    ] {
        world.file(path, bytes);
        let reply = world.call("read_file", &json!({ "path": path }).to_string());
        let shown = reply.content.iter().find_map(|block| match block {
            Block::Image { media_type, data } => Some((media_type.clone(), data.clone())),
            _ => None,
        });
        assert_eq!(shown, Some((media_type.to_owned(), STANDARD.encode(bytes))), "{path}");
        let value = reply.value.as_ref().unwrap().to_value();
        assert_eq!(value["hash"], blake3::hash(bytes).to_hex().as_str());
        assert_eq!(value["bytes"], bytes.len());
    }
    // What begins like an image and is text is text.
    world.file("gif.txt", "GIF89a is how they begin\n");
    let read = value(&world, "read_file", &json!({ "path": "gif.txt" }));
    assert_eq!(read["total_lines"], 1);
}

#[test]
fn what_is_no_text_is_refused_by_what_it_is() {
    let world = World::new();
    let large = [&b"\x89PNG\r\n\x1a\n"[..], &vec![0; READ_IMAGE_BYTES_MAX]].concat();
    world.file("large.png", large).file("a.png", b"\x89PNG\r\n\x1a\n\0\0");
    world.file("a.pdf", b"%PDF-1.7\n\xe2\xe3").file("a.zip", b"PK\x03\x04\x14\0");
    world.file("a.out", b"\x7fELF\x02\x01\x01\0").file("a.db", b"SQLite format 3\0");
    world.file("a.tar", [&vec![0; 257][..], b"ustar\0"].concat()).file("a.bin", b"\x01\0\x02");
    world.check(
        r#"
        read_file {"path":"large.png"}
        read_file {"path":"a.png","start":1}
        read_file {"path":"a.png","encoding":"utf-8"}
        read_file {"path":"a.pdf"}
        read_file {"path":"a.zip"}
        read_file {"path":"a.out"}
        read_file {"path":"a.db"}
        read_file {"path":"a.tar"}
        read_file {"path":"a.bin"}
        "#,
        expect![[r#"
            [too_large] not executed: `large.png` is an image of 3145736 bytes, expected
                at most 3145728
            [not_text] not executed: `a.png` is an image and has no lines, expected no
                `start` or `lines`
            [not_text] not executed: `a.png` is not text but image/png: found what is
                not UTF-8
            [not_text] not executed: `a.pdf` is not text but a PDF document: found 0xe2
                at byte 9, expected UTF-8 without NUL
            [not_text] not executed: `a.zip` is not text but a ZIP archive, or an office
                document or package in one: found a NUL at byte 5, expected UTF-8
                without NUL
            [not_text] not executed: `a.out` is not text but an ELF program or library:
                found a NUL at byte 7, expected UTF-8 without NUL
            [not_text] not executed: `a.db` is not text but an SQLite database: found a
                NUL at byte 15, expected UTF-8 without NUL
            [not_text] not executed: `a.tar` is not text but a tar archive: found a NUL
                at byte 0, expected UTF-8 without NUL
            [not_text] not executed: `a.bin` is not text: found a NUL at byte 1,
                expected UTF-8 without NUL
        "#]],
    );
}

#[test]
fn a_listing_may_go_deeper() {
    let world = World::new();
    world.file("a/b/c/d.txt", "four").file("a/.x", "").file("z.txt", "1").link("a", "link");
    world.check(
        r#"
        list_dir {"depth":2}
        list_dir {"path":"a","depth":8}
        list_dir {"path":"link","depth":2}
        list_dir {"path":"z.txt","depth":2}
        list_dir {"depth":0}
        list_dir {"depth":9}
        "#,
        expect![[r#"
            ok
            entries:
              {"kind":"dir","name":"a"}
              {"kind":"file","name":"a/.x","size":0}
              {"kind":"dir","name":"a/b"}
              {"kind":"symlink","name":"link"}
              {"kind":"file","name":"z.txt","size":1}
            path: "."
            total: 5
            truncated: false
            ok
            entries:
              {"kind":"file","name":".x","size":0}
              {"kind":"dir","name":"b"}
              {"kind":"dir","name":"b/c"}
              {"kind":"file","name":"b/c/d.txt","size":4}
            path: "a"
            total: 4
            truncated: false
            [symlink] not executed: `link` is or goes through a symbolic link to `a`,
                expected the path of the file itself
            [not_a_directory] not executed: `z.txt` is a regular file, expected a
                directory
            [args.refused] not executed: /depth: found 0, expected 1 to 8
            [args.refused] not executed: /depth: found 9, expected 1 to 8
        "#]],
    );
}
