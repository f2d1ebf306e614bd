//! What a seed makes happen: calls, what they do, what is allowed, and what disturbs them.

use serde_json::{Value, json};
use tooltape::{CallNo, Proposal};

/// The most calls of one storm, at all levels together.
const CALLS_MAX: usize = 200;
/// The deepest nesting that a storm asks for; the run may allow less.
const DEPTH_MAX: usize = 5;

/// Numbers that a seed decides.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.roll() % most
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// What happens to a batch from outside.
#[derive(Clone, Copy, Debug)]
pub(super) enum Disturbance {
    CancelRun,
    CancelBatch,
    CancelCall(CallNo),
    Drop,
}

/// Everything that one seed decides.
pub(super) struct Plan {
    pub(super) batch: Vec<Planned>,
    pub(super) concurrency: usize,
    pub(super) mutations: usize,
    pub(super) depth: u32,
    pub(super) batch_calls: u64,
    pub(super) sequential: bool,
    /// How many lines of progress wait for a slow subscriber.
    pub(super) backlog: usize,
    /// How long a batch may take, where that is so short that some do not end in time.
    pub(super) batch_wall_ms: Option<u64>,
    /// How long a layer may hold a call, where that is so short that some do not pass.
    pub(super) queue_ms: Option<u64>,
    /// How long it takes until records are durable.
    pub(super) disk_ms: Option<u64>,
    /// Whether layers are around the tools.
    pub(super) layered: bool,
    pub(super) disturbance: Option<(u64, Disturbance)>,
    /// The run's own randomness, so that its pauses are the same each time too.
    pub(super) random: [u8; 32],
}

/// One proposal.
pub(super) struct Planned {
    pub(super) id: String,
    pub(super) tool: &'static str,
    pub(super) args: String,
}

const TOOLS: [&str; 12] = [
    "pure", "read", "read", "look", "look", "write", "edit", "edit", "alone", "vital", "stubborn",
    "promoted",
];
const ENDS: [&str; 12] = [
    "ok",
    "ok",
    "ok",
    "ok",
    "ok",
    "ok",
    "fail",
    "panic",
    "panic_at_once",
    "hang",
    "not_done",
    "in_doubt",
];

impl Plan {
    pub(super) fn new(dice: &mut Dice) -> Plan {
        let most = if dice.once_in(20) { CALLS_MAX as u64 } else { 24 };
        let mut left = 1 + dice.below(most) as usize;
        let mut batches = 0;
        let batch = batch(dice, &mut left, 0, &mut batches);
        let calls = batch.len() as u64;
        let disturbance = dice.once_in(2).then(|| {
            let call = CallNo(1 + dice.below(calls + 1));
            let what = [
                Disturbance::CancelRun,
                Disturbance::CancelBatch,
                Disturbance::CancelCall(call),
                Disturbance::Drop,
            ];
            (dice.below(60), dice.one_of(&what))
        });
        Plan {
            batch,
            concurrency: 1 + dice.below(8) as usize,
            mutations: 1 + dice.below(3) as usize,
            depth: dice.below(DEPTH_MAX as u64 + 1) as u32,
            batch_calls: if dice.once_in(8) { dice.below(calls + 1) } else { u64::MAX },
            sequential: dice.once_in(10),
            backlog: dice.below(50) as usize,
            batch_wall_ms: dice.once_in(10).then(|| 5 + dice.below(100)),
            queue_ms: dice.once_in(4).then(|| 1 + dice.below(25)),
            disk_ms: dice.once_in(5).then(|| 1 + dice.below(15)),
            layered: dice.once_in(2),
            disturbance,
            random: [(); 32].map(|()| dice.below(256) as u8),
        }
    }

    pub(super) fn proposals(&self) -> Vec<Proposal> {
        self.batch.iter().map(Planned::proposal).collect()
    }
}

impl Planned {
    fn proposal(&self) -> Proposal {
        Proposal::new(&*self.id, self.tool, &*self.args)
    }
}

/// The proposals of a nested batch, as its arguments hold them.
pub(super) fn nested(play: &Value) -> Vec<Proposal> {
    let calls = play.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |call: &Value, at: usize| call[at].as_str().unwrap_or_default().to_owned();
    calls.iter().map(|it| Proposal::new(text(it, 0), text(it, 1), text(it, 2))).collect()
}

/// One batch, and what it nests. Every call knows its batch, so that the world can judge overlaps.
fn batch(dice: &mut Dice, left: &mut usize, depth: usize, batches: &mut u64) -> Vec<Planned> {
    let most = (*left).min(1 + dice.below(40) as usize);
    let no = *batches;
    *batches += 1;
    let mut planned = Vec::new();
    for at in 0..most {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let id = if dice.once_in(20) { String::new() } else { format!("c{at}") };
        // Nested calls come in flocks: only those beside each other overlap.
        let flock = planned.last().is_some_and(|last: &Planned| last.tool == "nest");
        let nests = depth < DEPTH_MAX && *left > 0 && dice.once_in(if flock { 2 } else { 8 });
        planned.push(call(dice, left, nests.then_some(depth + 1), batches, id, no, at));
    }
    planned
}

fn call(
    dice: &mut Dice,
    left: &mut usize,
    nests: Option<usize>,
    batches: &mut u64,
    id: String,
    no: u64,
    at: usize,
) -> Planned {
    if dice.once_in(25) {
        let tool = dice.one_of(&["nobody", "read", "write"]);
        return Planned { id, tool, args: r#"{"batch":"#.to_owned() };
    }
    let tool = if nests.is_some() { "nest" } else { dice.one_of(&TOOLS) };
    let mut args = json!({
        "batch": no,
        "at": at,
        "path": dice.one_of(&["a", "a/x", "a/y", "b", "b/z", "c"]),
        "ms": if dice.once_in(2) { 0 } else { dice.below(20) },
        "yields": dice.below(3),
        "says": if dice.once_in(8) { dice.below(40) } else { 0 },
        "end": dice.one_of(&ENDS),
        "rule": dice.one_of(&["allow", "allow", "allow", "allow", "ask", "deny"]),
        "answer": dice.one_of(&["yes", "yes", "no", "panic"]),
        "wait": dice.below(30),
        "hold": if dice.once_in(4) { dice.below(30) } else { 0 },
        "turned_back": dice.once_in(15),
    });
    if dice.once_in(150) {
        args["end"] = "fatal".into();
    }
    if let Some(depth) = nests {
        // A share, so that other calls of the batch can nest too.
        let mut share = left.div_ceil(4).max(3).min(*left);
        *left -= share;
        let play = batch(dice, &mut share, depth, batches);
        *left += share;
        let play: Vec<_> = play.iter().map(|it| json!([it.id, it.tool, it.args])).collect();
        args["play"] = play.into();
    }
    Planned { id, tool, args: args.to_string() }
}
