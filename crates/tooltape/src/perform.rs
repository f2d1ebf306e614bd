//! The one place where a call touches the world, or a recording of it.

mod breaker;
mod cache;
mod concurrency;
mod layer;
mod passage;
mod rate;
#[cfg(feature = "tracing")]
mod span;
#[cfg(not(feature = "tracing"))]
mod spanless;
mod stages;
mod timeout;

use std::collections::HashMap;

pub use breaker::Breaker;
pub use cache::{CACHE_BYTES_DEFAULT, CACHE_ENTRIES_DEFAULT, Cache};
pub use concurrency::Concurrency;
pub use layer::{Layer, LayerFn, Layered, Next, layer_fn, only};
pub(crate) use passage::{Passage, Stage};
pub use rate::RateLimit;
#[cfg(feature = "tracing")]
pub(crate) use span::{Span, Spans};
#[cfg(not(feature = "tracing"))]
pub(crate) use spanless::{Span, Spans};
pub(crate) use stages::Stages;
pub use timeout::Timeout;

use crate::call::Call;
use crate::fault::{Executed, Fault, FaultKind, ToolError};
use crate::grant::Grants;
use crate::id::CallNo;
use crate::policy::Permit;
use crate::reply::{FaultView, Reply};
use crate::spec::{Access, Determinism, Typed};
use crate::tape::{Accepted, Event, Record, TapeError};
use crate::tool::{Args, BoxFuture, Output, Source};

/// The most bytes of arguments, and of a result, that a span shows where it shows them at all.
pub const SPAN_CONTENT_BYTES_MAX: usize = 8_192;

/// Performs attempts at permitted calls. Replay is another performer, not another path.
pub trait Perform: Send + Sync {
    /// Performs one attempt. Dropping the future abandons it.
    fn perform<'a>(
        &'a self,
        attempt: Attempt<'a>,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// One attempt at a permitted call. It exists only once its `started` is on the tape, or surely
/// gets there before anything can happen.
pub struct Attempt<'p> {
    call: &'p Call,
    /// The arguments, where resolving read them and no attempt had them yet.
    typed: Option<Typed>,
    no: u32,
    passage: &'p Passage,
}

/// An attempt whose start is on the tape.
pub(crate) enum Started<'p> {
    /// It may be made.
    Now(Attempt<'p>),
    /// It may be made once its start is durable.
    Later(Starting<'p>),
}

/// An attempt whose start is not durable yet.
pub(crate) struct Starting<'p> {
    permit: &'p mut Permit,
    no: u32,
    passage: &'p Passage,
    durable: BoxFuture<'static, Result<(), TapeError>>,
}

impl<'p> Starting<'p> {
    pub(crate) fn call(&self) -> &Call {
        self.permit.call()
    }

    /// Waits until its start is durable, and makes it. Dropping the future gives it up.
    pub(crate) async fn durable(self) -> Result<Attempt<'p>, Fault> {
        self.durable.await.map_err(unrecorded)?;
        Ok(Attempt::of(self.permit, self.no, self.passage))
    }
}

/// The fault of a call whose next step could not be recorded: it was not taken.
#[cold]
pub(crate) fn unrecorded(err: TapeError) -> Fault {
    let why = format!("the call could not be recorded: {err}");
    Fault::Bug { executed: Executed::NotExecuted, why }
}

impl<'p> Attempt<'p> {
    /// The attempt whose start the tape took.
    ///
    /// A write must wait until that is durable; what only reads need not.
    #[inline]
    pub(crate) fn start(
        permit: &'p mut Permit,
        no: u32,
        passage: &'p Passage,
        accepted: Accepted,
    ) -> Started<'p> {
        match (permit.call().effects().access, accepted) {
            (Access::Write, Accepted::Later(durable)) => {
                Started::Later(Starting { permit, no, passage, durable })
            }
            (_, Accepted::Now | Accepted::Later(_)) => {
                Started::Now(Attempt::of(permit, no, passage))
            }
        }
    }

    /// The attempt of a call whose start may reach the tape together with its end.
    ///
    /// A pure function that takes no grant does nothing that could be lost. Where no layer and no
    /// hook is around it either, the tape need not be asked twice if it is ready at once.
    #[inline]
    pub(crate) fn silent(permit: &'p mut Permit, no: u32, passage: &'p Passage) -> Attempt<'p> {
        debug_assert!(permit.call().registered().is_silent(), "whoever can act starts on the tape");
        Attempt::of(permit, no, passage)
    }

    /// An attempt whose start is on the tape.
    #[inline]
    pub(crate) fn of(permit: &'p mut Permit, no: u32, passage: &'p Passage) -> Attempt<'p> {
        let typed = permit.call_mut().take_typed();
        Attempt { call: permit.call(), typed, no, passage }
    }

    /// The call.
    pub fn call(&self) -> &'p Call {
        self.call
    }

    /// Which attempt it is, counted from 1.
    pub fn no(&self) -> u32 {
        self.no
    }

    /// Whether the layers around the attempt have let it pass.
    pub(crate) fn passage(&self) -> &'p Passage {
        self.passage
    }

    /// The same attempt, as it reaches its tool.
    #[inline]
    pub(crate) fn entered(self) -> Attempt<'p> {
        self.passage.enter();
        self
    }

    /// Runs the tool itself. For performers that wrap the live one.
    #[inline]
    pub fn run<'a>(self, grants: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>>
    where
        'p: 'a,
    {
        let args = Args::new(self.call.args().clone(), self.typed);
        self.call.registered().tool().call(args, grants)
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
pub struct FromTape(HashMap<CallNo, Reply>);

impl FromTape {
    /// Gathers what records say each call returned.
    pub fn new(records: &[Record]) -> FromTape {
        let settled = records.iter().filter_map(|record| match &record.event {
            Event::Settled(reply) => Some(reply),
            _ => None,
        });
        FromTape(settled.map(|reply| (reply.call, reply.clone())).collect())
    }

    fn replay(&self, call: &Call) -> Result<Output, ToolError> {
        let Some(past) = self.0.get(&call.no()) else {
            return Err(
                ToolError::not_done("this call is not in the recording").code("replay.unrecorded")
            );
        };
        if past.tool() != Some(call.tool()) || past.args_hash != call.args_hash() {
            return Err(
                ToolError::not_done("the recording has another call here").code("replay.diverged")
            );
        }
        match &past.fault {
            None => Ok(replayed(past)),
            Some(fault) => Err(failed_again(fault, past.executed)),
        }
    }
}

/// The same failure, as the tool reported it.
fn failed_again(fault: &FaultView, executed: Executed) -> ToolError {
    if let (Some(bound), Some(limit)) = (fault.bound, fault.limit) {
        return ToolError::exceeded(bound, limit, executed);
    }
    let Some(told) = fault.told.as_deref() else {
        return ToolError::hidden((*fault.message).into()).code(&*fault.code);
    };
    let err = match executed {
        Executed::NotExecuted => ToolError::not_done(told),
        Executed::Executed if fault.fatal => ToolError::fatal(told),
        Executed::Executed => ToolError::tell(told),
        Executed::Unknown if fault.kind == FaultKind::Cancelled => ToolError::cancelled(),
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
        label: reply.label_kept().cloned(),
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
        // What fails has no output to say what it saw.
        if let Some(label) = self.0.get(&attempt.call().no()).and_then(|past| past.label_kept()) {
            grants.life().saw(label);
        }
        Box::pin(async move { output })
    }
}
