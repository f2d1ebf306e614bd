//! A tool found at run time, with one argument that the host fills and the model never sees.
//!
//! `cargo run -p tooltape --example runtime_tool`

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use tooltape::serde_json::{Value, json};
use tooltape::{Args, BoxFuture, Effects, Grants, Output, Proposal, Run, Secret, Spec, Tool};
use tooltape::{ToolError, Toolbox, bind};

/// A tool that some catalogue describes. This one shows only what it was given.
struct Found(Spec);

impl Found {
    fn in_catalogue(entry: &Value) -> Option<Arc<dyn Tool>> {
        let spec = Spec::new(entry["name"].as_str()?, entry["description"].as_str()?)
            .input(entry["inputSchema"].clone())
            .effects(Effects::read());
        Some(Arc::new(Found(spec)))
    }
}

impl Tool for Found {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn call<'a>(&'a self, args: Args, _: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>> {
        let args = args.to_value();
        let names: Vec<_> = args.as_object().into_iter().flat_map(|args| args.keys()).collect();
        let output = Output::text(format!("nothing found for {}", args["query"]));
        let output = output.detail(json!({ "given": names }));
        Box::pin(async { Ok(output) })
    }
}

pub(crate) async fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let entry = json!({
        "name": "search",
        "description": "Searches the archive.",
        "inputSchema": {
            "type": "object",
            "properties": { "query": { "type": "string" }, "api_key": { "type": "string" } },
            "required": ["query", "api_key"],
            "additionalProperties": false,
        },
    });
    let search = Found::in_catalogue(&entry).ok_or("the entry has a name and a description")?;
    let search = bind(search, "api_key", |key: &Secret<String>| key.expose().as_str().into())?;
    writeln!(out, "a model sees: {}", search.spec().input["properties"])?;

    let run = Run::new(&Toolbox::new([search])?).grant(Secret::new(String::from("hunter2")));
    for arguments in [r#"{"query":"tea"}"#, r#"{"query":"tea","api_key":"mine"}"#] {
        for reply in run.batch(vec![Proposal::new("call_1", "search", arguments)]).await? {
            writeln!(out, "\n{arguments}\n  the model reads: {}", reply.text())?;
            if let Some(details) = &reply.details {
                writeln!(out, "  the tool was given: {}", details["given"])?;
            }
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    show(&mut io::stdout()).await
}
