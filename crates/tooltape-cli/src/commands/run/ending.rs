//! How a run ended: for programs, for people, and for the exit code.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use tooltape::{AgentError, Answered, Event, Executed, Record, RunId, Usage};

use crate::args::Run as RunArgs;
use crate::exit::Exit;
use crate::interrupt::{Cause, Waited};
use crate::out::{FAINT, Out, STRONG, paint};
use crate::program::{program, quoted};
use crate::report::Problem;
use crate::workspace::Opened;

/// How many commands to try next are shown.
const NEXT_SHOWN: usize = 3;

/// What an agent comes to.
pub(super) type Answer = Result<Answered, AgentError>;

/// How a run ended, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Summary {
    id: RunId,
    status: &'static str,
    stop: String,
    pub(super) answer: Option<Arc<str>>,
    turns: u64,
    calls: u64,
    errors: u64,
    usage: Usage,
    /// Where the tape is. It is in memory, so it is nowhere.
    tape: Option<String>,
    /// Whether a call was denied because nobody could be asked.
    #[serde(skip)]
    unasked: bool,
}

impl Summary {
    /// What the tape says, which is true whatever the agent came to.
    pub(super) fn new(id: RunId, records: &[Record], waited: &Waited<Answer>) -> Summary {
        let mut summary = Summary {
            id,
            status: if waited.cause.is_some() { "cancelled" } else { "failed" },
            stop: "abandoned".to_owned(),
            answer: None,
            turns: 0,
            calls: 0,
            errors: 0,
            usage: waited.done.iter().flatten().next().map(|it| it.usage).unwrap_or_default(),
            tape: None,
            unasked: false,
        };
        for record in records {
            match &record.event {
                Event::Turn(_) => summary.turns += 1,
                Event::Settled(reply) => {
                    summary.calls += 1;
                    summary.errors += u64::from(reply.is_error);
                    summary.unasked |= reply.fault.as_ref().is_some_and(|fault| fault.unasked);
                }
                Event::RunEnded { status, stop, answer } => {
                    summary.status = status;
                    summary.stop.clone_from(stop);
                    summary.answer.clone_from(answer);
                }
                _ => {}
            }
        }
        summary
    }
}

/// Why the run did not end by itself, if it did not.
pub(super) fn problem(
    summary: &Summary,
    records: &[Record],
    waited: &Waited<Answer>,
) -> Option<Box<Problem>> {
    let Summary { id, status, stop, turns, .. } = summary;
    let (exit, code, hint) = match (&waited.done, waited.cause) {
        // An answer that is there already beats a late cancel.
        (Some(Ok(_)), _) if *status == "ended" => return None,
        (_, Some(Cause::Interrupt)) => {
            (Exit::Interrupted, "run.interrupted", "run it again from the start")
        }
        (_, Some(Cause::Timeout)) => {
            (Exit::Timeout, "run.timeout", "give it longer with `--timeout`")
        }
        (Some(Ok(_)), None) if stop == "turns" => {
            (Exit::Failed, "run.turns", "give it more with `--set agent.turns=N`")
        }
        (Some(Ok(_)), None) => (Exit::Failed, "run.unanswered", "ask in another way"),
        (Some(Err(AgentError::Model(_))), None) => {
            let hint = "a script ends with a turn that calls nothing: see docs/script-format.md";
            (Exit::Failed, "model.failed", hint)
        }
        (Some(Err(_)), None) => (Exit::Failed, "run.failed", "the last call says what happened"),
        (None, None) => (Exit::Unexpected, "runtime.bug", "please report it"),
    };
    let why = match (stop.as_str(), waited.cause) {
        ("cancelled", Some(Cause::Interrupt)) => "it was interrupted",
        ("cancelled", _) => "its time was over",
        ("abandoned", _) => "what was running did not stop",
        ("turns", _) => "the model may take no more",
        ("length", _) => "the model ran out of room",
        ("refused", _) => "the model refused",
        (stop, _) => stop.strip_prefix("the run ended: ").unwrap_or(stop),
    };
    let verb = if *status == "cancelled" { "was cancelled" } else { "failed" };
    let message = format!("the run {verb} after {}: {why}", counted(*turns, "turn"));
    Some(Problem::new(exit, code, message).hint(hint).executed(executed(records)).run(*id))
}

/// Whether anything was executed in a run: unknown as soon as it is of one call.
fn executed(records: &[Record]) -> Executed {
    let mut running = BTreeSet::new();
    let mut executed = Executed::NotExecuted;
    for record in records {
        match &record.event {
            Event::Started { call, .. } => {
                running.insert(*call);
            }
            Event::Settled(reply) => {
                running.remove(&reply.call);
                match (reply.executed, executed) {
                    (Executed::Unknown, _) => executed = Executed::Unknown,
                    (Executed::Executed, Executed::NotExecuted) => executed = Executed::Executed,
                    (Executed::Executed | Executed::NotExecuted, _) => {}
                }
            }
            _ => {}
        }
    }
    if running.is_empty() { executed } else { Executed::Unknown }
}

/// Says how it went, and what to try next.
pub(super) fn conclude(out: Out, args: &RunArgs, summary: &Summary, workspace: &Opened) {
    let (turns, calls) = (counted(summary.turns, "turn"), counted(summary.calls, "call"));
    let Summary { errors, stop, .. } = summary;
    let how = format!("ended by {stop}: {turns}, {calls}, {errors} refused or failed");
    out.say(&paint(FAINT, how));
    out.say(&paint(STRONG, "next:"));
    let (program, what) = (program(), quoted(&args.what.display().to_string()));
    let changed = workspace.copied_from.as_ref().map(|from| {
        let from = quoted(&from.display().to_string());
        let to = quoted(&workspace.folder.display().to_string());
        (format!("diff -ru {from} {to}"), "what it changed")
    });
    let again = |more, why| (format!("{program} run {what} {more}"), why);
    let agreed = summary.unasked.then(|| again("--yes", "says yes to what asks"));
    // Stdin is read once.
    let again = (what != "-").then(|| {
        [again("--pace 500ms", "slowly; Ctrl-C stops it"), again("--jsonl", "every event")]
    });
    let always = [
        (format!("{program} tools list"), "the tools it had"),
        (format!("{program} tools lint"), "what they leave undeclared"),
        (format!("{program} config explain"), "what holds here, and why"),
    ];
    let next = changed.into_iter().chain(agreed).chain(again.into_iter().flatten()).chain(always);
    for (command, why) in next.take(NEXT_SHOWN) {
        out.say(&format!("  {command}  {}", paint(FAINT, format!("# {why}"))));
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
