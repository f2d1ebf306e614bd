//! Drives a batch: each call as soon as the order lets it, and every call to its reply.

use std::collections::VecDeque;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::path::Step;
use super::{Run, Scope};
use crate::batch::Order;
use crate::reply::Reply;

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

impl Run {
    /// Answers every step, in their order.
    pub(super) async fn drive(&self, mut steps: Vec<Step>, scope: &Scope<'_>) -> Vec<Reply> {
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
        loop {
            let settled = match ready.pop_front() {
                Some(at) => {
                    let step = queue.steps[at].take().expect("a call becomes ready once");
                    let (aborts, step) = (step.aborts_siblings(), step.without_claim());
                    let mut call = Box::pin(async move {
                        let reply = self.settle(step, scope).await;
                        (at, aborts, reply)
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
                None => match running.next().await {
                    Some(settled) => settled,
                    None => break,
                },
            };
            let (at, aborts, reply) = settled;
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
        replies.into_iter().map(|reply| reply.expect("every call is settled")).collect()
    }
}
