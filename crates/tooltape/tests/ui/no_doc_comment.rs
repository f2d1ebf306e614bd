use tooltape::{Empty, ToolError, tool};

#[tool(Pure)]
async fn sum(_: Empty) -> Result<u64, ToolError> {
    Ok(0)
}

fn main() {
    let _ = tooltape::tools![sum];
}
