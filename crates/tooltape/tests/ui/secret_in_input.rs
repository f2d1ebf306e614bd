use tooltape::{Secret, ToolError, input, tool};

#[input]
struct Push {
    branch: String,
    token: Secret<String>,
}

/// Pushes a branch.
#[tool(Write)]
async fn push(args: Push) -> Result<String, ToolError> {
    Ok(args.branch)
}

fn main() {
    let _ = tooltape::tools![push];
}
