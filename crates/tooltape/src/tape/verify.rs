//! Checking a tape: its chain, its order, its hashes, and what it refers to.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{Event, Head, Key, Line, Record, TapeError};
use crate::approve::Question;
use crate::canon::{Domain, Hash};
use crate::fault::{CLIPPED, Executed, FaultKind};
use crate::id::{CallNo, RunId, ToolId};
use crate::proposal::Facts;
use crate::reply::Reply;

/// Checks the lines of runs, one after the other, and says what they amount to.
///
/// Lines of several runs may be mixed; those of one run come in their order. The first thing that
/// is wrong is an error with its place; what came before it is sound.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tooltape::{MemoryTape, Proposal, Run, Toolbox, Verify, builtin};
///
/// let tape = MemoryTape::default();
/// let run = Run::new(&Toolbox::new(builtin::tools()).unwrap()).tape(tape.clone());
/// run.batch(vec![Proposal::new("c1", "hash", r#"{"text":""}"#)]).await.unwrap();
/// let mut verify = Verify::default();
/// for line in tape.lines(run.id()).unwrap() {
///     verify.line(&line).unwrap();
/// }
/// let verified = verify.end(&[]).unwrap();
/// assert_eq!((verified.runs, verified.calls), (1, 1));
/// # });
/// ```
#[derive(Default)]
pub struct Verify {
    reels: BTreeMap<RunId, Reel>,
    verified: Verified,
    definitions: BTreeMap<ToolId, Hash>,
}

/// What a sound tape amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verified {
    /// How many runs it has.
    pub runs: u64,
    /// How many records.
    pub records: u64,
    /// How many calls.
    pub calls: u64,
    /// How many records were erased to their hashes, so that nobody can check what they said.
    pub erased: u64,
    /// The calls that started and did not settle.
    pub in_doubt: Vec<InDoubt>,
    /// The large outputs that it refers to.
    #[serde(skip)]
    pub artifacts: BTreeSet<Hash>,
    /// Tools that were declared differently under one name and version.
    pub redefined: BTreeSet<String>,
    /// How each run ends.
    #[serde(skip)]
    pub heads: BTreeMap<RunId, Head>,
}

/// A call of which nobody knows what became.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InDoubt {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallNo,
}

/// The first thing that is wrong with a tape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[non_exhaustive]
pub struct Damage {
    /// The run, where it is known.
    pub run: Option<RunId>,
    /// The record, counted from 0.
    pub seq: u64,
    /// The line of the file, counted from 1, where it is a file.
    pub line: Option<u64>,
    /// What is wrong.
    pub why: String,
    /// How many records before it are sound, and can still be read.
    pub sound: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        if let Some(run) = self.run {
            write!(f, "run {run}, ")?;
        }
        if self.run.is_none() && self.line.is_none() {
            return f.write_str(&self.why);
        }
        write!(f, "record {}: {} ({} records before it are sound)", self.seq, self.why, self.sound)
    }
}

/// One run as far as it was checked.
struct Reel {
    head: Head,
    /// The hash of each record, which is what an exported head may name.
    hashes: Vec<Hash>,
    /// Whether some record was erased, so that the order of the rest says less.
    erased: bool,
    calls: BTreeMap<CallNo, Progress>,
    answered: BTreeSet<(CallNo, u32)>,
    /// Whether it ended, and nothing has gone on since.
    ended: bool,
    /// The version of the policy that it goes on with.
    policy: Option<Hash>,
}

/// How far a call has come.
#[derive(Clone, Default)]
struct Progress {
    /// The hash of its arguments as the model wrote them, where the tape has all of them.
    raw_hash: Option<Hash>,
    /// Whether the last judgement lets it start, if somebody's yes is not needed or was given.
    judged: bool,
    asked: bool,
    /// Whether it was judged since it started last.
    fresh: bool,
    /// The call as it was judged last, and by which rule.
    facts: Option<(Arc<Facts>, Cow<'static, str>)>,
    /// The last question.
    question: Option<Box<Question>>,
    /// The last question that was answered with yes.
    yes: Option<Box<Question>>,
    /// The attempt after which somebody said that another is to be made.
    again: Option<u32>,
    attempts: u32,
    settled: bool,
}

impl Progress {
    /// Whether it may start: nobody had to be asked, or somebody said yes to just this.
    fn may_start(&self, record: &Record, policy: Option<Hash>) -> bool {
        let approved = || {
            let (Some(yes), Some((facts, rule))) = (&self.yes, &self.facts) else { return false };
            let in_time = !self.fresh || record.at_us < yes.until_us;
            in_time
                && yes.rule == *rule
                && policy.is_none_or(|policy| yes.policy == policy)
                && yes.approval == yes.approval_of(record.run, facts)
        };
        self.judged && (!self.asked || self.again == Some(self.attempts) || approved())
    }

    /// Whether a question is about the call as it was judged, and an answer to the last question.
    fn asked(&self, record: &Record, erased: bool) -> Result<(), String> {
        let call = record.event.call().unwrap_or(CallNo(0));
        match &record.event {
            Event::CallAsked(question) => {
                let last = self.question.as_ref().map_or(0, |last| last.question);
                let binds = self.facts.as_ref().is_some_and(|(facts, _)| {
                    question.approval_of(record.run, facts) == question.approval
                });
                let is_due = self.asked || question.attempt.is_some();
                match (question.question == last + 1 && binds && is_due) || erased {
                    true => Ok(()),
                    false => Err(format!("a question about another call than {call} as judged")),
                }
            }
            Event::Answered { question, approval, .. } => {
                let last = self.question.as_ref().map(|it| (it.question, it.approval));
                match last == Some((*question, *approval)) || erased {
                    true => Ok(()),
                    false => Err(format!("an answer about call {call} to what nobody asked")),
                }
            }
            _ => Ok(()),
        }
    }

    /// Takes in what is no key of the run.
    fn take(&mut self, event: &Event) {
        match event {
            Event::Judged { facts, verdict, rule } => {
                (self.judged, self.asked) = (*verdict != "deny", *verdict == "ask");
                (self.facts, self.fresh) = (Some((facts.clone(), rule.clone())), true);
            }
            Event::CallAsked(question) => {
                // Whoever is asked again has not said yes.
                match question.attempt {
                    None => self.yes = None,
                    Some(_) => self.again = None,
                }
                self.question = Some(question.clone());
            }
            Event::Answered { yes, attempt: None, .. } => {
                self.yes = self.question.clone().filter(|_| *yes);
            }
            Event::Answered { yes, attempt, .. } => self.again = attempt.filter(|_| *yes),
            Event::Started { .. } => (self.fresh, self.again) = (false, None),
            _ => {}
        }
    }
}

impl Verify {
    /// Checks the next line of a run.
    pub fn line(&mut self, line: &Line) -> Result<(), Damage> {
        let (run, _) = line.place().map_err(|err| self.damage(None, &err))?;
        let reel = self.reels.entry(run).or_insert_with(|| Reel {
            head: Head::empty(),
            hashes: Vec::new(),
            erased: false,
            calls: BTreeMap::new(),
            answered: BTreeSet::new(),
            ended: false,
            policy: None,
        });
        let seq = reel.head.len;
        match reel.take(line, &mut self.verified, &mut self.definitions) {
            Ok(()) => {
                self.verified.records += 1;
                Ok(())
            }
            Err(err) => Err(Damage { seq, ..self.damage(Some(run), &err) }),
        }
    }

    /// What it all amounts to, if every one of these heads is reached.
    ///
    /// A run that goes on behind its head is sound: heads are exported while it goes on.
    pub fn end(self, heads: &[(RunId, Head)]) -> Result<Verified, Damage> {
        for (run, head) in heads {
            let reel = self.reels.get(run);
            let found = reel.map_or(Head::empty(), |reel| reel.head);
            let at = |len: u64| reel?.hashes.get(usize::try_from(len.checked_sub(1)?).ok()?);
            let reached = *head == Head::empty() || at(head.len) == Some(&head.hash);
            if !reached {
                let why = format!(
                    "it ends at {} records with `{}`, and its head says {} with `{}`: \
                     it was cut off or rewritten",
                    found.len, found.hash, head.len, head.hash
                );
                let err = TapeError::Corrupt { seq: found.len, why };
                return Err(Damage { seq: found.len, ..self.damage(Some(*run), &err) });
            }
        }
        let Verify { reels, mut verified, .. } = self;
        verified.runs = reels.len() as u64;
        for (run, reel) in reels {
            verified.heads.insert(run, reel.head);
            verified.calls += reel.calls.len() as u64;
            let open = reel.calls.iter().filter(|(_, it)| it.attempts > 0 && !it.settled);
            verified.in_doubt.extend(open.map(|(call, _)| InDoubt { run, call: *call }));
        }
        Ok(verified)
    }

    /// How many records were checked.
    pub fn records(&self) -> u64 {
        self.verified.records
    }

    pub(super) fn damage(&self, run: Option<RunId>, err: &TapeError) -> Damage {
        let (seq, why) = match err {
            TapeError::Corrupt { seq, why } => (*seq, why.clone()),
            err => (0, err.to_string()),
        };
        Damage { run, seq, line: None, why, sound: self.verified.records }
    }
}

impl Reel {
    fn take(
        &mut self,
        line: &Line,
        verified: &mut Verified,
        definitions: &mut BTreeMap<ToolId, Hash>,
    ) -> Result<(), TapeError> {
        let head = self.head.then_line(line)?;
        if line.is_erased() {
            (self.erased, self.head) = (true, head);
            self.hashes.push(head.hash);
            verified.erased += 1;
            return Ok(());
        }
        let record = line.record()?;
        self.in_order(&record).map_err(|why| TapeError::Corrupt { seq: record.seq, why })?;
        if let Event::Judged { facts, .. } = &record.event {
            let args = facts.args.as_ref().map(|args| args.as_str().as_bytes());
            if args.is_some_and(|args| Hash::of(Domain::Arguments, args) != facts.args_hash) {
                let why = "its arguments have another hash than it says".to_owned();
                return Err(TapeError::Corrupt { seq: record.seq, why });
            }
            if let (Some(tool), Some(definition)) = (facts.tool(), facts.definition())
                && *definitions.entry(tool.clone()).or_insert(definition) != definition
            {
                verified.redefined.insert(tool.to_string());
            }
        }
        if let Event::Settled(reply) = &record.event {
            if !reply.is_result_hashed() {
                let why = "its result has another hash than it says".to_owned();
                return Err(TapeError::Corrupt { seq: record.seq, why });
            }
            verified.artifacts.extend(reply.artifacts.iter().copied());
        }
        self.head = head;
        self.hashes.push(head.hash);
        Ok(())
    }

    /// Whether the event may follow where the run had ended: what opens it again may, and what
    /// belongs to calls that were open.
    fn goes_on(&mut self, event: &Event) -> Result<(), String> {
        let opens =
            matches!(event, Event::RunResumed { .. } | Event::Asked { .. } | Event::Proposed(_));
        let is_open = |call| self.calls.get(&call).is_some_and(|call| !call.settled);
        let may_follow = matches!(event, Event::Tools { .. }) || event.call().is_some_and(is_open);
        if self.ended && !opens && !may_follow && !self.erased {
            return Err(format!("`{}` behind the end of the run", event.kind()));
        }
        self.ended = match event {
            Event::RunEnded { .. } => true,
            _ => self.ended && !opens,
        };
        Ok(())
    }

    /// Whether the record may stand where it does.
    fn in_order(&mut self, record: &Record) -> Result<(), String> {
        let event = &record.event;
        let opens = matches!(event, Event::RunStarted { .. });
        if opens != (record.seq == 0) && !self.erased {
            return Err("a run begins with `run.started`, once".to_owned());
        }
        self.goes_on(event)?;
        if let Event::RunStarted { policy, .. } = event {
            self.policy = policy.as_deref().copied();
        }
        if let Event::RunResumed { policy, .. } = event {
            self.policy = *policy;
        }
        let Some(no) = event.call() else { return Ok(()) };
        if let Event::Proposed(facts) = event {
            let raw_hash = raw_hash(&facts.arguments);
            return match self.calls.insert(no, Progress { raw_hash, ..Progress::default() }) {
                None => Ok(()),
                Some(_) => Err(format!("call {no} was proposed before")),
            };
        }
        if self.erased {
            self.calls.entry(no).or_insert(Progress { judged: true, ..Progress::default() });
        }
        let Some(call) = self.calls.get_mut(&no) else {
            return Err(format!("call {no} was never proposed"));
        };
        match event.key() {
            Some(key @ Key::Started(_, attempt)) => {
                let follows = attempt == call.attempts + 1 || self.erased;
                let judged = call.may_start(record, self.policy) || self.erased;
                if !judged || call.settled || !follows {
                    return Err(format!("`{key}` out of turn"));
                }
                call.attempts = attempt;
            }
            Some(Key::Settled(_)) if call.settled => {
                return Err(format!("call {no} was settled before"));
            }
            Some(Key::Settled(_)) => {
                call.settled = true;
                if let Event::Settled(reply) = event
                    && !self.erased
                {
                    if reply.executed == Executed::Executed && call.attempts == 0 {
                        return Err(format!("call {no} was executed and never started"));
                    }
                    let judged = call.facts.as_ref().map(|(facts, _)| facts.args_hash);
                    let args_hash = judged.or(call.raw_hash.filter(|_| is_refused(reply)));
                    if args_hash.is_some_and(|hash| hash != reply.args_hash) {
                        return Err(format!("call {no} settles with other arguments"));
                    }
                }
            }
            Some(Key::Answered(_, question)) if !self.answered.insert((no, question)) => {
                return Err(format!("question {question} about call {no} was answered before"));
            }
            Some(Key::Answered(..)) | None => call.asked(record, self.erased)?,
        }
        call.take(event);
        Ok(())
    }
}

/// The hash of arguments as a model wrote them, unless only the beginning of them was kept.
fn raw_hash(arguments: &str) -> Option<Hash> {
    let is_whole = !arguments.ends_with(CLIPPED);
    is_whole.then(|| Hash::of(Domain::RawArguments, arguments.as_bytes()))
}

/// Whether the arguments of a call that nobody judged were refused.
fn is_refused(reply: &Reply) -> bool {
    reply.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Repair)
}
