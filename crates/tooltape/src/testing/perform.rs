//! What every performer promises.

use super::Spy;
use crate::fault::ToolError;
use crate::perform::Perform;
use crate::proposal::Proposal;
use crate::reply::Reply;
use crate::run::Run;
use crate::spec::Access;
use crate::tape::{Event, MemoryTape};
use crate::tool::Output;
use crate::toolbox::Toolbox;

/// Holds a performer that runs tools to its promises.
///
/// `make` makes one each time. A performer that serves recordings has nothing to run, and is
/// checked by what it is compared with.
pub async fn perform_conforms<P: Perform + 'static>(make: impl Fn() -> P) {
    let (spy, reply) = performed(make(), Spy::new("spy", Access::Write)).await;
    assert_eq!(spy.calls(), 1, "an attempt runs the tool once");
    let value = reply.value.as_ref().map(|value| value.as_str());
    assert_eq!(value, Some(r#"{"n":1}"#), "the tool gets its arguments, the reply its value");

    let failing = Spy::new("spy", Access::Write).returning(|_| Err(ToolError::tell("no luck")));
    let (spy, reply) = performed(make(), failing).await;
    assert_eq!(spy.calls(), 1, "a performer does not repeat by itself");
    assert_eq!(reply.text(), "failed: no luck", "the tool's failure reaches the model");

    let panicking = Spy::new("spy", Access::Write).returning(|_| panic!("a test panic"));
    let (_, reply) = performed(make(), panicking).await;
    assert!(reply.is_error, "a panic settles its call");

    let rich = Spy::new("spy", Access::Read)
        .returning(|_| Ok(Output::text("seen").detail(serde_json::json!({ "only": "host" }))));
    let (_, reply) = performed(make(), rich).await;
    assert_eq!(reply.text(), "seen", "content reaches the model");
    assert!(reply.details.is_some(), "details reach the host");
}

async fn performed(performer: impl Perform + 'static, spy: Spy) -> (Spy, Reply) {
    let toolbox = Toolbox::new([spy.tool()]).expect("a spy can be registered");
    let tape = MemoryTape::default();
    let run = Run::new(&toolbox)
        .policy(|_: &_| crate::Verdict::allow("conformance"))
        .tape(tape.clone())
        .performer(performer);
    let replies = run.batch(vec![Proposal::new("1", "spy", r#"{"n":1}"#)]).await;
    let reply = replies.expect("a spy needs nothing").remove(0);
    let count = |is: fn(&Event) -> bool| {
        tape.records(run.id()).iter().filter(|record| is(&record.event)).count()
    };
    assert_eq!(count(|it| matches!(it, Event::Started { .. })), 1, "an attempt is recorded once");
    assert_eq!(count(|it| matches!(it, Event::Settled(_))), 1, "a call settles once");
    (spy, reply)
}
