//! Every clock that can end a call, and that each says which one it was.

use std::sync::mpsc;
use std::time::Duration;

use tooltape::testing::proposals;
use tooltape::{
    Bound, BoundKind, Bounds, Effects, Empty, Event, Executed, MemoryTape, Progress, Reply, Spec,
    ToolError, tool_fn, tool_fn_blocking,
};

use crate::stage::{Stage, free, limited};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn exceeded(reply: &Reply) -> (BoundKind, Executed) {
    let bound = reply.fault.as_ref().and_then(|fault| fault.bound);
    (bound.unwrap_or_else(|| panic!("a bound: {}", reply.text())), reply.executed)
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_wall_time_ends_it_and_names_the_bound() {
    let stage = Stage::new();
    let bounds = Bounds { wall: Bound::At(MS(30)), ..Bounds::default() };
    let slow = stage.tool(Spec::new("slow", "Hangs.").effects(Effects::read()).bounds(bounds));
    let run = free([slow, stage.read("read")]);
    let replies = run.batch(proposals("slow {\"ms\":900}\nread {\"ms\":900}")).await.unwrap();
    assert_eq!(exceeded(&replies[0]), (BoundKind::Wall, Executed::Unknown));
    assert_eq!(replies[0].text(), "unknown: the bound `wall` of 30 ms was reached");
    assert!(!replies[1].is_error, "the default is longer");
}

#[tokio::test(start_paused = true)]
async fn the_deadlines_of_batch_and_run_are_told_apart_from_a_tools() {
    let stage = Stage::new();
    let run = limited(free([stage.read("read"), stage.write("write")]), |limits| {
        (limits.batch_wall, limits.run_wall) = (MS(100), MS(250));
    });
    let script = "read {\"ms\":900}\nwrite {}";
    let first = run.batch(proposals(script)).await.unwrap();
    assert_eq!(exceeded(&first[0]), (BoundKind::BatchWall, Executed::Unknown));
    assert_eq!(exceeded(&first[1]), (BoundKind::BatchWall, Executed::NotExecuted), "it waited");
    run.batch(proposals("read {\"ms\":90}")).await.unwrap();
    let third = run.batch(proposals("read {\"ms\":90}")).await.unwrap();
    assert_eq!(exceeded(&third[0]), (BoundKind::RunWall, Executed::Unknown));
    let fourth = run.batch(proposals("read {}")).await.unwrap();
    assert_eq!(exceeded(&fourth[0]), (BoundKind::RunWall, Executed::NotExecuted));
    assert_eq!(stage.ms(), 250);
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_a_call_alive_and_silence_ends_it() {
    let talk = tool_fn(
        Spec::new("talk", "Talks, then falls silent.").effects(Effects::read()),
        async |_: Empty, progress: Progress| {
            for step in 0..5 {
                tokio::time::sleep(MS(40)).await;
                progress.say(format!("step {step}"));
            }
            tokio::time::sleep(MS(900)).await;
            Ok::<_, ToolError>(())
        },
    );
    let run = limited(free([talk]), |limits| limits.idle = MS(50));
    let started = tokio::time::Instant::now();
    let replies = run.batch(proposals("talk {}")).await.unwrap();
    assert_eq!(exceeded(&replies[0]), (BoundKind::Idle, Executed::Unknown));
    let lasted = started.elapsed();
    assert!(lasted >= MS(250) && lasted <= MS(300), "five steps and one silence: {lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn silence_is_counted_from_the_last_word_and_not_from_the_last_look() {
    let talk = tool_fn(
        Spec::new("talk", "Says one word.").effects(Effects::read()),
        async |_: Empty, progress: Progress| {
            tokio::time::sleep(MS(1)).await;
            progress.say("once");
            std::future::pending::<()>().await;
            Ok::<_, ToolError>(())
        },
    );
    let run = limited(free([talk]), |limits| limits.idle = MS(1000));
    let started = tokio::time::Instant::now();
    let replies = run.batch(proposals("talk {}")).await.unwrap();
    assert_eq!(exceeded(&replies[0]), (BoundKind::Idle, Executed::Unknown));
    assert_eq!(started.elapsed().as_millis(), 1001);
}

#[tokio::test]
async fn a_blocking_tool_that_ignores_its_deadline_is_abandoned_counted_and_reported() {
    let (release, hold) = mpsc::channel::<()>();
    let hold = std::sync::Mutex::new(hold);
    let bounds = Bounds { wall: Bound::At(MS(20)), ..Bounds::default() };
    let stuck = tool_fn_blocking(
        Spec::new("stuck", "Ignores its deadline.").effects(Effects::read()).bounds(bounds),
        move |_: Empty| {
            let _ = hold.lock().unwrap().recv();
            Ok::<_, ToolError>(())
        },
    );
    let free_tool = tool_fn_blocking(
        Spec::new("quick", "Ends at once.").effects(Effects::read()),
        |_: Empty| Ok::<_, ToolError>("done"),
    );
    let tape = MemoryTape::default();
    let run = limited(free([stuck, free_tool]).tape(tape.clone()), |limits| limits.blocking = 2);
    let replies = run.batch(proposals("stuck {}\nquick {}")).await.unwrap();
    assert_eq!(exceeded(&replies[0]), (BoundKind::Wall, Executed::Unknown));
    assert_eq!(replies[1].text(), "done", "the other thread is free");
    assert_eq!(run.abandoned(), 1);
    let records = tape.records(run.id());
    assert!(records.iter().any(|it| matches!(it.event, Event::Abandoned { attempt: 1, .. })));
    release.send(()).unwrap();
    while run.abandoned() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn blocking_tools_never_keep_more_threads_busy_than_the_bound() {
    let (running, most) = (std::sync::Arc::new(std::sync::Mutex::new((0, 0))), 3);
    let count = running.clone();
    let busy = tool_fn_blocking(
        Spec::new("busy", "Counts who is with it.").effects(Effects::read()),
        move |_: Empty| {
            {
                let mut count = count.lock().unwrap();
                count.0 += 1;
                count.1 = count.1.max(count.0);
            }
            std::thread::yield_now();
            count.lock().unwrap().0 -= 1;
            Ok::<_, ToolError>(())
        },
    );
    let run = limited(free([busy]), |limits| limits.blocking = most);
    let replies = run.batch(proposals(&"busy {}\n".repeat(60))).await.unwrap();
    assert!(replies.iter().all(|reply| !reply.is_error));
    assert!(running.lock().unwrap().1 <= most);
}
