use std::rc::Rc;

use tooltape::{Empty, ToolError, tool};

/// Holds what one thread alone may hold while it waits.
#[tool(Pure)]
async fn wait(_: Empty) -> Result<usize, ToolError> {
    let held = Rc::new(1);
    std::future::ready(()).await;
    Ok(Rc::strong_count(&held))
}

fn main() {
    let _ = tooltape::tools![wait];
}
