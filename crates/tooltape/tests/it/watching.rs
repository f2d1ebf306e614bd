//! Watching a run while it goes on: order, slow subscribers, ends; acceptance 44 and 48.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tooltape::testing::{Spy, play, proposals};
use tooltape::{
    Access, Agent, Backlog, Empty, Event, MemoryTape, Progress, Proposal, Run, Script, Seen, Spawn,
    Spec, Subscription, Tool, ToolError, Turn, input, tool, tool_fn, tools,
};

use crate::declaring::{over, reply};

#[input]
struct Talk {
    lines: u32,
}

/// Says so many lines, and names each tenth.
#[tool(Read)]
async fn talk(args: Talk, progress: Progress) -> Result<u32, ToolError> {
    for line in 1..=args.lines {
        progress.say(format!("line {line}"));
        if line % 10 == 0 {
            progress.emit("tenth", &line)?;
        }
    }
    Ok(args.lines)
}

/// All that is there to be seen at this moment.
fn now(seen: &mut Subscription) -> Vec<Seen> {
    std::iter::from_fn(|| seen.next().now_or_never().flatten()).collect()
}

/// A line for each, as `--jsonl` would print its type.
fn lines(seen: &[Seen]) -> Vec<String> {
    let line = |seen: &Seen| match seen {
        Seen::Record(record) => kind(&record.event),
        Seen::Missed { progress } => format!("missed {progress}"),
        Seen::Lagged { from } => format!("lagged from {from}"),
        _ => unreachable!("there is no other"),
    };
    seen.iter().map(line).collect()
}

fn kind(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap();
    match value["text"].as_str() {
        Some(text) => text.to_owned(),
        None => value["type"].as_str().unwrap().to_owned(),
    }
}

fn backlog(progress: usize, records: usize, bytes: usize) -> Backlog {
    let mut backlog = Backlog::default();
    (backlog.progress, backlog.records, backlog.bytes) = (progress, records, bytes);
    backlog
}

#[tokio::test]
async fn a_subscriber_sees_every_record_in_the_order_of_the_tape() {
    let tape = MemoryTape::default();
    let run = over([talk::tool(), Spy::new("spy", Access::Write).tool()]).tape(tape.clone());
    let mut seen = run.subscribe(Backlog::default());
    let script = "talk {\"lines\":10}\nspy {}\nnobody {}\ntalk {\"lines\":2}";
    let model = Script::new([Turn::calls(proposals(script)), Turn::answer("done")]);
    let agent = Agent::new(model, run);
    agent.ask("Talk.").await.unwrap();
    let id = agent.run().id();
    drop(agent);
    let mut records = Vec::new();
    while let Some(Seen::Record(record)) = seen.next().await {
        records.push(serde_json::to_string(&record).unwrap());
    }
    let taped = tape.records(id);
    let taped = taped.iter().map(|record| serde_json::to_string(record).unwrap());
    assert_eq!(records, taped.collect::<Vec<_>>());
    assert!(records[0].contains("run.started"));
    assert!(records.last().unwrap().contains("run.ended"));
}

#[tokio::test]
async fn partial_updates_and_named_events_are_seen_before_the_final_result() {
    let gate = Arc::new(Semaphore::new(0));
    let waits = gate.clone();
    let spec = Spec::new("work", "Works.").access(Access::Read);
    let work = tool_fn(spec, move |_: Empty, progress: Progress| {
        let gate = waits.clone();
        async move {
            progress.say("half-way");
            progress.emit("found", &42)?;
            let _open = gate.acquire().await?;
            Ok::<_, ToolError>("all of it")
        }
    });
    let run = over([work]);
    let mut seen = run.subscribe(Backlog::default());
    let mut batch = Box::pin(run.batch(proposals("work {}")));
    assert!(futures_util::poll!(&mut batch).is_pending());
    let early = lines(&now(&mut seen));
    let begun = ["run.started", "call.proposed", "call.judged", "call.started"];
    assert_eq!(early[..4], begun);
    assert_eq!(early[4..], ["half-way", "call.emitted"]);
    gate.add_permits(1);
    let replies = batch.await.unwrap();
    assert_eq!(lines(&now(&mut seen)), ["call.settled"]);
    let told = serde_json::to_string(&replies[0]).unwrap();
    assert!(!told.contains("half-way") && !told.contains("found"), "the model does not: {told}");
}

#[tokio::test]
async fn a_slow_subscriber_loses_the_oldest_progress_alone_and_is_told_how_much() {
    let run = over(tools![talk]);
    let mut slow = run.subscribe(backlog(3, 100, usize::MAX));
    let mut quick = run.subscribe(Backlog::default());
    let told = play(&run, "talk {\"lines\":9}\ntalk {\"lines\":2}").await;
    assert_eq!(told, "c1 9\nc2 2\n");
    let seen = lines(&now(&mut slow));
    let lasting = ["call.proposed", "call.judged", "call.started"];
    assert_eq!(seen[..2], ["missed 8", "run.started"]);
    let kept = seen.iter().filter(|line| line.starts_with("line"));
    assert_eq!(kept.collect::<Vec<_>>(), ["line 9", "line 1", "line 2"]);
    for kind in lasting {
        assert_eq!(seen.iter().filter(|line| *line == kind).count(), 2, "{seen:?}");
    }
    assert_eq!(seen.iter().filter(|line| *line == "call.settled").count(), 2);
    assert!(now(&mut quick).iter().all(|seen| matches!(seen, Seen::Record(_))));

    reply(&run, "talk", r#"{"lines":1}"#).await;
    let seen = lines(&now(&mut slow));
    assert_eq!(seen.last().unwrap(), "call.settled");
    assert!(!seen.iter().any(|line| line.starts_with("missed")), "it is told once: {seen:?}");
}

#[tokio::test]
async fn who_wants_no_progress_is_only_told_how_much_there_was() {
    let run = over(tools![talk]);
    let mut seen = run.subscribe(backlog(0, 100, usize::MAX));
    reply(&run, "talk", r#"{"lines":20}"#).await;
    let lines = lines(&now(&mut seen));
    assert_eq!((lines[0].as_str(), lines.len()), ("missed 22", 6));
}

#[tokio::test]
async fn a_subscriber_that_falls_too_far_behind_is_told_where_to_read_on_and_blocks_nobody() {
    let tape = MemoryTape::default();
    let run = over([Spy::new("spy", Access::Read).tool()]).tape(tape.clone());
    let mut slow = run.subscribe(backlog(10, 6, usize::MAX));
    assert_eq!(play(&run, "spy {}\nspy {}\nspy {}").await, "c1 {}\nc2 {}\nc3 {}\n");
    let seen = now(&mut slow);
    assert_eq!(seen.len(), 7);
    let Seen::Lagged { from } = seen[6] else { panic!("it lagged: {:?}", lines(&seen)) };
    assert_eq!(from, 6);
    assert!(slow.next().await.is_none(), "it is over, though the run goes on");
    let rest = &tape.records(run.id())[from as usize..];
    assert_eq!(rest.last().map(|record| kind(&record.event)).unwrap(), "call.settled");
}

#[tokio::test]
async fn a_backlog_is_bounded_in_bytes_and_progress_makes_room_first() {
    let chatty = |lines: u32| format!("talk {{\"lines\":{lines}}}");
    let run = over([talk::tool(), Spy::new("spy", Access::Read).tool()]);
    let mut roomy = run.subscribe(backlog(1_000, 1_000, 20_000));
    play(&run, &chatty(200)).await;
    let seen = lines(&now(&mut roomy));
    assert!(seen[0].starts_with("missed "), "{seen:?}");
    assert_eq!(seen.last().unwrap(), "call.settled");

    let mut narrow = run.subscribe(backlog(1_000, 1_000, 2_000));
    let huge = format!("spy {{\"text\":\"{}\"}}", "x".repeat(10_000));
    play(&run, &huge).await;
    let seen = lines(&now(&mut narrow));
    assert_eq!(seen, ["call.proposed", "lagged from 226"], "one alone may be larger");
}

#[tokio::test]
async fn whoever_comes_later_sees_what_happens_from_then_on() {
    let run = over([Spy::new("spy", Access::Read).tool()]);
    reply(&run, "spy", "{}").await;
    let mut late = run.subscribe(Backlog::default());
    assert!(now(&mut late).is_empty());
    reply(&run, "spy", "{}").await;
    let seen = now(&mut late);
    assert_eq!(lines(&seen)[0], "call.proposed");
    let Seen::Record(first) = &seen[0] else { panic!("it is a record") };
    assert_eq!(first.seq, 5);
}

#[tokio::test]
async fn waiting_ends_with_the_next_record_or_with_the_run() {
    let run = over([Spy::new("spy", Access::Read).tool()]);
    let mut seen = run.subscribe(Backlog::default());
    let watching = tokio::spawn(async move {
        let mut settled = 0;
        while let Some(next) = seen.next().await {
            settled += usize::from(lines(&[next]) == ["call.settled"]);
        }
        settled
    });
    for _ in 0..3 {
        tokio::task::yield_now().await;
        reply(&run, "spy", "{}").await;
    }
    drop(run);
    assert_eq!(watching.await.unwrap(), 3);
}

#[tokio::test]
async fn a_dropped_subscription_or_a_dropped_wait_disturbs_nothing() {
    let run = over([Spy::new("spy", Access::Read).tool()]);
    let mut seen = run.subscribe(Backlog::default());
    drop(run.subscribe(Backlog::default()));
    assert!(seen.next().now_or_never().is_none(), "this wait is dropped");
    reply(&run, "spy", "{}").await;
    assert_eq!(now(&mut seen).len(), 5);
}

#[tokio::test]
async fn a_childs_records_are_the_childs_own() {
    let spec = Spec::new("nest", "Runs a child.");
    let nest = tool_fn(spec, async |_: Empty, spawn: Spawn| {
        let child = spawn.child()?.start();
        let mut seen = child.subscribe(Backlog::default());
        child.batch(vec![Proposal::new("c1", "spy", "{}")]).await?;
        Ok::<_, ToolError>(now(&mut seen).len())
    });
    let run: Run = over([nest, Spy::new("spy", Access::Read).tool() as Arc<dyn Tool>]);
    let mut seen = run.subscribe(Backlog::default());
    assert_eq!(reply(&run, "nest", "{}").await.text(), "5");
    assert_eq!(now(&mut seen).len(), 5, "of the parent, only its own call");
}
