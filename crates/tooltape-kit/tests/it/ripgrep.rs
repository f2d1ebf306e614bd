//! `grep` and `glob` beside ripgrep's own binary, on real sources.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tooltape::Run;
use tooltape_kit::limits::{GLOB_FILES_MAX, GREP_LINE_BYTES_MAX, GREP_MATCHES_MAX};

use crate::world::{call, run_in};

/// Crates that every machine has that built these tests.
const CRATES: [&str; 4] = ["regex-automata-", "rustix-1", "tokio-1", "globset-"];

/// Lines by path and number, each with its text and whether it matches.
type Lines = Vec<(String, u64, String, bool)>;

/// The sources of all crates that were fetched to build this one.
fn registry() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap()).join(".cargo"));
    let indices = fs::read_dir(home.join("registry/src")).unwrap();
    let mut indices: Vec<_> = indices.map(|index| index.unwrap().path()).collect();
    indices.sort_by_key(|index| fs::read_dir(index).unwrap().count());
    indices.pop().expect("the dependencies of this crate are there")
}

/// The names of some folders of it.
fn crates(registry: &Path) -> Vec<String> {
    let names = fs::read_dir(registry).unwrap();
    let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    let last = |prefix: &str| names.iter().rfind(|name| name.starts_with(prefix)).cloned();
    CRATES.iter().filter_map(|prefix| last(prefix)).collect()
}

/// What ripgrep prints, from a folder and with nothing of this machine's configuration.
pub(crate) fn rg(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("rg");
    command
        .current_dir(folder)
        .args(["--no-config", "--no-ignore-global", "--no-ignore-messages"])
        .args(["--sort", "path"]);
    let output = command.args(args).output().expect("ripgrep is installed");
    // It also complains where all files are ignored.
    let told = String::from_utf8_lossy(&output.stderr);
    let is_done = output.status.code().is_some_and(|code| code < 2);
    assert!(is_done || told.starts_with("No files were searched"), "{args:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// The files that ripgrep lists by a glob and would list without it: with it alone, it also lists
/// what is hidden or ignored.
pub(crate) fn listed(folder: &Path, glob: &str, flags: &[&str]) -> Vec<String> {
    let files = |args: &[&str]| {
        let printed = rg(folder, &[&["--files"], args, flags].concat());
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all: BTreeSet<String> = files(&[]).into_iter().collect();
    files(&["-g", glob]).into_iter().filter(|path| all.contains(path)).collect()
}

pub(crate) fn value(run: &Run, tool: &str, args: &Value) -> Value {
    let reply = call(run, tool, &args.to_string());
    assert!(reply.fault.is_none(), "{tool} {args}: {}", reply.text());
    reply.value.as_ref().unwrap().to_value()
}

/// The lines that ripgrep finds.
fn lines_of_rg(folder: &Path, prefix: &str, args: &[&str]) -> Lines {
    let printed = rg(folder, &[&["--json", "--no-require-git"], args].concat());
    let mut lines = Vec::new();
    for event in printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let is_match = event["type"] == "match";
        if !is_match && event["type"] != "context" {
            continue;
        }
        let data = &event["data"];
        let path = format!("{prefix}{}", data["path"]["text"].as_str().unwrap());
        let text = match data["lines"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => String::from_utf8_lossy(&decoded(&data["lines"]["bytes"])).into_owned(),
        };
        let first = data["line_number"].as_u64().unwrap();
        let ends = |text: &'_ str| text.trim_end_matches('\n').trim_end_matches('\r').to_owned();
        for (number, text) in (first..).zip(text.split_inclusive('\n')) {
            lines.push((path.clone(), number, ends(text), is_match));
        }
    }
    lines
}

fn decoded(base64: &Value) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(base64.as_str().unwrap()).unwrap()
}

/// The lines that the tool finds, and whether these are all.
fn lines_of_tool(value: &Value) -> (Lines, bool) {
    let mut lines = Vec::new();
    for file in value["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        for line in file["lines"].as_array().unwrap() {
            let text = line["text"].as_str().unwrap().to_owned();
            let is_match = line.get("context").is_none();
            lines.push((path.to_owned(), line["line"].as_u64().unwrap(), text, is_match));
        }
    }
    (lines, value["truncated"] == false)
}

/// Flags of ripgrep, and the same for the tool.
fn flags() -> Vec<(&'static [&'static str], Value)> {
    vec![
        (&[], json!({})),
        (&["-i"], json!({ "ignore_case": true })),
        (&["-F"], json!({ "fixed": true })),
        (&["-C", "2"], json!({ "before": 2, "after": 2 })),
        (&["-U", "-A", "1"], json!({ "multiline": true, "after": 1 })),
        (&["-g", "*.rs"], json!({ "glob": "*.rs" })),
        (&["-g", "!src/**", "-i"], json!({ "glob": "!src/**", "ignore_case": true })),
        (
            &["--hidden", "--no-ignore", "-B", "3"],
            json!({
                "hidden": true, "ignored": true, "before": 3
            }),
        ),
    ]
}

const PATTERNS: [&str; 16] = [
    "unsafe",
    "fn [a-z_]+\\(",
    "^#!?\\[",
    "TODO|FIXME|XXX",
    "\\bself\\b.*\\bmut\\b",
    "[0-9]{4,}",
    "(?i)licen[cs]e",
    "\\s+$",
    "^$",
    "é|ü|→",
    "\\p{Greek}",
    "impl<.*> .* for",
    "(a|b|c)+d{2,3}",
    "fn new\\(\\) -> Self \\{\\n",
    "0x[[:xdigit:]]+",
    ".{100,}",
];

#[test]
fn grep_finds_what_ripgrep_finds_in_real_sources() {
    let registry = registry();
    let run = run_in(&registry);
    let (mut checks, mut lines_compared, mut cut) = (0, 0, 0);
    for name in crates(&registry) {
        let folder = registry.join(&name);
        for (at, pattern) in PATTERNS.into_iter().enumerate() {
            for (rg_flags, flags) in flags().into_iter().skip(at % 2).step_by(2) {
                // A pattern with a line end needs matches over several lines, or it is an error.
                if pattern.contains("\\n") && !rg_flags.contains(&"-U") {
                    continue;
                }
                let mut args =
                    json!({ "pattern": pattern, "path": name, "limit": GREP_MATCHES_MAX });
                args.as_object_mut().unwrap().extend(flags.as_object().unwrap().clone());
                let (found, is_all) = lines_of_tool(&value(&run, "grep", &args));
                let prefix = format!("{name}/");
                let expected =
                    lines_of_rg(&folder, &prefix, &[rg_flags, &["-e", pattern]].concat());
                assert_same(&found, &expected, is_all, &args);
                checks += 1;
                lines_compared += found.len();
                cut += usize::from(!is_all);
            }
        }
    }
    assert!(checks >= 200, "{checks}");
    eprintln!("grep: {checks} searches equal ripgrep's, {lines_compared} lines, {cut} of them cut");
}

/// Checks that the tool found the same lines, or the first of them where it says so.
fn assert_same(found: &Lines, expected: &Lines, is_all: bool, args: &Value) {
    if is_all {
        assert_eq!(found.len(), expected.len(), "{args}");
    }
    // What stands behind the last match that is shown may be cut off.
    let last = found.iter().rposition(|line| line.3).map_or(0, |last| last + 1);
    for (found, expected) in found[..last].iter().zip(expected) {
        let (text, whole) = (&found.2, &expected.2);
        let is_same = if whole.len() > GREP_LINE_BYTES_MAX {
            whole.contains(text.trim_matches('\u{fffd}'))
        } else {
            text == whole
        };
        assert!(is_same, "{args}: {found:?}, expected {expected:?}");
        assert_eq!((&found.0, found.1, found.3), (&expected.0, expected.1, expected.3), "{args}");
    }
}

#[test]
fn grep_names_the_files_and_counts_the_lines_that_ripgrep_does() {
    let registry = registry();
    let run = run_in(&registry);
    for name in crates(&registry) {
        for pattern in ["unsafe", "fn ", "^use ", "[A-Z]{6,}", "nowhere to be found"] {
            let flags = ["--no-require-git", "-e", pattern];
            let counts = rg(&registry.join(&name), &[&["--count"], &flags[..]].concat());
            let expected: BTreeMap<String, u64> = counts
                .lines()
                .map(|line| line.rsplit_once(':').unwrap())
                .map(|(path, count)| (format!("{name}/{path}"), count.parse().unwrap()))
                .collect();
            let args = |show: &str| {
                json!({
                    "pattern": pattern, "path": name, "show": show, "limit": GREP_MATCHES_MAX
                })
            };
            let counted = value(&run, "grep", &args("counts"));
            let named = value(&run, "grep", &args("files"));
            let files = |value: &Value| value["files"].as_array().unwrap().clone();
            let path = |file: &Value| file["path"].as_str().unwrap().to_owned();
            let found: BTreeMap<String, u64> = files(&counted)
                .iter()
                .map(|file| (path(file), file["count"].as_u64().unwrap()))
                .collect();
            assert_eq!(found, expected, "{name} {pattern}");
            let paths: Vec<String> = files(&named).iter().map(path).collect();
            assert_eq!(paths, files(&counted).iter().map(path).collect::<Vec<_>>());
            assert_eq!(counted["truncated"], false);
        }
    }
}

const GLOBS: [&str; 24] = [
    "*.rs",
    "*.toml",
    "**/*.rs",
    "src/*.rs",
    "src/**/*.rs",
    "/Cargo.toml",
    "/*.md",
    "*.{rs,md}",
    "{src,tests}/**",
    "tests",
    "tests/",
    "tests/**",
    "[a-f]*.rs",
    "[!a-f]*.rs",
    "?od.rs",
    "mod.rs",
    "**/mod.rs",
    "!*.rs",
    "!src",
    "!/src/**/*.rs",
    "**",
    "*",
    "src/**/util/*",
    "nothing.here",
];

#[test]
fn glob_lists_what_ripgrep_lists_in_real_sources() {
    let registry = registry();
    let run = run_in(&registry);
    let mut checks = 0;
    for name in crates(&registry) {
        for glob in GLOBS {
            for (flags, hidden) in
                [(&["--no-require-git"][..], false), (&["--hidden", "--no-ignore"][..], true)]
            {
                let args = json!({
                    "pattern": glob, "path": name, "hidden": hidden, "ignored": hidden,
                    "limit": GLOB_FILES_MAX
                });
                let found = value(&run, "glob", &args);
                let found: Vec<_> = found["files"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| it.as_str().unwrap())
                    .collect();
                let expected = listed(&registry.join(&name), glob, flags);
                let expected: Vec<_> =
                    expected.iter().map(|path| format!("{name}/{path}")).collect();
                assert_eq!(found, expected, "{args}");
                checks += 1;
            }
        }
    }
    assert!(checks >= 150, "{checks}");
    eprintln!("glob: {checks} listings equal ripgrep's");
}
