use tooltape::{Secret, ToolError, tool};

/// Pushes.
#[tool(Write)]
async fn push(token: Secret<String>) -> Result<String, ToolError> {
    Ok(token.expose().clone())
}

fn main() {
    let _ = tooltape::tools![push];
}
