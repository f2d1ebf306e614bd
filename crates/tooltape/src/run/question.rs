//! Questions that wait on a tape, and how somebody answers them there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ask::answered;
use crate::approve::Question;
use crate::canon::Hash;
use crate::grant::Clock;
use crate::id::{CallNo, RunId};
use crate::policy::Answer;
use crate::proposal::Facts;
use crate::tape::{Append, Event, Record, Tape, TapeError, all_records};

/// A question that nobody has answered, with the call that it is about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// The run that asks.
    pub run: RunId,
    /// What is asked.
    pub question: Question,
    /// When it was asked, in microseconds since the Unix epoch.
    pub asked_us: u64,
    /// The call: its tool, and its arguments as they were judged.
    pub facts: Arc<Facts>,
}

/// Why a question was not answered. The tape is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The run asks no such question.
    #[error("run `{run}` asks no question `{approval}`")]
    Unknown {
        /// The run.
        run: RunId,
        /// The question.
        approval: Hash,
    },
    /// Somebody answered before, or the call came to its end without an answer.
    #[error("the question was answered before")]
    Answered,
    /// The run that asked came to its end.
    #[error("the run came to its end, and asks nothing any more")]
    Ended,
    /// It was asked again, because the call, its tool, the policy or the change is another.
    #[error("the question was replaced by another")]
    Replaced,
    /// Its time is over.
    #[error("the question has expired: resume the run, and it is asked again")]
    Expired,
    /// `Later` says nothing.
    #[error("to put it off is no answer")]
    Later,
    /// The tape could not be read or written.
    #[error(transparent)]
    Tape(#[from] TapeError),
}

/// What became of one question.
struct Asked {
    open: OpenQuestion,
    is_answered: bool,
    is_replaced: bool,
    /// Whether the run came to its end meanwhile.
    is_ended: bool,
}

impl Asked {
    /// Whether somebody may still answer it.
    fn is_open(&self) -> bool {
        !self.is_answered && !self.is_replaced && !self.is_ended
    }
}

/// The questions of a run that nobody has answered, in the order in which they were asked.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{
///     Answer, Clock, MemoryTape, Proposal, Rules, Run, RunError, Toolbox, answer_question,
///     open_questions, tool, Empty, ToolError,
/// };
///
/// /// Rings the bell.
/// #[tool]
/// async fn ring(_: Empty) -> Result<String, ToolError> {
///     Ok("it rang".to_owned())
/// }
///
/// let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(tooltape::tools![ring]).unwrap());
/// let set_up = || {
///     let rules = Rules::allow_reads().ask_before_writes();
///     Run::new(&toolbox).policy(rules).tape(tape.clone()).pausing()
/// };
/// let run = set_up();
/// let paused = run.batch(vec![Proposal::new("c1", "ring", "{}")]).await.unwrap_err();
/// assert!(matches!(paused, RunError::Paused { .. }));
///
/// // Perhaps in another process, and on another day.
/// let asked = open_questions(&tape, run.id()).await.unwrap();
/// let (clock, approval) = (Clock::system(), asked[0].question.approval);
/// answer_question(&tape, &clock, run.id(), approval, Answer::Once).await.unwrap();
/// let replies = set_up().resume(run.id()).await.unwrap().settle_open().await.unwrap();
/// assert_eq!(replies[0].text(), "it rang");
/// # });
/// ```
pub async fn open_questions(tape: &dyn Tape, run: RunId) -> Result<Vec<OpenQuestion>, TapeError> {
    let asked = asked(&all_records(tape, run).await?);
    let open = asked.into_iter().filter(Asked::is_open);
    Ok(open.map(|it| it.open).collect())
}

/// Answers a question that waits on a tape. The run goes on where it is
/// [resumed](crate::Run::resume).
///
/// A question is answered once, whoever answers: of two at the same time, one fails. A run that is
/// running asks where it runs: a tape that other processes share, such as `SqliteTape`, refuses to
/// be written by anybody else until the run pauses or its process is gone.
pub async fn answer_question(
    tape: &dyn Tape,
    clock: &Clock,
    run: RunId,
    approval: Hash,
    answer: Answer,
) -> Result<(), AnswerError> {
    let records = all_records(tape, run).await?;
    let asked = asked(&records);
    let asked = asked.into_iter().find(|it| it.open.question.approval == approval);
    let Asked { open, is_answered, is_replaced, is_ended } =
        asked.ok_or(AnswerError::Unknown { run, approval })?;
    let now_us = clock.unix_us();
    if answer == Answer::Later {
        return Err(AnswerError::Later);
    } else if is_answered {
        return Err(AnswerError::Answered);
    } else if is_replaced {
        return Err(AnswerError::Replaced);
    } else if is_ended {
        return Err(AnswerError::Ended);
    } else if now_us >= open.question.until_us && !matches!(answer, Answer::Deny(_)) {
        return Err(AnswerError::Expired);
    }
    let mut events = vec![answered(&open.question, &answer)];
    // Where the tape has grown since it was read, somebody else was faster, or it runs again.
    let ack = tape.append(Append::new(run, records.len() as u64, now_us, &mut events));
    Ok(ack.durable().await?)
}

fn asked(records: &[Record]) -> Vec<Asked> {
    let mut judged: BTreeMap<CallNo, Arc<Facts>> = BTreeMap::new();
    let mut all: Vec<Asked> = Vec::new();
    for Record { run, at_us, event, .. } in records {
        match event {
            Event::Judged { facts, .. } => drop(judged.insert(facts.call, facts.clone())),
            Event::CallAsked(question) => {
                let of_call = all.iter_mut().filter(|it| it.open.question.call == question.call);
                of_call.for_each(|it| it.is_replaced = true);
                let Some(facts) = judged.get(&question.call).cloned() else { continue };
                let question = Question::clone(question);
                let open = OpenQuestion { run: *run, question, asked_us: *at_us, facts };
                let (is_answered, is_replaced, is_ended) = (false, false, false);
                all.push(Asked { open, is_answered, is_replaced, is_ended });
            }
            Event::Answered { approval, .. } => {
                let this = all.iter_mut().filter(|it| it.open.question.approval == *approval);
                this.for_each(|it| it.is_answered = true);
            }
            Event::Settled(reply) => {
                let of_call = all.iter_mut().filter(|it| it.open.question.call == reply.call);
                of_call.for_each(|it| it.is_answered = true);
            }
            Event::RunEnded { .. } => all.iter_mut().for_each(|it| it.is_ended = true),
            Event::RunResumed { .. } => all.iter_mut().for_each(|it| it.is_ended = false),
            _ => {}
        }
    }
    all
}
