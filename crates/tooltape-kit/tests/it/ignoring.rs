//! Ignore files as ripgrep obeys them, on trees that are made by chance.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tooltape::Random;
use tooltape_kit::limits::{GLOB_FILES_MAX, GREP_MATCHES_MAX};

use crate::ripgrep::{listed, rg, value};
use crate::world::run_in;

const TREES: u8 = 60;

const DIRS: [&str; 8] = ["a", "b", "src", "target", "a.d", ".hidden", "build", "été"];
const FILES: [&str; 12] = [
    "a", "b.rs", "c.txt", ".env", "foo.log", "keep.log", "x y", "#hash", "!bang", "[a]", "B.RS",
    "é",
];
const RULES: [&str; 44] = [
    "*.rs",
    "*.log",
    "!keep.log",
    "/a",
    "a/",
    "/a/",
    "b.rs",
    "**/b.rs",
    "src/**",
    "src/*",
    "!src/a",
    "target",
    "target/",
    "!target/",
    "*/c.txt",
    "a/**/b.rs",
    "**",
    "!**/",
    "!*.rs",
    "*",
    "!*/",
    "!*.txt",
    "# comment",
    "\\#hash",
    "\\!bang",
    "[a]",
    "\\[a\\]",
    "[a-c]",
    "?",
    "x y",
    "x\\ y",
    "c.txt ",
    "c.txt\\ ",
    "",
    "   ",
    "/",
    "//",
    "é*",
    ".hidden",
    "!.hidden",
    "!.env",
    "{a,b}*",
    "build/**/a",
    "[",
];

fn pick<'t>(random: &Random, table: &[&'t str]) -> &'t str {
    table[usize::try_from(random.next_u64() % table.len() as u64).unwrap()]
}

/// A tree with ignore files all over it, in a repository.
fn tree(random: &Random) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut dirs = vec![folder.path().to_owned()];
    for _ in 0..12 {
        let at = usize::try_from(random.next_u64()).unwrap_or(0) % dirs.len();
        let dir = dirs[at].join(pick(random, &DIRS));
        fs::create_dir_all(&dir).unwrap();
        dirs.push(dir);
    }
    fs::create_dir_all(folder.path().join(".git/info")).unwrap();
    for dir in &dirs {
        for _ in 0..3 {
            let file = dir.join(pick(random, &FILES));
            if !file.is_dir() {
                fs::write(file, "needle\n").unwrap();
            }
        }
        for (name, odds) in [(".gitignore", 2), (".ignore", 4)] {
            if random.next_u64().is_multiple_of(odds) {
                let rules = (0..random.next_u64() % 5).map(|_| pick(random, &RULES));
                let end = if random.next_u64().is_multiple_of(4) { "\r\n" } else { "\n" };
                let rules: String = rules.map(|rule| format!("{rule}{end}")).collect();
                fs::write(dir.join(name), rules).unwrap();
            }
        }
        // A repository in a repository has rules of its own.
        if random.next_u64().is_multiple_of(8) {
            fs::create_dir_all(dir.join(".git")).unwrap();
        }
    }
    fs::write(folder.path().join(".git/info/exclude"), pick(random, &RULES)).unwrap();
    folder
}

#[test]
fn ignore_files_are_obeyed_as_ripgrep_obeys_them() {
    let (mut files, mut left_out) = (0, 0);
    for seed in 0..TREES {
        let folder = tree(&Random::seeded([seed; 32]));
        let run = run_in(folder.path());
        let all = rg(folder.path(), &["--files", "--hidden", "--no-ignore"]).lines().count();
        for (flags, hidden, glob) in [
            (&[][..], false, "!nothing"),
            (&["--hidden"][..], true, "!nothing"),
            (&[][..], false, "*.{rs,log}"),
            (&[][..], false, "src/**"),
            (&["--no-ignore"][..], false, "!*.rs"),
        ] {
            let ignored = flags.contains(&"--no-ignore");
            let args = json!({
                "pattern": glob, "hidden": hidden, "ignored": ignored, "limit": GLOB_FILES_MAX
            });
            let found = value(&run, "glob", &args);
            let found: Vec<_> = found["files"].as_array().unwrap().iter().map(text).collect();
            let expected = listed(folder.path(), glob, flags);
            assert_eq!(found, expected, "seed {seed}: {args}");
            files += found.len();
            left_out += all - found.len();
        }
        let args = json!({ "pattern": "needle", "show": "files", "limit": GREP_MATCHES_MAX });
        let found = value(&run, "grep", &args);
        let found: Vec<_> =
            found["files"].as_array().unwrap().iter().map(|file| text(&file["path"])).collect();
        let expected = rg(folder.path(), &["-l", "needle"]);
        assert_eq!(found, expected.lines().collect::<Vec<_>>(), "seed {seed}");
    }
    assert!(files > 2_000 && left_out > 2_000, "{files} {left_out}");
    eprintln!("ignoring: {TREES} trees, {files} files seen, {left_out} left out, as ripgrep does");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn the_rules_above_a_directory_hold_in_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join(".gitignore"), "/a/b/c/no.txt\n*.log\n").unwrap();
    fs::write(folder.path().join("a/.ignore"), "b/c/neither.txt\n").unwrap();
    for name in ["yes.txt", "no.txt", "neither.txt", "x.log"] {
        fs::write(folder.path().join("a/b/c").join(name), "needle\n").unwrap();
    }
    let run = run_in(folder.path());
    let found = value(&run, "grep", &json!({ "pattern": "needle", "path": "a/b/c" }));
    let found: Vec<_> = found["files"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(found, ["a/b/c/yes.txt"]);
    assert_eq!(rg(&folder.path().join("a/b/c"), &["-l", "needle"]), "yes.txt\n");
}

#[test]
fn without_a_repository_the_rules_hold_all_the_same() {
    // The repository may begin above the workspace, where nobody can look.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".gitignore"), "*.log\n").unwrap();
    fs::write(folder.path().join("a.log"), "needle\n").unwrap();
    fs::write(folder.path().join("a.txt"), "needle\n").unwrap();
    let found = value(&run_in(folder.path()), "grep", &json!({ "pattern": "needle" }));
    assert_eq!(found["matches"], 1);
    assert_eq!(rg(folder.path(), &["--no-require-git", "-l", "needle"]), "a.txt\n");
}
