//! `glob` and `grep` in a world that moves, and within what their call may see.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tooltape::{Canon, Clock, Label, Registered, Rights, Rules, Run, Toolbox};
use tooltape_kit::limits::{GREP_BYTES_MAX, GREP_LINE_BYTES_MAX};
use tooltape_kit::{Workspace, WorkspacePath, tools};

use crate::ripgrep::value;
use crate::users::as_each;
use crate::world::{World, call, code, run_in};

/// How often a search is tried, on a machine that is too busy to let time pass.
const TRIES_MAX: u32 = 2_000;

fn paths(value: &Value) -> Vec<String> {
    let path = |file: &Value| file.get("path").unwrap_or(file).as_str().unwrap().to_owned();
    value["files"].as_array().unwrap().iter().map(path).collect()
}

fn run_with(folder: &Path, files: impl FnOnce(Workspace) -> Workspace) -> Run {
    let files = files(Workspace::open(folder).unwrap());
    Run::new(&Toolbox::new(tools()).unwrap()).grant(files).policy(Rules::allow_reads())
}

#[test]
fn lines_come_by_file_with_what_stands_around_them() {
    let world = World::new();
    world.file("b/two.txt", "a\nb\nneedle\nc\nd\nneedle\n").file("a.txt", "needle\r\n");
    let run = run_in(&world.at(""));
    let found = value(&run, "grep", &json!({ "pattern": "needle", "before": 1, "after": 1 }));
    let expected = json!({
        "files": [
            { "path": "a.txt", "lines": [{ "line": 1, "text": "needle" }] },
            { "path": "b/two.txt", "lines": [
                { "line": 2, "text": "b", "context": true },
                { "line": 3, "text": "needle" },
                { "line": 4, "text": "c", "context": true },
                { "line": 5, "text": "d", "context": true },
                { "line": 6, "text": "needle" },
            ] },
        ],
        "matches": 3, "skipped": 0, "truncated": false,
    });
    assert_eq!(found, expected);
    let found = value(&run, "grep", &json!({ "pattern": "needle", "before": 1, "limit": 2 }));
    assert_eq!(found["files"][1]["lines"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!((&found["matches"], &found["truncated_by"]), (&json!(2), &json!("limit")));
}

#[test]
fn a_line_that_is_too_long_is_shown_around_its_match() {
    let world = World::new();
    world.file("a.min.js", format!("{}needle{}\n", "é".repeat(5_000), "ü".repeat(5_000)));
    let found = value(&run_in(&world.at("")), "grep", &json!({ "pattern": "needle" }));
    let line = &found["files"][0]["lines"][0];
    let text = line["text"].as_str().unwrap();
    assert!(text.contains("énee") && text.len() <= GREP_LINE_BYTES_MAX, "{text}");
    assert!(!text.contains('\u{fffd}'), "{text}");
    assert_eq!(line["cut"], true);
}

#[test]
fn what_is_shown_has_an_end_and_is_the_same_every_time() {
    let world = World::new();
    for at in 0..400 {
        world.file(&format!("d{}/{at:03}.txt", at % 7), format!("needle {at}\n").repeat(40));
    }
    let run = run_in(&world.at(""));
    for args in [
        json!({ "pattern": "needle", "limit": 333 }),
        json!({ "pattern": "needle", "limit": 2_000, "before": 2 }),
        json!({ "pattern": "needle \\d*7", "show": "files", "limit": 30 }),
    ] {
        let first = value(&run, "grep", &args);
        assert_eq!(first["truncated"], true, "{args}");
        assert!(first.to_string().len() < 4 * GREP_BYTES_MAX);
        for _ in 0..20 {
            assert_eq!(value(&run, "grep", &args), first, "{args}");
        }
    }
}

#[test]
fn a_directory_that_may_not_be_read_is_skipped_and_counted() {
    as_each("search::a_directory_that_may_not_be_read_is_skipped_and_counted", |user| {
        let world = World::new();
        world.file("closed/a.txt", "needle\n").file("open/a.txt", "needle\n");
        world.file("open/unreadable.txt", "needle\n");
        let close = |path: &str, mode| {
            fs::set_permissions(world.at(path), Permissions::from_mode(mode)).unwrap();
        };
        close("closed", 0o000);
        close("open/unreadable.txt", 0o000);
        let run = run_in(&world.at(""));
        let found = value(&run, "grep", &json!({ "pattern": "needle" }));
        let listed = value(&run, "glob", &json!({ "pattern": "*.txt" }));
        close("closed", 0o755);
        // Nothing is closed to root.
        let is_root = user == "root";
        assert_eq!(found["skipped"], if is_root { 0 } else { 2 }, "{found}");
        assert_eq!(found["matches"], if is_root { 3 } else { 1 });
        assert_eq!(listed["skipped"], u8::from(!is_root));
    });
}

#[test]
fn files_may_come_and_go_while_they_are_searched() {
    let world = World::new();
    for at in 0..50 {
        world.file(&format!("stays/{at:02}.txt"), "needle\n");
    }
    let run = run_in(&world.at(""));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for at in 0..20 {
                    let folder = world.at(&format!("comes{at}"));
                    fs::create_dir_all(folder.join("a/b")).unwrap();
                    fs::write(folder.join("a/b/c.txt"), "needle\n").unwrap();
                    let _ = fs::rename(&folder, world.at(&format!("goes{at}")));
                    fs::remove_dir_all(world.at(&format!("goes{at}"))).unwrap();
                }
            }
        });
        for _ in 0..100 {
            let found = value(&run, "grep", &json!({ "pattern": "needle", "limit": 2_000 }));
            let stays = paths(&found).iter().filter(|path| path.starts_with("stays/")).count();
            let listed = value(&run, "glob", &json!({ "pattern": "stays/*" }));
            is_over.store(stays != 50 || paths(&listed).len() != 50, Ordering::Relaxed);
            assert_eq!((stays, paths(&listed).len()), (50, 50));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_hundred_thousand_entries_are_walked() {
    let world = World::new();
    fs::create_dir(world.at("many")).unwrap();
    for at in 0..100_000 {
        fs::File::create(world.at("many").join(format!("{at:05}"))).unwrap();
    }
    world.file("needle.txt", "needle\n");
    let run = run_in(&world.at(""));
    let listed = value(&run, "glob", &json!({ "pattern": "*", "limit": 10_000 }));
    assert_eq!(paths(&listed).len(), 10_000);
    assert_eq!(
        (&paths(&listed)[9_999][..], &listed["truncated_by"]),
        ("many/09999", &json!("limit"))
    );
    let found = value(&run, "grep", &json!({ "pattern": "needle" }));
    assert_eq!((&found["matches"], &found["truncated"]), (&json!(1), &json!(false)));
    let listed = value(&run, "list_dir", &json!({ "depth": 2 }));
    assert_eq!((&listed["total"], &listed["truncated"]), (&json!(100_002), &json!(true)));
}

#[test]
fn a_search_that_takes_too_long_shows_what_it_has() {
    let world = World::new();
    for at in 0..200 {
        world.file(&format!("{at:03}/a.txt"), "needle\n");
    }
    let (clock, is_over) = (Clock::fixed(Duration::from_secs(1)), AtomicBool::new(false));
    let run = run_in(&world.at("")).clock(clock.clone());
    let cuts = thread::scope(|scope| {
        scope.spawn(|| {
            // Hours go by between any two looks at the clock, as soon as this gets to run.
            while !is_over.load(Ordering::Relaxed) {
                clock.advance(Duration::from_secs(3_600));
            }
        });
        let cut = |tool: &str, args: &str| {
            let found = call(&run, tool, args).value.as_ref().unwrap().to_value();
            found["truncated"] == true && found["truncated_by"] == "time"
        };
        let cuts = [("grep", r#"{"pattern":"needle"}"#), ("glob", r#"{"pattern":"*"}"#)]
            .map(|(tool, args)| (0..TRIES_MAX).any(|_| cut(tool, args)));
        is_over.store(true, Ordering::Relaxed);
        cuts
    });
    assert_eq!(cuts, [true, true]);
}

#[test]
fn a_call_that_may_read_a_part_sees_that_part() {
    let world = World::new();
    world.file("open/a.txt", "needle\n").file("closed/a.txt", "needle secret\n");
    world.link("../closed", "open/dir").link("../closed/a.txt", "open/link.txt");
    world.file(".gitignore", "a.txt\n");
    let rights: Rights = "fs:read:open".parse().unwrap();
    let run = run_with(&world.at(""), |files| files).rights(rights);
    for (args, expected) in [
        (json!({ "pattern": "needle" }), "denied"),
        (json!({ "pattern": "needle", "path": "closed" }), "denied"),
        (json!({ "pattern": "needle", "path": "open/dir" }), "symlink"),
        (json!({ "pattern": "needle", "path": "open/link.txt" }), "symlink"),
    ] {
        for tool in ["grep", "glob"] {
            let reply = call(&run, tool, &args.to_string());
            assert!(
                code(&reply).contains(expected),
                "{tool} {args}: {} {}",
                code(&reply),
                reply.text()
            );
        }
    }
    // Rules that stand where it may not look do not hold.
    let found = value(&run, "grep", &json!({ "pattern": "needle", "path": "open" }));
    assert_eq!(paths(&found), ["open/a.txt"]);
    let listed = value(&run, "glob", &json!({ "pattern": "!nothing", "path": "open" }));
    assert_eq!(paths(&listed), ["open/a.txt"]);
}

#[test]
fn no_link_is_followed_on_the_way_to_what_is_searched() {
    let world = World::new();
    world.file("real/src/a.rs", "needle\n").link("real/src", "alias").link("alias/a.rs", "file");
    let run = run_in(&world.at(""));
    for path in ["alias", "file", "alias/a.rs"] {
        let reply = call(&run, "grep", &json!({ "pattern": "needle", "path": path }).to_string());
        assert_eq!(code(&reply), "symlink", "{path}: {}", reply.text());
    }
    let found = value(&run, "grep", &json!({ "pattern": "needle" }));
    assert_eq!(paths(&found), ["real/src/a.rs"]);
}

#[test]
fn what_is_found_has_the_label_of_where_it_was_found() {
    let world = World::new();
    world.file("downloads/a.txt", "needle\n").file("own/a.txt", "needle own\n");
    let label = Label::untrusted("downloads");
    for (args, is_trusted) in [
        (json!({ "pattern": "needle own" }), true),
        (json!({ "pattern": "needle" }), false),
        (json!({ "pattern": "needle", "show": "files" }), false),
        (json!({ "pattern": "needle", "path": "own" }), true),
    ] {
        let label = label.clone();
        let run =
            run_with(&world.at(""), |files| files.labelled("downloads".parse().unwrap(), label));
        let reply = call(&run, "grep", &args.to_string());
        assert_eq!(reply.label().is_trusted(), is_trusted, "{args}");
    }
}

/// Matches `(a+)+$` the way that backtracking engines do, and counts its steps.
fn backtrack(text: &[u8], steps: &mut u64) -> bool {
    *steps += 1;
    let run = text.iter().take_while(|byte| **byte == b'a').count();
    *steps < 5_000_000
        && (1..=run).rev().any(|taken| text.len() == taken || backtrack(&text[taken..], steps))
}

#[test]
fn the_usual_engines_hang_on_what_is_found_at_once() {
    let world = World::new();
    world.file("a.txt", format!("{}!\n", "a".repeat(1_000_000)));
    let found = value(&run_in(&world.at("")), "grep", &json!({ "pattern": "(a+)+$" }));
    assert_eq!((&found["matches"], &found["truncated"]), (&json!(0), &json!(false)));
    let mut steps = 0;
    assert!(!backtrack(format!("{}!", "a".repeat(40)).as_bytes(), &mut steps));
    assert!(steps >= 5_000_000, "{steps}: forty letters are too many for the control");
    // Braces that are written out, as shells do it, are a million globs.
    let mut globs = 0;
    write_out(&"{a,b}".repeat(20), &mut globs);
    assert!(globs > 1_000_000, "{globs}");
    let listed = value(&run_in(&world.at("")), "glob", &json!({ "pattern": "{a,b}".repeat(20) }));
    assert_eq!((paths(&listed).len(), &listed["truncated"]), (0, &json!(false)));
}

/// Writes out braces the way that shells do, and counts what comes of them.
fn write_out(glob: &str, globs: &mut u64) {
    match glob.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
        None => *globs += 1,
        Some((choices, rest)) => choices.split(',').for_each(|_| write_out(rest, globs)),
    }
}

#[test]
fn one_match_over_all_lines_is_cut_like_any_other() {
    // In a process of its own, which has no memory of other tests.
    let name = "search::one_match_over_all_lines_is_cut_like_any_other";
    if env::var_os(ALONE).is_none() {
        let mut alone = Command::new(env::current_exe().unwrap());
        let output = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success() && told.contains("1 passed"), "{told}");
    }
    let world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.file(name, "\n".repeat(4_000_000));
    }
    let args = json!({ "pattern": "(?s).*", "multiline": true, "limit": 2_000 });
    let before = peak();
    let found = value(&run_in(&world.at("")), "grep", &args);
    assert_eq!((&found["matches"], &found["truncated_by"]), (&json!(2_000), &json!("limit")));
    let grown = peak() - before;
    assert!(grown < 64 << 10, "{grown} KiB more than before");
}

/// The variable that says that a test is alone in its process.
const ALONE: &str = "TOOLTAPE_SEARCH_ALONE";

/// The most memory that this process had so far, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_glob_shows_nothing_that_is_hidden_or_ignored_unless_it_names_it() {
    let world = World::new();
    world.file(".gitignore", "*.log\n").file("a.log", "needle").file("a.txt", "needle");
    world.file(".env", "needle").file(".git/config", "needle").file(".ci/a.txt", "needle");
    let run = run_in(&world.at(""));
    for (glob, expected) in [
        ("**/*", &["a.txt"][..]),
        ("*", &["a.txt"]),
        ("*.log", &[]),
        (".env", &[".env"]),
        (".e*", &[".env"]),
        (".ci/**", &[".ci/a.txt"]),
        ("!.env", &["a.txt"]),
        ("!x/.env", &["a.txt"]),
    ] {
        assert_eq!(paths(&value(&run, "glob", &json!({ "pattern": glob }))), expected, "{glob}");
        let args = json!({ "pattern": "needle", "glob": glob });
        assert_eq!(paths(&value(&run, "grep", &args)), expected, "{glob}");
    }
    let args = json!({ "pattern": "*", "hidden": true, "ignored": true });
    assert_eq!(paths(&value(&run, "glob", &args)).len(), 6);
}

#[test]
fn a_search_touches_the_ignore_files_above_it() {
    let path = |path: &str| path.parse::<WorkspacePath>().unwrap();
    for (tool, args) in [
        ("grep", json!({ "pattern": "a", "path": "src/deep" })),
        ("glob", json!({ "pattern": "a", "path": "src/deep" })),
    ] {
        let tool = tools().into_iter().find(|it| &*it.spec().name == tool).unwrap();
        let args = Canon::of(&args).unwrap();
        let typed = (tool.spec().hooks.read.as_ref().unwrap())(&args).unwrap();
        let touched = Registered::new(tool).unwrap().footprint(&args, Some(&typed)).unwrap();
        for file in [".gitignore", ".ignore", "src/.gitignore", "src/.ignore", "src/deep/a"] {
            assert!(touched.conflicts(&path(file).writes()), "{file}");
        }
        for file in ["a.txt", "src/a.txt", "lib/.gitignore"] {
            assert!(!touched.conflicts(&path(file).writes()), "{file}");
        }
    }
}
