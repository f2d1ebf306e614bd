//! Every limit of the kit is in the table of `docs/kit-limits.md`, with its value.

use expect_test::expect_file;
use tooltape_kit::limits::*;

/// Rows: `NAME: "of what"`.
macro_rules! rows {
    ($($name:ident: $what:literal,)*) => {
        [$((stringify!($name), format!("{:?}", $name), $what)),*]
    };
}

#[test]
fn every_limit_of_the_kit_is_in_the_table_with_its_value() {
    let rows = [of_files(), of_processes()].concat();
    let mut page = String::from(
        "# Limits of the kit\n\nThe tools in the box have these limits besides those of \
         [every call](limits.md). A test holds this table to the code.\n\n\
         | limit | value | of what |\n|---|---|---|\n",
    );
    for (name, value, what) in &rows {
        page.push_str(&format!("| `{name}` | {value} | {what} |\n"));
    }
    expect_file!["../../../../docs/kit-limits.md"].assert_eq(&page);
    let source = include_str!("../../src/lib.rs");
    let (_, limits) = source.split_once("pub mod limits {").unwrap();
    let (limits, _) = limits.split_once("\n}\n").unwrap();
    let words = limits.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_limit = |word: &&str| word.len() > 3 && word.chars().all(|c| !c.is_ascii_lowercase());
    for word in words.filter(is_limit) {
        assert!(rows.iter().any(|(name, ..)| *name == word), "`{word}` is not in the table");
    }
}

/// The limits of files and small things.
fn of_files() -> Vec<(&'static str, String, &'static str)> {
    rows![
        DIFF_BYTES_MAX: "bytes of a diff that are returned",
        DIFF_LINES_MAX: "lines of a file whose diff is made",
        EDITS_MAX: "replacements of one call",
        GLOB_BYTES_MAX: "bytes of a glob",
        GLOB_FILES_DEFAULT: "files that are listed unless a call says",
        GLOB_FILES_MAX: "files that one call lists",
        GLOB_PATHS_BYTES_MAX: "bytes of paths that one call lists",
        GREP_BYTES_MAX: "bytes of all lines that one call shows",
        GREP_CONTEXT_MAX: "lines that are shown before or after a match",
        GREP_HEAP_BYTES_MAX: "bytes of a file that are in memory at once",
        GREP_LINE_BYTES_MAX: "bytes of a line that are shown",
        GREP_MATCHES_DEFAULT: "matches that are shown unless a call says",
        GREP_MATCHES_MAX: "matches that one call shows",
        GREP_PATTERN_BYTES_MAX: "bytes of a pattern",
        GREP_REGEX_BYTES_MAX: "bytes of a compiled regular expression",
        GREP_THREADS_MAX: "threads that one call searches with",
        HUNKS_MAX: "places that one patch changes",
        LINE_SHOWN_BYTES_MAX: "bytes of a line that a message shows",
        LIST_DEPTH_MAX: "levels of directories that one call lists",
        MATCHES_COUNTED_MAX: "places of a text that are counted where one was expected",
        PATCHED_FILES_MAX: "files of one patch",
        READ_BYTES_MAX: "bytes of text that one call returns",
        READ_IMAGE_BYTES_MAX: "bytes of an image that is shown",
        ANSWER_BYTES_MAX: "bytes of an answer",
        CHOICES_MAX: "answers to choose from",
        HASH_BYTES_MAX: "bytes of a file whose hash is made",
        QUESTION_BYTES_MAX: "bytes of a question",
        STEP_BYTES_MAX: "bytes of a step",
        STEPS_MAX: "steps of a plan",
        ARGUMENTS_MAX: "arguments of a program",
        DESCRIBE_WALL: "time of a program to describe itself",
        EXECUTABLE_OUTPUT_BYTES_MAX: "bytes that a program may write, unless it asks for fewer",
        EXECUTABLE_WALL_DEFAULT: "time of a program that does not say",
        EXECUTABLE_WALL_MAX: "time that a program may ask for",
        MANIFEST_BYTES_MAX: "bytes of a manifest",
        PATCH_BYTES_MAX: "bytes of a patch that are returned",
        PROGRAM_BYTES_MAX: "bytes of a program",
    ]
    .into()
}

/// The limits of processes, and of what comes over the network.
fn of_processes() -> Vec<(&'static str, String, &'static str)> {
    rows![
        ARGV_BYTES_MAX: "bytes of arguments and variables together",
        CHANGES_BYTES_MAX: "bytes of all new contents together",
        CHANGES_MAX: "paths of a change that are listed",
        CONNECTIONS_MAX: "connections of a process at once; more wait",
        CONNECTIONS_SHOWN_MAX: "connections that a result lists",
        CPU_DEFAULT: "time that a process may compute",
        EGRESS_BYTES_MAX: "bytes of all connections of a process together, in and out",
        EGRESS_HEAD_BYTES_MAX: "bytes of the head of a request",
        EGRESS_IDLE: "time that a connection may be silent",
        FILE_WRITTEN_BYTES_DEFAULT: "bytes of a file that a process writes",
        IDLE_DEFAULT: "time that a process may be silent",
        KEPT_BYTES_DEFAULT: "bytes of each stream that are kept",
        MEMORY_BYTES_DEFAULT: "bytes of memory of all processes together",
        MEMORY_BYTES_MIN: "least bytes of memory that can be asked for",
        OPEN_FILES_DEFAULT: "files that a process has open",
        OUTPUT_BYTES_DEFAULT: "bytes that a process may write to each stream",
        PROCESSES_DEFAULT: "processes and threads at once",
        SCRATCH_BYTES_DEFAULT: "bytes of temporary files",
        STDIN_BYTES_MAX: "bytes that a process is given to read",
        WALL_DEFAULT: "time that a process may run",
        ADDRESSES_MAX: "addresses of one host",
        DIALS_MAX: "addresses that are tried for one connection",
        FETCH_IDLE_DEFAULT: "time that a host may say nothing",
        FETCH_WALL_DEFAULT: "time of a page, with all its redirects",
        HEADER_BYTES_MAX: "bytes of all header fields",
        HEADERS_MAX: "header fields of an answer",
        HTML_BYTES_MAX: "bytes of HTML that are made Markdown",
        HTML_DEPTH_MAX: "elements within each other; what is deeper is text",
        RATIO_MAX: "times its packed size that a page may unpack to",
        REDIRECTS_MAX: "redirects that are followed",
        TEXT_BYTES_DEFAULT: "bytes of text that one call returns unless it says",
        TEXT_BYTES_MAX: "bytes of text that one call returns",
        URL_BYTES_MAX: "bytes of an address",
        WINDOW_BYTES_MAX: "bytes that a packed page may look back",
        WIRE_BYTES_MAX: "bytes that are read of one answer, as they come over the wire",
        COMPONENT_BYTES_MAX: "bytes of a part of a path between two slashes",
        ENTRIES_MAX: "entries of a directory that are listed",
        ENTRIES_SCANNED_MAX: "entries that are read to find the first of them",
        FILE_BYTES_MAX: "bytes of a file that is read or written",
        IGNORE_BYTES_MAX: "bytes of one ignore file that are obeyed",
        PATH_BYTES_MAX: "bytes of a path",
        PATH_SHOWN_BYTES_MAX: "bytes of a path that a message shows",
        WALK_DEPTH_MAX: "levels of directories that a walk goes down",
        WALK_ENTRIES_MAX: "entries of all directories that one walk comes to",
        WALK_MS_MAX: "milliseconds that a walk takes",
    ]
    .into()
}
