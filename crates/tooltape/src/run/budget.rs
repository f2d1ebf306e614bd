//! How much a run has used, its children included.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use super::RunLimits;
use crate::fault::BoundKind;
use crate::id::Name;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// What a run has used of its limits. What a child uses, its parent uses too.
pub(super) struct Budget {
    run_calls: u64,
    run_bytes: u64,
    quotas: BTreeMap<Name, u64>,
    parent: Option<Arc<Budget>>,
    /// The bytes that results used.
    made: AtomicU64,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    calls: u64,
    /// The bytes that arguments used.
    taken: u64,
    /// Calls of the tools that have a quota.
    by_tool: HashMap<Name, u64>,
}

impl Budget {
    pub(super) fn new(
        limits: &RunLimits,
        quotas: &BTreeMap<Name, u64>,
        parent: Option<Arc<Budget>>,
    ) -> Arc<Budget> {
        Arc::new(Budget {
            run_calls: limits.run_calls,
            run_bytes: limits.run_bytes,
            quotas: quotas.clone(),
            parent,
            made: AtomicU64::new(0),
            used: Mutex::default(),
        })
    }

    /// Takes one call of a tool, with so many bytes of arguments; or says which limit is reached,
    /// and takes nothing from anybody.
    pub(super) fn take(&self, tool: &Name, bytes: u64) -> Result<(), (BoundKind, u64)> {
        // Held while the parents are asked, always child before parent.
        let mut used = self.used();
        let quota = self.quotas.get(tool);
        let bytes_used = used.taken.saturating_add(self.made.load(Ordering::Relaxed));
        if bytes_used >= self.run_bytes {
            return Err((BoundKind::RunBytes, self.run_bytes));
        }
        if let Some(most) = quota.filter(|most| used.by_tool.get(tool) >= Some(most)) {
            return Err((BoundKind::ToolCalls, *most));
        }
        if used.calls >= self.run_calls {
            return Err((BoundKind::RunCalls, self.run_calls));
        }
        if let Some(parent) = &self.parent {
            parent.take(tool, bytes)?;
        }
        used.calls += 1;
        used.taken += bytes;
        if quota.is_some() {
            *used.by_tool.entry(tool.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// What was used before, by calls of which each has a tool, where that still counts. Parents
    /// count it, too.
    pub(super) fn restore(&self, calls: &[Name], bytes: u64) {
        let mut used = self.used();
        used.taken += bytes;
        for tool in calls {
            used.calls += 1;
            if self.quotas.contains_key(tool) {
                *used.by_tool.entry(tool.clone()).or_default() += 1;
            }
        }
        drop(used);
        if let Some(parent) = &self.parent {
            parent.restore(calls, bytes);
        }
    }

    /// Uses bytes, whether or not they are left: they were made already.
    pub(super) fn spend(&self, bytes: u64) {
        self.made.fetch_add(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.spend(bytes);
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
