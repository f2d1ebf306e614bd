//! Replaying a run: what is executed again, what is served, and what a difference looks like.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use tooltape::layer::Cache;
use tooltape::{
    Access, Agent, Answer, Artifacts, Bound, Clock, Determinism, Effects, Empty, Event, MemoryTape,
    Name, Output, Progress, Proposal, Random, Replay, ReplayError, Rules, Run, Script, Source,
    Spec, State, Stop, Tool, ToolError, Toolbox, Turn, Verdict, builtin, input, tool_fn,
};

#[input]
struct Number {
    n: i64,
}

/// A tool that counts how often it runs.
fn counted(spec: Spec, runs: &Arc<AtomicU64>) -> Arc<dyn Tool> {
    let runs = runs.clone();
    tool_fn(spec, move |args: Number| {
        let runs = runs.clone();
        async move { Ok::<_, ToolError>(args.n + runs.fetch_add(1, Ordering::SeqCst) as i64) }
    })
}

/// A tool that must come to the same each time.
fn pure(name: &str) -> Spec {
    let mut spec = Spec::new(name, "Is pure.").effects(Effects::pure());
    spec.effects.determinism = Determinism::Deterministic;
    spec
}

fn call(tool: &str) -> Vec<Proposal> {
    vec![Proposal::new("c1", tool, r#"{"n":1}"#)]
}

fn allowed(toolbox: &Toolbox, tape: &MemoryTape) -> Run {
    Run::new(toolbox).tape(tape.clone()).policy(|_: &_| Verdict::allow("all"))
}

#[tokio::test]
async fn what_is_not_deterministic_is_served_and_not_called() {
    for (access, determinism) in [
        (Access::Pure, Determinism::NonDeterministic),
        (Access::Read, Determinism::Deterministic),
        (Access::Write, Determinism::Deterministic),
    ] {
        let (runs, tape) = (Arc::new(AtomicU64::new(0)), MemoryTape::default());
        let mut spec = Spec::new("count", "Counts.").access(access);
        spec.effects.determinism = determinism;
        let toolbox = Toolbox::new([counted(spec, &runs)]).unwrap();
        let run = allowed(&toolbox, &tape);
        run.batch(call("count")).await.unwrap();
        let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
        assert!(report.is_same(), "{report}");
        assert_eq!((report.executed, report.served), (0, 1));
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{access:?} {determinism:?}");
        assert_eq!(report.tape.head(run.id()).unwrap(), tape.head(run.id()).unwrap());
    }
}

#[tokio::test]
async fn a_pure_deterministic_tool_is_executed_again_and_must_come_to_the_same() {
    let (runs, tape) = (Arc::new(AtomicU64::new(0)), MemoryTape::default());
    let spec = pure("count").version("1.0.0");
    let toolbox = Toolbox::new([counted(spec, &runs)]).unwrap();
    let run = allowed(&toolbox, &tape);
    run.batch(call("count")).await.unwrap();
    let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
    assert_eq!((report.executed, runs.load(Ordering::SeqCst)), (1, 2));
    let first = report.first().unwrap();
    assert_eq!((&*first.event, &*first.pointer), ("call.settled", "/value"));
    expect![[r#"
        record 4 `call.settled` of call #1 to `count@1.0.0` differs at `/value` (source: tool)
          recorded                               | now
          ---------------------------------------+---------------------------------------
          1                                      | 2
          likely causes:
            1. `count@1.0.0` does something else, or is not deterministic as it says
            2. another version of the runtime wrote the tape"#]]
    .assert_eq(&first.to_string());
}

#[tokio::test]
async fn a_bounded_tool_sees_the_recorded_moment_and_the_recorded_randomness() {
    let mut spec = Spec::new("stamp", "Stamps.").effects(Effects::pure());
    spec.effects.determinism = Determinism::Bounded;
    let stamp = tool_fn(spec, async |_: Empty, clock: Clock, random: Random| {
        Ok::<_, ToolError>((clock.unix_us(), random.next_u64()))
    });
    let toolbox = Toolbox::new([stamp]).unwrap();
    let record = async |seed: u8, secs: u64| {
        let tape = MemoryTape::default();
        let run = allowed(&toolbox, &tape).random(Random::seeded([seed; 32]));
        let run = run.clock(Clock::fixed(Duration::from_secs(secs)));
        let replies = run.batch(vec![Proposal::new("c", "stamp", "{}")]).await.unwrap();
        let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
        assert!(report.is_same() && report.executed == 1, "{report}");
        replies[0].result_hash
    };
    assert_eq!(record(1, 5).await, record(1, 5).await);
    assert_ne!(record(1, 5).await, record(2, 5).await, "another seed");
    assert_ne!(record(1, 5).await, record(1, 6).await, "another moment");
}

#[tokio::test]
async fn a_conversation_is_played_again_turn_by_turn() {
    let tape = MemoryTape::default();
    let vote = tool_fn(Spec::new("finish", "Ends.").effects(Effects::pure()), async |_: Empty| {
        Ok::<_, ToolError>(Stop("bye"))
    });
    let toolbox = Toolbox::new(builtin::tools().into_iter().chain([vote])).unwrap();
    let model = Script::new([
        Turn::calls([
            Proposal::new("a", "hash", r#"{"text":"x"}"#),
            Proposal::unparsed("b", "echo", "{", "cut off"),
        ]),
        Turn::calls([Proposal::new("c", "finish", "{}")]),
    ]);
    let agent = Agent::new(model, Run::new(&toolbox).tape(tape.clone()));
    agent.ask("Go.").await.unwrap();
    let run = agent.run().id();
    let report = Replay::of(&tape, run).with(&toolbox).policy(Rules::allow_reads());
    let report = report.check().await.unwrap();
    assert!(report.is_same(), "{report}");
    assert_eq!(report.tape.head(run).unwrap(), tape.head(run).unwrap());
    // A vote that does not count any more would let the model go on.
    let mut spec = Spec::new("finish", "Ends.").effects(Effects::pure());
    spec.effects.vote = tooltape::Vote::Advisory;
    let advisory = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>(Stop("bye")));
    let changed = Toolbox::new(builtin::tools().into_iter().chain([advisory])).unwrap();
    let report = Replay::of(&tape, run).with(&changed).report_all().check().await.unwrap();
    let kinds: Vec<_> = report.divergences.iter().map(|it| &*it.event).collect();
    assert_eq!(kinds, ["call.judged"], "{report}");
}

#[tokio::test]
async fn answers_and_states_are_served_and_nobody_is_asked() {
    let tape = MemoryTape::default();
    let note = tool_fn(Spec::new("note", "Notes."), async |args: Number, seen: State<Vec<i64>>| {
        seen.update(|seen| seen.push(args.n))?;
        Ok::<_, ToolError>(())
    });
    let toolbox = Toolbox::new([note]).unwrap();
    let asked = Arc::new(Mutex::new(0));
    let counter = asked.clone();
    let run = Run::new(&toolbox)
        .tape(tape.clone())
        .grant(State::new(Vec::<i64>::new()))
        .policy(Rules::allow_reads().ask_before_writes())
        .approver(move |_| {
            *counter.lock().unwrap() += 1;
            Box::pin(async { Answer::Once })
        });
    run.batch(call("note")).await.unwrap();
    let policy = Rules::allow_reads().ask_before_writes();
    let replay = Replay::of(&tape, run.id()).with(&toolbox).policy(policy);
    assert!(replay.check().await.unwrap().is_same());
    assert_eq!(*asked.lock().unwrap(), 1, "nobody is asked again");
    // Today's policy denies it.
    let replay = Replay::of(&tape, run.id()).with(&toolbox).policy(Rules::allow_reads());
    let report = replay.check().await.unwrap();
    let first = report.first().unwrap();
    assert_eq!((&*first.pointer, first.causes[0].kind()), ("/verdict", "policy_changed"));
}

#[tokio::test]
async fn a_live_tool_is_executed_for_real_and_the_report_says_so() {
    let (runs, tape) = (Arc::new(AtomicU64::new(0)), MemoryTape::default());
    let toolbox = Toolbox::new([counted(Spec::new("count", "Counts."), &runs)]).unwrap();
    let run = allowed(&toolbox, &tape);
    run.batch(call("count")).await.unwrap();
    let live = Name::new("count").unwrap();
    let report = Replay::of(&tape, run.id()).with(&toolbox).live(live).check().await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert!(report.to_string().starts_with("live: `count` was executed for real"), "{report}");
    assert!(!report.is_same(), "it counted on");
}

#[tokio::test]
async fn differences_outside_the_wanted_records_do_not_count() {
    let (runs, tape) = (Arc::new(AtomicU64::new(0)), MemoryTape::default());
    let spec = pure("count");
    let toolbox = Toolbox::new([counted(spec, &runs)]).unwrap();
    let run = allowed(&toolbox, &tape);
    run.batch(call("count")).await.unwrap();
    let replay = || Replay::of(&tape, run.id()).with(&toolbox);
    let before = replay().to(3).check().await.unwrap();
    assert!(before.is_same() && before.records == 4 && before.unsettled.len() == 1, "{before}");
    assert!(replay().from(5).check().await.unwrap().is_same());
    assert!(!replay().from(4).check().await.unwrap().is_same());
}

#[tokio::test]
async fn what_cannot_be_played_is_told() {
    let (tape, toolbox) = (MemoryTape::default(), Toolbox::new(builtin::tools()).unwrap());
    let run = Run::new(&toolbox).tape(tape.clone());
    let unknown = Replay::of(&tape, run.id()).with(&toolbox).check().await;
    assert!(matches!(unknown, Err(ReplayError::Empty)), "{unknown:?}");
    run.batch(vec![Proposal::new("c", "echo", r#"{"text":"hi"}"#)]).await.unwrap();
    let records = tape.records(run.id());
    let gap = Replay::of_records(vec![records[0].clone(), records[2].clone()]).check().await;
    assert!(gap.unwrap_err().to_string().contains("corrupt at record 1"));
    let headless = Replay::of_records(records[1..].to_vec()).check().await;
    assert!(headless.unwrap_err().to_string().contains("not the beginning of a run"));
    let cut = Replay::of_records(records[..3].to_vec()).with(&toolbox).check().await.unwrap();
    assert!(cut.is_same() && cut.to_string().contains("ends before these calls do: #1"), "{cut}");
}

#[tokio::test]
async fn a_missing_artifact_is_reported_and_the_rest_is_played() {
    let tape = MemoryTape::default();
    let mut spec = pure("long");
    spec.bounds.output_bytes = Bound::At(1_000);
    let long = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>(Output::text("x".repeat(9_000))));
    let toolbox = Toolbox::new([long]).unwrap();
    let kept = Artifacts::memory();
    let run = allowed(&toolbox, &tape).grant(kept.clone());
    let replies = run.batch(vec![Proposal::new("c", "long", "{}")]).await.unwrap();
    assert_eq!(replies[0].artifacts.len(), 1);
    let replay = || Replay::of(&tape, run.id()).with(&toolbox);
    assert!(replay().artifacts(run.artifacts()).check().await.unwrap().is_same());
    let report = replay().artifacts(&Artifacts::memory()).check().await.unwrap();
    assert_eq!((report.missing_artifacts.len(), report.divergences.len()), (1, 0), "{report}");
}

#[tokio::test]
async fn tools_that_came_and_went_are_there_when_they_were() {
    let tape = MemoryTape::default();
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    let run = allowed(&toolbox, &tape);
    let runs = Arc::new(AtomicU64::new(0));
    let late = || counted(Spec::new("late", "Comes late.").access(Access::Read), &runs);
    let propose = || call("late");
    run.batch(propose()).await.unwrap();
    run.add(late()).unwrap();
    run.batch(propose()).await.unwrap();
    run.remove("late").unwrap();
    run.batch(propose()).await.unwrap();
    let with_late = Toolbox::new(builtin::tools().into_iter().chain([late()])).unwrap();
    let report = Replay::of(&tape, run.id()).with(&with_late).check().await.unwrap();
    assert!(report.is_same(), "{report}");
    let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
    let first = report.first().unwrap();
    assert_eq!((&*first.event, first.causes[0].kind()), ("run.tools", "tool_missing"), "{report}");
}

#[tokio::test]
async fn what_was_refused_then_and_is_not_now_is_a_difference() {
    let (tape, runs) = (MemoryTape::default(), Arc::new(AtomicU64::new(0)));
    let run = allowed(&Toolbox::default(), &tape);
    run.batch(call("count")).await.unwrap();
    let toolbox = Toolbox::new([counted(Spec::new("count", "Counts."), &runs)]).unwrap();
    let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
    let first = report.first().unwrap();
    assert_eq!((&*first.event, first.causes[0].kind()), ("call.settled", "tool_new"), "{report}");
    assert_eq!(first.now.as_ref().unwrap()["type"], json!("call.judged"));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_replayed_reply_says_where_its_recorded_result_came_from() {
    let (runs, tape) = (Arc::new(AtomicU64::new(7)), MemoryTape::default());
    let still = tool_fn(pure("still"), async |args: Number| Ok::<_, ToolError>(args.n));
    let write = counted(Spec::new("count", "Counts."), &runs);
    let toolbox = Toolbox::new([still, write]).unwrap();
    let run = allowed(&toolbox, &tape).layer(Cache::default());
    for tool in ["still", "still", "count"] {
        run.batch(call(tool)).await.unwrap();
    }
    let sources = |tape: &MemoryTape| -> Vec<Source> {
        let records = tape.records(run.id()).into_iter();
        let settled = records.filter_map(|record| match record.event {
            Event::Settled(reply) => Some(reply.source),
            _ => None,
        });
        settled.collect()
    };
    let recorded = sources(&tape);
    assert_eq!(recorded, [Source::Tool, Source::Cache, Source::Tool]);
    let report = Replay::of(&tape, run.id()).with(&toolbox).check().await.unwrap();
    assert!(report.is_same(), "{report}");
    assert_eq!(sources(&report.tape), recorded);
}

#[tokio::test]
async fn every_call_leaves_its_hashes_and_a_failure_its_text() {
    let tape = MemoryTape::default();
    let mut spec = Spec::new("slow", "Takes too long.").access(Access::Read);
    spec.bounds.wall = Bound::At(Duration::from_millis(5));
    let slow = tool_fn(spec, async |_: Empty| {
        std::future::pending::<()>().await;
        Ok::<_, ToolError>(())
    });
    let tools = builtin::tools().into_iter().chain([slow]);
    let toolbox = Toolbox::new(tools).unwrap();
    let run = allowed(&toolbox, &tape);
    let propose = |id, tool, args| Proposal::new(id, tool, args);
    let proposals = vec![
        propose("a", "echo", r#"{"text":"hi"}"#),
        propose("b", "nobody", "{}"),
        propose("c", "slow", "{}"),
    ];
    run.batch(proposals).await.unwrap();
    let records = tape.records(run.id());
    let settled = records.iter().filter(|record| record.event.kind() == "call.settled");
    let settled: Vec<_> = settled.map(|it| serde_json::to_value(&it.event).unwrap()).collect();
    assert_eq!(settled.len(), 3);
    for event in &settled {
        let hashes = ["args_hash", "result_hash"].map(|it| event[it].as_str().unwrap().len());
        assert_eq!(hashes, [64, 64]);
        let failed = event["call_id"] != "a";
        assert_eq!(event["is_error"], failed);
        assert_eq!(event["fault"]["message"].as_str().is_some_and(|it| !it.is_empty()), failed);
    }
    let timeout = settled.iter().find(|event| event["call_id"] == "c").unwrap();
    assert_eq!(timeout["fault"]["message"], "the bound `wall` of 5 ms was reached");
}

/// A pure tool that says this while it runs.
fn telling(says: &'static [&'static str]) -> Arc<dyn Tool> {
    tool_fn(pure("tell"), move |args: Number, progress: Progress| async move {
        for text in says {
            progress.say(*text);
            progress.emit("said", &json!({ "bytes": text.len() }))?;
        }
        Ok::<_, ToolError>(args.n)
    })
}

#[tokio::test]
async fn what_a_call_says_while_it_is_executed_again_is_compared() {
    let tape = MemoryTape::default();
    let toolbox = |says| Toolbox::new([telling(says)]).unwrap();
    let recorded: &[&str] = &["one", "two"];
    let run = allowed(&toolbox(recorded), &tape);
    run.batch(call("tell")).await.unwrap();
    let same = Replay::of(&tape, run.id()).with(&toolbox(recorded)).check().await.unwrap();
    assert!(same.is_same(), "{same}");
    assert_eq!(same.tape.head(run.id()).unwrap(), tape.head(run.id()).unwrap());
    let altered: [(&[&str], u64, &str, &str); 4] = [
        (&["one", "zwei"], 6, "call.progress", "/text"),
        (&["one"], 6, "call.progress", ""),
        (&["one", "two", "three"], 8, "call.settled", ""),
        (&[], 4, "call.progress", ""),
    ];
    for (says, seq, event, pointer) in altered {
        let replay = || Replay::of(&tape, run.id()).with(&toolbox(says));
        for report in
            [replay().check().await.unwrap(), replay().report_all().check().await.unwrap()]
        {
            let [found] = &report.divergences[..] else { panic!("{says:?}: {report}") };
            assert_eq!((found.seq, found.event.as_str()), (seq, event), "{says:?}: {report}");
            assert_eq!(found.pointer, pointer, "{says:?}: {report}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_when_it_is_executed_again_differs_in_time() {
    let tape = MemoryTape::default();
    let is_stuck = Arc::new(AtomicU64::new(0));
    let mut spec = pure("stick");
    spec.bounds.wall = Bound::Unlimited;
    let stuck = is_stuck.clone();
    let tool = tool_fn(spec, move |args: Number| {
        let stuck = stuck.clone();
        async move {
            if stuck.load(Ordering::SeqCst) > 0 {
                std::future::pending::<()>().await;
            }
            Ok::<_, ToolError>(args.n)
        }
    });
    let toolbox = Toolbox::new([tool]).unwrap();
    let run = allowed(&toolbox, &tape);
    run.batch(call("stick")).await.unwrap();
    is_stuck.store(1, Ordering::SeqCst);
    for wall in [None, Some(Duration::from_millis(5))] {
        let replay = Replay::of(&tape, run.id()).with(&toolbox);
        let replay = wall.into_iter().fold(replay, Replay::wall);
        let (began, report) = (tokio::time::Instant::now(), replay.check().await.unwrap());
        let most = wall.unwrap_or(tooltape::limits::REPLAY_WALL_DEFAULT);
        assert_eq!(began.elapsed().as_millis(), most.as_millis());
        let [found] = &report.divergences[..] else { panic!("{report}") };
        assert_eq!((found.pointer.as_str(), &found.now), ("/executed", &Some(json!("unknown"))));
    }
}
