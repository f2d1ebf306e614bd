//! What somebody sees who is asked about a call: all of it, and nothing that deceives.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::home::{Home, root};
use crate::terminal::Terminal;

/// A folder whose agent edits files, one call for each text.
fn edits(home: &Home, texts: &[&str]) {
    let calls: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            home.write(&format!("f{at}.txt"), "one\n");
            let edits = json!([{ "old": "one", "new": text }]);
            json!({ "tool": "edit_file", "args": { "path": format!("f{at}.txt"), "edits": edits } })
        })
        .collect();
    home.write("s.jsonl", &format!("{}\n{{\"say\":\"done\"}}\n", json!({ "calls": calls })));
}

/// What is another in every run, by its name.
fn normal(text: &str) -> String {
    let is_hash = |word: &str| word.len() == 64 && word.bytes().all(|it| it.is_ascii_hexdigit());
    let is_moment = |word: &str| word.len() == 20 && word.ends_with('Z') && word.contains('T');
    let word = |word: &str| match word.trim_end_matches(',') {
        plain if is_hash(plain) => word.replace(plain, "HASH"),
        plain if is_moment(plain) => word.replace(plain, "MOMENT"),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn check(home: &Home, args: &[&str], expected: Expect) {
    expected.assert_eq(&normal(&home.run(args).stdout));
}

#[test]
fn a_card_says_all_that_a_yes_is_about() {
    let home = Home::new();
    edits(&home, &["two"]);
    home.write("tooltape.toml", "[[policy.rules]]\ntool = \"edit_file\"\nverdict = \"ask\"\n");
    assert_eq!(home.run(&["run", "s.jsonl"]).code, 7);
    check(
        &home,
        &["approve", "ls"],
        expect![[r#"
            ? edit_file@0.1.0 · write: files
              arguments  {"edits":[{"new":"two","old":"one"}],"path":"f0.txt"}
              change     --- a/f0.txt
                         +++ b/f0.txt
                         @@ -1 +1 @@
                         -one
                         +two
              touches    reads and writes HOME/here/f0.txt
              bounds     no sandbox: native code, given Workspace, Random, in HOME/here
                         rights of the run: fs:read:., fs:write:., process:shell:sandbox
              asked by   tooltape.toml:1
              stands     until MOMENT
              call       #1 of run RUN, asked MOMENT
              args hash  HASH
              question   HASH
        "#]],
    );
    let listed = home.run(&["approve", "ls", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap();
    let shown = home.run(&["approve", "show", &id[..8]]);
    assert_eq!(shown.stdout, home.run(&["approve", "ls"]).stdout, "one of them is shown alike");
    assert_eq!(home.run(&["approve", "show", id, "--json"]).json(), listed[0]);
    assert_eq!(listed[0]["touches"][1]["path"], "HOME/here/f0.txt");
    assert_eq!(listed[0]["bounds"]["enforced_by"], "host");
    // The file is another by now, and so is the change; what was asked is not.
    home.write("f0.txt", "none\n");
    let now = home.run(&["approve", "show", id, "--json"]).json();
    assert_eq!(now["preview"]["shown"], "--- a/f0.txt\n+++ b/f0.txt\n@@ -1 +1 @@\n-none\n+ntwo\n");
    assert_eq!((&now["id"], &now["args_hash"]), (&listed[0]["id"], &listed[0]["args_hash"]));
    assert_eq!((&listed[0]["other_change"], &now["other_change"]), (&json!(false), &json!(true)));
    home.write("f0.txt", "nothing\n");
    let now = home.run(&["approve", "show", id]).stdout;
    assert!(now.contains("change     cannot be shown: /edits/0/old: found nowhere"), "{now}");
    let unknown = home.run(&["approve", "show", "00000000", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (5, &json!("approval.unknown")));
}

#[test]
fn a_path_that_leads_elsewhere_says_where() {
    let home = Home::new();
    edits(&home, &["two"]);
    home.write("deep/down/f0.txt", "one\n");
    std::fs::remove_file(home.here().join("f0.txt")).unwrap();
    std::os::unix::fs::symlink("deep/down/f0.txt", home.here().join("f0.txt")).unwrap();
    assert_eq!(home.run(&["run", "s.jsonl"]).code, 7);
    let shown = home.run(&["approve", "ls"]).stdout;
    let leads = "writes HOME/here/f0.txt, which leads to HOME/here/deep/down/f0.txt";
    assert!(shown.contains(leads), "{shown}");
}

/// AP-04: texts that would draw on a terminal, hide, or pass for others.
const DISGUISED: [(&str, &str); 20] = [
    ("control: plain letters", "plain"),
    ("a control sequence", "\u{1b}[2J\u{1b}[H"),
    ("a colour", "\u{1b}[8mhidden\u{1b}[0m"),
    ("a link", "\u{1b}]8;;http://evil\u{7}ok\u{1b}]8;;\u{7}"),
    ("the clipboard", "\u{1b}]52;c;cm0gLXJm\u{7}"),
    ("a title", "\u{1b}]0;safe\u{7}"),
    ("a paste", "\u{1b}[200~y\n\u{1b}[201~"),
    ("an eight-bit control sequence", "\u{9b}2J"),
    ("a return to the margin", "rm -rf /\rls"),
    ("backspaces", "rm\u{8}\u{8}ls"),
    ("many lines", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"),
    ("another direction", "\u{202e}txt.exe"),
    ("an isolate", "\u{2066}a\u{2069}"),
    ("a mark of direction", "a\u{200f}b"),
    ("a blank without width", "a\u{200b}b"),
    ("a joiner", "a\u{200d}b"),
    ("tag letters", "a\u{e0072}\u{e006d}"),
    ("a soft hyphen", "a\u{ad}b"),
    ("a filler", "a\u{3164}b"),
    ("line separators", "a\u{2028}b\u{85}c"),
];

#[test]
fn no_argument_can_be_disguised() {
    let home = Home::new();
    edits(&home, &DISGUISED.map(|(_, text)| text));
    assert_eq!(home.run(&["run", "s.jsonl"]).code, 7);
    let shown = home.run(&["approve", "ls"]).stdout;
    let is_safe = |c: char| matches!(c, '\n') || !(c.is_control() || c == '\u{ad}');
    assert!(shown.chars().all(is_safe), "{shown:?}");
    let hidden = ['\u{200b}', '\u{200d}', '\u{200f}', '\u{202e}', '\u{2066}', '\u{2028}'];
    assert!(!shown.contains(hidden) && !shown.contains(['\u{e0072}', '\u{3164}']), "{shown:?}");
    for (at, (name, text)) in DISGUISED.iter().enumerate() {
        // What is shown is the very document: whoever reads it back has every byte.
        let path = format!("\"path\":\"f{at}.txt\"}}");
        let card = shown.split("? edit_file").find(|card| card.contains(&path)).expect(name);
        let arguments = card.split("arguments ").nth(1).unwrap();
        let end = arguments.find(&path).unwrap() + path.len();
        let arguments: String = arguments[..end].lines().map(str::trim_start).collect();
        let read: Value = serde_json::from_str(&arguments).expect(name);
        assert_eq!(read["edits"][0]["new"], **text, "{name}");
    }
}

#[test]
fn letters_that_pass_for_others_are_named() {
    let home = Home::new();
    edits(&home, &["p\u{430}y", "e\u{301}"]);
    home.run(&["run", "s.jsonl"]);
    let shown = home.run(&["approve", "ls"]).stdout;
    assert!(shown.contains("letters    beyond ASCII: \u{430} U+0430"), "{shown}");
    assert!(shown.contains("U+0301"), "{shown}");
}

#[test]
fn what_does_not_fit_the_screen_is_read_page_by_page_before_an_answer_counts() {
    let long = format!("{}HIDDEN TAIL", "x".repeat(4_000));
    // A yes on the first page is none: the rest was not seen.
    for (keys, code, runs) in [("y\n", 6, false), ("\n\n\n\n\n\n\n\n\ny\n", 0, true)] {
        let home = Home::new();
        home.write("a.txt", "one\n");
        let edits = format!("edits={}", json!([{ "old": "one", "new": long }]));
        let command = home.command(&["call", "edit_file", "path=a.txt", &edits, "--no-color"]);
        let mut terminal = Terminal::sized(command, 24, 80);
        terminal.shows("page 1 of ");
        let pages: usize = {
            let text = terminal.text();
            let of = text.split("page 1 of ").nth(1).unwrap().split(':').next().unwrap();
            of.parse().unwrap()
        };
        let keys = if runs { format!("{}y\n", "\n".repeat(pages - 1)) } else { keys.to_owned() };
        terminal.types(&keys);
        let showed = terminal.end();
        assert_eq!(showed.code, code, "{}", showed.text);
        assert_eq!(home.read("a.txt").contains("TAIL"), runs);
        assert_eq!(showed.text.contains("HIDDEN TAIL"), runs, "{}", showed.text);
        assert!(runs || showed.text.contains("before all of it was shown"), "{}", showed.text);
    }
}

#[test]
fn nobody_is_asked_to_read_more_than_anybody_would() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let edits = format!("edits={}", json!([{ "old": "one", "new": "x".repeat(100_000) }]));
    let command = home.command(&["call", "edit_file", "path=a.txt", &edits, "--no-color"]);
    let mut terminal = Terminal::sized(command, 24, 80);
    terminal.types("\n\n\ny\n");
    let showed = terminal.end();
    assert_eq!((showed.code, home.read("a.txt").as_str()), (6, "one\n"), "{}", showed.text);
    assert!(showed.text.contains("nobody is asked to read more than 64"), "{}", showed.text);
}

#[test]
fn the_example_shows_its_line_before_it_is_written() {
    let home = Home::new();
    let example = root().join("examples/approval").display().to_string();
    home.run(&["run", &example]);
    let shown = home.run(&["approve", "ls"]).stdout;
    assert!(shown.contains("+invoice 17 paid"), "{shown}");
}
