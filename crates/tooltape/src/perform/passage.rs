//! How far an attempt has come: held by its layers, inside its tool, or back.

use tokio::sync::Notify;

use crate::fault::Executed;
use crate::sync::atomic::{AtomicU8, Ordering};

/// How far a call's attempt has come, and what earlier attempts did.
///
/// Whatever layers and hooks say, this decides what a reply says of a call that was given up.
#[derive(Default)]
pub(crate) struct Passage {
    stage: AtomicU8,
    /// What the attempts before this one did.
    known: AtomicU8,
    opened: Notify,
}

/// Where an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On its way: no layer has it, and its tool was not reached.
    Outside,
    /// Its layers have it.
    Held,
    /// Its tool was reached: anything may have happened.
    Inside,
    /// Its tool came back, and this is what happened.
    Back(Executed),
}

impl Passage {
    /// Another attempt begins, after others that did this much.
    pub(crate) fn begin(&self, known: Executed) {
        self.known.store(Stage::Back(known).code(), Ordering::Relaxed);
        self.set(Stage::Outside);
    }

    /// The layers have the attempt.
    pub(super) fn hold(&self) {
        self.set(Stage::Held);
    }

    /// The attempt reaches its tool.
    pub(super) fn enter(&self) {
        let was = self.stage();
        self.set(Stage::Inside);
        if was == Stage::Held {
            self.opened.notify_one();
        }
    }

    /// The tool came back.
    pub(crate) fn leave(&self, executed: Executed) {
        self.set(Stage::Back(executed));
    }

    /// Waits until the layers let the attempt pass. One may wait, and may be woken too early.
    pub(crate) async fn opened(&self) {
        self.opened.notified().await;
    }

    /// Whether the layers have the attempt.
    pub(crate) fn is_held(&self) -> bool {
        self.stage() == Stage::Held
    }

    pub(crate) fn stage(&self) -> Stage {
        Stage::of(self.stage.load(Ordering::Relaxed))
    }

    fn set(&self, stage: Stage) {
        self.stage.store(stage.code(), Ordering::Relaxed);
    }

    /// What is known of this attempt alone.
    pub(super) fn of_attempt(&self) -> Executed {
        match self.stage() {
            Stage::Outside | Stage::Held => Executed::NotExecuted,
            Stage::Inside => Executed::Unknown,
            Stage::Back(executed) => executed,
        }
    }

    /// What is known of a call that is abandoned here, all attempts together.
    pub(crate) fn executed(&self) -> Executed {
        match (self.of_attempt(), Stage::of(self.known.load(Ordering::Relaxed))) {
            (Executed::NotExecuted, Stage::Back(known)) => known,
            (executed, _) => executed,
        }
    }
}

impl Stage {
    fn code(self) -> u8 {
        match self {
            Stage::Outside => 0,
            Stage::Held => 1,
            Stage::Inside => 2,
            Stage::Back(Executed::NotExecuted) => 3,
            Stage::Back(Executed::Unknown) => 4,
            Stage::Back(Executed::Executed) => 5,
        }
    }

    fn of(code: u8) -> Stage {
        match code {
            0 => Stage::Outside,
            1 => Stage::Held,
            2 => Stage::Inside,
            3 => Stage::Back(Executed::NotExecuted),
            4 => Stage::Back(Executed::Unknown),
            _ => Stage::Back(Executed::Executed),
        }
    }
}
