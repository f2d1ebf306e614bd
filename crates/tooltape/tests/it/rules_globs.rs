//! Our globs match what those of ripgrep match, wherever both mean the same.

use globset::GlobBuilder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use tooltape::rule::Glob;

use crate::rights_universe::wanted;

/// `PROPTEST_CASES` asks for more.
const CASES_DEFAULT: u64 = 10_000;

fn matches(glob: &str, path: &str) -> Option<bool> {
    glob.parse::<Glob>().unwrap().matches(path)
}

#[test]
fn a_glob_matches_as_its_reader_expects() {
    for (glob, path, expected) in [
        ("src/**", "src/a", true),
        ("src/**", "src/a/b", true),
        ("src/**", "src", false),
        ("src/**", "srcs/a", false),
        ("**", "", true),
        ("**", "a/b", true),
        ("**/a", "a", true),
        ("**/a", "x/y/a", true),
        ("a/**/b", "a/b", true),
        ("a/**/b", "a/x/y/b", true),
        ("a/**/b", "a/x/y/c", false),
        ("*.rs", "a.rs", true),
        ("*.rs", "a/b.rs", false),
        ("a*b*c", "aXbYbZc", true),
        ("?", "é", true),
        ("[!a-c]x", "dx", true),
        ("[!a-c]x", "bx", false),
        ("[]]", "]", true),
        ("[a-]", "-", true),
        ("{a,b/c}/d", "b/c/d", true),
        ("{a,{b,c}}", "c", true),
        ("\\*", "*", true),
        ("\\*", "a", false),
        ("a,b", "a,b", true),
        ("src/*", "./src//a", true),
        ("src/*", "src/./a", true),
    ] {
        assert_eq!(matches(glob, path), Some(expected), "{glob} {path}");
    }
    for path in ["/a", "..", "a/../b", "a\\b", "C:x", "c:/x"] {
        assert_eq!(matches("**", path), None, "{path}");
    }
}

#[test]
fn a_glob_is_matched_in_no_time_whatever_both_are() {
    let path = "a".repeat(100_000);
    let folders = "a/".repeat(50_000);
    for glob in ["*a".repeat(300) + "b", "**/a/".repeat(150) + "b", "?*".repeat(300) + "b"] {
        assert_eq!(matches(&glob, &path), Some(false));
        assert_eq!(matches(&glob, &folders), Some(false));
    }
}

/// Beyond ASCII they differ: to theirs a character is a byte.
#[test]
fn random_globs_match_what_those_of_ripgrep_match() {
    let piece = select(vec![
        "a", "b", "ab", "*", "?", "[ab]", "{a,b}", "{a*,b?}", ".", "[a-c]", "{a,b/c}", "c",
    ]);
    let name = vec(piece, 1..4).prop_map(|pieces| pieces.concat());
    let glob = vec(prop_oneof![1 => Just("**".to_owned()), 3 => name], 1..5);
    let part = select(vec!["a", "b", "ab", "abc", "c", ".a", "a.b"]);
    let case = (glob, vec(part, 1..5));
    let cases = wanted("PROPTEST_CASES", CASES_DEFAULT).try_into().unwrap();
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let tried = runner.run(&case, |(names, parts)| {
        let (glob, path) = (names.join("/"), parts.join("/"));
        let theirs = GlobBuilder::new(&glob).literal_separator(true).build().unwrap();
        let theirs = theirs.compile_matcher().is_match(&path);
        match glob.parse::<Glob>() {
            Ok(ours) => prop_assert_eq!(ours.matches(&path), Some(theirs), "{} {}", glob, path),
            // Two to the seventh is more than they may stand for.
            Err(err) => prop_assert!(glob.matches('{').count() > 6, "{}", err),
        }
        Ok(())
    });
    tried.unwrap();
}
