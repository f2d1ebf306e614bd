//! What a running call is told about itself, and what it may say while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Grant;
use crate::canon::Canon;
use crate::fault::{ToolError, clip};
use crate::id::{CallNo, Name, RunId};

/// The most bytes of one progress message.
pub const PROGRESS_BYTES_MAX: usize = 4_096;
/// The most progress messages and named events of one call; the rest are dropped.
pub const NOTES_MAX: u32 = 1_000;

/// Receives what calls say while they run.
pub(crate) trait Witness: Send + Sync {
    /// Notes it, and says whether the tape took it.
    fn note(&self, call: CallNo, note: Note) -> bool;
}

/// What a call says while it runs.
#[derive(Debug)]
pub(crate) enum Note {
    Progress(String),
    Emitted { name: Name, value: Canon },
    State { name: &'static str, value: Canon },
}

/// What all calls of a run have in common.
pub(crate) struct RunContext {
    pub(crate) run: RunId,
    pub(crate) thread: Option<Arc<str>>,
    pub(crate) depth: u32,
    pub(crate) depth_max: u32,
    pub(crate) cancel: CancellationToken,
    pub(crate) witness: Arc<dyn Witness>,
}

/// What a grant may know of the call that holds it.
#[doc(hidden)]
#[derive(Clone)]
pub struct CallContext {
    pub(crate) info: RunInfo,
    pub(crate) frozen_unix_us: Option<u64>,
    pub(crate) noted: Option<Arc<AtomicU32>>,
}

impl CallContext {
    pub(crate) fn new(run: Arc<RunContext>, call: CallNo, id: Arc<str>) -> CallContext {
        let info = RunInfo(Some(Live { run, call, id }));
        CallContext { info, frozen_unix_us: None, noted: None }
    }

    /// Notes it, and says whether the tape took it. Where there is no run there is nothing to take.
    pub(super) fn note(&self, note: Note) -> bool {
        self.info.0.as_ref().is_none_or(|live| live.run.witness.note(live.call, note))
    }
}

/// Which run, thread and call a tool is working for.
///
/// [`RunInfo::detached`] is what a test passes when it calls the function itself.
#[derive(Clone)]
pub struct RunInfo(Option<Live>);

#[derive(Clone)]
struct Live {
    run: Arc<RunContext>,
    call: CallNo,
    id: Arc<str>,
}

impl RunInfo {
    /// Belongs to no run.
    pub fn detached() -> RunInfo {
        RunInfo(None)
    }

    /// The run.
    pub fn run(&self) -> Option<RunId> {
        self.0.as_ref().map(|live| live.run.run)
    }

    /// The thread that the host named, such as a conversation.
    pub fn thread(&self) -> Option<&str> {
        self.0.as_ref().and_then(|live| live.run.thread.as_deref())
    }

    /// The number of the call within its run.
    pub fn call(&self) -> CallNo {
        self.0.as_ref().map_or(CallNo(0), |live| live.call)
    }

    /// The provider's id of the call.
    pub fn call_id(&self) -> &str {
        self.0.as_ref().map_or("", |live| &live.id)
    }

    /// How deeply the run is nested: 0 for a run that no tool started.
    pub fn depth(&self) -> u32 {
        self.0.as_ref().map_or(0, |live| live.run.depth)
    }

    /// The deepest nesting that the run allows.
    pub fn depth_max(&self) -> u32 {
        self.0.as_ref().map_or(0, |live| live.run.depth_max)
    }
}

impl Grant for RunInfo {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> RunInfo {
        context.info.clone()
    }
}

/// Says what a call is doing while it does it. Subscribers and the tape see it; the model does not.
#[derive(Clone)]
pub struct Progress(Option<CallContext>);

impl Progress {
    /// Tells nobody. For tests that call the function themselves.
    pub fn detached() -> Progress {
        Progress(None)
    }

    /// Publishes a line of progress, cut at [`PROGRESS_BYTES_MAX`].
    pub fn say(&self, text: impl Into<String>) {
        self.note(|| Note::Progress(clip(text.into(), PROGRESS_BYTES_MAX)));
    }

    /// Publishes a named event with a value.
    ///
    /// Fails where the name is not a valid [`Name`] or the value cannot be serialised.
    pub fn emit(&self, name: &str, value: &impl Serialize) -> Result<(), ToolError> {
        let (name, value) = (Name::new(name)?, Canon::of(value)?);
        self.note(|| Note::Emitted { name, value });
        Ok(())
    }

    fn note(&self, note: impl FnOnce() -> Note) {
        let Some(context) = &self.0 else { return };
        let noted = context.noted.as_ref().map(|noted| noted.fetch_add(1, Ordering::Relaxed));
        if noted.is_some_and(|noted| noted < NOTES_MAX) {
            // A tape that refuses this refuses the call's end too, and there it is reported.
            context.note(note());
        }
    }
}

impl Grant for Progress {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> Progress {
        let noted = Some(context.noted.clone().unwrap_or_default());
        Progress(Some(CallContext { noted, ..context.clone() }))
    }
}

/// Tells a tool that nobody waits for its result any more.
#[derive(Clone)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// Never cancelled. For tests that call the function themselves.
    pub fn never() -> Cancel {
        Cancel(CancellationToken::new())
    }

    /// Whether the call was cancelled.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the call is cancelled. Dropping the future leaves nothing behind.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }
}

impl Grant for Cancel {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> Cancel {
        match &context.info.0 {
            Some(live) => Cancel(live.run.cancel.clone()),
            None => self,
        }
    }
}
