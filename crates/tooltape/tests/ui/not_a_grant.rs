use tooltape::{Empty, ToolError, tool};

#[derive(Clone)]
struct Database;

/// Counts the rows.
#[tool(Read)]
async fn count(_: Empty, _database: Database) -> Result<u64, ToolError> {
    Ok(0)
}

fn main() {
    let _ = tooltape::tools![count];
}
