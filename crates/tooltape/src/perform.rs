//! The one place where a call touches the world, or a recording of it.

use std::collections::HashMap;

use crate::call::Call;
use crate::canon::Hash;
use crate::fault::{Executed, ToolError};
use crate::grant::Grants;
use crate::id::{CallNo, ToolId};
use crate::policy::Permit;
use crate::reply::{FaultView, Reply};
use crate::spec::{Access, Determinism};
use crate::tape::{Event, Record, Recorder, TapeError};
use crate::tool::{Args, BoxFuture, Output, Source};

/// Performs attempts at permitted calls. Replay is another performer, not another path.
pub trait Perform: Send + Sync {
    /// Performs one attempt. Dropping the future abandons it.
    fn perform<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// One attempt at a permitted call. It exists only once its `started` is on the tape.
pub struct Attempt<'p> {
    call: &'p Call,
    args: Args,
    no: u32,
    started_us: u64,
}

impl<'p> Attempt<'p> {
    /// Records that the attempt starts, behind `events`, and makes it. No events are left.
    ///
    /// A write waits until that is durable; what only reads need not.
    pub(crate) async fn start(
        permit: &'p mut Permit,
        no: u32,
        recorder: &Recorder,
        clock_us: Option<u64>,
        events: &mut Vec<Event>,
    ) -> Result<Attempt<'p>, TapeError> {
        events.push(Event::Started { call: permit.call().no(), attempt: no, clock_us });
        let (started_us, ack) = recorder.append(events);
        match permit.call().spec().effects.access {
            Access::Pure | Access::Read => ack.accepted()?,
            Access::Write => ack.durable().await?,
        }
        let args = permit.call_mut().args_for_attempt();
        Ok(Attempt { call: permit.call(), args, no, started_us })
    }

    /// The call.
    pub fn call(&self) -> &'p Call {
        self.call
    }

    /// Which attempt it is, counted from 1.
    pub fn no(&self) -> u32 {
        self.no
    }

    /// When it started, in microseconds since the Unix epoch.
    pub(crate) fn started_us(&self) -> u64 {
        self.started_us
    }

    /// Runs the tool itself. For performers that wrap the live one.
    pub fn run<'a>(self, grants: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>>
    where
        'p: 'a,
    {
        self.call.registered().tool().call(self.args, grants)
    }
}

/// Runs the tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl Perform for Live {
    fn perform<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        attempt.run(grants)
    }
}

/// Answers from records, and runs only what is pure and deterministic.
pub struct FromTape(HashMap<CallNo, Past>);

/// What the records say about one call.
struct Past {
    tool: Option<ToolId>,
    args_hash: Hash,
    reply: Reply,
}

impl FromTape {
    /// Gathers what records say each call returned.
    pub fn new(records: &[Record]) -> FromTape {
        let settled = records.iter().filter_map(|record| match &record.event {
            Event::Settled(reply) => Some(reply),
            _ => None,
        });
        let past = settled.map(|reply| {
            let (tool, args_hash) = (reply.tool.clone(), reply.args_hash);
            (reply.call, Past { tool, args_hash, reply: reply.clone() })
        });
        FromTape(past.collect())
    }

    fn replay(&self, call: &Call) -> Result<Output, ToolError> {
        let Some(past) = self.0.get(&call.no()) else {
            return Err(
                ToolError::not_done("this call is not in the recording").code("replay.unrecorded")
            );
        };
        if past.tool.as_ref() != Some(call.tool()) || past.args_hash != call.args_hash() {
            return Err(
                ToolError::not_done("the recording has another call here").code("replay.diverged")
            );
        }
        match &past.reply.fault {
            None => Ok(replayed(&past.reply)),
            Some(fault) => Err(failed_again(fault, past.reply.executed)),
        }
    }
}

/// The same failure, as the tool reported it.
fn failed_again(fault: &FaultView, executed: Executed) -> ToolError {
    let Some(told) = fault.told.as_deref() else {
        return ToolError::hidden((*fault.message).into()).code(&*fault.code);
    };
    let err = match executed {
        Executed::NotExecuted => ToolError::not_done(told),
        Executed::Executed if fault.fatal => ToolError::fatal(told),
        Executed::Executed => ToolError::tell(told),
        Executed::Unknown if fault.kind == "cancelled" => ToolError::cancelled(),
        Executed::Unknown => ToolError::in_doubt(told),
    };
    err.code(&*fault.code)
}

fn replayed(reply: &Reply) -> Output {
    Output {
        value: reply.value.clone(),
        content: reply.content.to_vec(),
        details: reply.details.clone(),
        metadata: reply.metadata.clone(),
        stop: reply.stop,
        source: Source::Mock,
    }
}

impl Perform for FromTape {
    fn perform<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let effects = &attempt.call().spec().effects;
        let provable =
            effects.access == Access::Pure && effects.determinism == Determinism::Deterministic;
        if provable {
            return attempt.run(grants);
        }
        let output = self.replay(attempt.call());
        Box::pin(async move { output })
    }
}
