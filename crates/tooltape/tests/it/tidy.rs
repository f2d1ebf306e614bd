//! The repository keeps the house rules of CONTRIBUTING.md.

// Each test first shows its rule a text that breaks it, so that no rule can go blind.

pub(crate) mod files;
mod layers;
pub(crate) mod rust;
mod words;

use std::{ffi::OsStr, path::Path};

use rust::{Source, lines_with, sources};

/// The most lines of a source file, all told.
const LINES_MAX: usize = 500;
/// The most columns of a line of source.
const COLUMNS_MAX: usize = 100;
/// Where hand-written unsafe code may live: in what talks to the kernel, takes over compiled code,
/// and talks to SQLite for tests.
const UNSAFE_ALLOWED: [&str; 4] = [
    "crates/tooltape-kit/src/sandbox",
    "crates/tooltape-wasm/src/wasm",
    "tests/faults/src/vfs",
    "tests/faults/src/power",
];
/// The one layer of the core that touches clock and randomness, to grant them.
const AMBIENT_ALLOWED: [&str; 1] = ["crates/tooltape/src/grant"];
/// Where the core may name std's locks: in what the model checker replaces, and for a counter.
const MODELLED_ALLOWED: [&str; 2] = ["crates/tooltape/src/sync", "crates/tooltape/src/place"];
/// The one file that holds the words which no file may hold.
const WORDS: &str = "crates/tooltape/tests/it/tidy/words.rs";

/// What is wrong with a source file: line and reason.
type Rule = fn(&Source) -> Vec<(usize, String)>;

#[test]
fn every_source_file_opens_with_one_sentence() {
    for bad in ["", "use std;", "//! No period", "//! One. Two.", "//! One.\n//!\n//! Two."] {
        breaks(opening, "crates/tooltape/src/run.rs", bad);
    }
    breaks(opening, "crates/tooltape/src/lib.rs", "//! No period");
    keeps(opening, "crates/tooltape/src/lib.rs", "//! A. B.\n//!\n//! C.\n");
    keeps(
        opening,
        "crates/tooltape/src/run.rs",
        "//! One sentence of\n//! two lines, e.g. `a. B`.",
    );
    keep(opening);
}

#[test]
fn no_source_file_is_longer_than_500_lines() {
    breaks(length, "a/src/b.rs", &"\n".repeat(501));
    keeps(length, "a/src/b.rs", &"\n".repeat(500));
    keep(length);
}

#[test]
fn no_source_line_is_wider_than_100_columns() {
    breaks(width, "a/src/b.rs", &"é".repeat(101));
    breaks(width, "a/src/b.rs", &format!("f(\n    \"{}\"\n)", "x".repeat(100)));
    breaks(width, "a/src/b.rs", &format!("// {}", "x".repeat(100)));
    keeps(width, "a/src/b.rs", &"é".repeat(100));
    keeps(width, "a/src/b.rs", &format!("f(r#\"\n    c1 {}\n\"#)", "x".repeat(100)));
    keep(width);
}

#[test]
fn every_file_name_says_something() {
    for bad in ["a/src/utils.rs", "a/src/common/b.rs", "a/src/x/mod.rs"] {
        breaks(name, bad, "");
    }
    keep(name);
}

#[test]
fn no_code_is_unfinished_or_hides_a_test() {
    for bad in
        ["fn f() { todo!() }", "#[ignore = \"slow\"]", "/// ```ignore", "//! ```rust,should_panic"]
    {
        breaks(finished, "a/src/b.rs", bad);
    }
    breaks(finished, "a/src/b.rs", "use async_trait::async_trait;");
    keeps(finished, "benches/peers/a.rs", "use async_trait::async_trait;");
    keeps(finished, "a/src/b.rs", "// todo!()\nlet s = \"dbg!\";\n/// ```compile_fail\n");
    keep(finished);
}

#[test]
fn unsafe_code_lives_in_the_sandbox_only() {
    breaks(safe, "crates/tooltape/src/run.rs", "unsafe { f() }");
    breaks(safe, "crates/tooltape-kit/src/sandboxed.rs", "unsafe fn f() {}");
    keeps(safe, "crates/tooltape-kit/src/sandbox/seccomp.rs", "unsafe { f() }");
    keeps(safe, "crates/tooltape/src/lib.rs", "#![forbid(unsafe_code)] // unsafe");
    keep(safe);
}

#[test]
fn unwrap_is_for_tests_only() {
    breaks(unwraps, "crates/tooltape/src/run.rs", "x.unwrap()");
    breaks(unwraps, "crates/tooltape/examples/a.rs", "x\n    .unwrap();");
    keeps(unwraps, "crates/tooltape/tests/it/run.rs", "x.unwrap()");
    keeps(unwraps, "crates/tooltape/src/run.rs", "/// x.unwrap()\nx.unwrap_or(1)");
    keep(unwraps);
}

#[test]
fn tests_live_in_the_tests_folder() {
    breaks(test_free, "a/src/b.rs", "#[cfg(test)]\nmod tests {}");
    breaks(test_free, "a/src/b.rs", "#[tokio::test]\nasync fn f() {}");
    keeps(test_free, "a/tests/it/b.rs", "#[test]\nfn f() {}");
    keep(test_free);
}

#[test]
fn the_core_reads_no_environment_clock_or_randomness_except_to_grant_them() {
    breaks(ambient, "crates/tooltape/src/run.rs", "use std::time::Instant; Instant::now()");
    breaks(ambient, "crates/tooltape/src/run.rs", "std::env::var(\"HOME\")");
    keeps(ambient, "crates/tooltape/src/grant/clock.rs", "SystemTime::now()");
    keeps(ambient, "crates/tooltape-cli/src/config.rs", "std::env::var(\"HOME\")");
    keep(ambient);
}

#[test]
fn the_core_shares_state_only_by_what_the_model_checker_sees() {
    breaks(modelled, "crates/tooltape/src/run.rs", "use std::sync::{Arc, Mutex};");
    breaks(modelled, "crates/tooltape/src/run.rs", "n: std::sync::atomic::AtomicU64,");
    keeps(modelled, "crates/tooltape/src/run.rs", "use std::sync::{Arc, PoisonError, LazyLock};");
    keeps(modelled, "crates/tooltape/src/sync.rs", "use std::{sync::{Mutex, atomic}};");
    keeps(modelled, "crates/tooltape-kit/src/files.rs", "use std::sync::Mutex;");
    keep(modelled);
}

#[test]
fn no_comment_or_page_speaks_of_unfinished_work() {
    assert_eq!(unfinished("a.md", "Later.\nGood for now, TODO."), [2, 2]);
    assert_eq!(unfinished("a.rs", "let a = \"TODO\"; // TODO: more"), [1]);
    assert_eq!(unfinished("run", "echo ok\ntrue # fixme"), [2]);
    assert!(unfinished("a.rs", "let a = \"TODO\"; // stubborn").is_empty());
    assert!(unfinished("a.toml", "todo = \"deny\" # never").is_empty());
    assert!(unfinished("a.md", "The tool `todo` keeps a plan.").is_empty());
    let complaints = files::texts()
        .filter(|(path, _)| path != WORDS && !files::is_fixture(path))
        .flat_map(|(path, text)| {
            let lines = unfinished(&path, &text).into_iter();
            lines.map(move |line| format!("{path}:{line}: speaks of unfinished work"))
        });
    none(complaints.collect());
}

#[test]
fn no_file_names_a_machine_or_a_package_host() {
    for word in words::MACHINE_PATHS.iter().chain(&words::REGISTRY_HOSTS) {
        assert_eq!(machine_bound(&format!("\nsee {word}x")), [2], "`{word}` was let pass");
    }
    assert!(machine_bound("$XDG_STATE_HOME/tooltape/work/r1 rust-lang/crates.io-index").is_empty());
    let texts = files::texts().filter(|(path, _)| path != WORDS);
    let complaints = texts.flat_map(|(path, text)| {
        let lines = machine_bound(&text).into_iter();
        lines.map(move |line| format!("{path}:{line}: names a machine or a package host"))
    });
    none(complaints.collect());
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    assert_eq!(dead_links("docs/a.md", "[x](gone.md) [y](../README.md#top)"), ["gone.md"]);
    let pages =
        files::texts().filter(|(path, _)| path.ends_with(".md") && !files::is_fixture(path));
    let complaints = pages.flat_map(|(path, text)| {
        let links = dead_links(&path, &text).into_iter();
        links.map(move |link| format!("{path}: links to `{link}`, which is not there"))
    });
    none(complaints.collect());
}

#[test]
fn the_workspace_has_no_further_binary_and_its_lints_hold_for_every_crate() {
    let metadata = files::metadata("Cargo.toml", &["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("cargo lists packages");
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    let binaries: Vec<_> =
        targets.filter(|it| it["kind"][0] == "bin").map(|it| &it["name"]).collect();
    // What users run, and what tests start the sandbox and the compiler of components with.
    assert_eq!(binaries, ["tooltape", "tooltape-sandbox", "tooltape-wasm-compile"]);
    assert_eq!(metadata["workspace_default_members"].as_array().map(Vec::len), Some(1));
    for package in packages {
        let manifest = package["manifest_path"].as_str().unwrap();
        let text = std::fs::read_to_string(manifest).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(lints, Some(&toml::Value::Boolean(true)), "{}: lints", package["name"]);
    }
}

/// Asserts that the rule finds a fault in `text`.
fn breaks(rule: Rule, path: &str, text: &str) {
    assert!(!rule(&Source::new(path, text)).is_empty(), "`{path}` was let pass:\n{text}");
}

/// Asserts that the rule finds no fault in `text`.
fn keeps(rule: Rule, path: &str, text: &str) {
    assert_eq!(rule(&Source::new(path, text)), [], "`{path}`:\n{text}");
}

/// Asserts that the rule finds no fault in the repository.
fn keep(rule: Rule) {
    let complaint = |source: &Source, (line, reason)| format!("{}:{line}: {reason}", source.path);
    let sources = sources();
    let complaints = sources.iter().flat_map(|source| {
        rule(source).into_iter().map(|found| complaint(source, found)).collect::<Vec<_>>()
    });
    none(complaints.collect());
}

fn none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn opening(source: &Source) -> Vec<(usize, String)> {
    let docs = source.text.lines().map_while(|line| line.strip_prefix("//!"));
    let docs: Vec<&str> = docs.map(str::trim).collect();
    let first = docs.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
    // The front pages of crates, examples and public modules say more than their job.
    let is_front = source.path.ends_with("/lib.rs")
        || source.path.contains("examples/")
        || source.path.ends_with("/src/testing.rs");
    let sentences = first.match_indices(['.', '?', '!']).filter(|(at, _)| {
        let (before, after) = (&first[..*at], &first[at + 1..]);
        let is_abbreviation = before.ends_with("e.g") || before.ends_with("i.e");
        let in_code = before.matches('`').count() % 2 == 1;
        !is_abbreviation && !in_code && (after.is_empty() || after.starts_with(' '))
    });
    let reason = match sentences.count() {
        _ if !first.ends_with(['.', '?', '!']) => "opens with no `//!` sentence",
        0 => "opens with no `//!` sentence",
        1 if docs.contains(&"") && !is_front => "says more than its one opening sentence",
        2.. if !is_front => "opens with more than one sentence",
        _ => return Vec::new(),
    };
    vec![(1, reason.to_owned())]
}

fn length(source: &Source) -> Vec<(usize, String)> {
    let lines = source.text.lines().count();
    let reason = format!("has {lines} lines, expected at most {LINES_MAX}");
    if lines > LINES_MAX { vec![(lines, reason)] } else { Vec::new() }
}

fn width(source: &Source) -> Vec<(usize, String)> {
    let lines = source.text.lines().zip(source.code.lines().zip(source.comments.lines()));
    let widths = lines.map(|(text, (code, comment))| {
        // What goes on inside a literal, such as the text of a golden, cannot be wrapped.
        let opens = ["\"", "r\"", "r#", "b\""].iter().any(|it| text.trim_start().starts_with(it));
        let is_inside = code.trim().is_empty() && comment.trim().is_empty() && !opens;
        if is_inside { 0 } else { text.chars().count() }
    });
    let wide = widths.enumerate().filter(|(_, width)| *width > COLUMNS_MAX);
    wide.map(|(index, width)| (index + 1, format!("is {width} columns wide"))).collect()
}

fn name(source: &Source) -> Vec<(usize, String)> {
    let parts = source.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let vague = parts.filter(|part| words::VAGUE_NAMES.contains(part));
    vague.map(|part| (1, format!("`{part}` does not say what is in it"))).collect()
}

fn finished(source: &Source) -> Vec<(usize, String)> {
    // The trait of another runtime may ask for what ours does not.
    let is_peer = |word: &str| word == "async_trait" && source.path.starts_with("benches/peers/");
    let forbidden = words::FORBIDDEN_CODE.iter().filter(|word| !is_peer(word));
    let code = forbidden.flat_map(|word| {
        source.lines_with(word).into_iter().map(move |line| (line, format!("holds `{word}`")))
    });
    let unrun = ["ignore", "should_panic"].iter().flat_map(|word| {
        let lines = source.comments.lines().enumerate();
        let fences = lines.filter(move |(_, line)| line.contains("```") && line.contains(word));
        fences.map(move |(index, _)| (index + 1, format!("has a `{word}` example")))
    });
    code.chain(unrun).collect()
}

fn safe(source: &Source) -> Vec<(usize, String)> {
    let lines =
        if is_within(source, &UNSAFE_ALLOWED) { Vec::new() } else { source.lines_with("unsafe") };
    lines.into_iter().map(|line| (line, "holds unsafe code".to_owned())).collect()
}

fn unwraps(source: &Source) -> Vec<(usize, String)> {
    let lines = if source.is_test() { Vec::new() } else { source.lines_with(".unwrap()") };
    lines.into_iter().map(|line| (line, "unwraps outside a test".to_owned())).collect()
}

fn test_free(source: &Source) -> Vec<(usize, String)> {
    let marks = ["#[test]", "#[tokio::test", "cfg(test)"];
    let lines = marks.iter().flat_map(|mark| source.lines_with(mark));
    let reason = "holds a test; tests live in `tests/it`";
    match source.below_src() {
        Some(_) if !source.is_test() => lines.map(|line| (line, reason.to_owned())).collect(),
        _ => Vec::new(),
    }
}

fn ambient(source: &Source) -> Vec<(usize, String)> {
    if !source.path.starts_with("crates/tooltape/src/") || is_within(source, &AMBIENT_ALLOWED) {
        return Vec::new();
    }
    let lines = words::AMBIENT.iter().flat_map(|word| {
        source.lines_with(word).into_iter().map(move |line| (line, format!("reaches `{word}`")))
    });
    lines.collect()
}

fn modelled(source: &Source) -> Vec<(usize, String)> {
    if !source.path.starts_with("crates/tooltape/src/") || is_within(source, &MODELLED_ALLOWED) {
        return Vec::new();
    }
    let lines = source.code.lines().enumerate().filter(|(_, line)| line.contains("std::sync::"));
    let found = lines.flat_map(|(index, line)| {
        let words = words::SHARED.iter().filter(|word| !lines_with(line, word).is_empty());
        words.map(move |word| (index + 1, format!("takes `{word}` from std, not `crate::sync`")))
    });
    found.collect()
}

/// Whether the source is one of the modules: the file itself or a file of its folder.
fn is_within(source: &Source, modules: &[&str]) -> bool {
    modules.iter().any(|module| {
        let below = source.path.strip_prefix(module);
        below.is_some_and(|below| below == ".rs" || below.starts_with('/'))
    })
}

fn unfinished(path: &str, text: &str) -> Vec<usize> {
    let prose = match Path::new(path).extension().and_then(OsStr::to_str) {
        Some("rs") => Source::new(path, text).comments,
        Some("md") => text.to_owned(),
        _ => {
            let comment = |line: &str| line.split_once('#').map_or("", |(_, it)| it).to_owned();
            text.lines().map(comment).collect::<Vec<_>>().join("\n")
        }
    };
    // A tool of the kit is called so.
    let prose = prose.to_lowercase().replace("`todo`", "");
    words::UNFINISHED.iter().flat_map(|word| lines_with(&prose, word)).collect()
}

fn machine_bound(text: &str) -> Vec<usize> {
    let is_bound = |line: &str| {
        let is_absolute = |(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|char| char.is_alphanumeric() || "_-.})>~/*".contains(char))
        };
        words::REGISTRY_HOSTS.iter().any(|host| line.contains(host))
            || words::MACHINE_PATHS.iter().any(|path| line.match_indices(path).any(is_absolute))
    };
    let lines = text.lines().enumerate();
    lines.filter(|(_, line)| is_bound(line)).map(|(index, _)| index + 1).collect()
}

/// The relative links of a page that lead to no file or folder.
fn dead_links(path: &str, text: &str) -> Vec<String> {
    let folder = files::root().join(Path::new(path).parent().expect("a file has a folder"));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    let relative = links.filter(|link| !link.is_empty() && !link.contains(':'));
    relative.filter(|link| !folder.join(link).exists()).map(str::to_owned).collect()
}
