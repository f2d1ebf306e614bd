//! What one call does wrong stays with that call, and what a host fills stays with the host.

use std::error::Error;
use std::time::Duration;
use std::{fmt, panic};

use tooltape::testing::{Spy, play, proposals};
use tooltape::{
    Access, Answer, Bound, Bounds, Effects, Empty, Executed, Repeat, Retry, Secret, Spec,
    ToolError, Verdict, bind, input, tool_fn,
};

use crate::declaring::{over, reply};
use crate::stage::{Stage, free};

#[input(check)]
struct Initial {
    text: String,
}

impl Initial {
    /// Wrong on purpose: the first character may have more than one byte.
    fn check(&self) -> Result<(), String> {
        let _ = &self.text[..1];
        Ok(())
    }
}

#[tokio::test]
async fn a_check_that_panics_refuses_its_call_and_the_others_go_on() {
    let spec = Spec::new("initial", "Takes the first letter.").access(Access::Read);
    let initial = tool_fn(spec, async |_: Initial| Ok::<_, ToolError>("done"));
    let run = over([initial, Spy::new("spy", Access::Read).tool()]);
    let told = play(&run, "initial {\"text\":\"é\"}\nspy {}\ninitial {\"text\":\"e\"}").await;
    let expected = "c1 not executed: the tool failed to check these arguments\nc2 {}\nc3 done\n";
    assert_eq!(told, expected);
}

#[input]
enum Region {
    Eu,
    Us,
}

#[input]
struct Call {
    region: Region,
}

#[tokio::test]
async fn a_filled_value_that_does_not_fit_is_shown_to_nobody() {
    let spec = Spec::new("call", "Calls a region.").access(Access::Read);
    let call = tool_fn(spec, async |call: Call| match call.region {
        Region::Eu | Region::Us => Ok::<_, ToolError>(()),
    });
    let bound = bind(call, "region", |key: &Secret<String>| key.expose().clone().into()).unwrap();
    let run = over([bound]).grant(Secret::new("hunter2".to_owned()));
    let reply = reply(&run, "call", "{}").await;
    assert_eq!(reply.executed, Executed::NotExecuted);
    assert_eq!(reply.text(), "not executed: the filled arguments do not fit the tool");
    assert!(!serde_json::to_string(&reply).unwrap().contains("hunter2"));
}

/// An error whose text cannot be written, and which cannot be dropped.
#[derive(Debug)]
struct Unspeakable(fn() -> fmt::Result);

impl fmt::Display for Unspeakable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("half a")?;
        (self.0)()
    }
}

impl Error for Unspeakable {}

/// Panics, where nothing panics already.
fn burst() {
    if !std::thread::panicking() {
        panic::resume_unwind(Box::new("planted"));
    }
}

impl Drop for Unspeakable {
    fn drop(&mut self) {
        burst();
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        burst();
    }
}

fn panicking() -> fmt::Result {
    panic::resume_unwind(Box::new("planted"))
}

#[tokio::test(start_paused = true)]
async fn an_error_that_cannot_be_written_or_dropped_fails_its_own_call_only() {
    let odd = |name: &str, write: fn() -> fmt::Result| {
        let retry = Retry { attempts: 2, pause_ms: 1, pause_ms_max: 1 };
        let effects = Effects { repeat: Repeat::Idempotent, ..Effects::default() };
        let spec = Spec::new(name, "Fails.").effects(effects).retry(retry);
        tool_fn(
            spec,
            move |_: Empty| async move { Err::<(), ToolError>(Unspeakable(write).into()) },
        )
    };
    let mute = odd("mute", || Err(fmt::Error));
    let run = free([mute, odd("loud", panicking), Stage::new().read("read")]);
    let replies = run.batch(proposals("read {}\nmute {}\nloud {}")).await.unwrap();
    let message = |at: usize| replies[at].fault.as_ref().map(|fault| fault.message.to_string());
    assert_eq!(message(0), None);
    assert_eq!(message(1).unwrap(), "half a (it cannot be written)");
    assert_eq!(message(2).unwrap(), "half a (writing it panicked: planted)");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_when_it_is_dropped_fails_its_own_call_only() {
    let bounds = Bounds { wall: Bound::At(Duration::from_millis(10)), ..Bounds::default() };
    let spec = Spec::new("odd", "Hangs.").access(Access::Read).bounds(bounds);
    let odd = tool_fn(spec, async |_: Empty| {
        let _bomb = Bomb;
        std::future::pending::<Result<(), ToolError>>().await
    });
    let run = free([odd, Stage::new().read("read")]);
    let replies = run.batch(proposals("odd {}\nread {\"ms\":20}")).await.unwrap();
    assert_eq!((replies[0].executed, replies[1].is_error), (Executed::Unknown, false));

    let batch = run.batch(proposals("odd {}\nodd {}"));
    let dropped = tokio::time::timeout(Duration::from_millis(5), batch).await;
    assert!(dropped.is_err(), "and whoever drops the batch lives on");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_panics_when_it_is_withdrawn_fails_its_own_call_only() {
    let stage = Stage::new();
    let run = free([stage.read("asks"), stage.read("read")])
        .policy(|call: &tooltape::Call| match call.tool().name().as_str() {
            "asks" => Verdict::ask("test"),
            _ => Verdict::allow("test"),
        })
        .approver(|_| {
            Box::pin(async {
                let _bomb = Bomb;
                std::future::pending::<Answer>().await
            })
        });
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        run.cancel_call(tooltape::CallNo(1));
    };
    let batch = run.batch(proposals("asks {}\nread {}"));
    let (replies, ()) = tokio::join!(batch, cancelling);
    let replies = replies.unwrap();
    assert_eq!((replies[0].executed, replies[1].is_error), (Executed::NotExecuted, false));
}
