//! Runs that crash at every record, resumed: nothing happens twice, and all doubt is told.

mod checks;
mod ledger;

use std::sync::Arc;

use tokio::runtime::Builder;
use tooltape::{
    Agent, AgentError, Answered, MemoryTape, Proposal, Random, Record, Run, RunId, Script, Toolbox,
    Turn, Verdict,
};

use crate::simulation::Dice;
use crate::stage::cut;
use checks::{check_ledger, check_tape};
use ledger::{Counted, Effect, Ledger, tools};

/// The seeds whose runs crash at every record, unless `TOOLTAPE_CRASH_SEEDS` says how many.
const SEEDS_DEFAULT: u64 = 64;
/// The tests that share the seeds.
const SHARES: u64 = 4;
/// The crashes that the default number of seeds must come to.
const CRASHES_MIN: u64 = 4_000 / SHARES;

/// What a seed decides: what the model says, and who is asked what.
struct Story {
    turns: Vec<Turn>,
    random: [u8; 32],
    /// What somebody says who is asked; nobody is, where there is none.
    approver: Option<bool>,
}

impl Story {
    fn new(dice: &mut Dice) -> Story {
        let mut id = 0;
        let mut turns: Vec<Turn> = Vec::new();
        for _ in 0..=dice.below(3) {
            let proposals = (0..=dice.below(4)).map(|at| {
                id += 1;
                if dice.once_in(12) {
                    return Proposal::new(format!("c{at}"), "nobody", "{");
                }
                let tool = dice.one_of(&ledger::TOOLS);
                let args = serde_json::json!({
                    "id": id,
                    "before": dice.below(3),
                    "after": dice.below(3),
                    "end": dice.one_of(&ledger::ENDS),
                    "rule": dice.one_of(&["allow", "allow", "allow", "ask", "deny"]),
                });
                Proposal::new(format!("c{at}"), tool, args.to_string())
            });
            turns.push(Turn::calls(proposals.collect::<Vec<_>>()));
        }
        turns.push(Turn::answer("done"));
        let random = [(); 32].map(|()| dice.below(256) as u8);
        let approver = dice.once_in(2).then(|| dice.once_in(2));
        Story { turns, random, approver }
    }

    /// The run, as any process that plays the story sets it up.
    fn run(&self, ledger: &Arc<Ledger>, tape: Counted) -> Run {
        let toolbox = Toolbox::new(tools(ledger)).unwrap();
        let run = Run::new(&toolbox).tape(tape).random(Random::seeded(self.random)).policy(judge);
        match self.approver {
            None => run,
            Some(yes) => run.approver(move |_| {
                Box::pin(async move {
                    tokio::task::yield_now().await;
                    match yes {
                        true => tooltape::Answer::Once,
                        false => tooltape::Answer::Deny("no".to_owned()),
                    }
                })
            }),
        }
    }

    /// The model, once it has taken some of its turns.
    fn model(&self, taken: usize) -> Script {
        Script::new(self.turns.iter().skip(taken).cloned())
    }
}

fn judge(call: &tooltape::Call) -> Verdict {
    match call.args().to_value()["rule"].as_str() {
        Some("deny") => Verdict::deny("planted", "planted"),
        Some("ask") => Verdict::ask("planted"),
        Some(_) | None => Verdict::allow("planted"),
    }
}

fn turns_in(records: &[Record]) -> usize {
    let is_turn = |record: &&Record| matches!(record.event, tooltape::Event::Turn(_));
    records.iter().filter(is_turn).count()
}

/// Resumes a run of which this much is on the tape and this much happened.
async fn resume(
    story: &Story,
    id: RunId,
    records: &[Record],
    effects: Vec<Effect>,
) -> (MemoryTape, Arc<Ledger>, Result<Answered, AgentError>) {
    let tape = cut(records);
    let ledger = Ledger::after(effects, records.len());
    let run = story.run(&ledger, ledger.counted(tape.clone()));
    let run = run.resume(id).await.expect("a run that did not end can be resumed");
    let agent = Agent::new(story.model(turns_in(records)), run);
    let answered = match agent.resume().await {
        Err(AgentError::Unasked) => agent.ask("Go.").await,
        answered => answered,
    };
    (tape, ledger, answered)
}

/// Plays a seed to its end, then crashes it at every record: before and after what happened there.
fn crash_everywhere(seed: u64) -> u64 {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut dice = Dice::new(seed);
        let story = Story::new(&mut dice);
        let (tape, ledger) = (MemoryTape::default(), Ledger::new());
        let run = story.run(&ledger, ledger.counted(tape.clone()));
        let agent = Agent::new(story.model(0), run);
        let whole = agent.ask("Go.").await;
        let (id, records) = (agent.run().id(), tape.records(agent.run().id()));
        let effects = ledger.effects();
        let mut crashes = 0;
        // The last record says that the run ended, and such a run is not resumed.
        for at in 1..records.len() {
            for late in [false, true] {
                let happened = |it: &&Effect| it.at < at || (late && it.at == at);
                let before: Vec<_> = effects.iter().filter(happened).cloned().collect();
                let crashed = &records[..at];
                let (tape, ledger, answered) = resume(&story, id, crashed, before).await;
                assert_eq!(answered.is_ok(), whole.is_ok(), "{answered:?}");
                let resumed = tape.records(id);
                check_tape(&tape, id, crashed, &story.turns).await;
                check_ledger(&ledger, &resumed);
                crashes += 1;
                // And once more, in the middle of what the resumed run did.
                let again = at + 1 + dice.below((resumed.len() - at) as u64) as usize;
                if again < resumed.len() {
                    let before = ledger.effects().into_iter().filter(|it| it.at <= again).collect();
                    let crashed = &resumed[..again];
                    let (tape, ledger, answered) = resume(&story, id, crashed, before).await;
                    assert_eq!(answered.is_ok(), whole.is_ok(), "{answered:?}");
                    check_tape(&tape, id, crashed, &story.turns).await;
                    check_ledger(&ledger, &tape.records(id));
                    crashes += 1;
                }
            }
        }
        crashes
    })
}

fn crash_share(share: u64) {
    let wanted = std::env::var("TOOLTAPE_CRASH_SEEDS").ok().and_then(|it| it.parse().ok());
    let seeds = (0..wanted.unwrap_or(SEEDS_DEFAULT)).filter(|seed| seed % SHARES == share);
    let crashes: u64 = seeds
        .map(|seed| {
            let crashed = std::panic::catch_unwind(|| crash_everywhere(seed));
            crashed.unwrap_or_else(|_| panic!("seed {seed} failed"))
        })
        .sum();
    eprintln!("crashes: {crashes} simulated, none of them doubled an effect");
    assert!(wanted.is_some() || crashes >= CRASHES_MIN, "only {crashes} crashes");
}

#[test]
fn a_run_that_crashed_anywhere_is_resumed_and_nothing_happens_twice_1() {
    crash_share(0);
}

#[test]
fn a_run_that_crashed_anywhere_is_resumed_and_nothing_happens_twice_2() {
    crash_share(1);
}

#[test]
fn a_run_that_crashed_anywhere_is_resumed_and_nothing_happens_twice_3() {
    crash_share(2);
}

#[test]
fn a_run_that_crashed_anywhere_is_resumed_and_nothing_happens_twice_4() {
    crash_share(3);
}
