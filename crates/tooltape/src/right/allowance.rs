//! Allowances: how much may be used, reserved from a parent and given back.

use std::fmt;
use std::sync::{Arc, PoisonError};

use crate::sync::{Mutex, MutexGuard};

/// How much of each measure. What is not named is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amounts {
    /// Calls.
    pub calls: u64,
    /// Bytes of arguments and results.
    pub bytes: u64,
    /// Time of work, in microseconds.
    pub time_us: u64,
    /// Money, in millionths.
    pub spend: u64,
    /// Fuel.
    pub fuel: u64,
    /// Levels of allowances below. It is needed, and never used up: each child has one less.
    pub depth: u64,
}

/// What an allowance measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Calls.
    Calls,
    /// Bytes of arguments and results.
    Bytes,
    /// Time of work.
    Time,
    /// Money.
    Spend,
    /// Fuel.
    Fuel,
    /// Levels of allowances.
    Depth,
}

impl Measure {
    /// Those that are used up. Depth is not.
    const USED_UP: [Measure; 5] =
        [Measure::Calls, Measure::Bytes, Measure::Time, Measure::Spend, Measure::Fuel];

    /// Its name, as errors print it.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Calls => "calls",
            Measure::Bytes => "bytes",
            Measure::Time => "time",
            Measure::Spend => "spend",
            Measure::Fuel => "fuel",
            Measure::Depth => "depth",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Measure::Calls => "calls",
            Measure::Bytes => "bytes",
            Measure::Time => "µs",
            Measure::Spend => "millionths",
            Measure::Fuel => "units",
            Measure::Depth => "levels",
        }
    }
}

impl Amounts {
    /// How much of one measure.
    pub fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Calls => self.calls,
            Measure::Bytes => self.bytes,
            Measure::Time => self.time_us,
            Measure::Spend => self.spend,
            Measure::Fuel => self.fuel,
            Measure::Depth => self.depth,
        }
    }

    fn of_mut(&mut self, measure: Measure) -> &mut u64 {
        match measure {
            Measure::Calls => &mut self.calls,
            Measure::Bytes => &mut self.bytes,
            Measure::Time => &mut self.time_us,
            Measure::Spend => &mut self.spend,
            Measure::Fuel => &mut self.fuel,
            Measure::Depth => &mut self.depth,
        }
    }

    /// Takes all of `wanted`, of which depth is only looked at, or says of what there is too
    /// little and takes nothing.
    fn take(&mut self, wanted: &Amounts) -> Result<(), Short> {
        let mut left = *self;
        for measure in Measure::USED_UP {
            let rest = left.of(measure).checked_sub(wanted.of(measure));
            *left.of_mut(measure) = rest.ok_or_else(|| Short::new(measure, wanted, self))?;
        }
        if wanted.depth > self.depth {
            return Err(Short::new(Measure::Depth, wanted, self));
        }
        *self = left;
        Ok(())
    }

    fn give(&mut self, given: &Amounts) {
        for measure in Measure::USED_UP {
            // It was taken from here, so that it fits in again.
            let amount = self.of_mut(measure);
            *amount = amount.saturating_add(given.of(measure));
        }
    }
}

/// There is too little left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Short {
    /// Of what.
    pub measure: Measure,
    /// How much was wanted.
    pub wanted: u64,
    /// How much there was.
    pub left: u64,
}

impl Short {
    fn new(measure: Measure, wanted: &Amounts, left: &Amounts) -> Short {
        Short { measure, wanted: wanted.of(measure), left: left.of(measure) }
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Short { measure, wanted, left } = self;
        let (name, unit) = (measure.name(), measure.unit());
        write!(f, "the allowance `{name}` has {left} {unit} left, wanted {wanted}")
    }
}

/// How much may be used, by one holder and by all whom it gives a part.
///
/// What a child reserves is gone from its parent at once. What the child has left when it is
/// dropped, and all its children are, returns to the parent; what was spent never does. So
/// whatever is used below an allowance was part of it, in whatever order its children come and go.
///
/// ```
/// use tooltape::{Allowance, Amounts};
///
/// let run = Allowance::new(Amounts { calls: 10, depth: 1, ..Amounts::default() });
/// let child = run.reserve(Amounts { calls: 8, ..Amounts::default() }).unwrap();
/// child.spend(Amounts { calls: 3, ..Amounts::default() }).unwrap();
/// assert_eq!(
///     run.spend(Amounts { calls: 3, ..Amounts::default() }).unwrap_err().to_string(),
///     "the allowance `calls` has 2 calls left, wanted 3"
/// );
/// drop(child);
/// assert_eq!(run.left().calls, 7);
/// ```
pub struct Allowance(Arc<Purse>);

struct Purse {
    left: Mutex<Amounts>,
    parent: Option<Arc<Purse>>,
}

impl Allowance {
    /// So much, from nobody.
    pub fn new(amounts: Amounts) -> Allowance {
        Allowance(Arc::new(Purse { left: Mutex::new(amounts), parent: None }))
    }

    /// Takes a part for a child, whole or not at all. The child's depth must be less than its own.
    pub fn reserve(&self, amounts: Amounts) -> Result<Allowance, Short> {
        let mut left = self.0.left();
        let Some(depth) = amounts.depth.checked_add(1) else {
            return Err(Short::new(Measure::Depth, &amounts, &left));
        };
        left.take(&Amounts { depth, ..amounts })?;
        drop(left);
        let (left, parent) = (Mutex::new(amounts), Some(self.0.clone()));
        Ok(Allowance(Arc::new(Purse { left, parent })))
    }

    /// Uses up so much, all of it or nothing. Depth has to be there, and stays.
    pub fn spend(&self, amounts: Amounts) -> Result<(), Short> {
        self.0.left().take(&amounts)
    }

    /// What is left, without what children hold.
    pub fn left(&self) -> Amounts {
        *self.0.left()
    }
}

impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Allowance").field(&self.left()).finish()
    }
}

impl Purse {
    fn left(&self) -> MutexGuard<'_, Amounts> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what is left to the parent, and hands the parent over.
    fn close(&mut self) -> Option<Arc<Purse>> {
        let parent = self.parent.take()?;
        let left = *self.left();
        parent.left().give(&left);
        Some(parent)
    }
}

impl Drop for Purse {
    fn drop(&mut self) {
        // A loop, since a long line of last children would overflow the stack.
        let mut parent = self.close();
        while let Some(mut purse) = parent.and_then(Arc::into_inner) {
            parent = purse.close();
        }
    }
}
