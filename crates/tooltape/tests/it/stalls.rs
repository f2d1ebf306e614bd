//! Models that get nowhere: they are told, and then their turn ends.

use std::sync::atomic::{AtomicU32, Ordering};

use tooltape::{
    Access, Agent, Event, Identity, MemoryTape, Nudge, Patience, Proposal, Replay, Run, Script,
    Spec, Stopped, ToolError, Toolbox, Turn, Verdict, input, tool_fn,
};

#[input]
struct Edit {
    path: String,
    #[serde(default)]
    n: u32,
}

fn toolbox() -> Toolbox {
    let edit = Spec::new("edit", "Edits.").identity(Identity::argument("path"));
    let edit = tool_fn(edit, async |edit: Edit| match edit.path.as_str() {
        "broken" => Err(ToolError::tell(format!("it is broken: {}", edit.n))),
        path => Ok(path.to_owned()),
    });
    let count = AtomicU32::new(0);
    let poll = Spec::new("poll", "Tells how far it is.").access(Access::Read);
    let poll = tool_fn(poll, move |_: Edit| {
        let count = count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(count) }
    });
    Toolbox::new([edit, poll]).unwrap()
}

fn turn(tool: &str, path: &str, n: u32) -> Turn {
    let arguments = format!(r#"{{"path":"{path}","n":{n}}}"#);
    Turn::calls([Proposal::new("c1", tool, arguments)])
}

/// Plays the turns, and says how it stopped, after how many, and what the model was told.
async fn play(turns: Vec<Turn>, patience: Patience) -> (Stopped, u32, Vec<Nudge>) {
    let (tape, toolbox) = (MemoryTape::default(), toolbox());
    let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("test")).tape(tape.clone());
    let turns = turns.into_iter().chain([Turn::answer("done")]);
    let agent = Agent::new(Script::new(turns), run).patience(patience);
    let answered = agent.ask("Go.").await.unwrap();
    let records = tape.records(agent.run().id());
    let report = Replay::of_records(records.clone()).with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report:?}");
    let nudges = records.into_iter().filter_map(|record| match record.event {
        Event::Nudged(nudge) => Some(nudge),
        _ => None,
    });
    (answered.stop, answered.turns, nudges.collect())
}

fn whys(nudges: &[Nudge]) -> Vec<(&str, u32)> {
    nudges.iter().map(|nudge| (nudge.why, nudge.times)).collect()
}

#[tokio::test]
async fn a_call_that_fails_again_and_again_is_pointed_out_and_then_ends_the_turn() {
    let turns = vec![turn("edit", "broken", 1); 9];
    let (stop, turns, nudges) = play(turns, Patience::default()).await;
    assert_eq!((stop, turns), (Stopped::Stalled, 6));
    assert_eq!(whys(&nudges), [("repeated", 3)]);
    assert_eq!(nudges[0].tool.as_deref(), Some("edit"));
    assert!(nudges[0].text.contains("`edit`") && nudges[0].text.contains("3 times"));
}

#[tokio::test]
async fn a_call_that_succeeds_without_end_is_no_progress_either() {
    let turns = vec![turn("edit", "a", 1); 9];
    let (stop, turns, nudges) = play(turns, Patience::default()).await;
    assert_eq!((stop, turns, whys(&nudges)), (Stopped::Stalled, 6, vec![("repeated", 3)]));
}

#[tokio::test]
async fn calls_that_take_turns_are_noticed() {
    let turns = (0..18).map(|at| turn("edit", ["a", "b"][at % 2], 1)).collect();
    let (stop, turns, nudges) = play(turns, Patience::default()).await;
    assert_eq!((stop, turns, whys(&nudges)), (Stopped::Stalled, 12, vec![("alternating", 3)]));

    let turns = (0..27).map(|at| turn("edit", ["a", "b", "c"][at % 3], 1)).collect();
    let (stop, turns, _) = play(turns, Patience::default()).await;
    assert_eq!((stop, turns), (Stopped::Stalled, 18));
}

#[tokio::test]
async fn failing_at_one_thing_is_noticed_however_the_calls_are_worded() {
    let turns = (0..20).map(|n| turn("edit", "broken", n)).collect();
    let (stop, turns, nudges) = play(turns, Patience::default()).await;
    assert_eq!((stop, turns, whys(&nudges)), (Stopped::Stalled, 12, vec![("target", 6)]));
}

#[tokio::test]
async fn a_call_that_comes_to_something_else_each_time_is_progress() {
    let (stop, turns, nudges) = play(vec![turn("poll", "a", 1); 20], Patience::default()).await;
    assert_eq!((stop, turns, nudges.len()), (Stopped::Answer, 21, 0));
}

#[tokio::test]
async fn progress_after_a_nudge_is_a_new_beginning() {
    let fail = || vec![turn("edit", "broken", 1); 3];
    let mut turns = Vec::new();
    for n in 0..4 {
        turns.extend(fail());
        turns.push(turn("edit", "a", n));
    }
    let (stop, _, nudges) = play(turns, Patience::default()).await;
    assert_eq!((stop, nudges.len()), (Stopped::Answer, 4));
}

#[tokio::test]
async fn endless_patience_notices_nothing() {
    let turns = vec![turn("edit", "broken", 1); 9];
    let (stop, turns, nudges) = play(turns, Patience::endless()).await;
    assert_eq!((stop, turns, nudges.len()), (Stopped::Answer, 10, 0));
}
