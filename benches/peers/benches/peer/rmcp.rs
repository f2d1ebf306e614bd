//! rmcp: a client and a server in one process, which pay for a transport and so do another job.

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tooltape_board::{Add, add};

/// The bytes that may be on their way between the two.
const DUPLEX_BYTES: usize = 64 * 1024;

pub(crate) struct Rmcp(RunningService<RoleClient, ()>);

#[derive(Deserialize, JsonSchema)]
struct Args {
    a: i64,
    b: i64,
}

#[derive(Clone)]
struct Server {
    tools: ToolRouter<Server>,
}

#[tool_router(router = tools)]
impl Server {
    #[tool(description = "Adds two numbers.")]
    async fn add(&self, Parameters(Args { a, b }): Parameters<Args>) -> String {
        add(&Add { a, b }).to_string()
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Server {}

impl Rmcp {
    /// Starts the server as a task of the runtime that this is awaited on.
    pub(crate) async fn start() -> Rmcp {
        let (near, far) = tokio::io::duplex(DUPLEX_BYTES);
        tokio::spawn(async move {
            let server = Server { tools: Server::tools() }.serve(far).await;
            server.expect("the server starts").waiting().await
        });
        Rmcp(().serve(near).await.expect("the client starts"))
    }

    pub(crate) async fn call(&self, text: &str) -> CallToolResult {
        let args = serde_json::from_str(text).expect("the arguments are a JSON object");
        let call = CallToolRequestParams::new("add").with_arguments(args);
        self.0.call_tool(call).await.expect("the tool succeeds")
    }
}
