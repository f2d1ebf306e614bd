//! Text that would draw on a terminal, hide or change its order, in every command that shows it.

use std::process::Command;

use serde_json::{Value, json};

use crate::home::Home;
use crate::own_tools::program;
use crate::terminal::{Showed, at_terminal};

/// What others may write, and what it would do.
const DISGUISES: [(&str, &str); 27] = [
    ("colour", "\u{1b}[31m"),
    ("clear the screen", "\u{1b}[2J\u{1b}[H"),
    ("cursor up", "\u{1b}[9A"),
    ("reset", "\u{1b}c"),
    ("a link (OSC 8)", "\u{1b}]8;;http://x\u{1b}\\"),
    ("the clipboard (OSC 52)", "\u{1b}]52;c;aGk=\u{7}"),
    ("the title (OSC 0)", "\u{1b}]0;t\u{7}"),
    ("bracketed paste", "\u{1b}[200~"),
    ("the end of a paste", "\u{1b}[201~"),
    ("device control", "\u{1b}P$q\u{1b}\\"),
    ("C1 control sequence", "\u{9b}2J"),
    ("C1 operating system command", "\u{9d}0;t\u{9c}"),
    ("C1 device control", "\u{90}q\u{9c}"),
    ("bell, backspace, delete", "\u{7}\u{8}\u{7f}"),
    ("other alphabet", "\u{e}\u{f}"),
    ("vertical tab, form feed", "\u{b}\u{c}"),
    ("carriage return", "safe\rrm"),
    ("right to left", "\u{202e}txt"),
    ("isolates", "\u{2066}a\u{2069}"),
    ("direction marks", "\u{200e}\u{200f}\u{61c}"),
    ("no room", "\u{200b}\u{200c}\u{200d}"),
    ("byte order mark, soft hyphen", "\u{feff}\u{ad}"),
    ("fillers", "\u{3164}\u{115f}\u{2800}"),
    ("tags", "\u{e0041}\u{e007f}"),
    ("variants", "\u{fe00}\u{fe01}\u{e0100}"),
    ("line separators", "\u{2028}\u{2029}\u{85}"),
    ("marks upon marks", "a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}"),
];

/// Whether a screen shows something that it obeyed. A terminal itself ends its lines with `\r\n`.
fn obeys(screen: &str) -> bool {
    let screen = screen.replace("\r\n", "\n");
    let is_bad = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{2800}' | '\u{3164}' | '\u{feff}')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2066}'..='\u{2069}' | '\u{fe00}'..='\u{fe0e}')
            || matches!(c, '\u{e0000}'..='\u{e0fff}' | '\u{305}')
    };
    screen.contains(is_bad)
}

#[test]
fn the_check_sees_every_disguise() {
    assert!(!obeys("plain, ünd 💚️ ✓ · … ─\r\n\ttext\r\n"));
    for (what, text) in DISGUISES {
        assert!(obeys(text), "{what}");
    }
}

/// What a person sees, without colours of ours.
fn shown(home: &Home, args: &[&str], keys: &str) -> Showed {
    let mut command: Command = home.command(args);
    command.env("NO_COLOR", "1").env("TERM", "xterm");
    at_terminal(command, keys)
}

/// Writes a text into every place that a model, a rule, a file and its name have.
fn plant(home: &Home, text: &str, name: &str) {
    let call = |tool: &str, args: Value| json!({ "tool": tool, "args": args });
    let turn = json!({ "say": text, "calls": [
        call("echo", json!({ "text": text })),
        call(&format!("t{text}"), json!({})),
        call("list_dir", json!({})),
        call("read_file", json!({ "path": name })),
        call("read_file", json!({ "path": "a.txt" })),
        call("read_file", json!({ "path": text })),
        call("edit_file", edit(text)),
    ]});
    let script = format!("{}\n{turn}\n{}\n", json!({ "ask": text }), json!({ "say": text }));
    let message = json!(text).to_string().replace('\u{7f}', "x");
    let rule =
        format!("[[policy.rules]]\ntool = \"hash\"\nverdict = \"deny\"\nmessage = {message}\n");
    home.write("s.jsonl", &script).write("a.txt", &format!("one{text}\n")).write(name, text);
    home.write("tooltape.toml", &rule);
}

fn edit(text: &str) -> Value {
    json!({ "path": "a.txt", "edits": [{ "old": "one", "new": text }] })
}

/// What every command shows of it.
fn screens(home: &Home, text: &str, name: &str) -> Vec<(String, String)> {
    let (echo, unknown, edit) =
        (format!("text={text}"), format!("t{text}"), edit(text).to_string());
    let (broken, ask) = (format!("{{{text}"), format!("agent.ask={text}"));
    let (key, flag, no_run) = (format!("x{text}=1"), format!("--no{text}"), format!("no{name}"));
    let mut screens = Vec::new();
    let mut show = |args: &[&str], keys: &str| {
        screens.push((args.join(" "), shown(home, args, keys).text));
    };
    show(&["run", "s.jsonl"], "n\n");
    show(&["call", "edit_file", "--args-json", &edit], "n\n");
    for args in [
        &["call", "echo", &echo][..],
        &["run", "s.jsonl", "-v", "--yes"],
        &["run", "s.jsonl", "--json", "--yes"],
        &["call", "hash", &echo],
        &["call", "hash", &echo, "--json"],
        &["call", &unknown],
        &["call", "edit_file", "--args-json", &broken],
        &["call", "edit_file", "--args-json", &edit, "--dry-run"],
        &["policy", "explain", "hash", &echo],
        &["config", "explain", "--set", &ask],
        &["config", "explain", "--set", &key],
        &[&flag],
        &["run", &no_run],
        &["runs"],
        &["tools", "show", &unknown],
    ] {
        show(args, "");
    }
    let runs: Value = serde_json::from_str(&home.run_raw(&["runs", "--json"])).unwrap();
    let ids: Vec<&str> =
        runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    let (first, second) = (ids[ids.len() - 1], ids[ids.len() - 2]);
    // A run that waits for an answer, with nobody there.
    home.command(&["run", "s.jsonl"]).output().unwrap();
    for args in [
        &["show", first][..],
        &["show", first, "-v"],
        &["show", first, "--timeline"],
        &["show", first, "--log"],
        &["show", first, "--full"],
        &["show", ids[0]],
        &["tail", first],
        &["diff", first, second],
        &["replay", first],
        &["verify", first],
        &["export", first],
        &["show", name],
        &["approve", "ls"],
        &["resume"],
        &["approve", "no", name],
    ] {
        show(args, "n\n");
    }
    screens
}

fn check(disguises: &[(&str, &str)]) {
    let text: String = disguises.iter().map(|(_, text)| format!("<{text}>")).collect();
    let name: String = text.chars().filter(|c| !matches!(c, '/' | '\0')).collect();
    let home = Home::new();
    plant(&home, &text, &name);
    let screens = screens(&home, &text, &name);
    assert!(screens.len() >= 30);
    for (args, screen) in &screens {
        let what: Vec<&str> = disguises.iter().map(|(what, _)| *what).collect();
        assert!(!obeys(screen), "{what:?} in `{args:?}`: {screen:?}");
    }
    // The characters are there, spelled out.
    let (_, screen) = &screens[2];
    assert!(screen.contains("\\u") || screen.contains("\\r"), "{screen}");
    let piped = home.run_raw(&["call", "echo", &format!("text={text}"), "--json"]);
    assert!(!obeys(&piped), "JSON escapes them, too");
    let reply: Value = serde_json::from_str(&piped).unwrap();
    assert!(reply.to_string().contains(&json!(text).to_string()), "{reply}");
}

#[test]
fn control_sequences_are_spelled_out_by_every_command() {
    check(&DISGUISES[..4]);
    check(&DISGUISES[4..7]);
    check(&DISGUISES[7..10]);
}

#[test]
fn controls_of_one_character_are_spelled_out_by_every_command() {
    check(&DISGUISES[10..13]);
    check(&DISGUISES[13..17]);
}

#[test]
fn what_is_hidden_or_reordered_is_spelled_out_by_every_command() {
    check(&DISGUISES[17..21]);
    check(&DISGUISES[21..24]);
    check(&DISGUISES[24..]);
}

#[test]
fn a_tool_of_a_program_cannot_draw_either() {
    let home = Home::of(program("own_tools")).with("SHELF", "Emma,\u{1b}]0;t\u{7}\u{9b}2J");
    for args in [
        &["call", "lend", "title=\u{1b}]0;t\u{7}\u{9b}2J", "--yes"][..],
        &["call", "mumble", "words=\u{202e}\u{e0041}"],
        &["call", "divide", "a=1", "b=0"],
        &["tools", "list"],
    ] {
        let showed = shown(&home, args, "");
        assert!(!obeys(&showed.text), "{args:?}: {:?}", showed.text);
    }
}
