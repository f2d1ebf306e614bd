use tooltape::{Empty, Secret, ToolError, tool};

/// Copies from one account to another.
#[tool(Write)]
async fn copy(
    _: Empty,
    _from: Secret<String>,
    _to: Secret<String>,
) -> Result<(), ToolError> {
    Ok(())
}

fn main() {
    let _ = tooltape::tools![copy];
}
