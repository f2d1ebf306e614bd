//! A reply that is not made yet.

use std::ops::Deref;
use std::sync::Arc;

use super::{Rendered, Reply};
use crate::canon::Hash;
use crate::fault::Executed;
use crate::proposal::Facts;
use crate::spec::{Enforced, Vote};
use crate::tool::{Content, Source};

/// What is known of a call, with room for what becomes of it, so that a call and its reply are one
/// allocation, and nothing of it is moved. Nobody else has it.
pub(crate) struct Draft(Arc<Rendered>);

impl Draft {
    #[inline]
    pub(crate) fn new(facts: Facts) -> Draft {
        Draft(Arc::new(Rendered {
            facts,
            executed: Executed::NotExecuted,
            is_error: false,
            content: Content::Many(Vec::new()),
            value: None,
            fault: None,
            source: Source::Error,
            stop: false,
            vote: Vote::Counting,
            artifacts: Vec::new(),
            result_hash: Hash::from([0; 32]),
            details: None,
            metadata: None,
            elapsed_us: 0,
            enforced_by: Enforced::default(),
            proven: false,
            more: None,
        }))
    }

    /// The reply, once all is written into it that became of the call.
    #[inline]
    pub(super) fn rendered(mut self, render: impl FnOnce(&mut Rendered)) -> Reply {
        render(Arc::get_mut(&mut self.0).expect("nobody else has a draft"));
        Reply(self.0)
    }

    /// What is known of the call, if no reply is made of it.
    pub(crate) fn into_facts(self) -> Facts {
        Arc::unwrap_or_clone(self.0).facts
    }

    /// Changes what is known of the call.
    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        &mut Arc::get_mut(&mut self.0).expect("nobody else has a draft").facts
    }
}

impl Deref for Draft {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0.facts
    }
}
