use tooltape::{Cancel, Clock, Empty, Progress, Random, RunInfo, Secret, State, ToolError, tool};

/// Takes everything.
#[tool(Write)]
async fn greedy(
    _: Empty,
    _1: Cancel,
    _2: Clock,
    _3: Progress,
    _4: Random,
    _5: RunInfo,
    _6: Secret<String>,
    _7: State<u8>,
    _8: State<u16>,
    _9: State<u32>,
) -> Result<(), ToolError> {
    Ok(())
}

fn main() {
    let _ = tooltape::tools![greedy];
}
