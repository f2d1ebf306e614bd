//! How a run ended: for programs, for people, and for the exit code.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tooltape::{
    AgentError, Answered, CallNo, Executed, InDoubt, ModelError, RunError, RunId, Usage,
};

use crate::exit::Exit;
use crate::interrupt::{Cause, Waited};
use crate::kept::Kept;
use crate::out::{FAINT, Out, STRONG, paint};
use crate::program::{program, quoted};
use crate::report::Problem;
use crate::tally::{End, Tally};
use crate::workspace::Opened;

/// How many commands to try next are shown.
const NEXT_SHOWN: usize = 4;

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
    /// Where the tape is.
    tape: String,
    /// The calls of which nobody knew what became when the run was resumed.
    in_doubt: Vec<CallNo>,
    /// Those of nested runs.
    nested_in_doubt: Vec<InDoubt>,
    /// Whether a call was denied because nobody could be asked.
    #[serde(skip)]
    unasked: bool,
    #[serde(skip)]
    executed: Executed,
}

impl Summary {
    /// What the tape says, which is true whatever the agent came to.
    pub(super) fn new(
        id: RunId,
        tape: &Path,
        tally: Tally,
        nested_in_doubt: Vec<InDoubt>,
        cause: Option<Cause>,
    ) -> Summary {
        let executed = tally.executed();
        let Tally { turns, calls, errors, usage, unasked, in_doubt, end, .. } = tally;
        let status = if cause.is_some() { "cancelled" } else { "failed" };
        let end = end.unwrap_or_else(|| End { status, stop: "abandoned".into(), answer: None });
        let tape = tape.display().to_string();
        let End { status, stop, answer } = end;
        Summary {
            id,
            status,
            stop,
            answer,
            turns,
            calls,
            errors,
            usage,
            tape,
            in_doubt,
            nested_in_doubt,
            unasked,
            executed,
        }
    }
}

/// Why the run did not end by itself, if it did not.
pub(super) fn problem(
    kept: &Kept,
    summary: &Summary,
    waited: &Waited<Answer>,
    tape: &str,
) -> Option<Box<Problem>> {
    if let Some(Err(AgentError::Run(RunError::Tape(err)))) = &waited.done {
        return Some(kept.problem(err).executed(summary.executed).run(summary.id));
    }
    let Summary { id, status, stop, turns, .. } = summary;
    let (exit, code, hint) = match (&waited.done, waited.cause) {
        // An answer that is there already beats a late cancel.
        (Some(Ok(_)), _) if *status == "ended" => return None,
        (Some(Ok(_)), _) if *status == "paused" => {
            let message = format!("the run is paused: {stop}");
            let problem = Problem::new(Exit::Unasked, "approval.needed", message);
            let problem = problem.hint(approve_hint(tape));
            return Some(problem.executed(summary.executed).run(*id));
        }
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
        (Some(Err(AgentError::Model(err))), None) => unasked(err),
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
        ("cut", _) => "the model was cut off, each time that it was asked",
        ("tokens", _) => "the model may read and write no more",
        ("repairs", _) => "what the model said had to be mended too often",
        ("stalled", _) => "the model got nowhere, though it was told",
        (stop, _) => stop.strip_prefix("the run ended: ").unwrap_or(stop),
    };
    let verb = match *status {
        "cancelled" => "was cancelled",
        "paused" => "is paused",
        _ => "failed",
    };
    let message = format!("the run {verb} after {}: {why}", counted(*turns, "turn"));
    Some(Problem::new(exit, code, message).hint(hint).executed(summary.executed).run(*id))
}

/// What to do about a model that took no turn.
fn unasked(err: &ModelError) -> (Exit, &'static str, &'static str) {
    match err {
        ModelError::Unauthorised(_) => {
            (Exit::Unauthorised, "model.unauthorised", "look at the key in the environment")
        }
        ModelError::Unreachable(_) => {
            let hint = "nothing of the turn was executed: `tooltape resume` asks again";
            (Exit::Unreachable, "model.unreachable", hint)
        }
        ModelError::Busy { .. } => {
            let hint = "nothing of the turn was executed: `tooltape resume` asks again later";
            (Exit::Unreachable, "model.busy", hint)
        }
        ModelError::Rejected { .. } => {
            let hint = "look at the name of the model; `tooltape tools lint` looks at the tools";
            (Exit::Failed, "model.rejected", hint)
        }
        ModelError::Garbled(_) => {
            let hint = "is that the address of such an API? see `--model`";
            (Exit::Failed, "model.garbled", hint)
        }
        _ => {
            let hint = "a script ends with a turn that calls nothing: see docs/script-format.md";
            (Exit::Failed, "model.failed", hint)
        }
    }
}

/// How a run that is paused goes on; `tape` is the flag that finds its tape.
pub(crate) fn approve_hint(tape: &str) -> String {
    let program = program();
    format!(
        "`{program} approve ls{tape}` lists what it asks; answer with `{program} approve yes \
         ID{tape}` or `{program} approve no ID{tape}`, then `{program} resume{tape}`"
    )
}

/// Says how it went, and what to try next; `again` is the command that says yes to what asks.
pub(super) fn conclude(
    out: Out,
    summary: &Summary,
    workspace: &Opened,
    again: Option<&str>,
    tape: &str,
) {
    let (turns, calls) = (counted(summary.turns, "turn"), counted(summary.calls, "call"));
    let Summary { errors, stop, .. } = summary;
    let how = format!("ended by {stop}: {turns}, {calls}, {errors} refused or failed");
    out.say(&paint(FAINT, how));
    out.say(&paint(STRONG, "next:"));
    let program = program();
    let again = again.filter(|_| summary.unasked);
    let again = again.map(|again| (format!("{program} {again}{tape}"), "says yes to what asks"));
    let changed = workspace.copied_from.as_ref().map(|from| {
        let from = quoted(&from.display().to_string());
        let to = quoted(&workspace.folder.display().to_string());
        (format!("diff -ru {from} {to}"), "what it changed")
    });
    let about = |command: &str, why| (format!("{program} {command} last{tape}"), why);
    let always = [
        about("show", "what happened"),
        about("replay", "the same again, without effects"),
        about("verify", "that nobody altered it"),
    ];
    let next = again.into_iter().chain(changed).chain(always);
    for (command, why) in next.take(NEXT_SHOWN) {
        out.say(&format!("  {command}  {}", paint(FAINT, format!("# {why}"))));
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
