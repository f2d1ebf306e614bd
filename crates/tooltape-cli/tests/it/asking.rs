//! Questions of an agent to whoever sits at the terminal.

use crate::home::Home;
use crate::terminal::Terminal;

const ASK: [&str; 4] = [
    "call",
    "ask_user",
    "--no-tape",
    r#"--args-json={"question":"Which \u001b[2J colour?","choices":["red","blue"]}"#,
];

#[test]
fn a_question_is_answered_at_the_terminal() {
    let home = Home::new();
    for (typed, answer) in [("2\n", "blue"), ("green\n", "green"), ("9\n", "9")] {
        let mut terminal = Terminal::start(home.command(&ASK));
        terminal.shows("2) blue");
        terminal.shows("> ");
        assert!(!terminal.text().contains("\u{1b}[2J"), "a question does not clear the screen");
        terminal.types(typed);
        let showed = terminal.end();
        assert_eq!(showed.code, 0, "{}", showed.text);
        assert!(showed.text.contains(&format!(r#"{{"answer":"{answer}"}}"#)), "{}", showed.text);
    }
}

#[test]
fn an_empty_line_is_no_answer_and_without_a_terminal_there_is_nobody() {
    let home = Home::new();
    let mut terminal = Terminal::start(home.command(&ASK));
    terminal.shows("> ");
    terminal.types("\n");
    assert!(terminal.end().text.contains("nobody is there to be asked"));
    let ran = home.run(&ASK);
    assert!(ran.stderr.contains("nobody is there to be asked"), "{}", ran.stderr);
}
