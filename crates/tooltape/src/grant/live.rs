//! What a running call is told about itself, and what it may say while it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;

use super::{Clock, Grant, Life, Stored, Token};
use crate::canon::Canon;
use crate::fault::ToolError;
use crate::id::{CallNo, Name, RunId};
use crate::label::Label;
use crate::right::{Holding, Refusal, Right, Rights, Withheld};

/// The most bytes of one progress message.
pub const PROGRESS_BYTES_MAX: usize = 4_096;
/// The most bytes of one named event.
pub const EMITTED_BYTES_MAX: usize = 64 << 10;
/// The most progress messages and named events of one call; the rest are dropped.
pub const NOTES_MAX: u32 = 1_000;
/// The bytes of memory that an attempt may use where a runtime counts them, unless its tool says
/// otherwise.
pub const MEMORY_DEFAULT: u64 = 64 << 20;
/// The fuel that an attempt may burn where a runtime counts it, unless its tool says otherwise.
pub const FUEL_DEFAULT: u64 = 1_000_000_000;

/// Receives what calls say while they run.
pub(crate) trait Witness: Send + Sync {
    /// Notes it, and says what became of that.
    fn note(&self, call: CallNo, note: Note) -> Noted;

    /// Whether a text says what must not be written down.
    fn minds(&self, text: &str) -> bool;
}

/// What became of a note.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "only a store in a file waits"))]
pub(crate) enum Noted {
    /// The tape refused it.
    Refused,
    /// It is durable.
    Durable,
    /// The tape took it; the future says whether it became durable. Dropping it changes nothing.
    Later(Pin<Box<dyn Future<Output = bool> + Send>>),
}

#[cfg(feature = "sqlite")]
impl Noted {
    /// Waits, and says whether it is durable.
    pub(crate) async fn becomes_durable(self) -> bool {
        match self {
            Noted::Refused => false,
            Noted::Durable => true,
            Noted::Later(durable) => durable.await,
        }
    }
}

/// What a call says while it runs.
#[derive(Debug)]
pub(crate) enum Note {
    Progress(String),
    Emitted { name: Name, value: Canon },
    State { name: &'static str, value: Canon, label: Option<Arc<Label>> },
    Stored { store: Name, key: String, wrote: bool, stored: Stored },
    Abandoned { attempt: u32 },
}

/// What all calls of a run have in common.
pub(crate) struct RunContext {
    pub(crate) run: RunId,
    pub(crate) thread: Option<Arc<str>>,
    pub(crate) depth: u32,
    pub(crate) depth_max: u32,
    pub(crate) memory: u64,
    pub(crate) fuel: u64,
    pub(crate) witness: Arc<dyn Witness>,
    pub(crate) clock: Clock,
    /// What the run may do.
    pub(crate) holding: Holding,
}

/// What a grant may know of the call that holds it.
#[derive(Clone)]
pub struct CallContext {
    pub(crate) info: RunInfo,
    pub(crate) life: Arc<Life>,
    /// What tells the attempt that nobody waits for it any more.
    pub(crate) cancel: Token,
    pub(crate) frozen_unix_us: Option<u64>,
    /// Whether its tool says that it changes something.
    pub(crate) is_write: bool,
}

impl CallContext {
    pub(crate) fn info(run: Arc<RunContext>, call: CallNo, id: Arc<str>) -> RunInfo {
        RunInfo(Some(Live { run, call, id }))
    }

    /// Whether the run of the call holds this right at this moment.
    ///
    /// A handle asks whenever it is used: what was revoked or has expired since it was handed out
    /// is refused, and so is a change by a tool that says that it only reads.
    pub fn check(&self, right: &Right) -> Result<(), Refusal> {
        if let (Right::FsWrite(_), false) = (right, self.is_write) {
            let (holder, right) = ("the tool, which only reads,".into(), Box::new(right.clone()));
            return Err(Refusal { holder, depth: 0, right, why: Withheld::Missing });
        }
        match &self.info.0 {
            None => Ok(()),
            Some(live) => live.run.holding.check(right, live.run.clock.unix_us()),
        }
    }

    /// What the run of the call holds: nothing, once that was revoked or has expired. Where there
    /// is no run, nobody says.
    pub fn held(&self) -> Option<Rights> {
        let run = &self.info.0.as_ref()?.run;
        let is_live = run.holding.is_live(run.clock.unix_us());
        Some(if is_live { run.holding.rights().clone() } else { Rights::none() })
    }

    /// Notes it, or says why not. Where there is no run there is nothing to note it.
    pub(super) fn note(&self, note: Note) -> Result<Noted, &'static str> {
        let Some(live) = &self.info.0 else { return Ok(Noted::Durable) };
        match self.life.unless_over(|| live.run.witness.note(live.call, note)) {
            Some(Noted::Refused) => Err("the tape refused it"),
            Some(noted) => Ok(noted),
            None => Err("the call is over"),
        }
    }

    /// Whether a text says what must not be written down.
    pub(super) fn minds(&self, text: &str) -> bool {
        self.info.0.as_ref().is_some_and(|live| live.run.witness.minds(text))
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

    /// The bytes of memory that an attempt may use, unless its tool says otherwise.
    ///
    /// It is for whoever runs tools in a runtime that counts such things, as is [fuel](Self::fuel).
    pub fn memory(&self) -> u64 {
        self.0.as_ref().map_or(MEMORY_DEFAULT, |live| live.run.memory)
    }

    /// The fuel that an attempt may burn, unless its tool says otherwise.
    pub fn fuel(&self) -> u64 {
        self.0.as_ref().map_or(FUEL_DEFAULT, |live| live.run.fuel)
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
pub struct Cancel(Token);

impl Cancel {
    /// Never cancelled. For tests that call the function themselves.
    pub fn never() -> Cancel {
        Cancel(Token::default())
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
