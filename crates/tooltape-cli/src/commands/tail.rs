//! `tooltape tail`.

use std::time::Duration;

use tooltape::limits::READ_RECORDS_MAX;
use tooltape::{Event, RunStatus};

use super::Context;
use crate::args::Tail;
use crate::exit::Exit;
use crate::interrupt::Stop;
use crate::out::{Detail, FAINT, paint};
use crate::report::{Problem, Result};
use crate::tell::Teller;

/// How often a tape is looked at for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Prints what happens in a run, and goes on until it ends.
pub(super) async fn tail(context: &Context<'_>, args: &Tail) -> Result<Exit> {
    let (kept, run) = context.location()?.run(&args.run)?;
    let stop = Stop::listen().await;
    let mut teller = Teller::new(context.out.detail, false);
    let (mut from, mut is_over) = (0, false);
    loop {
        // Looked at before the records, so that what was written last is still read.
        let status = kept.summary(run)?.status;
        loop {
            let lines = kept.tape.lines(run, from, READ_RECORDS_MAX);
            let lines = lines.map_err(|err| kept.problem(&err).run(run))?;
            if lines.is_empty() {
                break;
            }
            from += lines.len() as u64;
            for line in lines {
                let record = line.record().map_err(|err| kept.problem(&err).run(run))?;
                is_over = matches!(record.event, Event::RunEnded { .. });
                match args.jsonl {
                    true => context.out.json(&record)?,
                    false => {
                        teller.tell(&record).iter().try_for_each(|line| context.out.table(line))?;
                    }
                }
                if let (false, Event::RunEnded { status, stop, .. }) = (args.jsonl, &record.event) {
                    context.out.table(&format!("{status} by {}", crate::escape::line(stop)))?;
                }
            }
        }
        if !args.follow || is_over || status != RunStatus::Running {
            return finish(context, status, args.follow && !is_over).map_err(|it| it.run(run));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = stop.interrupted() => return Ok(Exit::Interrupted),
        }
    }
}

/// Says why no more comes, where the run has not ended.
fn finish(context: &Context<'_>, status: RunStatus, waited: bool) -> Result<Exit> {
    match status {
        RunStatus::Crashed if waited => {
            let message = "whoever wrote the run is gone, and it did not end";
            Err(Problem::new(Exit::Failed, "run.crashed", message)
                .hint("`tooltape resume RUN` goes on with it"))
        }
        RunStatus::Paused if context.out.detail >= Detail::Normal => {
            context.out.say(&paint(FAINT, "paused; `tooltape resume` goes on with it"));
            Ok(Exit::Done)
        }
        _ => Ok(Exit::Done),
    }
}
