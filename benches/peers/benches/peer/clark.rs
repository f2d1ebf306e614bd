//! clark-agent: its public parts in the order in which its own executor, which is private, uses
//! them.

use std::sync::Arc;

use async_trait::async_trait;
use clark_agent::{ToolError, ToolRegistry, ToolResult, ToolUpdateSink, TypedAgentTool};
use schemars_08::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tooltape_board::{Add, add};

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
