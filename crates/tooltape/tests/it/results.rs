//! What a result is to the model and to the application: acceptance 50, 53, 54 and 55.

use std::sync::Arc;

use serde_json::json;
use tooltape::testing::Spy;
use tooltape::{
    Access, Args, Block, Domain, Executed, Hash, Output, Reply, Run, Stop, Tool, ToolError,
    Toolbox, input, tool, tool_fn, tools,
};

use crate::declaring::{over, reply};

/// The reply to a call of a tool that returns this.
async fn result(result: fn(Args) -> Result<Output, ToolError>) -> Reply {
    let spy = Spy::new("tool", Access::Read).returning(result);
    reply(&over([spy.tool()]), "tool", "{}").await
}

#[tokio::test]
async fn a_result_carries_all_that_was_promised() {
    let run = over([stopping()]);
    let reply = reply(&run, "stopping", "{}").await;
    assert_eq!((&*reply.id, &*reply.name), ("c1", "stopping"));
    assert_eq!(*reply.content, [Block::text("two rows")]);
    assert_eq!(reply.value.as_ref().unwrap().as_str(), r#"{"rows":2}"#);
    assert_eq!(reply.artifacts, []);
    assert!(!reply.is_error && reply.stop);
    assert_eq!(reply.metadata.as_deref(), Some(&json!({ "cache_control": "ephemeral" })));
    assert_eq!(reply.executed, Executed::Executed);
    let json = serde_json::to_value(&reply).unwrap();
    for field in ["call_id", "tool", "content", "value", "artifacts", "is_error", "stop"] {
        assert!(json.get(field).is_some(), "`{field}` is in every event: {json}");
    }
    assert!(json["elapsed_us"].is_u64() && json["metadata"].is_object(), "{json}");
}

/// Votes to stop, with everything that an output can have.
fn stopping() -> Arc<dyn Tool> {
    let spec = tooltape::Spec::new("stopping", "Stops.").access(Access::Read);
    tool_fn(spec, async |_: tooltape::Empty| {
        let output = Output::value(&json!({ "rows": 2 }))?.block(Block::text("two rows"));
        Ok::<_, ToolError>(Stop(output.metadata(json!({ "cache_control": "ephemeral" }))))
    })
}

#[tokio::test]
async fn the_application_sees_the_value_and_the_model_its_canonical_text() {
    let reply =
        result(|_| Output::value(&json!({ "b": [1.0, "é"], "a": 9007199254740993_u64 }))).await;
    let canonical = r#"{"a":9007199254740993,"b":[1,"é"]}"#;
    assert_eq!(reply.text(), canonical);
    let value = reply.value.as_ref().unwrap();
    assert_eq!(value.to_value(), json!({ "a": 9007199254740993_u64, "b": [1, "é"] }));
    assert_eq!(reply.result_hash, Hash::of(Domain::Result, canonical.as_bytes()));
}

#[tokio::test]
async fn a_set_is_hashed_in_one_order_and_reaches_the_application_in_its_own() {
    let run = |result: fn(Args) -> Result<Output, ToolError>| {
        let schema = json!({ "type": "array", "uniqueItems": true });
        let spy = Spy::new("tool", Access::Read).returning(result);
        over([spy.declaring(|spec| spec.output(schema)).tool()])
    };
    let one = reply(&run(|_| Output::value(&["b", "a"])), "tool", "{}").await;
    let other = reply(&run(|_| Output::value(&["a", "b"])), "tool", "{}").await;
    assert_eq!(one.result_hash, other.result_hash);
    assert_eq!(one.value.as_ref().unwrap().as_str(), r#"["b","a"]"#);
    // So it is not for arrays that are no sets.
    let one = result(|_| Output::value(&["b", "a"])).await;
    let other = result(|_| Output::value(&["a", "b"])).await;
    assert_ne!(one.result_hash, other.result_hash);
}

#[tokio::test]
async fn details_never_reach_the_model_and_content_does() {
    let told = result(|_| {
        Ok(Output::text("public").block(Block::text("also")).detail(json!({ "row": "hidden" })))
    })
    .await;
    assert_eq!(told.text(), "public\nalso");
    let shown = format!("{:?}", told.shown());
    assert!(!shown.contains("hidden"), "{shown}");
    assert_eq!(told.details.as_deref(), Some(&json!({ "row": "hidden" })));
    let failed = result(|_| {
        Err(ToolError::tell("no").details(json!({ "row": "hidden" })).because("hidden too"))
    })
    .await;
    assert_eq!(failed.text(), "failed: no");
    assert!(failed.details.is_some() && failed.fault.as_ref().unwrap().message.contains("hidden"));
}

#[input]
struct Ask {
    fails: bool,
}

/// Works, or does not.
#[tool(Read)]
async fn works(args: Ask) -> Result<String, ToolError> {
    if args.fails { Err(ToolError::tell("it broke")) } else { Ok("it works".to_owned()) }
}

#[tokio::test]
async fn a_result_is_text_or_an_error_and_everything_says_the_same() {
    let run = Run::new(&Toolbox::new(tools![works]).unwrap());
    let good = reply(&run, "works", r#"{"fails":false}"#).await;
    assert!(!good.is_error && good.fault.is_none() && good.value.is_some());
    assert_eq!((good.text(), &*good.content), ("it works".into(), &[Block::text("it works")][..]));
    let bad = reply(&run, "works", r#"{"fails":true}"#).await;
    assert!(bad.is_error && bad.fault.is_some() && bad.value.is_none());
    assert_eq!(bad.text(), "failed: it broke");
    assert_eq!(*bad.content, [Block::text("failed: it broke")]);
}
