//! Who touched each resource last: a tree of keys that yields what a call must wait for.

// Each access is noted at its key, and below each key that covers it. So a call finds everything
// that overlaps one of its keys along the way down to that key: what was noted at each key on the
// way, and what was noted below the last.
//
// A group is the list of accesses of one manner that were noted at one place. When a call must wait
// for a group, and others may have to as well, a barrier takes the group's place: so each access
// is waited for once at each place, not once by each call.
//
// A plain write, by a call that is neither recursive nor promoted, conflicts with whatever overlaps
// it. So whoever meets it need not wait for what was touched below it before, and need not wait for
// the write itself where there is something newer to wait for.

use std::collections::HashMap;
use std::mem;
use std::ops::Range;

use super::{Claim, Order};
use crate::spec::Resource;

/// The accesses of calls so far, and who waits for whom.
pub(super) struct Keys<'a> {
    calls: u32,
    steps: u32,
    pairs: Vec<(u32, u32)>,
    /// For each step, the last that waited for it.
    waited: Vec<u32>,
    nodes: Vec<Node>,
    children: HashMap<(u32, &'a str), u32>,
    links: Vec<Link>,
    /// The way down to each key of the call that enters, and where in `path` it ends.
    path: Vec<u32>,
    ends: Vec<(Manner, usize)>,
}

/// One key, and who touched it.
#[derive(Clone, Copy)]
struct Node {
    /// Accesses at exactly this key, by manner; not plain writes.
    at: [Group; MANNERS],
    /// Accesses at other keys that this key covers, by manner.
    below: [Group; MANNERS],
    /// The last plain write at exactly this key.
    wrote: Option<u32>,
}

/// A list of accesses, the newest first: the place of its first link.
type Group = u32;

/// The group of nobody, and nobody's number.
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    /// The call, or the barrier that stands for it and all before it.
    step: u32,
    /// The newest call that it stands for.
    newest: u32,
    next: Group,
}

/// How a call touches a key: whether it writes, is recursive, is promoted, as three bits.
type Manner = usize;

const MANNERS: usize = 8;
const WRITES: Manner = 1;
const RECURSIVE: Manner = 2;
const PROMOTED: Manner = 4;

/// Whether two accesses conflict, if their keys overlap.
fn conflict(one: Manner, other: Manner) -> bool {
    (one | other) & WRITES != 0 && one & other & (RECURSIVE | PROMOTED) == 0
}

impl<'a> Keys<'a> {
    pub(super) fn new(calls: u32) -> Keys<'a> {
        Keys {
            calls,
            steps: calls,
            pairs: Vec::new(),
            waited: vec![NOBODY; calls as usize],
            nodes: vec![Node::EMPTY],
            children: HashMap::new(),
            links: Vec::new(),
            path: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Makes a call wait for those before it, and notes what it touches. `alone` is the last call
    /// that overlaps no other.
    pub(super) fn enter(&mut self, call: u32, claim: &'a Claim, alone: Option<u32>) {
        self.find(claim);
        let waits = self.pairs.len();
        let fresh = alone.map_or(0, |alone| alone + 1);
        let mut start = 0;
        for place in 0..self.ends.len() {
            let (manner, end) = self.ends[place];
            self.wait_along(call, manner, start..end, fresh);
            start = end;
        }
        // Whoever is waited for has waited for it.
        if self.pairs.len() == waits {
            alone.into_iter().for_each(|alone| self.wait(call, alone));
        }
        self.note(call);
    }

    /// Finds the way down to each key of a claim.
    fn find(&mut self, claim: &'a Claim) {
        static EVERYTHING: [Resource; 1] = [Resource::everything()];
        self.path.clear();
        self.ends.clear();
        let promoted = if claim.promoted { PROMOTED } else { 0 };
        if claim.recursive {
            return self.find_each(&EVERYTHING, promoted | RECURSIVE | WRITES);
        }
        self.find_each(claim.footprint.written_keys(), promoted | WRITES);
        self.find_each(claim.footprint.read_keys(), promoted);
    }

    fn find_each(&mut self, keys: &'a [Resource], manner: Manner) {
        for key in keys {
            let mut node = 0;
            self.path.push(node);
            for segment in key.segments() {
                let new = self.nodes.len() as u32;
                node = *self.children.entry((node, segment)).or_insert(new);
                if node == new {
                    self.nodes.push(Node::EMPTY);
                }
                self.path.push(node);
            }
            self.ends.push((manner, self.path.len()));
        }
    }

    /// Waits for all that conflict with an access at the end of a path. Calls before `fresh` need
    /// not be waited for.
    fn wait_along(&mut self, call: u32, manner: Manner, path: Range<usize>, mut fresh: u32) {
        let last = path.end - 1;
        let (mut newest, mut wrote) = (None, None);
        for place in path {
            let node = self.path[place] as usize;
            for other in (0..MANNERS).filter(|other| conflict(manner, *other)) {
                let Node { at, below, .. } = &mut self.nodes[node];
                newest = newest.max(if place < last {
                    let at = at[other];
                    self.wait_for_group(call, at, fresh)
                } else if manner == WRITES {
                    let groups = [&mut at[other], &mut below[other]];
                    let [at, below] = groups.map(|group| mem::replace(group, NOBODY));
                    let at = self.wait_for_each(call, at, fresh);
                    at.max(self.wait_for_each(call, below, fresh))
                } else {
                    let (at, below) = (at[other], below[other]);
                    let at = self.wait_for_group(call, at, fresh);
                    at.max(self.wait_for_group(call, below, fresh))
                });
            }
            if let Some(write) = self.nodes[node].wrote.filter(|write| *write >= fresh) {
                (wrote, fresh) = (Some(write), write);
            }
        }
        // Whoever touched this after the last plain write has waited for it.
        if let Some(write) = wrote.filter(|_| wrote > newest) {
            self.wait(call, write);
        }
    }

    /// Waits for the accesses of a group that nobody will find again. Returns the newest of them.
    fn wait_for_each(&mut self, step: u32, mut group: Group, fresh: u32) -> Option<u32> {
        let newest = self.link(group, fresh)?.newest;
        while let Some(link) = self.link(group, fresh) {
            self.wait(step, link.step);
            group = link.next;
        }
        Some(newest)
    }

    /// Waits for a group as a whole. Returns the newest of its calls.
    fn wait_for_group(&mut self, call: u32, group: Group, fresh: u32) -> Option<u32> {
        let Link { step, newest, next } = self.link(group, fresh)?;
        let step = match self.link(next, fresh) {
            None => step,
            Some(_) => {
                let barrier = self.steps;
                self.steps += 1;
                self.waited.push(NOBODY);
                self.wait_for_each(barrier, group, fresh);
                barrier
            }
        };
        self.links[group as usize] = Link { step, newest, next: NOBODY };
        self.wait(call, step);
        Some(newest)
    }

    /// The first link of a group, unless there is none that matters.
    fn link(&self, group: Group, fresh: u32) -> Option<Link> {
        let link = self.links.get(group as usize)?;
        (link.newest >= fresh).then_some(*link)
    }

    /// Makes one step wait for another.
    pub(super) fn wait(&mut self, step: u32, other: u32) {
        let waited = &mut self.waited[other as usize];
        if *waited != step {
            *waited = step;
            self.pairs.push((other, step));
        }
    }

    /// Notes a call at each of its keys, and below each that covers one.
    fn note(&mut self, call: u32) {
        let mut start = 0;
        for (manner, end) in &self.ends {
            let (manner, last) = (*manner, *end - 1);
            for place in start..=last {
                let node = &mut self.nodes[self.path[place] as usize];
                let group = match place < last {
                    true => &mut node.below[manner],
                    false if manner == WRITES => {
                        node.wrote = Some(call);
                        continue;
                    }
                    false => &mut node.at[manner],
                };
                // One call may have several keys below one.
                if self.links.get(*group as usize).is_none_or(|link| link.newest != call) {
                    let link = Link { step: call, newest: call, next: *group };
                    *group = self.links.len() as u32;
                    self.links.push(link);
                }
            }
            start = *end;
        }
    }

    pub(super) fn into_order(self) -> Order {
        Order::from_pairs(self.calls as usize, self.steps as usize, &self.pairs)
    }
}

impl Node {
    const EMPTY: Node = Node { at: [NOBODY; MANNERS], below: [NOBODY; MANNERS], wrote: None };
}
