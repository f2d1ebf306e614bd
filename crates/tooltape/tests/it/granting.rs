//! What a host grants and how calls use it: acceptance 91 and 92, state, run information, progress.

use std::time::Duration;

use tooltape::limits::EMITTED_BYTES_MAX;
use tooltape::testing::{Spy, play, proposals, tool_conforms};
use tooltape::{
    Access, Cancel, Clock, Empty, Event, Grant, Hash, MemoryTape, Name, Progress, Proposal, Random,
    Run, RunError, RunInfo, Secret, State, ToolError, builtin, input, tool, tools,
};

use crate::declaring::{over, reply};

#[input]
struct Visit {
    place: String,
}

/// Remembers a place.
#[tool(Write)]
async fn visit(args: Visit, visited: State<Vec<String>>) -> Result<usize, ToolError> {
    visited.update(|visited| {
        visited.push(args.place.clone());
        assert_ne!(args.place, "nowhere", "half-way through the update");
        visited.len()
    })
}

/// The states on a tape, in their order.
fn states(tape: &MemoryTape, run: &Run) -> Vec<String> {
    let states = tape.records(run.id()).into_iter().filter_map(|record| match record.event {
        Event::State { value, .. } => Some(value.as_str().to_owned()),
        _ => None,
    });
    states.collect()
}

#[tokio::test]
async fn an_update_of_state_is_on_the_tape_and_the_next_call_sees_it() {
    let (tape, visited) = (MemoryTape::default(), State::new(Vec::<String>::new()));
    let run = over(tools![visit]).grant(visited.clone()).tape(tape.clone());
    let replies = play(&run, "visit {\"place\":\"Rome\"}\nvisit {\"place\":\"Oslo\"}").await;
    assert_eq!(replies, "c1 1\nc2 2\n");
    assert_eq!(states(&tape, &run), [r#"["Rome"]"#, r#"["Rome","Oslo"]"#]);
    assert_eq!(visited.get(), ["Rome", "Oslo"], "the host sees it too");
}

#[tokio::test]
async fn a_panic_within_an_update_changes_nothing() {
    let (tape, visited) = (MemoryTape::default(), State::new(vec!["home".to_owned()]));
    let run = over(tools![visit]).grant(visited.clone()).tape(tape.clone());
    let replies = play(&run, "visit {\"place\":\"nowhere\"}\nvisit {\"place\":\"Oslo\"}").await;
    assert_eq!(replies, "c1 unknown: the tool panicked; do not repeat it blindly\nc2 2\n");
    assert_eq!(visited.get(), ["home", "Oslo"]);
    assert_eq!(states(&tape, &run), [r#"["home","Oslo"]"#]);
}

#[tokio::test]
async fn updates_of_concurrent_calls_are_all_kept() {
    /// Counts, while others do.
    #[tool(Read)]
    async fn count(_: Empty, count: State<u64>) -> Result<u64, ToolError> {
        tokio::task::yield_now().await;
        count.update(|count| {
            *count += 1;
            *count
        })
    }
    let (tape, state) = (MemoryTape::default(), State::new(0_u64));
    let run = over(tools![count]).grant(state.clone()).tape(tape.clone());
    let batch = (0..50).map(|at| Proposal::new(format!("c{at}"), "count", "{}"));
    run.batch(batch.collect()).await.unwrap();
    assert_eq!(state.get(), 50);
    let recorded: Vec<u64> = states(&tape, &run).iter().map(|it| it.parse().unwrap()).collect();
    assert_eq!(recorded, (1..=50).collect::<Vec<_>>(), "in the order in which they happened");
}

/// Says for whom it works.
#[tool(Pure)]
async fn whom(_: Empty, info: RunInfo) -> Result<String, ToolError> {
    let RunInfo { .. } = &info;
    let (thread, call, id) = (info.thread().unwrap_or("-"), info.call(), info.call_id());
    Ok(format!("{thread} {call} {id} {}/{}", info.depth(), info.depth_max()))
}

#[tokio::test]
async fn a_call_knows_its_run_thread_call_and_depth() {
    let run = over(tools![whom]).thread("support");
    assert_eq!(
        play(&run, "whom {}\nwhom {}").await,
        "c1 support #1 c1 0/8\nc2 support #2 c2 0/8\n"
    );
    assert_eq!(play(&over(tools![whom]), "whom {}").await, "c1 - #1 c1 0/8\n");
    assert_eq!(whom(Empty {}, RunInfo::detached()).await.unwrap(), "- #0  0/0");
}

/// Tells what it does while it does it.
#[tool(Pure)]
async fn steps(_: Empty, progress: Progress) -> Result<&'static str, ToolError> {
    progress.say("half-way");
    progress.emit("page", &serde_json::json!({ "read": 1 }))?;
    progress.emit("not a name", &())?;
    Ok("never")
}

#[tokio::test]
async fn progress_and_named_events_are_for_the_tape_and_not_for_the_model() {
    let tape = MemoryTape::default();
    let run = over(tools![steps]).tape(tape.clone());
    let reply = reply(&run, "steps", "{}").await;
    assert_eq!(reply.text(), "failed: the tool failed");
    assert!(reply.fault.as_ref().unwrap().message.contains("did you mean `not_a_name`?"));
    let said = tape.records(run.id()).into_iter().filter_map(|record| match record.event {
        Event::Progress { call, text } => Some(format!("{call} {text}")),
        Event::Emitted { call, name, value } => Some(format!("{call} {name} {value}")),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["#1 half-way", r#"#1 page {"read":1}"#]);
    assert!(steps(Empty {}, Progress::detached()).await.is_err());
}

/// Waits until it is told to stop.
#[tool(Read)]
async fn wait(_: Empty, cancel: Cancel, ready: State<bool>) -> Result<(), ToolError> {
    ready.update(|ready| *ready = true)?;
    cancel.requested().await;
    Err(ToolError::cancelled().details(serde_json::json!({ "pages": 3 })))
}

#[tokio::test]
async fn a_cooperative_tool_sees_the_cancel_and_what_it_says_is_kept() {
    let ready = State::new(false);
    let run = over(tools![wait]).grant(ready.clone());
    let cancel = async {
        while !ready.get() {
            tokio::task::yield_now().await;
        }
        run.cancel();
    };
    let (replies, ()) = tokio::join!(run.batch(proposals("wait {}\nwait {}")), cancel);
    for reply in replies.unwrap() {
        assert_eq!(reply.text(), "unknown: cancelled");
    }
    assert_eq!(play(&run, "wait {}").await, "c1 not executed: cancelled\n");
}

#[derive(Clone)]
struct Database;
impl Grant for Database {}

#[tokio::test]
async fn a_named_event_has_a_bound_of_its_own() {
    /// Says too much.
    #[tool(Read)]
    async fn flood(_: Empty, progress: Progress) -> Result<(), ToolError> {
        progress.emit("enough", &"x".repeat(EMITTED_BYTES_MAX - 2))?;
        progress.emit("dump", &"x".repeat(EMITTED_BYTES_MAX - 1))
    }
    let tape = MemoryTape::default();
    let run = over(tools![flood]).tape(tape.clone());
    let told = "c1 failed: the event `dump` has 65537 bytes, expected at most 65536\n";
    assert_eq!(play(&run, "flood {}").await, told);
    let events = tape.records(run.id());
    let emitted = events.iter().filter(|it| matches!(it.event, Event::Emitted { .. }));
    assert_eq!(emitted.count(), 1, "half a value would be none");
}

/// Needs what nobody granted.
#[tool(Read)]
async fn query(_: Empty, _: Database, _: Secret<String>) -> Result<(), ToolError> {
    Ok(())
}

#[tokio::test]
async fn missing_grants_are_reported_all_at_once_before_the_first_call() {
    let spy = Spy::new("spy", Access::Read);
    let mut tools = Vec::from(tools![visit, query]);
    tools.insert(0, spy.tool());
    let run = || over(tools.clone());
    let (tape, lacking) = (MemoryTape::default(), run());
    let lacking = lacking.tape(tape.clone());
    let told = "cannot start: not executed: `visit` needs `State<Vec<String>>`, `query` needs \
                `Database`, `query` needs `Secret<String>`, which the run was not granted\n";
    assert_eq!(play(&lacking, "spy {}").await, told);
    assert_eq!(spy.calls(), 0);
    assert!(
        !tape.records(lacking.id()).iter().any(|it| matches!(it.event, Event::Proposed { .. }))
    );

    let granted = run().grant(Database).grant(Secret::new(String::new()));
    let granted = granted.grant(State::new(Vec::<String>::new()));
    assert_eq!(play(&granted, "spy {}\nquery {}").await, "c1 {}\nc2 null\n");
}

#[tokio::test]
async fn a_tool_that_is_added_later_brings_its_needs_with_it() {
    let run = over(builtin::tools()).grant(Database);
    let Err(RunError::MissingGrants(missing)) = run.add(query::tool()) else {
        panic!("it needs a secret")
    };
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["`query` needs `Secret<String>`"]);
    assert!(run.offer_all().tools().all(|tool| tool.id().name() != &Name::new("query").unwrap()));
}

/// The clock of the world, which goes on while a tool works.
#[derive(Clone)]
struct World(Clock);
impl Grant for World {}

/// Looks at the time twice, and draws.
#[tool(Read, determinism = Bounded)]
async fn bounded(
    _: Empty,
    clock: Clock,
    random: Random,
    world: World,
) -> Result<[u64; 3], ToolError> {
    let before = clock.unix_us();
    world.0.advance(Duration::from_secs(1));
    Ok([before, clock.unix_us(), random.next_u64()])
}

/// What `bounded` returns for a seed, and its hash.
async fn with_seed(seed: u8) -> (String, Hash) {
    let clock = Clock::fixed(Duration::from_secs(7));
    let run = over(tools![bounded]).clock(clock.clone()).grant(World(clock));
    let reply = reply(&run.random(Random::seeded([seed; 32])), "bounded", "{}").await;
    (reply.text(), reply.result_hash)
}

#[tokio::test]
async fn a_bounded_tool_depends_on_the_given_time_and_seed_only() {
    let (text, hash) = with_seed(1).await;
    assert!(text.starts_with("[7000000,7000000,"), "the clock stands still for a call: {text}");
    assert_eq!(with_seed(1).await, (text, hash));
    assert_ne!(with_seed(2).await.1, hash);
}

#[tokio::test]
async fn the_moment_that_a_bounded_tool_sees_is_on_the_tape() {
    let (tape, clock) = (MemoryTape::default(), Clock::fixed(Duration::from_secs(7)));
    let run = over(tools![bounded]).clock(clock.clone()).grant(World(clock)).tape(tape.clone());
    play(&run, "bounded {}\nbounded {}").await;
    let moments = tape.records(run.id()).into_iter().filter_map(|record| match record.event {
        Event::Started { clock_us, .. } => clock_us,
        _ => None,
    });
    assert_eq!(moments.collect::<Vec<_>>(), [7_000_000, 8_000_000]);
}

#[tokio::test]
async fn calls_draw_from_streams_of_their_own() {
    /// Draws.
    #[tool(Pure, determinism = Bounded)]
    async fn draw(_: Empty, random: Random) -> Result<u64, ToolError> {
        Ok(random.next_u64())
    }
    let run = over(tools![draw]).random(Random::seeded([9; 32]));
    let replies = run.batch(proposals("draw {}\ndraw {}")).await.unwrap();
    assert_ne!(replies[0].result_hash, replies[1].result_hash);
}

#[tokio::test]
async fn a_deterministic_tool_gives_the_same_hash_for_the_same_input() {
    for tool in builtin::tools() {
        let name = tool.spec().name.clone();
        tool_conforms(tool.clone(), |run| run, &[r#"{"text":"same"}"#]).await;
        let run = || over([tool.clone()]);
        let first = reply(&run(), &name, r#"{"text":"same"}"#).await;
        let second = reply(&run(), &name, "{ \"text\" : \"same\" }").await;
        assert_eq!((first.args_hash, first.result_hash), (second.args_hash, second.result_hash));
        let other = reply(&run(), &name, r#"{"text":"other"}"#).await;
        assert_ne!(first.result_hash, other.result_hash);
    }
}
