use tooltape::{Empty, ToolError, tool};

struct Counter(u64);

impl Counter {
    /// Counts.
    #[tool(Read)]
    async fn count(&self, _: Empty) -> Result<u64, ToolError> {
        Ok(self.0)
    }
}

fn main() {}
