//! Every way out of a workspace that is known, against every tool and against the usual one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::AsRawFd;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::Executed;

use crate::naive;
use crate::world::{CANARY, TOOLS, World, code};

/// Attacks: the family, the path as JSON, what each tool answers, and whether the usual one lets it
/// pass. `{ws}` stands for the workspace's own path, `{folder}` for the folder above it, and `{fd}`
/// for a file outside that this process has open.
const ATTACKS: Expect = expect![[r#"
    FS-01 "../ws-evil/canary": args.invalid args.invalid args.invalid, naive escapes
    FS-01 "{ws}-evil/canary": args.invalid args.invalid args.invalid, naive escapes
    FS-01 "sibling/canary": outside_root outside_root symlink, naive escapes
    FS-01 "sibling": outside_root outside_root symlink, naive escapes
    FS-02 "file": outside_root outside_root symlink, naive escapes
    FS-02 "file_absolute": outside_root outside_root symlink, naive escapes
    FS-02 "folder": outside_root outside_root symlink, naive escapes
    FS-02 "folder/canary": outside_root outside_root symlink, naive escapes
    FS-02 "folder/new": outside_root outside_root symlink
    FS-02 "folder_absolute/canary": outside_root outside_root symlink, naive escapes
    FS-02 "dir/deep/canary": outside_root outside_root symlink, naive escapes
    FS-02 "chain/canary": outside_root outside_root symlink, naive escapes
    FS-02 "chain2/canary": outside_root outside_root symlink, naive escapes
    FS-02 "loop_a": symlink symlink symlink
    FS-02 "loop_a/canary": symlink symlink symlink
    FS-02 "self": symlink symlink symlink
    FS-02 "dangling": outside_root outside_root symlink
    FS-02 "up/canary": outside_root outside_root symlink, naive escapes
    FS-02 "up/outside/canary": outside_root outside_root symlink, naive escapes
    FS-02 "up_and_down/canary": outside_root outside_root symlink, naive escapes
    FS-02 "around/canary": outside_root outside_root symlink, naive escapes
    FS-02 "machine{folder}/outside/canary": outside_root outside_root symlink, naive escapes
    FS-02 "machine": outside_root outside_root symlink, naive escapes
    FS-04 "..": args.invalid args.invalid args.invalid, naive escapes
    FS-04 "../canary": args.invalid args.invalid args.invalid, naive escapes
    FS-04 "../outside/canary": args.invalid args.invalid args.invalid, naive escapes
    FS-04 "dir/../../outside/canary": args.invalid args.invalid args.invalid, naive escapes
    FS-04 "./../outside/canary": args.invalid args.invalid args.invalid, naive escapes
    FS-04 "dir/..": args.invalid args.invalid args.invalid
    FS-04 "dir//inside.txt": args.invalid args.invalid args.invalid
    FS-04 "dir/inside.txt/": args.invalid args.invalid args.invalid
    FS-04 "dir/": args.invalid args.invalid args.invalid
    FS-04 "dir/inside.txt/.": args.invalid args.invalid args.invalid
    FS-04 "%2e%2e/outside/canary": not_found not_found not_found
    FS-04 "..%2foutside%2fcanary": not_found not_found not_found
    FS-04 "....//outside/canary": args.invalid args.invalid args.invalid
    FS-04 "..\\outside\\canary": not_found not_found not_found
    FS-04 "~/.ssh/id_rsa": not_found not_found not_found
    FS-04 "$HOME/.ssh/id_rsa": not_found not_found not_found
    FS-04 "file://{ws}/../outside/canary": args.invalid args.invalid args.invalid
    FS-04 "\\\\?\\C:\\Windows": not_found not_found not_found
    FS-04 "C:\\Windows": not_found not_found not_found
    FS-04 "/": args.invalid args.invalid args.invalid
    FS-04 "{ws}/dir/inside.txt": args.invalid args.invalid args.invalid
    FS-05 "dir/inside.txt\u0000": args.invalid args.invalid args.invalid
    FS-05 "\u0000": args.invalid args.invalid args.invalid
    FS-05 "dir/inside.txt\n": not_found not_found not_found
    FS-05 "\ud800": args.malformed args.malformed args.malformed
    FS-05 "": args.invalid args.invalid args.invalid
    FS-05 "{256}": args.invalid args.invalid args.invalid
    FS-05 "{4097}": args.invalid args.invalid args.invalid
    FS-05 ["dir/inside.txt"]: args.invalid args.invalid args.invalid
    FS-06 "/proc/self/root{ws}/../outside/canary": args.invalid args.invalid args.invalid
    FS-06 "/proc/self/fd/{fd}": args.invalid args.invalid args.invalid
    FS-06 "/proc/self/cwd": args.invalid args.invalid args.invalid
    FS-06 "/dev/stdin": args.invalid args.invalid args.invalid
    FS-06 "proc_root": outside_root outside_root symlink, naive escapes
    FS-06 "proc_root{folder}/outside/canary": outside_root outside_root symlink, naive escapes
    FS-06 "proc_cwd": outside_root outside_root symlink
    FS-06 "fds/{fd}": outside_root outside_root symlink, naive escapes
"#]];

/// Links that lead out, in every form.
fn prepare(world: &World) {
    let folder = world.folder();
    world.file("dir/inside.txt", "inside\n");
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
    let mut told = String::new();
    let mut bitten = BTreeSet::new();
    for line in ATTACKS.data.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (family, rest) = line.split_once(' ').unwrap();
        let (pattern, _) = rest.rsplit_once(": ").unwrap();
        let world = World::new();
        prepare(&world);
        let open = File::open(world.folder().join("outside/canary")).unwrap();
        let path = spelled(&world, pattern).replace("{fd}", &open.as_raw_fd().to_string());
        let before = world.outside();
        let codes = TOOLS.map(|tool| {
            let reply = world.call(tool, &args(tool, &path));
            let text = reply.text();
            assert!(reply.is_error, "{tool} {pattern}: {text}");
            assert_eq!(reply.executed, Executed::NotExecuted, "{tool} {pattern}: {text}");
            assert!(!text.contains(CANARY.trim()) && text.len() < 1_024, "{pattern}: {text}");
            code(&reply).to_owned()
        });
        assert_eq!(world.outside(), before, "{pattern}");
        assert_eq!(world.text("dir/inside.txt"), "inside\n", "{pattern}");
        let escapes = naive_escapes(&world, &path);
        if escapes {
            bitten.insert(family);
        }
        let control = if escapes { ", naive escapes" } else { "" };
        writeln!(told, "{family} {pattern}: {}{control}", codes.join(" ")).unwrap();
    }
    ATTACKS.assert_eq(&told);
    // FS-05 is about panics and typed errors; there is no way out to show.
    assert_eq!(bitten.into_iter().collect::<Vec<_>>(), ["FS-01", "FS-02", "FS-04", "FS-06"]);
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

fn args(tool: &str, path: &str) -> String {
    match tool {
        "edit_file" => {
            format!(r#"{{"path":{path},"edits":[{{"old":"ANARY","new":"OWNED"}}]}}"#)
        }
        _ => format!(r#"{{"path":{path}}}"#),
    }
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
fn protected_names_are_never_written_under_any_name() {
    // FS-03 and FS-09.
    let paths = [
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".GIT/config",
        ".Git/config",
        ".git",
        ".g\u{200c}it/config",
        ".git./config",
        ".git /config",
        ".git::$DATA/config",
        "GIT~1/config",
        ".tooltape/tape.db",
        "tooltape.toml",
        "TOOLTAPE.TOML",
        "sub/tooltape.toml",
        ".mcp.json",
        ".MCP.json",
        ".vscode/tasks.json",
        ".VSCode/tasks.json",
        ".v\u{17f}code/x",
        ".idea/workspace.xml",
        ".envrc",
        ".ENVRC",
        "sub/.envrc",
    ];
    for path in paths {
        for exists in [true, false] {
            let world = World::new();
            if exists {
                world.file(path, CANARY);
            }
            let reply = world.call("edit_file", &args("edit_file", &json!(path).to_string()));
            assert_eq!(code(&reply), "protected", "{path}: {}", reply.text());
            if exists {
                assert_eq!(world.text(path), CANARY, "{path}");
                naive::edit_file(&world.at(""), path, "CANARY", "OWNED").unwrap();
                assert_ne!(world.text(path), CANARY, "the control writes {path}");
            }
        }
    }
    let world = World::new();
    world.file(".git/config", CANARY).file(".gitignore", "a\n").file("git/config", "a\n");
    world.link(".git", "alias").link(".git/config", "alias_file").link("alias", "alias_alias");
    world.check(
        r#"
        edit_file {"path":".git/config","edits":[{"old":"CANARY","new":"OWNED"}]}
        edit_file {"path":"alias/config","edits":[{"old":"CANARY","new":"OWNED"}]}
        edit_file {"path":"alias_alias/config","edits":[{"old":"CANARY","new":"OWNED"}]}
        edit_file {"path":"alias_file","edits":[{"old":"CANARY","new":"OWNED"}]}
        "#,
        expect![[r#"
            [protected] not executed: `.git/config` is protected: tools never write
                `.git`
            [symlink] not executed: `alias/config` is or goes through a symbolic link,
                expected the path of the file itself
            [symlink] not executed: `alias_alias/config` is or goes through a symbolic
                link, expected the path of the file itself
            [symlink] not executed: `alias_file` is or goes through a symbolic link,
                expected the path of the file itself
        "#]],
    );
    assert_eq!(world.text(".git/config"), CANARY);
    for path in [".gitignore", "git/config"] {
        let args = format!(r#"{{"path":"{path}","edits":[{{"old":"a","new":"b"}}]}}"#);
        assert_eq!(code(&world.call("edit_file", &args)), "ok", "{path} is nobody else's");
    }
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
                for reply in TOOLS.map(|tool| world.call(tool, &args(tool, &path))) {
                    calls += 1;
                    assert_ne!(code(&reply), "tool.panicked", "{path}");
                    assert!(!reply.text().contains(CANARY.trim()), "{path}");
                }
            }
        }
    }
    assert_eq!(calls, 26 * 26 * 2 * 3);
    assert_eq!(world.outside(), before);
}
