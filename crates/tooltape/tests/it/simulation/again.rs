//! Storms played again from their tapes: nothing happens, and the tapes are the same to the bit.

use std::sync::Arc;

use tooltape::{MemoryTape, Replay, Verify};

use super::world::{self, World};

/// Plays every run of a tape again: those of the children too, each by itself. Says how many calls
/// were executed again.
pub(super) async fn check_replayed(tape: &MemoryTape) -> u64 {
    let world = Arc::new(World::default());
    let toolbox = world::toolbox(&world);
    let mut executed = 0;
    for run in tape.runs() {
        let mut sound = Verify::default();
        tape.lines(run).unwrap().iter().for_each(|line| sound.line(line).unwrap());
        let replay = Replay::of(tape, run).with(&toolbox).policy(world::judge);
        let report = replay.check().await.expect("the tape can be read");
        assert!(report.is_same(), "{report}");
        assert!(report.unsettled.is_empty(), "{report}");
        executed += report.executed;
        let contents = |tape: &MemoryTape| -> Vec<_> {
            tape.records(run).iter().map(|it| it.content_hash().unwrap()).collect()
        };
        assert_eq!(contents(&report.tape), contents(tape));
        assert_eq!(report.tape.head(run).unwrap(), tape.head(run).unwrap(), "stamps and all");
    }
    let reached = world.reached();
    assert!(reached.iter().all(|tool| *tool == "pure"), "{reached:?} were executed again");
    executed
}
