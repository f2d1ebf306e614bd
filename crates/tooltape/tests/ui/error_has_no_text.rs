use tooltape::{Empty, tool};

struct Broken;

/// Reports.
#[tool(Read)]
async fn report(_: Empty) -> Result<String, Broken> {
    Err(Broken)
}

fn main() {
    let _ = tooltape::tools![report];
}
