use tooltape::{Clock, Empty, Grant, State, ToolError, tool};

#[derive(Clone)]
struct Files;
impl Grant for Files {}

/// Counts.
#[tool(Pure)]
async fn count(
    _: Empty,
    _clock: Clock,
    seen: State<u64>,
    _files: Files,
) -> Result<u64, ToolError> {
    Ok(seen.get())
}

fn main() {
    let _ = tooltape::tools![count];
}
