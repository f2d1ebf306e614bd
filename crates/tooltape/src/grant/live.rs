//! What a running call is told about itself, and what it may say while it runs.

use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{Clock, Grant, Life};
use crate::canon::Canon;
use crate::fault::ToolError;
use crate::id::{CallNo, Name, RunId};

/// The most bytes of one progress message.
pub const PROGRESS_BYTES_MAX: usize = 4_096;
/// The most bytes of one named event.
pub const EMITTED_BYTES_MAX: usize = 64 << 10;
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
    Stored { store: Name, key: String, wrote: bool, value: Option<Canon> },
    Abandoned { attempt: u32 },
}

/// What all calls of a run have in common.
pub(crate) struct RunContext {
    pub(crate) run: RunId,
    pub(crate) thread: Option<Arc<str>>,
    pub(crate) depth: u32,
    pub(crate) depth_max: u32,
    pub(crate) witness: Arc<dyn Witness>,
    pub(crate) clock: Clock,
}

/// What a grant may know of the call that holds it.
#[doc(hidden)]
#[derive(Clone)]
pub struct CallContext {
    pub(crate) info: RunInfo,
    pub(crate) life: Arc<Life>,
    /// What tells the attempt that nobody waits for it any more.
    pub(crate) cancel: CancellationToken,
    pub(crate) frozen_unix_us: Option<u64>,
}

impl CallContext {
    pub(crate) fn new(
        run: Arc<RunContext>,
        id: Arc<str>,
        life: Arc<Life>,
        cancel: CancellationToken,
        frozen_unix_us: Option<u64>,
    ) -> CallContext {
        let info = RunInfo(Some(Live { run, call: life.call(), id }));
        CallContext { info, life, cancel, frozen_unix_us }
    }

    /// Notes it, or says why not. Where there is no run there is nothing to note it.
    pub(super) fn note(&self, note: Note) -> Result<(), &'static str> {
        let Some(live) = &self.info.0 else { return Ok(()) };
        match self.life.unless_over(|| live.run.witness.note(live.call, note)) {
            Some(true) => Ok(()),
            Some(false) => Err("the tape refused it"),
            None => Err("the call is over"),
        }
    }

    /// The call says something; returns how often it did before.
    fn beat(&self) -> u32 {
        self.life.beat(self.info.0.as_ref().map_or(0, |live| live.run.clock.now_us()))
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
///
/// What is said once the call is over, such as by a thread that was given up, is dropped.
#[derive(Clone)]
pub struct Progress(Option<CallContext>);

impl Progress {
    /// Tells nobody. For tests that call the function themselves.
    pub fn detached() -> Progress {
        Progress(None)
    }

    /// Publishes a line of progress, cut at [`PROGRESS_BYTES_MAX`].
    pub fn say(&self, text: impl Into<String>) {
        // The witness cuts it, since half a secret would not be found any more.
        self.note(|| Note::Progress(text.into()));
    }

    /// Publishes a named event with a value.
    ///
    /// Fails where the name is not a valid [`Name`], and where the value cannot be serialised or
    /// has more than [`EMITTED_BYTES_MAX`]. Half a value would be none.
    pub fn emit(&self, name: &str, value: &impl Serialize) -> Result<(), ToolError> {
        let (name, value) = (Name::new(name)?, Canon::of(value)?);
        let bytes = value.as_str().len();
        if bytes > EMITTED_BYTES_MAX {
            let most = format!("expected at most {EMITTED_BYTES_MAX}");
            return Err(ToolError::tell(format!("the event `{name}` has {bytes} bytes, {most}")));
        }
        self.note(|| Note::Emitted { name, value });
        Ok(())
    }

    fn note(&self, note: impl FnOnce() -> Note) {
        let Some(context) = &self.0 else { return };
        if context.beat() < NOTES_MAX {
            // A tape that refuses this refuses the call's end too, and there it is reported.
            let _ = context.note(note());
        }
    }
}

impl Grant for Progress {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> Progress {
        Progress(Some(context.clone()))
    }
}

/// Tells a tool that nobody waits for its result any more: its call was cancelled or is over, or
/// this attempt at it ran out of time.
#[derive(Clone)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// Never cancelled. For tests that call the function themselves.
    pub fn never() -> Cancel {
        Cancel(CancellationToken::new())
    }

    /// Whether nobody waits any more.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until nobody waits any more. Dropping the future leaves nothing behind.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }
}

impl Grant for Cancel {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> Cancel {
        Cancel(context.cancel.clone())
    }
}
