//! Asks the person at the terminal whether a call may run.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tooltape::{Answer, Pending, Run};

use crate::escape;
use crate::interrupt::Stop;
use crate::out::{Out, STRONG, paint};

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1_024;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nobody has to be asked: the user said yes in advance.
    Yes,
    /// The person at the terminal.
    Person,
    /// There is nobody.
    Nobody,
}

impl Asked {
    pub(crate) fn new(yes: bool) -> Asked {
        match yes {
            true => Asked::Yes,
            false if io::stdin().is_terminal() && io::stderr().is_terminal() => Asked::Person,
            false => Asked::Nobody,
        }
    }

    /// Lets a run ask.
    pub(crate) fn approve(self, run: Run, out: Out, stop: &Stop) -> Run {
        match self {
            Asked::Nobody => run,
            Asked::Yes => run.approver(|_| Box::pin(async { Answer::Once })),
            Asked::Person => {
                let (stop, turn) = (stop.clone(), Arc::new(Semaphore::new(1)));
                run.approver(move |pending| {
                    let (stop, turn, question) = (stop.clone(), turn.clone(), question(pending));
                    Box::pin(async move {
                        // One question at a time.
                        let _turn = turn.acquire().await;
                        out.prompt(&question);
                        tokio::select! {
                            answer = tokio::task::spawn_blocking(answer) => {
                                answer.unwrap_or_else(|_| no())
                            }
                            () = stop.requested() => Answer::Deny("the run was stopped".into()),
                        }
                    })
                })
            }
        }
    }
}

fn question(pending: &Pending) -> String {
    let call = pending.call();
    let access = format!("{:?}", call.spec().effects.access).to_lowercase();
    format!(
        "{} {} ({access}), asked for by rule `{}`\n  {}\n  allow it this once? [y/N] ",
        paint(STRONG, "?"),
        paint(STRONG, call.tool()),
        escape::line(pending.rule()),
        escape::line(call.args().as_str()),
    )
}

fn answer() -> Answer {
    let mut line = String::new();
    let read = io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut line);
    match read {
        Ok(_) if ["y", "yes"].contains(&line.trim().to_lowercase().as_str()) => Answer::Once,
        Ok(_) | Err(_) => no(),
    }
}

fn no() -> Answer {
    Answer::Deny("the user said no".into())
}
