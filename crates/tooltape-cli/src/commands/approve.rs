//! `tooltape approve`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tooltape::{
    Answer, AnswerError, Clock, Hash, OpenQuestion, Record, Registered, Run, RunId, RunStatus,
    RunSummary, RunsQuery, answer_question, open_questions,
};

use super::Context;
use super::replay::{layers_of, origin};
use super::resume::{check_own, saved_for};
use crate::args::Yes;
use crate::card::{Card, Columns, Setting};
use crate::escape;
use crate::exit::Exit;
use crate::host::InPlace;
use crate::kept::Kept;
use crate::out::{Format, Out};
use crate::program::program;
use crate::report::{Problem, Result};
use crate::saved::{Asking, Entry, Pattern, Saved};
use crate::when::{self, LIFETIME_DEFAULT};
use crate::workspace::open_folder;

/// The fewest characters by which a question can be named.
const ID_CHARS_MIN: usize = 4;
/// How many runs are looked through for a question that waits for no answer.
const RUNS_LOOKED_MAX: usize = 1_000;

/// What a run's questions are shown with: its tools and its folder, as they are now.
struct Known {
    run: Run,
    tools: BTreeMap<String, Arc<Registered>>,
    setting: Setting,
}

impl Known {
    /// What is known of a run, unless its configuration or its folder is gone.
    fn of(context: &Context<'_>, kept: &Kept, run: RunId) -> Option<Known> {
        let (records, _) = kept.records(root(kept, run));
        let origin = origin(&records);
        origin.config.as_deref().filter(|config| Path::new(config).exists())?;
        let layers = layers_of(context, &records).ok()?;
        let workspace = open_folder(Path::new(origin.workspace.as_deref()?)).ok()?;
        let toolbox = context.host.toolbox(&layers).ok()?;
        let InPlace { run, setting, .. } = context.host.prepare_in(&layers, &workspace).ok()?;
        let tools = toolbox.tools();
        let tools = tools.map(|tool| (tool.id().name().to_string(), tool.clone())).collect();
        Some(Known { run, tools, setting })
    }

    /// The card of a question, with what its tool says now.
    async fn card(&self, open: &OpenQuestion) -> Card {
        let (card, facts) = (Card::of_open(open), &open.facts);
        let Some(tool) = self.tools.get(&*facts.name) else { return card };
        let preview = match &facts.args {
            Some(args) => self.run.preview(&facts.name, args).await,
            None => None,
        };
        let other_change = !open.question.showed(preview.as_ref());
        Card { other_change, ..card.with_tool(tool, &self.setting, preview) }
    }
}

/// The cards of questions, in their order. What is known of a run is found out once.
async fn cards(context: &Context<'_>, kept: &Kept, open: &[OpenQuestion]) -> Vec<Card> {
    let mut runs: BTreeMap<RunId, Option<Known>> = BTreeMap::new();
    let mut cards = Vec::new();
    for open in open {
        let known = runs.entry(open.run).or_insert_with(|| Known::of(context, kept, open.run));
        cards.push(match known {
            Some(known) => known.card(open).await,
            None => Card::of_open(open),
        });
    }
    cards
}

/// Lists the questions that wait for an answer.
pub(super) async fn list(context: &Context<'_>) -> Result<Exit> {
    let cards = match context.location()?.open_to_read()? {
        Some(kept) => cards(context, &kept, &waiting(&kept, context.out).await?).await,
        None => Vec::new(),
    };
    match context.out.format {
        Format::Json => context.out.json(&cards)?,
        Format::Text if cards.is_empty() => context.out.say("nothing waits for an answer"),
        Format::Text => {
            for card in &cards {
                context.out.table(&card.text(Columns::ENDLESS))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Shows one question.
pub(super) async fn show(context: &Context<'_>, id: &str) -> Result<Exit> {
    let Some(kept) = context.location()?.open_to_read()? else { return Err(unknown(id)) };
    let open = find(&kept, context.out, id).await?;
    let card = cards(context, &kept, &[open]).await.remove(0);
    match context.out.format {
        Format::Json => context.out.json(&card)?,
        Format::Text => context.out.table(&card.text(Columns::ENDLESS))?,
    }
    Ok(Exit::Done)
}

/// An answered question as `--json` prints it.
#[derive(Serialize)]
struct Done {
    #[serde(flatten)]
    card: Card,
    /// The answer that was saved besides.
    saved: Option<Entry>,
}

/// Lets a call run, and perhaps all that are like it.
pub(super) async fn allow(context: &Context<'_>, yes: &Yes) -> Result<Exit> {
    let (kept, open) = meant(context, &yes.id).await?;
    let draft = match yes.always {
        true => Some(draft(&kept, &open, yes).map_err(|problem| problem.run(open.run))?),
        false => None,
    };
    let answer = if yes.run { Answer::Run } else { Answer::Once };
    let said = if yes.run { "allowed, until the run ends" } else { "allowed, once" };
    answer_it(&kept, &open, &yes.id, answer).await?;
    let saved = match draft {
        None => None,
        Some((saved, entry)) => {
            // The question is answered by now, whatever becomes of this.
            saved.save(entry.clone()).map_err(|problem| problem.run(open.run))?;
            Some(entry)
        }
    };
    tell(context, (&open, root(&kept, open.run)), said, saved)
}

/// Does not let a call run.
pub(super) async fn deny(context: &Context<'_>, id: &str, answer: Answer) -> Result<Exit> {
    let (kept, open) = meant(context, id).await?;
    answer_it(&kept, &open, id, answer).await?;
    tell(context, (&open, root(&kept, open.run)), "not allowed", None)
}

/// What is to be saved for a question.
fn draft(kept: &Kept, open: &OpenQuestion, yes: &Yes) -> Result<(Saved, Entry)> {
    let unfit = |why: &str| {
        let message = format!("this answer cannot be saved: {why}");
        Problem::new(Exit::Failed, "answers.unfit", message).hint("answer it once")
    };
    let (facts, question) = (&open.facts, &open.question);
    if question.attempt.is_some() {
        return Err(unfit("it is about what may have happened already"));
    }
    if !facts.context().is_trusted() {
        return Err(unfit("the model had read what nobody vouches for"));
    }
    let (Some(tool), Some(definition), Some(args)) =
        (facts.tool(), facts.definition(), facts.args.clone())
    else {
        return Err(unfit("the tape does not say all of the call"));
    };
    let (records, _) = kept.records(root(kept, open.run));
    let origin = origin(&records);
    let Some(folder) = origin.workspace.as_deref() else {
        return Err(unfit("the tape does not say where the run works"));
    };
    let mut workspace = open_folder(Path::new(folder))?;
    workspace.copied_from = origin.copied_from.as_ref().map(Into::into);
    let saved = saved_for(&origin, &workspace)?;
    let asking = Asking { tool: tool.to_string(), definition, args };
    let pattern: Pattern =
        yes.pattern.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect();
    let entry = saved.draft(&asking, &pattern, yes.lifetime.unwrap_or(LIFETIME_DEFAULT))?;
    Ok((saved, entry))
}

/// The question that is meant, on a tape that can be written.
async fn meant(context: &Context<'_>, id: &str) -> Result<(Kept, OpenQuestion)> {
    let location = context.location()?;
    if location.open_to_read()?.is_none() {
        return Err(unknown(id));
    }
    let kept = location.open(context.out)?;
    let open = find(&kept, context.out, id).await?;
    Ok((kept, open))
}

/// Answers a question. It is answered once, whoever answers.
async fn answer_it(kept: &Kept, open: &OpenQuestion, id: &str, answer: Answer) -> Result {
    let (run, approval, clock) = (open.run, open.question.approval, Clock::system());
    let answered = answer_question(&kept.tape, &clock, run, approval, answer).await;
    answered.map_err(|err| refused(kept, id, &err).run(run))
}

fn tell(
    context: &Context<'_>,
    (open, root): (&OpenQuestion, RunId),
    said: &str,
    saved: Option<Entry>,
) -> Result<Exit> {
    match context.out.format {
        Format::Json => context.out.json(&Done { card: Card::of_open(open), saved })?,
        Format::Text => {
            let tool = escape::line(&open.facts.name).into_owned();
            let next = format!("{} resume {}{}", program(), root, context.tape_flag());
            context.out.say(&format!("{said}: call {} of {tool}", open.question.call));
            if let Some(entry) = saved {
                let until = when::rfc3339(entry.expires_us);
                context.out.say(&format!("saved {}, until {until}: {}", entry.name, entry.scope()));
            }
            context.out.say(&format!("next: {next}"));
        }
    }
    Ok(Exit::Done)
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
            for run in page.iter().filter(|run| !run.imported && is_awaited(kept, run)) {
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

/// Whether those who started a run are still there to go on with it.
fn is_awaited(kept: &Kept, run: &RunSummary) -> bool {
    match run.parent {
        None => true,
        Some(parent) => kept.summary(parent).is_ok_and(|parent| {
            let waits = matches!(parent.status, RunStatus::Paused | RunStatus::Crashed);
            waits && is_taken_up(kept, run.id) && is_awaited(kept, &parent)
        }),
    }
}

/// Whether the call that started a run is open, and goes on with it.
fn is_taken_up(kept: &Kept, run: RunId) -> bool {
    let (records, _) = kept.records(run);
    let Some(tooltape::Event::RunStarted { parent: Some(parent), .. }) =
        records.first().map(|record| &record.event)
    else {
        return false;
    };
    let is_end = |record: &Record| match &record.event {
        tooltape::Event::Settled(reply) => reply.call == parent.call,
        _ => false,
    };
    run == parent.run.child(parent.call, 0) && !kept.records(parent.run).0.iter().any(is_end)
}

/// The run that nobody started but a user, which knows where all below it come from.
fn root(kept: &Kept, run: RunId) -> RunId {
    let parent = kept.summary(run).ok().and_then(|run| run.parent);
    parent.map_or(run, |parent| root(kept, parent))
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
        AnswerError::Ended => ("approval.ended", "`tooltape show RUN` says how"),
        AnswerError::Replaced => ("approval.replaced", "`tooltape approve ls` lists the new one"),
        AnswerError::Expired => ("approval.expired", "`tooltape resume RUN` asks again"),
        _ => ("approval.refused", "`tooltape approve ls` lists the questions that wait"),
    };
    Problem::new(Exit::Failed, code, err.to_string()).hint(hint)
}
