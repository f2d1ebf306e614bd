//! `tooltape fork`.

use serde_json::{Map, Value};
use tooltape::{CallNo, Event, Fork, Record, RunStatus, RunSummary, Toolbox};

use super::Context;
use super::replay::origin;
use super::resume::{Played, check_own, refused, saved_for, settle, workspace};
use super::run::{First, Stage, introduce};
use crate::args::{Fork as ForkArgs, Pair, Typed};
use crate::arguments::propose;
use crate::escape;
use crate::exit::Exit;
use crate::host::new_id;
use crate::origin::{SHARED_KEY, WORKSPACE_KEY};
use crate::out::{BAD, paint};
use crate::report::{Problem, Result};
use crate::workspace::open_copy;

/// Starts a new run that shares the beginning of another, and makes one of its calls anew.
pub(super) async fn fork(context: &Context<'_>, args: &ForkArgs) -> Result<Exit> {
    let (_, run) = context.location()?.run(&args.run)?;
    let kept = context.location()?.open(context.out)?;
    let summary = kept.summary(run)?;
    check_own(&summary)?;
    check_free(&summary)?;
    let (records, broken) = kept.records(run);
    if let Some(problem) = broken {
        return Err(problem);
    }
    let call = CallNo(args.at);
    let origin = origin(&records);
    let played = Played::find(context, &origin, &records, None)?;
    let toolbox = context.host.toolbox(&played.layers)?;
    let fork = Fork::of(run, place(&records, call)?);
    let fork = match args.set.as_slice() {
        [] => fork,
        edits => fork.edit(call, edited(&records, call, edits, &toolbox)?),
    };
    let (id, theirs) = (new_id(), workspace(&origin)?);
    let is_copy = theirs.copied_from.is_some();
    let workspace = if is_copy { open_copy(theirs, id)? } else { theirs };
    let prepared = context.host.prepare_in(&played.layers, &workspace)?;
    let forked = prepared.run.grant(kept.artifacts()?);
    let stage = Stage::new(context, &args.how, kept, id).await;
    let saved = saved_for(&origin, &workspace)?;
    let forked = forked.known_as(id);
    let forked = stage.dress(forked, prepared.policy, (prepared.setting, saved));
    let folder = workspace.folder.display().to_string();
    introduce(context, id, &workspace);
    if is_copy {
        stage.tape.note(WORKSPACE_KEY, folder.clone().into());
        let warning = format!(
            "COPIED: {} is what run {run} left of its copy: what was changed there since call \
             {call} is changed here, too",
            escape::line(&folder),
        );
        context.out.warn(&paint(BAD, warning));
    } else {
        stage.tape.note(SHARED_KEY, run.to_string().into());
    }
    let forked = forked.fork(fork).await.map_err(|err| refused(&stage.kept, run, &err))?;
    let turns = stage.tape.tally().turns;
    match played.model {
        Some(model) => {
            let agent = stage.agent(&played.layers, forked, Played::rest(model, turns));
            stage.play(agent, First::GoOn, &workspace, None).await
        }
        None => settle(stage, forked).await,
    }
}

/// Refuses while the other run works in the folder that a fork would share or copy.
fn check_free(run: &RunSummary) -> Result {
    match run.status == RunStatus::Running {
        false => Ok(()),
        true => {
            let message =
                "the run is still running, and what it does to its folder would reach a fork";
            Err(Problem::new(Exit::Failed, "run.locked", message)
                .hint("fork it once it has ended; `tooltape tail -f RUN` follows it meanwhile")
                .run(run.id))
        }
    }
}

/// How many records are shared: all before the call was settled, so that its batch stays.
fn place(records: &[Record], call: CallNo) -> Result<u64> {
    let is_it = |record: &&Record| record.event.call() == Some(call);
    if !records.iter().any(|record| is_it(&record)) {
        let calls = records.iter().filter_map(|record| record.event.call()).max();
        let calls = calls.map_or(0, |call| call.0);
        let message = format!("the run has no call {call}: it has {calls}");
        return Err(Problem::new(Exit::Failed, "call.unknown", message)
            .hint("`tooltape show RUN` numbers the calls"));
    }
    let settled = records.iter().find(|record| match &record.event {
        Event::Settled(reply) => reply.call == call,
        _ => false,
    });
    Ok(settled.map_or(records.len() as u64, |record| record.seq))
}

/// The arguments of a call, with some of them other.
fn edited(records: &[Record], call: CallNo, edits: &[Pair], toolbox: &Toolbox) -> Result<Value> {
    let proposed = records.iter().find_map(|record| match &record.event {
        Event::Proposed(facts) if facts.call == call => Some(facts),
        _ => None,
    });
    let (name, text) =
        proposed.map_or(("", ""), |facts| (facts.name.as_ref(), facts.arguments.as_ref()));
    let mut arguments: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    let schema = toolbox.get(name).map(|tool| &tool.spec().input);
    let typed: Vec<Typed> = edits.iter().cloned().map(Typed::Pair).collect();
    let proposal = propose(name, &typed, schema);
    let unreadable = |why: &str| {
        Problem::new(Exit::Arguments, "args.unreadable", why.to_owned())
            .hint(format!("`tooltape tools show {name}` prints what it takes"))
    };
    if let Some((why, _)) = proposal.failure() {
        return Err(unreadable(why));
    }
    let edits: Map<String, Value> =
        serde_json::from_str(proposal.text()).map_err(|err| unreadable(&err.to_string()))?;
    arguments.extend(edits);
    Ok(Value::Object(arguments))
}
