//! What a call may do to the world.

use serde::{Deserialize, Serialize};

/// What a call does to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Neither reads nor changes anything outside its arguments.
    Pure,
    /// Reads, and changes nothing.
    Read,
    /// Changes something.
    #[default]
    Write,
}

/// What a result depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Determinism {
    /// The arguments alone.
    Deterministic,
    /// The arguments, the granted clock and the granted randomness.
    Bounded,
    /// Anything.
    #[default]
    NonDeterministic,
}

/// What happens if the same call is performed twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Nothing more than the first time.
    Idempotent,
    /// Nothing more, if both carry the same idempotency key.
    Keyed,
    /// It happens twice.
    #[default]
    Once,
}

/// How far a call reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// This machine.
    Local,
    /// Other machines.
    #[default]
    Network,
}

/// How a tool's results count when a batch votes to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// It votes: to stop with [`Stop`](crate::Stop), to go on without.
    #[default]
    Counting,
    /// It neither causes nor blocks a stop.
    Advisory,
}

/// Everything a call may do. What a tool does not declare is taken to be the riskiest.
///
/// ```
/// use tooltape::{Access, Determinism, Effects, Repeat};
///
/// let effects = Effects::default();
/// assert_eq!(effects.access, Access::Write);
/// assert_eq!(effects.determinism, Determinism::NonDeterministic);
/// assert_eq!(effects.repeat, Repeat::Once);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Effects {
    /// What a call does to the world.
    pub access: Access,
    /// What a result depends on.
    pub determinism: Determinism,
    /// What happens if the same call is performed twice.
    pub repeat: Repeat,
    /// How far a call reaches.
    pub reach: Reach,
    /// Whether it touches files.
    pub filesystem: bool,
    /// Whether it starts processes.
    pub process: bool,
    /// Whether it spends money.
    pub spend: bool,
    /// Whether a person must confirm each call.
    pub confirm: bool,
    /// The folder, relative to the workspace, that it works in.
    pub workspace_root: Option<String>,
    /// Whether its results hold what must be redacted.
    pub redact: bool,
    /// Whether it overlaps no other call of its batch.
    pub exclusive: bool,
    /// Whether it runs a child run.
    pub recursive: bool,
    /// Whether its failure cancels the rest of its batch.
    pub aborts_siblings: bool,
    /// How its results count when a batch votes to stop.
    pub vote: Vote,
    /// Whether its calls count towards call limits.
    pub counted: bool,
}

impl Default for Effects {
    fn default() -> Effects {
        Effects {
            access: Access::default(),
            determinism: Determinism::default(),
            repeat: Repeat::default(),
            reach: Reach::default(),
            filesystem: true,
            process: true,
            spend: true,
            confirm: false,
            workspace_root: None,
            redact: false,
            exclusive: false,
            recursive: false,
            aborts_siblings: false,
            vote: Vote::default(),
            counted: true,
        }
    }
}

impl Effects {
    /// Whether it says no more than its access: all else is the riskiest.
    pub fn is_undeclared(&self) -> bool {
        self.reach == Reach::Network && self.filesystem && self.process && self.spend
    }

    /// The effects of a function of its arguments alone: nothing is touched.
    pub fn pure() -> Effects {
        Effects { access: Access::Pure, repeat: Repeat::Idempotent, ..Effects::read() }
    }

    /// The effects of a read that says no more: local, and touching no files, processes or money.
    pub fn read() -> Effects {
        Effects {
            access: Access::Read,
            repeat: Repeat::Idempotent,
            reach: Reach::Local,
            filesystem: false,
            process: false,
            spend: false,
            ..Effects::default()
        }
    }
}
