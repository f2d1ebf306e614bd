//! How much a call may use, and how often it may be tried.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// A bound: the run's named default unless set; unlimited only where that is written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound<T> {
    /// The run's named default.
    #[default]
    Default,
    /// This much.
    At(T),
    /// No bound.
    Unlimited,
}

impl<T: Copy> Bound<T> {
    /// The bound in force, given the default; `None` where unlimited was written out.
    pub fn or(self, default: T) -> Option<T> {
        match self {
            Bound::Default => Some(default),
            Bound::At(limit) => Some(limit),
            Bound::Unlimited => None,
        }
    }
}

impl Serialize for Bound<u64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bound::Default => serializer.serialize_str("default"),
            Bound::At(limit) => serializer.serialize_u64(*limit),
            Bound::Unlimited => serializer.serialize_str("unlimited"),
        }
    }
}

impl Serialize for Bound<Duration> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bound::Default => Bound::Default::<u64>,
            Bound::At(limit) => Bound::At(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            Bound::Unlimited => Bound::Unlimited,
        }
        .serialize(serializer)
    }
}

/// How much one call may use. Times are printed in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// Wall time of one attempt.
    #[serde(rename = "wall_ms")]
    pub wall: Bound<Duration>,
    /// Time without progress.
    #[serde(rename = "idle_ms")]
    pub idle: Bound<Duration>,
    /// Memory in bytes, where the tool runs in a sandbox.
    pub memory: Bound<u64>,
    /// Fuel, where the tool runs in a sandbox.
    pub fuel: Bound<u64>,
    /// Bytes of output.
    pub output_bytes: Bound<u64>,
    /// Calls of this tool that run at the same time.
    pub concurrency: Bound<u64>,
}

/// How a failed attempt is repeated, where [`Repeat`](crate::Repeat) permits it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retry {
    /// Attempts in all.
    pub attempts: u32,
    /// The pause before the second attempt; it doubles with each.
    pub pause_ms: u64,
    /// The longest pause.
    pub pause_ms_max: u64,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 1, pause_ms: 100, pause_ms_max: 10_000 }
    }
}
