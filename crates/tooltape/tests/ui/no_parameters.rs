use tooltape::{ToolError, tool};

/// Sums up.
#[tool(Pure)]
async fn sum() -> Result<u64, ToolError> {
    Ok(0)
}

fn main() {
    let _ = tooltape::tools![sum];
}
