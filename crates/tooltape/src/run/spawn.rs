//! Child runs: a tool that calls tools, with the rights of its own call and no more.

use std::borrow::Borrow;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};

use super::ledger::Ledger;
use super::past::{Past, Said};
use super::{ResumeError, Run, RunLimits, Setup};
use crate::call::Call;
use crate::canon::{Domain, Hash};
use crate::fault::{BoundKind, Executed, ToolError};
use crate::grant::{CallContext, Grant};
use crate::id::RunId;
use crate::policy::{Policy, Verdict};
use crate::right::Rights;
use crate::spec::Spec;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tape::{Event, Parent, TurnEvent, Usage, all_records};

/// Starts child runs, for tools that call tools.
///
/// A child has its parent's whole toolbox, policy, grants and tape. It can be narrowed, and never
/// widened. It has seats of its own, so that no nesting waits for itself, and ends with the call
/// that started it; [`Run::end`] says so on the tape, where no agent does. A tool that takes
/// `Spawn` is recursive, whatever it declares.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{Empty, Proposal, Run, Spawn, Spec, ToolError, Toolbox, Verdict};
/// use tooltape::{builtin, tool_fn};
///
/// let twice = tool_fn(Spec::new("twice", "Echoes twice."), async |_: Empty, spawn: Spawn| {
///     let child = spawn.child()?.only(|spec| &*spec.name == "echo").start();
///     let echo = Proposal::new("e", "echo", r#"{"text":"hi"}"#);
///     let replies = child.batch(vec![echo.clone(), echo]).await.map_err(ToolError::from)?;
///     Ok::<_, ToolError>(replies.len())
/// });
/// let toolbox = Toolbox::new(builtin::tools().into_iter().chain([twice])).unwrap();
/// let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("all"));
/// let replies = run.batch(vec![Proposal::new("c1", "twice", "{}")]).await.unwrap();
/// assert_eq!(replies[0].text(), "2");
/// # });
/// ```
#[derive(Clone)]
pub struct Spawn {
    setup: Option<Arc<Setup>>,
    context: Option<CallContext>,
    spawned: Arc<AtomicU64>,
}

impl Spawn {
    pub(super) fn new(setup: Setup) -> Spawn {
        Spawn { setup: Some(Arc::new(setup)), context: None, spawned: Arc::default() }
    }

    /// Belongs to no run, so it starts none. For tests that call the function themselves.
    pub fn detached() -> Spawn {
        Spawn { setup: None, context: None, spawned: Arc::default() }
    }

    /// A child run, to be narrowed and started.
    ///
    /// Fails where the nesting would be deeper than the run's limit.
    pub fn child(&self) -> Result<Nested, ToolError> {
        let (Some(setup), Some(context)) = (&self.setup, &self.context) else {
            return Err(ToolError::not_done("there is no run here that could have a child"));
        };
        let limit = setup.limits.depth;
        if setup.depth >= limit {
            let (bound, limit) = (BoundKind::Depth, u64::from(limit));
            return Err(ToolError::exceeded(bound, limit, Executed::NotExecuted));
        }
        let (Some(run), call) = (context.info.run(), context.info.call()) else {
            return Err(ToolError::not_done("there is no run here that could have a child"));
        };
        let (nth, can_pause) = (self.spawned.fetch_add(1, Ordering::Relaxed), setup.can_pause);
        let toolbox = setup.toolbox.lock().unwrap_or_else(PoisonError::into_inner);
        let setup = Setup {
            toolbox: Arc::new(Mutex::new(toolbox.clone())),
            random: setup.random.clone().for_call(context).nth(nth),
            cancel: context.cancel.child(),
            asked_of: setup.asked_of.iter().chain([context.life.asked()]).cloned().collect(),
            depth: setup.depth + 1,
            ledger: Ledger::new(Some(setup.ledger.clone())),
            parent: Some(Parent { run, call }),
            label: context.life.label().kept(),
            seen_by: Some(context.life.clone()),
            can_pause: false,
            ..Setup::clone(setup)
        };
        drop(toolbox);
        Ok(Nested { setup, id: run.child(call, nth), can_pause })
    }

    /// The call waits for an answer that a child of it waits for: it is not over, and is attempted
    /// again where its run is resumed. Says whether it can wait.
    pub(crate) fn park(&self) -> bool {
        let can_pause = self.setup.as_ref().is_some_and(|setup| setup.can_pause);
        match &self.context {
            Some(context) if can_pause => {
                context.life.park();
                true
            }
            Some(_) | None => false,
        }
    }
}

impl Grant for Spawn {
    const RECURSIVE: bool = true;

    fn for_call(mut self, context: &CallContext) -> Spawn {
        self.context = Some(context.clone());
        self.spawned = Arc::default();
        self
    }
}

/// A child run that has not started: it can be narrowed, and never widened.
pub struct Nested {
    setup: Setup,
    /// Its id, where a later attempt at the call must find it again.
    id: RunId,
    /// Whether it could wait for an answer, if a later attempt finds it again.
    can_pause: bool,
}

/// A child that an earlier attempt at its call may have begun.
pub(crate) enum TakenUp {
    /// None had.
    Fresh(Child),
    /// It goes on from what its tape says.
    Begun(Child),
    /// It came to its end, and this is what it came to.
    Ended { status: &'static str, stop: String, answer: Option<Arc<str>> },
}

impl Nested {
    /// Keeps only the tools that pass.
    #[must_use]
    pub fn only(self, keep: impl Fn(&Spec) -> bool) -> Nested {
        let mut toolbox = self.setup.toolbox.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = toolbox.tools().map(|tool| tool.spec()).filter(|spec| !keep(spec));
        let dropped: Vec<_> = dropped.map(|spec| spec.name.clone()).collect();
        for name in dropped {
            toolbox.remove(&name);
        }
        drop(toolbox);
        self
    }

    /// Adds a policy: a call runs only if the parent's policy and this one let it.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy + 'static) -> Nested {
        self.setup.policy = Arc::new(Both(self.setup.policy, policy));
        self
    }

    /// Lets it do no more than this, and no more than its parent.
    #[must_use]
    pub fn rights(mut self, rights: &Rights) -> Nested {
        let narrowed = self.setup.rights.take().map(|before| before.meet(rights));
        self.setup.rights = Some(narrowed.unwrap_or_else(|| rights.clone()));
        self
    }

    /// Lowers limits. Where the parent's are lower, they hold.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Nested {
        self.setup.limits = self.setup.limits.meet(limits);
        self.setup.reading.limits = self.setup.limits.arguments;
        self
    }

    /// Starts it.
    pub fn start(self) -> Child {
        Child(Run::of(self.setup))
    }

    /// Starts it, or goes on with it where an earlier attempt at its call had begun it. So it can
    /// wait for answers beyond the life of this process, as far as its parents can.
    pub(crate) async fn take_up(mut self) -> Result<TakenUp, ResumeError> {
        self.setup.can_pause = self.can_pause;
        let records = all_records(&*self.setup.tape, self.id).await?;
        let Some(last) = records.last() else {
            self.setup.id = Some(self.id);
            return Ok(TakenUp::Fresh(self.start()));
        };
        let past = Past::of(&records)?;
        if past.opening.parent != self.setup.parent {
            return Err(ResumeError::Unknown { run: self.id });
        }
        // What it saw and spent then, the call has seen and its children have spent.
        if let Some(call) = &self.setup.seen_by {
            past.label.iter().for_each(|label| call.saw(label));
            call.spend(&past.spent);
        }
        if let Event::RunEnded { status, stop, answer } = &last.event {
            self.count(&past);
            let (stop, answer) = (stop.clone(), answer.clone());
            return Ok(TakenUp::Ended { status, stop, answer });
        }
        let id = self.id;
        Ok(TakenUp::Begun(Child(Run::of(self.setup).resume(id).await?)))
    }

    /// Counts what it used up, for everybody above.
    fn count(&self, past: &Past) {
        let Setup { budget, spending, ledger, .. } = &self.setup;
        if let Some(budget) = budget {
            budget.restore(&past.counted, past.bytes);
        }
        if let Some(spending) = spending {
            spending.count(&past.spent);
        }
        for said in &past.said {
            if let Said::Turn(turn, _) = said {
                let TurnEvent { input_tokens, output_tokens, cached_tokens, .. } = *turn;
                ledger.add(Usage { input_tokens, output_tokens, cached_tokens }, 0);
            }
        }
    }
}

/// A run that a tool started. It is used like a [`Run`], but cannot be set up again, takes no tool
/// (`add`), and answers no offer of more than it has.
pub struct Child(Run);

impl Deref for Child {
    type Target = Run;

    fn deref(&self) -> &Run {
        &self.0
    }
}

impl Borrow<Run> for Child {
    fn borrow(&self) -> &Run {
        &self.0
    }
}

impl Run {
    /// Whether a call of another run started it.
    pub(crate) fn is_nested(&self) -> bool {
        self.setup.parent.is_some()
    }
}

/// Two policies, of which the stricter decides.
struct Both<P>(Arc<dyn Policy>, P);

impl<P: Policy> Policy for Both<P> {
    fn judge(&self, call: &Call) -> Verdict {
        match (self.0.judge(call), self.1.judge(call)) {
            (deny @ Verdict::Deny { .. }, _) | (_, deny @ Verdict::Deny { .. }) => deny,
            (ask @ Verdict::Ask { exact: true, .. }, _)
            | (_, ask @ Verdict::Ask { exact: true, .. })
            | (ask @ Verdict::Ask { .. }, _)
            | (_, ask @ Verdict::Ask { .. }) => ask,
            // Both must know of the label, and the parent of the tool.
            (
                Verdict::Allow { despite_label: first, names_tool, .. },
                Verdict::Allow { rule, despite_label, .. },
            ) => Verdict::Allow { rule, despite_label: despite_label && first, names_tool },
        }
    }

    fn version(&self) -> Hash {
        let both = [self.0.version(), self.1.version()];
        Hash::of(Domain::Policy, &both.map(|version| *version.as_bytes()).concat())
    }
}
