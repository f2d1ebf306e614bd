//! A fault as programs read it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fault::{BoundKind, Fault, FaultKind, ToolError, text_of};

/// A fault as programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FaultView {
    /// Who acts next.
    pub kind: FaultKind,
    /// A stable code.
    pub code: Arc<str>,
    /// The bound that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundKind>,
    /// Where that bound stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How much was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// The rule that denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// Whether an approval was needed and nobody could be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// Whether it ended the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fatal: bool,
    /// What the tool chose to tell the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Arc<str>>,
    /// What the host reads.
    pub message: Arc<str>,
}

impl FaultView {
    /// Whether another run of the same might not end so: of a tool that was stopped by time, by
    /// somebody, or before it began.
    pub(crate) fn is_chance(&self) -> bool {
        match self.kind {
            FaultKind::Failed => false,
            FaultKind::Exceeded => self.bound.is_none_or(BoundKind::is_time),
            FaultKind::Repair
            | FaultKind::Denied
            | FaultKind::Cancelled
            | FaultKind::InDoubt
            | FaultKind::Bug => true,
        }
    }

    pub(super) fn new(fault: &Fault) -> FaultView {
        let exceeded = if let Fault::Exceeded(exceeded) = fault { Some(exceeded) } else { None };
        let denied = if let Fault::Denied(denied) = fault { Some(denied) } else { None };
        FaultView {
            kind: fault.kind(),
            code: fault.code().into(),
            bound: exceeded.map(|exceeded| exceeded.bound),
            limit: exceeded.map(|exceeded| exceeded.limit),
            used: exceeded.and_then(|exceeded| exceeded.used),
            rule: denied.map(|denied| denied.rule.as_ref().into()),
            unasked: denied.is_some_and(|denied| denied.unasked),
            fatal: fault.is_fatal(),
            told: fault.said().and_then(ToolError::chosen).map(Into::into),
            message: text_of(fault).into(),
        }
    }
}
