//! What a run is set up with before it begins, and what its children inherit.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::budget::Budget;
use super::ledger::Ledger;
use super::past::Past;
use super::pools::Tree;
use super::spending::Spending;
use super::taint::{Shown, Taint};
use super::{Run, RunLimits};
use crate::call::Call;
use crate::fault::FaultKind;
use crate::fault::ToolError;
use crate::grant::{Asked, Clock, Grant, GrantMap, Life, Random, Token};
use crate::id::{Name, RunId};
use crate::label::{Label, joined};
use crate::perform::{Layer, Layered, Live, Perform, Spans, Stages};
use crate::policy::{Answer, Approver, Pending, Policy, Rules};
use crate::reply::{Framing, Redactor};
use crate::right::{Holding, Hosts, Rights};
use crate::sync::Mutex;
use crate::tape::{MemoryTape, Parent, Recording, Tape};
use crate::tool::{BoxFuture, Output};
use crate::toolbox::{Reading, Repairs, Toolbox};

/// What a run is set up with.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) id: Option<RunId>,
    /// What it did before, where it goes on.
    pub(super) past: Option<Arc<Past>>,
    pub(super) toolbox: Arc<Mutex<Toolbox>>,
    pub(super) grants: GrantMap,
    /// What the run may do, where the host says so.
    pub(super) rights: Option<Rights>,
    /// When it may do nothing any more, since the Unix epoch.
    pub(super) not_after_us: Option<u64>,
    /// What it may do no more than, whoever says more.
    pub(super) narrowed: Vec<Rights>,
    /// What its parent holds, where it has one.
    pub(super) holding: Option<Holding>,
    /// What its parent may spend, where it has one.
    pub(super) spending: Option<Arc<Spending>>,
    /// What its models and those below it cost.
    pub(super) ledger: Arc<Ledger>,
    pub(super) policy: Arc<dyn Policy>,
    pub(super) approver: Option<Arc<Approver>>,
    pub(super) tape: Recording,
    pub(super) performer: Layered,
    pub(super) stages: Stages,
    pub(super) spans: Spans,
    pub(super) reading: Reading,
    /// The kinds of fault that end the run.
    pub(super) hard: Vec<FaultKind>,
    pub(super) redactor: Redactor,
    pub(super) framing: Framing,
    pub(super) sequential: bool,
    pub(super) limits: RunLimits,
    pub(super) quotas: BTreeMap<Name, u64>,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) thread: Option<Arc<str>>,
    pub(super) note: Option<Arc<Value>>,
    pub(super) cancel: Token,
    pub(super) tree: Arc<Tree>,
    pub(super) budget: Option<Arc<Budget>>,
    /// Whose clocks stand still too while somebody is asked.
    pub(super) asked_of: Vec<Arc<Asked>>,
    pub(super) depth: u32,
    pub(super) parent: Option<Parent>,
    /// Whether its calls can wait for answers beyond the life of this process.
    pub(super) can_pause: bool,
    /// What is not declared counts as the worst.
    pub(super) strict: bool,
    /// The label of what the model is shown first.
    pub(super) label: Option<Arc<Label>>,
    /// The call that started the run, which sees what the run sees.
    pub(super) seen_by: Option<Arc<Life>>,
    pub(super) taint: Taint,
}

/// What happens when a model asks badly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// It is told what to mend, and may ask again.
    #[default]
    Allowed,
    /// It gets its reply, and the run ends.
    Forbidden,
}

impl Setup {
    pub(super) fn new(toolbox: &Toolbox) -> Setup {
        Setup {
            id: None,
            past: None,
            toolbox: Arc::new(Mutex::new(toolbox.clone())),
            grants: GrantMap::default(),
            rights: None,
            not_after_us: None,
            narrowed: Vec::new(),
            holding: None,
            ledger: Ledger::new(None),
            spending: None,
            policy: Arc::new(Rules::allow_reads()),
            approver: None,
            tape: Recording::new(MemoryTape::default()),
            performer: Layered::new(Live),
            stages: Stages::default(),
            spans: Spans::default(),
            reading: Reading::default(),
            hard: Vec::new(),
            redactor: Redactor::default(),
            framing: Framing::default(),
            sequential: false,
            limits: RunLimits::default(),
            quotas: BTreeMap::new(),
            clock: Clock::system(),
            random: Random::system(),
            thread: None,
            note: None,
            cancel: Token::default(),
            tree: Tree::new(),
            budget: None,
            asked_of: Vec::new(),
            depth: 0,
            parent: None,
            can_pause: true,
            strict: false,
            label: None,
            seen_by: None,
            taint: Taint::default(),
        }
    }
}

impl Run {
    /// Hands the run's tools a value that they may name.
    #[must_use]
    pub fn grant(mut self, grant: impl Grant) -> Run {
        self.setup.grants.insert(grant);
        self
    }

    /// Sets what the run may do. Otherwise that is what its grants
    /// [confer](crate::Grant::confers).
    ///
    /// A call whose tool needs a right that the run does not hold is denied, whatever the policy
    /// says.
    ///
    /// ```
    /// use tooltape::{Rights, Run, Toolbox, builtin};
    ///
    /// let rights: Rights = "fs:read:src\nnet:get:api.example.com".parse().unwrap();
    /// let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).rights(rights);
    /// ```
    #[must_use]
    pub fn rights(mut self, rights: Rights) -> Run {
        self.setup.rights = Some(rights);
        self
    }

    /// Lets the run do no more than this, whatever its grants confer and its rights are.
    #[must_use]
    pub fn narrowed(mut self, rights: Rights) -> Run {
        self.setup.narrowed.push(rights);
        self
    }

    /// Replaces the policy, which allows reads.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy + 'static) -> Run {
        self.setup.policy = Arc::new(policy);
        self
    }

    /// Sets who is asked. Where nobody is, a call that must be asked about is denied.
    #[must_use]
    pub fn approver(
        mut self,
        approver: impl for<'a> Fn(&'a Pending) -> BoxFuture<'a, Answer> + Send + Sync + 'static,
    ) -> Run {
        self.setup.approver = Some(Arc::new(approver));
        self
    }

    /// Lets the run pause where somebody must be asked: the question waits on the tape, and
    /// [`answer_question`](crate::answer_question) answers it there, perhaps from another process.
    #[must_use]
    pub fn pausing(self) -> Run {
        self.approver(|_| Box::pin(async { Answer::Later }))
    }

    /// Replaces the tape, which is in memory.
    #[must_use]
    pub fn tape(mut self, tape: impl Tape + 'static) -> Run {
        self.setup.tape = Recording::new(tape);
        self
    }

    /// Replaces the performer, which runs the tools.
    #[must_use]
    pub fn performer(mut self, performer: impl Perform + 'static) -> Run {
        self.setup.performer = self.setup.performer.around(performer);
        self
    }

    /// Puts a layer around the performer, inside the layers that are there.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer + 'static) -> Run {
        self.setup.performer = self.setup.performer.with(layer);
        self
    }

    /// Lets the host change a call's arguments before it is limited, hashed and judged.
    ///
    /// What a hook returns is resolved again, and the tape says that the arguments were prepared;
    /// `None` changes nothing. It runs before the calls of a batch are put in order, so it must not
    /// block. Hooks run in the order of registration, each on what the one before it made.
    ///
    /// ```
    /// use tooltape::{Run, Toolbox, builtin, serde_json::json};
    ///
    /// let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).prepare(|call| {
    ///     (call.tool().name().as_str() == "echo").then(|| json!({ "text": "hello" }))
    /// });
    /// ```
    #[must_use]
    pub fn prepare(mut self, hook: impl Fn(&Call) -> Option<Value> + Send + Sync + 'static) -> Run {
        self.setup.stages.prepare.push(Arc::new(hook));
        self
    }

    /// Ends all rights of the run and its children at a time, in microseconds since the Unix epoch:
    /// they are good then, and not after. Handles that tools hold already ask whenever they are
    /// used.
    #[must_use]
    pub fn rights_until(mut self, not_after_us: u64) -> Run {
        self.setup.not_after_us = Some(not_after_us);
        self
    }

    /// Takes what a tool does not declare for the worst that it could be.
    ///
    /// A tool that declares nothing, that wants a confirmation, or that does what it names no right
    /// for, is asked about, whatever the policy allows, unless that
    /// [names the tool](crate::Verdict::allow_tool). What comes from elsewhere counts as untrusted.
    #[must_use]
    pub fn strict(mut self) -> Run {
        self.setup.strict = true;
        self
    }

    /// Says whom what the model is shown first may come from, and whom it is not for: a ticket that
    /// anybody may have written, say.
    #[must_use]
    pub fn labelled(mut self, label: Label) -> Run {
        self.setup.label = joined(self.shown.label().as_ref(), label.kept().as_ref());
        self.shown = Shown::new(self.setup.label.clone(), None);
        self
    }

    /// Lets these hosts be told what is not public.
    ///
    /// A model that was shown what is [internal](Label::internal) tells other hosts nothing unless
    /// somebody says yes to exactly that; one that was shown a [secret](Label::secret), nothing.
    #[must_use]
    pub fn may_tell(mut self, hosts: Hosts) -> Run {
        self.setup.taint.told.push(hosts);
        self
    }

    /// Lets the host look at each attempt once its start is on the tape, and refuse it.
    ///
    /// Nothing has happened then, whatever kind of error it refuses with. The layers come after it.
    #[must_use]
    pub fn before(
        mut self,
        hook: impl Fn(&Call) -> Result<(), ToolError> + Send + Sync + 'static,
    ) -> Run {
        self.setup.stages.before.push(Arc::new(hook));
        self
    }

    /// Lets the host change what a tool returned, before its output schema checks it.
    ///
    /// The tool has run by then, whatever kind of error the hook fails with.
    #[must_use]
    pub fn after(
        mut self,
        hook: impl Fn(&Call, Output) -> Result<Output, ToolError> + Send + Sync + 'static,
    ) -> Run {
        self.setup.stages.after.push(Arc::new(hook));
        self
    }

    /// Puts the arguments and results of calls into their `tracing` spans, which otherwise leave
    /// them out.
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    #[must_use]
    pub fn spans_with_content(mut self) -> Run {
        self.setup.spans.content = true;
        self
    }

    /// Allows repairs of arguments. None are made unless they are named here.
    #[must_use]
    pub fn repairs(mut self, repairs: Repairs) -> Run {
        self.setup.reading.repairs = repairs;
        self
    }

    /// Sets what happens when a model asks badly.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Run {
        match recovery {
            Recovery::Allowed => self,
            Recovery::Forbidden => self.hard([FaultKind::Repair]),
        }
    }

    /// Makes faults of these kinds end the run, beside those that always do. The call still gets
    /// its reply, and so does every other call of its batch.
    #[must_use]
    pub fn hard(mut self, kinds: impl IntoIterator<Item = FaultKind>) -> Run {
        self.setup.hard.extend(kinds);
        self
    }

    /// Replaces the limits.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Run {
        self.setup.reading.limits = limits.arguments;
        self.setup.limits = limits;
        self
    }

    /// Replaces the clock, which is the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Run {
        self.setup.clock = clock;
        self
    }

    /// Replaces the randomness, which is the machine's.
    #[must_use]
    pub fn random(mut self, random: Random) -> Run {
        self.setup.random = random;
        self
    }

    /// Sets the run's id, which is otherwise made when the run begins. For hosts that prepare
    /// something under that id before.
    #[must_use]
    pub fn known_as(mut self, id: RunId) -> Run {
        self.setup.id = Some(id);
        self
    }

    /// Names the thread that the run belongs to, such as a conversation.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<Arc<str>>) -> Run {
        self.setup.thread = Some(thread.into());
        self
    }

    /// Keeps a note of the host's with the run, in its first record.
    #[must_use]
    pub fn note(mut self, note: Value) -> Run {
        self.setup.note = Some(Arc::new(note));
        self
    }

    /// Makes every batch run its calls one after the other.
    #[must_use]
    pub fn sequential(mut self) -> Run {
        self.setup.sequential = true;
        self
    }

    /// Sets how many calls of one tool the run and its children may make.
    #[must_use]
    pub fn quota(mut self, tool: Name, calls: u64) -> Run {
        self.setup.quotas.insert(tool, calls);
        self
    }
}
