//! Asks the person at the terminal whether a call may run.

mod dialog;
mod pages;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tooltape::{Answer, CallNo, Pending, Run, RunId};

use crate::card::{Card, Setting};
use crate::interrupt::Stop;
use crate::out::Out;
use crate::saved::{Asking, Saved};
use crate::when;

use dialog::{Dialog, no};

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

/// What questions are asked with.
pub(crate) struct Desk<'a> {
    pub(crate) out: Out,
    pub(crate) stop: &'a Stop,
    pub(crate) setting: Setting,
    pub(crate) saved: Saved,
    pub(crate) unasked: Unasked,
    /// Of the calls that may have happened, those that are done again, by their runs.
    pub(crate) again: Vec<(RunId, CallNo)>,
}

impl Asked {
    pub(crate) fn new(yes: bool) -> Asked {
        match yes {
            true => Asked::Yes,
            false if io::stdin().is_terminal() && io::stderr().is_terminal() => Asked::Person,
            false => Asked::Nobody,
        }
    }

    /// Lets a run ask. What may have happened is done again only where the user named it; to that,
    /// nobody said yes in advance by saying yes to everything.
    pub(crate) fn approve(self, run: Run, desk: Desk<'_>) -> Run {
        let Desk { out, stop, setting, saved, unasked, again } = desk;
        let (stop, turn) = (stop.clone(), Arc::new(Semaphore::new(1)));
        run.approver(move |pending| {
            let call = pending.call().no();
            let is_named = pending.run().is_some_and(|run| again.contains(&(run, call)));
            let known = match pending.is_in_doubt() {
                true => is_named.then_some(Answer::Once),
                false => saved_answer(pending, &saved, out),
            };
            let answer = match (known, self) {
                (Some(answer), _) => answer,
                (None, Asked::Person) => {
                    let card = Card::of_pending(pending, &setting);
                    let dialog = Dialog::new(out, card, pending, saved.clone());
                    let (stop, turn) = (stop.clone(), turn.clone());
                    return Box::pin(async move {
                        // One question at a time.
                        let _turn = turn.acquire().await;
                        tokio::select! {
                            answer = tokio::task::spawn_blocking(|| dialog.hold()) => {
                                answer.unwrap_or_else(|_| no())
                            }
                            () = stop.requested() => Answer::Deny("the run was stopped".into()),
                        }
                    });
                }
                (None, asked) => unattended(asked, pending, unasked),
            };
            Box::pin(async { answer })
        })
    }
}

/// What becomes of a question that nobody is asked.
fn unattended(asked: Asked, pending: &Pending, unasked: Unasked) -> Answer {
    match (asked, pending.is_in_doubt(), unasked) {
        // Who says yes to everything has not seen these arguments.
        (Asked::Yes, false, _) if !pending.is_exact() => Answer::Once,
        (Asked::Yes, true, _) => Answer::Deny("nobody said that it is to be done again".into()),
        // What may have happened is told as unknown, and the run goes on.
        (Asked::Nobody | Asked::Person, true, _) => Answer::Deny("nobody could be asked".into()),
        (Asked::Yes | Asked::Nobody | Asked::Person, false, Unasked::Waits) => Answer::Later,
        (Asked::Yes | Asked::Nobody | Asked::Person, false, Unasked::Denied) => {
            Answer::Deny("nobody can be asked".into())
        }
    }
}

/// The answer that the user saved for such a call.
fn saved_answer(pending: &Pending, saved: &Saved, out: Out) -> Option<Answer> {
    if pending.is_exact() {
        return None;
    }
    match saved.answering(&Asking::of(pending.call())) {
        Ok(None) => None,
        Ok(Some(entry)) => {
            let until = when::rfc3339(entry.expires_us);
            Some(Answer::Saved(format!("{}, until {until}", entry.name)))
        }
        Err(problem) => {
            out.warn(&format!("no saved answer is used: {}", problem.message));
            None
        }
    }
}
