//! Which calls of a batch may overlap: pure arithmetic on what they declare.

mod keys;

use std::borrow::Cow;

use self::keys::Keys;
use crate::call::Call;
use crate::fault::ToolError;
use crate::spec::{Access, Footprint};

/// What one call of a batch may touch, and how it takes others beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// What it reads and writes.
    pub footprint: Footprint,
    /// It overlaps no other call of its batch.
    pub exclusive: bool,
    /// It runs a child: it writes everything, but conflicts with no other recursive call.
    pub recursive: bool,
    /// The host says that it conflicts with no other promoted call.
    pub promoted: bool,
}

impl From<Footprint> for Claim {
    fn from(footprint: Footprint) -> Claim {
        Claim { footprint, ..Claim::default() }
    }
}

impl Claim {
    /// The claim of a call; fails where the hook panics that computes its footprint.
    #[inline]
    pub fn of(call: &Call) -> Result<Claim, ToolError> {
        let (registered, exclusive) = (call.registered(), call.effects().exclusive);
        let (recursive, promoted) = (registered.is_recursive(), registered.is_promoted());
        let footprint = call.footprint()?;
        Ok(Claim { footprint, exclusive, recursive, promoted })
    }

    /// Whether the two may not overlap.
    ///
    /// This is the rule itself. An [`Order`] applies it without comparing each call with each.
    pub fn conflicts(&self, other: &Claim) -> bool {
        if self.exclusive || other.exclusive {
            return true;
        }
        let spared = self.recursive && other.recursive || self.promoted && other.promoted;
        !spared && self.touched().conflicts(&other.touched())
    }

    /// Its footprint, as calls see it that it does not spare.
    fn touched(&self) -> Cow<'_, Footprint> {
        match self.recursive {
            true => Cow::Owned(Footprint::everything(Access::Write)),
            false => Cow::Borrowed(&self.footprint),
        }
    }

    fn only_reads(&self) -> bool {
        !self.exclusive && !self.recursive && !self.footprint.is_write()
    }
}

/// For each call of a batch, the earlier calls that it waits for: those that it conflicts with, and
/// no others. What follows from other waits is left out, so that the whole stays small.
///
/// A call that will not run has no claim: it waits for nobody, and nobody waits for it.
///
/// ```
/// use tooltape::{Footprint, Order};
///
/// let read = || Some(Footprint::reads("file:src").into());
/// let write = |key| Some(Footprint::writes(key).into());
/// let order = Order::of(&[read(), write("file:src/a.rs"), write("file:src/b.rs"), read(), None]);
/// assert_eq!(order.waits_for(1), [0]);
/// assert_eq!(order.waits_for(2), [0]);
/// assert_eq!(order.waits_for(3), [1, 2]);
///
/// let mut waiting = order.begin();
/// assert_eq!(waiting.ready().collect::<Vec<_>>(), [0, 4]);
/// let mut started = Vec::new();
/// waiting.ended(0, |call| started.push(call));
/// assert_eq!(started, [1, 2]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    calls: usize,
    /// How many steps each step waits for; empty where no call waits. A step is a call, or else a
    /// barrier, which ends when all those end that it waits for.
    waits: Vec<u32>,
    /// Where each step's followers end in `followers`.
    ends: Vec<u32>,
    followers: Vec<u32>,
}

impl Order {
    /// The order of a batch in which calls overlap unless they conflict.
    pub fn of(claims: &[Option<Claim>]) -> Order {
        match claims.iter().flatten().all(Claim::only_reads) {
            true => Order::free(claims.len()),
            false => Order::build(claims, |claim| claim.exclusive),
        }
    }

    /// The order of a batch in which no calls overlap.
    pub fn sequential(claims: &[Option<Claim>]) -> Order {
        Order::build(claims, |_| true)
    }

    fn free(calls: usize) -> Order {
        Order { calls, waits: Vec::new(), ends: Vec::new(), followers: Vec::new() }
    }

    fn build(claims: &[Option<Claim>], is_alone: impl Fn(&Claim) -> bool) -> Order {
        if claims.iter().flatten().nth(1).is_none() {
            return Order::free(claims.len());
        }
        let calls = u32::try_from(claims.len()).expect("a batch has fewer than 2^32 calls");
        let mut keys = Keys::new(calls);
        let mut alone = None;
        for (call, claim) in (0..calls).zip(claims) {
            match claim {
                None => {}
                Some(claim) if is_alone(claim) => {
                    let first = alone.map_or(0, |alone: u32| alone + 1);
                    let since = first..call;
                    let mut others = since.filter(|it| claims[*it as usize].is_some()).peekable();
                    match others.peek() {
                        None => alone.into_iter().for_each(|alone| keys.wait(call, alone)),
                        Some(_) => others.for_each(|other| keys.wait(call, other)),
                    }
                    alone = Some(call);
                }
                Some(claim) => keys.enter(call, claim, alone),
            }
        }
        keys.into_order()
    }

    /// The order of steps from each pair of one that is waited for and one that waits.
    fn from_pairs(calls: usize, steps: usize, pairs: &[(u32, u32)]) -> Order {
        if pairs.is_empty() {
            return Order::free(calls);
        }
        let (mut waits, mut ends) = (vec![0; steps], vec![0; steps]);
        for (earlier, later) in pairs {
            waits[*later as usize] += 1;
            ends[*earlier as usize] += 1;
        }
        let mut total = 0;
        for end in &mut ends {
            // For the while, where each step's followers begin.
            (*end, total) = (total, total + *end);
        }
        let mut followers = vec![0; pairs.len()];
        for (earlier, later) in pairs {
            let end = &mut ends[*earlier as usize];
            followers[*end as usize] = *later;
            *end += 1;
        }
        Order { calls, waits, ends, followers }
    }

    /// Whether no call waits for another.
    pub fn is_free(&self) -> bool {
        self.waits.is_empty()
    }

    /// How many calls the batch has.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// How many waits it holds: its size, and what a driver pays for it.
    pub fn size(&self) -> usize {
        self.followers.len()
    }

    /// The earlier calls that one waits for directly, in their order.
    pub fn waits_for(&self, call: usize) -> Vec<usize> {
        if self.is_free() {
            return Vec::new();
        }
        // A barrier comes before the barriers that wait for it.
        let mut leads = vec![false; self.waits.len()];
        leads[call] = true;
        for barrier in (self.calls..leads.len()).rev() {
            leads[barrier] = self.after(barrier).iter().any(|step| leads[*step as usize]);
        }
        let waited = |earlier: &usize| {
            let mut after = self.after(*earlier).iter().map(|step| *step as usize);
            after.any(|step| step == call || step >= self.calls && leads[step])
        };
        (0..call).filter(waited).collect()
    }

    /// Starts the batch.
    pub fn begin(self) -> Waiting {
        Waiting { order: self, ended: Vec::new() }
    }

    fn after(&self, step: usize) -> &[u32] {
        after(&self.ends, &self.followers, step)
    }
}

/// The steps that wait for one.
fn after<'a>(ends: &[u32], followers: &'a [u32], step: usize) -> &'a [u32] {
    let start = step.checked_sub(1).map_or(0, |before| ends[before]);
    &followers[start as usize..ends[step] as usize]
}

/// A batch under way: which calls still wait.
#[derive(Clone, Debug)]
pub struct Waiting {
    order: Order,
    /// Barriers that ended and whose followers do not know it; empty but while a call ends.
    ended: Vec<usize>,
}

impl Waiting {
    /// Whether a call waits for nobody any more.
    pub fn is_ready(&self, call: usize) -> bool {
        self.order.waits.get(call).is_none_or(|waits| *waits == 0)
    }

    /// The calls that wait for nobody any more, in their order. A call without a claim never waits.
    pub fn ready(&self) -> impl Iterator<Item = usize> {
        (0..self.order.calls).filter(|call| self.is_ready(*call))
    }

    /// Says that a call has ended, however it ended, and names each call that waited for it and
    /// waits for nobody any more. To be said once for each call that has a claim.
    pub fn ended(&mut self, call: usize, mut ready: impl FnMut(usize)) {
        if self.order.is_free() {
            return;
        }
        let Order { calls, waits, ends, followers } = &mut self.order;
        debug_assert_eq!(waits[call], 0, "call {call} ended before it could start");
        let mut next = Some(call);
        while let Some(step) = next {
            for follower in after(ends, followers, step) {
                let follower = *follower as usize;
                waits[follower] -= 1;
                match waits[follower] {
                    0 if follower < *calls => ready(follower),
                    0 => self.ended.push(follower),
                    1.. => {}
                }
            }
            next = self.ended.pop();
        }
    }
}
