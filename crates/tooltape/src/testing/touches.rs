//! Holds what calls touch against what they said that they touch.

use std::sync::{Arc, PoisonError};

use crate::grant::{CallContext, Grant};
use crate::id::CallNo;
use crate::spec::{Access, Resource};
use crate::sync::Mutex;
use crate::tape::{Event, Record};

/// Notes what calls really read and write, to find tools whose footprints are untrue.
///
/// Grant it to a run, let the tools (or the fakes that they work on) note each access, and ask for
/// the lies when the batch is over.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::testing::{Touches, proposals};
/// use tooltape::{Empty, Footprint, FootprintOf, MemoryTape, Run, Spec, ToolError, Toolbox};
/// use tooltape::{Verdict, tool_fn};
///
/// let spec = Spec::new("tidy", "Tidies up.");
/// let says_a = FootprintOf::args("says_a", |_| Footprint::writes("file:a"));
/// let tidy = tool_fn(spec.touches(says_a), async |_: Empty, touches: Touches| {
///     touches.writes("file:a");
///     touches.writes("file:b");
///     Ok::<_, ToolError>(())
/// });
/// let (touches, tape) = (Touches::default(), MemoryTape::default());
/// let run = Run::new(&Toolbox::new([tidy]).unwrap())
///     .policy(|_: &_| Verdict::allow("test"))
///     .grant(touches.clone())
///     .tape(tape.clone());
/// run.batch(proposals("tidy {}")).await.unwrap();
/// assert_eq!(touches.lies(&tape.records(run.id())), ["call 1 of `tidy` wrote `file:b`"]);
/// # });
/// ```
#[derive(Clone, Default)]
pub struct Touches {
    seen: Arc<Mutex<Vec<Touch>>>,
    call: Option<CallNo>,
}

struct Touch {
    call: CallNo,
    access: Access,
    key: String,
}

impl Touches {
    /// The call reads this resource.
    pub fn reads(&self, key: &str) {
        self.note(Access::Read, key);
    }

    /// The call writes this resource.
    pub fn writes(&self, key: &str) {
        self.note(Access::Write, key);
    }

    fn note(&self, access: Access, key: &str) {
        let Some(call) = self.call else { return };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(Touch { call, access, key: key.to_owned() });
    }

    /// What calls touched and did not say, by the records of their run.
    pub fn lies(&self, records: &[Record]) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let judged = records.iter().filter_map(|record| match &record.event {
            Event::Judged { facts, .. } => Some(facts),
            _ => None,
        });
        let judged: Vec<_> = judged.collect();
        let lie = |touch: &Touch| {
            let facts = judged.iter().find(|facts| facts.call == touch.call)?;
            let (tool, args) = (facts.registered.as_ref()?, facts.args.as_ref()?);
            let said = tool.footprint(args, None).ok()?;
            let key = Resource::parse(&touch.key).ok();
            let covered = |keys: &[Resource]| {
                keys.iter().any(|said| match &key {
                    Some(key) => said.covers(key),
                    None => *said == Resource::everything(),
                })
            };
            let (is_said, word) = match touch.access {
                Access::Write => (covered(said.written_keys()), "wrote"),
                Access::Pure | Access::Read => {
                    (covered(said.read_keys()) || covered(said.written_keys()), "read")
                }
            };
            let Touch { call, key, .. } = touch;
            (!is_said).then(|| format!("call {} of `{}` {word} `{key}`", call.0, facts.name))
        };
        seen.iter().filter_map(lie).collect()
    }
}

impl Grant for Touches {
    fn for_call(mut self, context: &CallContext) -> Touches {
        self.call = Some(context.info.call());
        self
    }
}
