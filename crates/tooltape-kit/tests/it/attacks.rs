//! Every way out of a workspace that is known, against every tool and against the usual one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::AsRawFd;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::Executed;

use crate::forms::{FORMS, MOVED};
use crate::naive;
use crate::users::as_each;
use crate::world::{CANARY, World, code};

/// Attacks: the family, the path as JSON, what the forms of the tools answer and how many of them,
/// and whether the usual tool lets it pass. `{ws}` stands for the workspace's own path, `{folder}`
/// for the folder above it, and `{fd}` for a file outside that this process has open.
const ATTACKS: Expect = expect![[r#"
    FS-01 "../ws-evil/canary": args.invalid 12, naive escapes
    FS-01 "{ws}-evil/canary": args.invalid 12, naive escapes
    FS-01 "sibling/canary": outside_root 10, symlink 2, naive escapes
    FS-01 "sibling": outside_root 10, symlink 2, naive escapes
    FS-02 "file": outside_root 10, symlink 2, naive escapes
    FS-02 "file_absolute": outside_root 10, symlink 2, naive escapes
    FS-02 "folder": outside_root 10, symlink 2, naive escapes
    FS-02 "folder/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "folder/new": outside_root 10, symlink 2
    FS-02 "folder_absolute/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "dir/deep/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "chain/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "chain2/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "loop_a": symlink 12
    FS-02 "loop_a/canary": symlink 12
    FS-02 "self": symlink 12
    FS-02 "dangling": outside_root 10, symlink 2
    FS-02 "up/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "up/outside/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "up_and_down/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "around/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "machine{folder}/outside/canary": outside_root 10, symlink 2, naive escapes
    FS-02 "machine": outside_root 10, symlink 2, naive escapes
    FS-04 "..": args.invalid 12, naive escapes
    FS-04 "../canary": args.invalid 12, naive escapes
    FS-04 "../outside/canary": args.invalid 12, naive escapes
    FS-04 "dir/../../outside/canary": args.invalid 12, naive escapes
    FS-04 "./../outside/canary": args.invalid 12, naive escapes
    FS-04 "dir/..": args.invalid 12
    FS-04 "dir//inside.txt": args.invalid 12
    FS-04 "dir/inside.txt/": args.invalid 12
    FS-04 "dir/": args.invalid 12
    FS-04 "dir/inside.txt/.": args.invalid 12
    FS-04 "%2e%2e/outside/canary": not_found 9, ok 3
    FS-04 "..%2foutside%2fcanary": not_found 8, ok 4
    FS-04 "....//outside/canary": args.invalid 12
    FS-04 "..\\outside\\canary": not_found 8, ok 4
    FS-04 "~/.ssh/id_rsa": not_found 4, protected 8
    FS-04 "$HOME/.ssh/id_rsa": not_found 4, protected 8
    FS-04 "file://{ws}/../outside/canary": args.invalid 12
    FS-04 "\\\\?\\C:\\Windows": not_found 8, ok 4
    FS-04 "C:\\Windows": not_found 8, ok 4
    FS-04 "/": args.invalid 12
    FS-04 "{ws}/dir/inside.txt": args.invalid 12
    FS-05 "dir/inside.txt\u0000": args.invalid 12
    FS-05 "\u0000": args.invalid 12
    FS-05 "dir/inside.txt\n": not_found 7, ok 2, args.refused 3
    FS-05 "\ud800": args.malformed 12
    FS-05 "": args.invalid 12
    FS-05 "{256}": args.invalid 12
    FS-05 "{4097}": args.invalid 12
    FS-05 ["dir/inside.txt"]: args.invalid 12
    FS-06 "/proc/self/root{ws}/../outside/canary": args.invalid 12
    FS-06 "/proc/self/fd/{fd}": args.invalid 12
    FS-06 "/proc/self/cwd": args.invalid 12
    FS-06 "/dev/stdin": args.invalid 12
    FS-06 "proc_root": outside_root 10, symlink 2, naive escapes
    FS-06 "proc_root{folder}/outside/canary": outside_root 10, symlink 2, naive escapes
    FS-06 "proc_cwd": outside_root 10, symlink 2
    FS-06 "fds/{fd}": outside_root 10, symlink 2, naive escapes
"#]];

/// Links that lead out, in every form.
fn prepare(world: &World) {
    let folder = world.folder();
    world.file("dir/inside.txt", "inside\n").file(MOVED, "moved\n");
    world.link("../ws-evil", "sibling").link("../outside/canary", "file");
    world.link(folder.join("outside/canary"), "file_absolute");
    world.link("../outside", "folder").link(folder.join("outside"), "folder_absolute");
    world.link("../../outside", "dir/deep").link("dir/deep", "chain").link("chain", "chain2");
    world.link("loop_b", "loop_a").link("loop_a", "loop_b").link("self", "self");
    world.link("../outside/new", "dangling").link("..", "up").link("dir/../..", "up_and_down");
    world.link("/", "machine").link(".././ws/../outside", "around");
    world.link("/proc/self/root", "proc_root").link("/proc/self/cwd", "proc_cwd");
    world.link("/dev/fd", "fds");
}

#[test]
fn no_path_leads_out_of_the_workspace() {
    as_each("attacks::no_path_leads_out_of_the_workspace", |user| {
        let mut told = String::new();
        let mut bitten = BTreeSet::new();
        let (mut cases, mut controls) = (0, 0);
        for line in ATTACKS.data.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (family, rest) = line.split_once(' ').unwrap();
            let (pattern, _) = rest.rsplit_once(": ").unwrap();
            let (codes, escapes) = attacked(pattern);
            cases += FORMS.len();
            controls += usize::from(escapes);
            if escapes {
                bitten.insert(family);
            }
            let control = if escapes { ", naive escapes" } else { "" };
            writeln!(told, "{family} {pattern}: {}{control}", counted(&codes)).unwrap();
        }
        eprintln!("fs: {cases} cases as {user}, 0 escapes, control {controls} escapes");
        ATTACKS.assert_eq(&told);
        // FS-05 is about panics and typed errors; there is no way out to show.
        assert_eq!(bitten.into_iter().collect::<Vec<_>>(), ["FS-01", "FS-02", "FS-04", "FS-06"]);
    });
}

/// What each form answers to an attack, and whether the usual tool escapes by it.
fn attacked(pattern: &str) -> (Vec<String>, bool) {
    let mut codes = Vec::new();
    for form in &FORMS {
        let world = World::new();
        prepare(&world);
        let open = File::open(world.folder().join("outside/canary")).unwrap();
        let path = spelled(&world, pattern).replace("{fd}", &open.as_raw_fd().to_string());
        let before = world.outside();
        let reply = world.call(form.tool, &form.args(&path));
        let (name, text) = (form.name, reply.text());
        // A name that only looks like a way out is a name: a file of that name may be made.
        assert!(reply.is_error || form.is_change(), "{name} {pattern}: {text}");
        if reply.is_error {
            assert_eq!(reply.executed, Executed::NotExecuted, "{name} {pattern}: {text}");
            assert_eq!(world.text(MOVED), "moved\n", "{name} {pattern}");
        }
        assert!(!text.contains("\nCANARY") && text.len() < 1_024, "{name} {pattern}: {text}");
        assert_eq!(world.outside(), before, "{name} {pattern}");
        assert_eq!(world.text("dir/inside.txt"), "inside\n", "{name} {pattern}");
        codes.push(code(&reply).to_owned());
    }
    let world = World::new();
    prepare(&world);
    let open = File::open(world.folder().join("outside/canary")).unwrap();
    let path = spelled(&world, pattern).replace("{fd}", &open.as_raw_fd().to_string());
    (codes, naive_escapes(&world, &path))
}

/// How often each code was answered, in the order of the tools.
fn counted(codes: &[String]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for code in codes {
        match counts.iter_mut().find(|(counted, _)| counted == code) {
            Some((_, count)) => *count += 1,
            None => counts.push((code, 1)),
        }
    }
    let counts: Vec<String> =
        counts.iter().map(|(code, count)| format!("{code} {count}")).collect();
    counts.join(", ")
}

/// The attack's path in this world, as JSON text.
fn spelled(world: &World, pattern: &str) -> String {
    let long = |len: usize| ["a".repeat(200), "b".repeat(len)].join("/")[..len].to_owned();
    pattern
        .replace("{ws}", world.at("").to_str().unwrap().trim_end_matches('/'))
        .replace("{folder}", world.folder().to_str().unwrap())
        .replace("{256}", &"a".repeat(256))
        .replace("{4097}", &long(4_097))
}

/// Whether one of the usual tools shows or changes what is outside.
fn naive_escapes(world: &World, path: &str) -> bool {
    let Ok(Value::String(path)) = serde_json::from_str(path) else { return false };
    let (root, before) = (world.at(""), world.outside());
    let root = root.to_str().unwrap().trim_end_matches('/').as_ref();
    let listed = naive::list_dir(root, &path).is_ok_and(|names| {
        names.iter().any(|name| name == "canary" || name == "ws-evil" || name == "proc")
    });
    let read = naive::read_file(root, &path).is_ok_and(|text| text == CANARY);
    let edited = naive::edit_file(root, &path, "CANARY", "OWNED").is_ok();
    assert_eq!(world.outside() != before, read && edited, "{path}");
    listed || read
}

#[test]
fn no_text_makes_a_tool_panic() {
    // Each piece is joined with each other, before and after something that exists.
    let pieces = [
        "",
        ".",
        "..",
        "/",
        "//",
        "dir",
        "inside.txt",
        "\u{0}",
        "\n",
        "\u{7f}",
        "\u{202e}",
        "é",
        "\u{feff}",
        "\\",
        ":",
        "*",
        "?",
        "|",
        "%00",
        "{}",
        "'",
        "\"",
        "`",
        "-",
        "~",
        "\u{10ffff}",
    ];
    let world = World::new();
    prepare(&world);
    let before = world.outside();
    let mut calls = 0;
    for first in pieces {
        for second in pieces {
            for path in [format!("{first}{second}"), format!("{first}/{second}")] {
                let path = json!(path).to_string();
                for reply in FORMS.iter().map(|form| world.call(form.tool, &form.args(&path))) {
                    calls += 1;
                    assert_ne!(code(&reply), "tool.panicked", "{path}");
                    assert!(!reply.text().contains(CANARY.trim()), "{path}");
                }
            }
        }
    }
    assert_eq!(calls, 26 * 26 * 2 * FORMS.len());
    assert_eq!(world.outside(), before);
}
