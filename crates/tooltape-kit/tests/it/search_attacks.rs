//! Patterns, trees and files that are made to hang, to swell or to lead out: bounded, every one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::Reply;

use crate::users::as_each;
use crate::world::{CANARY, World, code};

/// A name, a tool, and its arguments. `{n*text}` stands for `n` times the text.
const FS_16: [(&str, &str, &str); 22] = [
    ("stars", "glob", r#"{"pattern":"{300***/}*.rs"}"#),
    ("stars in a name", "glob", r#"{"pattern":"{500**a}"}"#),
    ("braces", "glob", r#"{"pattern":"{20*{a,b}}"}"#),
    ("braces with stars", "glob", r#"{"pattern":"{60*{*a,*b}}"}"#),
    ("nested braces", "glob", r#"{"pattern":"{200*{a,}{200*}}"}"#),
    ("questions", "glob", r#"{"pattern":"{1000*?}"}"#),
    ("classes", "glob", r#"{"pattern":"{60*[a-zA-Z0-9]}"}"#),
    ("unclosed class", "glob", r#"{"pattern":"[a"}"#),
    ("unclosed brace", "glob", r#"{"pattern":"{a"}"#),
    ("nothing", "glob", r#"{"pattern":""}"#),
    ("not nothing", "glob", r#"{"pattern":"!"}"#),
    ("backslash", "glob", r#"{"pattern":"\\"}"#),
    ("too long", "glob", r#"{"pattern":"{1025*a}"}"#),
    ("upwards", "glob", r#"{"pattern":"../**"}"#),
    ("absolute", "glob", r#"{"pattern":"/../outside/*"}"#),
    ("through a link", "glob", r#"{"pattern":"out/**"}"#),
    ("at a link", "glob", r#"{"pattern":"**","path":"out"}"#),
    ("in a loop", "glob", r#"{"pattern":"loop/**"}"#),
    ("at a loop", "glob", r#"{"pattern":"**","path":"self"}"#),
    ("at a pipe", "glob", r#"{"pattern":"**","path":"pipe"}"#),
    ("too deep", "glob", r#"{"pattern":"bottom"}"#),
    ("too many", "glob", r#"{"pattern":"*","path":"many","limit":10001}"#),
];

const FS_17: [(&str, &str, &str); 32] = [
    ("nested repeats", "grep", r#"{"pattern":"(a+)+$"}"#),
    ("the same twice", "grep", r#"{"pattern":"^(a|a)*b"}"#),
    ("two repeats", "grep", r#"{"pattern":"(x+x+)+y"}"#),
    ("three stars", "grep", r#"{"pattern":".*.*.*=.*"}"#),
    ("a long tail", "grep", r#"{"pattern":"[01]*1[01]{200}$"}"#),
    ("repeats of repeats", "grep", r#"{"pattern":"((a{100}){100}){100}"}"#),
    ("many letters", "grep", r#"{"pattern":"\\w{5000}"}"#),
    ("a million", "grep", r#"{"pattern":"a{1000000}"}"#),
    ("deep groups", "grep", r#"{"pattern":"{300*(}a{300*)}"}"#),
    ("many choices", "grep", r#"{"pattern":"{600*foo|}bar"}"#),
    ("unclosed", "grep", r#"{"pattern":"("}"#),
    ("look ahead", "grep", r#"{"pattern":"(?=a)"}"#),
    ("back reference", "grep", r#"{"pattern":"(a)\\1"}"#),
    ("line end", "grep", r#"{"pattern":"a\\nb"}"#),
    ("line end, fixed", "grep", r#"{"pattern":"a\nb","fixed":true}"#),
    ("nothing", "grep", r#"{"pattern":""}"#),
    ("too long", "grep", r#"{"pattern":"{4097*a}"}"#),
    ("everything", "grep", r#"{"pattern":"(?s).*","multiline":true,"show":"files"}"#),
    ("every line", "grep", r#"{"pattern":"^","show":"counts","path":"text"}"#),
    ("NUL", "grep", r#"{"pattern":"\\x00"}"#),
    ("not text", "grep", r#"{"pattern":"(?-u)\\xff"}"#),
    ("binary", "grep", r#"{"pattern":"needle","path":"binary"}"#),
    ("a gigabyte of nothing", "grep", r#"{"pattern":"needle","path":"sparse"}"#),
    ("the same, over lines", "grep", r#"{"pattern":"needle","path":"sparse","multiline":true}"#),
    ("an endless line", "grep", r#"{"pattern":"needle","path":"endless"}"#),
    ("a long line", "grep", r#"{"pattern":"needle","path":"long"}"#),
    ("at a pipe", "grep", r#"{"pattern":"a","path":"pipe"}"#),
    ("at a link", "grep", r#"{"pattern":"CANARY","path":"out"}"#),
    ("through a link", "grep", r#"{"pattern":"CANARY","hidden":true,"ignored":true}"#),
    ("context", "grep", r#"{"pattern":"a","before":21}"#),
    ("no limit", "grep", r#"{"pattern":"a","limit":0}"#),
    ("a bad glob", "grep", r#"{"pattern":"a","glob":"["}"#),
];

#[test]
fn nothing_that_is_searched_for_hangs_swells_or_escapes() {
    as_each("search_attacks::nothing_that_is_searched_for_hangs_swells_or_escapes", |user| {
        let world = World::new();
        prepare(&world);
        let outside = world.outside();
        check("FS-16", &FS_16, &world, expect_file_of_globs());
        check("FS-17", &FS_17, &world, expect_file_of_patterns());
        assert_eq!(world.outside(), outside);
        let (cases, escapes) = (FS_16.len() + FS_17.len(), control(&world));
        eprintln!("search: {cases} cases as {user}, 0 escapes, control {escapes} escapes");
    });
}

/// How many of the links lead a search out that is written the usual way.
fn control(world: &World) -> usize {
    fn walk(folder: &Path, depth: u32, found: &mut usize) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match fs::metadata(&path) {
                Ok(it) if it.is_dir() && depth < 3 => walk(&path, depth + 1, found),
                Ok(it) if it.is_file() && it.len() < 100 => {
                    let text = fs::read(&path).unwrap_or_default();
                    *found += usize::from(text == CANARY.as_bytes());
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    let mut found = 0;
    walk(&world.at(""), 0, &mut found);
    assert!(found > 0, "the links lead out");
    found
}

fn check(family: &str, cases: &[(&str, &str, &str)], world: &World, expected: Expect) {
    let mut lines = String::new();
    for (name, tool, args) in cases {
        let reply = world.call(tool, &unfolded(args));
        assert!(!reply.text().contains(CANARY.trim()), "{family} {name}: {}", reply.text());
        lines += &format!("{family} {name}: {}\n", outcome(&reply));
    }
    expected.assert_eq(&lines);
}

/// What came of a call, in few words.
fn outcome(reply: &Reply) -> String {
    let Some(value) = reply.value.as_ref().map(tooltape::Canon::to_value) else {
        return code(reply).to_owned();
    };
    let count = value["files"].as_array().unwrap().len();
    let cut = value["truncated_by"].as_str().map(|why| format!(", cut by {why}"));
    let skipped = value["skipped"].as_u64().filter(|skipped| *skipped > 0);
    let skipped = skipped.map(|skipped| format!(", {skipped} skipped"));
    let is_cut = value["truncated"] == Value::Bool(true);
    assert_eq!(is_cut, cut.is_some());
    format!("{count} files{}{}", cut.unwrap_or_default(), skipped.unwrap_or_default())
}

/// Writes out what is folded.
fn unfolded(text: &str) -> String {
    let mut unfolded = text.to_owned();
    while let Some((from, times, star)) = fold(&unfolded) {
        let mut depth = 1;
        let end = unfolded[star + 1..]
            .find(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth == 0
            })
            .unwrap();
        let piece = unfolded[star + 1..star + 1 + end].replace("{200*}", "");
        unfolded.replace_range(from..star + end + 2, &piece.repeat(times));
    }
    unfolded
}

/// Where a fold begins, how often, and where its star is.
fn fold(text: &str) -> Option<(usize, usize, usize)> {
    text.match_indices('{').find_map(|(from, _)| {
        let star = from + text[from..].find('*')?;
        let times = text[from + 1..star].parse().ok()?;
        Some((from, times, star))
    })
}

fn prepare(world: &World) {
    let at = |path: &str| world.at(path);
    world.file("text/a.txt", "needle\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\nx = 1\n");
    world.file("text/b.txt", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
    world.file("binary", b"\x7fELF\0needle\0");
    world.file("bits", "01".repeat(100_000));
    world.file("long", format!("{}needle{}\n", "é".repeat(100_000), "ü".repeat(100_000)));
    File::create(at("sparse")).unwrap().set_len(1 << 30).unwrap();
    let mut endless = File::create(at("endless")).unwrap();
    for _ in 0..9 {
        endless.write_all(&vec![b'a'; 1 << 20]).unwrap();
    }
    fs::write(at("").join(OsStr::from_bytes(b"not \xff utf-8")), "needle\n").unwrap();
    world.link("../outside", "out").link(".", "loop").link("self", "self").link("..", "up");
    world.link("../outside/canary", "canary.txt").link("text/a.txt", "inside");
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    // Ignore files of every kind but the usual one.
    for dir in ["bomb", "piped", "linked", "folder"] {
        world.file(&format!("{dir}/x.txt"), "needle\n");
    }
    world.file("bomb/.gitignore", format!("{}\n", "{a,b}*".repeat(100)).repeat(500));
    assert!(Command::new("mkfifo").arg(at("piped/.gitignore")).status().unwrap().success());
    symlink("../../outside/canary", at("linked/.gitignore")).unwrap();
    fs::create_dir(at("folder/.gitignore")).unwrap();
    let deep = "d/".repeat(150);
    world.file(&format!("{deep}bottom"), "needle\n");
    let args = json!({ "pattern": "needle", "show": "files" });
    assert_eq!(code(&world.call("grep", &args.to_string())), "ok");
}

fn expect_file_of_globs() -> Expect {
    expect![[r#"
        FS-16 stars: 0 files, cut by depth
        FS-16 stars in a name: 0 files, cut by depth
        FS-16 braces: 0 files, cut by depth
        FS-16 braces with stars: 0 files, cut by depth
        FS-16 nested braces: 0 files, cut by depth
        FS-16 questions: 0 files, cut by depth
        FS-16 classes: 0 files, cut by depth
        FS-16 unclosed class: args.refused
        FS-16 unclosed brace: args.refused
        FS-16 nothing: args.refused
        FS-16 not nothing: 0 files
        FS-16 backslash: args.refused
        FS-16 too long: args.refused
        FS-16 upwards: 0 files, cut by depth
        FS-16 absolute: 0 files, cut by depth
        FS-16 through a link: 0 files, cut by depth
        FS-16 at a link: symlink
        FS-16 in a loop: 0 files, cut by depth
        FS-16 at a loop: symlink
        FS-16 at a pipe: not_a_directory
        FS-16 too deep: 0 files, cut by depth
        FS-16 too many: args.refused
    "#]]
}

fn expect_file_of_patterns() -> Expect {
    expect![[r#"
        FS-17 nested repeats: 0 files, cut by depth, 1 skipped
        FS-17 the same twice: 0 files, cut by depth, 1 skipped
        FS-17 two repeats: 0 files, cut by depth, 1 skipped
        FS-17 three stars: 1 files, cut by depth, 1 skipped
        FS-17 a long tail: 1 files, cut by depth, 1 skipped
        FS-17 repeats of repeats: args.refused
        FS-17 many letters: args.refused
        FS-17 a million: args.refused
        FS-17 deep groups: args.refused
        FS-17 many choices: 0 files, cut by depth, 1 skipped
        FS-17 unclosed: args.refused
        FS-17 look ahead: args.refused
        FS-17 back reference: args.refused
        FS-17 line end: args.refused
        FS-17 line end, fixed: args.refused
        FS-17 nothing: args.refused
        FS-17 too long: args.refused
        FS-17 everything: 9 files, cut by depth, 2 skipped
        FS-17 every line: 2 files
        FS-17 NUL: 0 files, cut by depth, 1 skipped
        FS-17 not text: 0 files, cut by depth, 1 skipped
        FS-17 binary: 0 files
        FS-17 a gigabyte of nothing: 0 files
        FS-17 the same, over lines: 0 files
        FS-17 an endless line: 0 files, 1 skipped
        FS-17 a long line: 1 files
        FS-17 at a pipe: not_a_directory
        FS-17 at a link: symlink
        FS-17 through a link: 0 files, cut by depth, 1 skipped
        FS-17 context: args.refused
        FS-17 no limit: args.refused
        FS-17 a bad glob: args.refused
    "#]]
}
