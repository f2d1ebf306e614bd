//! Every promise of the repository names the test that keeps it.

use serde::Deserialize;

use crate::tidy::{
    files,
    rust::{Source, lines_with},
};

/// How many behaviours the acceptance table lists.
const BEHAVIOURS: usize = 116;
/// How many invariants ARCHITECTURE.md lists.
const INVARIANTS: usize = 11;

/// `docs/acceptance.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Acceptance {
    /// The behaviours that must have a test.
    owned: Vec<usize>,
    /// The invariants whose tests must exist.
    proven: Vec<usize>,
    behaviour: Vec<Behaviour>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Behaviour {
    number: usize,
    says: String,
    tests: Vec<String>,
}

#[test]
fn every_behaviour_we_own_has_a_test() {
    let acceptance = acceptance();
    let numbers: Vec<usize> = acceptance.behaviour.iter().map(|it| it.number).collect();
    assert_eq!(numbers, (1..=BEHAVIOURS).collect::<Vec<_>>(), "one entry per number, in order");
    let complaints = acceptance.behaviour.iter().flat_map(|behaviour| {
        let is_owned = acceptance.owned.contains(&behaviour.number);
        let missing = (is_owned && behaviour.tests.is_empty()).then(|| "has no test".to_owned());
        let absent = behaviour.tests.iter().filter_map(|path| absence(path));
        let prefix = format!("{} ({})", behaviour.number, behaviour.says);
        missing.into_iter().chain(absent).map(move |why| format!("{prefix}: {why}"))
    });
    let complaints: Vec<String> = complaints.collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    let stray = acceptance.owned.iter().find(|number| !numbers.contains(number));
    assert_eq!(stray, None, "owned, and not in the table");
}

#[test]
fn every_invariant_stands_beside_the_test_that_proves_it() {
    let page = files::read("ARCHITECTURE.md");
    let rows: Vec<(usize, Vec<&str>)> = page.lines().filter_map(invariant).collect();
    let numbers: Vec<usize> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=INVARIANTS).collect::<Vec<_>>(), "one row per invariant, in order");
    let proven = acceptance().proven;
    for (number, tests) in rows {
        assert!(!tests.is_empty(), "invariant {number} names no test");
        let absent: Vec<String> = tests.into_iter().filter_map(absence).collect();
        assert!(absent.is_empty() || !proven.contains(&number), "invariant {number}: {absent:?}");
    }
}

#[test]
fn every_stage_of_the_reading_order_is_in_the_architecture() {
    let page = files::read("ARCHITECTURE.md");
    let lib = files::read("crates/tooltape/src/lib.rs");
    let modules = lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let lost: Vec<&str> = modules.filter(|module| !page.contains(&format!("`{module}`"))).collect();
    assert!(lost.is_empty(), "ARCHITECTURE.md does not say where these live: {lost:?}");
}

#[test]
fn a_named_test_must_really_be_a_test() {
    let here = "tooltape::promises::a_named_test_must_really_be_a_test";
    assert_eq!(absence(here), None);
    assert_eq!(absence("tooltape::tidy::rust::comments_and_literals_are_told_from_code"), None);
    for path in [
        "tooltape::promises::absence",
        "tooltape::promises::a_test_that_nobody_wrote",
        "tooltape::no_such_file::a_named_test_must_really_be_a_test",
        "a_named_test_must_really_be_a_test",
    ] {
        assert!(absence(path).is_some(), "`{path}` was taken for a test");
    }
    let text = "#[tokio::test(start_paused = true)]\n/// Why.\nasync fn a() {}\nfn b() {}\n";
    assert!(is_test(text, "a") && !is_test(text, "b"));
    assert!(!is_test("// #[test]\nfn a() {}", "a"));
}

fn acceptance() -> Acceptance {
    toml::from_str(&files::read("docs/acceptance.toml")).unwrap_or_else(|err| panic!("{err}"))
}

/// The number and the tests of a row `| 3 | what holds | tests |` of the invariants' table.
fn invariant(row: &str) -> Option<(usize, Vec<&str>)> {
    let mut cells = row.strip_prefix('|')?.split('|').map(str::trim);
    let number = cells.next()?.parse().ok()?;
    let tests = cells.nth(1)?.split('`').filter(|part| part.contains("::"));
    Some((number, tests.collect()))
}

/// Why `crate::file::test` is not a test of ours, if it is none.
fn absence(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let test = parts.pop()?;
    if parts.is_empty() {
        return Some(format!("`{path}` names no crate"));
    }
    let (krate, file) = (parts.remove(0).replace('_', "-"), parts.join("/"));
    let file = if file.is_empty() { "main" } else { &file };
    let mut candidates = ["crates", "tests"].iter().flat_map(|folder| {
        ["tests/it", "tests", "src"].map(|room| format!("{folder}/{krate}/{room}/{file}.rs"))
    });
    match candidates.find(|candidate| files::root().join(candidate).is_file()) {
        None => Some(format!("no file holds `{path}`")),
        Some(file) if is_test(&files::read(&file), test) => None,
        Some(file) => Some(format!("`{file}` has no test `{test}`")),
    }
}

/// Whether `text` declares a function of this name right below a test attribute.
fn is_test(text: &str, name: &str) -> bool {
    let code = Source::new("", text).code;
    let lines: Vec<&str> = code.lines().collect();
    lines_with(&code, &format!("fn {name}")).into_iter().any(|line| {
        let above = lines[..line - 1].iter().rev();
        let mut attributes = above
            .map(|line| line.trim())
            .take_while(|line| line.is_empty() || line.starts_with("#["));
        attributes.any(|it| it == "#[test]" || it.starts_with("#[tokio::test"))
    })
}
