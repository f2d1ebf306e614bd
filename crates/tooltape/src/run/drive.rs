//! Drives a batch: each call as soon as the order lets it, and every call to its reply.

use std::collections::VecDeque;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::path::Step;
use super::trail::{Parked, Trail};
use super::{Run, RunError, Scope, cancelled};
use crate::batch::Order;
use crate::id::CallNo;
use crate::reply::Reply;
use crate::tape::Event;

/// Calls that have not begun. Dropping them settles them on the tape: not executed.
struct Queue<'r> {
    run: &'r Run,
    steps: Vec<Option<Step>>,
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        for step in self.steps.drain(..).flatten() {
            self.run.give_up(step);
        }
    }
}

/// What a batch came to.
pub(super) struct Driven {
    /// In the order of their proposals.
    pub(super) replies: Vec<Reply>,
    /// The calls that wait for an answer. What waits for them has not begun.
    pub(super) parked: Vec<Parked>,
}

impl Run {
    /// Answers every step, in their order.
    pub(super) async fn drive(&self, mut steps: Vec<Step>, scope: &Scope<'_>) -> Driven {
        let claims: Vec<_> = steps.iter_mut().map(Step::take_claim).collect();
        let order = match self.setup.sequential {
            true => Order::sequential(&claims),
            false => Order::of(&claims),
        };
        let mut waiting = order.begin();
        let mut ready: VecDeque<usize> = waiting.ready().collect();
        let mut replies: Vec<Option<Reply>> = steps.iter().map(|_| None).collect();
        let mut queue = Queue { run: self, steps: steps.into_iter().map(Some).collect() };
        let mut running = FuturesUnordered::new();
        let mut parked = Vec::new();
        loop {
            let settled = match ready.pop_front() {
                Some(at) => {
                    let step = queue.steps[at].take().expect("a call becomes ready once");
                    let (aborts, step) = (step.aborts_siblings(), step.without_claim());
                    let mut call = Box::pin(async move {
                        let settled = self.settle(|| step, scope).await;
                        (at, aborts, settled)
                    });
                    // Most calls of most batches are done at once, and need no place to wait.
                    match futures_util::poll!(call.as_mut()) {
                        Poll::Ready(settled) => settled,
                        Poll::Pending => {
                            running.push(call);
                            continue;
                        }
                    }
                }
                None => match (running.next().await, scope.is_over()) {
                    (Some(settled), _) => settled,
                    // Nobody waits for an answer in a batch that is over.
                    (None, true) => match parked.pop() {
                        Some((at, call)) => (at, false, Ok(self.withdraw(call, scope).await)),
                        None => break,
                    },
                    (None, false) => break,
                },
            };
            let (at, aborts, reply) = match settled {
                (at, aborts, Ok(reply)) => (at, aborts, reply),
                (at, _, Err(call)) => {
                    // What waits for it begins once somebody has answered.
                    parked.push((at, call));
                    continue;
                }
            };
            if aborts && reply.is_error {
                scope.token().cancel();
            }
            if let Some(why) = self.ends(&reply) {
                // Nothing more of the run starts; what runs ends by itself.
                self.ended.get_or_init(|| why);
                scope.close();
            }
            replies[at] = Some(reply);
            if claims[at].is_some() {
                waiting.ended(at, |next| ready.push_back(next));
            }
        }
        if !parked.is_empty() {
            queue.steps.clear();
        }
        let parked = parked.into_iter().map(|(_, call)| call).collect();
        Driven { replies: replies.into_iter().flatten().collect(), parked }
    }

    /// Settles a call that waited for an answer, since its batch is over.
    pub(super) async fn withdraw(&self, parked: Parked, scope: &Scope<'_>) -> Reply {
        let Parked { draft, executed, below } = parked;
        let mut trail = Trail::new(self, scope, false);
        // What its children spent and saw, they did.
        if let Some(life) = below {
            let _ = trail.wait.life.set(life);
        }
        trail.unwritten.known();
        let fault = Err(cancelled(executed).into());
        self.conclude(draft, fault, &mut trail).await
    }

    /// Puts on the tape that the run waits for answers. Whoever answers may be somebody else.
    pub(super) async fn pause(&self, parked: &[Parked], replies: Vec<Reply>) -> RunError {
        let mut calls: Vec<CallNo> = parked.iter().map(|parked| parked.draft.call).collect();
        calls.sort_unstable();
        let names = |below: bool| {
            let named = parked.iter().filter(|parked| parked.below.is_some() == below);
            let mut named: Vec<CallNo> = named.map(|parked| parked.draft.call).collect();
            named.sort_unstable();
            named.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let why = match (names(false), names(true)) {
            (own, below) if below.is_empty() => {
                format!("somebody must answer whether call {own} may run")
            }
            (own, below) if own.is_empty() => format!("call {below} waits for a run below it"),
            (own, below) => format!(
                "somebody must answer whether call {own} may run, and call {below} waits for a run \
                 below it"
            ),
        };
        if let Err(err) = self.record_last(Event::RunPaused { why: why.clone() }).await {
            return err;
        }
        self.ended.get_or_init(|| format!("it is paused: {why}"));
        RunError::Paused { calls, replies }
    }
}
