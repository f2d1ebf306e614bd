//! `apply_patch`: what a patch does, where it fits, and that it does all or nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::json;
use tooltape::{Executed, Reply};
use tooltape_kit::limits::{HUNKS_MAX, PATCHED_FILES_MAX};

use crate::world::{World, code, shown, wrapped};

fn apply(world: &World, paths: &[&str], patch: &str) -> Reply {
    world.call("apply_patch", &json!({ "paths": paths, "patch": patch }).to_string())
}

const FOUR: &str = "\
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
diff --git a/new/run.sh b/new/run.sh
new file mode 100755
--- /dev/null
+++ b/new/run.sh
@@ -0,0 +1,2 @@
+#!/bin/sh
+true
diff --git a/from.txt b/to.txt
similarity index 90%
rename from from.txt
rename to to.txt
--- a/from.txt
+++ b/to.txt
@@ -1,2 +1,2 @@
 one
-two
+TWO
--- a/changed.txt\t2026-11-16
+++ b/changed.txt\t2026-11-16
@@ -2,2 +2,3 @@
 b
+between
 c
";
const FOUR_PATHS: [&str; 5] = ["old.txt", "new/run.sh", "from.txt", "to.txt", "changed.txt"];

fn four() -> World {
    let world = World::new();
    world.file("old.txt", "old\n").file("from.txt", "one\ntwo\n").file("changed.txt", "a\nb\nc\n");
    world
}

#[test]
fn a_patch_changes_creates_deletes_and_renames() {
    let world = four();
    let told = shown(&apply(&world, &FOUR_PATHS, FOUR));
    let told = told.lines().map(|line| line.chars().take(80).collect::<String>() + "\n");
    let told: String = told.collect();
    expect![[r#"
        ok
        diff:
          |--- a/old.txt
          |+++ /dev/null
          |@@ -1 +0,0 @@
          |-old
          |diff --git a/new/run.sh b/new/run.sh
          |new file mode 100755
          |--- /dev/null
          |+++ b/new/run.sh
          |@@ -0,0 +1,2 @@
          |+#!/bin/sh
          |+true
          |--- a/from.txt
          |+++ b/to.txt
          |@@ -1,2 +1,2 @@
          | one
          |-two
          |+TWO
          |--- a/changed.txt
          |+++ b/changed.txt
          |@@ -1,3 +1,4 @@
          | a
          | b
          |+between
          | c
        files:
          {"done":"deleted","path":"old.txt"}
          {"done":"created","hash":"d279f8cac6b998a17d4f3d8cd93e8db68081d1b347209630f0d9
          {"done":"renamed","from":"from.txt","hash":"30bfca227d99f35429450d6fac134089de
          {"done":"changed","hash":"0bbd817d2b99d758908ab5fe3abda2d61749f082e2b3e20f2077
    "#]]
    .assert_eq(&told);
    assert_eq!(world.names(""), ["changed.txt", "new", "to.txt"]);
    assert_eq!(world.text("to.txt"), "one\nTWO\n");
    assert_eq!(world.text("changed.txt"), "a\nb\nbetween\nc\n");
    assert_eq!(world.text("new/run.sh"), "#!/bin/sh\ntrue\n");
    let mode = fs::metadata(world.at("new/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn a_patch_that_fits_only_in_part_changes_nothing() {
    type Break = fn(&World);
    let breaks: [(&str, Break); 7] = [
        ("no_match", |world| fs::write(world.at("changed.txt"), "a\nB\nc\n").unwrap()),
        ("no_match", |world| fs::write(world.at("old.txt"), "old\nand more\n").unwrap()),
        ("exists", |world| fs::write(world.at("to.txt"), "").unwrap()),
        ("exists", |world| {
            world.file("new/run.sh", "");
        }),
        ("not_a_directory", |world| fs::write(world.at("new"), "").unwrap()),
        ("not_found", |world| fs::remove_file(world.at("changed.txt")).unwrap()),
        ("symlink", |world| {
            fs::remove_file(world.at("changed.txt")).unwrap();
            world.link("old.txt", "changed.txt");
        }),
    ];
    for (expected, break_it) in breaks {
        let world = four();
        break_it(&world);
        let before = (world.names(""), world.outside());
        let reply = apply(&world, &FOUR_PATHS, FOUR);
        assert_eq!(code(&reply), expected, "{}", reply.text());
        assert_eq!(reply.executed, Executed::NotExecuted);
        assert_eq!((world.names(""), world.outside()), before, "{expected}");
        assert_eq!(world.text("from.txt"), "one\ntwo\n");
    }
}

#[test]
fn a_hunk_fits_exactly_where_it_says_or_in_one_other_place() {
    let numbers: String = (1..=20).map(|number| format!("{number}\n")).collect();
    let hunk = |line: usize| {
        format!("--- a/a.txt\n+++ b/a.txt\n@@ -{line},3 +{line},3 @@\n x\n-y\n+Y\n x\n")
    };
    let block = "x\ny\nx\n";
    for (text, line, expected) in [
        (format!("{numbers}{block}"), 21, "ok"),
        (format!("{numbers}{block}"), 3, "ok"),
        (format!("{block}{numbers}"), 17, "ok"),
        (format!("{numbers}{block}{block}"), 21, "ok"),
        (format!("{numbers}{block}{block}"), 3, "many_matches"),
        (numbers.clone(), 3, "no_match"),
        (format!("{numbers}x\n y\nx\n"), 21, "no_match"),
        (format!("{numbers}ax\ny\nx\n"), 21, "no_match"),
        (format!("{numbers}x\ny\nx"), 21, "no_match"),
    ] {
        let world = World::new();
        world.file("a.txt", &text);
        let reply = apply(&world, &["a.txt"], &hunk(line));
        assert_eq!(code(&reply), expected, "{}", reply.text());
        let patched = text.replacen("x\ny\nx\n", "x\nY\nx\n", 1);
        let now = if expected == "ok" { &patched } else { &text };
        assert_eq!(&world.text("a.txt"), now);
    }
}

#[test]
fn line_ends_and_a_missing_one_at_the_end_are_kept() {
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n\
                 \\ No newline at end of file\n+TWO\n\\ No newline at end of file\n";
    for (before, after) in [("one\ntwo", "one\nTWO"), ("one\r\ntwo", "one\r\nTWO")] {
        let world = World::new();
        world.file("a.txt", before);
        assert_eq!(code(&apply(&world, &["a.txt"], patch)), "ok");
        assert_eq!(world.text("a.txt"), after);
    }
    // A patch whose own lines end with both, and one that lost the space of an empty line.
    let world = World::new();
    world.file("a.txt", "one\n\ntwo\n");
    let patch = "--- a/a.txt\r\n+++ b/a.txt\r\n@@ -1,3 +1,3 @@\r\n one\r\n\r\n-two\r\n+TWO\r\n";
    assert_eq!(code(&apply(&world, &["a.txt"], patch)), "ok");
    assert_eq!(world.text("a.txt"), "one\n\nTWO\n");
}

#[test]
fn the_paths_are_those_of_the_patch_and_no_others() {
    let world = four();
    let less = &FOUR_PATHS[1..];
    let more: Vec<&str> = FOUR_PATHS.iter().copied().chain(["extra"]).collect();
    for paths in [less, &more, &[]] {
        let reply = apply(&world, paths, FOUR);
        assert_eq!(code(&reply), "args.refused");
        assert!(reply.text().contains("changed.txt"), "{}", reply.text());
    }
    assert_eq!(world.names(""), ["changed.txt", "from.txt", "old.txt"]);
}

#[test]
fn what_is_no_patch_is_refused_with_its_line() {
    let world = four();
    let many = |part: &str, times: usize| part.repeat(times);
    let patches = [
        "nothing".to_owned(),
        "@@ -1 +1 @@\n-a\n+b\n".to_owned(),
        "--- a/a.txt\n".to_owned(),
        "--- a/a.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
        "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
        "--- a/a.txt\n+++ b/a.txt\n".to_owned(),
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1\n-a\n+b\n".to_owned(),
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1 @@\n-a\n+b\n".to_owned(),
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,9999999999999999999999 +1 @@\n-a\n+b\n".to_owned(),
        "--- a/../a.txt\n+++ b/../a.txt\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
        "--- \"a/\\9\"\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
        "diff --git a/a b/a\nnew file mode 120000\n--- /dev/null\n+++ b/a\n".to_owned(),
        "diff --git a/a b/a\nGIT binary patch\n".to_owned(),
        "diff --git a/a b/a\n".to_owned(),
        many("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n", 2),
        "--- a/a\n+++ b/a\n".to_owned() + &many("@@ -1 +1 @@\n-a\n+b\n", HUNKS_MAX + 1),
        (0..=PATCHED_FILES_MAX)
            .map(|at| format!("--- a/{at}\n+++ b/{at}\n@@ -1 +1 @@\n-a\n+b\n"))
            .collect(),
    ];
    let told = patches.iter().map(|patch| {
        let reply = apply(&world, &["a"], patch);
        assert_eq!(code(&reply), "args.refused", "{patch}");
        wrapped(reply.text().lines().next().unwrap_or_default())
    });
    expect![[r#"
        not executed: /patch: found no file, expected a unified diff with `---` and
            `+++` lines
        not executed: /patch: line 1: found `@@ -1 +1 @@`, expected the `---` and
            `+++` lines of its file before it
        not executed: /patch: line 2: found ``, expected `+++` and a path
        not executed: /patch: line 2: found `b.txt`, expected the paths that the
            lines above name; a file is renamed with `rename from` and `rename to`
        not executed: /patch: line 2: found `/dev/null`, expected a path before or
            after the change
        not executed: /patch: line 2: found ``, expected `@@` and a hunk
        not executed: /patch: line 3: found `@@ -1 +1`, expected `@@ -LINE,COUNT
            +LINE,COUNT @@`, all at most 1073741824
        not executed: /patch: line 6: found ``, expected 1 more old and 0 more new
            lines, as its header says
        not executed: /patch: line 3: found `@@ -1,9999999999999999999999 +1 @@`,
            expected `@@ -LINE,COUNT +LINE,COUNT @@`, all at most 1073741824
        not executed: /patch: line 1: found `--- a/../a.txt`, expected a path inside
            the workspace: `../a.txt` holds `..`, expected a path that only goes
            down from the workspace
        not executed: /patch: line 1: found `--- "a/\9"`, expected a quoted path as
            git writes it, in UTF-8
        not executed: /patch: line 2: found `new file mode 120000`, expected a
            regular file of mode `100644` or `100755`
        not executed: /patch: line 2: found `GIT binary patch`, expected a change of
            text: write binary files and copies whole
        not executed: /patch: line 1: found `a/a b/a`, expected a change: hunks, a
            rename, a new mode, or an empty file that comes or goes
        not executed: /patch: found `a` in two parts, expected one part for each
            file
        not executed: /patch: found more than 1000 hunks
        not executed: /patch: found more than 32 files
    "#]]
    .assert_eq(&told.collect::<String>());
}

#[test]
fn a_file_that_only_changes_its_mode_or_is_empty_needs_no_hunk() {
    let world = World::new();
    world.file("a.sh", "true\n").file("gone", "");
    let patch = "diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n\
                 diff --git a/gone b/gone\ndeleted file mode 100644\nindex e69de29..0000000\n\
                 diff --git a/with space b/with space\nnew file mode 100644\n\
                 index 0000000..e69de29\n";
    let reply = apply(&world, &["a.sh", "gone", "with space"], patch);
    assert_eq!(code(&reply), "ok", "{}", reply.text());
    assert_eq!(world.names(""), ["a.sh", "with space"]);
    let mode = fs::metadata(world.at("a.sh")).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, world.text("a.sh").as_str()), (0o755, "true\n"));
}

#[test]
fn a_name_that_git_quotes_is_read() {
    let world = World::new();
    world.file("\u{e4} \"b\".txt", "a\n");
    let patch = "--- \"a/\\303\\244 \\\"b\\\".txt\"\n+++ \"b/\\303\\244 \\\"b\\\".txt\"\n\
                 @@ -1 +1 @@\n-a\n+b\n";
    let reply = apply(&world, &["\u{e4} \"b\".txt"], patch);
    assert_eq!(code(&reply), "ok", "{}", reply.text());
    assert_eq!(world.text("\u{e4} \"b\".txt"), "b\n");
}

#[test]
fn what_somebody_else_writes_meanwhile_is_never_lost() {
    // One writes while the other patches, each time a little later.
    const ROUNDS: u64 = 3_000;
    let world = World::new();
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-line\n+LINE\n";
    let edit = r#"{"path":"a.txt","edits":[{"old":"line","new":"LINE"}]}"#;
    let mut refused = 0;
    for round in 0..ROUNDS {
        world.file("a.txt", "before\nline\n").file("b.txt", format!("{round}\nline\n"));
        let start = Barrier::new(2);
        let reply = thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                let (begun, pause) = (Instant::now(), Duration::from_micros(round % 301 * 8));
                while begun.elapsed() < pause {
                    std::hint::spin_loop();
                }
                fs::rename(world.at("b.txt"), world.at("a.txt")).unwrap();
            });
            start.wait();
            match round % 2 {
                0 => apply(&world, &["a.txt"], patch),
                _ => world.call("edit_file", edit),
            }
        });
        refused += usize::from(reply.is_error);
        let text = world.text("a.txt");
        assert!(text.starts_with(&round.to_string()), "round {round}: {text}, {}", reply.text());
    }
    assert!(refused > 0, "the race was never met");
    assert_eq!(world.names(""), ["a.txt"]);
}

#[test]
fn no_line_of_a_hunk_is_dropped() {
    let head = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";
    for (more, is_fine) in [
        ("+c\n", false),
        ("-c\n", false),
        (" c\n", false),
        ("\n+c\n", false),
        ("\\ No newline at end of file\n\\ No newline at end of file\n", false),
        ("", true),
        ("\n", true),
        ("-- \n2.39.5\n\n", true),
        ("a word\n", true),
        ("--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n", true),
    ] {
        let world = World::new();
        world.file("a.txt", "a\n");
        let paths: &[&str] = if more.contains("b.txt") { &["a.txt", "b.txt"] } else { &["a.txt"] };
        let reply = apply(&world, paths, &format!("{head}{more}"));
        assert_eq!(!reply.is_error, is_fine, "{more:?}: {}", reply.text());
        assert_eq!(world.text("a.txt"), if is_fine { "b\n" } else { "a\n" });
    }
}

#[test]
fn a_line_without_an_end_is_the_last() {
    let no_end = "\\ No newline at end of file\n";
    for hunk in [
        format!("@@ -1,2 +1,2 @@\n-a\n{no_end}+A\n b\n"),
        format!("@@ -1,2 +1,2 @@\n-a\n+A\n{no_end} b\n"),
        // The file goes on behind it.
        format!("@@ -1 +1 @@\n-a\n+A\n{no_end}"),
    ] {
        let world = World::new();
        world.file("a.txt", "a\nb\n");
        let reply = apply(&world, &["a.txt"], &format!("--- a/a.txt\n+++ b/a.txt\n{hunk}"));
        assert_eq!(reply.executed, Executed::NotExecuted, "{hunk}: {}", reply.text());
        assert_eq!(world.text("a.txt"), "a\nb\n");
    }
}

#[test]
fn a_number_that_no_line_has_is_refused() {
    for range in ["-9223372036854775808,1 +1,1", "-18446744073709551615 +1", "-1073741825 +1"] {
        let world = World::new();
        world.file("a.txt", "a\n");
        let patch = format!("--- a/a.txt\n+++ b/a.txt\n@@ {range} @@\n-a\n+b\n");
        let reply = apply(&world, &["a.txt"], &patch);
        assert_eq!(code(&reply), "args.refused", "{}", reply.text());
        assert_eq!(reply.executed, Executed::NotExecuted);
    }
}

#[test]
fn a_diff_says_what_becomes_a_program() {
    let world = World::new();
    world.file("a.sh", "true\n");
    fs::set_permissions(world.at("a.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    let patch = "diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n\
                 diff --git a/b.sh b/b.sh\nnew file mode 100755\n--- /dev/null\n+++ b/b.sh\n\
                 @@ -0,0 +1 @@\n+true\n";
    let diff = |reply: &Reply| reply.value.as_ref().unwrap().to_value()["diff"].clone();
    let expected = "diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n\
                    --- a/a.sh\n+++ b/a.sh\n\
                    diff --git a/b.sh b/b.sh\nnew file mode 100755\n\
                    --- /dev/null\n+++ b/b.sh\n@@ -0,0 +1 @@\n+true\n";
    assert_eq!(diff(&apply(&world, &["a.sh", "b.sh"], patch)), expected);
    // It is a program already.
    let again = patch.split("diff --git a/b.sh").next().unwrap();
    assert_eq!(diff(&apply(&world, &["a.sh"], again)), "--- a/a.sh\n+++ b/a.sh\n");
}
