//! `tooltape approve`.

use serde::Serialize;
use serde_json::Value;
use tooltape::{
    Answer, AnswerError, CallNo, Clock, Hash, OpenQuestion, RunId, RunStatus, RunSummary,
    RunsQuery, answer_question, open_questions,
};

use super::Context;
use super::resume::check_own;
use crate::escape;
use crate::exit::Exit;
use crate::kept::Kept;
use crate::out::{FAINT, Format, Out, STRONG, paint};
use crate::program::program;
use crate::report::{Problem, Result};
use crate::when;

/// The fewest characters by which a question can be named.
const ID_CHARS_MIN: usize = 4;
/// How many runs are looked through for a question that waits for no answer.
const RUNS_LOOKED_MAX: usize = 1_000;

/// A question as `--json` lists it.
#[derive(Serialize)]
struct Row {
    id: Hash,
    run: RunId,
    call: CallNo,
    tool: String,
    args: Value,
    args_hash: Hash,
    definition: Option<Hash>,
    rule: String,
    policy: Hash,
    /// The attempt of which nobody knows what it did, where the question is whether to repeat it.
    attempt: Option<u32>,
    asked: String,
    until: String,
    /// Whether it is too late to say yes.
    expired: bool,
}

impl Row {
    fn new(open: &OpenQuestion) -> Row {
        let OpenQuestion { run, question, asked_us, facts, .. } = open;
        Row {
            id: question.approval,
            run: *run,
            call: question.call,
            tool: facts.tool().map_or_else(|| facts.name.to_string(), ToString::to_string),
            args: facts.args.as_ref().map_or(Value::Null, |args| args.to_value()),
            args_hash: facts.args_hash,
            definition: facts.definition(),
            rule: question.rule.to_string(),
            policy: question.policy,
            attempt: question.attempt,
            asked: when::rfc3339(*asked_us),
            until: when::rfc3339(question.until_us),
            expired: Clock::system().unix_us() >= question.until_us,
        }
    }
}

/// Lists the questions that wait for an answer.
pub(super) async fn list(context: &Context<'_>) -> Result<Exit> {
    let waiting = match context.location()?.open_to_read()? {
        Some(kept) => waiting(&kept, context.out).await?,
        None => Vec::new(),
    };
    match context.out.format {
        Format::Json => context.out.json(&waiting.iter().map(Row::new).collect::<Vec<_>>())?,
        Format::Text if waiting.is_empty() => context.out.say("nothing waits for an answer"),
        Format::Text => {
            for open in &waiting {
                context.out.table(&card(open))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Answers a question. It is answered once, whoever answers.
pub(super) async fn answer(context: &Context<'_>, id: &str, answer: Answer) -> Result<Exit> {
    let location = context.location()?;
    if location.open_to_read()?.is_none() {
        return Err(unknown(id));
    }
    let kept = location.open(context.out)?;
    let open = find(&kept, context.out, id).await?;
    let (run, approval) = (open.run, open.question.approval);
    let (clock, said) = (Clock::system(), word(&answer));
    let answered = answer_question(&kept.tape, &clock, run, approval, answer).await;
    answered.map_err(|err| refused(&kept, id, &err).run(run))?;
    match context.out.format {
        Format::Json => context.out.json(&Row::new(&open))?,
        Format::Text => {
            let tool = escape::line(&open.facts.name).into_owned();
            let next = format!("{} resume {run}{}", program(), context.tape_flag());
            context.out.say(&format!("{said}: call {} of {tool}", open.question.call));
            context.out.say(&format!("next: {next}"));
        }
    }
    Ok(Exit::Done)
}

fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Once => "allowed, once",
        Answer::Run => "allowed, until the run ends",
        Answer::Deny(_) | Answer::Later => "not allowed",
    }
}

/// The questions of the runs that do not run, the oldest first.
async fn waiting(kept: &Kept, out: Out) -> Result<Vec<OpenQuestion>> {
    let mut waiting = Vec::new();
    for status in [RunStatus::Paused, RunStatus::Crashed] {
        let mut query = RunsQuery::all();
        query.status = Some(status);
        loop {
            let page = kept.tape.runs(&query).map_err(|err| kept.problem(&err))?;
            let Some(last) = page.last() else { break };
            query.before = Some(last.id);
            for run in page.iter().filter(|run| run.parent.is_none() && !run.imported) {
                match open_questions(&kept.tape, run.id).await {
                    Ok(open) => waiting.extend(open),
                    // One run that cannot be read keeps nobody from answering the others.
                    Err(err) => out.warn(&format!("run {} cannot be read: {err}", run.id)),
                }
            }
        }
    }
    waiting.sort_by_key(|open| open.asked_us);
    Ok(waiting)
}

/// The question that is meant.
async fn find(kept: &Kept, out: Out, id: &str) -> Result<OpenQuestion> {
    let is_meant = |hash: &Hash| id.len() >= ID_CHARS_MIN && hash.to_string().starts_with(id);
    let mut found = waiting(kept, out).await?;
    found.retain(|open| is_meant(&open.question.approval));
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(match asked_once(kept, is_meant)? {
            None => unknown(id),
            Some(run) => {
                check_own(&run)?;
                let answered = refused(kept, id, &AnswerError::Answered);
                match run.status {
                    RunStatus::Running => {
                        let message = "the run is running, and asks where it runs";
                        Problem::new(Exit::Failed, "approval.running", message)
                            .hint("answer there, or stop it and answer then")
                    }
                    _ => answered,
                }
                .run(run.id)
            }
        }),
        count => {
            let message = format!("`{}` begins {count} questions", escape::line(id));
            Err(Problem::new(Exit::Failed, "approval.ambiguous", message)
                .hint("write more of it: `tooltape approve ls` lists them"))
        }
    }
}

/// The run that asked a question which waits for no answer any more, among the newest.
fn asked_once(kept: &Kept, is_meant: impl Fn(&Hash) -> bool) -> Result<Option<RunSummary>> {
    let mut query = RunsQuery::all();
    query.limit = Some(RUNS_LOOKED_MAX);
    let runs = kept.tape.runs(&query).map_err(|err| kept.problem(&err))?;
    let asked = |run: RunId| {
        kept.records(run).0.iter().any(|record| match &record.event {
            tooltape::Event::CallAsked(question) => is_meant(&question.approval),
            _ => false,
        })
    };
    Ok(runs.into_iter().find(|run| asked(run.id)))
}

fn card(open: &OpenQuestion) -> String {
    let Row { id, run, call, tool, rule, attempt, asked, until, expired, .. } = Row::new(open);
    let until = if expired { format!("expired {until}") } else { format!("until {until}") };
    let args = open.facts.args.as_ref().map_or("", |args| args.as_str());
    let why = match attempt {
        Some(attempt) => format!("nobody knows what attempt {attempt} did"),
        None => format!("asked for by rule `{}`", escape::line(&rule)),
    };
    format!(
        "{}\n  {} {}\n  {}",
        paint(STRONG, id),
        escape::line(&tool),
        escape::line(args),
        paint(FAINT, format!("{why}; call {call} of run {run}; asked {asked}, {until}")),
    )
}

fn unknown(id: &str) -> Box<Problem> {
    let message = format!("no question has an id that begins with `{}`", escape::line(id));
    Problem::new(Exit::Failed, "approval.unknown", message)
        .hint("`tooltape approve ls` lists the questions that wait")
}

fn refused(kept: &Kept, id: &str, err: &AnswerError) -> Box<Problem> {
    let (code, hint) = match err {
        AnswerError::Tape(err) => return kept.problem(err),
        AnswerError::Unknown { .. } => return unknown(id),
        AnswerError::Answered => {
            ("approval.answered", "`tooltape show RUN` says what became of it")
        }
        AnswerError::Replaced => ("approval.replaced", "`tooltape approve ls` lists the new one"),
        AnswerError::Expired => ("approval.expired", "`tooltape resume RUN` asks again"),
        _ => ("approval.refused", "`tooltape approve ls` lists the questions that wait"),
    };
    Problem::new(Exit::Failed, code, err.to_string()).hint(hint)
}
