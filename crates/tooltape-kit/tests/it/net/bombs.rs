//! Pages that are larger, slower or deeper than anybody has room for (NET-06).

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use serde_json::{Value, json};
use tooltape::{Reply, Run};
use tooltape_kit::limits::{HTML_BYTES_MAX, TEXT_BYTES_DEFAULT, WIRE_BYTES_MAX};
use tooltape_kit::{Http, Patience};

use super::fakes::{Fakes, Page, response};
use super::{fetch, run_with};
use crate::world::code;

/// The most that a page may add to the memory of this process: 32 MiB.
const GROWTH_KIB_MAX: usize = 32 << 10;

fn run(http: Http) -> Run {
    let patience = Patience { wall: Duration::from_secs(5), idle: Duration::from_millis(300) };
    run_with(http.patience(patience), "net:get:example.com:80")
}

fn page(fakes: &Fakes, page: Page) -> Reply {
    fakes.page("example.com/", page);
    fetch(&run(fakes.http()), &json!({ "url": "http://example.com/", "format": "raw" }))
}

fn value(reply: &Reply) -> Value {
    reply.value.as_ref().unwrap_or_else(|| panic!("{}", reply.text())).to_value()
}

/// How much memory this process ever had, in KiB.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn gzip(bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![b'0'; 1 << 16];
    for _ in 0..bytes >> 16 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}

/// A page in `zstd` that unpacks to as much as nothing repeats: blocks of one byte, 128 KiB each.
fn zstd(blocks: usize, window: u8) -> Vec<u8> {
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, window];
    for at in 0..blocks {
        let last = u32::from(at + 1 == blocks);
        let header = last | (1 << 1) | ((128 << 10) << 3);
        bytes.extend_from_slice(&header.to_le_bytes()[..3]);
        bytes.push(b'0');
    }
    bytes
}

#[test]
fn what_unpacks_to_far_more_than_it_is_takes_no_room() {
    crate::users::with_variables(
        "net::bombs::what_unpacks_to_far_more_than_it_is_takes_no_room",
        &[],
        || {
            let fakes = Fakes::new();
            // Of some kibibytes nobody believes it, and of more there is room for the first bytes.
            let bombs = [
                ("gzip", gzip(4 << 20), "bomb"),
                ("zstd", zstd(100, 0x50), "bomb"),
                ("gzip", gzip(256 << 20), "ok"),
                ("zstd", zstd(80_000, 0x50), "ok"),
            ];
            let before = peak_kib();
            for (encoding, bomb, expected) in bombs {
                let fields = format!("content-type: text/plain\ncontent-encoding: {encoding}");
                let told = Page::Says(response(200, &fields, &bomb));
                let reply = page(&fakes, told);
                assert_eq!(code(&reply), expected, "{encoding}");
                let is_cut = || value(&reply)["truncated"] == true;
                assert!(expected == "bomb" || is_cut(), "{encoding}");
            }
            let grown = peak_kib() - before;
            println!("net: bombs of 10 GiB took {grown} KiB");
            assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
        },
    );
}

#[test]
fn what_is_packed_is_unpacked() {
    let fakes = Fakes::new();
    let text = b"hello, hello, hello";
    let zlib = |mut encoder: ZlibEncoder<Vec<u8>>| {
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(text).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text).unwrap();
    // By the reference encoders of these formats.
    let brotli = b"\x0f\x09\x80hello, hello, hello\x03".to_vec();
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 19, 19 << 3 | 1, 0, 0][..], text].concat();
    for (encoding, bytes) in [
        ("gzip", gzip.finish().unwrap()),
        ("deflate", zlib(ZlibEncoder::new(Vec::new(), Compression::fast()))),
        ("deflate", deflate.finish().unwrap()),
        ("br", brotli),
        ("zstd", zstd),
        ("identity", text.to_vec()),
    ] {
        let fields = format!("content-type: text/plain\ncontent-encoding: {encoding}");
        let reply = page(&fakes, Page::Says(response(200, &fields, &bytes)));
        assert_eq!(value(&reply)["text"], "hello, hello, hello", "{encoding}");
        // Cut off, or of another kind, it is none.
        let cut = Page::Says(response(200, &fields, &bytes[..bytes.len() - 4]));
        let reply = page(&fakes, cut);
        assert_eq!(code(&reply) == "encoding", encoding != "identity", "{encoding}");
    }
    for (encoding, bytes) in [
        ("compress", &b"x"[..]),
        ("gzip, gzip", b"x"),
        ("zstd", &zstd_of_window(31)),
        ("br", b"\xff"),
    ] {
        let fields = format!("content-type: text/plain\ncontent-encoding: {encoding}");
        let reply = page(&fakes, Page::Says(response(200, &fields, bytes)));
        assert_eq!(code(&reply), "encoding", "{encoding}: {}", reply.text());
    }
}

/// A page that wants a window of so many doublings of a KiB.
fn zstd_of_window(log: u8) -> Vec<u8> {
    zstd(1, log << 3)
}

#[test]
fn what_never_ends_is_cut() {
    let fakes = Fakes::new();
    let head =
        |fields: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{fields}\r\n");
    let chunk = [b"2000\r\n".as_slice(), &[b'a'; 0x2000], b"\r\n"].concat();
    let ways = [
        (head("transfer-encoding: chunked\r\n"), chunk),
        (head("content-length: 99999999999\r\n"), vec![b'a'; 0x2000]),
        (head(""), vec![b'a'; 0x2000]),
    ];
    for (head, again) in ways {
        let reply = page(&fakes, Page::Endless(head.clone().into_bytes(), again));
        let found = value(&reply);
        assert_eq!(found["truncated"], true, "{head}");
        assert_eq!(found["text"].as_str().unwrap().len(), TEXT_BYTES_DEFAULT, "{head}");
        assert!(found["bytes"].as_u64().unwrap() <= WIRE_BYTES_MAX as u64);
    }
    // The more that is asked for is never more than there is room for.
    let args = json!({ "url": "http://example.com/", "max_bytes": u32::MAX, "format": "raw" });
    let text = value(&fetch(&run(fakes.http()), &args))["text"].as_str().unwrap().len();
    assert!(text <= HTML_BYTES_MAX, "{text}");
}

#[test]
fn who_says_nothing_is_not_waited_for() {
    let fakes = Fakes::new();
    let begun = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n".to_vec();
    let lying =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nabc".to_vec();
    for (bytes, expected) in
        [(Vec::new(), "too_slow"), (begun, "too_slow"), (lying.clone(), "too_slow")]
    {
        assert_eq!(code(&page(&fakes, Page::Stalls(bytes))), expected);
    }
    // Whoever ends early has not said what was promised.
    assert_eq!(code(&page(&fakes, Page::Says(lying))), "protocol");
    assert_eq!(code(&page(&fakes, Page::Says(Vec::new()))), "protocol");
    // A field at a time, for ever, each in time.
    let reply = page(&fakes, Page::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"a: b\r\n".to_vec()));
    assert_eq!(code(&reply), "protocol", "{}", reply.text());
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let fakes = Fakes::new();
    let fields = |count: usize, bytes: usize| {
        let field = |at: usize| format!("x-{at}: {}\r\n", "a".repeat(bytes));
        let fields: String = (0..count).map(field).collect();
        Page::Says(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n").into_bytes())
    };
    for (count, bytes, expected) in [
        (100, 10, "ok"),
        (200, 10, "protocol"),
        (100_000, 1, "protocol"),
        (1, 1 << 20, "protocol"),
        (100, 10_000, "protocol"),
    ] {
        let reply = page(&fakes, fields(count, bytes));
        assert_eq!(code(&reply), expected, "{count} × {bytes}: {}", reply.text());
    }
    for odd in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nab",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\na\0b: c\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
    ] {
        let reply = page(&fakes, Page::Says(odd.to_vec()));
        assert_eq!(code(&reply), "protocol", "{}: {}", odd.escape_ascii(), reply.text());
    }
}

#[test]
fn html_that_nests_without_end_is_read_in_room_and_time_that_are_known() {
    let fakes = Fakes::new();
    let many = |count: usize, part: &str| part.repeat(count);
    let distinct: String = (0..500).map(|at| format!("<b a={at}>")).collect();
    let wide = format!("<table>{}<tr><td>{}</table>", many(5_000, "<tr><td>x"), many(50_000, "y"));
    for (name, html) in [
        ("elements", many(300_000, "<div>")),
        ("lists", many(100_000, "<ul><li>a")),
        ("quotations", many(90_000, "<blockquote>a")),
        ("formatting", distinct + &many(50_000, "<p>x")),
        ("anchors", many(50_000, "<a href=x><p>")),
        ("tables", many(60_000, "<table><tr><td>")),
        ("a wide table", wide),
        ("tags that never end", many(200_000, "<a \"")),
        ("quotes", many(200_000, "<a b='>")),
        ("comments", many(200_000, "<!-->")),
        ("scripts", many(100_000, "<script><script>")),
        ("svg", many(50_000, "<svg><style><b><math>")),
        ("ends", many(200_000, "</b></p></div>")),
        ("entities", many(200_000, "&amp;&#0;&#xfffffff;&bogus;")),
        ("attributes", format!("<a {}>x</a>", many(200_000, "a=b "))),
    ] {
        let args = json!({ "url": "http://example.com/", "max_bytes": u32::MAX });
        fakes.says("example.com/", "content-type: text/html", &html);
        let reply = fetch(&run(fakes.http()), &args);
        assert!(!reply.is_error, "{name}: {}", reply.text());
    }
}
