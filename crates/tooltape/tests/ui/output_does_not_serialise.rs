use tooltape::{Empty, ToolError, tool};

struct Report;

/// Reports.
#[tool(Read)]
async fn report(_: Empty) -> Result<Report, ToolError> {
    Ok(Report)
}

fn main() {
    let _ = tooltape::tools![report];
}
