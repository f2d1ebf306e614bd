//! The pages of the guide do what they say: their files are written, their commands are run.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::home::{Home, Ran, root};

/// A fenced block of a page.
struct Block {
    /// The words behind its fence: a language, and perhaps a file.
    info: Vec<String>,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), is_open) {
            (Some(info), false) => {
                let info = info.split(' ').map(str::to_owned).collect();
                blocks.push(Block { info, text: String::new() });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

/// Whether a text is as a page shows it, where `…` stands for anything.
fn is_like(shown: &str, text: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let found = match at + 1 == parts.len() {
            true => rest.ends_with(part).then(|| rest.len() - part.len()),
            false => rest.find(part),
        };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.is_empty()
}

/// The commands of a block, each with what it prints.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => {
                printed.push_str(line);
                printed.push('\n');
            }
            (None, None) => panic!("`{line}` stands before any command"),
        }
    }
    commands
}

/// Does what a page says, from its top to its end, and returns how many commands that took.
fn follow(name: &str) -> usize {
    let page = fs::read_to_string(root().join("docs/guide").join(name)).unwrap();
    let home = Home::new();
    let programs = home.here().join("../bin");
    fs::create_dir(&programs).unwrap();
    symlink(env!("CARGO_BIN_EXE_tooltape"), programs.join("tooltape")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let (mut code, mut count) = (0, 0);
    for Block { info, text } in blocks(&page) {
        match info.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [_, file] => drop(home.write(file, &text)),
            ["console"] => {
                for (command, shown) in commands(&text) {
                    let mut shell = Command::new("sh");
                    let script = format!("(exit {code}); {command} 2>&1");
                    let inherited = home.command(&[]);
                    let variables = inherited.get_envs().filter_map(|(name, it)| Some((name, it?)));
                    shell.args(["-c", &script]).env_clear().envs(variables).env("PATH", &path);
                    let output = shell.current_dir(home.here()).output().unwrap();
                    let Ran { code: ended, stdout, .. } = home.ran(output);
                    let like = is_like(&shown, &stdout);
                    assert!(like, "{name}: `{command}` shows\n{shown}\nand printed\n{stdout}");
                    (code, count) = (ended, count + 1);
                }
            }
            _ => {}
        }
    }
    count
}

#[test]
fn the_guide_to_writing_a_tool_does_what_it_says() {
    assert_eq!(follow("writing-a-tool.md"), 3);
}

#[test]
fn the_guide_to_testing_from_a_tape_does_what_it_says() {
    assert_eq!(follow("testing-from-a-tape.md"), 10);
}

#[test]
fn the_guide_to_approvals_and_policy_does_what_it_says() {
    assert_eq!(follow("approvals-and-policy.md"), 16);
}

#[test]
fn a_page_that_shows_something_else_is_found_out() {
    let cases = [
        ("a\nb\n", "a\nb\n", true),
        ("a\nb\n", "a\nc\n", false),
        ("a\n…\n", "a\nb\nc\n", true),
        ("…b…\n", "abc\n", true),
        ("…b…\n", "ac\n", false),
        ("a\n", "a\nb\n", false),
        ("a…\n", "b\n", false),
    ];
    for (shown, printed, expected) in cases {
        assert_eq!(is_like(shown, printed), expected, "{shown:?} {printed:?}");
    }
}
