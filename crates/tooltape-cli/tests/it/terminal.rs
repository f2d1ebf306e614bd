//! What happens at a terminal: questions, colours, and text that would draw on it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use crate::home::Home;
use crate::own_tools::program;
use crate::stopping::interrupt;

/// A command at a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    screen: File,
    text: Vec<u8>,
    /// How much was on the screen when something was typed last.
    answered: usize,
}

/// How questions end.
const QUESTIONS: [&[u8]; 3] = [b"[y/N] ", b"which one? [1] ", b"else no "];

/// What a command showed, and how it ended.
pub(crate) struct Showed {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Terminal {
    pub(crate) fn start(command: Command) -> Terminal {
        Terminal::sized(command, 60, 160)
    }

    /// The same, at a terminal of so many rows and columns.
    pub(crate) fn sized(mut command: Command, ws_row: u16, ws_col: u16) -> Terminal {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let keyboard: OwnedFd = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let stream = || Stdio::from(keyboard.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        // Only the command holds its end of the terminal, so the screen ends with the command.
        let child = command.spawn().unwrap();
        Terminal { child, screen: File::from(screen), text: Vec::new(), answered: 0 }
    }

    /// Waits until this is on the screen.
    pub(crate) fn shows(&mut self, text: &str) {
        while !self.text.windows(text.len()).any(|window| window == text.as_bytes()) {
            assert!(self.read(), "`{text}` never came: {}", String::from_utf8_lossy(&self.text));
        }
    }

    /// Waits until another question is on the screen, and nothing behind it, and says whether the
    /// command asks one before it ends.
    pub(crate) fn asks(&mut self) -> bool {
        let asks = |text: &[u8]| QUESTIONS.iter().any(|question| text.ends_with(question));
        while self.text.len() <= self.answered || !asks(&self.text) {
            if !self.read() {
                return false;
            }
        }
        true
    }

    /// What is on the screen by now.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Waits until the command has ended.
    pub(crate) fn end(mut self) -> Showed {
        while self.read() {}
        let code = self.child.wait().unwrap().code().unwrap();
        Showed { code, text: String::from_utf8(self.text).unwrap() }
    }

    /// Presses these keys.
    pub(crate) fn types(&mut self, keys: &str) {
        self.answered = self.text.len();
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupts(&self) {
        interrupt(&self.child);
    }

    /// Waits until this is on the screen once more than when something was typed last.
    pub(crate) fn shows_again(&mut self, text: &str) {
        let from = self.answered;
        while !String::from_utf8_lossy(&self.text[from..]).contains(text) {
            assert!(self.read(), "`{text}` never came: {}", String::from_utf8_lossy(&self.text));
        }
    }

    /// Ends the command at once, with no time for anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Reads more, and says whether there was more.
    fn read(&mut self) -> bool {
        let mut chunk = [0; 4_096];
        let read = self.screen.read(&mut chunk).unwrap_or(0);
        self.text.extend_from_slice(&chunk[..read]);
        read > 0
    }
}

/// Runs a command at a terminal where each of these lines is typed once something is asked.
pub(crate) fn at_terminal(command: Command, lines: &str) -> Showed {
    let mut terminal = Terminal::start(command);
    for line in lines.split_inclusive('\n') {
        if terminal.asks() {
            terminal.types(line);
        }
    }
    terminal.end()
}

const EDIT: [&str; 4] = ["call", "edit_file", "path=a.txt", r#"edits=[{"old":"one","new":"two"}]"#];

#[test]
fn a_person_is_asked_with_the_exact_arguments_and_decides() {
    for (keys, code, text) in
        [("y\n", 0, "two\n"), ("n\n", 6, "one\n"), ("\n", 6, "one\n"), ("yo\n", 6, "one\n")]
    {
        let home = Home::new();
        home.write("a.txt", "one\n");
        let showed = at_terminal(home.command(&[&EDIT[..], &["--no-color"]].concat()), keys);
        assert_eq!((showed.code, home.read("a.txt").as_str()), (code, text), "{}", showed.text);
        assert!(showed.text.contains("? edit_file@0.1.0 · write: files"), "{}", showed.text);
        let args = r#"{"edits":[{"new":"two","old":"one"}],"path":"a.txt"}"#;
        assert!(showed.text.contains(args), "{}", showed.text);
        assert!(showed.text.contains("[y/N]"), "{}", showed.text);
    }
}

#[test]
fn what_was_typed_before_a_card_was_shown_does_not_answer_it() {
    let home = Home::new();
    let edits = ["a", "b"].map(|file| {
        home.write(&format!("{file}.txt"), "one\n");
        let edit = json!([{ "old": "one", "new": "two" }]);
        json!({ "tool": "edit_file", "args": { "path": format!("{file}.txt"), "edits": edit } })
    });
    home.write("s.jsonl", &format!("{}\n{{\"say\": \"done\"}}\n", json!({ "calls": edits })));
    let mut terminal = Terminal::start(home.command(&["run", "s.jsonl", "--no-color"]));
    // A yes of long ago, and one more than was asked for: each is there before the next card is.
    terminal.types("y\ny\ny");
    assert!(terminal.asks(), "{}", terminal.text());
    terminal.types("y\ny\ny");
    assert!(terminal.asks(), "{}", terminal.text());
    terminal.types("n\n");
    let showed = terminal.end();
    assert_eq!(showed.code, 0, "{}", showed.text);
    assert_eq!((home.read("a.txt").as_str(), home.read("b.txt").as_str()), ("two\n", "one\n"));
}

#[test]
fn ctrl_c_withdraws_a_question() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let mut terminal = Terminal::start(home.command(&EDIT));
    terminal.shows("[y/N]");
    interrupt(&terminal.child);
    let showed = terminal.end();
    assert_eq!((showed.code, home.read("a.txt").as_str()), (130, "one\n"), "{}", showed.text);
    assert!(showed.text.contains("not executed"), "{}", showed.text);
}

#[test]
fn yes_asks_nobody() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let showed = at_terminal(home.command(&[&EDIT[..], &["--yes"]].concat()), "");
    assert_eq!((showed.code, home.read("a.txt").as_str()), (0, "two\n"));
    assert!(!showed.text.contains("[y/N]"), "{}", showed.text);
}

#[test]
fn nobody_is_asked_about_a_call_that_cannot_run() {
    let home = Home::new();
    let showed = at_terminal(home.command(&["call", "edit_file", "path=a.txt", "edits=1"]), "");
    assert_eq!(showed.code, 8);
    assert!(!showed.text.contains("[y/N]"), "{}", showed.text);
}

#[test]
fn a_question_cannot_be_disguised() {
    let home = Home::new();
    home.write("a.txt", "one\n");
    let edits = "edits=[{\"old\":\"one\",\"new\":\"\u{202e}\u{9b}2J\u{200b}\"}]";
    let showed = at_terminal(home.command(&["call", "edit_file", "path=a.txt", edits]), "n\n");
    assert_eq!(showed.code, 6);
    assert!(showed.text.contains(r"\u202e\u009b2J\u200b"), "{}", showed.text);
    assert!(!showed.text.contains(['\u{202e}', '\u{9b}', '\u{200b}']), "{}", showed.text);
}

#[test]
fn a_result_cannot_draw_on_the_terminal() {
    let home = Home::new();
    home.write("s.jsonl", r#"{"say": "a\u001b[31mb\u202ec\nd\te"}"#);
    let showed = at_terminal(home.command(&["run", "s.jsonl", "-q"]), "");
    assert_eq!(showed.text, "a\\u{1b}[31mb\\u{202e}c\r\nd\te\r\n");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let home = Home::new();
    home.write("s.jsonl", r#"{"calls": [{"tool": "ekho"}]}"#);
    let run = || home.command(&["run", "s.jsonl"]);
    let is_colored = |text: &str| text.contains('\u{1b}');
    let with = |name: &str, value: &str| {
        let mut command = run();
        command.env("TERM", "xterm").env(name, value);
        command
    };
    assert!(is_colored(&at_terminal(with("TERM", "xterm"), "").text));
    assert!(!is_colored(&at_terminal(with("NO_COLOR", "1"), "").text));
    assert!(!is_colored(&at_terminal(with("TERM", "dumb"), "").text));
    assert!(!is_colored(&at_terminal(home.command(&["run", "s.jsonl", "--no-color"]), "").text));
    let piped = |mut command: Command| String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(!is_colored(&piped(with("TERM", "xterm"))));
    assert!(is_colored(&piped(with("CLICOLOR_FORCE", "1"))));
}

#[test]
fn a_dumb_terminal_gets_plain_letters() {
    let home = Home::new().with("TERM", "dumb");
    let ran = home.run(&["call", "echo", "txt=a"]);
    assert_eq!(ran.code, 8);
    assert!(ran.stderr.is_ascii(), "{}", ran.stderr);
}

#[test]
fn several_runs_that_could_be_resumed_are_listed_and_one_is_chosen() {
    let home = Home::of(program("ledger"));
    let ledger = home.here().join("ledger").display().to_string();
    let home = home.with("LEDGER", &ledger);
    for text in ["first", "second"] {
        let call = r#"{"calls": [{"tool": "book", "args": {"entry": 1, "ms": 600000}}]}"#;
        let script = format!("{call}\n{{\"say\": \"{text}\"}}\n");
        home.write(&format!("{text}.jsonl"), &script);
        let args = ["run", &format!("{text}.jsonl"), "--yes", "--jsonl"];
        let mut child = home.command(&args).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().contains("call.started")).unwrap().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let nobody = at_terminal(home.command(&["resume", "--no-color"]), "9\n");
    assert_eq!((nobody.code, nobody.text.contains("run.unchosen")), (2, true), "{}", nobody.text);
    // The older is the second; what it is in doubt about is asked, and is not to be repeated.
    let showed = at_terminal(home.command(&["resume", "--no-color"]), "2\nn\n");
    assert_eq!(showed.code, 0, "{}", showed.text);
    assert!(showed.text.contains("which one? [1]"), "{}", showed.text);
    assert!(showed.text.contains("call #1 was in doubt"), "{}", showed.text);
    assert!(showed.text.contains("\nfirst"), "{}", showed.text);
    let last = at_terminal(home.command(&["resume", "--no-color"]), "n\n");
    assert_eq!((last.code, last.text.contains("which one?")), (0, false), "{}", last.text);
    assert!(!home.here().join("ledger").exists(), "nothing was booked");
}
