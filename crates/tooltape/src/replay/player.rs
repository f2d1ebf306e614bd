//! Goes along the records of a run, and takes every call through its stages again.

mod ends;
mod told;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ends::Ended;

use super::divergence::Stage;
use super::fate::{Fate, added_later, as_decided, counts, fates};
use super::report::Report;
use super::turns::Turns;
use super::{Plan, ReplayError, Verdicts};
use crate::call::Call;
use crate::canon::Hash;
use crate::fault::{BoundKind, Executed, Fault};
use crate::id::{CallNo, ToolId};
use crate::model::again;
use crate::policy::{Answer, Halted, Judged, Pending, Permit, Verdict};
use crate::proposal::{Facts, Proposal};
use crate::reply::{Draft, FaultView, refusal};
use crate::run::{Opening, Run};
use crate::tape::{Event, MemoryTape, Record, TapeError};
use crate::tool::Registered;
use crate::toolbox::{Offer, Toolbox};

/// How far a call has come. Each stage takes what the one before it made, as in every run.
enum Stand {
    Resolved(Call),
    /// It will not run; without a fault, the tape says why.
    Refused(Draft, Option<Fault>),
    Pending(Pending),
    Permitted(Permit),
    Started {
        permit: Permit,
        attempt: u32,
        clock_us: Option<u64>,
    },
    /// It differs, or cannot be known: what follows is taken from the tape.
    Served,
}

pub(super) struct Player<'r> {
    run: Run,
    /// The tools at this place of the record, and those that come later or came before.
    toolbox: Toolbox,
    aside: HashMap<Box<str>, Arc<Registered>>,
    offer: Offer,
    verdicts: Verdicts,
    plan: Plan,
    fates: HashMap<CallNo, Fate>,
    calls: BTreeMap<CallNo, Stand>,
    /// What was proposed, and whether all of it is known.
    proposals: HashMap<CallNo, (Proposal, bool)>,
    answers: HashMap<CallNo, Answer>,
    /// The calls that spend, and are not over.
    spending: HashMap<CallNo, Facts>,
    /// What the last attempt of each call said while it ran, as it was recorded.
    said: HashMap<CallNo, Vec<Record>>,
    /// What calls say that are executed again, and how much of it was looked at.
    says: MemoryTape,
    heard: u64,
    turns: Turns,
    nested: bool,
    calls_max: u64,
    report: Report,
    first: &'r Record,
}

impl<'r> Player<'r> {
    pub(super) fn new(
        records: &'r [Record],
        mut toolbox: Toolbox,
        run: Run,
        verdicts: Verdicts,
        plan: Plan,
    ) -> Result<Player<'r>, ReplayError> {
        let first = records.first().ok_or(ReplayError::Empty)?;
        let opening = Opening::of(first)?;
        let nested = opening.depth > 0;
        let mut aside = HashMap::new();
        for name in added_later(records) {
            if let Some(tool) = toolbox.get(&name).cloned() {
                toolbox.remove(&name);
                aside.insert(name, tool);
            }
        }
        let report = Report {
            run: first.run,
            records: 0,
            calls: 0,
            executed: 0,
            served: 0,
            unsettled: Vec::new(),
            divergences: Vec::new(),
            missing_artifacts: Vec::new(),
            live: plan.live.clone(),
            tape: MemoryTape::default(),
        };
        let says = MemoryTape::default();
        Ok(Player {
            run: run.begun_like(opening, says.clone()),
            offer: toolbox.offer_all(),
            toolbox,
            aside,
            verdicts,
            plan,
            fates: fates(records),
            calls: BTreeMap::new(),
            proposals: HashMap::new(),
            answers: HashMap::new(),
            spending: HashMap::new(),
            said: HashMap::new(),
            says,
            heard: 0,
            turns: Turns::default(),
            nested,
            calls_max: 0,
            report,
            first,
        })
    }

    /// Plays one record. Says whether to go on.
    pub(super) async fn step(&mut self, record: &Record) -> Result<bool, ReplayError> {
        if record.seq > *self.plan.within.end() {
            return Ok(false);
        }
        let place = self.report.records;
        if (record.seq, record.run) != (place, self.first.run) {
            let why = format!("record {} of run {} stands here", record.seq, record.run);
            return Err(TapeError::Corrupt { seq: place, why }.into());
        }
        self.report.records += 1;
        let (now, stage) = match &record.event {
            Event::RunStarted { .. } => (None, Stage::Run),
            Event::Asked { text } => (self.turns.asked(text), Stage::Model),
            Event::Turn(turn) => (self.turns.turn(again(turn), self.calls_max), Stage::Model),
            Event::Said { text } => (self.turns.said(text), Stage::Model),
            Event::Nudged(nudge) => (self.turns.said(&nudge.text), Stage::Model),
            Event::Recalled { messages } => (self.turns.recalled(messages), Stage::Model),
            Event::Tools { added, removed } => {
                let removed = removed.as_ref().map(|name| name.as_str());
                (self.change_tools(added.as_ref(), removed), Stage::Resolve)
            }
            Event::Proposed(facts) => (self.propose(facts), Stage::Resolve),
            Event::Judged { facts, verdict, rule } => self.judge(facts, verdict, rule),
            Event::Answered { call, yes, told, attempt, .. } => {
                let now = self.answer(*call, *yes, told.as_deref());
                // Whether to try again is asked whatever the policy says.
                (now.filter(|_| attempt.is_none()), Stage::Policy)
            }
            Event::Started { call, attempt, clock_us } => {
                self.said.remove(call);
                (self.start(*call, *attempt, *clock_us), Stage::Policy)
            }
            Event::Settled(reply) => match self.settle(reply).await? {
                Ended::Alike(now, stage) => (now, stage),
                Ended::SaidOther(then, now) => {
                    let goes_on = self.compare(&then, Some(now), Stage::Tool);
                    // Where the rest is compared all the same, it is taken from the tape.
                    return Ok(goes_on && self.compare(record, None, Stage::Tool));
                }
            },
            Event::RunEnded { status, stop, .. } => {
                let now = self.end_run(status, stop);
                self.turns.run_ended();
                (now, Stage::Model)
            }
            Event::RunResumed { rights, .. } => {
                rights.iter().for_each(|rights| self.run.hold_again(rights));
                self.resume();
                (None, Stage::Run)
            }
            Event::Progress { call, .. }
            | Event::Emitted { call, .. }
            | Event::State { call, .. }
            | Event::Stored { call, .. } => {
                self.said.entry(*call).or_default().push(record.clone());
                (None, Stage::Tool)
            }
            Event::RunPaused { .. }
            | Event::CallAsked(_)
            | Event::Reconciled { .. }
            | Event::Retried { .. }
            | Event::Abandoned { .. } => (None, Stage::Tool),
        };
        Ok(self.compare(record, now, stage))
    }

    /// What was found.
    pub(super) fn end(self) -> Report {
        let mut report = self.report;
        report.unsettled = self.calls.into_keys().collect();
        report
    }

    /// A tool came or went. What came then must be there now.
    fn change_tools(&mut self, added: Option<&ToolId>, removed: Option<&str>) -> Option<Event> {
        let mut now = None;
        if let Some(tool) = added {
            let back = self.aside.remove(tool.name().as_str());
            let is_back = back.is_some_and(|back| self.toolbox.add(back.tool().clone()).is_ok());
            let there = self.toolbox.get(tool.name().as_str()).map(|tool| tool.id().clone());
            if !is_back || there.as_ref() != Some(tool) {
                now = Some(Event::Tools { added: there.filter(|_| is_back), removed: None });
            }
        }
        if let Some(name) = removed
            && let Some(tool) = self.toolbox.get(name).cloned()
        {
            self.toolbox.remove(name);
            self.aside.insert(name.into(), tool);
        }
        self.offer = self.toolbox.offer_all();
        now
    }

    fn propose(&mut self, recorded: &Facts) -> Option<Event> {
        let no = recorded.call;
        self.calls_max = self.calls_max.max(no.0);
        let own = self.turns.proposal(no);
        let whole = own.is_some();
        let proposal = own.unwrap_or_else(|| {
            let (id, name) = (recorded.id.clone(), recorded.name.clone());
            Proposal::new(id, name, recorded.arguments.clone())
        });
        // What is no more than the beginning of a long text cannot be read again.
        let cut = !whole && recorded.arguments.len() + 8 >= self.run.argument_bytes();
        let stand = match cut {
            true => Stand::Served,
            false => self.resolve(no, proposal.clone(), whole),
        };
        let event = match &stand {
            Stand::Resolved(call) => Some(Event::Proposed(Arc::new(call.facts().clone()))),
            Stand::Refused(draft, _) => Some(Event::Proposed(Arc::new(Facts::clone(draft)))),
            Stand::Pending(_) | Stand::Permitted(_) | Stand::Started { .. } | Stand::Served => None,
        };
        self.proposals.insert(no, (proposal, whole));
        self.calls.insert(no, stand);
        event
    }

    /// Resolves a proposal against what was on offer then. Where it was not `whole`, what a
    /// provider's layer said of its arguments is known only from its reply.
    fn resolve(&self, no: CallNo, proposal: Proposal, whole: bool) -> Stand {
        let fault = self.fates.get(&no).and_then(|fate| fate.fault.as_ref());
        let code = fault.map(|fault| &*fault.code);
        let (limited, offer) = match code {
            Some("bound.exceeded") => (fault.and_then(|fault| fault.bound).filter(counts), None),
            // Which tools a turn showed is the host's choice.
            Some("tool.not_offered") => {
                let hidden = |tool: &Arc<Registered>| tool.id().name().as_str() != &*proposal.name;
                (None, Some(self.offer.only(hidden)))
            }
            Some(_) | None => (None, None),
        };
        let offer = offer.as_ref().unwrap_or(&self.offer);
        let resolved = self.run.resolve_again(no, offer, proposal.clone(), limited);
        let unparsed = |it: &FaultView| it.message.strip_prefix(MALFORMED).map(str::to_owned);
        let malformed = fault.filter(|it| !whole && &*it.code == "args.malformed");
        if let Some(fault) = malformed
            && let Some(rest) = unparsed(fault)
            && resolved.as_ref().err().is_none_or(|(_, it)| it.to_string() != *fault.message)
        {
            let error = rest.rsplit_once("; you sent `").map_or("", |(error, _)| error);
            let Proposal { id, name, .. } = proposal.clone();
            let unparsed = Proposal::unparsed(id, name, proposal.text().clone(), error);
            return stand(self.run.resolve_again(no, offer, unparsed, None), limited);
        }
        // Which tools a child has is its parent's choice.
        if self.nested && code == Some("tool.unknown") {
            return resolved.map_or_else(|it| Stand::Refused(it.0, None), |_| Stand::Served);
        }
        stand(resolved, limited)
    }

    /// A call is over, or is judged anew: what it spends is spent, or was not.
    fn spent(&mut self, call: CallNo, executed: Executed) {
        if let Some(facts) = self.spending.remove(&call) {
            self.run.spent_again(&facts, executed);
        }
    }

    fn judge(&mut self, recorded: &Facts, verdict: &str, rule: &str) -> (Option<Event>, Stage) {
        let no = recorded.call;
        let call = match self.calls.remove(&no) {
            // What the model had been shown is on the tape.
            Some(Stand::Resolved(call)) => call.under(recorded.context_kept().cloned()),
            Some(Stand::Refused(draft, fault)) => {
                // It was judged then, and does not come so far now.
                let reply = fault.map(|fault| refusal(draft, fault));
                self.calls.insert(no, Stand::Served);
                return (reply.map(Event::Settled), Stage::Resolve);
            }
            Some(_) | None => {
                self.calls.insert(no, Stand::Served);
                return (None, Stage::Policy);
            }
        };
        let same_call = recorded.definition() == Some(call.definition())
            && recorded.args_hash == call.args_hash();
        let stage = if same_call { Stage::Policy } else { Stage::Resolve };
        self.spent(no, Executed::NotExecuted);
        let decided = match self.verdicts {
            Verdicts::Today => self.run.judge_again(&call),
            Verdicts::Recorded => as_decided(verdict, rule.to_owned().into()),
        };
        let is_reserved = self.verdicts == Verdicts::Today && !call.facts().spends().is_empty();
        if is_reserved && !matches!(decided, Verdict::Deny { .. }) {
            self.spending.insert(no, call.facts().clone());
        }
        let event = judged(&call, &decided);
        let denied_then = self.verdicts == Verdicts::Recorded && verdict == "deny";
        let stand = match decided.apply(call) {
            Judged::Permitted(permit) => Stand::Permitted(permit),
            Judged::Pending(pending) => Stand::Pending(pending),
            Judged::Refused(refused) => {
                let fault = (!denied_then).then_some(refused.fault);
                Stand::Refused(refused.call.into_draft(), fault)
            }
        };
        self.calls.insert(no, stand);
        (Some(event), stage)
    }

    /// The run was resumed: what was not settled is resolved and judged again.
    fn resume(&mut self) {
        let open: Vec<CallNo> = self.calls.keys().copied().collect();
        for no in open {
            if let Some((proposal, whole)) = self.proposals.get(&no).cloned() {
                let stand = self.resolve(no, proposal, whole);
                self.calls.insert(no, stand);
            }
        }
    }

    /// Somebody answered. Returns what happens now where nobody is asked.
    fn answer(&mut self, no: CallNo, yes: bool, told: Option<&str>) -> Option<Event> {
        let answer = match (yes, told) {
            (true, _) => Answer::Once,
            (false, told) => Answer::Deny(told.unwrap_or_default().to_owned()),
        };
        self.answers.insert(no, answer.clone());
        let (stand, now) = match self.calls.remove(&no) {
            Some(Stand::Pending(pending)) => (answered(pending, answer), None),
            Some(Stand::Permitted(permit)) => {
                let event = Event::Started { call: no, attempt: 1, clock_us: None };
                (Stand::Permitted(permit), Some(event))
            }
            Some(Stand::Refused(draft, Some(fault))) => {
                (Stand::Served, Some(Event::Settled(refusal(draft, fault))))
            }
            // Asked again, since the run was resumed; or known from the tape alone.
            Some(stand) => (stand, None),
            None => (Stand::Served, None),
        };
        self.calls.insert(no, stand);
        now
    }

    /// How far a call has come, where somebody answered before the run was resumed.
    fn take_stand(&mut self, no: CallNo) -> Option<Stand> {
        match (self.calls.remove(&no), self.answers.get(&no)) {
            (Some(Stand::Pending(pending)), Some(answer)) => {
                Some(answered(pending, answer.clone()))
            }
            (stand, _) => stand,
        }
    }

    /// An attempt started. Returns what happens now where none may.
    fn start(&mut self, no: CallNo, attempt: u32, clock_us: Option<u64>) -> Option<Event> {
        let (stand, now) = match self.take_stand(no) {
            Some(Stand::Permitted(permit) | Stand::Started { permit, .. }) => {
                (Stand::Started { permit, attempt, clock_us }, None)
            }
            Some(Stand::Refused(draft, Some(fault))) => {
                (Stand::Served, Some(Event::Settled(refusal(draft, fault))))
            }
            Some(Stand::Pending(pending)) => {
                let event = unanswered(no);
                (Stand::Pending(pending), Some(event))
            }
            Some(stand) => (stand, None),
            None => (Stand::Served, None),
        };
        self.calls.insert(no, stand);
        now
    }

    /// The run ended. Returns how it ends now, where that can be known.
    fn end_run(&self, status: &str, stop: &str) -> Option<Event> {
        let decided_outside = matches!(status, "cancelled" | "failed");
        match self.turns.ended() {
            Some(event) if !decided_outside || matches!(stop, "length" | "refused") => Some(event),
            None if self.turns.is_some() && !decided_outside => {
                Some(super::turns::ending("running", "model", None))
            }
            Some(_) | None => None,
        }
    }
}

fn judged(call: &Call, verdict: &Verdict) -> Event {
    let (facts, rule) = (Arc::new(call.facts().clone()), verdict.rule().clone());
    Event::Judged { facts, verdict: verdict.word(), rule }
}

/// What every message about arguments that could not be parsed begins with.
const MALFORMED: &str = "your JSON was malformed: ";
/// The fault of nobody: its facts are wanted, and nothing else.
const NOBODY: Fault = Fault::Cancelled { executed: Executed::NotExecuted, said: None };

fn answered(pending: Pending, answer: Answer) -> Stand {
    match pending.answer(answer) {
        Ok(permit) => Stand::Permitted(permit),
        Err(Halted::Refused(refused)) => {
            Stand::Refused(refused.call.into_draft(), Some(refused.fault))
        }
        Err(Halted::Parked(_)) => Stand::Served,
    }
}

/// What stands where a call may start only once somebody said yes.
fn unanswered(call: CallNo) -> Event {
    let approval = Hash::from([0; 32]);
    let (yes, holds, told, attempt) = (false, "once", None, None);
    Event::Answered { call, question: 1, approval, yes, holds, told, attempt, by: None }
}

fn stand(resolved: Result<Call, (Draft, Fault)>, limited: Option<BoundKind>) -> Stand {
    match resolved {
        Ok(call) => Stand::Resolved(call),
        Err((draft, Fault::Exceeded(_))) if limited.is_some() => Stand::Refused(draft, None),
        Err((draft, fault)) => Stand::Refused(draft, Some(fault)),
    }
}
