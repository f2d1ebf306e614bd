//! Asks the person at the terminal whether a call may run.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tooltape::{Answer, CallNo, Pending, Run};

use crate::escape;
use crate::interrupt::Stop;
use crate::out::{Out, STRONG, paint};

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1_024;
/// The rule by which the runtime asks whether to do again what may have happened.
const RULE_IN_DOUBT: &str = "in doubt";

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

    /// Lets a run ask. Of the calls that may have happened, those in `again` are done again; to
    /// those, nobody said yes in advance by saying yes to everything.
    pub(crate) fn approve(self, run: Run, out: Out, stop: &Stop, again: Vec<CallNo>) -> Run {
        if self == Asked::Nobody && again.is_empty() {
            return run;
        }
        let is_agreed =
            move |pending: &Pending| is_in_doubt(pending) && again.contains(&pending.call().no());
        match self {
            Asked::Nobody => run.approver(move |pending| {
                let answer = match is_agreed(pending) {
                    true => Answer::Once,
                    false => Answer::Deny("nobody could be asked".into()),
                };
                Box::pin(async { answer })
            }),
            Asked::Yes => run.approver(move |pending| {
                let answer = match is_agreed(pending) || !is_in_doubt(pending) {
                    true => Answer::Once,
                    false => Answer::Deny("nobody said that it is to be done again".into()),
                };
                Box::pin(async { answer })
            }),
            Asked::Person => {
                let (stop, turn) = (stop.clone(), Arc::new(Semaphore::new(1)));
                run.approver(move |pending| {
                    let is_agreed = is_agreed(pending);
                    let (stop, turn, question) = (stop.clone(), turn.clone(), question(pending));
                    Box::pin(async move {
                        if is_agreed {
                            return Answer::Once;
                        }
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

fn is_in_doubt(pending: &Pending) -> bool {
    pending.rule() == RULE_IN_DOUBT
}

fn question(pending: &Pending) -> String {
    let call = pending.call();
    let access = format!("{:?}", call.spec().effects.access).to_lowercase();
    let (why, ask) = match is_in_doubt(pending) {
        true => ("nobody knows whether it happened".to_owned(), "do it again?"),
        false => {
            let rule = escape::line(pending.rule());
            (format!("asked for by rule `{rule}`"), "allow it this once?")
        }
    };
    format!(
        "{} {} ({access}), {why}\n  {}\n  {ask} [y/N] ",
        paint(STRONG, "?"),
        paint(STRONG, call.tool()),
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
