//! clark-agent: its public parts in the order in which its own executor, which is private, uses
//! them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use clark_agent::{
    AgentBuilder, AgentContext, AgentMessage, AssistantBlock, AssistantContent, StopReason,
    StreamEvent, StreamFn, StreamRequest, ToolCall, ToolError, ToolRegistry, ToolResult,
    ToolUpdateSink, TypedAgentTool, UserContent, run,
};
use futures_util::stream::{self, BoxStream};
use schemars_08::JsonSchema;
use serde::Deserialize;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tooltape_board::{ADD_TEXT, Add, Stopwatch, add};

use super::DESCRIPTION;

pub(crate) struct Clark {
    registry: ToolRegistry,
    signal: CancellationToken,
    update: ToolUpdateSink,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "schemars_08")]
struct Args {
    a: i64,
    b: i64,
}

struct Adder;

#[async_trait]
impl TypedAgentTool for Adder {
    type Args = Args;

    fn name(&self) -> &str {
        "add"
    }

    fn description(&self) -> &str {
        DESCRIPTION
    }

    async fn run(
        &self,
        _: &str,
        Args { a, b }: Args,
        _: CancellationToken,
        _: ToolUpdateSink,
    ) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(add(&Add { a, b }).to_string()))
    }
}

/// A transport that proposes so many calls, turn after turn, and answers at last.
struct Scripted {
    calls: usize,
    turns: Mutex<usize>,
}

#[async_trait]
impl StreamFn for Scripted {
    async fn stream(
        &self,
        _: StreamRequest,
        _: CancellationToken,
    ) -> BoxStream<'static, StreamEvent> {
        let mut turns = self.turns.lock().expect("nobody panics here");
        let is_over = *turns == 0;
        *turns = turns.saturating_sub(1);
        let call = |no| {
            let arguments = serde_json::from_str(ADD_TEXT).expect("it is JSON");
            let (id, name) = (format!("call_{no}"), "add".to_owned());
            AssistantBlock::ToolCall(ToolCall { id, name, arguments })
        };
        let (content, stop_reason) = match is_over {
            true => (AssistantContent::text("done"), StopReason::EndTurn),
            false => {
                let blocks = (0..self.calls).map(call).collect();
                (AssistantContent { blocks }, StopReason::ToolUse)
            }
        };
        let (error_message, timestamp, usage) = (None, None, None);
        let message =
            AgentMessage::Assistant { content, stop_reason, error_message, timestamp, usage };
        Box::pin(stream::iter([StreamEvent::Done { message }]))
    }
}

/// What a call costs in a turn of so many, with all that the turn costs.
pub(crate) fn nanos_per_call(runtime: &Runtime, calls: usize, turns: usize) -> f64 {
    let scripted = Scripted { calls, turns: Mutex::new(turns) };
    let config = AgentBuilder::new()
        .stream(Arc::new(scripted))
        .tools(ToolRegistry::new().with(Arc::new(Adder)))
        .build()
        .expect("it is complete");
    let content = UserContent::Text("Add.".into());
    let asked = vec![AgentMessage::User { content, timestamp: None }];
    let context = AgentContext::new("Add.");
    let watch = Stopwatch::start();
    let outcome = runtime.block_on(run(asked, context, &config, CancellationToken::new()));
    let spent = watch.elapsed();
    let messages = outcome.expect("the agent answers").messages;
    let is_result = |message: &&AgentMessage| matches!(message, AgentMessage::ToolResult { .. });
    assert_eq!(messages.iter().filter(is_result).count(), calls * turns);
    spent.as_nanos() as f64 / (calls * turns) as f64
}

impl Clark {
    pub(crate) fn new() -> Clark {
        let (update, _) = mpsc::unbounded_channel();
        let registry = ToolRegistry::new().with(Arc::new(Adder));
        Clark { registry, signal: CancellationToken::new(), update }
    }

    pub(crate) async fn call(&self, text: &str) -> ToolResult {
        let tool = self.registry.get("add").expect("it is registered");
        let args = tool.prepare_arguments(serde_json::from_str(text).expect("it is JSON"));
        tool.validate(&args).expect("the arguments are valid");
        let result = tool.execute("call_1", args, self.signal.clone(), self.update.clone()).await;
        result.expect("the tool succeeds")
    }
}
