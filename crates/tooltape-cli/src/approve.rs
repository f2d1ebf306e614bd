//! Asks the person at the terminal whether a call may run.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tooltape::{Answer, CallNo, Pending, Run};

use crate::escape;
use crate::interrupt::Stop;
use crate::out::{FAINT, Out, STRONG, paint};

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1_024;
/// The rule by which the runtime asks whether to do again what may have happened.
const RULE_IN_DOUBT: &str = "in doubt";

/// What becomes of a question where there is nobody to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// The answer is no.
    Denied,
    /// It waits on the tape.
    Waits,
}

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
    pub(crate) fn approve(
        self,
        run: Run,
        (out, stop): (Out, &Stop),
        (unasked, again): (Unasked, Vec<CallNo>),
    ) -> Run {
        if (self, unasked) == (Asked::Nobody, Unasked::Denied) {
            return run;
        }
        let is_agreed =
            move |pending: &Pending| is_in_doubt(pending) && again.contains(&pending.call().no());
        match self {
            Asked::Nobody => run.approver(move |pending| {
                let answer = match (is_agreed(pending), is_in_doubt(pending)) {
                    (true, _) => Answer::Once,
                    // What may have happened is told as unknown, and the run goes on.
                    (false, true) => Answer::Deny("nobody could be asked".into()),
                    (false, false) => Answer::Later,
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
                    let (is_agreed, is_in_doubt) = (is_agreed(pending), is_in_doubt(pending));
                    let (stop, turn, question) = (stop.clone(), turn.clone(), question(pending));
                    Box::pin(async move {
                        if is_agreed {
                            return Answer::Once;
                        }
                        // One question at a time.
                        let _turn = turn.acquire().await;
                        out.prompt(&question);
                        tokio::select! {
                            answer = tokio::task::spawn_blocking(move || answer(is_in_doubt)) => {
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
            let ask = "allow it? y: this once, r: and whatever this rule asks about it in this \
                       run; or no, and why, for the model to read";
            (format!("asked for by rule `{rule}`"), ask)
        }
    };
    // All of it: what is not shown cannot be approved.
    format!(
        "{} {} ({access}), {why}\n  {}\n  {}\n  {ask} [y/N] ",
        paint(STRONG, "?"),
        paint(STRONG, call.tool()),
        escape::line(call.args().as_str()),
        paint(FAINT, format!("arguments {}", call.args_hash())),
    )
}

fn answer(is_in_doubt: bool) -> Answer {
    let mut line = String::new();
    let mut stdin = io::stdin().lock();
    let read = stdin.by_ref().take(ANSWER_BYTES_MAX).read_line(&mut line);
    if line.len() as u64 == ANSWER_BYTES_MAX && !line.ends_with('\n') {
        // What is left of a long answer is no answer to the next question.
        let _rest = stdin.skip_until(b'\n');
        return no();
    }
    match (read, line.trim()) {
        (Err(_), _) | (_, "" | "n" | "N" | "no") => no(),
        (Ok(_), "y" | "Y" | "yes") => Answer::Once,
        (Ok(_), "r" | "R" | "run") if !is_in_doubt => Answer::Run,
        (Ok(_), why) => Answer::Deny(format!("the user said no: {why}")),
    }
}

fn no() -> Answer {
    Answer::Deny("the user said no".into())
}
