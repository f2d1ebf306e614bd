//! Questions of an agent to the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use tooltape_kit::limits::ANSWER_BYTES_MAX;
use tooltape_kit::{AskUser, Question};

use crate::escape;

/// The person at the terminal, or nobody where there is none.
pub(crate) fn person() -> AskUser {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return AskUser::nobody();
    }
    AskUser::by(|question| {
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || ask(&question).ok().flatten());
            asked.await.ok().flatten()
        })
    })
}

/// Shows a question and reads one line. An empty line, or the end of the input, is no answer.
fn ask(question: &Question) -> io::Result<Option<String>> {
    let mut shown = format!("\n? {}\n", escape::text(&question.text));
    for (at, choice) in question.choices.iter().enumerate() {
        shown += &format!("  {}) {}\n", at + 1, escape::line(choice));
    }
    io::stderr().lock().write_all(format!("{shown}> ").as_bytes())?;
    let mut line = String::new();
    io::stdin().lock().take(ANSWER_BYTES_MAX as u64).read_line(&mut line)?;
    let answer = line.trim();
    // A number stands for the choice that has it.
    let chosen = answer.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
    let chosen = chosen.and_then(|at| question.choices.get(at));
    let answer = chosen.map_or(answer, |choice| choice.as_str());
    Ok((!answer.is_empty()).then(|| answer.to_owned()))
}
