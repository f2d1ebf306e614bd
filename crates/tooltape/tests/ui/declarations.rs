use tooltape::{Empty, ToolError, tool};

/// One.
#[tool(Read, filesytem)]
async fn unknown(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

/// Two.
#[tool(Read, redact, redact)]
async fn twice(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

/// Three.
#[tool(Read, Write)]
async fn two_accesses(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

/// Four.
#[tool(filesystem, Read)]
async fn access_last(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

/// Five.
#[tool(Read, needs("read everything"))]
async fn shapeless_capability(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

/// Six.
#[tool(Read, determinism = Always)]
async fn no_such_word(_: Empty) -> Result<(), ToolError> {
    Ok(())
}

/// Seven.
#[tool(Read)]
struct NotAFunction;

fn main() {}
