//! For tests: play scripts of calls, and hold any implementation of a seam to its promises.
//!
//! Each suite panics with the promise that was broken, so it is used inside a test:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use tooltape::{MemoryTape, testing};
//! testing::tape_conforms(MemoryTape::default).await;
//! # });
//! ```

mod model;
mod perform;
mod policy;
mod tape;
mod tool;
mod touches;
mod transcript;

use std::sync::Arc;

pub use model::model_conforms;
pub use perform::perform_conforms;
pub use policy::policy_conforms;
pub use tape::{durable_tape_conforms, tape_conforms};
pub use tool::tool_conforms;
pub use touches::Touches;
pub use transcript::{
    CallEntry, Entry, IdRule, ReplyEntry, TranscriptError, TranscriptRules, check_entries,
    check_transcript, entries,
};

use crate::proposal::Proposal;
use crate::run::Run;
use crate::spec::{Access, Effects, Spec};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::tool::{Args, BoxFuture, Output, Tool};
use crate::{Grants, ToolError};

/// Plays a script of `name arguments` lines as one batch, and returns one line per reply.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Run, Toolbox, builtin, testing};
///
/// let run = Run::new(&Toolbox::new(builtin::tools()).unwrap());
/// let replies = testing::play(&run, r#"echo {"text":"hi"}"#).await;
/// assert_eq!(replies, "c1 {\"text\":\"hi\"}\n");
/// # });
/// ```
pub async fn play(run: &Run, script: &str) -> String {
    match run.batch(proposals(script)).await {
        Err(err) => format!("cannot start: {err}\n"),
        Ok(replies) => replies.iter().map(|it| format!("{} {}\n", it.id, it.text())).collect(),
    }
}

/// The proposals of a script of `name arguments` lines, with the ids `c1`, `c2` and so on.
pub fn proposals(script: &str) -> Vec<Proposal> {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let proposals = lines.enumerate().map(|(at, line)| {
        let (name, arguments) = line.split_once(' ').unwrap_or((line, ""));
        Proposal::new(format!("c{}", at + 1), name, arguments)
    });
    proposals.collect()
}

/// A tool that counts how often it ran, and returns its arguments.
///
/// ```
/// use tooltape::{Access, testing::Spy};
/// let spy = Spy::new("push", Access::Write);
/// assert_eq!(spy.calls(), 0);
/// ```
#[derive(Clone)]
pub struct Spy {
    spec: Spec,
    calls: Arc<AtomicUsize>,
    result: fn(Args) -> Result<Output, ToolError>,
}

impl Spy {
    /// A spy that takes any object.
    pub fn new(name: &str, access: Access) -> Spy {
        let effects = match access {
            Access::Pure => Effects::pure(),
            Access::Read => Effects::read(),
            Access::Write => Effects::default(),
        };
        let spec = Spec::new(name, "Counts its calls.").effects(effects);
        Spy { spec, calls: Arc::default(), result: |args| Output::value(args.canon()) }
    }

    /// The same spy, declaring something else.
    #[must_use]
    pub fn declaring(mut self, change: impl FnOnce(Spec) -> Spec) -> Spy {
        self.spec = change(self.spec);
        self
    }

    /// The same spy, returning something else.
    #[must_use]
    pub fn returning(mut self, result: fn(Args) -> Result<Output, ToolError>) -> Spy {
        self.result = result;
        self
    }

    /// How often it ran. Clones share the count.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// The spy as a tool.
    pub fn tool(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

impl Tool for Spy {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Args, _: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let result = (self.result)(args);
        Box::pin(async move { result })
    }
}
