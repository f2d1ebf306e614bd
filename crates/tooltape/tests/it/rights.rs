//! Rights are written in one way, and cover by what they mean.

use std::collections::BTreeSet;

use tooltape::limits::{
    HOST_BYTES_MAX, RIGHT_BYTES_MAX, RIGHT_PATH_BYTES_MAX, RIGHT_PATH_DEPTH_MAX, RIGHTS_LISTED_MAX,
    RIGHTS_MAX, WORD_BYTES_MAX,
};
use tooltape::scope::{Host, Hosts, Method, NetScope};
use tooltape::{Right, RightError, Rights, RightsError, Why};

const HASH: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

fn right(text: &str) -> Right {
    text.parse().unwrap_or_else(|err| panic!("{err}"))
}

fn rights(text: &str) -> Rights {
    text.parse().unwrap_or_else(|err| panic!("{err}"))
}

#[test]
fn a_right_is_written_as_it_is_read() {
    let mcp = format!("mcp:call:github/create_issue@{HASH}");
    let texts = [
        "fs:read:.",
        "fs:read:src/a b/é.rs",
        "fs:read:src/[id].tsx",
        "fs:read:ab:c",
        "fs:write:@scratch/.",
        "fs:write:@scratch/out/x",
        "fs:read:@scratch/@types",
        "fs:read:./@types/node",
        "fs:read:..a/b../...",
        "net:get:example.com",
        "net:any:*.example.com",
        "net:post:example.com:8443",
        "net:head:localhost:80",
        "net:put:127.0.0.1:1",
        "net:patch:[::1]:65535",
        "net:delete:[2001:db8::1]",
        "net:get:xn--bcher-kva.example",
        "net:get:0x7f.example",
        "process:run:/usr/bin/git",
        "process:shell:build",
        "env:read:PATH",
        "env:read:_x9",
        "secret:use:github.token-2",
        "spend:usd:5",
        "spend:eur:0.000001",
        "spend:jpy:18446744073709.551615",
        "agents:spawn:3/2",
        "agents:spawn:4294967295/1",
        &mcp,
        "clock:read:now",
        "random:read:any",
    ];
    for text in texts {
        assert_eq!(right(text).to_string(), text);
        let json = serde_json::to_string(&right(text)).unwrap();
        assert_eq!(serde_json::from_str::<Right>(&json).unwrap(), right(text));
    }
    let distinct: BTreeSet<Right> = texts.into_iter().map(right).collect();
    assert_eq!(distinct.len(), texts.len());
}

#[test]
fn what_has_two_spellings_is_written_in_one() {
    for (text, written) in [
        ("net:get:Example.COM:443", "net:get:example.com"),
        ("net:get:*.EXAMPLE.com", "net:get:*.example.com"),
        ("net:get:[::1]:443", "net:get:[::1]"),
        ("spend:usd:2.50", "spend:usd:2.5"),
        ("spend:usd:2.000000", "spend:usd:2"),
    ] {
        assert_eq!(right(text).to_string(), written);
        assert_eq!(right(text), right(written));
    }
}

#[test]
fn everything_that_is_read_has_a_limit() {
    let path = |bytes: usize| "a".repeat(bytes);
    assert!(format!("fs:read:{}", path(RIGHT_PATH_BYTES_MAX)).parse::<Right>().is_ok());
    assert!(format!("fs:read:{}", path(RIGHT_PATH_BYTES_MAX + 1)).parse::<Right>().is_err());
    let longest = format!("fs:write:@{}/{}", path(WORD_BYTES_MAX), path(RIGHT_PATH_BYTES_MAX));
    assert_eq!(right(&longest).to_string(), longest);
    let err = path(RIGHT_BYTES_MAX + 1).parse::<Right>().unwrap_err();
    assert_eq!(err, RightError::TooLong { bytes: RIGHT_BYTES_MAX + 1 });
    let deep = |depth: usize| format!("fs:read:{}", vec!["a"; depth].join("/")).parse::<Right>();
    assert!(deep(RIGHT_PATH_DEPTH_MAX).is_ok());
    assert_eq!(
        deep(RIGHT_PATH_DEPTH_MAX + 1).unwrap_err().to_string().split(", ").nth(1),
        Some("the path has 65 components")
    );
    assert!(format!("secret:use:{}", path(WORD_BYTES_MAX)).parse::<Right>().is_ok());
    assert!(format!("secret:use:{}", path(WORD_BYTES_MAX + 1)).parse::<Right>().is_err());
    let name = ["a"; HOST_BYTES_MAX / 2 + 1].join(".");
    assert!(format!("net:get:{name}").parse::<Right>().is_ok());
    assert!(format!("net:get:{name}a").parse::<Right>().is_err());
    assert!(format!("net:get:{}.com", path(63)).parse::<Right>().is_ok());
    assert!(format!("net:get:{}.com", path(64)).parse::<Right>().is_err());
    let many = |count: usize| vec!["clock:read:now"; count];
    assert!(many(RIGHTS_MAX).join("\n").parse::<Rights>().is_ok());
    let too_many = Err(RightsError::TooMany { most: RIGHTS_MAX });
    assert_eq!(many(RIGHTS_MAX + 1).join("\n").parse::<Rights>(), too_many);
    // What two sets have in common may be more, and is read back.
    let listed = |count| serde_json::to_string(&many(count)).unwrap();
    assert!(serde_json::from_str::<Rights>(&listed(RIGHTS_LISTED_MAX)).is_ok());
    let err = serde_json::from_str::<Rights>(&listed(RIGHTS_LISTED_MAX + 1)).unwrap_err();
    assert!(err.to_string().starts_with("there are more than 65536 rights"), "{err}");
}

#[test]
fn rights_cover_by_meaning_and_never_by_how_they_begin() {
    for (one, other) in [
        ("fs:read:.", "fs:read:src"),
        ("fs:read:src", "fs:read:src"),
        ("fs:read:src", "fs:read:src/a/b"),
        ("fs:read:@a/.", "fs:read:@a/b"),
        ("net:any:example.com", "net:delete:example.com"),
        ("net:get:*.example.com", "net:get:a.b.example.com"),
        ("net:get:*.example.com", "net:get:*.a.example.com"),
        ("spend:usd:5", "spend:usd:4.999999"),
        ("agents:spawn:3/2", "agents:spawn:3/1"),
    ] {
        assert!(right(one).covers(&right(other)), "{one} covers {other}");
    }
    for (one, other) in [
        ("fs:read:src", "fs:read:src-evil"),
        ("fs:read:src", "fs:read:srcs/a"),
        ("fs:read:src/a", "fs:read:src"),
        ("fs:read:src", "fs:write:src"),
        ("fs:write:src", "fs:read:src"),
        ("fs:read:.", "fs:read:@a/src"),
        ("fs:read:@a/.", "fs:read:src"),
        ("fs:read:@a/.", "fs:read:./@a/b"),
        ("fs:read:@a/.", "fs:read:@ab/."),
        ("net:get:example.com", "net:any:example.com"),
        ("net:get:example.com", "net:head:example.com"),
        ("net:get:example.com", "net:get:example.com:80"),
        ("net:get:example.com", "net:get:www.example.com"),
        ("net:get:*.example.com", "net:get:example.com"),
        ("net:get:*.example.com", "net:get:evilexample.com"),
        ("net:get:*.example.com", "net:get:example.com.evil.com"),
        ("net:get:*.example.com", "net:get:*.com.example"),
        ("net:get:*.a.example.com", "net:get:*.example.com"),
        ("process:run:/usr/bin/git", "process:run:/usr/bin/git-shell"),
        ("process:run:/usr/bin", "process:run:/usr/bin/git"),
        ("env:read:HOME", "env:read:HOME_EVIL"),
        ("env:read:HOME", "env:read:home"),
        ("secret:use:a", "secret:use:a.b"),
        ("spend:usd:5", "spend:usd:5.000001"),
        ("spend:usd:5", "spend:eur:1"),
        ("agents:spawn:3/2", "agents:spawn:1/3"),
        ("agents:spawn:3/2", "agents:spawn:4/1"),
        ("clock:read:now", "random:read:any"),
    ] {
        assert!(!right(one).covers(&right(other)), "{one} does not cover {other}");
    }
}

#[test]
fn rights_meet_in_what_both_cover() {
    for (one, other, meet) in [
        ("fs:read:src", "fs:read:.", Some("fs:read:src")),
        ("fs:read:src", "fs:read:docs", None),
        ("net:any:a.example.com", "net:get:*.example.com", Some("net:get:a.example.com")),
        ("net:get:*.example.com", "net:post:*.example.com", None),
        ("net:get:*.a.com", "net:get:*.b.a.com", Some("net:get:*.b.a.com")),
        ("net:get:a.com:80", "net:get:a.com:81", None),
        ("agents:spawn:5/1", "agents:spawn:2/3", Some("agents:spawn:2/1")),
        ("spend:usd:5", "spend:usd:3", Some("spend:usd:3")),
        ("clock:read:now", "clock:read:now", Some("clock:read:now")),
        ("clock:read:now", "random:read:any", None),
    ] {
        assert_eq!(right(one).meet(&right(other)), meet.map(right), "{one}, {other}");
        assert_eq!(right(other).meet(&right(one)), meet.map(right), "{other}, {one}");
    }
}

#[test]
fn an_address_is_one_host_however_the_network_spells_it() {
    let mapped: std::net::IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    let net = |host| {
        let port = std::num::NonZeroU16::new(443).unwrap();
        Right::Net(NetScope { hosts: Hosts::from(Host::from(host)), port, method: Method::Get })
    };
    assert_eq!(net(mapped), right("net:get:10.0.0.1"));
    assert!(!rights("net:get:10.0.0.1").denying([net(mapped)]).covers(&net(mapped)));
}

#[test]
fn an_empty_set_covers_nothing_and_a_denial_beats_what_allows() {
    assert!(Rights::none().is_none());
    assert_eq!(Rights::none(), rights(""));
    assert!(!Rights::none().covers(&right("clock:read:now")));
    let set = rights("fs:read:.\nnet:any:*.example.com\nspend:usd:5\n!fs:read:keys")
        .denying([right("net:post:a.example.com"), right("spend:usd:9")]);
    for (text, why) in [
        ("fs:read:src", "covered by `fs:read:.`"),
        ("fs:read:keys", "denied by `fs:read:keys`"),
        ("fs:read:keys/a", "denied by `fs:read:keys`"),
        ("fs:read:keys2", "covered by `fs:read:.`"),
        ("fs:read:.", "denied by `fs:read:keys`"),
        ("fs:write:src", "covered by no right"),
        ("net:get:a.example.com", "covered by `net:any:*.example.com`"),
        ("net:any:a.example.com", "denied by `net:post:a.example.com`"),
        ("net:post:*.example.com", "denied by `net:post:a.example.com`"),
        ("net:post:b.example.com", "covered by `net:any:*.example.com`"),
        ("spend:usd:1", "denied by `spend:usd:9`"),
        ("clock:read:now", "covered by no right"),
    ] {
        assert_eq!(set.explain(&right(text)).to_string(), why, "{text}");
        assert_eq!(set.covers(&right(text)), why.starts_with("covered by `"), "{text}");
    }
    assert!(matches!(set.explain(&right("spend:eur:1")), Why::Missing));
    assert!(rights("spend:usd:5\n!spend:usd:1\nfs:read:a\n!fs:read:.").is_none());
}

#[test]
fn a_set_is_kept_in_one_form_and_survives_its_list() {
    let set = Rights::of(["fs:read:src/a", "clock:read:now", "fs:read:src"].map(right));
    let set = set.denying(["fs:read:src/b/c", "fs:read:src/b"].map(right));
    assert_eq!(set, rights("clock:read:now\n!fs:read:src/b\nfs:read:src\nfs:read:src"));
    assert_eq!(set.to_string(), "fs:read:src\nclock:read:now\n!fs:read:src/b");
    let json = r#"["fs:read:src","clock:read:now","!fs:read:src/b"]"#;
    assert_eq!(serde_json::to_string(&set).unwrap(), json);
    assert_eq!(serde_json::from_str::<Rights>(json).unwrap(), set);
    assert_eq!(serde_json::from_str::<Rights>("[]").unwrap(), Rights::none());
    let unknown = "fs:read:.\nfs:own:.".parse::<Rights>().unwrap_err().to_string();
    assert_eq!(unknown, "right 2: `own` is no action of `fs`, expected `read` or `write`");
    for bad in [
        "null",
        "{}",
        r#""fs:read:.""#,
        "[1]",
        "[null]",
        r#"[""]"#,
        r#"["fs:read:.", "fs:own:."]"#,
        r#"[["fs:read:."]]"#,
        r#"[{"fs": "read"}]"#,
        r#"["! fs:read:."]"#,
    ] {
        assert!(serde_json::from_str::<Rights>(bad).is_err(), "{bad}");
    }
    for bad in ["\n", "fs:read:.\n", "\nfs:read:.", "fs:read:.\r\nclock:read:now", "!", "#"] {
        assert!(bad.parse::<Rights>().is_err(), "{bad:?}");
    }
}
