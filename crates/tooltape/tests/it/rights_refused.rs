//! What is not exactly a right is refused, with what was found and what was expected.

use tooltape::{Right, Rights};

const HASH: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

#[test]
fn a_refusal_says_what_was_found_and_what_was_expected() {
    for (text, message) in [
        ("", "a right is empty, expected `domain:action:scope`"),
        ("fs", "`fs` is no right, expected `domain:action:scope`"),
        ("fs:read", "`fs:read` is no right, expected `domain:action:scope`"),
        (
            "file:read:src",
            "`file` is no domain of rights, expected `fs`, `net`, `process`, `env`, `secret`, \
             `spend`, `agents`, `mcp`, `clock` or `random`",
        ),
        ("fs:append:src", "`append` is no action of `fs`, expected `read` or `write`"),
        ("fs:read:", "in `fs:read:`, the path is empty, expected a path, or `.` for all"),
        (
            "fs:read:a\0b",
            "in `fs:read:a\\0b`, the path has `\\0` at byte 1, expected no control character, no \
             backslash, and no wildcard: a folder covers all in it",
        ),
        (
            "fs:read:@scratch",
            "in `fs:read:@scratch`, the path is `@scratch`, expected `@root/path`, or `./@name` \
             for a file of that name",
        ),
        ("net:get:[0:0::1]", "in `net:get:[0:0::1]`, the host is `0:0::1`, expected `::1`"),
        (
            "net:get:[::ffff:7f00:1]",
            "in `net:get:[::ffff:7f00:1]`, the host is `::ffff:7f00:1`, expected `127.0.0.1`",
        ),
        (
            "net:get:a@example.com",
            "in `net:get:a@example.com`, the host has `@` at byte 1, expected only `a-z 0-9 . -`",
        ),
        (
            "net:get:example.com:0",
            "in `net:get:example.com:0`, the port is `0`, expected a number from 1 to 65535",
        ),
        (
            "spend:USD:5",
            "in `spend:USD:5`, the currency is `USD`, expected three lower-case letters such as \
             `usd`",
        ),
        ("clock:read:*", "in `clock:read:*`, the scope is `*`, expected `now`"),
        (
            "mcp:call:a/b@c",
            "in `mcp:call:a/b@c`, the hash is `c`, expected 64 lower-case hexadecimal digits",
        ),
    ] {
        assert_eq!(text.parse::<Right>().unwrap_err().to_string(), message);
    }
}

#[test]
fn nothing_malformed_is_read_as_a_right() {
    let scopes = [
        ("fs:read:", PATHS),
        ("fs:write:", PATHS),
        ("fs:read:@scratch/", PATHS),
        ("net:get:", HOSTS),
        ("net:any:", HOSTS),
        ("net:get:*.", HOSTS),
        ("process:run:", PROGRAMS),
        ("process:run:/", PATHS),
        ("process:shell:", WORDS),
        ("secret:use:", WORDS),
        ("env:read:", WORDS),
        ("env:read:", &["1A", "A-B", "A.B", "A=B", "9"]),
        ("spend:usd:", AMOUNTS),
        ("agents:spawn:", COUNTS),
        ("mcp:call:", TOOLS),
        ("clock:read:", &["", "*", "any", "now ", "Now", "now:now"]),
        ("random:read:", &["", "*", "now", "any ", "ANY", "8"]),
        ("", WHOLE),
    ];
    let mut refused = 0;
    for (start, ends) in scopes {
        for end in ends {
            let text = format!("{start}{end}");
            assert!(text.parse::<Right>().is_err(), "`{text}` was read");
            assert!(text.parse::<Rights>().is_err() || text.is_empty(), "`{text}` was read");
            refused += 1;
        }
    }
    for hash in [&HASH[1..], &HASH.to_uppercase(), &format!("{HASH}0"), "", "*", "latest"] {
        assert!(format!("mcp:call:server/tool@{hash}").parse::<Right>().is_err(), "`{hash}`");
        refused += 1;
    }
    eprintln!("rights: {refused} malformed texts, all refused");
    assert!(refused >= 250, "only {refused}");
}

const PATHS: &[&str] = &[
    "",
    "/",
    "/etc",
    "..",
    "../x",
    "a/../b",
    "a/..",
    "a//b",
    "a/",
    "./a",
    "a/.",
    "a/./b",
    "./",
    "a\\b",
    "\\\\host\\share",
    "C:/x",
    "c:",
    "a\0",
    "a\nb",
    "a\rb",
    "a\tb",
    "*",
    "a/*",
    "**",
    "a/?.rs",
    " ",
    " a",
    "a ",
    "a/ b",
    "a /b",
    "\u{a0}a",
    "a\u{7f}",
    "a\u{85}b",
    "a\u{1b}[0m",
];
const HOSTS: &[&str] = &[
    "",
    "*",
    "**",
    "*.com",
    "*.*",
    "*.*.com",
    "a.*.com",
    "*example.com",
    "example.com.",
    ".",
    "..",
    ".example.com",
    "a..b",
    "-a.com",
    "a-.com",
    "a_b.com",
    "user@example.com",
    "u:p@example.com",
    "example.com\0",
    "example.com\0.evil.com",
    "a\rb",
    "a\nb",
    "a%2eb",
    "a\tb",
    "a\\b",
    "a b",
    " example.com",
    "example.com ",
    "bücher.example",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0x",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.01",
    "127.0.0.256",
    "1.2.3.4.5",
    "127.0.0.1.",
    "::1",
    "[::1",
    "::1]",
    "[]",
    "[::1]x",
    "[:::]",
    "[0::1]",
    "[::0001]",
    "[::FFFF:1.2.3.4]",
    "[::ffff:7f00:1]",
    "[fe80::1%eth0]",
    "[1.2.3.4]",
    "[2001:DB8::1]",
    "example.com:",
    "example.com:0",
    "example.com:00443",
    "example.com:+1",
    "example.com:65536",
    "example.com:-1",
    "example.com:80:80",
    "example.com:http",
    "example.com/path",
    "https://example.com",
    "example.com?x",
    "example.com#x",
    "a,b",
];
const PROGRAMS: &[&str] = &["", "git", "./git", "../git", "/", "/.", "//bin/ls", "~/x", "@a/b"];
const WORDS: &[&str] = &[
    "", "*", "a*", "a b", " a", "a ", "a/b", "a:b", "a\0", "a\n", "é", ".", "..", ".a", "-a", "@a",
    "a,b", "a\\b", "a%", "$A", "!a",
];
const AMOUNTS: &[&str] = &[
    "",
    "0",
    "0.0",
    "0.000000",
    "-1",
    "+1",
    "1.",
    ".5",
    "01",
    "00",
    "1.0000000",
    "0.0000001",
    "1e3",
    "1_000",
    "1,5",
    "1.2.3",
    " 1",
    "1 ",
    "*",
    "inf",
    "NaN",
    "0x1",
    "١",
    "18446744073709.551616",
    "18446744073710",
    "99999999999999999999999",
];
const COUNTS: &[&str] = &[
    "",
    "1",
    "/",
    "1/",
    "/1",
    "0/1",
    "1/0",
    "01/1",
    "1/01",
    "-1/1",
    "+1/1",
    "1/1/1",
    "*/1",
    "1/*",
    "1 /1",
    "4294967296/1",
    "1/4294967296",
    "a/b",
];
const TOOLS: &[&str] = &["", "*", "server", "server/", "server/tool", "server/*", "/tool@", "@"];
const WHOLE: &[&str] = &[
    ":",
    "::",
    ":::",
    "*",
    "*:*:*",
    "fs:*:.",
    "*:read:.",
    "fs:Read:.",
    "FS:read:.",
    " fs:read:.",
    "fs :read:.",
    "fs: read:.",
    "fs:read: .",
    "fs:read:.\n",
    "fs:execute:.",
    "fs::.",
    ":read:.",
    "net:GET:example.com",
    "net:options:example.com",
    "net:*:example.com",
    "net:example.com",
    "net::example.com",
    "process:kill:1",
    "process:run",
    "env:write:A",
    "env:*:A",
    "secret:read:a",
    "spend:us:1",
    "spend:usdt:1",
    "spend:u1d:1",
    "spend:*:1",
    "spend::1",
    "spend:usd",
    "agents:start:1/1",
    "mcp:list:a",
    "clock:set:now",
    "random:seed:any",
    "approve:once:x",
    "gpu:use:0",
    "{}",
    "null",
    "true",
    "fs:read",
    "\u{feff}fs:read:.",
    "!!fs:read:.",
];
