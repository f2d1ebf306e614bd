//! Tools that misuse what the host gives them: time in the host is not fuel, unless it is made so.

use std::sync::atomic::Ordering;

use tooltape::Proposal;

use super::crafted::Crafted;
use super::interfaces::{
    CANCEL, CLOCK, ENVIRONMENT, EXIT, FILES, HTTP, LOG, POLL, PROGRESS, RANDOM, STATE, STDOUT,
    WASI_RANDOM,
};
use super::{World, bounded, ended};

/// How often a test looks whether something happened, each time letting others run.
const LOOKS_MAX: usize = 1_000_000;

#[tokio::test]
async fn what_is_asked_of_the_host_is_paid_for() {
    let fuel = "exceeded fuel: 5000000 of 5000000";
    World::new()
        .check(&[
            (
                "a flood of the log",
                Crafted {
                    imports: &[LOG],
                    call: "(loop (call $log (i32.const 1024) (i32.const 0)) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
            (
                "a flood of long lines",
                Crafted {
                    imports: &[LOG],
                    call: "(memory.fill (i32.const 20000) (i32.const 120) (i32.const 40000))
                        (loop (call $log (i32.const 20000) (i32.const 40000)) (br 0))
                        (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
            (
                "a flood of progress",
                Crafted {
                    imports: &[PROGRESS],
                    call: "(loop (call $say (i32.const 2048) (i32.const 7)) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
            (
                "a flood of its standard output",
                Crafted {
                    imports: &[STDOUT],
                    call: "(local.set $i (call $stdout))
                        (loop (call $print (local.get $i) (i32.const 0) (i32.const 4096)
                            (i32.const 0)) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
            (
                "a flood of questions",
                Crafted {
                    imports: &[CANCEL],
                    call: "(loop (drop (call $is_requested)) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
        ])
        .await;
}

#[tokio::test]
async fn what_is_got_of_the_host_is_paid_for() {
    let fuel = "exceeded fuel: 5000000 of 5000000";
    World::new()
        .check(&[
            (
                "a flood of changes",
                Crafted {
                    imports: &[STATE],
                    access: 2,
                    call: "(i32.store8 (i32.const 0) (i32.const 49))
                        (loop (call $set (i32.const 2048) (i32.const 7) (i32.const 0)
                            (i32.const 1) (i32.const 8)) (br 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
            (
                "all the chance that there is",
                Crafted {
                    imports: &[RANDOM],
                    needs: &["random:read:any"],
                    call: "(loop (call $random_bytes (i32.const 4096) (i32.const 0)) (br 0))
                        (unreachable)",
                    bounds: [None, None, Some(500_000), None],
                    ..Crafted::default()
                },
                "exceeded fuel: 500000 of 500000",
            ),
            (
                "more of a file than it may have",
                Crafted {
                    imports: &[FILES],
                    needs: &["fs:read:data"],
                    access: 1,
                    fields: r#"(data (i32.const 512) "data/file")"#,
                    call: "(call $read (i32.const 512) (i32.const 9) (i64.const 0) (i32.const -1)
                        (i32.const 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
            (
                "more of a page than it may have",
                Crafted {
                    imports: &[HTTP],
                    needs: &["net:get:example.com"],
                    access: 1,
                    fields: r#"(data (i32.const 512) "https://example.com/")"#,
                    call: "(call $fetch (i32.const 512) (i32.const 20) (i32.const -1)
                        (i32.const 0)) (unreachable)",
                    ..Crafted::default()
                },
                fuel,
            ),
        ])
        .await;
}

#[tokio::test]
async fn handles_are_what_the_host_handed_out_and_few() {
    let printing = |call| Crafted { imports: &[STDOUT], call, ..Crafted::default() };
    World::new()
        .check(&[
            (
                "handles without end",
                printing("(loop (drop (call $stdout)) (br 0)) (unreachable)"),
                "failed trap",
            ),
            (
                "a handle that it made up",
                printing(
                    "(call $print (i32.const 77) (i32.const 0) (i32.const 1) (i32.const 0))
                    (call $answer (i64.const 1))",
                ),
                "failed trap",
            ),
            (
                "a handle that it gave back",
                printing(
                    "(local.set $i (call $stdout)) (call $close (local.get $i))
                    (call $print (local.get $i) (i32.const 0) (i32.const 1) (i32.const 0))
                    (call $answer (i64.const 1))",
                ),
                "failed trap",
            ),
            (
                "a handle that it gives back twice",
                printing(
                    "(local.set $i (call $stdout)) (call $close (local.get $i))
                    (call $close (local.get $i)) (call $answer (i64.const 1))",
                ),
                "failed trap",
            ),
            (
                "a text for the host where no memory is",
                printing(
                    "(call $print (call $stdout) (i32.const 65535) (i32.const -1)
                    (i32.const 0)) (call $answer (i64.const 1))",
                ),
                "failed trap",
            ),
            (
                "as many zeroes as a number can say",
                printing(
                    "(call $print_zeroes (call $stdout) (i64.const -1) (i32.const 0))
                    (call $answer (i64.const 1))",
                ),
                "answered 1",
            ),
        ])
        .await;
}

#[tokio::test]
async fn the_host_tells_nothing_and_time_stands_still() {
    World::new()
        .check(&[
            (
                "the variables of the host",
                Crafted {
                    imports: &[ENVIRONMENT],
                    call: "(call $variables (i32.const 0))
                        (call $answer (i64.extend_i32_u (i32.load (i32.const 4))))",
                    ..Crafted::default()
                },
                "answered 0",
            ),
            (
                "the arguments of the host",
                Crafted {
                    imports: &[ENVIRONMENT],
                    call: "(call $arguments (i32.const 0))
                        (call $answer (i64.extend_i32_u (i32.load (i32.const 4))))",
                    ..Crafted::default()
                },
                "answered 0",
            ),
            (
                "a clock to measure the host with",
                Crafted {
                    imports: &[CLOCK],
                    needs: &["clock:read:now"],
                    call: "(local.set $n (call $now))
                        (local.set $i (i32.const 100000))
                        (loop (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
                        (call $answer (i64.sub (call $now) (local.get $n)))",
                    ..Crafted::default()
                },
                "answered 0",
            ),
            (
                "an hour's sleep",
                Crafted {
                    imports: &[POLL],
                    needs: &["clock:read:now"],
                    call: "(local.set $n (call $instant))
                        (i32.store (i32.const 0) (call $sleep (i64.const 3600000000000)))
                        (call $poll (i32.const 0) (i32.const 1) (i32.const 8))
                        (call $answer (i64.sub (call $instant) (local.get $n)))",
                    ..Crafted::default()
                },
                "answered 0",
            ),
        ])
        .await;
}

#[tokio::test]
async fn the_host_makes_no_more_room_than_there_is() {
    World::new()
        .check(&[
            (
                "waiting for what it made up",
                Crafted {
                    imports: &[POLL],
                    needs: &["clock:read:now"],
                    call: "(call $poll (i32.const 0) (i32.const 100) (i32.const 8)) (unreachable)",
                    ..Crafted::default()
                },
                "failed trap",
            ),
            (
                "waiting for all of memory",
                Crafted {
                    imports: &[POLL],
                    needs: &["clock:read:now"],
                    call: "(call $poll (i32.const 0) (i32.const -1) (i32.const 8)) (unreachable)",
                    ..Crafted::default()
                },
                "failed trap",
            ),
            (
                "more chance than there is (RUSTSEC-2026-0020)",
                Crafted {
                    imports: &[WASI_RANDOM],
                    needs: &["random:read:any"],
                    call: "(call $wasi_random (i64.const -1) (i32.const 0)) (unreachable)",
                    ..Crafted::default()
                },
                "failed trap",
            ),
            (
                "as much chance as a number can say",
                Crafted {
                    imports: &[RANDOM],
                    needs: &["random:read:any"],
                    call: "(call $random_bytes (i32.const -1) (i32.const 0))
                        (call $answer (i64.extend_i32_u (i32.load (i32.const 4))))",
                    ..Crafted::default()
                },
                "answered 65536",
            ),
            (
                "ending the host",
                Crafted {
                    imports: &[EXIT],
                    call: "(call $exit (i32.const 0)) (unreachable)",
                    ..Crafted::default()
                },
                "failed exit",
            ),
        ])
        .await;
}

#[tokio::test]
async fn of_a_flood_little_is_kept() {
    let world = World::new();
    let flood = Crafted {
        imports: &[STDOUT],
        call: "(memory.fill (i32.const 20000) (i32.const 120) (i32.const 4096))
            (local.set $i (i32.const 500))
            (loop (call $print (call $stdout) (i32.const 20000) (i32.const 4096) (i32.const 0))
                (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
            (call $answer (i64.const 1))",
        ..Crafted::default()
    };
    let component = world.load(&bounded(&flood).bytes()).await.unwrap();
    let reply = world.call(&component).await;
    assert_eq!(ended(&reply), "answered 1");
    let log = reply.details.as_ref().unwrap()["log"].as_str().unwrap();
    assert!(log.len() < 17_000 && log.ends_with("bytes more)"), "{} bytes", log.len());
}

/// A tool that waits for a page that never comes.
fn waiting() -> Crafted {
    Crafted {
        imports: &[HTTP],
        needs: &["net:get:example.com"],
        access: 1,
        fields: r#"(data (i32.const 512) "https://example.com/never")"#,
        call: "(call $fetch (i32.const 512) (i32.const 25) (i32.const 1) (i32.const 0))
            (unreachable)",
        ..Crafted::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_answers_ends_the_call_by_its_wall() {
    let world = World::new();
    let end = world.end(&waiting()).await;
    assert!(end.starts_with("exceeded wall: "), "{end}");
    assert_eq!(world.touched.take(), ["get https://example.com/never"]);
    let once = Crafted { bounds: [Some(700), None, None, None], ..waiting() };
    let end = world.end(&once).await;
    assert!(end.starts_with("exceeded wall: ") && end.contains("700"), "{end}");
}

/// What is dropped in the middle of a call to the host leaves nothing behind (RUSTSEC-2026-0022).
#[tokio::test]
async fn a_call_that_is_cancelled_or_dropped_in_the_host_frees_what_it_had() {
    let world = World::new();
    let component = world.load(&bounded(&waiting()).bytes()).await.unwrap();
    let began = |count| {
        let touched = world.touched.clone();
        async move {
            for _ in 0..LOOKS_MAX {
                if touched.waiting.load(Ordering::SeqCst) == count {
                    return;
                }
                tokio::task::yield_now().await;
            }
            panic!("the page was never asked for");
        }
    };
    // Twice as often as there are places.
    for count in 1..=8 {
        let run = world.run(&component);
        let proposals = vec![Proposal::new("call_1", "crafted", "{}")];
        let cancelling = async {
            began(count).await;
            run.cancel();
        };
        let (replies, ()) = tokio::join!(run.batch(proposals), cancelling);
        let end = ended(&replies.unwrap()[0]);
        assert!(end.starts_with("cancelled"), "{end}");
    }
    for count in 9..=16 {
        let calling = world.call(&component);
        tokio::select! {
            _ = calling => panic!("it was answered"),
            () = began(count) => {}
        }
    }
    assert_eq!(world.end(&Crafted::default()).await, "answered 1");
}

#[tokio::test]
async fn a_call_that_only_computes_can_be_cancelled() {
    let world = World::new();
    let call = "(call $say (i32.const 2048) (i32.const 7)) (loop (br 0)) (unreachable)";
    let bounds = [None, None, Some(1_000_000_000_000), None];
    let spin = Crafted { imports: &[PROGRESS], call, bounds, ..Crafted::default() };
    let component = world.load(&bounded(&spin).bytes()).await.unwrap();
    let run = world.run(&component);
    let proposals = vec![Proposal::new("call_1", "crafted", "{}")];
    let cancelling = async {
        for _ in 0..LOOKS_MAX {
            if run.running() == 1 {
                return run.cancel();
            }
            tokio::task::yield_now().await;
        }
        panic!("it never ran");
    };
    let (replies, ()) = tokio::join!(run.batch(proposals), cancelling);
    let end = ended(&replies.unwrap()[0]);
    assert!(end.starts_with("cancelled"), "{end}");
}
