//! Holdings: who has which rights from whom, until when, and whether they were taken back.

use std::fmt;
use std::iter;
use std::sync::Arc;

use super::{Right, Rights, Why};
use crate::sync::atomic::{AtomicBool, Ordering};

/// The rights of one holder, who has them from another.
///
/// A child has what its parent has and it was given, never more, and no longer: what is revoked or
/// has expired is so for every holding below, those already handed out included, from the next
/// check on. A clone is the same holding. Nothing else stands for one: there is no id to guess.
///
/// Time is what the caller says it is.
///
/// ```
/// use tooltape::{Holding, Rights};
///
/// let rights = |text: &str| text.parse::<Rights>().unwrap();
/// let run = Holding::new("run", rights("fs:read:src\nspend:usd:5"));
/// let agent = run.attenuate_until("helper", &rights("fs:read:.\nspend:usd:9"), 1_000);
/// assert_eq!(agent.rights(), &rights("fs:read:src\nspend:usd:5"));
///
/// let read = "fs:read:src/a.rs".parse().unwrap();
/// assert!(agent.check(&read, 1_000).is_ok());
/// assert_eq!(
///     agent.check(&read, 1_001).unwrap_err().to_string(),
///     "`helper` does not give `fs:read:src/a.rs`: it ended at 1000 µs, and it is 1001 µs"
/// );
/// run.revoke();
/// assert_eq!(
///     agent.check(&read, 0).unwrap_err().to_string(),
///     "`run` does not give `fs:read:src/a.rs`: it was revoked"
/// );
/// ```
#[derive(Clone)]
pub struct Holding(Arc<Node>);

struct Node {
    holder: Arc<str>,
    /// What the parent has and this was given.
    rights: Rights,
    not_after_us: Option<u64>,
    revoked: AtomicBool,
    depth: usize,
    parent: Option<Arc<Node>>,
}

impl Holding {
    /// These rights, from nobody and without end.
    pub fn new(holder: impl Into<Arc<str>>, rights: Rights) -> Holding {
        Holding::below(None, holder.into(), rights, None)
    }

    /// A child that has what this has and `rights` cover.
    #[must_use]
    pub fn attenuate(&self, holder: impl Into<Arc<str>>, rights: &Rights) -> Holding {
        Holding::below(Some(&self.0), holder.into(), self.rights().meet(rights), None)
    }

    /// Such a child, until a time: it is good at `not_after_us`, and not after.
    #[must_use]
    pub fn attenuate_until(
        &self,
        holder: impl Into<Arc<str>>,
        rights: &Rights,
        not_after_us: u64,
    ) -> Holding {
        let rights = self.rights().meet(rights);
        Holding::below(Some(&self.0), holder.into(), rights, Some(not_after_us))
    }

    fn below(
        parent: Option<&Arc<Node>>,
        holder: Arc<str>,
        rights: Rights,
        not_after_us: Option<u64>,
    ) -> Holding {
        let revoked = AtomicBool::new(false);
        let depth = parent.map_or(0, |parent| parent.depth + 1);
        let parent = parent.cloned();
        Holding(Arc::new(Node { holder, rights, not_after_us, revoked, depth, parent }))
    }

    /// Takes it back, and all that was made from it. There is no way to undo it.
    pub fn revoke(&self) {
        self.0.revoked.store(true, Ordering::SeqCst);
    }

    /// Whether the right is held now, or who withholds it and why.
    ///
    /// Where several do, the one nearest to the root is named.
    pub fn check(&self, right: &Right, now_us: u64) -> Result<(), Refusal> {
        let refused = |(node, why): (&Node, Withheld)| Refusal {
            holder: node.holder.clone(),
            depth: node.depth,
            right: Box::new(right.clone()),
            why,
        };
        if let Some(end) = self.end(now_us) {
            return Err(refused(end));
        }
        if self.0.rights.covers(right) {
            return Ok(());
        }
        let lacks = |node: &&Node| !node.rights.covers(right);
        // What a node lacks, every node below it lacks.
        let first = self.0.upward().take_while(lacks).last().unwrap_or(&self.0);
        let why = match first.rights.explain(right) {
            Why::Denied { by } => Withheld::Denied { by: Box::new(by.clone()) },
            Why::Covered { .. } | Why::Missing => Withheld::Missing,
        };
        Err(refused((first, why)))
    }

    /// Whether it was neither revoked nor has expired, itself or above.
    pub fn is_live(&self, now_us: u64) -> bool {
        self.end(now_us).is_none()
    }

    /// Who holds it, as the host named them.
    pub fn holder(&self) -> &str {
        &self.0.holder
    }

    /// How many holdings are above it.
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// What is held, as long as it is live.
    pub fn rights(&self) -> &Rights {
        &self.0.rights
    }

    /// The last time at which it can be live, where there is one.
    pub fn not_after_us(&self) -> Option<u64> {
        self.0.upward().filter_map(|node| node.not_after_us).min()
    }

    /// What ended it, nearest to the root.
    fn end(&self, now_us: u64) -> Option<(&Node, Withheld)> {
        self.0.upward().filter_map(|node| Some((node, node.end(now_us)?))).last()
    }
}

impl Node {
    /// Itself, its parent, and so on.
    fn upward(&self) -> impl Iterator<Item = &Node> {
        iter::successors(Some(self), |node| node.parent.as_deref())
    }

    fn end(&self, now_us: u64) -> Option<Withheld> {
        if self.revoked.load(Ordering::SeqCst) {
            return Some(Withheld::Revoked);
        }
        let not_after_us = self.not_after_us.filter(|not_after_us| now_us > *not_after_us)?;
        Some(Withheld::Expired { not_after_us, now_us })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A loop, since a long line of last children would overflow the stack.
        let mut parent = self.parent.take();
        while let Some(mut node) = parent.and_then(Arc::into_inner) {
            parent = node.parent.take();
        }
    }
}

impl fmt::Debug for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Node { holder, rights, not_after_us, revoked, depth, parent: _ } = &*self.0;
        f.debug_struct("Holding")
            .field("holder", holder)
            .field("depth", depth)
            .field("rights", rights)
            .field("not_after_us", not_after_us)
            .field("revoked", &revoked.load(Ordering::SeqCst))
            .finish()
    }
}

/// A right that is not held.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{holder}` does not give `{right}`: {why}")]
pub struct Refusal {
    /// Who withholds it: the holding itself, or one above it.
    pub holder: Arc<str>,
    /// How many holdings are above that one.
    pub depth: usize,
    /// The right.
    pub right: Box<Right>,
    /// Why.
    pub why: Withheld,
}

/// Why a right is withheld.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// Nothing that is held covers it.
    #[error("it holds nothing that covers this")]
    Missing,
    /// A part of it is denied.
    #[error("it denies `{by}`")]
    Denied {
        /// What is denied.
        by: Box<Right>,
    },
    /// It is too late.
    #[error("it ended at {not_after_us} µs, and it is {now_us} µs")]
    Expired {
        /// When it was good for the last time.
        not_after_us: u64,
        /// What time it is.
        now_us: u64,
    },
    /// It was taken back.
    #[error("it was revoked")]
    Revoked,
}
