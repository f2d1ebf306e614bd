//! What a turn costs as a conversation grows.

use std::sync::OnceLock;

use tokio::runtime::Builder;
use tooltape::{
    Agent, BoxFuture, Model, ModelError, Patience, Proposal, Request, Run, RunLimits, Script,
    Stopped, Turn,
};

use crate::cpu::{Stopwatch, Time};
use crate::race::{Effort, Measured, median};
use crate::subject::{ADD_TEXT, toolbox};

/// The messages of a short and of a long conversation.
const MESSAGES: [usize; 2] = [100, 1_000];
/// The messages of conversations, from short to long.
const TALKS: [usize; 3] = [10, 100, 1_000];
/// The calls of one turn, from few to many.
const CALLS: [usize; 4] = [1, 10, 100, 1_000];

/// `agent.growth`: a turn from 1,000 messages on against a turn from 100 on.
///
/// A turn is the loop, one call on its whole path, and the memory tape. It is measured while the
/// conversation doubles, so that memory which grows by doubling grows once in each.
pub fn growth(effort: Effort) -> Measured {
    let rounds: Vec<_> = (0..effort.rounds).map(|_| MESSAGES.map(nanos_per_turn)).collect();
    let value = median(rounds.iter().map(|[short, long]| long / short));
    let rows = MESSAGES.iter().enumerate().map(|(at, messages)| {
        let nanos = median(rounds.iter().map(|round| round[at]));
        format!("tooltape: a turn from {messages} messages on {nanos:>25.1} ns")
    });
    Measured { value, rows: rows.collect() }
}

/// `agent.call`: a call of a turn with 1,000 against one of a turn with 10. The loop, the whole
/// path of each call, the memory tape.
pub fn call(effort: Effort) -> Measured {
    let rounds: Vec<_> = (0..effort.rounds).map(|_| CALLS.map(nanos_per_call)).collect();
    let value = median(rounds.iter().map(|[_, few, _, many]| many / few));
    let calls = CALLS.iter().enumerate().map(|(at, calls)| {
        let nanos = median(rounds.iter().map(|round| round[at]));
        format!("tooltape: a call of a turn with {calls:>4} {nanos:>25.1} ns")
    });
    let turns = TALKS.map(|messages| {
        let nanos = median((0..effort.rounds).map(|_| nanos_per_turn(messages)));
        format!("tooltape: a turn from {messages:>4} messages on {nanos:>22.1} ns")
    });
    Measured { value, rows: calls.chain(turns).collect() }
}

/// What a call costs in a turn of so many, with all that the turn costs.
pub fn nanos_per_call(calls: usize) -> f64 {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a thread can have a runtime");
    let proposals = (0..calls).map(|no| Proposal::new(format!("call_{no}"), "add", ADD_TEXT));
    let turns = 4_000 / calls;
    let turn = Turn::calls(proposals.collect::<Vec<_>>());
    let script = std::iter::repeat_n(turn, turns).chain([Turn::answer("done")]);
    let mut limits = RunLimits::default();
    limits.batch_calls = u64::MAX;
    let run = Run::new(&toolbox(10)).limits(limits);
    let agent = Agent::new(Script::new(script), run).patience(Patience::endless());
    let agent = agent.turns_max(u32::MAX);
    let watch = Stopwatch::start();
    let answered = runtime.block_on(agent.ask("Add.")).expect("the agent answers");
    let spent = watch.elapsed();
    assert_eq!((answered.stop, answered.errors), (Stopped::Answer, 0));
    spent.as_nanos() as f64 / (turns * calls) as f64
}

/// What a turn costs while a conversation grows from so many messages to twice as many.
fn nanos_per_turn(messages: usize) -> f64 {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a thread can have a runtime");
    let model = Stepping { messages, watch: OnceLock::new(), spent: OnceLock::new() };
    let turns = u32::try_from(messages + 1).expect("a conversation is short");
    let agent = Agent::new(&model, Run::new(&toolbox(10))).turns_max(turns);
    // It adds the same numbers all the time.
    let agent = agent.patience(Patience::endless());
    let answered = runtime.block_on(agent.ask("Add.")).expect("the agent answers");
    assert_eq!((answered.stop, answered.errors), (Stopped::Answer, 0));
    let spent = model.spent.get().expect("the model saw the conversation double");
    // A turn of the model and the replies to it are two messages.
    spent.as_nanos() as f64 / (messages / 2) as f64
}

/// A model that calls a tool until its conversation has doubled, and takes the time of that.
struct Stepping {
    messages: usize,
    watch: OnceLock<Stopwatch>,
    spent: OnceLock<Time>,
}

impl Model for &Stepping {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        let Request { messages, .. } = *request;
        if messages.len() >= 2 * self.messages {
            let watch = self.watch.get().expect("it was started on the way");
            self.spent.get_or_init(|| watch.elapsed());
            return Box::pin(async { Ok(Turn::answer("done")) });
        }
        if messages.len() >= self.messages {
            self.watch.get_or_init(Stopwatch::start);
        }
        Box::pin(async { Ok(Turn::calls([Proposal::new("call_1", "add", ADD_TEXT)])) })
    }
}
