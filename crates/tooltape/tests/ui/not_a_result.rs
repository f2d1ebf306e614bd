use tooltape::{Empty, tool};

/// Greets.
#[tool(Pure)]
async fn greet(_: Empty) -> String {
    "hello".into()
}

/// Says nothing.
#[tool(Pure)]
async fn silent(_: Empty) {}

fn main() {
    let _ = tooltape::tools![greet, silent];
}
