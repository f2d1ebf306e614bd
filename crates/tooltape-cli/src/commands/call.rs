//! `tooltape call`.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tooltape::limits::ARGUMENT_BYTES_MAX;
use tooltape::rule::Said;
use tooltape::{
    Bound, Call, Executed, FaultKind, MemoryTape, Need, Policy as _, Proposal, Registered, Reply,
    Rules, Run, RunError, RunId, RunLimits, Toolbox, Verdict,
};

use super::Context;
use crate::approve::{Asked, Desk, Unasked};
use crate::args::{Call as CallArgs, What};
use crate::arguments::{CALL_ID, propose};
use crate::config::Layers;
use crate::escape;
use crate::exit::Exit;
use crate::host::{Prepared, check_grants};
use crate::interrupt::{Cause, Stop, over};
use crate::narrate::{Narrated, Telling};
use crate::out::Format;
use crate::refusal::problem;
use crate::report::{Problem, Result};
use crate::saved::{Asking, Entry};
use crate::workspace::Copying;

/// How long after its time a call that did not notice is cancelled from outside.
const NOTICE_GRACE: Duration = Duration::from_secs(1);

/// What was found out about a proposal without executing it.
pub(super) struct Looked {
    /// The reply of a proposal that is refused whatever the policy says.
    pub(super) reply: Reply,
    /// What the policy says about one that is not.
    pub(super) judged: Option<Judged>,
}

#[derive(Clone)]
pub(super) struct Judged {
    verdict: Verdict,
    pub(super) shown: Value,
    /// What everything says that matches the call.
    pub(super) said: Vec<Said>,
    /// The answer that the user saved for such a call, where it asks.
    pub(super) saved: Option<Entry>,
}

/// Makes one call through the whole path and prints its reply.
pub(super) async fn call(context: &Context<'_>, args: &CallArgs) -> Result<Exit> {
    let project = Path::new(".");
    let layers = context.layers(project)?;
    let toolbox = context.host.toolbox(&layers)?;
    let proposal = proposal(&args.what, &toolbox)?;
    let asked = Asked::new(args.yes);
    let Looked { reply, judged } = look(context, &layers, project, &proposal).await?;
    if args.dry_run {
        return match judged {
            Some(Judged { shown, .. }) => show(context, &shown),
            None => finish(context, &toolbox, &proposal, None, &reply, None),
        };
    }
    // Nothing is copied for a call that will not run.
    let is_saved = judged.as_ref().is_some_and(|judged| judged.saved.is_some());
    let is_asked = asked != Asked::Nobody || is_saved;
    let will_run = match judged.map(|judged| judged.verdict) {
        Some(Verdict::Allow { .. }) => true,
        Some(Verdict::Ask { .. }) => is_asked,
        Some(Verdict::Deny { .. }) | None => false,
    };
    let tool = toolbox.get(&args.what.name);
    let looks =
        |tool: &Arc<Registered>| tool.spec().needs.contains(&Need::of::<tooltape_kit::Workspace>());
    let copying =
        if will_run && tool.is_some_and(looks) { Copying::Fresh } else { Copying::Unneeded };
    let prepared = context.host.prepare(&layers, project, copying)?;
    let Prepared { id, run, policy, setting, saved, .. } = prepared;
    let stop = Stop::listen().await;
    let (run, time) = limited(run, tool, args.timeout);
    let (tape, run) = match args.no_tape {
        true => (Narrated::new(MemoryTape::default(), id, context.out, Telling::Successes), run),
        false => {
            let kept = context.location()?.open(context.out)?;
            let run = run.grant(kept.artifacts()?);
            (Narrated::new(kept.tape, id, context.out, Telling::Successes), run)
        }
    };
    let run = run.policy(policy).tape(tape.clone());
    let (out, unasked, again) = (context.out, Unasked::Denied, Vec::new());
    let desk = Desk { out, stop: &stop, setting, saved, unasked, again };
    let run = Arc::new(if is_asked { asked.approve(run, desk) } else { run });
    let work = tokio::spawn({
        let (run, proposal) = (run.clone(), proposal.clone());
        async move { run.batch(vec![proposal]).await }
    });
    let time_is_over = async {
        // While a person is being asked, the clock stands still.
        tape.started().await;
        over(time).await;
    };
    let waited = stop.wait(work, time_is_over, || run.cancel()).await;
    match waited.done {
        None => Err(abandoned(id, waited.cause)),
        Some(replies) => {
            let reply = only(replies, id)?;
            // What is said of the call is true, whether or not its tape says that it is over.
            let _ended = tape.end(status(&reply), "call").await;
            finish(context, &toolbox, &proposal, Some(id), &reply, waited.cause)
        }
    }
}

pub(super) fn proposal(args: &What, toolbox: &Toolbox) -> Result<Proposal> {
    let bytes = match &args.args_json {
        None => {
            let schema = toolbox.get(&args.name).map(|tool| &tool.spec().input);
            return Ok(propose(&args.name, &args.pairs, schema));
        }
        Some(text) if text == "-" => {
            let mut bytes = Vec::new();
            // One byte more than is ever accepted, so that too much is refused as such.
            let most = ARGUMENT_BYTES_MAX as u64 + 1;
            let read = io::stdin().lock().take(most).read_to_end(&mut bytes);
            read.map_err(|err| {
                let message = format!("stdin cannot be read: {err}");
                Problem::new(Exit::Failed, "stdin.unreadable", message)
            })?;
            bytes
        }
        Some(text) => text.as_encoded_bytes().to_owned(),
    };
    let name = args.name.as_str();
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Proposal::new(CALL_ID, name, text),
        Err(err) => {
            let raw = String::from_utf8_lossy(err.as_bytes()).into_owned();
            Proposal::unparsed(CALL_ID, name, raw, err.utf8_error().to_string())
        }
    })
}

/// Resolves and judges a proposal, and executes nothing.
pub(super) async fn look(
    context: &Context<'_>,
    layers: &Layers,
    project: &Path,
    proposal: &Proposal,
) -> Result<Looked> {
    let prepared = context.host.sketch(layers, project)?;
    let Prepared { id, run, policy, saved, .. } = prepared;
    saved.entries()?;
    let strict = layers.policy_strict().is_some_and(|found| found.value);
    let seen = Arc::new(Mutex::new(None));
    let run = run.policy({
        let seen = seen.clone();
        move |call: &Call| {
            let (verdict, said) = explained(&policy, strict, call);
            let saved = match verdict {
                // Who reads the file again, reads it as it is then.
                Verdict::Ask { exact: false, .. } => {
                    saved.answering(&Asking::of(call)).ok().flatten()
                }
                Verdict::Ask { .. } | Verdict::Allow { .. } | Verdict::Deny { .. } => None,
            };
            let shown = shown(call, &verdict, saved.as_ref());
            let judged = Judged { shown, said, saved, verdict };
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(judged);
            Verdict::deny("dry run", "this is a dry run")
        }
    });
    check_grants(&run)?;
    let reply = only(run.batch(vec![proposal.clone()]).await, id)?;
    let judged = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Looked { reply, judged })
}

/// What a call comes to, and what everybody says who has a say.
fn explained(policy: &Rules, strict: bool, call: &Call) -> (Verdict, Vec<Said>) {
    let (verdict, mut said) = (policy.judge(call), policy.explain(call));
    let strictly = if strict { verdict.clone().strictly(call) } else { verdict.clone() };
    if strictly != verdict {
        said.iter_mut().for_each(|said| said.decides = false);
        let (rule, says) = (strictly.rule().to_string(), strictly.says());
        said.push(Said { rule, says, decides: true, states: None });
    }
    (strictly, said)
}

fn shown(call: &Call, verdict: &Verdict, saved: Option<&Entry>) -> Value {
    let told = match verdict {
        Verdict::Allow { .. } | Verdict::Ask { .. } => None,
        Verdict::Deny { told, .. } => told.as_deref(),
    };
    json!({
        "dry_run": true,
        "tool": call.tool().name(),
        "tool_id": call.tool(),
        "verdict": verdict.says(),
        "rule": verdict.rule(),
        "told": told,
        "saved": saved,
        "args": call.args(),
        "args_hash": call.args_hash(),
        "executed": Executed::NotExecuted,
    })
}

fn show(context: &Context<'_>, judged: &Value) -> Result<Exit> {
    match context.out.format {
        Format::Json => context.out.json(judged)?,
        Format::Text => {
            let text = |key: &str| escape::line(judged[key].as_str().unwrap_or("")).into_owned();
            let (verdict, rule) = (text("verdict"), text("rule"));
            let args = escape::json(&judged["args"].to_string()).into_owned();
            context.out.table(&format!("{verdict} by {rule}: {} {args}", text("tool_id")))?;
            if let Some(name) = judged["saved"]["name"].as_str() {
                context
                    .out
                    .table(&format!("answered by your saved answer {}", escape::line(name)))?;
            }
            context.out.say("not executed: this was a dry run");
        }
    }
    Ok(Exit::Done)
}

/// Bounds a call's time, and says when it must be cancelled from outside. The run's own limit says
/// best what happened, so that comes first, but a tool that holds its thread does not notice it.
fn limited(
    run: Run,
    tool: Option<&Arc<Registered>>,
    timeout: Option<Duration>,
) -> (Run, Option<Duration>) {
    let Some(timeout) = timeout else { return (run, None) };
    match tool.map_or(Bound::Default, |tool| tool.spec().bounds.wall) {
        Bound::Default => {
            let mut limits = RunLimits::default();
            limits.wall = timeout;
            (run.limits(limits), Some(timeout + NOTICE_GRACE))
        }
        Bound::At(wall) if wall <= timeout => (run, Some(timeout + NOTICE_GRACE)),
        Bound::At(_) | Bound::Unlimited => (run, Some(timeout)),
    }
}

/// The reply to the one proposal.
fn only(replies: std::result::Result<Vec<Reply>, RunError>, run: RunId) -> Result<Reply> {
    let replies = match replies {
        Ok(replies) | Err(RunError::Ended { replies, .. }) => replies,
        Err(err) => {
            return Err(Problem::new(Exit::Unexpected, "run.failed", err.to_string()).run(run));
        }
    };
    let mut replies = replies.into_iter();
    Ok(replies.next().expect("every proposal gets a reply"))
}

/// How the run of a call ends.
fn status(reply: &Reply) -> &'static str {
    match reply.fault.as_ref().map(|fault| fault.kind) {
        Some(FaultKind::Cancelled) => "cancelled",
        Some(_) => "failed",
        None => "ended",
    }
}

fn abandoned(run: RunId, cause: Option<Cause>) -> Box<Problem> {
    let (exit, why) = match cause {
        Some(Cause::Interrupt) => (Exit::Interrupted, "it was interrupted"),
        Some(Cause::Timeout) => (Exit::Timeout, "its time ran out"),
        None => (Exit::Unexpected, "the command panicked"),
    };
    Problem::new(exit, "call.abandoned", format!("the call did not stop when {why}"))
        .hint("look at what it was to do before you repeat it")
        .executed(Executed::Unknown)
        .run(run)
}

/// Prints a reply. One that is an error is printed, too, where a program reads it.
pub(super) fn finish(
    context: &Context<'_>,
    toolbox: &Toolbox,
    proposal: &Proposal,
    run: Option<RunId>,
    reply: &Reply,
    cause: Option<Cause>,
) -> Result<Exit> {
    let printed = match (context.out.format, reply.is_error) {
        (Format::Json, _) => context.out.json(reply),
        (Format::Text, false) => context.out.data(&reply.text()),
        (Format::Text, true) => Ok(()),
    };
    let of_run = |problem: Box<Problem>| match run {
        Some(run) => problem.run(run),
        None => problem,
    };
    printed.map_err(|problem| of_run(problem.executed(reply.executed)))?;
    match problem(context.host, toolbox, proposal, reply, cause) {
        Some(problem) => Err(of_run(problem)),
        None => Ok(Exit::Done),
    }
}
